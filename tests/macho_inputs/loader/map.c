/* Loading: mapping, fixing up and initialising images. */
#include "tests/macho_inputs/loader/load.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    S_MOD_INIT_FUNC_POINTERS = 9,
    S_THREAD_LOCAL_REGULAR = 0x11,
    S_THREAD_LOCAL_ZEROFILL = 0x12
};
enum { S_THREAD_LOCAL_VARIABLES = 0x13, S_INIT_FUNC_OFFSETS = 0x16 };

static uint64_t vm_end(const struct macho *m)
{
    uint64_t end = 0;

    for (size_t i = 0; i < m->segment_count; i++) {
        const struct segment *s = &m->segments[i];

        if (s->initprot && s->vmaddr + s->vmsize > end)
            end = s->vmaddr + s->vmsize;
    }
    return end;
}

struct image *map_image(struct macho *m)
{
    struct image *im = take_memory(sizeof *im);
    uint64_t size = (vm_end(m) - m->start + 0xffff) & ~(uint64_t)0xffff, align = 0x10000;
    uint8_t *room;

    check_slice(m);
    room = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        die("%s: cannot be mapped", m->path);
    im->m = m;
    im->path = m->path;
    im->id = m->filetype == MH_DYLIB ? m->id : NULL;
    im->weak_defines = m->flags & MH_WEAK_DEFINES;
    im->base = (uint8_t *)(((uintptr_t)room + align - 1) & ~(uintptr_t)(align - 1));
    for (size_t i = 0; i < m->segment_count; i++) {
        const struct segment *s = &m->segments[i];
        uint8_t *at = im->base + (s->vmaddr - m->start);

        if (!s->initprot)
            continue;
        if (mprotect(at, (s->vmsize + 0xfff) & ~(uint64_t)0xfff, PROT_READ | PROT_WRITE) != 0)
            die("%s: %s cannot be mapped", m->path, s->name);
        memcpy(at, bytes_at(m, s->fileoff, s->filesize), s->filesize);
    }
    return im;
}

static void apply(void *user, const struct fixup *f)
{
    struct image *im = user;
    uint64_t value;

    if (f->is_bind) {
        uint8_t *target = resolve(im, &f->import);

        if (!target && f->import.weak_stream)
            return;
        /* As in dyld, the addend of a missing symbol stays. */
        value = (uint64_t)(uintptr_t)target + (uint64_t)(f->import.addend + f->addend);
    } else {
        value = (uint64_t)(uintptr_t)im->base + f->target;
    }
    memcpy(im->base + f->at, &value, sizeof value);
}

static void check_import(void *user, const struct import *import)
{
    resolve(user, import);
}

void fix_image(struct image *im)
{
    const struct macho *m = im->m;

    each_import(m, check_import, im);
    each_fixup(m, apply, im);
    set_up_thread_locals(im);
    for (size_t i = 0; i < m->segment_count; i++) {
        const struct segment *s = &m->segments[i];
        int prot = (s->initprot & 1 ? PROT_READ : 0) | (s->initprot & 4 ? PROT_EXEC : 0) |
                   (s->initprot & 2 && !(s->flags & 0x10) ? PROT_WRITE : 0);
        uint8_t *at = im->base + (s->vmaddr - m->start);

        if (s->initprot && mprotect(at, (s->vmsize + 0xfff) & ~(uint64_t)0xfff, prot) != 0)
            die("%s: %s cannot be protected", im->path, s->name);
        if (s->initprot & 4)
            __builtin___clear_cache((char *)at, (char *)at + s->vmsize);
    }
}

/* ---- thread-local variables ------------------------------------------------------------------ */

/* A thread-local variable's descriptor: its accessor function, the image's key, and its offset
 * in the image's block (libdyld, ThreadLocalVariables.cpp). */
struct descriptor {
    void (*thunk)(void);
    uint64_t key, offset;
};

static struct template
{
    const uint8_t *from;
    uint64_t size;
}
templates[PTHREAD_KEYS_MAX];

void *tlv_find(const struct descriptor *d);

void *tlv_find(const struct descriptor *d)
{
    pthread_key_t key = (pthread_key_t)d->key;
    uint8_t *block = pthread_getspecific(key);

    if (!block) {
        block = take_memory(templates[key].size);
        memcpy(block, templates[key].from, templates[key].size);
        pthread_setspecific(key, block);
    }
    return block + d->offset;
}

/* Called with the descriptor in the first argument register; may change only the result
 * register. */
void tlv_get(void);
#ifdef __x86_64__
__asm__(".text\n.globl tlv_get\ntlv_get:\n"
        "push %rbp\nmov %rsp, %rbp\n"
        "push %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\npush %r10\npush %r11\n"
        "and $-16, %rsp\nsub $512, %rsp\nfxsave64 (%rsp)\n"
        "call tlv_find\n"
        "fxrstor64 (%rsp)\nlea -64(%rbp), %rsp\n"
        "pop %r11\npop %r10\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\n"
        "pop %rbp\nret\n");
#else
__asm__(".text\n.globl tlv_get\n.type tlv_get, %function\ntlv_get:\n"
        "stp x29, x30, [sp, #-16]!\nmov x29, sp\n"
        "stp x1, x2, [sp, #-16]!\nstp x3, x4, [sp, #-16]!\nstp x5, x6, [sp, #-16]!\n"
        "stp x7, x8, [sp, #-16]!\nstp x9, x10, [sp, #-16]!\nstp x11, x12, [sp, #-16]!\n"
        "stp x13, x14, [sp, #-16]!\nstp x15, x16, [sp, #-16]!\nstp x17, x18, [sp, #-16]!\n"
        "stp q0, q1, [sp, #-32]!\nstp q2, q3, [sp, #-32]!\nstp q4, q5, [sp, #-32]!\n"
        "stp q6, q7, [sp, #-32]!\n"
        "bl tlv_find\n"
        "ldp q6, q7, [sp], #32\nldp q4, q5, [sp], #32\nldp q2, q3, [sp], #32\n"
        "ldp q0, q1, [sp], #32\n"
        "ldp x17, x18, [sp], #16\nldp x15, x16, [sp], #16\nldp x13, x14, [sp], #16\n"
        "ldp x11, x12, [sp], #16\nldp x9, x10, [sp], #16\nldp x7, x8, [sp], #16\n"
        "ldp x5, x6, [sp], #16\nldp x3, x4, [sp], #16\nldp x1, x2, [sp], #16\n"
        "ldp x29, x30, [sp], #16\nret\n");
#endif

void tlv_bootstrap(void)
{
    die("a thread-local variable was not set up: is MH_HAS_TLV_DESCRIPTORS missing?");
}

static struct template template_of(const struct image *im)
{
    uint64_t from = UINT64_MAX, to = 0;

    for (size_t i = 0; i < im->m->section_count; i++) {
        const struct section *s = &im->m->sections[i];
        uint32_t type = s->flags & 0xff;

        if (type != S_THREAD_LOCAL_REGULAR && type != S_THREAD_LOCAL_ZEROFILL)
            continue;
        from = s->addr < from ? s->addr : from;
        to = s->addr + s->size > to ? s->addr + s->size : to;
    }
    return to ? (struct template){im->base + (from - im->m->start), to - from}
              : (struct template){im->base, 0};
}

void set_up_thread_locals(struct image *im)
{
    pthread_key_t key;

    if (!(im->m->flags & MH_HAS_TLV))
        return;
    if (pthread_key_create(&key, NULL) != 0 || key >= PTHREAD_KEYS_MAX)
        die("%s: no key for its thread-local variables", im->path);
    templates[key] = template_of(im);
    for (size_t i = 0; i < im->m->section_count; i++) {
        const struct section *s = &im->m->sections[i];
        uint8_t *at = im->base + (s->addr - im->m->start);

        if ((s->flags & 0xff) != S_THREAD_LOCAL_VARIABLES)
            continue;
        if (s->size % sizeof(struct descriptor))
            die("%s: half a thread-local variable's descriptor", im->path);
        for (uint64_t o = 0; o < s->size; o += sizeof(struct descriptor)) {
            struct descriptor d;

            memcpy(&d, at + o, sizeof d);
            if (d.thunk != tlv_bootstrap || d.offset >= templates[key].size)
                die("%s: a thread-local variable's descriptor is wrong", im->path);
            d.thunk = tlv_get;
            d.key = key;
            memcpy(at + o, &d, sizeof d);
        }
    }
}

/* ---- initialisers and dlopen ----------------------------------------------------------------- */

/* argc, argv, envp, apple and program variables. */
typedef void (*init_fn)(int, char **, char **, char **, void *);

static void run_initialiser(const struct image *im, uint8_t *at)
{
    static char *none[] = {NULL};
    init_fn f;
    const struct macho *m = im->m;

    for (size_t i = 0; i < m->segment_count; i++) {
        const struct segment *s = &m->segments[i];
        uint64_t off = (uint64_t)(at - im->base) + m->start;

        if (s->initprot & 4 && off >= s->vmaddr && off - s->vmaddr < s->vmsize) {
            memcpy(&f, &at, sizeof f);
            f(0, none, none, none, NULL);
            return;
        }
    }
    die("%s: an initialiser is no code of its own", im->path);
}

/* dyld knows a section by its type; a withheld one is S_REGULAR, with its old type in unused
 * attributes. */
static bool has_type(const struct section *s, uint32_t type, bool withheld)
{
    return withheld ? (s->flags & 0x00ff00ff) == (0x00800000 | type << 16)
                    : (s->flags & 0xff) == type;
}

/* First the sections of pointers, then those of offsets (MachOAnalyzer::forEachInitializer). */
static void run_sections(struct image *im, bool withheld)
{
    for (size_t i = 0; i < im->m->section_count * 2; i++) {
        const bool offsets = i >= im->m->section_count;
        const struct section *s = &im->m->sections[i % im->m->section_count];
        const uint8_t *at = im->base + (s->addr - im->m->start);
        const uint64_t unit = offsets ? 4 : 8;

        if (!has_type(s, offsets ? S_INIT_FUNC_OFFSETS : S_MOD_INIT_FUNC_POINTERS, withheld))
            continue;
        for (uint64_t o = 0; o + unit <= s->size; o += unit) {
            uint8_t *f;
            uint32_t off;

            memcpy(&f, at + o, offsets ? 0 : 8);
            memcpy(&off, at + o, sizeof off);
            run_initialiser(im, offsets ? im->base + off : f);
        }
    }
}

void initialise(struct image *im)
{
    if (!im->m || im->initialised)
        return;
    im->initialised = true;
    for (size_t i = 0; i < im->m->dylib_count; i++)
        if (im->deps[i] && im->m->dylibs[i].kind != UPWARD)
            initialise(im->deps[i]);
    run_sections(im, false);
}

void initialise_withheld(struct image *im)
{
    run_sections(im, true);
}

static void load_dependents(struct image *im)
{
    const struct macho *m = im->m;
    bool is_new[255];

    if (!m)
        return;
    im->deps = take_memory(m->dylib_count * sizeof *im->deps);
    for (size_t i = 0; i < m->dylib_count; i++)
        im->deps[i] = image_of(im, m->dylibs[i].name, m->dylibs[i].kind == LOAD_WEAK, &is_new[i]);
    for (size_t i = 0; i < m->dylib_count; i++)
        if (is_new[i])
            load_dependents(im->deps[i]);
}

struct image *open_image(const char *path, bool local, bool is_main)
{
    struct image self = {.path = "the program"}, *im;
    size_t before = loaded_count;
    bool is_new;

    im = image_of(main_image ? main_image : &self, path, false, &is_new);
    if (is_main)
        main_image = im;
    if (!is_new) {
        im->hidden = im->hidden && local;
        return im;
    }
    im->hidden = local;
    if (!is_main && im->m->filetype == MH_EXECUTE)
        die("%s: a main program cannot be opened", path);
    load_dependents(im);
    for (size_t i = loaded_count; i-- > before;)
        if (loaded[i]->m)
            fix_image(loaded[i]);
    initialise(im);
    return im;
}
