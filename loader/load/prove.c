/* Follows the references that the system's loader has bound. */
#include "loader/load/prove.h"

#include <search.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/load/patch_slots.h"
#include "loader/load/reference_target.h"
#include "loader/process/dl.h"
#include "loader/process/linkmap_path.h"
#include "loader/process/tls_reference.h"
#include "loader/store/store_queries.h"
#include "loader/track/address_map.h"

struct prover {
    struct exti_ctx *ctx;
    const struct exti_loaded *api;
    struct exti_layout api_layout;
    const struct exti_loaded *lib; /* whose references are being followed */
    bool is_copy;                  /* of this context */
    uintptr_t *slot;               /* of the reference that is being followed */
    struct exti_layout layout;     /* of a copy */
    struct exti_ref_targets targets;
    bool cure;               /* re-point references that a copy of the context can serve */
    struct exti_slot *cures; /* owned; slots of `lib` to re-point */
    size_t cure_count, cure_cap;
    bool afresh; /* follow shared libraries that an earlier proof found sound, too */
    void *seen;  /* names of the shared libraries that this proof follows: tsearch(3) */
    struct exti_proof proof;
    exti_report_fn report;
    void *user;
    bool tell_captured;         /* to `report` */
    struct exti_error captured; /* the first reference that is */
    bool stopped;               /* by `report`, or by a failure */
    int rc;                     /* of a failure, not of a leak */
    struct exti_error *err;
};

static bool in_context(const struct prover *p, uintptr_t address)
{
    struct exti_module m;

    /* A reference may point right behind an object, and so behind the file's last byte. */
    return (exti__address_map_find(address, &m) && m.ctx == p->ctx) ||
           (exti__address_map_find(address - 1, &m) && m.ctx == p->ctx);
}

/* Whether the reference must lead into the context: to an API symbol, or to a symbol that ld.so
 * would otherwise make unique in the process.  A shared library still names the API by its public
 * symbols. */
static bool must_stay_inside(const struct prover *p, const struct exti_reference *ref)
{
    if (p->is_copy && ref->unique)
        return true;
    return exti__loaded_defines(p->api, ref->name) ||
           (!p->is_copy && exti__store_private_symbol(&p->ctx->store, ref->name));
}

static bool stays_inside(const struct prover *p, const struct exti_reference *ref)
{
    uintptr_t value = exti__slot_value(ref) - ref->addend;
    void *address;

    switch (ref->kind) {
    case EXTI_REF_TLS_MODULE:
        return value == exti__loaded_tls_module(p->lib) || value == exti__loaded_tls_module(p->api);
    case EXTI_REF_TLS_OFFSET:
    case EXTI_REF_TLS_DESCRIPTOR:
        address = exti__tls_variable(ref);
        return address == exti__dl_symbol(p->lib->handle, ref->name) ||
               address == exti__dl_symbol(p->api->handle, ref->name);
    default:
        /* The program may have stored something else in the variable since. */
        return in_context(p, value) || (ref->in_data && !exti__address_is_symbol(value, ref->name));
    }
}

/* Names what has captured a reference, in a message.  `target` may be NULL. */
static void name_capturer(const struct exti_reference *ref, const struct exti_ref_target *target,
                          char *out, size_t cap)
{
    out[0] = 0;
    if (target) {
        exti__loaded_path(&target->lib, out, cap);
        if (!out[0])
            snprintf(out, cap, "the program");
        return;
    }
    if (ref->kind == EXTI_REF_ADDRESS)
        exti__address_file(exti__slot_value(ref) - ref->addend, out, cap);
    if (!out[0])
        snprintf(out, cap, "%s",
                 ref->kind == EXTI_REF_ADDRESS ? "memory that belongs to no library"
                                               : "another module's thread-local storage");
}

/* `target`: where the reference leads, or NULL if it was judged by its symbol alone. */
static int report_leak(struct prover *p, const struct exti_reference *ref,
                       const struct exti_ref_target *target)
{
    const char *symbol = exti__store_original_symbol(&p->ctx->store, ref->name);
    struct exti_error finding;
    char capturer[256], file[EXTI_PATH_MAX];

    name_capturer(ref, target, capturer, sizeof capturer);
    exti__loaded_path(p->api, file, sizeof file);
    /* The loader tells files apart by inode, so what the module needs was loaded by its new one. */
    if (strcmp(file, capturer) == 0)
        exti__fail(
            &finding, EXTI_E_INTERPOSED, EXTI_NO_OFFSET,
            "its reference to %.128s leads into %s, which another process has made again since "
            "this context loaded it; close the context and open it again",
            symbol, capturer);
    else if (target && ref->kind != EXTI_REF_ADDRESS)
        exti__fail(&finding, EXTI_E_INTERPOSED, EXTI_NO_OFFSET,
                   "its %sreference to the thread-local variable %.64s was captured by %.128s and "
                   "cannot be re-pointed; add a rule that shares that library",
                   ref->kind == EXTI_REF_TLS_OFFSET ? "initial-exec " : "", symbol, capturer);
    else
        exti__fail(&finding, EXTI_E_INTERPOSED, EXTI_NO_OFFSET,
                   "its reference to %.128s was captured by %s instead of the context '%s'", symbol,
                   capturer, exti__ctx_name(p->ctx));
    exti__loaded_path(p->lib, file, sizeof file);
    exti__error_file(&finding, file);
    p->proof.leaks++;
    p->stopped = p->report(p->user, &finding) != 0;
    return p->stopped;
}

static int stop_proof(struct prover *p, int rc)
{
    p->rc = rc;
    p->stopped = true;
    return 1;
}

static int add_cure(struct prover *p, const struct exti_ref_cure *cure)
{
    struct exti_slot *list;

    for (size_t i = 0; i < cure->count; i++) {
        list = exti__array_room(p->cures, p->cure_count, &p->cure_cap, sizeof *list);
        if (!list)
            return stop_proof(p, exti__fail_nomem(p->err));
        p->cures = list;
        p->cures[p->cure_count++] = (struct exti_slot){p->slot + i, cure->words[i]};
    }
    return 0;
}

/* Whether a copy's reference obviously leads into that copy, maybe right behind an object at its
 * end, or into the API's copy, as most do. */
static bool stays_in_copies(const struct prover *p, const struct exti_reference *ref)
{
    const uintptr_t value = exti__slot_value(ref) - ref->addend;

    if (ref->kind == EXTI_REF_ADDRESS)
        return (value >= p->layout.lo && value <= p->layout.hi) ||
               (value >= p->api_layout.lo && value < p->api_layout.hi);
    return ref->kind == EXTI_REF_TLS_MODULE && value == exti__loaded_tls_module(p->lib);
}

static int report_captured(struct prover *p, const struct exti_reference *ref,
                           const struct exti_ref_target *target, const struct exti_loaded *meant)
{
    char capturer[256], file[EXTI_PATH_MAX];
    struct exti_error finding;

    name_capturer(ref, target, capturer, sizeof capturer);
    exti__loaded_path(meant, file, sizeof file);
    exti__fail(&finding, EXTI_E_CAPTURED, EXTI_NO_OFFSET,
               "its reference to %.128s leads to %s's symbol of that name, not to that of %s",
               exti__store_original_symbol(&p->ctx->store, ref->name), capturer,
               exti__base_name(file));
    exti__loaded_path(p->lib, file, sizeof file);
    exti__error_file(&finding, file);
    if (!p->proof.captured++)
        p->captured = finding;
    p->stopped = p->tell_captured && p->report(p->user, &finding) != 0;
    return p->stopped;
}

/* A reference that leads to what the process shares. */
static int follow_shared(struct prover *p, const struct exti_reference *ref,
                         struct exti_ref_target *target)
{
    struct exti_ref_meant meant;
    int rc = exti__ref_target_meant(target, p->ctx, p->lib, ref, &meant, p->err);

    if (rc)
        return stop_proof(p, rc);
    if (!meant.captured)
        return 0;
    p->proof.references++;
    if (meant.cure.count && p->cure)
        return add_cure(p, &meant.cure);
    if (meant.own)
        return report_leak(p, ref, target);
    return report_captured(p, ref, target, &meant.lib);
}

/* Judges a copy's other references by where they lead.  Their symbols tell nothing: a shared
 * library may be bound to although it defines what the copy defines too, C++ templates above
 * all. */
static int follow_by_target(struct prover *p, const struct exti_reference *ref)
{
    struct exti_ref_target *target;
    struct exti_ref_cure cure = {0};
    int rc;

    rc = exti__ref_target_find(&p->targets, ref, &target, p->err);
    if (rc)
        return stop_proof(p, rc);
    if (!target)
        return 0;
    if (target->kind == EXTI_TARGET_SHARED)
        return follow_shared(p, ref, target);
    p->proof.references++;
    if (target->kind == EXTI_TARGET_CONTEXT ||
        (ref->kind == EXTI_REF_ADDRESS && in_context(p, exti__slot_value(ref) - ref->addend)))
        return 0;
    rc = exti__ref_target_counterpart(target, p->lib, ref, &cure, p->err);
    if (rc)
        return stop_proof(p, rc);
    if (cure.count && p->cure)
        return add_cure(p, &cure);
    return target->kind == EXTI_TARGET_NAMESAKE ? 0 : report_leak(p, ref, target);
}

static bool is_unbound(const struct exti_reference *ref)
{
    if (ref->system || !ref->weak)
        return ref->system;
    return ref->kind == EXTI_REF_TLS_DESCRIPTOR ? !exti__tls_variable(ref) : !exti__slot_value(ref);
}

static int follow_reference(void *user, const struct exti_reference *slot_ref)
{
    struct prover *p = user;
    struct exti_reference copy = *slot_ref, *const ref = &copy;
    uintptr_t pair[2];

    p->slot = slot_ref->slot;
    /* A descriptor is called, while another thread that opened the same file may re-point it. */
    if (ref->kind == EXTI_REF_TLS_DESCRIPTOR) {
        pthread_mutex_lock(&p->ctx->lock);
        memcpy(pair, ref->slot, sizeof pair);
        pthread_mutex_unlock(&p->ctx->lock);
        copy.slot = pair;
    }
    if (is_unbound(ref))
        return 0;
    if (p->is_copy && stays_in_copies(p, ref)) {
        p->proof.references++;
        return 0;
    }
    if (!must_stay_inside(p, ref))
        return p->is_copy ? follow_by_target(p, ref) : 0;
    p->proof.references++;
    return stays_inside(p, ref) ? 0 : report_leak(p, ref, NULL);
}

/* Most references of a copy are addresses that lead into that copy, maybe right behind an object
 * at its end, or into the API's copy. */
static int follow_copy(struct prover *p)
{
    struct exti_passed passed = {
        .to = {{p->layout.lo, p->layout.hi + 1}, {p->api_layout.lo, p->api_layout.hi}}};
    int rc = exti__loaded_references(p->lib, &passed, follow_reference, p, p->err);

    p->proof.references += passed.count;
    return rc;
}

/* Follows the references of `lib`: the library of module `m`, or a shared one if `m` is NULL. */
static void prove_library(struct prover *p, const struct exti_loaded *lib,
                          const struct exti_module *m)
{
    int rc;

    p->lib = lib;
    p->is_copy = m != NULL;
    if (m)
        p->layout = m->layout;
    p->cure_count = 0;
    rc = m ? follow_copy(p) : exti__loaded_references(lib, NULL, follow_reference, p, p->err);
    if (rc)
        stop_proof(p, rc);
    if (p->stopped || !p->cure_count)
        return;
    pthread_mutex_lock(&p->ctx->lock);
    rc = exti__write_slots(m, p->cures, p->cure_count, p->err);
    pthread_mutex_unlock(&p->ctx->lock);
    if (rc)
        stop_proof(p, rc);
}

/* Adds the shared library `name` to those that are followed; false if it was followed before. */
static bool add_followed(struct prover *p, const char *name)
{
    bool known = false;
    char *key, **node;

    if (!p->afresh) {
        pthread_mutex_lock(&p->ctx->lock);
        known = tfind(name, &p->ctx->proven, exti__string_order) != NULL;
        pthread_mutex_unlock(&p->ctx->lock);
    }
    if (known || tfind(name, &p->seen, exti__string_order))
        return false;
    key = exti__strdup(name);
    node = key ? tsearch(key, &p->seen, exti__string_order) : NULL;
    if (!node) {
        exti__free(key);
        stop_proof(p, exti__fail_nomem(p->err));
    }
    return node != NULL;
}

static void prove_needed(struct prover *p, const struct exti_loaded *lib);

/* A shared library that uses the API was bound once, to the context that loaded it first. */
static void prove_shared(struct prover *p, const char *name)
{
    struct exti_loaded lib;
    void *handle;

    if (!add_followed(p, name))
        return;
    handle = exti__dl_find(name);
    if (!handle)
        return; /* ld.so, or only found along its dependant's search path */
    if (!exti__loaded_from_handle(handle, &lib, NULL) && !in_context(p, lib.inside)) {
        prove_library(p, &lib, NULL);
        if (!p->stopped)
            prove_needed(p, &lib);
    }
    exti__dl_close(handle, NULL);
}

static void prove_needed(struct prover *p, const struct exti_loaded *lib)
{
    const char *name;

    for (size_t i = 0; !p->stopped && (name = exti__loaded_needed(lib, i)); i++)
        prove_shared(p, name);
}

static void prove_module(struct prover *p, const struct exti_module *m)
{
    p->proof.modules++;
    prove_library(p, &m->lib, m);
    if (!p->stopped)
        prove_needed(p, &m->lib);
}

/* Frees what the proof owns.  Shared libraries that were found sound need not be followed again. */
static void end_proof(struct prover *p, bool sound)
{
    exti__ref_targets_free(&p->targets);
    exti__free(p->cures);
    while (p->seen) {
        char *name = *(char **)p->seen, **node = NULL;

        tdelete(name, &p->seen, exti__string_order);
        if (sound) {
            pthread_mutex_lock(&p->ctx->lock);
            node = tsearch(name, &p->ctx->proven, exti__string_order);
            pthread_mutex_unlock(&p->ctx->lock);
        }
        if (!node || *node != name)
            exti__free(name);
    }
}

static int keep_first_leak(void *user, const struct exti_error *finding)
{
    struct exti_error *first = user;

    *first = *finding;
    return 1;
}

int exti__prove_module(struct exti_module *m, const struct exti_module *api, struct exti_error *err)
{
    struct exti_error leak = {0};
    struct prover p = {
        .ctx = m->ctx, .api = &api->lib, .api_layout = api->layout, .cure = true, .err = err};

    p.targets.ctx = m->ctx;
    p.report = keep_first_leak;
    p.user = &leak;
    prove_module(&p, m);
    end_proof(&p, !p.rc && !leak.code);
    if (p.rc)
        return p.rc;
    if (p.proof.captured)
        exti__ctx_log(m->ctx, EXTI_LOG_WARN,
                      "%s: %zu of its references lead to others' symbols; of the first: %s",
                      m->original, p.proof.captured, p.captured.message);
    if (leak.code && err)
        *err = leak;
    return leak.code;
}

/* The context's modules, oldest first; exti__free it. */
static struct exti_module **list_modules(struct exti_ctx *ctx, size_t *count)
{
    struct exti_module **list;
    size_t n = 0;

    pthread_mutex_lock(&ctx->lock);
    for (struct exti_module *m = ctx->modules; m; m = m->older)
        n++;
    *count = n;
    list = exti__calloc(n, sizeof *list);
    for (struct exti_module *m = ctx->modules; m && list; m = m->older)
        list[--n] = m;
    pthread_mutex_unlock(&ctx->lock);
    return list;
}

static int ignore_leak(void *user, const struct exti_error *finding)
{
    (void)user;
    (void)finding;
    return 0;
}

int exti__prove_context(struct exti_ctx *ctx, const struct exti_module *api,
                        const struct exti_proof_report *report, struct exti_proof *out,
                        struct exti_error *err)
{
    struct prover p = {.ctx = ctx,
                       .api = &api->lib,
                       .api_layout = api->layout,
                       .afresh = true,
                       .user = report->user,
                       .tell_captured = report->captured,
                       .err = err};
    struct exti_module **list;
    size_t count;

    list = list_modules(ctx, &count);
    if (!list)
        return exti__fail_nomem(err);
    p.targets.ctx = ctx;
    p.report = report->each ? report->each : ignore_leak;
    for (size_t i = 0; i < count && !p.stopped; i++)
        prove_module(&p, list[i]);
    exti__free(list);
    end_proof(&p, false);
    if (!p.rc)
        *out = p.proof;
    return p.rc;
}
