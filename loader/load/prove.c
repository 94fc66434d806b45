/* The proof of isolation: follows what ld.so has bound. */
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/opts.h"
#include "loader/load/reference_target.h"
#include "loader/process/dl.h"
#include "loader/track/module.h"

struct prover {
    struct exti_ctx *ctx;
    const struct exti_loaded *api;
    const struct exti_loaded *lib; /* whose references are being followed */
    bool is_copy;                  /* of this context */
    struct exti_layout layout;     /* of a copy */
    struct exti_ref_targets owners;
    bool cure;               /* re-point what a copy of the context has too */
    struct exti_slot *cures; /* owned; of `lib` */
    size_t cure_count, cure_cap;
    bool afresh; /* trust no earlier look at shared libraries */
    void *seen;  /* their names, as they are followed: a tree of tsearch(3) */
    struct exti_proof proof;
    exti_report_fn report;
    void *user;
    bool stopped; /* by `report`, or by a failure */
    int rc;       /* of a failure, not of a leak */
    struct exti_error *err;
};

static bool in_context(const struct prover *p, uintptr_t address)
{
    struct exti_module m;

    /* A reference may point right behind an object, and so behind the file's last byte. */
    return (exti__address_map_find(address, &m) && m.ctx == p->ctx) ||
           (exti__address_map_find(address - 1, &m) && m.ctx == p->ctx);
}

/* Whether the reference is one that must stay in the context whoever it is bound to: of the API, or to
 * what would be one for the whole process.  A shared library still asks for the API by its public names. */
static bool is_contexts(const struct prover *p, const struct exti_reference *ref)
{
    if (p->is_copy && ref->unique)
        return true;
    return exti__loaded_defines(p->api, ref->name) ||
           (!p->is_copy && exti__private_symbol_find(&p->ctx->store.renames, ref->name));
}

static bool stays_inside(const struct prover *p, const struct exti_reference *ref)
{
    uintptr_t value = *ref->slot - ref->addend;
    void *address;

    switch (ref->kind) {
    case EXTI_REF_TLS_MODULE:
        return value == exti__loaded_tls_module(p->lib) || value == exti__loaded_tls_module(p->api);
    case EXTI_REF_TLS_OFFSET:
        address = exti__tls_address(value);
        return address == exti__dl_symbol(p->lib->handle, ref->name) ||
               address == exti__dl_symbol(p->api->handle, ref->name);
    default:
        /* What a program has since stored in its variable is no reference of the file's. */
        return in_context(p, value) || (ref->in_data && !exti__address_is_symbol(value, ref->name));
    }
}

static int report_leak(struct prover *p, const struct exti_reference *ref,
                       const struct exti_ref_target *owner)
{
    const char *name = exti__private_symbol_original(&p->ctx->store.renames, ref->name);
    const bool is_tls = ref->kind != EXTI_REF_ADDRESS;
    struct exti_error finding;
    char captor[256] = "", file[EXTI_PATH_MAX];

    if (owner)
        exti__loaded_path(&owner->lib, captor, sizeof captor);
    if (owner && !captor[0])
        snprintf(captor, sizeof captor, "the program");
    else if (!is_tls)
        exti__address_file(*ref->slot - ref->addend, captor, sizeof captor);
    if (owner && is_tls)
        exti__fail(&finding, EXTI_E_INTERPOSED, EXTI_NO_OFFSET,
                   "its reference to the thread-local variable %.64s was captured by %.128s, and "
                   "cannot be re-pointed; only a rule that shares that library helps",
                   name, captor);
    else
        exti__fail(&finding, EXTI_E_INTERPOSED, EXTI_NO_OFFSET,
                   "its reference to %.128s was captured by %s instead of the context '%s'", name,
                   captor[0] ? captor
                   : is_tls  ? "another module's thread-local storage"
                             : "memory of no library",
                   p->ctx->store.manifest.name);
    exti__loaded_path(p->lib, file, sizeof file);
    exti__error_file(&finding, file);
    p->proof.leaks++;
    p->stopped = p->report(p->user, &finding) != 0;
    return p->stopped;
}

static int fail(struct prover *p, int rc)
{
    p->rc = rc;
    p->stopped = true;
    return 1;
}

static int note_cure(struct prover *p, const struct exti_reference *ref, uintptr_t value)
{
    if (p->cure_count == p->cure_cap) {
        size_t cap = p->cure_cap ? p->cure_cap * 2 : 32;
        struct exti_slot *list = exti__realloc_array(p->cures, cap, sizeof *list);

        if (!list)
            return fail(p, exti__fail_nomem(p->err));
        p->cures = list;
        p->cure_cap = cap;
    }
    p->cures[p->cure_count++] = (struct exti_slot){ref->slot, value + ref->addend};
    return 0;
}

/* Where it leads is what counts of a copy's other references: a library that is shared may be bound to,
 * and defines what the copy does too: C++ templates, above all. */
static int follow_by_owner(struct prover *p, const struct exti_reference *ref)
{
    const uintptr_t value = *ref->slot - ref->addend;
    const bool is_address = ref->kind == EXTI_REF_ADDRESS;
    const struct exti_ref_target *owner;
    uintptr_t own = 0;
    int rc;

    if (is_address ? value >= p->layout.lo && value <= p->layout.hi
                   : ref->kind == EXTI_REF_TLS_MODULE && value == exti__loaded_tls_module(p->lib)) {
        p->proof.references++;
        return 0;
    }
    rc = exti__ref_target_find(&p->owners, ref, &owner, p->err);
    if (rc)
        return fail(p, rc);
    if (!owner)
        return 0;
    if (owner->kind == EXTI_TARGET_SHARED) {
        own = exti__ref_target_own(owner, p->ctx, p->lib, ref);
        if (!own)
            return 0;
    }
    p->proof.references++;
    if (owner->kind == EXTI_TARGET_CONTEXT || (is_address && in_context(p, value)))
        return 0;
    if (owner->kind != EXTI_TARGET_SHARED)
        own = exti__ref_target_counterpart(owner, p->lib, ref);
    if (own && p->cure)
        return note_cure(p, ref, own);
    return owner->kind == EXTI_TARGET_NAMESAKE ? 0 : report_leak(p, ref, owner);
}

static int follow(void *user, const struct exti_reference *ref)
{
    struct prover *p = user;

    if (ref->system || (ref->weak && !*ref->slot))
        return 0;
    if (!is_contexts(p, ref))
        return p->is_copy ? follow_by_owner(p, ref) : 0;
    p->proof.references++;
    return stays_inside(p, ref) ? 0 : report_leak(p, ref, NULL);
}

/* Follows the references of `lib`, which is the module `m`'s or, with m NULL, shared. */
static void prove_library(struct prover *p, const struct exti_loaded *lib,
                          const struct exti_module *m)
{
    int rc;

    p->lib = lib;
    p->is_copy = m != NULL;
    if (m)
        p->layout = m->layout;
    p->cure_count = 0;
    rc = exti__loaded_references(lib, follow, p, p->err);
    if (rc)
        fail(p, rc);
    if (p->stopped || !p->cure_count)
        return;
    pthread_mutex_lock(&p->ctx->lock);
    rc = exti__write_slots(m, p->cures, p->cure_count, p->err);
    pthread_mutex_unlock(&p->ctx->lock);
    if (rc)
        fail(p, rc);
}

/* Whether the shared library `name` has to be followed; notes that it is. */
static bool is_new(struct prover *p, const char *name)
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
        fail(p, exti__fail_nomem(p->err));
    }
    return node != NULL;
}

static void prove_needed(struct prover *p, const struct exti_loaded *lib);

/* Looks at one needed library.  One that is not a copy but uses the API was bound once, for whichever
 * context loaded it first. */
static void prove_shared(struct prover *p, const char *name)
{
    struct exti_loaded lib;
    void *handle;

    if (!is_new(p, name))
        return;
    handle = exti__dl_find(name);
    if (!handle)
        return; /* only its dependant's search path finds it, or it is ld.so */
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

/* Ends a proof: what was followed need not be followed again if it was sound. */
static void forget(struct prover *p, bool sound)
{
    exti__ref_targets_free(&p->owners);
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

static int take_first(void *user, const struct exti_error *finding)
{
    struct exti_error *first = user;

    *first = *finding;
    return 1;
}

int exti__prove_module(struct exti_module *m, const struct exti_loaded *api, struct exti_error *err)
{
    struct exti_error leak = {0};
    struct prover p = {.ctx = m->ctx, .api = api, .cure = true, .err = err};

    p.owners.ctx = m->ctx;
    p.report = take_first;
    p.user = &leak;
    prove_module(&p, m);
    forget(&p, !p.rc && !leak.code);
    if (p.rc)
        return p.rc;
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

static int ignore(void *user, const struct exti_error *finding)
{
    (void)user;
    (void)finding;
    return 0;
}

int exti_ctx_prove(struct exti_ctx *ctx, exti_report_fn report, void *user, struct exti_proof *out,
                   struct exti_error *err)
{
    struct prover p = {.ctx = ctx, .afresh = true, .user = user, .err = err};
    struct exti_module *api, **list;
    size_t count;
    int rc;

    if (!ctx)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the context is NULL");
    rc = exti_api(ctx, &api, err);
    if (rc)
        return rc;
    list = list_modules(ctx, &count);
    if (!list)
        return exti__fail_nomem(err);
    p.api = &api->lib;
    p.owners.ctx = ctx;
    p.report = report ? report : ignore;
    for (size_t i = 0; i < count && !p.stopped; i++)
        prove_module(&p, list[i]);
    exti__free(list);
    forget(&p, false);
    if (p.rc)
        return p.rc;
    if (out && exti__opts_give(out, &p.proof, sizeof p.proof))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "struct exti_proof.size is not set");
    return 0;
}
