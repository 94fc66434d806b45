/* Failures of libelf are reported.  The functions here interpose on libelf's own, so that each call
 * can fail as it does when memory runs out. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <string.h>

#include "elf/elf_format.h"
#include "elf/read/elf_open.h"
#include "tests/unit/elf/elf_toy.h"

enum call { NONE, VERSION, MEMORY, EHDR, PHDR, CHUNK, DYN, SYM };

/* Of the calls of this kind, the one after `after` others fails. */
static struct {
    enum call call;
    int after;
} fault;

static bool strikes(enum call call)
{
    return fault.call == call && fault.after-- == 0;
}

#define REAL(name)                                                                                 \
    static __typeof__(&(name)) real;                                                               \
    if (!real)                                                                                     \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

unsigned int elf_version(unsigned int version)
{
    REAL(elf_version);
    return strikes(VERSION) ? EV_NONE : real(version);
}

Elf *elf_memory(char *image, size_t size)
{
    REAL(elf_memory);
    return strikes(MEMORY) ? NULL : real(image, size);
}

GElf_Ehdr *gelf_getehdr(Elf *elf, GElf_Ehdr *dest)
{
    REAL(gelf_getehdr);
    return strikes(EHDR) ? NULL : real(elf, dest);
}

GElf_Phdr *gelf_getphdr(Elf *elf, int ndx, GElf_Phdr *dst)
{
    REAL(gelf_getphdr);
    return strikes(PHDR) ? NULL : real(elf, ndx, dst);
}

Elf_Data *elf_getdata_rawchunk(Elf *elf, int64_t offset, size_t size, Elf_Type type)
{
    REAL(elf_getdata_rawchunk);
    return strikes(CHUNK) ? NULL : real(elf, offset, size, type);
}

GElf_Dyn *gelf_getdyn(Elf_Data *data, int ndx, GElf_Dyn *dst)
{
    REAL(gelf_getdyn);
    return strikes(DYN) ? NULL : real(data, ndx, dst);
}

GElf_Sym *gelf_getsym(Elf_Data *data, int ndx, GElf_Sym *dst)
{
    REAL(gelf_getsym);
    return strikes(SYM) ? NULL : real(data, ndx, dst);
}

static void libelf_failures_are_reported(void **state)
{
    static const struct {
        enum call call;
        int after;
        const char *says;
    } cases[] = {
        {VERSION, 0, "this libelf is too old: libelf: "},
        {MEMORY, 0, "ELF header: libelf: "},
        {EHDR, 0, "ELF header: libelf: "},
        {PHDR, 0, "program header table: libelf: "},
        {PHDR, TOY_PHDRS - 1, "program header table: libelf: "},
        {CHUNK, 0, "section header table: libelf: "},
        {CHUNK, 1, "PT_DYNAMIC: libelf: "},
        {CHUNK, 2, "DT_SYMTAB: libelf: "},
        {DYN, 0, "PT_DYNAMIC: libelf: "},
        {DYN, 3, "PT_DYNAMIC: libelf: "},
        {SYM, TOY_SYMS - 1, "DT_SYMTAB: libelf: "},
        {NONE, 0, NULL},
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct elf_toy toy;
        struct exti_image image = {0};
        int rc;

        elf_toy_make(&toy, true, false);
        fault.call = cases[i].call;
        fault.after = cases[i].after;
        t->err = (struct exti_error){0};
        rc = exti__elf_format.read(exti__span(toy.b, toy.n), &image, &t->err);
        fault.call = NONE;
        exti__image_clear(&image);
        if (cases[i].says) {
            assert_exti(rc, EXTI_E_FORMAT, &t->err, EXTI_NO_OFFSET);
            assert_says(&t->err, cases[i].says);
        } else {
            assert_ok(rc, &t->err);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(libelf_failures_are_reported),
    };

    return cmocka_run_group_tests_name("elf/libelf", tests, NULL, NULL);
}
