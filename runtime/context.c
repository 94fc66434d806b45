#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/aborting.h"
#include "runtime/builtin.h"
#include "runtime/command.h"
#include "runtime/ending.h"
#include "runtime/fail.h"
#include "runtime/heap.h"
#include "runtime/host.h"
#include "runtime/importable.h"
#include "runtime/pace.h"
#include "runtime/program.h"
#include "runtime/python.h"
#include "runtime/start.h"
#include "runtime/system.h"
#include "runtime/uncaught.h"

struct pyrt_context {
    struct pyrt_opts opts;
    pthread_t thread;
    pid_t process; /* the one that the context was started in */
    struct exti_ctx *ctx;
    struct pyrt_heap *heap;
    struct pyrt_api py;
    struct pyrt_builtin builtin;
    struct pyrt_command command;
    struct pyrt_ending ending;
    struct pyrt_result result;
    char number[16];            /* the context's, as text */
    struct pyrt_gate gate;      /* the program waits here for its turn */
    atomic_bool begun;          /* its turn has come */
    bool has_thread;            /* that is, or was, its own */
    _Atomic uint64_t runner;    /* the number of the thread that runs it; 0: not yet */
    atomic_flag opened;         /* set but while the context is being opened */
    int exited;                 /* its threads have not ended, and are never to */
    int stays;                  /* mapped: the process is about to end */
    struct pyrt_context *older; /* of those that are kept */
};

/* ---- opening ---- */

/* By which the programs of contexts that are not open yet are to end, as one that waited for its
 * turn has: that one has neither a handler nor raised it. */
static atomic_int ends_all;

static void end_program(void *user, struct exti_ctx *ctx, int sig)
{
    struct pyrt_context *c = user;

    (void)ctx;
    if (!c->begun)
        ends_all = sig;
    pyrt_ending_ask(&c->ending, sig);
    pyrt_gate_open(&c->gate);
}

/* The only program of a process is the process's. */
static int can_exit(void *user, struct exti_ctx *ctx, uint32_t where)
{
    const struct pyrt_context *c = user;

    (void)ctx, (void)where;
    return c->opts.count > 1;
}

/* Once, whoever comes first: constructors may call exit. */
static void leave_opening(struct pyrt_context *c)
{
    if (!atomic_flag_test_and_set(&c->opened))
        pyrt_pace_leave();
}

static void exit_program(void *user, struct exti_ctx *ctx, int status)
{
    struct pyrt_context *c = user;

    (void)ctx;
    leave_opening(c);
    pyrt_gate_come(&c->gate);
    pyrt_pace_tell();
    pyrt_ending_exit(&c->ending, status);
}

static void tell_abort(void *user, struct exti_ctx *ctx)
{
    const struct pyrt_context *c = user;

    (void)ctx;
    pyrt_aborting_tell(c->number);
}

static int open_context(struct pyrt_context *c, struct exti_error *err)
{
    const struct exti_hooks hooks = {
        .size = sizeof hooks,
        .end = end_program,
        .can_exit = can_exit,
        .exit = exit_program,
        .abort = tell_abort,
    };
    struct exti_ctx_opts o = {
        .size = sizeof o,
        .hooks = &hooks,
        .user = c,
        .dir = c->opts.dir,
        .flags = c->opts.ctx_flags,
        .closure = c->opts.closure,
        .rules = c->opts.rules,
        .rule_count = c->opts.rule_count,
        .quirk_files = c->opts.quirk_files,
        .quirk_file_count = c->opts.quirk_file_count,
    };

    int rc;

    pyrt_pace_enter();
    atomic_flag_clear(&c->opened);
    rc = pyrt_open(&c->ctx, &c->py, c->opts.python, &o, err);
    leave_opening(c);
    return rc;
}

/* ---- proof ---- */

static int add_finding(void *text, const struct exti_error *finding)
{
    return fprintf(text, "%s: %s\n", finding->file, finding->message) < 0;
}

static int prove_into(struct pyrt_context *c, FILE *text, struct exti_proof *proof)
{
    int rc = exti_ctx_prove(c->ctx, add_finding, text, proof, &c->result.error);
    const int failed = ferror(text);

    if (fclose(text) || failed)
        rc = pyrt_fail(&c->result.error, EXTI_E_NOMEM, "out of memory");
    return rc;
}

/* Called with the GIL held, so that no thread of the context can load anything meanwhile. */
static void prove_isolation(struct pyrt_context *c)
{
    struct exti_proof proof = {.size = sizeof proof};
    struct pyrt_result *r = &c->result;
    size_t size;
    FILE *text;

    pyrt_program_join_threads(&c->py);
    text = open_memstream(&r->findings, &size);
    if (!text)
        pyrt_fail(&r->error, EXTI_E_NOMEM, "out of memory");
    else if (prove_into(c, text, &proof) == 0) {
        r->proof = proof;
        r->proven = 1;
    }
}

/* ---- the thread ---- */

/* Whether the program has forked, and this is the child. */
static int is_child(const struct pyrt_context *c)
{
    return getpid() != c->process;
}

static void run_program(struct pyrt_context *c)
{
    int status;

    if (pyrt_ending_begin(&c->ending, &c->py) == 0 && pyrt_builtin_import(&c->builtin) == 0 &&
        pyrt_importable_offer(&c->py, c->opts.importable) == 0)
        status = pyrt_program_run(&c->py, c->opts.program, &c->command, c->opts.index);
    else
        status = pyrt_uncaught(&c->py, c->opts.index);
    if (c->ending.sig && status == 128 + c->ending.sig)
        status = -c->ending.sig;
    c->result.sig = status < 0 ? -status : 0;
    c->result.status = status < 0 ? 128 - status : status;
}

/* Before there are other threads of the context's. */
static void take_directory(struct pyrt_context *c)
{
    struct exti_error why = {0};

    if (exti_ctx_own_thread(c->ctx, 0, &why) < 0 && c->opts.shares_directory)
        c->opts.shares_directory(&why);
}

/* A signal that came while the context was being opened has not reached it. */
static void end_with_others(struct pyrt_context *c)
{
    int none = 0;

    if (ends_all)
        atomic_compare_exchange_strong(&c->ending.sig, &none, (int)ends_all);
}

static void run_context(struct pyrt_context *c)
{
    const struct pyrt_startup how = {
        .python = c->opts.python,
        .command = &c->command,
        .settings = c->opts.settings,
        .setting_count = c->opts.setting_count,
        .keep = (c->opts.ctx_flags & EXTI_CTX_KEEP) != 0,
        .program = 1,
    };
    struct exti_error *err = &c->result.error;

    c->result.status = 1;
    if (open_context(c, err) < 0) {
        pyrt_gate_come(&c->gate);
        return;
    }
    end_with_others(c);
    pyrt_gate_pass(&c->gate);
    take_directory(c);
    exti_ctx_enter(c->ctx); /* for as long as the thread lives */
    if (pyrt_builtin_add(&c->builtin, &c->py, c->ctx, c->opts.index, c->opts.count, err) < 0 ||
        pyrt_initialise(&c->heap, &c->py, &how, err) < 0)
        return;
    c->result.started = 1;
    run_program(c);
    if (c->opts.prove && !is_child(c))
        prove_isolation(c);
    /* CPython's own status when buffered output cannot be written. */
    if (c->py.Py_FinalizeEx() < 0)
        c->result.status = 120;
    pyrt_ending_end(&c->ending);
}

static void return_program(void *ending)
{
    pyrt_ending_return(ending);
    pyrt_pace_tell();
}

static void *thread_main(void *arg)
{
    struct pyrt_context *c = arg;
    char name[16];

    snprintf(name, sizeof name, "context-%d", c->opts.index);
    pyrt_name_thread(name);
    c->process = getpid();
    c->runner = pyrt_thread_number();
    pthread_cleanup_push(return_program, &c->ending); /* runs after pthread_exit too */
    run_context(c);
    /* In a forked child this is the only thread, so nobody else takes the program's status.  exit()
     * would run handlers of all contexts, and the others are in the middle of whatever their
     * threads did at the fork. */
    if (is_child(c)) {
        fflush(NULL);
        if (c->result.sig)
            pyrt_end_by(c->result.sig);
        _exit(c->result.status);
    }
    pthread_cleanup_pop(1);
    return NULL;
}

static int start_thread(struct pyrt_context *c, struct exti_error *err)
{
    int rc = pyrt_thread_start(&c->thread, thread_main, c, err);

    c->has_thread = rc == 0;
    return rc;
}

static void let_begin(struct pyrt_context *c)
{
    c->begun = true;
    pyrt_gate_open(&c->gate);
}

int pyrt_start(struct pyrt_context **out, const struct pyrt_opts *opts, struct exti_error *err)
{
    struct pyrt_context *c = calloc(1, sizeof *c);
    int rc;

    if (!c)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    c->opts = *opts;
    snprintf(c->number, sizeof c->number, "%d", opts->index);
    atomic_flag_test_and_set(&c->opened);
    pyrt_gate_init(&c->gate);
    pyrt_ending_prepare(&c->ending);
    pyrt_aborting_prepare();
    rc = pyrt_command_new(&c->command, opts->python, opts->program, err);
    if (rc < 0) {
        free(c);
        return rc;
    }
    if (!opts->paced) {
        let_begin(c);
        rc = start_thread(c, err);
    }
    if (rc < 0) {
        pyrt_command_free(&c->command);
        free(c);
        return rc;
    }
    *out = c;
    return 0;
}

/* ---- in turns ---- */

static uint64_t runner_of(void *contexts, int i)
{
    struct pyrt_context *const *c = contexts;

    return c[i] && c[i]->ending.way == PYRT_RUNS ? c[i]->runner : PYRT_NO_THREAD;
}

/* How many contexts for each processor are open before their turns come.  One has to be, so that a
 * signal that is to end all finds one that has no handler; more would be in the way of the system's
 * loader, which passes by all that is loaded whenever it opens a file. */
#define OPENED_AHEAD 2

/* Of many contexts the latest tell how many run. */
static int most_looked_at(void)
{
    return 8 * pyrt_processors();
}

int pyrt_unloads(int count)
{
    return count > most_looked_at();
}

static int has_returned(const struct pyrt_context *c)
{
    return c && c->ending.way == PYRT_RETURNED;
}

/* Joins and closes those of the first `count` that have ended.  Returns how many of them need not
 * be looked at again. */
static int unload_ended(struct pyrt_context **contexts, struct pyrt_result *results, int from,
                        int count)
{
    for (int i = from; i < count; i++) {
        if (has_returned(contexts[i])) {
            pyrt_join(contexts[i], &results[i]);
            pyrt_close(contexts[i], NULL, NULL);
            contexts[i] = NULL;
        }
        if (!contexts[i] && i == from)
            from++;
    }
    return from;
}

/* The context's thread is not to be. */
static void end_unopened(struct pyrt_context *c, int sig)
{
    if (sig) {
        c->result = (struct pyrt_result){.started = 1, .status = 128 + sig, .sig = sig};
        pyrt_fail(&c->result.error, EXTI_E_UNSUPPORTED,
                  "signal %d has ended the program before it began", sig);
    }
    pyrt_ending_return(&c->ending);
}

static void begin_opening(struct pyrt_context **contexts, int from, int to)
{
    for (int i = from; i < to; i++) {
        struct pyrt_context *c = contexts[i];

        if (!c)
            continue;
        c->result.status = 1;
        if (ends_all || start_thread(c, &c->result.error) < 0)
            end_unopened(c, ends_all);
    }
}

static void await_opening(struct pyrt_context **contexts, int from, int to)
{
    for (int i = from; i < to; i++)
        if (contexts[i] && contexts[i]->has_thread)
            pyrt_gate_await(&contexts[i]->gate);
}

void pyrt_go(struct pyrt_context **contexts, struct pyrt_result *results, int count)
{
    const int processors = pyrt_processors(), most = most_looked_at();
    int opened = 0, ended = 0;

    for (int i = 0; i < count; i++) {
        const int first = i > most ? i - most : 0, ahead = i + OPENED_AHEAD * processors,
                  open = ahead < count ? ahead + 1 : count;

        begin_opening(contexts, opened, open);
        if (i >= processors && contexts[i] && contexts[i]->has_thread)
            pyrt_pace_await(runner_of, (void *)(contexts + first), i - first, processors);
        await_opening(contexts, opened, open);
        opened = open;
        if (contexts[i])
            let_begin(contexts[i]);
        if (results)
            ended = unload_ended(contexts, results, ended, i);
    }
    for (int i = 0; i < count; i++)
        if (contexts[i])
            contexts[i]->stays = 1;
}

/* What else the context's threads may be writing is left alone. */
static struct pyrt_result exited(const struct pyrt_context *c)
{
    struct pyrt_result r = {.started = 1, .status = c->ending.exit_status};

    if (c->opts.prove)
        pyrt_fail(&r.error, EXTI_E_UNSUPPORTED,
                  "the program has ended by exit, _exit or exec, and cannot be proven after that");
    return r;
}

void pyrt_join(struct pyrt_context *c, struct pyrt_result *out)
{
    c->exited = pyrt_ending_wait(&c->ending);
    if (c->exited) {
        pthread_detach(c->thread);
        *out = exited(c);
    } else {
        if (c->has_thread)
            pthread_join(c->thread, NULL);
        *out = c->result;
    }
}

/* Its threads may use all of it, and may be ending it. */
static void keep(struct pyrt_context *c)
{
    static struct pyrt_context *_Atomic kept;

    c->older = atomic_load(&kept);
    while (!atomic_compare_exchange_weak(&kept, &c->older, c))
        ;
}

size_t pyrt_close(struct pyrt_context *c, exti_report_fn report, void *user)
{
    size_t left;

    if (!c)
        return 0;
    if (c->stays)
        exti_ctx_keep(c->ctx);
    exti_ctx_close_report(c->ctx, report, user, &left, NULL);
    if (c->exited || c->stays || left) {
        keep(c);
        return left;
    }
    pyrt_heap_free(c->heap);
    free(c->result.findings);
    pyrt_command_free(&c->command);
    free(c);
    return left;
}
