/* Does what glibc does in elf/dl-init.c, call_init. */
#include "loader/process/constructors.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/elf_format.h"

extern char **environ;

typedef void (*constructor)(int argc, char **argv, char **envp);

/* What constructors are told of the process. */
static int process_argc;
static char **process_argv;

#ifdef __GLIBC__
/* glibc calls constructors with these; there is no other way to them that lasts. */
__attribute__((constructor)) static void keep_arguments(int argc, char **argv)
{
    process_argc = argc;
    process_argv = argv;
}
#endif

static const ElfW(Dyn) * find_tag(const struct exti_loaded *lib, int64_t tag)
{
    for (const ElfW(Dyn) *d = lib->dynamic; d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag)
            return d;
    return NULL;
}

static ElfW(Addr) tag_value(const struct exti_loaded *lib, int64_t tag)
{
    const ElfW(Dyn) *d = find_tag(lib, tag);

    return d ? d->d_un.d_val : 0;
}

bool exti__has_unheld_constructors(const struct exti_loaded *lib)
{
    return tag_value(lib, DT_INIT) ||
           (tag_value(lib, DT_INIT_ARRAY) && tag_value(lib, DT_INIT_ARRAYSZ) >= sizeof(ElfW(Addr)));
}

/* What has been taken is 0 in memory. */
bool exti__constructors_have_run(const struct exti_loaded *lib)
{
    const ElfW(Dyn) *init = find_tag(lib, EXTI_DT_INIT), *array = find_tag(lib, EXTI_DT_INIT_ARRAY);

    return exti__has_unheld_constructors(lib) || (init && !init->d_un.d_ptr) ||
           (array && !array->d_un.d_ptr);
}

/* The pages that must be made writable for the dynamic section to be changed: empty if it is
 * writable.  Most linkers have it made read-only once it is relocated, some from the start. */
static struct exti_layout fixed_pages(const struct exti_loaded *lib,
                                      const struct exti_layout *layout)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)lib->dynamic;
    const ElfW(Dyn) *end = lib->dynamic;

    if (at >= layout->relro_lo && at < layout->relro_hi)
        return (struct exti_layout){.lo = layout->relro_lo, .hi = layout->relro_hi};
    if (!layout->fixed_dynamic)
        return (struct exti_layout){0};
    while (end->d_tag != DT_NULL)
        end++;
    return (struct exti_layout){.lo = at & ~(page - 1),
                                .hi = ((uintptr_t)(end + 1) + page - 1) & ~(page - 1)};
}

/* Calls `change` for each entry of the dynamic section.  False if the system refuses to make it
 * writable. */
static bool change_dynamic(const struct exti_loaded *lib, const struct exti_layout *layout,
                           void (*change)(const struct exti_loaded *lib, ElfW(Dyn) * d))
{
    const struct exti_layout fixed = fixed_pages(lib, layout);
    void *const pages = (void *)fixed.lo;
    const size_t size = fixed.hi - fixed.lo;

    if (size && mprotect(pages, size, PROT_READ | PROT_WRITE))
        return false;
    for (ElfW(Dyn) *d = (ElfW(Dyn) *)lib->dynamic; d->d_tag != DT_NULL; d++)
        change(lib, d);
    if (size)
        mprotect(pages, size, PROT_READ);
    return true;
}

/* ---- constructors ---- */

/* Threads of other contexts read the dynamic sections of all libraries at any time, but look at no
 * value of these tags. */
#define READ_MEANWHILE __attribute__((no_sanitize("thread")))

READ_MEANWHILE static void take_entry(const struct exti_loaded *lib, ElfW(Dyn) * d)
{
    (void)lib;
    if (d->d_tag == EXTI_DT_INIT || d->d_tag == EXTI_DT_INIT_ARRAY)
        d->d_un.d_ptr = 0;
}

void exti__constructors_take(const struct exti_loaded *lib, const struct exti_layout *layout,
                             struct exti_constructors *out)
{
    const ElfW(Addr) first = tag_value(lib, EXTI_DT_INIT);
    const ElfW(Addr) array = tag_value(lib, EXTI_DT_INIT_ARRAY);

    *out = (struct exti_constructors){0};
    if (first)
        out->first = lib->base + first;
    if (array) {
        out->list = (const uintptr_t *)(lib->base + array);
        out->count = tag_value(lib, DT_INIT_ARRAYSZ) / sizeof *out->list;
    }
    if (first || array)
        change_dynamic(lib, layout, take_entry);
}

/* An address as the function there. */
static constructor function_at(uintptr_t address)
{
    union {
        uintptr_t address;
        constructor function;
    } u = {address};

    return u.function;
}

void exti__constructors_run(const struct exti_constructors *c)
{
    if (c->first)
        function_at(c->first)(process_argc, process_argv, environ);
    for (size_t i = 0; i < c->count; i++)
        function_at(c->list[i])(process_argc, process_argv, environ);
}

/* ---- destructors ---- */

static void do_nothing(void)
{
}

/* glibc has kept pointers to these entries, and reads their values when it unloads (elf/dl-close.c,
 * _dl_call_fini). */
READ_MEANWHILE static void drop_entry(const struct exti_loaded *lib, ElfW(Dyn) * d)
{
    if (d->d_tag == DT_FINI_ARRAYSZ)
        d->d_un.d_val = 0;
    else if (d->d_tag == DT_FINI)
        d->d_un.d_ptr = (uintptr_t)do_nothing - lib->base;
}

bool exti__destructors_drop(const struct exti_loaded *lib, const struct exti_layout *layout)
{
    return (!tag_value(lib, DT_FINI_ARRAYSZ) && !tag_value(lib, DT_FINI)) ||
           change_dynamic(lib, layout, drop_entry);
}
