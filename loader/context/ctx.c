/* Contexts: opening, copying into them, closing. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/opts.h"
#include "loader/interpose/iterate_phdr.h"
#include "loader/interpose/replacements.h"
#include "loader/interpose/shell_calls.h"
#include "loader/load/initialise.h"
#include "loader/load/unload.h"
#include "loader/process/fork_guard.h"
#include "loader/process/program.h"
#include "loader/store/store_copy.h"
#include "loader/store/store_libraries.h"
#include "loader/store/store_open.h"
#include "loader/store/store_pattern.h"
#include "loader/store/store_queries.h"
#include "loader/track/address_map.h"
#include "loader/track/calls.h"
#include "loader/track/children.h"
#include "loader/track/context_end.h"
#include "loader/track/context_keys.h"
#include "loader/track/context_threads.h"
#include "loader/track/descriptors.h"
#include "loader/track/exit_handlers.h"
#include "loader/track/fork_handlers.h"
#include "loader/track/kept_functions.h"
#include "loader/track/library_locks.h"
#include "loader/track/lingering.h"
#include "loader/track/record_locks.h"
#include "loader/track/signal_dispatch.h"
#include "loader/track/signal_timers.h"
#include "loader/track/still_mapped.h"
#include "loader/track/surroundings.h"
#include "loader/track/thread_objects.h"

#define KNOWN_FLAGS                                                                                \
    (EXTI_CTX_RENAME | EXTI_CTX_SYNC | EXTI_CTX_KEEP | EXTI_CTX_COPY_ONLY | EXTI_CTX_DROP_UNUSED | \
     EXTI_CTX_FOR_LOADING | EXTI_CTX_TRUST_DIR | EXTI_CTX_CLOSE_IDLE | EXTI_CTX_PROCESS_SIGNALS |  \
     EXTI_CTX_PROCESS_ENVIRONMENT | EXTI_CTX_PROCESS_LOCALE | EXTI_CTX_PROCESS_DIRECTORY |         \
     EXTI_CTX_ENTER_DIRECTORY | EXTI_CTX_PROCESS_ENDS | EXTI_CTX_FULL_COPIES | EXTI_CTX_ONE_SHOT)

#ifdef _WIN32
#define REPLACEMENT NULL
#else
#define REPLACEMENT exti__replacement
#endif

static int copy_redirects(struct exti_ctx *ctx, const struct exti_ctx_opts *o,
                          struct exti_error *err)
{
    size_t n = o->redirect_count;

    if (n && !o->redirects)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "redirects is NULL but redirect_count is %zu", n);
    for (size_t i = 0; i < n; i++)
        if (!o->redirects[i].symbol || !o->redirects[i].to)
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "redirect %zu: symbol or to is NULL",
                              i);
    ctx->redirects = exti__calloc(n, sizeof *ctx->redirects);
    if (!ctx->redirects)
        return exti__fail_nomem(err);
    for (; ctx->redirect_count < n; ctx->redirect_count++) {
        struct exti_redirect *r = &ctx->redirects[ctx->redirect_count];

        *r = o->redirects[ctx->redirect_count];
        r->symbol = exti__strdup(r->symbol);
        if (!r->symbol)
            return exti__fail_nomem(err);
    }
    return 0;
}

static void free_ctx(struct exti_ctx *ctx)
{
    for (size_t i = 0; i < ctx->redirect_count; i++)
        exti__free((char *)ctx->redirects[i].symbol);
    exti__free(ctx->redirects);
    exti_quirks_free(ctx->quirks);
    exti__tree_free(&ctx->proven, exti__string_order, exti__free);
    pthread_cond_destroy(&ctx->changed);
    pthread_mutex_destroy(&ctx->lock);
    pthread_mutex_destroy(&ctx->api_lock);
    exti__free(ctx);
}

static bool is_copy(uintptr_t address)
{
    struct exti_module m;

    return exti__address_map_find(address, &m);
}

static int fill_ctx(struct exti_ctx *ctx, const struct exti_ctx_opts *o, struct exti_error *err)
{
    struct exti_store_opts store = {.dir = o->dir,
                                    .name = o->name,
                                    .api_library = o->api_library,
                                    .rename = (o->flags & EXTI_CTX_RENAME) != 0,
                                    .sync = (o->flags & EXTI_CTX_SYNC) != 0,
                                    .copy_only = (o->flags & EXTI_CTX_COPY_ONLY) != 0,
                                    .withhold = !(o->flags & EXTI_CTX_COPY_ONLY) ||
                                                (o->flags & EXTI_CTX_FOR_LOADING),
                                    .full = (o->flags & EXTI_CTX_FULL_COPIES) != 0,
                                    .drop_unused = (o->flags & EXTI_CTX_DROP_UNUSED) != 0,
                                    .trust_dir = (o->flags & EXTI_CTX_TRUST_DIR) != 0,
                                    .one_shot = (o->flags & EXTI_CTX_ONE_SHOT) != 0,
                                    .is_copy = is_copy,
                                    .closure = o->closure,
                                    .rules = o->rules,
                                    .rule_count = o->rule_count,
                                    .user = o->user};
    int rc;

    if (o->flags & ~KNOWN_FLAGS)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "unknown EXTI_CTX_ flags 0x%x",
                          o->flags);
    ctx->flags = o->flags;
    ctx->user = o->user;
    ctx->replacement = REPLACEMENT;

    if (o->hooks) {
        rc = exti__opts_take(&ctx->hooks, sizeof ctx->hooks, o->hooks, "struct exti_hooks", err);
        if (rc)
            return rc;
    }
    rc = copy_redirects(ctx, o, err);
    if (!rc)
        rc = exti_quirks_open(o->quirk_files, o->quirk_file_count, &ctx->quirks, err);
    if (!rc)
        rc = exti__surroundings_begin(ctx, err);
    if (rc)
        return rc;
    store.quirks = ctx->quirks;
    store.copy_name = ctx->hooks.copy_name;
    return exti__store_open(&ctx->store, &store, err);
}

/* A fork runs these before those of the locks above, and last in the child. */
static int install_fork_handlers(void)
{
#ifdef _WIN32
    return 0;
#else
    int rc = exti__calls_survive_forks();

    if (!rc)
        rc = exti__initialise_survive_forks();
    if (!rc)
        rc = exti__surroundings_survive_forks();
    if (!rc)
        rc = exti__children_survive_forks();
    if (!rc)
        rc = exti__descriptors_survive_forks();
    if (!rc)
        rc = exti__exit_handlers_survive_forks();
    if (!rc)
        rc = exti__shell_calls_survive_forks();
    if (!rc)
        rc = exti__kept_functions_survive_forks();
    if (!rc)
        rc = exti__patterns_prepare();
    if (!rc)
        rc = exti__fork_handlers_survive_forks();
    if (!rc)
        rc = exti__library_locks_survive_forks();
    if (!rc)
        rc = exti__fork_guard_install();
    return rc ? rc : exti__fork_handlers_install();
#endif
}

int exti_ctx_open(struct exti_ctx **out, const struct exti_ctx_opts *opts, struct exti_error *err)
{
    struct exti_ctx_opts o;
    struct exti_ctx *ctx;
    int rc = exti__opts_take(&o, sizeof o, opts, "struct exti_ctx_opts", err);

    if (rc)
        return rc;
    if (!out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "out is NULL");
    if (!(o.flags & EXTI_CTX_COPY_ONLY)) {
        rc = exti__address_map_survive_forks(err);
        if (rc)
            return rc;
        exti__program_find();
        exti__ctx_threads_survive_forks();
        rc = exti__ctx_keys_prepare(err);
        if (rc)
            return rc;
        exti__thread_objects_survive_forks();
        exti__record_locks_survive_forks();
        exti__signal_timers_survive_forks();
        exti__signals_begin();
        if (install_fork_handlers())
            return exti__fail_nomem(err);
    }
    ctx = exti__calloc(1, sizeof *ctx);
    if (!ctx)
        return exti__fail_nomem(err);
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_cond_init(&ctx->changed, NULL);
    pthread_mutex_init(&ctx->api_lock, NULL);
    rc = fill_ctx(ctx, &o, err);
    if (rc) {
        exti__surroundings_end(ctx, false);
        free_ctx(ctx);
        return rc;
    }
    exti__ctx_log(ctx, EXTI_LOG_INFO, "context '%s' opened in %s%s", exti__ctx_name(ctx),
                  exti__ctx_dir(ctx),
                  exti__store_is_renamed(&ctx->store) ? ", with private names for its API" : "");
    /* The default action is an action, too. */
    if (ctx->hooks.end)
        exti__signals_of(ctx);
    exti__ctx_count_in(ctx);
    *out = ctx;
    return 0;
}

const char *exti_ctx_dir(const struct exti_ctx *ctx)
{
    return exti__ctx_dir(ctx);
}

const char *exti_ctx_name(const struct exti_ctx *ctx)
{
    return exti__ctx_name(ctx);
}

int exti_copy(struct exti_ctx *ctx, const char *original, const char **path, struct exti_error *err)
{
    const char *copy, *source;
    struct exti_call call;
    int rc;

    if (!ctx || !original || !*original)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the context or file name is NULL or empty");
    rc = exti__call_begin(&call, ctx, err);
    if (rc)
        return rc;
    rc = exti__store_copy(&ctx->store, original, false, &copy, &source, err);
    exti__call_end(&call);
    if (!rc && path)
        *path = copy;
    return rc;
}

int exti_copy_many(struct exti_ctx *ctx, const char *const *originals, size_t count,
                   const struct exti_copy_opts *opts, struct exti_error *err)
{
    const struct exti_copy_opts none = {.size = sizeof none};
    struct exti_copy_opts o;
    struct exti_call call;
    int rc = exti__opts_take(&o, sizeof o, opts ? opts : &none, "struct exti_copy_opts", err);

    if (rc)
        return rc;
    if (o.libraries > count)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "libraries is %zu, more than the %zu originals", o.libraries, count);
    if (!ctx || (count && !originals))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the context or originals is NULL");
    for (size_t i = 0; i < count; i++)
        if (!originals[i] || !*originals[i])
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "original %zu is empty", i);
    rc = exti__call_begin(&call, ctx, err);
    if (rc)
        return rc;
    rc = exti__store_copy_many(&ctx->store, originals, count, &o, err);
    exti__call_end(&call);
    return rc;
}

static int report_libraries(struct exti_ctx *ctx, bool with_reasons,
                            int (*each)(void *user, const struct exti_library_info *library),
                            void *user, struct exti_error *err)
{
    struct exti_call call;
    int rc;

    if (!ctx || !each)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "the context or each is NULL");
    rc = exti__call_begin(&call, ctx, err);
    if (rc)
        return rc;
    rc = exti__store_libraries(&ctx->store, with_reasons, each, user, err);
    exti__call_end(&call);
    return rc;
}

int exti_ctx_libraries(struct exti_ctx *ctx,
                       int (*each)(void *user, const struct exti_library_info *library), void *user,
                       struct exti_error *err)
{
    return report_libraries(ctx, true, each, user, err);
}

int exti_ctx_library_states(struct exti_ctx *ctx,
                            int (*each)(void *user, const struct exti_library_info *library),
                            void *user, struct exti_error *err)
{
    return report_libraries(ctx, false, each, user, err);
}

/* Takes all modules off the list; the newest is first. */
static struct exti_module *take_modules(struct exti_ctx *ctx)
{
    struct exti_module *all;

    pthread_mutex_lock(&ctx->lock);
    all = ctx->modules;
    ctx->modules = NULL;
    pthread_mutex_unlock(&ctx->lock);
    return all;
}

/* Closes all modules and counts them.  A hook or a finaliser may load another meanwhile. */
static int close_modules(struct exti_ctx *ctx, bool keep_mapped, size_t *count,
                         struct exti_error *err)
{
    struct exti_module *list;
    int rc = 0;

    while ((list = take_modules(ctx))) {
        int end_rc;

        for (const struct exti_module *m = list; m; m = m->older)
            ++*count;
        end_rc = exti__modules_dispose(list, keep_mapped, rc ? NULL : err);
        rc = rc ? rc : end_rc;
        ctx->api = NULL;
    }
    return rc;
}

void *exti_ctx_enter(struct exti_ctx *ctx)
{
    return exti__surroundings_enter(ctx ? ctx->surroundings : NULL);
}

void exti_ctx_leave(void *before)
{
    exti__surroundings_enter(before);
}

int exti_ctx_own_thread(struct exti_ctx *ctx, int started, struct exti_error *err)
{
    int rc;

    if (!ctx)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "ctx is NULL");
    rc = exti__surroundings_own_thread(ctx->surroundings, started != 0);
    if (rc == EBUSY)
        return exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                          "the thread is another context's own, or none of this one's has started "
                          "it");
    if (rc == ENOSYS)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "all threads of a process have one directory on this system");
    if (rc)
        return exti__fail_io(err, rc, "",
                             "the context's threads cannot have a directory of their own%s",
                             rc == EPERM ? " (unshare)" : "");
    return 0;
}

void exti_ctx_keep(struct exti_ctx *ctx)
{
    if (ctx)
        atomic_fetch_or(&ctx->flags, EXTI_CTX_KEEP);
}

int exti_ctx_detach_thread(struct exti_ctx *ctx, uint64_t thread, struct exti_error *err)
{
    struct exti_call call;
    int rc;

    if (!ctx)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "ctx is NULL");
    rc = exti__call_begin(&call, ctx, err);
    if (rc)
        return rc;
    exti__thread_objects_detach(ctx, thread);
    exti__ctx_thread_detached(ctx, thread);
    exti__call_end(&call);
    return 0;
}

/* Whom to tell what stays mapped. */
struct listener {
    const struct exti_ctx *ctx;
    exti_report_fn report; /* NULL: nobody has asked, or it wants no more findings */
    void *user;
};

static int report_mapped(void *user, const struct exti_error *finding)
{
    struct listener *l = user;

    exti__ctx_log(l->ctx, EXTI_LOG_WARN, "%s: %s", finding->file, finding->message);
    if (l->report && l->report(l->user, finding))
        l->report = NULL;
    return 0;
}

static size_t count_modules(struct exti_ctx *ctx)
{
    size_t n = 0;

    pthread_mutex_lock(&ctx->lock);
    for (const struct exti_module *m = ctx->modules; m; m = m->older)
        n++;
    pthread_mutex_unlock(&ctx->lock);
    return n;
}

/* Whether the modules are to stay mapped, as threads may run in them. */
static bool must_stay(struct exti_ctx *ctx, bool handled, struct listener *l)
{
    struct exti_error finding = {0};

    if (ctx->flags & EXTI_CTX_KEEP)
        return true;
    if (ctx->ended) {
        exti__fail(&finding, EXTI_E_BUSY, EXTI_NO_OFFSET,
                   "the context has ended by a call of %s, and its threads may still be in it",
                   ctx->cut_off ? "_exit, quick_exit or exec" : "exit");
        exti__error_file(&finding, ctx->api ? ctx->api->copy : "");
        report_mapped(l, &finding);
        return true;
    }
    if (ctx->leaving)
        return true;
    if (!handled)
        return true;
    /* While the API library is not open, nothing is loaded that a thread could run in. */
    if (!ctx->api)
        return false;
    if (exti__ctx_threads_stop_at_exit(ctx))
        exti__exit_handlers_run(ctx, 0);
    return exti__ctx_threads_report(ctx, report_mapped, l) != 0;
}

/* False: a destructor runs, and its code must stay. */
static bool disarm_keys(const struct exti_ctx *ctx, struct listener *l)
{
    struct exti_error finding = {0};

    if (exti__ctx_keys_disarm(ctx, &finding))
        return true;
    exti__error_file(&finding, ctx->api ? ctx->api->copy : "");
    report_mapped(l, &finding);
    return false;
}

/* Calls of a context that has ended may never return. */
static enum exti_patience patience_of(const struct exti_ctx *ctx)
{
    if (ctx->flags & (EXTI_CTX_KEEP | EXTI_CTX_CLOSE_IDLE))
        return EXTI_PATIENCE_NONE;
    return ctx->ended ? EXTI_PATIENCE_SOME : EXTI_PATIENCE_ALL;
}

/* A thread that is about to end it, or has, may use it for ever. */
static void end_ctx(struct exti_ctx *ctx)
{
    atomic_store(&ctx->closed, true);
    if (ctx->leaving || ctx->ended)
        exti__context_keep(ctx);
    else
        free_ctx(ctx);
}

int exti_ctx_close_report(struct exti_ctx *ctx, exti_report_fn report, void *user, size_t *left,
                          struct exti_error *err)
{
    struct listener l = {ctx, report, user};
    size_t mapped = 0;
    bool keep, handled;
    int rc, close_rc;

    if (left)
        *left = 0;
    if (!ctx)
        return 0;
    rc = exti__calls_stop(ctx, patience_of(ctx), err);
    if (rc) {
        if (left)
            *left = count_modules(ctx);
        return rc;
    }
    if (!(ctx->flags & EXTI_CTX_KEEP) && !ctx->ended)
        exti__thread_objects_end(ctx);
    exti__signal_timers_end(ctx);
    handled = exti__signals_end(ctx);
    keep = must_stay(ctx, handled, &l) || !disarm_keys(ctx, &l);
    rc = close_modules(ctx, keep, &mapped, err);
    exti__address_map_unclaim(ctx);
    exti__surroundings_part(ctx);
    exti__calls_forget(ctx);
    if (!keep)
        mapped = exti__still_mapped_report(ctx, report_mapped, &l);
    if (!mapped)
        exti__ctx_keys_delete(ctx);
    /* Keys first: a thread that still sets one would enter itself with the context again. */
    exti__ctx_keys_forget(ctx);
    exti__ctx_threads_forget(ctx);
    exti__thread_objects_forget(ctx);
    exti__exit_handlers_forget(ctx, !ctx->cut_off);
    exti__lingering_forget_ctx(ctx);
    exti__iterate_phdr_forget(ctx);
    exti__record_locks_forget(ctx);
    exti__children_forget(ctx);
    exti__descriptors_forget(ctx);
    close_rc = exti__store_close(&ctx->store, !keep && !mapped && !rc, rc ? NULL : err);
    exti__ctx_count_out(ctx);
    exti__surroundings_end(ctx, mapped != 0);
    end_ctx(ctx);
    if (left)
        *left = mapped;
    return rc ? rc : close_rc;
}

int exti_ctx_close(struct exti_ctx *ctx, struct exti_error *err)
{
    return exti_ctx_close_report(ctx, NULL, NULL, NULL, err);
}
