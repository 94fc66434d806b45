#include "loader/load/reference_target.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/load/interposed.h"
#include "loader/process/dl.h"
#include "loader/process/linkmap_path.h"
#include "loader/process/tls_reference.h"
#include "loader/store/store_queries.h"
#include "loader/track/address_map.h"

static uintptr_t target_start(const void *item)
{
    return ((const struct exti_ref_target *)item)->layout.lo;
}

static size_t count_targets_up_to(const struct exti_ref_targets *o, uintptr_t address)
{
    return exti__count_up_to(o->list, o->count, sizeof *o->list, target_start, address);
}

struct copy_search {
    const struct exti_ctx *ctx;
    struct exti_module *out;
};

static void find_copy(void *user, const char *source)
{
    const struct copy_search *s = user;

    if (!exti__address_map_find_copy(s->ctx, source, s->out))
        s->out->ctx = NULL;
}

/* A file that is no context's. */
static void classify_file(struct exti_ref_target *w, struct exti_ctx *ctx)
{
    struct copy_search search = {ctx, &w->copy};
    char path[EXTI_PATH_MAX];

    exti__loaded_path(&w->lib, path, sizeof path);
    switch (exti__store_relation(&ctx->store, path, exti__loaded_id(&w->lib), find_copy, &search)) {
    case EXTI_SOURCE_SAME:
        w->kind = EXTI_TARGET_ORIGINAL;
        break;
    case EXTI_SOURCE_NAMESAKE:
        w->kind = EXTI_TARGET_NAMESAKE;
        break;
    default:
        break;
    }
}

static void classify_target(struct exti_ref_target *w, struct exti_ctx *ctx)
{
    struct exti_module m;

    if (exti__address_map_find(w->lib.inside, &m))
        w->kind = m.ctx == ctx ? EXTI_TARGET_CONTEXT : EXTI_TARGET_FOREIGN;
    else
        classify_file(w, ctx);
}

static int add_target(struct exti_ref_targets *o, const struct exti_ref_target *w,
                      const struct exti_ref_target **out, struct exti_error *err)
{
    struct exti_ref_target *p = exti__array_room(o->list, o->count, &o->cap, sizeof *p);
    size_t at;

    if (!p)
        return exti__fail_nomem(err);
    o->list = p;
    at = count_targets_up_to(o, w->layout.lo);
    memmove(&o->list[at + 1], &o->list[at], (o->count - at) * sizeof *w);
    o->list[at] = *w;
    o->count++;
    *out = &o->list[at];
    return 0;
}

/* Whether the slot holds what the loader has put there.  Only a variable may have changed, and only
 * for some targets does it matter. */
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
    at = count_targets_up_to(o, address);
    if (at && address < o->list[at - 1].layout.hi) {
        found = &o->list[at - 1];
    } else if (exti__loaded_at(address, &w.lib, &w.layout)) {
        classify_target(&w, o->ctx);
        rc = add_target(o, &w, &found, err);
    }
    if (found && is_bound(found, ref))
        *out = found;
    return rc;
}

static bool needs_library(const struct exti_loaded *lib, const char *copy)
{
    const char *name;

    for (size_t i = 0; (name = exti__loaded_needed(lib, i)); i++)
        if (strcmp(exti__base_name(name), copy) == 0)
            return true;
    return false;
}

static void set_address(struct exti_ref_cure *out, const struct exti_reference *ref, uintptr_t to)
{
    *out = (struct exti_ref_cure){{to + ref->addend}, to != 0};
}

static int lead_into(const struct exti_loaded *to, const struct exti_reference *ref,
                     struct exti_ref_cure *out, struct exti_error *err)
{
    return exti__tls_counterpart(ref, to, out->words, &out->count, err);
}

/* Whether the context has a copy of the target for `lib`.  A library that does not need the copy by
 * name may mean the namesake itself. */
static bool has_copy_for(const struct exti_ref_target *w, const struct exti_loaded *lib)
{
    return w->copy.ctx && (w->kind != EXTI_TARGET_NAMESAKE || lib->base == w->copy.lib.base ||
                           needs_library(lib, exti__base_name(w->copy.lib.path)));
}

int exti__ref_target_counterpart(const struct exti_ref_target *w, const struct exti_loaded *lib,
                                 const struct exti_reference *ref, struct exti_ref_cure *out,
                                 struct exti_error *err)
{
    *out = (struct exti_ref_cure){0};
    if (!has_copy_for(w, lib))
        return 0;
    if (ref->kind != EXTI_REF_ADDRESS)
        return lead_into(&w->copy.lib, ref, out, err);
    set_address(
        out, ref,
        exti__loaded_counterpart(&w->lib, &w->copy.lib, ref->name, *ref->slot - ref->addend));
    return 0;
}

void *exti__ref_target_variable(struct exti_ref_targets *o, const struct exti_loaded *lib,
                                const char *name, void *variable)
{
    const struct exti_ref_target *w = NULL;
    uintptr_t owner = 0;
    const struct exti_reference ref = {.name = name, .slot = &owner};
    void *own;

    if (exti__tls_owner(name, variable, &owner, NULL) || !owner ||
        exti__ref_target_find(o, &ref, &w, NULL) || !w || !has_copy_for(w, lib))
        return variable;
    own = exti__dl_symbol(w->copy.handle, name);
    return own ? own : variable;
}

/* The module of the context that `lib` would get the thread-local variable from. */
static int find_own_tls(const struct exti_ctx *ctx, const struct exti_loaded *lib,
                        const struct exti_reference *ref, struct exti_ref_cure *out,
                        struct exti_error *err)
{
    struct exti_module m;
    uintptr_t owner;
    int rc = exti__tls_owner(ref->name, exti__dl_symbol(lib->handle, ref->name), &owner, err);

    if (rc || !owner || !exti__address_map_find(owner, &m) || m.ctx != ctx)
        return rc;
    return lead_into(&m.lib, ref, out, err);
}

/* ld.so looks into the program before the files that `lib` needs; dlsym on the handle of `lib`
 * looks into those alone.  On Windows `path` is NULL and an import names its file, so nothing is
 * done. */
int exti__ref_target_own(const struct exti_ref_target *w, const struct exti_ctx *ctx,
                         const struct exti_loaded *lib, const struct exti_reference *ref,
                         struct exti_ref_cure *out, struct exti_error *err)
{
    struct exti_module m;
    uintptr_t own;

    *out = (struct exti_ref_cure){0};
    if (!w->lib.path || *w->lib.path || ref->defined_here)
        return 0;
    if (ref->kind != EXTI_REF_ADDRESS)
        return find_own_tls(ctx, lib, ref, out, err);
    if (exti__is_allocation_function(ref->name) ||
        !exti__loaded_has(&w->lib, ref->name, *ref->slot - ref->addend))
        return 0;
    own = (uintptr_t)exti__dl_symbol(lib->handle, ref->name);
    if (exti__address_map_find(own, &m) && m.ctx == ctx)
        set_address(out, ref, own);
    return 0;
}

void exti__ref_targets_free(struct exti_ref_targets *o)
{
    exti__free(o->list);
    *o = (struct exti_ref_targets){0};
}
