/* Does what glibc does in elf/dl-init.c, call_init. */
#include "loader/process/constructors.h"

#include <link.h>

#include "elf/elf_format.h"
#include "loader/process/dynamic_elf.h"

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

/* ---- constructors ---- */

EXTI_READ_MEANWHILE static void take_entry(const struct exti_loaded *lib, ElfW(Dyn) * d)
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
        exti__dynamic_change(lib, layout, take_entry);
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
EXTI_READ_MEANWHILE static void drop_entry(const struct exti_loaded *lib, ElfW(Dyn) * d)
{
    if (d->d_tag == DT_FINI_ARRAYSZ)
        d->d_un.d_val = 0;
    else if (d->d_tag == DT_FINI)
        d->d_un.d_ptr = (uintptr_t)do_nothing - lib->base;
}

bool exti__destructors_drop(const struct exti_loaded *lib, const struct exti_layout *layout)
{
    return (!tag_value(lib, DT_FINI_ARRAYSZ) && !tag_value(lib, DT_FINI)) ||
           exti__dynamic_change(lib, layout, drop_entry);
}
