#define _GNU_SOURCE
#include "loader/track/signal_table.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/track/children.h"
#include "loader/track/fork_handlers.h"
#include "loader/track/signal_cell.h"

struct exti_signals {
    _Atomic(struct exti_ctx *) ctx; /* NULL: free, or being closed */
    unsigned number;
    atomic_uint running;      /* handlers */
    unsigned commands;        /* in system(3) */
    bool used;                /* cells and masks are of a context */
    bool program;             /* the context can end alone: struct exti_hooks.end */
    uint64_t expected;        /* those that its timers may send */
    atomic_ullong interrupts; /* siginterrupt(3): the signals that end calls */
    uint64_t set;             /* the signals whose action the context has set: bit sig - 1 */
    uint64_t left;            /* by a function: what a child has sent to it may come late */
    sigset_t masks[EXTI_SIGNAL_MAX + 1];
    struct exti_signal_cell cells[EXTI_SIGNAL_MAX + 1];
};

/* What the process does with a signal. */
enum installed { PROGRAMS, DISPATCHER, IGNORE, DEFAULT };

/* Guards the table and the process's actions.  Signals are blocked meanwhile: a handler may come
 * here.  Innermost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static _Atomic(struct exti_signals *) table[EXTI_SIGNAL_CONTEXTS];
static atomic_uint table_count;
static _Atomic(exti_signal_dispatcher) dispatcher;
static _Atomic(pid_t) process;
static atomic_bool is_child;

static struct exti_signal_cell programs[EXTI_SIGNAL_MAX + 1];
static struct sigaction programs_actions[EXTI_SIGNAL_MAX + 1];
static enum installed installed[EXTI_SIGNAL_MAX + 1];
static _Atomic uint64_t dispatched;
static uint64_t may_be_pending; /* for threads of contexts that have ended, and would take it */

static uint64_t bit(int sig)
{
    return (uint64_t)1 << (sig - 1);
}

static void lock_table(sigset_t *signals)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, signals);
    pthread_mutex_lock(&lock);
}

static void unlock_table(const sigset_t *signals)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, signals, NULL);
}

/* ---- the process's actions; the lock is held ---- */

/* What all must ask for to have it, as the process has one set of flags. */
#define SHARED_FLAGS ((unsigned)(SA_RESTART | SA_NOCLDSTOP))

/* What the contexts want of one signal. */
struct wish {
    sigset_t mask;  /* of the dispatcher's action */
    unsigned flags; /* likewise */
    bool left;      /* by a function of a context */
    bool function, ignore, take_default;
    bool beside; /* a context that is no program of its own wants the default, or to ignore it */
};

static bool is_in_command(const struct exti_signals *s, int sig)
{
    return s->commands && (sig == SIGINT || sig == SIGQUIT);
}

static void add_wish(struct wish *w, const struct exti_signals *s, int sig)
{
    const struct exti_signal_action a = exti__signal_cell_read(&s->cells[sig]);
    const bool ignores = is_in_command(s, sig) || a.handler == SIG_IGN;

    w->left = w->left || (s->left & bit(sig));
    if (!s->program && !is_in_command(s, sig) && !((s->set | s->expected) & bit(sig)))
        return;
    w->function = w->function || (!ignores && (s->expected & bit(sig)));
    if (!ignores && (exti__signal_is_function(a.handler) || a.waited)) {
        w->function = true;
        w->flags &= ~SHARED_FLAGS | (a.waited ? SA_RESTART : a.flags);
        w->flags |= a.flags & SA_NODEFER;
        sigorset(&w->mask, &w->mask, &s->masks[sig]);
        return;
    }
    w->beside = w->beside || !s->program;
    w->ignore = w->ignore || ignores;
    w->take_default = w->take_default || !ignores;
}

static enum installed choose_by(const struct wish *w, int sig)
{
    const bool programs_function = exti__signal_is_function(programs_actions[sig].sa_handler);

    /* wait(2): the system would drop the children of all.  The dispatcher drops the context's. */
    if (w->function || (w->ignore && sig == SIGCHLD))
        return DISPATCHER;
    if (programs_function || (!w->ignore && !w->take_default))
        return PROGRAMS;
    if (w->ignore && w->take_default)
        return DISPATCHER;
    if (w->ignore)
        return IGNORE;
    return w->beside ? PROGRAMS : DEFAULT;
}

/* What was sent to the threads of a context that has ended may arrive at any time, and is not to
 * end the process. */
static enum installed choose(const struct wish *w, int sig)
{
    const enum installed chosen = choose_by(w, sig);
    const bool late = w->left || (may_be_pending & bit(sig));
    const bool by_default =
        chosen == DEFAULT || (chosen == PROGRAMS && programs_actions[sig].sa_handler == SIG_DFL);

    return by_default && late && exti__signal_ends_process(sig) ? DISPATCHER : chosen;
}

static bool is_installed(const struct sigaction *now, int sig)
{
    switch (installed[sig]) {
    case DISPATCHER:
        return (now->sa_flags & SA_SIGINFO) && now->sa_sigaction == dispatcher;
    case IGNORE:
        return now->sa_handler == SIG_IGN;
    case DEFAULT:
        return now->sa_handler == SIG_DFL;
    default:
        return false;
    }
}

/* Notes what the program has set since, unless it has put the dispatcher back. */
static void note_programs(int sig)
{
    struct sigaction now;

    if (sigaction(sig, NULL, &now) || is_installed(&now, sig) ||
        ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == dispatcher))
        return;
    programs_actions[sig] = now;
    exti__signal_cell_write(&programs[sig], &now, 0, false);
    installed[sig] = PROGRAMS;
}

static void install(int sig)
{
    struct wish w = {.flags = SHARED_FLAGS};
    struct sigaction next = {0};
    const struct sigaction *of_program = &programs_actions[sig];
    enum installed chosen;

    note_programs(sig);
    for (unsigned i = 0; i < table_count; i++)
        if (table[i] && table[i]->ctx)
            add_wish(&w, table[i], sig);
    chosen = choose(&w, sig);
    if (chosen == DISPATCHER) {
        next.sa_sigaction = dispatcher;
        next.sa_mask = w.mask;
        if (exti__signal_is_function(of_program->sa_handler)) {
            sigorset(&next.sa_mask, &next.sa_mask, &of_program->sa_mask);
            w.flags &= (unsigned)of_program->sa_flags | SA_NODEFER;
            w.flags |= (unsigned)of_program->sa_flags & SA_NOCLDWAIT;
        }
        next.sa_flags = (int)(w.flags | SA_SIGINFO | SA_ONSTACK);
    } else {
        next.sa_handler = chosen == IGNORE ? SIG_IGN : SIG_DFL;
    }
    if (chosen != installed[sig] || chosen == DISPATCHER)
        sigaction(sig, chosen == PROGRAMS ? of_program : &next, NULL);
    installed[sig] = chosen;
    if (chosen == DISPATCHER)
        atomic_fetch_or(&dispatched, bit(sig));
    else
        atomic_fetch_and(&dispatched, ~bit(sig));
}

static void install_all(uint64_t signals)
{
    for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++)
        if (signals & bit(sig))
            install(sig);
}

/* ---- contexts ---- */

static struct exti_signals *find_free(void)
{
    const unsigned n = table_count;
    struct exti_signals *s;

    for (unsigned i = 0; i < n; i++)
        if (!table[i]->used && !table[i]->running)
            return table[i];
    if (n == EXTI_SIGNAL_CONTEXTS)
        return NULL;
    s = exti__calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->number = n;
    table[n] = s;
    table_count = n + 1;
    return s;
}

/* execve(2): what is ignored stays so, and what was handled has the default. */
static void inherit(struct exti_signals *s)
{
    const pid_t thread = exti__signal_thread();

    for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++) {
        struct sigaction now = {0}, own = {0};

        sigaction(sig, NULL, &now);
        if (installed[sig] != PROGRAMS && is_installed(&now, sig))
            now = programs_actions[sig];
        if (now.sa_handler == SIG_IGN)
            own.sa_handler = SIG_IGN;
        exti__signal_cell_write(&s->cells[sig], &own, thread, false);
    }
    memset(s->masks, 0, sizeof s->masks);
    s->set = s->left = s->expected = s->interrupts = 0;
    s->commands = 0;
}

struct exti_signals *exti__signals_of(struct exti_ctx *ctx)
{
    struct exti_signals *s = atomic_load(&ctx->signals);
    sigset_t signals;

    if (s || (ctx->flags & EXTI_CTX_PROCESS_SIGNALS))
        return s;
    lock_table(&signals);
    s = atomic_load(&ctx->signals);
    if (!s && (s = find_free())) {
        inherit(s);
        s->used = true;
        s->program = ctx->hooks.end != NULL;
        atomic_store(&s->ctx, ctx);
        atomic_store(&ctx->signals, s);
        exti__children_signal(ctx, s);
        for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++)
            if (installed[sig] == IGNORE || installed[sig] == DEFAULT) /* for all that there were */
                install(sig);
    }
    unlock_table(&signals);
    return s;
}

/* The signals that are the dispatcher's where the default would be to end. */
static uint64_t dispatched_ends(uint64_t set)
{
    for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++)
        if (installed[sig] != DISPATCHER || !exti__signal_ends_process(sig))
            set &= ~bit(sig);
    return set;
}

/* The lock is held. */
static void drop_actions(struct exti_signals *s)
{
    const uint64_t set = s->program ? ~(uint64_t)0 : s->set | s->left | s->expected;

    if (atomic_exchange(&s->ctx, NULL))
        install_all(set);
}

void exti__signals_drop(struct exti_ctx *ctx)
{
    struct exti_signals *s = atomic_load(&ctx->signals);
    sigset_t signals;

    if (!s)
        return;
    lock_table(&signals);
    may_be_pending |= dispatched_ends(s->set | s->left | s->expected);
    drop_actions(s);
    unlock_table(&signals);
}

static bool wait_for_handlers(const struct exti_signals *s)
{
    const struct timespec moment = {0, 1000000};

    for (int ms = 0; ms < 1000 && s->running; ms++)
        nanosleep(&moment, NULL);
    return s->running == 0;
}

bool exti__signals_end(struct exti_ctx *ctx)
{
    struct exti_signals *s = atomic_load(&ctx->signals);
    sigset_t signals;

    if (!s)
        return true;
    lock_table(&signals);
    drop_actions(s);
    s->used = false;
    unlock_table(&signals);
    return !ctx->ended && wait_for_handlers(s);
}

/* ---- what contexts ask for ---- */

/* The lock is held. */
static void read_action(const struct exti_signals *s, int sig, struct exti_signal_former *out)
{
    const struct exti_signal_action now = exti__signal_cell_read(&s->cells[sig]);

    *out = (struct exti_signal_former){{.sa_handler = now.handler, .sa_flags = (int)now.flags},
                                       now.thread,
                                       now.waited,
                                       (s->set & bit(sig)) != 0};
    out->action.sa_mask = s->masks[sig];
}

static void write_action(struct exti_signals *s, int sig, const struct exti_signal_former *next)
{
    if (exti__signal_is_function(exti__signal_cell_read(&s->cells[sig]).handler) &&
        exti__children_may_send(s->ctx))
        s->left |= bit(sig);
    s->masks[sig] = next->action.sa_mask;
    s->set = next->set ? s->set | bit(sig) : s->set & ~bit(sig);
    exti__signal_cell_write(&s->cells[sig], &next->action, next->thread, next->waited);
    install(sig);
}

void exti__signal_replace(struct exti_signals *s, int sig, const struct sigaction *act,
                          struct exti_signal_former *former)
{
    struct exti_signal_former next = {.thread = exti__signal_thread(), .set = true};
    sigset_t signals;

    lock_table(&signals);
    read_action(s, sig, former);
    if (act) {
        next.action = *act;
        next.waited = former->waited && !exti__signal_is_function(act->sa_handler);
        write_action(s, sig, &next);
    }
    unlock_table(&signals);
}

void exti__signal_put_back(struct exti_signals *s, int sig, const struct exti_signal_former *former)
{
    sigset_t signals;

    lock_table(&signals);
    write_action(s, sig, former);
    unlock_table(&signals);
}

void exti__signal_set(struct exti_signals *s, int sig, const struct sigaction *act,
                      struct sigaction *old)
{
    struct exti_signal_former former;

    exti__signal_replace(s, sig, act, &former);
    if (old)
        *old = former.action;
}

void exti__signal_interrupt(struct exti_signals *s, int sig, bool interrupts)
{
    s->interrupts = interrupts ? s->interrupts | bit(sig) : s->interrupts & ~bit(sig);
}

bool exti__signal_interrupts(const struct exti_signals *s, int sig)
{
    return (s->interrupts & bit(sig)) != 0;
}

void exti__signal_wait_for(struct exti_signals *s, const sigset_t *set)
{
    const pid_t thread = exti__signal_thread();
    sigset_t signals;

    lock_table(&signals);
    for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++) {
        const struct exti_signal_action now = exti__signal_cell_read(&s->cells[sig]);
        const struct sigaction same = {.sa_handler = now.handler, .sa_flags = (int)now.flags};

        if (sigismember(set, sig) != 1 || exti__signal_is_function(now.handler) ||
            (now.waited && now.thread == thread))
            continue;
        exti__signal_cell_write(&s->cells[sig], &same, thread, true);
        s->set |= bit(sig);
        install(sig);
    }
    unlock_table(&signals);
}

void exti__signal_expect(struct exti_signals *s, int sig)
{
    sigset_t signals;

    lock_table(&signals);
    s->expected |= bit(sig);
    install(sig);
    unlock_table(&signals);
}

void exti__signals_count_command(struct exti_ctx *ctx, struct exti_signals *s, int by)
{
    sigset_t signals;

    lock_table(&signals);
    if (s->ctx == ctx) /* else it has been closed meanwhile */
        s->commands += (unsigned)by;
    install(SIGINT);
    install(SIGQUIT);
    unlock_table(&signals);
}

/* ---- for handlers ---- */

bool exti__signals_are_ours(void)
{
    return getpid() == process;
}

bool exti__signals_are_childs(void)
{
    return is_child;
}

struct exti_signals *exti__signals_at(unsigned n)
{
    return n < table_count ? table[n] : NULL;
}

unsigned exti__signals_count(void)
{
    return table_count;
}

unsigned exti__signals_number(const struct exti_signals *s)
{
    return s->number;
}

struct exti_ctx *exti__signals_enter(struct exti_signals *s)
{
    struct exti_ctx *ctx;

    atomic_fetch_add(&s->running, 1);
    ctx = atomic_load(&s->ctx);
    if (!ctx)
        atomic_fetch_sub(&s->running, 1);
    return ctx;
}

void exti__signals_leave(struct exti_signals *s)
{
    atomic_fetch_sub(&s->running, 1);
}

struct exti_signal_action exti__signal_action(const struct exti_signals *s, int sig)
{
    struct exti_signal_action a = exti__signal_cell_read(&s->cells[sig]);

    if (is_in_command(s, sig))
        a.handler = SIG_IGN;
    return a;
}

void exti__signals_give_child(const struct exti_signals *s)
{
    for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++) {
        const bool ignores = exti__signal_action(s, sig).handler == SIG_IGN;
        struct sigaction now;

        if ((!ignores && !(s->set & bit(sig))) || sigaction(sig, NULL, &now) ||
            (now.sa_handler == SIG_IGN) == ignores)
            continue;
        now = (struct sigaction){.sa_handler = ignores ? SIG_IGN : SIG_DFL};
        sigaction(sig, &now, NULL);
    }
}

struct exti_signal_action exti__signal_of_program(int sig)
{
    return exti__signal_cell_read(&programs[sig]);
}

void exti__signal_reset_program(int sig)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};
    sigset_t signals;

    lock_table(&signals);
    programs_actions[sig] = none;
    exti__signal_cell_write(&programs[sig], &none, 0, false);
    unlock_table(&signals);
}

uint64_t exti__signals_dispatched(void)
{
    return dispatched;
}

/* ---- forks ---- */

static sigset_t fork_signals; /* of the thread that forks, which holds the lock */
static pid_t fork_thread;

static void begin_fork(void)
{
    sigset_t signals;

    lock_table(&signals);
    fork_signals = signals;
    fork_thread = exti__signal_thread();
}

static void end_fork(void)
{
    const sigset_t signals = fork_signals;

    unlock_table(&signals);
}

/* Whether the context goes on in a child: it is the one that forks or, if that is not known, one
 * that has its signals handled on the thread that forks. */
static bool forks(const struct exti_signals *s)
{
    const struct exti_ctx *forking = exti__fork_handlers_ctx();

    if (forking)
        return s->ctx == forking;
    for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++)
        if ((s->set & bit(sig)) && exti__signal_cell_read(&s->cells[sig]).thread == fork_thread)
            return true;
    return false;
}

/* Of other contexts nothing runs here. */
static void begin_child(void)
{
    uint64_t all = 0;

    atomic_store(&process, getpid());
    may_be_pending = 0; /* POSIX fork: nothing is */
    if (exti__fork_handlers_ctx())
        atomic_store(&is_child, true);
    for (unsigned i = 0; i < table_count; i++) {
        struct exti_signals *s = table[i];

        if (!s->ctx)
            continue;
        all |= s->program ? ~(uint64_t)0 : s->set | s->left | s->expected;
        s->left = s->expected = 0; /* POSIX fork: a child has nothing pending, and no timers */
        s->running = 0;
        s->commands = 0;
        if (forks(s)) {
            for (int sig = 1; sig <= EXTI_SIGNAL_MAX; sig++)
                atomic_store(&s->cells[sig].thread, exti__signal_thread());
            s->program = true;
            atomic_store(&is_child, true);
        } else {
            s->used = false;
            atomic_store(&s->ctx->signals, NULL);
            atomic_store(&s->ctx, NULL);
        }
    }
    install_all(all);
    end_fork();
}

static void install_fork_handlers(void)
{
    process = getpid();
    pthread_atfork(begin_fork, end_fork, begin_child);
}

void exti__signals_survive_forks(exti_signal_dispatcher function)
{
    dispatcher = function;
    pthread_once(&fork_once, install_fork_handlers);
}
