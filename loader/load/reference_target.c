#include "loader/load/reference_target.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/image/symbol_names.h"
#include "loader/process/dl.h"
#include "loader/process/linkmap_path.h"
#include "loader/process/program.h"
#include "loader/process/provenance.h"
#include "loader/process/tls_reference.h"
#include "loader/resolve/policy.h"
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
                      struct exti_ref_target **out, struct exti_error *err)
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
    const uintptr_t address = exti__slot_value(ref) - ref->addend;

    return w->kind == EXTI_TARGET_SHARED || w->kind == EXTI_TARGET_CONTEXT || !ref->in_data ||
           exti__loaded_has(&w->lib, ref->name, address) ||
           exti__address_is_symbol(address, ref->name);
}

int exti__ref_target_find(struct exti_ref_targets *o, const struct exti_reference *ref,
                          struct exti_ref_target **out, struct exti_error *err)
{
    struct exti_ref_target w = {.kind = EXTI_TARGET_SHARED};
    struct exti_ref_target *found = NULL;
    uintptr_t address = exti__slot_value(ref) - ref->addend;
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
    set_address(out, ref,
                exti__loaded_counterpart(&w->lib, &w->copy.lib, ref->name,
                                         exti__slot_value(ref) - ref->addend));
    return 0;
}

void *exti__ref_target_variable(struct exti_ref_targets *o, const struct exti_loaded *lib,
                                const char *name, void *variable)
{
    struct exti_ref_target *w = NULL;
    uintptr_t owner = 0;
    const struct exti_reference ref = {.name = name, .slot = &owner};
    void *own;

    if (exti__tls_owner(name, variable, &owner, NULL) || !owner ||
        exti__ref_target_find(o, &ref, &w, NULL) || !w || !has_copy_for(w, lib))
        return variable;
    own = exti__dl_symbol(w->copy.handle, name);
    return own ? own : variable;
}

/* ---- what a captured reference means ---- */

static bool is_runtime(const struct exti_loaded *lib)
{
    return exti__policy_is_runtime(EXTI_FORMAT_ELF, exti__loaded_id(lib), lib->path);
}

/* Whether the program or the library `w` may take for itself what `lib` means for others.  On
 * Windows libraries have no path here. */
static int may_capture(struct exti_ref_target *w, const struct exti_loaded *lib, bool *out,
                       struct exti_error *err)
{
    const bool is_program = w->lib.path && !*w->lib.path;
    int rc = 0;

    *out = is_program;
    if (!w->lib.path || is_program)
        return 0;
    if (!w->judged)
        w->for_all = is_runtime(&w->lib) || exti__is_preloaded(&w->lib);
    w->judged = true;
    if (w->for_all)
        return 0;
    if (w->asker != lib->path) {
        rc = exti__loaded_reaches(lib, &w->lib, &w->needed, err);
        w->asker = rc ? NULL : lib->path;
    }
    *out = !w->needed;
    return rc;
}

/* Whether the slot leads to what `w` has by the reference's name: its definition, what that chooses
 * (STT_GNU_IFUNC), or the PLT entry by which a program at a fixed address knows another's function.
 * A symbol that `lib` defines itself, and that is weak or unique, C++ means to be shared. */
static bool is_had_by(const struct exti_ref_target *w, const struct exti_reference *ref)
{
    if ((ref->defined_here && (ref->weak || ref->unique)) ||
        exti__is_allocation_function(ref->name))
        return false;
    return ref->kind != EXTI_REF_ADDRESS ||
           exti__loaded_has(&w->lib, ref->name, exti__slot_value(ref) - ref->addend) ||
           exti__address_is_symbol(exti__slot_value(ref) - ref->addend, ref->name);
}

/* Whether a symbol that `w` has is nevertheless that of the shared library which defines it: a
 * variable that the program has copied, or a function that it only calls. */
static bool is_librarys_own(const struct exti_ref_target *w, const struct exti_reference *ref)
{
    return !exti__loaded_defines(&w->lib, ref->name) ||
           (ref->kind == EXTI_REF_ADDRESS && !*w->lib.path &&
            exti__program_has_copied(&w->lib, exti__slot_value(ref) - ref->addend));
}

int exti__ref_target_meant(struct exti_ref_target *w, const struct exti_ctx *ctx,
                           const struct exti_loaded *lib, const struct exti_reference *ref,
                           struct exti_ref_meant *out, struct exti_error *err)
{
    struct exti_module m;
    uintptr_t own = 0;
    bool may;
    int rc = may_capture(w, lib, &may, err);

    *out = (struct exti_ref_meant){0};
    if (!rc && may && is_had_by(w, ref))
        rc = exti__reference_meant(lib, ref, &out->lib, &own, err);
    if (rc || !own || out->lib.base == w->lib.base)
        return rc;
    if (!exti__address_map_find(own, &m)) {
        out->captured = !is_runtime(&out->lib) && !is_librarys_own(w, ref);
        return 0;
    }
    out->own = out->captured = m.ctx == ctx;
    if (out->captured && ref->kind == EXTI_REF_ADDRESS)
        set_address(&out->cure, ref, own);
    else if (out->captured)
        rc = lead_into(&m.lib, ref, &out->cure, err);
    return rc;
}

void exti__ref_targets_free(struct exti_ref_targets *o)
{
    exti__free(o->list);
    *o = (struct exti_ref_targets){0};
}
