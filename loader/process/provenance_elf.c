#define _GNU_SOURCE /* dlvsym */
#include "loader/process/provenance.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/process/dl.h"
#include "loader/process/guarded_dl.h"
#include "loader/process/tls_reference.h"

/* ---- symbols ---- */

/* The version by which the library needs the symbol, or NULL (LSB, "Symbol Versioning"). */
static const char *needed_version(const struct exti_loaded *lib, const void *symbol)
{
    const ElfW(Half) *versions = lib->symbol_versions;
    const ElfW(Verneed) *file = lib->needed_versions;
    unsigned index;

    if (!versions || !file || !symbol)
        return NULL;
    index = versions[(const ElfW(Sym) *)symbol - (const ElfW(Sym) *)lib->symbols] & 0x7fffu;
    for (; file; file = file->vn_next ? (const void *)((const char *)file + file->vn_next) : NULL) {
        const ElfW(Vernaux) *v = (const void *)((const char *)file + file->vn_aux);

        for (unsigned n = file->vn_cnt; n--; v = (const void *)((const char *)v + v->vna_next))
            if (index > VER_NDX_GLOBAL && (v->vna_other & 0x7fffu) == index)
                return lib->strings + v->vna_name;
    }
    return NULL;
}

/* dlsym on a handle looks into the library, then into what it needs, breadth first, and nowhere
 * else.  musl knows no versions. */
static void *versioned_symbol(void *handle, const char *name, const char *version)
{
#if defined(__GLIBC__)
    if (version)
        return exti__dlvsym(handle, name, version);
#else
    (void)version;
#endif
    return exti__dlsym(handle, name);
}

/* dlsym gives the newest version, the relocation of a file without versions gets the oldest. */
static uintptr_t unversioned_address(const struct exti_loaded *owner, const char *name,
                                     uintptr_t newest)
{
#if defined(__GLIBC__)
    const uintptr_t oldest = exti__loaded_oldest(owner, name);

    return oldest ? oldest : newest;
#else
    (void)owner;
    (void)name;
    return newest;
#endif
}

/* What the library itself defines has a version of its own. */
static bool has_own_address(const struct exti_reference *ref)
{
    const ElfW(Sym) *s = ref->symbol;

    return ref->defined_here && ref->kind == EXTI_REF_ADDRESS &&
           ELF64_ST_TYPE(s->st_info) != STT_GNU_IFUNC;
}

/* Whether the library binds to its own symbols first.  musl never does that. */
static bool is_symbolic(const struct exti_loaded *lib)
{
#if defined(__GLIBC__)
    for (const ElfW(Dyn) *d = lib->dynamic; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_SYMBOLIC || (d->d_tag == DT_FLAGS && d->d_un.d_val & DF_SYMBOLIC))
            return true;
#else
    (void)lib;
#endif
    return false;
}

/* Whether the library itself uses another's symbol of that name, if that comes first. */
static bool leaves_to_others(const struct exti_loaded *lib, const char *name)
{
    const int binding = exti__loaded_binding(lib, name);

    return binding == STB_GNU_UNIQUE || (binding == STB_WEAK && !is_symbolic(lib));
}

int exti__reference_meant(const struct exti_loaded *lib, const struct exti_reference *ref,
                          struct exti_loaded *owner, uintptr_t *address, struct exti_error *err)
{
    const char *version = ref->defined_here ? NULL : needed_version(lib, ref->symbol);
    struct exti_layout layout;
    uintptr_t found;
    int rc = 0;

    *address = 0;
    if (has_own_address(ref))
        found = lib->base + ((const ElfW(Sym) *)ref->symbol)->st_value;
    else
        found = (uintptr_t)versioned_symbol(lib->handle, ref->name, version);
    if (found && ref->kind != EXTI_REF_ADDRESS)
        rc = exti__tls_owner(ref->name, (const void *)found, &found, err);
    if (rc || !found || !exti__loaded_at(found, owner, &layout) ||
        leaves_to_others(owner, ref->name))
        return rc;
    *address = version || ref->defined_here || ref->kind != EXTI_REF_ADDRESS
                   ? found
                   : unversioned_address(owner, ref->name, found);
    return 0;
}

/* ---- libraries ---- */

/* Libraries that were reached, each once; from `next` on, what they need is to be looked at. */
struct reached {
    struct exti_loaded *list; /* owned */
    size_t count, cap, next;
};

static int add_reached(struct reached *r, const struct exti_loaded *lib, struct exti_error *err)
{
    struct exti_loaded *list;

    for (size_t i = 0; i < r->count; i++)
        if (r->list[i].dynamic == lib->dynamic)
            return 0;
    list = exti__array_room(r->list, r->count, &r->cap, sizeof *list);
    if (!list)
        return exti__fail_nomem(err);
    r->list = list;
    r->list[r->count++] = *lib;
    return 0;
}

/* What is needed stays open by itself. */
static int add_needed(struct reached *r, const char *name, struct exti_error *err)
{
    void *handle = exti__dl_find(name);
    struct exti_loaded lib;
    int rc = 0;

    if (!handle)
        return 0; /* ld.so itself, or only found along the search path of who needs it */
    if (!exti__loaded_from_handle(handle, &lib, NULL))
        rc = add_reached(r, &lib, err);
    exti__dl_close(handle, NULL);
    return rc;
}

/* By a path only that file is needed, which is looked at when it is reached. */
static bool names_directly(const struct exti_loaded *lib, const struct exti_loaded *other)
{
    const char *id = exti__loaded_id(other), *name;

    for (size_t i = 0; (name = exti__loaded_needed(lib, i)); i++)
        if (!strchr(name, '/') && strcmp(name, id ? id : exti__base_name(other->path)) == 0)
            return true;
    return false;
}

int exti__loaded_reaches(const struct exti_loaded *lib, const struct exti_loaded *other, bool *out,
                         struct exti_error *err)
{
    struct reached r = {0};
    const char *name;
    bool found = names_directly(lib, other);
    int rc = found ? 0 : add_reached(&r, lib, err);

    for (; !rc && !found && r.next < r.count; r.next++) {
        const struct exti_loaded at = r.list[r.next];

        found = at.dynamic == other->dynamic || names_directly(&at, other);
        for (size_t i = 0; !rc && !found && (name = exti__loaded_needed(&at, i)); i++)
            rc = add_needed(&r, name, err);
    }
    exti__free(r.list);
    if (!rc)
        *out = found;
    return rc;
}
