/* Contexts that have ended, or are about to: what threads, signals and destructors still come, and
 * a close meanwhile. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <sched.h>
#include <sys/wait.h>

#include "tests/isolation/ends_toy.h"

/* ---- closing one that a thread is about to end ---- */

static void close_ended(struct program *p)
{
    size_t left = 0;

    want_int(exti_ctx_close_report(p->ctx, NULL, NULL, &left, NULL), 0);
    want(left >= 1);
}

/* Ends it on another thread. */
static void cut_off(struct program *p, int status)
{
    static struct task t[4];
    static int n;
    struct task *own = &t[n++];

    *own = (struct task){.p = p, .run = end_here, .way = 1, .status = status};
    start(own);
    await_end(p, status);
}

static void open_with_pipes(struct program *p, int out[2], int in[2])
{
    open_pipe(out);
    open_pipe(in);
    want_int(fcntl(in[0], F_SETFL, 0), 0); /* it waits */
    open_program(p);
    *p->out = out[1];
    *p->in = in[0];
}

static void put(int fd)
{
    want_int(write(fd, "x", 1), 1);
}

/* Another thread ends it while `t` runs its exit handlers. */
static void cut_off_in_handler(struct program *p, struct task *t, int out[2], int in[2])
{
    open_with_pipes(p, out, in);
    p->register_handler(6);
    start(t);
    await_text(out[0], "s");
    cut_off(p, 2);
}

ISO_CASE(a_thread_in_exit_stops_when_the_context_is_closed)
{
    static struct program p;
    static struct task t = {.p = &p, .run = end_here, .way = 0, .status = 1};
    int out[2], in[2];

    cut_off_in_handler(&p, &t, out, in);
    close_ended(&p);
    put(in[1]);
    await_text(out[0], "S");
    want_parked(&t);
    want_int(p.ends, 1);
}

ISO_CASE(control_a_thread_in_exit_ends_an_open_one)
{
    static struct program p;
    static struct task t = {.p = &p, .run = end_here, .way = 0, .status = 1};
    int out[2], in[2];

    cut_off_in_handler(&p, &t, out, in);
    put(in[1]);
    await_end(&p, 2); /* the first one's */
    want_int(p.ends, 2);
}

ISO_CASE(a_thread_in_exec_stops_when_the_context_is_closed)
{
    static struct program p;
    static struct task t;
    int out[2], in[2];

    open_with_pipes(&p, out, in);
    want_int(fcntl(in[0], F_SETFD, 0), 0);
    want_int(fcntl(out[1], F_SETFD, 0), 0);
    t = exec_of(&p, 0,
                iso_text("printf r >&%d; read line <&%d; printf e >&%d", out[1], in[0], out[1]));
    start(&t);
    await_text(out[0], "r");
    cut_off(&p, 2);
    close_ended(&p);
    want_int(write(in[1], "\n", 1), 1);
    await_text(out[0], "e");
    want_parked(&t);
    want_int(p.ends, 1);
}

static void end_later(const struct task *t)
{
    t->p->end_later(t->way, t->status);
}

ISO_CASE(a_thread_that_is_left_ends_nothing)
{
    static struct program p;
    static struct task t = {.p = &p, .run = end_later, .way = 1, .status = 42};
    int out[2], in[2];

    open_with_pipes(&p, out, in);
    start(&t);
    await_text(out[0], "l");
    cut_off(&p, 2);
    close_ended(&p);
    put(in[1]);
    want_parked(&t);
    want_int(p.ends, 1);
}

static void end_after_a_close(void)
{
    static struct program p;

    open_with(&p, EXTI_CTX_KEEP, &hooks);
    exti_ctx_close(p.ctx, NULL);
    p.end(1, 42);
}

ISO_CASE(control_the_code_of_one_that_was_closed_alive_ends_the_process)
{
    want_int(in_child(end_after_a_close), 42 << 8);
}

/* ---- signals ---- */

static void end_with_a_pending_signal(void)
{
    static struct program p, other;

    open_program(&p);
    open_program(&other);
    want_int(p.count(SIGUSR1), 0);
    p.block(SIGUSR1, SIG_BLOCK);
    want_int(p.raise(SIGUSR1), 0);
    cut_off(&p, 2);
    p.block(SIGUSR1, SIG_UNBLOCK);
    want_int(*p.ticks, 0);
    close_ended(&p);
    _exit(0);
}

static void end_and_raise(void)
{
    static struct program p;

    open_program(&p);
    want_int(p.count(SIGUSR1), 0);
    cut_off(&p, 2);
    raise(SIGUSR1);
}

ISO_CASE(a_signal_that_was_pending_ends_nothing)
{
    want_int(in_child(end_with_a_pending_signal), 0);
}

ISO_CASE(control_one_that_comes_then_ends_the_process)
{
    want_int(in_child(end_and_raise), SIGUSR1);
}

#ifndef __SANITIZE_THREAD__ /* which has signals wait for the end of waitid */
static void alarm_here(const struct task *t)
{
    t->p->alarm_and_exec("/bin/sleep");
}

ISO_CASE(an_alarm_reaches_the_program_that_is_executed)
{
    static struct program p;
    static struct task t = {.p = &p, .run = alarm_here};

    open_program(&p);
    start(&t);
    await_end(&p, 128 + SIGALRM);
}
#endif

ISO_CASE(where_children_are_ignored_the_status_is_unknown)
{
    static struct program p;
    static struct task t;

    open_program(&p);
    want(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    t = exec_of(&p, 0, "exit 0");
    start(&t);
    await_end(&p, 1);
}

/* ---- what threads have ---- */

static struct program used;

/* Leaves the copy by longjmp, or not, and ends. */
static void *use_and_end(void *way)
{
    sigjmp_buf back;

    used.own();
    used.back = &back;
    if (way && sigsetjmp(back, 0) == 0)
        used.end(*(int *)way, 3);
    used.back = NULL;
    return NULL;
}

static const char *said_by_thread(int *way)
{
    int out[2];
    pthread_t t;

    open_pipe(out);
    open_program(&used);
    *used.out = out[1];
    used.register_handler(0);
    want_int(pthread_create(&t, NULL, use_and_end, way), 0);
    want_int(pthread_join(t, NULL), 0);
    return read_all(out[0]);
}

ISO_CASE(no_destructor_of_a_thread_runs_after_the_end)
{
    int way = 1;

    want(strcmp(said_by_thread(&way), "") == 0);
}

ISO_CASE(exit_destroys_the_threads_objects_first)
{
    int way = 0;

    want(strcmp(said_by_thread(&way), "ta") == 0);
}

ISO_CASE(control_a_thread_of_one_that_lives_runs_its_destructors)
{
    want(strcmp(said_by_thread(NULL), "tk") == 0);
    iso_close_ctx(used.ctx);
}

/* ---- streams ---- */

static void *read_line(void *stream)
{
    char line[16];

    want(fgets(line, sizeof line, stream) != NULL);
    return NULL;
}

static bool is_locked(FILE *f)
{
    if (ftrylockfile(f))
        return true;
    funlockfile(f);
    return false;
}

ISO_CASE(exit_flushes_streams_and_waits_for_no_reader)
{
    static struct program p;
    static struct task t = {.p = &p, .run = end_here, .way = 0, .status = 4};
    int in[2], out[2];
    FILE *reads, *writes;
    pthread_t reader;

    want_int(pipe(in), 0);
    open_pipe(out);
    reads = fdopen(in[0], "r");
    writes = fdopen(out[1], "w");
    want(reads && writes && fputs("text", writes) >= 0);
    want(strcmp(read_all(out[0]), "") == 0);
    open_program(&p);
    want_int(pthread_create(&reader, NULL, read_line, reads), 0);
    while (!is_locked(reads))
        sched_yield();
    start(&t);
    await_end(&p, 4);
    want(strcmp(read_all(out[0]), "text") == 0);
    want_int(write(in[1], "\n", 1), 1);
    want_int(pthread_join(reader, NULL), 0);
}

/* ---- processes ---- */

static int open_and_close(void)
{
    static struct program inner;
    int out[2];

    open_pipe(out);
    open_program(&inner);
    *inner.out = out[1];
    inner.register_handler(0);
    exti_ctx_close(inner.ctx, NULL);
    return strcmp(read_all(out[0]), "a") != 0;
}

ISO_CASE(a_context_that_a_child_opens_has_its_handlers)
{
    static struct program p;

    want_int(open_and_close(), 0);
    open_program(&p);
    want_int(p.fork_and_call(open_and_close), 0);
    iso_close_ctx(p.ctx);
}

/* In a new namespace the child of process 1 is another process 1. */
static void end_as_child_of_namesake(void)
{
    static struct program p;
    int status;
    pid_t pid;

    want_int(getpid(), 1);
    open_program(&p);
    want_int(unshare(CLONE_NEWPID), 0);
    pid = fork();
    if (pid == 0) {
        want_int(getpid(), 1);
        p.end(1, 7);
    }
    want_int(waitpid(pid, &status, 0), pid);
    _exit(status == 7 << 8 ? 0 : 1);
}

#define NO_NAMESPACES 77

static void end_in_namespace(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID))
        _exit(NO_NAMESPACES);
    _exit(in_child(end_as_child_of_namesake) != 0);
}

ISO_CASE(a_child_with_its_parents_number_ends_as_a_process)
{
    const int status = in_child(end_in_namespace);

    if (status == NO_NAMESPACES << 8)
        printf("skip: no namespaces here\n");
    else
        want_int(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_in_exit_stops_when_the_context_is_closed),
        cmocka_unit_test(control_a_thread_in_exit_ends_an_open_one),
        cmocka_unit_test(a_thread_in_exec_stops_when_the_context_is_closed),
        cmocka_unit_test(a_thread_that_is_left_ends_nothing),
        cmocka_unit_test(control_the_code_of_one_that_was_closed_alive_ends_the_process),
        cmocka_unit_test(a_signal_that_was_pending_ends_nothing),
        cmocka_unit_test(control_one_that_comes_then_ends_the_process),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(an_alarm_reaches_the_program_that_is_executed),
#endif
        cmocka_unit_test(where_children_are_ignored_the_status_is_unknown),
        cmocka_unit_test(no_destructor_of_a_thread_runs_after_the_end),
        cmocka_unit_test(exit_destroys_the_threads_objects_first),
        cmocka_unit_test(control_a_thread_of_one_that_lives_runs_its_destructors),
        cmocka_unit_test(exit_flushes_streams_and_waits_for_no_reader),
        cmocka_unit_test(a_context_that_a_child_opens_has_its_handlers),
        cmocka_unit_test(a_child_with_its_parents_number_ends_as_a_process),
    };

    return cmocka_run_group_tests_name("isolation/ended", tests, NULL, NULL);
}
