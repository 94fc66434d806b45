/* The ends of contexts: exit, _exit, quick_exit and the exec family of a copy are its context's. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include "tests/isolation/ends_toy.h"

/* ---- ends ---- */

ISO_CASE(each_way_to_end_is_the_contexts_alone)
{
    static struct program p[4], other;
    static struct task t[4];

    open_program(&other);
    for (int i = 0; i < 4; i++) {
        open_program(&p[i]);
        t[i] = (struct task){.p = &p[i], .run = end_here, .way = i, .status = 256 + 30 + i};
        start(&t[i]);
        await_end(&p[i], 30 + i);
        want_int(p[i].where, 0);
    }
    for (int i = 0; i < 4; i++)
        want_parked(&t[i]);
    want_int(other.ends, 0);
    want_int(other.fork(1, 3), 3 << 8);
    iso_close_ctx(other.ctx);
}

static void end_on_thread(const struct task *t)
{
    t->p->end_on_thread(t->way, t->status);
}

ISO_CASE(a_thread_of_the_contexts_is_told_from_others)
{
    static struct program p;
    static struct task t = {.p = &p, .run = end_on_thread, .way = 1, .status = 4};

    open_program(&p);
    start(&t);
    await_end(&p, 4);
    want_int(p.where, EXTI_EXIT_OWN_THREAD);
}

static void raise_here(const struct task *t)
{
    want_int(t->p->handle(SIGUSR1), 0);
    t->p->raise(SIGUSR1);
    for (;;)
        usleep(1000); /* a sanitizer may have the signal wait for such a call */
}

static void end_in_handler_and_raise(void)
{
    static struct program p;
    static struct task t = {.p = &p, .run = raise_here};

    open_program(&p);
    start(&t);
    await_end(&p, 6);
    want_int(p.where, EXTI_EXIT_IN_HANDLER);
    want_parked(&t);
    raise(SIGUSR1);
}

/* Nobody handles the signal any more. */
ISO_CASE(a_signal_handler_may_end_its_context)
{
    want_int(in_child(end_in_handler_and_raise), SIGUSR1);
}

ISO_CASE(threads_that_end_a_context_at_once_all_end_it)
{
    static struct program p;
    static struct task t[8];

    open_program(&p);
    for (int i = 0; i < 8; i++) {
        t[i] = (struct task){.p = &p, .run = end_here, .way = 0, .status = 5};
        start(&t[i]);
    }
    for (int i = 0; i < 8; i++)
        await_end(&p, 5);
    for (int i = 0; i < 8; i++)
        want_parked(&t[i]);
    want_int(p.ends, 8);
}

ISO_CASE(the_hook_may_leave_by_longjmp)
{
    static struct program p;
    sigjmp_buf back;

    open_program(&p);
    p.back = &back;
    if (sigsetjmp(back, 0) == 0)
        p.end(1, 3);
    want_int(p.status, 3);
}

static void await_ticks(const struct program *p, int n)
{
    const int before = *p->ticks;

    while (*p->ticks < before + n)
        usleep(1000);
}

static void end_with_handlers_and_timers(void)
{
    static struct program p, other;
    static struct task t = {.p = &p, .run = end_here, .way = 1, .status = 1};
    int ticks;

    open_program(&p);
    open_program(&other);
    want_int(p.handle(SIGUSR2), 0);
    p.timer();
    other.timer();
    await_ticks(&p, 3);
    start(&t);
    await_end(&p, 1);
    await_ticks(&other, 1); /* one of the ended may have been on its way */
    ticks = *p.ticks;
    await_ticks(&other, 20);
    want_int(*p.ticks, ticks);
    raise(SIGUSR2);
}

ISO_CASE(what_has_ended_has_no_handlers_and_timers)
{
    want_int(in_child(end_with_handlers_and_timers), SIGUSR2);
}

static int note_finding(void *user, const struct exti_error *finding)
{
    snprintf(user, 512, "%s", finding->message);
    return 0;
}

ISO_CASE(what_has_ended_stays_mapped_and_is_reported)
{
    static struct program p, next;
    static struct task t = {.p = &p, .run = end_here, .way = 1, .status = 1};
    char said[512] = "";
    size_t left = 0;

    open_program(&p);
    start(&t);
    await_end(&p, 1);
    want_int(exti_ctx_close_report(p.ctx, note_finding, said, &left, NULL), 0);
    want(left >= 2);
    want_text(said, "has ended");
    want_parked(&t);
    want_int(*p.ticks, 0); /* it is readable */
    open_program(&next);
    want_int(exti_ctx_close_report(next.ctx, note_finding, said, &left, NULL), 0);
    want_int((long)left, 0);
}

/* ---- exit handlers ---- */

/* Registers `handlers` (as t_register numbers them) in a context, ends it, and wants to read `text`
 * by then, and `later` when the process has ended too. */
static void want_handlers(int way, const char *handlers, int status, const char *text,
                          const char *later)
{
    static struct program p;
    static struct task t;
    int ends[2];
    pid_t pid;

    open_pipe(ends);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        open_program(&p);
        *p.out = ends[1];
        for (; *handlers; handlers++)
            p.register_handler(*handlers - '0');
        t = (struct task){.p = &p, .run = end_here, .way = way, .status = 3};
        start(&t);
        await_end(&p, status);
        want(strcmp(read_all(ends[0]), text) == 0);
        exti_ctx_close(p.ctx, NULL);
        exit(0);
    }
    want(iso_join(pid));
    close(ends[1]);
    want(strcmp(read_all(ends[0]), later) == 0);
    close(ends[0]);
}

ISO_CASE(exit_runs_the_contexts_handlers)
{
    want_handlers(0, "01", 3, "bca", "");
    want_handlers(0, "0145", 3, "3onbca", "");
    want_handlers(0, "021", 9, "bcagaina", "");
    want_handlers(0, "031", 8, "bconce", "");
}

ISO_CASE(quick_exit_runs_its_own_and_others_none)
{
    want_handlers(3, "01545", 3, "qq", "");
    want_handlers(1, "0145", 3, "", "");
    want_handlers(2, "0145", 3, "", "");
}

ISO_CASE(control_handlers_of_a_context_that_lives_run_with_the_process)
{
    int ends[2], status;
    pid_t pid;

    open_pipe(ends);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        static struct program p;

        open_with(&p, EXTI_CTX_KEEP, &hooks);
        *p.out = ends[1];
        p.register_handler(4);
        p.register_handler(0);
        p.register_handler(4);
        p.register_handler(5);
        exti_ctx_close(p.ctx, NULL);
        exit(5);
    }
    want_int(waitpid(pid, &status, 0), pid);
    want_int(status, 5 << 8);
    close(ends[1]);
    want(strcmp(read_all(ends[0]), "5ona5on") == 0);
}

ISO_CASE(unloading_runs_handlers_once)
{
    static struct program p, other;
    int ends[2];

    open_pipe(ends);
    open_program(&p);
    open_program(&other);
    *p.out = *other.out = ends[1];
    p.register_handler(4);
    p.register_handler(0);
    p.register_handler(5);
    other.register_handler(1);
    iso_close_ctx(p.ctx);
    want(strcmp(read_all(ends[0]), "0ona") == 0);
    iso_close_ctx(other.ctx);
    want(strcmp(read_all(ends[0]), "bc") == 0);
    quick_exit(0);
}

/* ---- the process's meaning ---- */

static int ended_with(uint32_t flags, const struct exti_hooks *h, int may, int way)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        static struct program p;

        open_with(&p, flags, h);
        p.may = may;
        p.end(way, 7);
        _exit(99);
    }
    want_int(waitpid(pid, &status, 0), pid);
    return status;
}

ISO_CASE(control_without_hooks_the_process_ends)
{
    static const struct exti_hooks none = {.size = sizeof none},
                                   half = {.size = sizeof half, .exit = note_exit};

    for (int way = 0; way < 4; way++) {
        want_int(ended_with(0, NULL, 1, way), 7 << 8);
        want_int(ended_with(0, &none, 1, way), 7 << 8);
        want_int(ended_with(0, &half, 1, way), 7 << 8);
        want_int(ended_with(0, &hooks, 0, way), 7 << 8);
        want_int(ended_with(EXTI_CTX_PROCESS_ENDS, &hooks, 1, way), 7 << 8);
    }
}

ISO_CASE(a_child_that_was_forked_ends_as_a_process)
{
    static struct program p, other;
    int ends[2];

    open_pipe(ends);
    open_program(&p);
    open_program(&other);
    *p.out = *other.out = ends[1];
    p.register_handler(0);
    other.register_handler(1);
    for (int way = 0; way < 5; way++)
        want_int(p.fork(way, 40 + way), (40 + way) << 8);
    want(strcmp(read_all(ends[0]), "a") == 0);
    want_int(p.spawn(0, "/bin/false"), 1 << 8);
    want_int(p.spawn(1, "/bin/false"), 1 << 8);
    want_int(p.spawn(1, "/nowhere"), 99 << 8);
    want_int(p.ends, 0);
    iso_close_ctx(p.ctx);
    iso_close_ctx(other.ctx);
}

ISO_CASE(a_constructor_ends_the_process)
{
    static const char ends_at_once[] = "#include <stdlib.h>\n"
                                       "__attribute__((constructor)) static void begin(void)\n"
                                       "{ exit(5); }\n";
    int status;
    pid_t pid;

    iso_build(ends_at_once, "begin.so", "");
    pid = fork();
    if (pid == 0) {
        static struct program p;

        open_program(&p);
        iso_load(p.ctx, in_tmp("begin.so"));
        _exit(99);
    }
    want_int(waitpid(pid, &status, 0), pid);
    want_int(status, 5 << 8);
}

ISO_CASE(abort_is_told_and_ends_the_process)
{
    for (int way = 0; way < 2; way++) {
        int ends[2], status;
        pid_t pid;

        open_pipe(ends);
        pid = fork();
        if (pid == 0) {
            static struct program p;

            open_program(&p);
            *p.out = ends[1];
            dup2(open("/dev/null", O_WRONLY), 2);
            p.abort(way);
            _exit(99);
        }
        want_int(waitpid(pid, &status, 0), pid);
        want(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        close(ends[1]);
        want(strcmp(read_all(ends[0]), "abort") == 0);
        close(ends[0]);
    }
}

/* ---- other programs ---- */

ISO_CASE(exec_runs_a_child_and_ends_with_it)
{
    static struct program p[7];
    static struct task t[7];

    for (int way = 0; way < 7; way++) {
        const bool other = way == 3 || way == 6;
        const char *code = iso_text("[ \"$0$1$NAME\" = xy%s ] && exit %d; echo $0 $1 $NAME >&2",
                                    other ? "other" : "own", way + 20);

        open_program(&p[way]);
        t[way] = exec_of(&p[way], way, code);
        start(&t[way]);
        await_end(&p[way], way + 20);
        want_parked(&t[way]);
    }
}

ISO_CASE(a_program_that_dies_by_a_signal_tells_it)
{
    static struct program p;
    static struct task t;

    open_program(&p);
    t = exec_of(&p, 0, "kill -9 $$");
    start(&t);
    await_end(&p, 128 + SIGKILL);
}

#ifndef __SANITIZE_THREAD__ /* which makes vfork a fork */
ISO_CASE(exec_that_fails_returns)
{
    static struct program p;

    open_program(&p);
    want_int(p.exec(0, "/nowhere", ""), -ENOENT);
    want_int(p.exec(2, "nowhere", ""), -ENOENT);
    want_int(p.exec(0, "/etc/passwd", ""), -EACCES);
    want_int(p.ends, 0);
    iso_close_ctx(p.ctx);
}

static void exec_that_fails_returns_unless_vfork_forks(void **state)
{
    if (test_under_valgrind())
        skip_because("valgrind's vfork is fork");
    exec_that_fails_returns(state);
}
#endif

ISO_CASE(control_without_hooks_the_process_executes)
{
    static struct program p;
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        open_with(&p, 0, NULL);
        p.exec(0, "/bin/sh", iso_text("[ $$ = %ld ] && exit 12", (long)getpid()));
        _exit(99);
    }
    want_int(waitpid(pid, &status, 0), pid);
    want_int(status, 12 << 8);
}

/* A program that ignores what the context does, and no more, and blocks what the thread does. */
ISO_CASE(a_program_has_the_signals_of_the_context)
{
    static struct program p, other;
    static struct task t;
    sigset_t blocked;

    open_program(&p);
    open_program(&other);
    want_int(other.ignore(SIGUSR1), 0);
    want_int(p.ignore(SIGUSR2), 0);
    want_int(p.handle(SIGHUP), 0);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGWINCH);
    want_int(pthread_sigmask(SIG_BLOCK, &blocked, NULL), 0);
    t = exec_of(&p, 0,
                "get() { sed -n \"s/^$2:.*\\($3\\)$/\\1/p\" /proc/$1/status; }; "
                "[ $(get self SigIgn ....)$(get self SigCgt ....) = 08000000 ] && "
                "[ $(get $$ SigBlk ........) = 08000000 ] && exit 3; "
                "grep Sig /proc/$$/status >&2");
    start(&t);
    await_end(&p, 3);
    iso_close_ctx(other.ctx);
}

#ifndef __SANITIZE_THREAD__ /* which has signals wait for the end of waitid */
ISO_CASE(what_is_sent_to_the_process_reaches_the_program)
{
    static struct program p, other;
    static struct task t;
    const pid_t own = getpid();
    int ends[2];
    pid_t pid;

    open_pipe(ends);
    open_program(&p);
    open_program(&other);
    want_int(other.ignore(SIGTERM), 0);
    want_int(p.count(SIGTERM), 0); /* on this thread, not on that which executes */
    want_int(fcntl(ends[1], F_SETFD, 0), 0);
    t = exec_of(
        &p, 0,
        iso_text("trap 'exit 4' TERM; echo ready >&%d; while :; do sleep 0.01; done", ends[1]));
    start(&t);
    while (*read_all(ends[0]) == '\0')
        usleep(1000);
    pid = fork();
    if (pid == 0)
        _exit(kill(own, SIGTERM) != 0);
    want(iso_join(pid));
    await_end(&p, 4);
    iso_close_ctx(other.ctx);
}
#endif

static void become_daemon(const struct task *t)
{
    const int rc = t->p->daemon();

    if (write(*t->p->out, rc ? "failed" : "daemon", 6) != 6)
        _exit(1);
    _exit(0);
}

ISO_CASE(a_daemon_leaves_the_process)
{
    static struct program p;
    static struct task t = {.p = &p, .run = become_daemon};
    int ends[2];

    open_pipe(ends);
    open_program(&p);
    *p.out = ends[1];
    start(&t);
    await_end(&p, 0);
    await_text(ends[0], "daemon");
    want_parked(&t);
    want_int(waitpid(-1, NULL, WNOHANG), -1);
    want_int(errno, ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_to_end_is_the_contexts_alone),
        cmocka_unit_test(a_thread_of_the_contexts_is_told_from_others),
        cmocka_unit_test(a_signal_handler_may_end_its_context),
        cmocka_unit_test(threads_that_end_a_context_at_once_all_end_it),
        cmocka_unit_test(the_hook_may_leave_by_longjmp),
        cmocka_unit_test(what_has_ended_has_no_handlers_and_timers),
        cmocka_unit_test(what_has_ended_stays_mapped_and_is_reported),
        cmocka_unit_test(exit_runs_the_contexts_handlers),
        cmocka_unit_test(quick_exit_runs_its_own_and_others_none),
        cmocka_unit_test(control_handlers_of_a_context_that_lives_run_with_the_process),
        cmocka_unit_test(unloading_runs_handlers_once),
        cmocka_unit_test(control_without_hooks_the_process_ends),
        cmocka_unit_test(a_child_that_was_forked_ends_as_a_process),
        cmocka_unit_test(a_constructor_ends_the_process),
        cmocka_unit_test(abort_is_told_and_ends_the_process),
        cmocka_unit_test(exec_runs_a_child_and_ends_with_it),
        cmocka_unit_test(a_program_that_dies_by_a_signal_tells_it),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(exec_that_fails_returns_unless_vfork_forks),
#endif
        cmocka_unit_test(control_without_hooks_the_process_executes),
        cmocka_unit_test(a_program_has_the_signals_of_the_context),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(what_is_sent_to_the_process_reaches_the_program),
#endif
        cmocka_unit_test(a_daemon_leaves_the_process),
    };

    return cmocka_run_group_tests_name("isolation/ends", tests, NULL, NULL);
}
