/* edit_elf EDIT FILE: makes one odd change to a 64-bit little-endian ELF file, as no linker
 * would. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *file;
static size_t size;

static Elf64_Ehdr *ehdr(void)
{
    return (Elf64_Ehdr *)file;
}

static Elf64_Phdr *phdr(size_t i)
{
    return (Elf64_Phdr *)(file + ehdr()->e_phoff) + i;
}

static Elf64_Shdr *shdr(size_t i)
{
    return (Elf64_Shdr *)(file + ehdr()->e_shoff) + i;
}

static Elf64_Phdr *phdr_of(Elf64_Word type)
{
    for (size_t i = 0; i < ehdr()->e_phnum; i++)
        if (phdr(i)->p_type == type)
            return phdr(i);
    fprintf(stderr, "no program header of type 0x%x\n", type);
    exit(1);
}

static Elf64_Shdr *shdr_of(const char *name)
{
    const char *names = (const char *)file + shdr(ehdr()->e_shstrndx)->sh_offset;

    for (size_t i = 1; i < ehdr()->e_shnum; i++)
        if (strcmp(names + shdr(i)->sh_name, name) == 0)
            return shdr(i);
    fprintf(stderr, "no section %s\n", name);
    exit(1);
}

static void grow(size_t to)
{
    file = realloc(file, to);
    if (!file)
        exit(1);
    memset(file + size, 0, to - size);
    size = to;
}

static void swap_loads(void)
{
    Elf64_Phdr *first = phdr_of(PT_LOAD), t = *first;

    first[0] = first[1];
    first[1] = t;
}

static void no_stack(void)
{
    phdr_of(PT_GNU_STACK)->p_type = PT_NULL;
}

static void unnamed(void)
{
    for (size_t i = 1; i < ehdr()->e_shnum; i++)
        shdr(i)->sh_name = 0;
}

static void lying(void)
{
    shdr_of(".dynstr")->sh_addr += 0x1000;
    shdr_of(".gnu.hash")->sh_offset += 0x20;
}

static void xnum(void)
{
    ehdr()->e_phnum = PN_XNUM;
}

static void empty_note(void)
{
    Elf64_Phdr *ph = phdr_of(PT_NOTE);

    ph->p_filesz = ph->p_memsz = 0;
}

static void align_0(void)
{
    for (size_t i = 1; i < ehdr()->e_shnum; i++)
        shdr(i)->sh_addralign = 0;
}

static void odd_align(void)
{
    phdr_of(PT_LOAD)->p_align = 0x1800;
}

/* Moves the program headers to a new segment at the end, as binary optimisers do. */
static void move_headers(void)
{
    size_t n = ehdr()->e_phnum, old = ehdr()->e_phoff, at = (size + 0xfff) & ~(size_t)0xfff,
           last = 0;
    Elf64_Addr end = 0;

    for (size_t i = 0; i < n; i++)
        if (phdr(i)->p_type == PT_LOAD && phdr(i)->p_vaddr + phdr(i)->p_memsz > end) {
            end = phdr(i)->p_vaddr + phdr(i)->p_memsz;
            last = i;
        }
    grow(at + (n + 1) * sizeof(Elf64_Phdr));
    ehdr()->e_phoff = at;
    memcpy(phdr(0), file + old, (last + 1) * sizeof(Elf64_Phdr));
    memcpy(phdr(last + 2), file + old + (last + 1) * sizeof(Elf64_Phdr),
           (n - last - 1) * sizeof(Elf64_Phdr));
    memset(file + old, 0x5a, n * sizeof(Elf64_Phdr));
    end = (end + 0xfff) & ~(Elf64_Addr)0xfff;
    *phdr(last + 1) = (Elf64_Phdr){.p_type = PT_LOAD,
                                   .p_flags = PF_R,
                                   .p_offset = at,
                                   .p_vaddr = end,
                                   .p_paddr = end,
                                   .p_filesz = (n + 1) * sizeof(Elf64_Phdr),
                                   .p_memsz = (n + 1) * sizeof(Elf64_Phdr),
                                   .p_align = 0x1000};
    ehdr()->e_phnum = (Elf64_Half)(n + 1);
}

static const struct {
    const char *name;
    void (*run)(void);
} edits[] = {
    {"swap-loads", swap_loads},
    {"no-stack", no_stack},
    {"unnamed", unnamed},
    {"lying", lying},
    {"xnum", xnum},
    {"empty-note", empty_note},
    {"align-0", align_0},
    {"move-headers", move_headers},
    {"odd-align", odd_align},
};

static void load(const char *path)
{
    FILE *f = fopen(path, "rb");
    long n;

    if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) < (long)sizeof(Elf64_Ehdr))
        exit(1);
    rewind(f);
    grow((size_t)n);
    if (fread(file, 1, size, f) != size)
        exit(1);
    fclose(f);
}

static void store(const char *path)
{
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(file, 1, size, f) != size || fclose(f))
        exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    load(argv[2]);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        if (strcmp(edits[i].name, argv[1]) == 0) {
            edits[i].run();
            store(argv[2]);
            return 0;
        }
    fprintf(stderr, "no edit %s\n", argv[1]);
    return 2;
}
