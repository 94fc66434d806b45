/* Forks and the locks of libraries that contexts share. */
#define _GNU_SOURCE
#include "loader/track/library_locks.h"

#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "tests/isolation/build.h"

/* How the library takes its mutex, its read-write lock, and waits for its condition. */
enum way { MUTEXES = 4, WAYS = 12, WAITS = 3 };

static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <pthread.h>\n"
    "#include <time.h>\n"
    "static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;\n"
    "static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;\n"
    "static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;\n"
    "static int awake, waiting;\n"
    "static struct timespec later(clockid_t c)\n"
    "{ struct timespec t; clock_gettime(c, &t); t.tv_sec += 600; return t; }\n"
    "int take(int way)\n"
    "{\n"
    "    struct timespec t = later(CLOCK_REALTIME), m = later(CLOCK_MONOTONIC);\n"
    "    switch (way) {\n"
    "    case 0: return pthread_mutex_lock(&mutex);\n"
    "    case 1: return pthread_mutex_trylock(&mutex);\n"
    "    case 2: return pthread_mutex_timedlock(&mutex, &t);\n"
    "    case 3: return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &m);\n"
    "    case 4: return pthread_rwlock_rdlock(&rw);\n"
    "    case 5: return pthread_rwlock_wrlock(&rw);\n"
    "    case 6: return pthread_rwlock_tryrdlock(&rw);\n"
    "    case 7: return pthread_rwlock_trywrlock(&rw);\n"
    "    case 8: return pthread_rwlock_timedrdlock(&rw, &t);\n"
    "    case 9: return pthread_rwlock_timedwrlock(&rw, &t);\n"
    "    case 10: return pthread_rwlock_clockrdlock(&rw, CLOCK_MONOTONIC, &m);\n"
    "    default: return pthread_rwlock_clockwrlock(&rw, CLOCK_MONOTONIC, &m);\n"
    "    }\n"
    "}\n"
    "int give(int way)\n"
    "{ return way < 4 ? pthread_mutex_unlock(&mutex) : pthread_rwlock_unlock(&rw); }\n"
    "static int wait_once(int way)\n"
    "{\n"
    "    struct timespec t = later(CLOCK_REALTIME), m = later(CLOCK_MONOTONIC);\n"
    "    if (way == 0) return pthread_cond_wait(&cond, &mutex);\n"
    "    if (way == 1) return pthread_cond_timedwait(&cond, &mutex, &t);\n"
    "    return pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &m);\n"
    "}\n"
    "static void unlock_it(void *m) { pthread_mutex_unlock(m); }\n"
    "int wait_awake(int way)\n"
    "{\n"
    "    int rc = pthread_mutex_lock(&mutex);\n"
    "    pthread_cleanup_push(unlock_it, &mutex);\n"
    "    waiting++;\n"
    "    while (!awake && !rc) rc = wait_once(way);\n"
    "    pthread_cleanup_pop(1);\n"
    "    return rc;\n"
    "}\n"
    "int count_waits(void)\n"
    "{\n"
    "    int n;\n"
    "    pthread_mutex_lock(&mutex);\n"
    "    n = waiting;\n"
    "    pthread_mutex_unlock(&mutex);\n"
    "    return n;\n"
    "}\n"
    "int wake(int on)\n"
    "{\n"
    "    pthread_mutex_lock(&mutex);\n"
    "    awake = on;\n"
    "    pthread_cond_broadcast(&cond);\n"
    "    pthread_mutex_unlock(&mutex);\n"
    "    return 0;\n"
    "}\n"
    "#ifdef ALLOCATOR\n"
    "#include <stddef.h>\n"
    "void *malloc(size_t n) { (void)n; return 0; }\n"
    "#endif\n";

/* The library as a context and the program use it; each test has one of its own. */
struct library {
    struct exti_ctx *ctx; /* NULL: none uses it */
    void *handle;
    int (*take)(int way);
    int (*give)(int way);
    int (*wait)(int way);
    int (*count_waits)(void);
    int (*wake)(int on);
};

static struct library open_library(const char *name, const char *flags)
{
    struct library l = {0};

    iso_build(source, iso_text("%s", name), iso_text("-pthread -Wl,-soname,%s %s", name, flags));
    l.handle = dlopen(in_tmp(name), RTLD_NOW);
    want(l.handle);
    *(void **)&l.take = dlsym(l.handle, "take");
    *(void **)&l.give = dlsym(l.handle, "give");
    *(void **)&l.wait = dlsym(l.handle, "wait_awake");
    *(void **)&l.count_waits = dlsym(l.handle, "count_waits");
    *(void **)&l.wake = dlsym(l.handle, "wake");
    return l;
}

/* Opens a context with a module that needs it. */
static void use_library(struct library *l, const char *name, unsigned flags)
{
    const struct exti_rule rule = {name, 1};
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);

    iso_build("int n;\n", iso_text("user-%s", name),
              iso_text("-Wl,--no-as-needed '%s' -Wl,-rpath,'%s'", in_tmp(name), iso_tmp));
    opts.flags |= flags;
    opts.rules = &rule;
    opts.rule_count = 1;
    l->ctx = iso_open_opts(&opts);
    iso_load(l->ctx, in_tmp(iso_text("user-%s", name)));
}

static struct library share_library(const char *name, const char *flags)
{
    struct library l = open_library(name, flags);

    use_library(&l, name, 0);
    return l;
}

static void close_library(struct library *l)
{
    if (l->ctx)
        iso_close_ctx(l->ctx);
    dlclose(l->handle);
}

/* ---- threads ---- */

struct holder {
    const struct library *l;
    int way;
    unsigned each; /* microseconds for which it holds the lock */
    pthread_t thread;
    atomic_int has; /* how often it has had it */
    atomic_int stop;
};

static void *hold_again_and_again(void *arg)
{
    struct holder *h = arg;

    while (!h->stop) {
        if (h->l->take(h->way))
            continue;
        h->has++;
        usleep(h->each);
        h->l->give(h->way);
    }
    return NULL;
}

/* Comes as often as it can, and so at any moment of a fork. */
static void *come_and_go(void *arg)
{
    struct holder *h = arg;

    while (!h->stop) {
        h->has += h->l->take(h->way) == 0;
        h->l->give(h->way);
    }
    return NULL;
}

static void *hold_half_the_time(void *arg)
{
    struct holder *h = arg;

    while (!h->stop) {
        h->has += h->l->take(h->way) == 0;
        usleep(h->each);
        h->l->give(h->way);
        usleep(h->each);
    }
    return NULL;
}

static void *hold_until_stopped(void *arg)
{
    struct holder *h = arg;

    h->l->take(h->way);
    h->has = 1;
    while (!h->stop)
        usleep(100);
    h->l->give(h->way);
    return NULL;
}

static void begin(struct holder *h, void *(*function)(void *))
{
    want_int(pthread_create(&h->thread, NULL, function, h), 0);
    while (!h->has)
        usleep(100);
}

static void end(struct holder *h)
{
    h->stop = 1;
    want_int(pthread_join(h->thread, NULL), 0);
}

/* Whether a child that is forked now gets the lock of `way`, for writing. */
static int child_gets(const struct library *l, int way, unsigned patience)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        const int plain = way < MUTEXES ? 0 : 5;

        signal(SIGALRM, SIG_DFL);
        alarm(patience);
        _exit(l->take(plain) || l->give(plain));
    }
    want(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status == 0;
}

/* GCC 12's thread sanitizer does not know the functions that take a clock. */
#ifdef __SANITIZE_THREAD__
static bool can_be_checked(int way)
{
    return way != 3 && way < 10;
}
#else
static bool can_be_checked(int way)
{
    (void)way;
    return true;
}
#endif

/* ---- tests ---- */

ISO_CASE(a_child_finds_no_lock_taken)
{
    struct library l = share_library("liball.so", "");

    for (int way = 0; way < WAYS; way++) {
        struct holder h = {.l = &l, .way = way, .each = 1000};

        if (!can_be_checked(way))
            continue;
        begin(&h, hold_again_and_again);
        for (int i = 0; i < 30; i++)
            want(child_gets(&l, way, 60));
        end(&h);
        want_int(exti__library_locks_held(), 0);
    }
    close_library(&l);
}

ISO_CASE(control_where_no_context_uses_the_library_it_does)
{
    struct library l = open_library("libhost.so", "");

    for (int way = 0; way < WAYS; way += MUTEXES) {
        struct holder h = {.l = &l, .way = way, .each = 10000};
        int got = 1;

        begin(&h, hold_again_and_again);
        for (int i = 0; i < 100 && got; i++)
            got = child_gets(&l, way, 1);
        end(&h);
        want(!got);
    }
    close_library(&l);
}

ISO_CASE(many_threads_hold_locks_and_fork)
{
    struct library l = share_library("libmany.so", "");
    struct holder h[4];

    for (int i = 0; i < 4; i++) {
        h[i] = (struct holder){.l = &l, .way = i % 2 ? 0 : 5, .each = (unsigned)i * 50};
        begin(&h[i], hold_again_and_again);
    }
    for (int i = 0; i < 200; i++)
        want(child_gets(&l, i % 2 ? 0 : 5, 60));
    for (int i = 0; i < 4; i++)
        end(&h[i]);
    want_int(exti__library_locks_held(), 0);
    close_library(&l);
}

/* Who comes while a fork looks around holds no lock, and so is none of those that have held one for
 * long, for which the next fork does not wait. */
ISO_CASE(who_comes_during_a_fork_does_not_spoil_the_next)
{
    struct library l = share_library("libbusy.so", "");
    struct holder comes = {.l = &l, .way = 4}, holds = {.l = &l, .way = 0, .each = 1000};

    begin(&comes, come_and_go);
    begin(&holds, hold_half_the_time);
    for (int i = 0; i < 3000; i++)
        want(child_gets(&l, 0, 20));
    end(&comes);
    end(&holds);
    want_int(exti__library_locks_held(), 0);
    close_library(&l);
}

ISO_CASE(locks_of_a_library_that_was_opened_late_are_known)
{
    struct library l = open_library("liblate.so", "");

    /* Taken before the context came, it was not counted. */
    want_int(l.take(0), 0);
    use_library(&l, "liblate.so", EXTI_CTX_PROCESS_ENVIRONMENT);
    want_int(exti__library_locks_held(), 0);
    want_int(l.give(0), 0);
    want_int(exti__library_locks_held(), 0);
    want_int(l.take(0), 0);
    want_int(exti__library_locks_held(), 1);
    want_int(l.give(0), 0);
    want_int(exti__library_locks_held(), 0);
    close_library(&l);
}

ISO_CASE(locks_that_are_not_had_are_not_counted)
{
    struct library l = share_library("libhad.so", "");
    struct holder h = {.l = &l, .way = 0};
    struct holder w = {.l = &l, .way = 5};

    begin(&h, hold_until_stopped);
    begin(&w, hold_until_stopped);
    want_int(exti__library_locks_held(), 2);
    want_int(l.take(1), EBUSY);
    want_int(l.take(6), EBUSY);
    want_int(l.take(7), EBUSY);
    want_int(exti__library_locks_held(), 2);
    end(&h);
    end(&w);
    /* A thread counts once, whatever it holds. */
    want_int(l.take(0) + l.take(4) + l.take(4), 0);
    want_int(exti__library_locks_held(), 1);
    want_int(l.give(4) + l.give(0), 0);
    want_int(exti__library_locks_held(), 1);
    want_int(l.give(4), 0);
    want_int(exti__library_locks_held(), 0);
    close_library(&l);
}

ISO_CASE(a_fork_does_not_wait_for_ever)
{
    struct library l = share_library("liblong.so", "");
    struct holder h = {.l = &l, .way = 0}, short_one = {.l = &l, .way = 5, .each = 1000};

    begin(&h, hold_until_stopped);
    begin(&short_one, hold_again_and_again);
    /* It waits for the short one all the same. */
    for (int i = 0; i < 20; i++)
        want(child_gets(&l, 5, 60));
    want(!child_gets(&l, 0, 1));
    end(&short_one);
    end(&h);
    want(child_gets(&l, 0, 60));
    close_library(&l);
}

ISO_CASE(who_forks_with_a_lock_has_it_in_the_child)
{
    struct library l = share_library("libown.so", "");
    pid_t pid;

    want_int(l.take(0), 0);
    pid = fork();
    if (pid == 0) {
        alarm(60);
        _exit(exti__library_locks_held() != 1 || l.take(1) != EBUSY || l.give(0) ||
              exti__library_locks_held() || l.take(0) || l.give(0));
    }
    want(iso_join(pid));
    want_int(exti__library_locks_held(), 1);
    want_int(l.give(0), 0);
    want_int(exti__library_locks_held(), 0);
    close_library(&l);
}

static const struct library *handlers_library;

static void take_all(void)
{
    if (handlers_library)
        handlers_library->take(0);
}

static void give_all(void)
{
    if (handlers_library)
        handlers_library->give(0);
}

ISO_CASE(fork_handlers_can_take_locks)
{
    struct library l = share_library("libhandlers.so", "");
    struct holder h = {.l = &l, .way = 0, .each = 1000};

    want_int(pthread_atfork(take_all, give_all, give_all), 0);
    handlers_library = &l;
    begin(&h, hold_again_and_again);
    for (int i = 0; i < 20; i++)
        want(child_gets(&l, 0, 60));
    end(&h);
    handlers_library = NULL;
    want_int(exti__library_locks_held(), 0);
    close_library(&l);
}

static void *wait_until_awake(void *arg)
{
    struct holder *h = arg;

    h->has = 1;
    return (void *)(intptr_t)h->l->wait(h->way);
}

/* Who gets the mutex after the thread has counted itself finds it waiting. */
static void begin_waiting(struct holder *h)
{
    const int before = h->l->count_waits();

    begin(h, wait_until_awake);
    while (h->l->count_waits() == before)
        usleep(1000);
}

ISO_CASE(who_waits_for_a_condition_holds_nothing)
{
    struct library l = share_library("libcond.so", "");

    for (int way = 0; way < WAITS; way++) {
        struct holder h = {.l = &l, .way = way}, cancelled = h;
        void *result;

        begin_waiting(&h);
        begin_waiting(&cancelled);
        want_int(exti__library_locks_held(), 0);
        want(child_gets(&l, 0, 60));
        want_int(pthread_cancel(cancelled.thread), 0);
        want_int(pthread_join(cancelled.thread, &result), 0);
        want(result == PTHREAD_CANCELED);
        want_int(l.wake(1), 0);
        want_int(pthread_join(h.thread, &result), 0);
        want(!result);
        want_int(exti__library_locks_held(), 0);
        want_int(l.wake(0), 0);
    }
    close_library(&l);
}

ISO_CASE(locks_of_allocators_are_left_alone)
{
    struct library l = share_library("liballoc.so", "-DALLOCATOR");

    want_int(l.take(0), 0);
    want_int(exti__library_locks_held(), 0);
    want_int(l.give(0), 0);
    close_library(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_finds_no_lock_taken),
        cmocka_unit_test(control_where_no_context_uses_the_library_it_does),
        cmocka_unit_test(many_threads_hold_locks_and_fork),
        cmocka_unit_test(who_comes_during_a_fork_does_not_spoil_the_next),
        cmocka_unit_test(locks_of_a_library_that_was_opened_late_are_known),
        cmocka_unit_test(locks_that_are_not_had_are_not_counted),
        cmocka_unit_test(a_fork_does_not_wait_for_ever),
        cmocka_unit_test(who_forks_with_a_lock_has_it_in_the_child),
        cmocka_unit_test(fork_handlers_can_take_locks),
        cmocka_unit_test(who_waits_for_a_condition_holds_nothing),
        cmocka_unit_test(locks_of_allocators_are_left_alone),
    };

    return cmocka_run_group_tests_name("isolation/library_locks", tests, NULL, NULL);
}
