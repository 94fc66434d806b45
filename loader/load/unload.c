#include "loader/load/unload.h"

#include "base/error.h"
#include "base/mem.h"
#include "loader/load/shared_libraries.h"
#include "loader/process/constructors.h"
#include "loader/process/dl.h"
#include "loader/process/unload_batch.h"
#include "loader/track/address_map.h"
#include "loader/track/context_end.h"
#include "loader/track/exit_handlers.h"
#include "loader/track/fork_handlers.h"
#include "loader/track/kept_functions.h"
#include "loader/track/lingering.h"

/* ---- closing ---- */

static bool open_batch(const struct exti_module *list, struct exti_unload_batch *b)
{
    const char **copies;
    size_t n = 0;
    bool ok;

    for (const struct exti_module *m = list; m; m = m->older)
        n++;
    copies = n > 1 ? exti__calloc(n, sizeof *copies) : NULL;
    if (!copies)
        return false;
    n = 0;
    for (const struct exti_module *m = list; m; m = m->older)
        copies[n++] = m->copy;
    ok = exti__unload_batch_open(b, copies, n);
    exti__free(copies);
    return ok;
}

struct closing {
    struct exti_module *list;
    struct exti_error *err;
    int rc;
};

static void close_all(void *user)
{
    struct closing *c = user;

    /* First, so that what nobody else needs is unloaded with its users, by the same call. */
    for (struct exti_module *m = c->list; m; m = m->older) {
        exti__shared_close(m->shared);
        m->shared = NULL;
    }
    for (const struct exti_module *m = c->list; m; m = m->older) {
        int rc = exti__dl_close(m->handle, c->rc ? NULL : c->err);

        c->rc = c->rc ? c->rc : rc;
    }
}

static int close_handles(struct exti_module *list, struct exti_error *err)
{
    const struct exti_module *outer = exti__address_map_unloading(list);
    struct closing c = {.list = list, .err = err};
    struct exti_unload_batch b;

    if (open_batch(list, &b))
        exti__unload_batch_close(&b, close_all, &c);
    else
        close_all(&c);
    exti__address_map_unloading(outer);
    return c.rc;
}

int exti__modules_unload(struct exti_module *list, bool keep_mapped, struct exti_error *err)
{
    int rc = 0;

    if (!keep_mapped) {
        rc = close_handles(list, err);
        exti__lingering_sweep();
    }
    while (list) {
        struct exti_module *m = list;

        list = m->older;
        exti__free(m->shared);
        exti__free(m->needed);
        exti__free(m->redirects);
        exti__free(m);
    }
    return rc;
}

/* A module whose constructors have not begun, as an earlier one has not returned, must not run its
 * destructors, nor one whose context has ended by _exit.  False if they cannot be kept from
 * running. */
static bool forget_destructors(const struct exti_module *m)
{
    if (!m->ctx->cut_off && (m->init.started || exti__constructors_have_run(&m->lib)))
        return true;
    return exti__destructors_drop(&m->lib, &m->layout);
}

int exti__modules_dispose(struct exti_module *list, bool keep_mapped, struct exti_error *err)
{
    for (struct exti_module *m = list; m; m = m->older) {
        if (m->ctx->hooks.before_close)
            m->ctx->hooks.before_close(m->ctx->user, m->ctx, m);
        keep_mapped = !forget_destructors(m) || keep_mapped;
        if (!keep_mapped) {
            exti__exit_handlers_unload(m);
            keep_mapped = !exti__kept_functions_end(m);
        } else if (m->ctx->ended)
            exti__context_leave_behind(m);
        exti__fork_handlers_drop(m);
        exti__address_map_remove(m);
    }
    return exti__modules_unload(list, keep_mapped, err);
}

/* ---- references ---- */

/* Moves the module from its context's list to *end if this was its last reference.  ctx->lock is
 * held. */
static struct exti_module **drop_reference(struct exti_module *m, struct exti_module **end)
{
    struct exti_module **link = &m->ctx->modules;

    if (--m->refs)
        return end;
    while (*link != m)
        link = &(*link)->older;
    *link = m->older;
    m->older = NULL;
    if (m == m->ctx->api)
        m->ctx->api = NULL;
    *end = m;
    return &m->older;
}

/* A module that loses its last user goes to the list behind that user. */
struct exti_module **exti__module_release(struct exti_module *m, struct exti_module **end)
{
    struct exti_ctx *ctx = m->ctx;
    struct exti_module **at = end;

    pthread_mutex_lock(&ctx->lock);
    for (end = drop_reference(m, end); *at; at = &(*at)->older)
        for (size_t i = (*at)->needed_count; i--;)
            end = drop_reference((*at)->needed[i], end);
    pthread_mutex_unlock(&ctx->lock);
    return end;
}

int exti__close(struct exti_module *m, struct exti_error *err)
{
    struct exti_module *list = NULL;

    if (m == m->ctx->api)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the API library is closed with its context");
    exti__module_release(m, &list);
    return list ? exti__modules_dispose(list, false, err) : 0;
}
