#include "loader/load/reference_target.h"

#include <string.h>

#include "base/mem.h"
#include "base/os/path.h"
#include "loader/load/interposed.h"
#include "loader/process/dl.h"

/* How many of the list begin at or below `address`. */
static size_t position(const struct exti_ref_targets *o, uintptr_t address)
{
    size_t lo = 0, hi = o->count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (o->list[mid].layout.lo <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool same_file(const struct exti_file_id *a, const struct exti_file_id *b)
{
    return a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns;
}

/* How the file `path`, of which `id` is NULL if it is gone, is related to the copy's source.  By other
 * paths than the source's it is known by what it is. */
static enum exti_ref_target_kind relation(const struct exti_entry *e, const char *path,
                                          const struct exti_file_id *id, const char *soname)
{
    if (!e->source)
        return EXTI_TARGET_SHARED;
    if (id ? same_file(&e->id, id) : strcmp(e->source, path) == 0)
        return EXTI_TARGET_ORIGINAL;
    return soname && e->source_name && strcmp(e->source_name, soname) == 0 ? EXTI_TARGET_NAMESAKE
                                                                           : EXTI_TARGET_SHARED;
}

/* Looks among the sources of the context's copies. */
static void compare_sources(struct exti_ref_target *w, struct exti_ctx *ctx)
{
    const struct exti_manifest *m = &ctx->store.manifest;
    const char *soname = exti__loaded_id(&w->lib);
    const struct exti_entry *found = NULL;
    struct exti_file_id id;
    char path[EXTI_PATH_MAX];
    bool there;

    exti__loaded_path(&w->lib, path, sizeof path);
    there = !exti__fs_id(path, &id, NULL);
    pthread_mutex_lock(&ctx->store.lock);
    for (size_t i = 0; i <= m->count && w->kind != EXTI_TARGET_ORIGINAL; i++) {
        const struct exti_entry *e = i < m->count ? &m->entries[i] : &m->api;
        enum exti_ref_target_kind kind = relation(e, path, there ? &id : NULL, soname);

        if (kind == EXTI_TARGET_SHARED)
            continue;
        w->kind = kind;
        found = e;
    }
    if (found && !exti__address_map_find_copy(ctx, found->source, &w->copy))
        w->copy.ctx = NULL;
    pthread_mutex_unlock(&ctx->store.lock);
}

static void classify(struct exti_ref_target *w, struct exti_ctx *ctx)
{
    struct exti_module m;

    if (exti__address_map_find(w->lib.inside, &m))
        w->kind = m.ctx == ctx ? EXTI_TARGET_CONTEXT : EXTI_TARGET_FOREIGN;
    else
        compare_sources(w, ctx);
}

static int add_owner(struct exti_ref_targets *o, const struct exti_ref_target *w,
                     const struct exti_ref_target **out, struct exti_error *err)
{
    const size_t at = position(o, w->layout.lo);

    if (o->count == o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 16;
        struct exti_ref_target *p = exti__realloc_array(o->list, cap, sizeof *p);

        if (!p)
            return exti__fail_nomem(err);
        o->list = p;
        o->cap = cap;
    }
    memmove(&o->list[at + 1], &o->list[at], (o->count - at) * sizeof *w);
    o->list[at] = *w;
    o->count++;
    *out = &o->list[at];
    return 0;
}

/* Whether a variable still holds what the loader has put there, if that matters. */
static bool is_bound(const struct exti_ref_target *w, const struct exti_reference *ref)
{
    const uintptr_t address = *ref->slot - ref->addend;

    return w->kind == EXTI_TARGET_SHARED || w->kind == EXTI_TARGET_CONTEXT || !ref->in_data ||
           exti__loaded_has(&w->lib, ref->name, address) ||
           exti__address_is_symbol(address, ref->name);
}

int exti__ref_target_find(struct exti_ref_targets *o, const struct exti_reference *ref,
                          const struct exti_ref_target **out, struct exti_error *err)
{
    struct exti_ref_target w = {.kind = EXTI_TARGET_SHARED};
    const struct exti_ref_target *found = NULL;
    uintptr_t address = *ref->slot - ref->addend;
    size_t at;
    int rc = 0;

    *out = NULL;
    if (ref->kind != EXTI_REF_ADDRESS)
        rc = exti__tls_target(ref, &address, err);
    if (rc || !address)
        return rc;
    at = position(o, address);
    if (at && address < o->list[at - 1].layout.hi) {
        found = &o->list[at - 1];
    } else if (exti__loaded_at(address, &w.lib, &w.layout)) {
        classify(&w, o->ctx);
        rc = add_owner(o, &w, &found, err);
    }
    if (found && is_bound(found, ref))
        *out = found;
    return rc;
}

static bool needs(const struct exti_loaded *lib, const char *copy)
{
    const char *name;

    for (size_t i = 0; (name = exti__loaded_needed(lib, i)); i++)
        if (strcmp(exti__base_name(name), copy) == 0)
            return true;
    return false;
}

/* Whoever names an original's namesake may mean that, and not what the context has a copy of. */
uintptr_t exti__ref_target_counterpart(const struct exti_ref_target *w,
                                       const struct exti_loaded *lib,
                                       const struct exti_reference *ref)
{
    if (!w->copy.ctx || ref->kind != EXTI_REF_ADDRESS ||
        (w->kind == EXTI_TARGET_NAMESAKE && lib->base != w->copy.lib.base &&
         !needs(lib, exti__base_name(w->copy.lib.path))))
        return 0;
    return exti__loaded_counterpart(&w->lib, &w->copy.lib, ref->name, *ref->slot - ref->addend);
}

/* ld.so looks into the program before the files that `lib` names, which a look-up by handle goes through.
 * Windows does not: there an import names its file. */
uintptr_t exti__ref_target_own(const struct exti_ref_target *w, const struct exti_ctx *ctx,
                               const struct exti_loaded *lib, const struct exti_reference *ref)
{
    struct exti_module m;
    uintptr_t own;

    if (!w->lib.path || *w->lib.path || ref->kind != EXTI_REF_ADDRESS || ref->defined_here ||
        exti__is_allocation_function(ref->name) ||
        !exti__loaded_has(&w->lib, ref->name, *ref->slot - ref->addend))
        return 0;
    own = (uintptr_t)exti__dl_symbol(lib->handle, ref->name);
    return exti__address_map_find(own, &m) && m.ctx == ctx ? own : 0;
}

void exti__ref_targets_free(struct exti_ref_targets *o)
{
    exti__free(o->list);
    *o = (struct exti_ref_targets){0};
}
