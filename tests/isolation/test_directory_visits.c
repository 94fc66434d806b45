/* The directory and the umask of contexts, for threads of the program that enter. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <sched.h>
#include <sys/prctl.h>

#include "tests/isolation/directory_toy.h"

/* ---- threads of the program ---- */

ISO_CASE(a_thread_that_enters_is_taken_there_and_back)
{
    struct mover a, b, c;
    void *outside, *inside, *innermost;
    int descriptors;

    begin();
    a = mover(EXTI_CTX_ENTER_DIRECTORY);
    b = mover(EXTI_CTX_ENTER_DIRECTORY);
    c = mover(0);
    descriptors = count_in("/proc/self/fd");
    outside = exti_ctx_enter(a.ctx);
    want(is_at("home"));
    want_int(a.go(in_tmp("a")), 0);
    want_int(a.mask(077), 022);
    want(is_at("a"));
    inside = exti_ctx_enter(b.ctx);
    want(is_at("home"));
    want_int(mask_here(), 022);
    want_int(b.go("../b"), 0);
    want_int(b.mask(002), 022);
    innermost = exti_ctx_enter(c.ctx); /* which moves nobody */
    want(is_at("home"));
    want_int(mask_here(), 022);
    want_int(c.go("../c"), 0);
    exti_ctx_leave(innermost);
    want(is_at("b"));
    want_int(mask_here(), 002);
    exti_ctx_leave(inside);
    want(is_at("a"));
    want_int(mask_here(), 077);
    exti_ctx_leave(outside);
    want(is_at("c"));
    want_int(mask_here(), 022);
    for (int i = 0; i < 1000; i++) {
        outside = exti_ctx_enter(i & 1 ? a.ctx : b.ctx);
        want(i > 2 || is_at(i & 1 ? "a" : "b"));
        exti_ctx_leave(outside);
    }
    want_int(count_in("/proc/self/fd"), descriptors);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
    iso_close_ctx(c.ctx);
    want(is_at("c"));
}

ISO_CASE(control_a_thread_that_enters_another_context_moves_the_process)
{
    struct mover a;
    struct thread other;
    struct errand at = {&a, "a", 077, NULL};

    begin();
    a = mover(0);
    start(&other, NULL);
    exti_ctx_enter(a.ctx);
    move(&at);
    exti_ctx_leave(NULL);
    want(is_at("a"));
    tell(&other, look, &at);
    end(&other);
    iso_close_ctx(a.ctx);
}

static void enter(void *arg)
{
    struct errand *e = arg;

    exti_ctx_enter(e->m ? e->m->ctx : NULL);
}

/* Both ways between a thread that is the context's and one of the program's. */
ISO_CASE(what_one_thread_does_all_of_the_context_see)
{
    struct mover m;
    struct thread first, visitor, started;
    struct errand at = {&m, "a", 077, &started}, home = {&m, "home", 022, NULL}, out = {0};

    begin();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    start(&first, NULL);
    start(&visitor, NULL);
    tell(&first, own, &at);
    tell(&visitor, enter, &at);
    tell(&visitor, look, &home);
    tell(&visitor, start_child, &at); /* by the visitor, and the context's own */
    tell(&visitor, move, &at);
    tell(&visitor, look, &at);
    tell(&first, look, &at);
    tell(&started, look, &at);
    tell(&visitor, enter, &out);
    tell(&visitor, look, &home);
    tell(&started, look, &at);
    at.folder = "b";
    at.mask = 007;
    tell(&started, move, &at);
    tell(&first, look, &at);
    tell(&visitor, look, &home);
    tell(&visitor, enter, &at);
    tell(&visitor, look, &at);
    tell(&visitor, enter, &out);
    end(&started);
    end(&visitor);
    end(&first);
    want(is_at("home"));
    iso_close_ctx(m.ctx);
}

/* Without a thread that is the context's from the beginning. */
ISO_CASE(threads_that_copies_start_on_a_visitor_are_the_contexts_own)
{
    struct mover m, other;
    struct thread started, later, others;
    struct errand at = {&m, "a", 077, &started}, home = {&other, "home", 022, &others};
    int threads;

    begin();
    start(&others, NULL); /* with which a sanitizer starts one of its own */
    end(&others);
    threads = count_settled_in("/proc/self/task");
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    other = mover(0);
    exti_ctx_enter(m.ctx);
    move(&at);
    start_child(&at);
    start_child(&home); /* another context's, which is not moved */
    exti_ctx_leave(NULL);
    tell(&started, look, &at);
    tell(&others, look, &home);
    at.folder = "b";
    at.child = &later;
    tell(&started, move, &at);
    exti_ctx_enter(m.ctx);
    look(&at);
    start_child(&at);
    at.folder = "c";
    move(&at);
    exti_ctx_leave(NULL);
    tell(&later, look, &at);
    tell(&started, look, &at);
    tell(&others, look, &home);
    want(is_at("home"));
    end(&later);
    end(&started);
    end(&others);
    iso_close_ctx(m.ctx);
    iso_close_ctx(other.ctx);
    want_count_in("/proc/self/task", threads);
}

static void check_inherited(void *arg)
{
    char name[16];
    sigset_t blocked;
    cpu_set_t processors;

    (void)arg;
    want_int(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    want_int(sigismember(&blocked, SIGUSR1), 1);
    want_int(sigismember(&blocked, SIGUSR2), 0);
    want_int(prctl(PR_GET_NAME, name), 0);
    want(strcmp(name, "visitor") == 0);
    want_int(sched_getaffinity(0, sizeof processors, &processors), 0);
    want_int(CPU_COUNT(&processors), 1);
}

ISO_CASE(such_a_thread_inherits_what_others_do)
{
    struct mover m;
    struct thread started, second;
    cpu_set_t all, one;
    sigset_t usr1;

    begin();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(m.ctx);
    start(&started, &m); /* before what follows */
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    want_int(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0);
    want_int(prctl(PR_SET_NAME, "visitor"), 0);
    want_int(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    want_int(sched_setaffinity(0, sizeof one, &one), 0);
    start(&second, &m);
    tell(&second, check_inherited, NULL);
    exti_ctx_leave(NULL);
    end(&second);
    end(&started);
    iso_close_ctx(m.ctx);
}

/* A thread that the program starts on one that was in a context is not moved with it. */
ISO_CASE(threads_that_the_program_starts_stay)
{
    struct mover m;
    struct thread before, during;
    struct errand at = {&m, "a", 077, NULL}, home = {&m, "home", 022, NULL};

    begin();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(m.ctx);
    move(&at);
    exti_ctx_leave(NULL);
    start(&before, NULL);
    exti_ctx_enter(m.ctx);
    start(&during, NULL);
    tell(&before, look, &home);
    exti_ctx_leave(NULL);
    tell(&during, look, &at);
    end(&before);
    end(&during);
    iso_close_ctx(m.ctx);
}

ISO_CASE(errors_are_the_systems)
{
    struct mover m;
    int fd;

    begin();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(m.ctx);
    errno = 0;
    want(m.go("nowhere") == -1 && errno == ENOENT);
    want(m.go("") == -1 && errno == ENOENT);
    want(m.go("in-home") == -1 && errno == ENOTDIR);
    want(m.go_to(-1) == -1 && errno == EBADF);
    want(m.go_to(AT_FDCWD) == -1 && errno == EBADF);
    fd = open("in-home", O_RDONLY);
    want(fd >= 0 && m.go_to(fd) == -1 && errno == ENOTDIR);
    want(is_at("home"));
    want_int(close(fd), 0);
    fd = open("../a", O_RDONLY | O_DIRECTORY);
    want_int(m.go_to(fd), 0);
    want_int(close(fd), 0);
    exti_ctx_leave(NULL);
    exti_ctx_enter(m.ctx);
    want(is_at("a"));
    /* A folder that is gone can still be left, and come back to. */
    want_int(mkdir("gone", 0755), 0);
    want_int(m.go("gone"), 0);
    want_int(rmdir("../gone"), 0);
    exti_ctx_leave(NULL);
    want(is_at("home"));
    exti_ctx_enter(m.ctx);
    want(!getcwd((char[4096]){0}, 4096) && errno == ENOENT);
    want_int(m.go(in_tmp("b")), 0);
    want(is_at("b"));
    exti_ctx_leave(NULL);
    iso_close_ctx(m.ctx);
}

static void close_all(void)
{
    for (int fd = 3; fd < 1000; fd++)
        close(fd);
}

/* Its numbers are then the program's. */
ISO_CASE(a_program_that_closes_all_descriptors_loses_nothing_of_its_own)
{
    struct mover m;
    struct stat st;
    int fds[8];

    begin();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(m.ctx);
    close_all();
    for (int i = 0; i < 8; i++)
        want((fds[i] = open(in_tmp(i % 2 ? "b" : "home/in-home"), i % 2 ? O_PATH : O_RDONLY)) >= 0);
    want_int(m.go(in_tmp("a")), 0);
    want(is_at("a"));
    exti_ctx_leave(NULL);
    want(is_at("a")); /* where it has come from nobody knows any more */
    for (int i = 0; i < 8; i++)
        want(fstat(fds[i], &st) == 0 && S_ISDIR(st.st_mode) == (i % 2));
    _exit(0); /* the context's own files are gone as well */
}

ISO_CASE(a_context_moves_on_after_a_program_has_closed_all_descriptors)
{
    struct mover m;

    begin();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(m.ctx);
    for (int i = 0; i < 3; i++) {
        close_all();
        want_int(m.go(in_tmp("a")), 0);
        want(is_at("a"));
        want_int(m.go(in_tmp("b")), 0);
        want(is_at("b"));
    }
    exti_ctx_leave(NULL);
    want_int(chdir(in_tmp("home")), 0);
    exti_ctx_enter(m.ctx);
    want(is_at("b"));
    exti_ctx_leave(NULL);
    want(is_at("home"));
    _exit(0);
}

static void *mask_when_cancelled(void *arg)
{
    struct mover *m = arg;

    exti_ctx_enter(m->ctx);
    want_int(pthread_cancel(pthread_self()), 0);
    m->mask(077);
    want_int(m->go(in_tmp("a")), 0);
    exti_ctx_leave(NULL);
    exti_ctx_enter(m->ctx);
    m->mask(007);
    pthread_testcancel();
    return NULL;
}

/* POSIX: none of these is a cancellation point. */
ISO_CASE(a_thread_is_not_cancelled_where_it_moves)
{
    struct mover m;
    struct thread started;
    pthread_t t;
    void *result;

    begin();
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(m.ctx);
    start(&started, &m); /* so that there is somebody to be told */
    exti_ctx_leave(NULL);
    want_int(pthread_create(&t, NULL, mask_when_cancelled, &m), 0);
    want_int(pthread_join(t, &result), 0);
    want(result == PTHREAD_CANCELED);
    exti_ctx_enter(m.ctx);
    want(is_at("a"));
    want_int((int)m.mask(022), 007);
    exti_ctx_leave(NULL);
    end(&started);
    iso_close_ctx(m.ctx);
}

static void *look_at_mask(void *arg)
{
    sigset_t blocked;

    want_int(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    *(int *)arg = sigismember(&blocked, SIGUSR1);
    return NULL;
}

#if __GLIBC_PREREQ(2, 32)
ISO_CASE(such_a_thread_has_the_signal_mask_of_its_attributes)
{
    struct mover m;
    pthread_attr_t attr;
    sigset_t usr1;
    pthread_t t;
    int blocked = -1;

    begin();
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    want_int(pthread_attr_init(&attr), 0);
    want_int(pthread_attr_setsigmask_np(&attr, &usr1), 0);
    m = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(m.ctx);
    want_int(m.start_by(&t, &attr, look_at_mask, &blocked), 0);
    want_int(pthread_join(t, NULL), 0);
    want_int(blocked, 1);
    want_int(m.start_by(&t, NULL, look_at_mask, &blocked), 0);
    want_int(pthread_join(t, NULL), 0);
    want_int(blocked, 0);
    exti_ctx_leave(NULL);
    pthread_attr_destroy(&attr);
    iso_close_ctx(m.ctx);
}
#define MASKS cmocka_unit_test(such_a_thread_has_the_signal_mask_of_its_attributes),
#else
#define MASKS
#endif

static void own_and_close(void *arg)
{
    struct errand *e = arg;

    own(e);
    move(e);
    iso_close_ctx(e->m->ctx);
}

/* Also of one whose copies stay mapped. */
ISO_CASE(the_own_thread_of_a_closed_context_may_become_anothers)
{
    for (int kept = 0; kept < 2; kept++) {
        const uint32_t flags = EXTI_CTX_ENTER_DIRECTORY | (kept ? EXTI_CTX_KEEP : 0);
        struct mover a, b;
        struct thread t;
        struct errand in_a = {&a, "a", 077, NULL}, in_b = {&b, "b", 002, NULL};

        if (!kept)
            begin();
        a = mover(flags);
        b = mover(flags);
        start(&t, NULL);
        tell(&t, own_and_close, &in_a);
        tell(&t, own, &in_b);
        tell(&t, move, &in_b);
        tell(&t, look, &in_b);
        exti_ctx_enter(b.ctx);
        want(is_at("b"));
        exti_ctx_leave(NULL);
        want(is_at("home"));
        end(&t);
        iso_close_ctx(b.ctx);
    }
}

ISO_CASE(threads_of_other_contexts_are_refused)
{
    struct mover a, b;
    struct thread first, second;
    struct errand at = {&a, "a", 077, NULL};
    struct exti_error err = {0};

    begin();
    a = mover(EXTI_CTX_ENTER_DIRECTORY);
    b = mover(0);
    start(&first, NULL);
    start(&second, NULL);
    tell(&first, own, &at);
    tell(&first, own, &at);
    want_exti(exti_ctx_own_thread(a.ctx, 0, &err), EXTI_E_BUSY, &err);
    want_exti(exti_ctx_own_thread(NULL, 0, &err), EXTI_E_ARG, &err);
    want_exti(exti_ctx_own_thread(b.ctx, 0, &err), 0, &err);
    want_exti(exti_ctx_own_thread(a.ctx, 1, &err), EXTI_E_BUSY, &err);
    /* It has its own directory wherever it is. */
    want_int(b.go("../b"), 0);
    exti_ctx_enter(a.ctx);
    want(is_at("b"));
    exti_ctx_leave(NULL);
    at.folder = "home";
    at.mask = 022;
    tell(&second, look, &at);
    end(&first);
    end(&second);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
    /* That context is gone, so it is free. */
    a = mover(EXTI_CTX_ENTER_DIRECTORY);
    exti_ctx_enter(a.ctx);
    want_int(a.go("../c"), 0);
    exti_ctx_leave(NULL);
    want(is_at("b"));
    want_exti(exti_ctx_own_thread(a.ctx, 0, &err), 0, &err);
    want(is_at("c"));
    iso_close_ctx(a.ctx);
}

/* ---- many at once ---- */

static struct mover crowd[2];

static void *look_around(void *m)
{
    const char *at = ((const struct mover *)m)->where();

    want(strcmp(at, m == crowd ? "a" : "b") == 0);
    return NULL;
}

static void *come_and_go(void *arg)
{
    const unsigned seed = (unsigned)(uintptr_t)arg;
    unsigned n = seed;

    for (int i = 0; i < 200; i++, n = n * 1103515245 + 12345) {
        const struct mover *m = &crowd[n >> 8 & 1];
        void *before = exti_ctx_enter(m->ctx);
        pthread_t t;

        want_int(m->go(in_tmp(m == crowd ? "a" : "b")), 0);
        want(is_at(m == crowd ? "a" : "b"));
        m->mask(m == crowd ? 077 : 002);
        if ((n >> 9 & 7) == 0) {
            want_int(m->start(&t, look_around, (void *)m), 0);
            want_int(pthread_join(t, NULL), 0);
        }
        if ((n >> 12 & 15) == 0)
            want_int(m->ask(BY_FORK, m == crowd ? "in-a" : "in-b"), 0);
        exti_ctx_leave(before);
        want(is_at("home"));
    }
    return NULL;
}

ISO_CASE(many_threads_come_and_go)
{
    pthread_t t[4];
    int descriptors;

    begin();
    for (int i = 0; i < 2; i++)
        crowd[i] = mover(EXTI_CTX_ENTER_DIRECTORY);
    descriptors = count_in("/proc/self/fd");
    for (uintptr_t i = 0; i < 4; i++)
        want_int(pthread_create(&t[i], NULL, come_and_go, (void *)(i * 7919 + 1)), 0);
    for (int i = 0; i < 4; i++)
        want_int(pthread_join(t[i], NULL), 0);
    want(is_at("home"));
    want_int(mask_here(), 022);
    want_int(count_in("/proc/self/fd"), descriptors);
    for (int i = 0; i < 2; i++)
        iso_close_ctx(crowd[i].ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_enters_is_taken_there_and_back),
        cmocka_unit_test(control_a_thread_that_enters_another_context_moves_the_process),
        cmocka_unit_test(what_one_thread_does_all_of_the_context_see),
        cmocka_unit_test(threads_that_copies_start_on_a_visitor_are_the_contexts_own),
        cmocka_unit_test(such_a_thread_inherits_what_others_do),
        cmocka_unit_test(threads_that_the_program_starts_stay),
        cmocka_unit_test(errors_are_the_systems),
        cmocka_unit_test(a_program_that_closes_all_descriptors_loses_nothing_of_its_own),
        cmocka_unit_test(a_context_moves_on_after_a_program_has_closed_all_descriptors),
        cmocka_unit_test(a_thread_is_not_cancelled_where_it_moves),
        MASKS cmocka_unit_test(the_own_thread_of_a_closed_context_may_become_anothers),
        cmocka_unit_test(threads_of_other_contexts_are_refused),
        cmocka_unit_test(many_threads_come_and_go),
    };

    return cmocka_run_group_tests_name("isolation/directory_visits", tests, NULL, NULL);
}
