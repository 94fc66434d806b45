#include "loader/load/initialise.h"

#include "base/error.h"
#include "loader/process/constructors.h"
#include "loader/process/run_watched.h"
#include "loader/track/calls.h"
#include "loader/track/fork_lock.h"

/* Guards the initialisation of all modules, and all below.  Nothing is called while it is held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* On the stack of a thread that waits, or that has not woken yet. */
struct init_wait {
    unsigned long thread;
    const struct exti_module *m; /* the thread has a reference */
    const struct init_wait *next;
};

static const struct init_wait *waits;

/* ---- threads ---- */

static unsigned long threads;           /* that have got a number so far */
static _Thread_local unsigned long own; /* number of the thread, from 1 on */
static unsigned forks;                  /* between this process and the first */
static unsigned long survivor;          /* the thread that forked this process */

/* The lock is held, here and below. */
static unsigned long own_number(void)
{
    if (!own)
        own = ++threads;
    return own;
}

#ifdef _WIN32 /* which has no fork */
int exti__initialise_survive_forks(void)
{
    return 0;
}
#else
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_error;

static void lock_initialisation(void)
{
    exti__fork_lock(&lock);
}

static void unlock_initialisation(void)
{
    exti__fork_unlock(&lock);
}

/* In the child, which has but this thread. */
static void forget_other_threads(void)
{
    survivor = own_number();
    forks++;
    waits = NULL;
    pthread_cond_init(&changed, NULL);
    exti__fork_unlock(&lock);
}

static void install_initialisation_handlers(void)
{
    install_error =
        pthread_atfork(lock_initialisation, unlock_initialisation, forget_other_threads);
}

int exti__initialise_survive_forks(void)
{
    pthread_once(&once, install_initialisation_handlers);
    return install_error;
}
#endif

/* ---- waiting ---- */

static bool is_pending(const struct exti_module *m)
{
    return m->init.state < EXTI_INIT_DONE;
}

/* Whether the thread that was to run the constructors was left behind in another process. */
static bool is_orphaned(const struct exti_module *m)
{
    return is_pending(m) && m->init.forks != forks && m->init.thread != survivor;
}

static const struct init_wait *wait_of(unsigned long thread)
{
    const struct init_wait *w = waits;

    while (w && w->thread != thread)
        w = w->next;
    return w;
}

/* Whether the thread that runs the module's constructors is the calling one, or waits for it: a
 * constructor may open a library whose constructors, on another thread, open this one's. */
static bool depends_on_caller(const struct exti_module *m)
{
    while (is_pending(m) && m->init.thread != own_number()) {
        const struct init_wait *w = wait_of(m->init.thread);

        if (!w)
            return false;
        m = w->m;
    }
    return is_pending(m);
}

static bool must_wait(const struct exti_module *m)
{
    return is_pending(m) && !is_orphaned(m) && !depends_on_caller(m);
}

static void await_locked(const struct exti_module *m)
{
    struct init_wait w = {own_number(), m, waits};
    const struct init_wait **link = &waits;

    waits = &w;
    while (must_wait(m))
        pthread_cond_wait(&changed, &lock);
    while (*link != &w)
        link = (const struct init_wait **)&(*link)->next;
    *link = w.next;
}

static int check_initialised(const struct exti_module *m, struct exti_error *err)
{
    int rc = 0;

    if (m->init.state == EXTI_INIT_BROKEN)
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                        "a constructor of it, or of a library that it needs, has not returned: it "
                        "has ended its thread, thrown an exception or called longjmp");
    else if (is_orphaned(m))
        rc = exti__fail(err, EXTI_E_BUSY, EXTI_NO_OFFSET,
                        "this process was forked while another thread ran its constructors");
    if (rc)
        exti__error_file(err, m->original);
    return rc;
}

/* A call that waits holds no lock. */
int exti__await_initialised(const struct exti_module *m, struct exti_error *err)
{
    bool wait;
    int rc;

    exti__fork_lock(&lock);
    wait = must_wait(m);
    exti__fork_unlock(&lock);
    if (wait)
        exti__call_rest();
    exti__fork_lock(&lock);
    if (wait)
        await_locked(m);
    rc = check_initialised(m, err);
    exti__fork_unlock(&lock);
    if (wait)
        exti__call_resume();
    return rc;
}

/* ---- openings ---- */

void exti__initialise_later(const struct exti_opening *o, struct exti_module *m)
{
    exti__fork_lock(&lock);
    m->init = (struct exti_initialisation){EXTI_INIT_PENDING, false, own_number(), forks, o};
    exti__fork_unlock(&lock);
}

/* Whether it is the calling thread's to run the module's constructors now.  Those of an opening
 * that this one is nested in come now too, as they would with ld.so. */
static bool claim_module(struct exti_module *m)
{
    bool claimed;

    exti__fork_lock(&lock);
    claimed = m->init.state == EXTI_INIT_PENDING && m->init.thread == own_number();
    if (claimed) {
        m->init.state = EXTI_INIT_RUNNING;
        m->init.started = true;
    }
    exti__fork_unlock(&lock);
    return claimed;
}

/* After the last constructor of the opening, or after one that has not returned. */
static void finish_initialisation(const struct exti_opening *o)
{
    exti__fork_lock(&lock);
    for (size_t i = 0; i < o->ordered; i++) {
        struct exti_module *m = o->places[o->order[i]].m;

        if (!m || m->init.opening != o || !is_pending(m))
            continue;
        m->init.state = m->init.state == EXTI_INIT_RAN ? EXTI_INIT_DONE : EXTI_INIT_BROKEN;
    }
    pthread_cond_broadcast(&changed);
    exti__fork_unlock(&lock);
}

static void set_state(struct exti_module *m, enum exti_initialisation_state state)
{
    exti__fork_lock(&lock);
    m->init.state = state;
    exti__fork_unlock(&lock);
}

/* ---- constructors that do not return ---- */

/* One module's constructors while they run, on the stack of their thread. */
struct constructor_turn {
    struct exti_opening *o;
    struct exti_module *m;
    struct exti_call *call; /* which the opening belongs to */
};

/* The modules stay loaded until the context closes: the code of an exception is theirs. */
static void abandon_turn(const void *turn)
{
    const struct constructor_turn *t = turn;

    set_state(t->m, EXTI_INIT_BROKEN);
    finish_initialisation(t->o);
    exti__opening_free(t->o);
    exti__calls_abandon(t->call);
}

static void run_constructors(const void *constructors)
{
    exti__constructors_run(constructors);
}

/* No lock is held while constructors run: they may open libraries, and fork. */
static void take_turn(struct exti_opening *o, struct exti_module *m)
{
    struct constructor_turn turn = {o, m, exti__call_innermost()};
    struct exti_constructors constructors;

    pthread_mutex_lock(&m->ctx->lock);
    exti__constructors_take(&m->lib, &m->layout, &constructors);
    pthread_mutex_unlock(&m->ctx->lock);
    exti__call_rest();
    exti__run_watched(run_constructors, &constructors, abandon_turn, &turn);
    exti__call_resume();
    set_state(m, EXTI_INIT_RAN);
}

int exti__initialise(struct exti_opening *o, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < o->ordered && !rc; i++) {
        struct exti_module *m = o->places[o->order[i]].m;

        if (!m)
            continue;
        rc = exti__await_initialised(m, err);
        if (!rc && claim_module(m))
            take_turn(o, m);
    }
    finish_initialisation(o);
    return rc;
}
