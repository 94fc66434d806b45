/* Children of contexts: each waits for its own, as a process does. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "tests/isolation/build.h"

static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <errno.h>\n"
    "#include <netinet/in.h>\n"
    "#include <signal.h>\n"
    "#include <spawn.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <sys/resource.h>\n"
    "#include <sys/socket.h>\n"
    "#include <sys/wait.h>\n"
    "#include <unistd.h>\n"
    "extern char **environ;\n"
    "static void run(const char *code, char **words)\n"
    "{ words[0] = \"sh\"; words[1] = \"-c\"; words[2] = (char *)code; words[3] = 0; }\n"
    /* The ways: fork, vfork, posix_spawn, posix_spawnp; and fork of a group's leader, whose group
     * both make, as nobody knows who comes first. */
    "static int start(int way, char **words)\n"
    "{\n"
    "    pid_t pid = -1;\n"
    "    if (way == 0 && !(pid = fork())) { execvp(words[0], words); _exit(99); }\n"
    "    if (way == 1 && !(pid = vfork())) { execvp(words[0], words); _exit(99); }\n"
    "    if (way == 2 && posix_spawn(&pid, \"/bin/sh\", 0, 0, words, environ)) return -1;\n"
    "    if (way == 3 && posix_spawnp(&pid, words[0], 0, 0, words, environ)) return -1;\n"
    "    if (way == 4 && !(pid = fork())) { setpgid(0, 0); execvp(words[0], words); _exit(99); "
    "}\n"
    "    if (way == 4) setpgid(pid, pid);\n"
    "    return pid;\n"
    "}\n"
    "int t_start(int way, const char *code)\n"
    "{ char *words[4]; run(code, words); return start(way, words); }\n"
    "int status;\n"
    /* A shell would let all signals in. */
    "int t_has_line(int way, char *line)\n"
    "{\n"
    "    char *words[] = {\"grep\", \"-q\", line, \"/proc/self/status\", 0};\n"
    "    return waitpid(start(way, words), &status, 0) > 0 && status == 0;\n"
    "}\n"
    "static int result(int pid) { return pid < 0 ? -errno : pid; }\n"
    /* wait, waitpid, wait3, wait4, waitid */
    "int t_wait(int way, int options)\n"
    "{\n"
    "    struct rusage usage;\n"
    "    siginfo_t info;\n"
    "    status = -1;\n"
    "    if (way == 0) return result(wait(&status));\n"
    "    if (way == 1) return result(waitpid(-1, &status, options));\n"
    "    if (way == 2) return result(wait3(&status, options, &usage));\n"
    "    if (way == 3) return result(wait4(-1, &status, options, &usage));\n"
    "    if (waitid(P_ALL, 0, &info, WEXITED | options)) return -errno;\n"
    "    status = info.si_pid ? info.si_status << 8 : -1;\n"
    "    return info.si_pid;\n"
    "}\n"
    "int t_wait_for(int pid, int options)\n"
    "{ return result(waitpid(pid, &status, options)); }\n"
    "int ends[2];\n"
    "static int connect_ends(int by_accept4)\n"
    "{\n"
    "    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};\n"
    "    socklen_t n = sizeof a;\n"
    "    int from = socket(AF_INET, SOCK_STREAM, 0);\n"
    "    ends[0] = socket(AF_INET, SOCK_STREAM, 0);\n"
    "    if (bind(from, (void *)&a, n) || listen(from, 1) || getsockname(from, (void *)&a, &n) ||\n"
    "        connect(ends[0], (void *)&a, n)) return -1;\n"
    "    ends[1] = by_accept4 ? accept4(from, 0, 0, 0) : accept(from, 0, 0);\n"
    "    return close(from);\n"
    "}\n"
    /* pipe, pipe2, socketpair, accept, accept4 */
    "int t_make_ends(int way)\n"
    "{\n"
    "    if (way == 0) return pipe(ends);\n"
    "    if (way == 1) return pipe2(ends, 0);\n"
    "    if (way == 2) return socketpair(AF_UNIX, SOCK_STREAM, 0, ends);\n"
    "    return connect_ends(way == 4);\n"
    "}\n"
    "int t_fork_idle(void)\n"
    "{ int pid = fork(); while (pid == 0) pause(); return pid; }\n"
    "volatile sig_atomic_t handled;\n"
    "static void handle(int sig) { (void)sig; handled++; }\n"
    /* the default, to ignore it, a function, and one with SA_NOCLDWAIT */
    "int t_set(int sig, int how)\n"
    "{\n"
    "    struct sigaction a = {.sa_handler = handle, .sa_flags = SA_NOCLDWAIT | SA_RESTART};\n"
    "    if (how == 3) return sigaction(sig, &a, 0);\n"
    "    return signal(sig, how == 0 ? SIG_DFL : how == 1 ? SIG_IGN : handle) == SIG_ERR;\n"
    "}\n"
    /* As t_start has them, by system and by popen: its status. */
    "int t_run(int way, const char *code)\n"
    "{\n"
    "    if (way == 5) return system(code);\n"
    "    if (way == 6) return pclose(popen(code, \"r\"));\n"
    "    return waitpid(t_start(way, code), &status, 0) > 0 ? status : -1;\n"
    "}\n";

struct parent {
    struct exti_ctx *ctx;
    int (*start)(int way, const char *code), (*wait)(int way, int options);
    int (*wait_for)(int pid, int options);
    int *status;
    int (*make_ends)(int way), (*fork_idle)(void), (*set)(int sig, int how);
    int (*run)(int way, const char *code), (*has_line)(int way, const char *line);
    int *ends;
    volatile sig_atomic_t *handled;
};

/* The signal that was to end a context alone. */
static volatile sig_atomic_t ended_by;

static void note_end(void *user, struct exti_ctx *ctx, int sig)
{
    (void)user, (void)ctx;
    ended_by = sig;
}

static struct parent open_with(uint32_t flags, const struct exti_hooks *hooks)
{
    struct exti_ctx_opts o = iso_opts(NULL, NULL);
    struct parent p = {0};
    struct exti_module *m;

    o.flags |= flags;
    o.hooks = hooks;
    if (!file_exists(in_tmp("parent.so")))
        iso_build(source, "parent.so", "-w");
    p.ctx = iso_open_opts(&o);
    m = iso_load(p.ctx, in_tmp("parent.so"));
    *(void **)&p.start = iso_sym(m, "t_start");
    *(void **)&p.wait = iso_sym(m, "t_wait");
    *(void **)&p.wait_for = iso_sym(m, "t_wait_for");
    *(void **)&p.status = iso_sym(m, "status");
    *(void **)&p.make_ends = iso_sym(m, "t_make_ends");
    *(void **)&p.fork_idle = iso_sym(m, "t_fork_idle");
    *(void **)&p.set = iso_sym(m, "t_set");
    *(void **)&p.has_line = iso_sym(m, "t_has_line");
    *(void **)&p.run = iso_sym(m, "t_run");
    *(void **)&p.handled = iso_sym(m, "handled");
    *(void **)&p.ends = iso_sym(m, "ends");
    return p;
}

static struct parent open_parent(uint32_t flags)
{
    const struct exti_hooks hooks = {.size = sizeof hooks, .end = note_end};

    return open_with(flags, &hooks);
}

/* In a context that is no program of its own. */
static struct parent open_library_parent(void)
{
    return open_with(0, NULL);
}

enum { BY_PATH = 2, WAYS_TO_START = 4, WAYS_TO_WAIT = 5 };

ISO_CASE(each_context_waits_for_its_own_children)
{
    struct parent a = open_parent(0), b = open_parent(0);

    for (int wait = 0; wait < WAYS_TO_WAIT; wait++)
        for (int start = 0; start < WAYS_TO_START; start++) {
            const int one = a.start(start, "exit 3"), other = b.start(start, "exit 5");

            want(one > 0 && other > 0);
            usleep(1000);
            want_int(b.wait(wait, 0), other);
            want_int(*b.status, 5 << 8);
            want_int(b.wait(wait, 0), -ECHILD);
            want_int(a.wait(wait, 0), one);
            want_int(*a.status, 3 << 8);
            want_int(a.wait(wait, 0), -ECHILD);
        }
    want_int(waitpid(-1, NULL, 0), -1);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(what_shares_the_processs_signals_waits_for_all)
{
    struct parent a = open_parent(EXTI_CTX_PROCESS_SIGNALS);
    const pid_t pid = fork();

    if (pid == 0)
        _exit(4);
    want_int(a.wait(1, 0), pid);
    want_int(*a.status, 4 << 8);
    iso_close_ctx(a.ctx);
}

ISO_CASE(children_that_run_are_waited_for)
{
    struct parent a = open_parent(0), b = open_parent(0);
    int slow, quick, third;

    slow = a.start(0, "sleep 0.4; exit 1");
    quick = a.start(1, "sleep 0.1; exit 2");
    third = b.start(0, "exit 9");
    want_int(a.wait(1, WNOHANG), 0);
    want_int(a.wait(1, 0), quick);
    want_int(*a.status, 2 << 8);
    want_int(a.wait(1, WNOHANG), 0);
    want_int(a.wait(0, 0), slow);
    want_int(*a.status, 1 << 8);
    want_int(b.wait(0, 0), third);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(ends_and_stops_are_told_apart)
{
    struct parent a = open_parent(0);
    const int pid = a.start(0, "kill -STOP $$; kill -9 $$");

    want_int(a.wait(1, WUNTRACED), pid);
    want(WIFSTOPPED(*a.status) && WSTOPSIG(*a.status) == SIGSTOP);
    want_int(a.wait(1, WNOHANG), 0);
    want_int(kill(pid, SIGCONT), 0);
    want_int(a.wait(1, 0), pid);
    want(WIFSIGNALED(*a.status) && WTERMSIG(*a.status) == SIGKILL);
    iso_close_ctx(a.ctx);
}

ISO_CASE(groups_are_waited_for)
{
    struct parent a = open_parent(0);
    const int first = a.start(0, "sleep 0.1"), second = a.start(4, "sleep 0.3; exit 6");

    want_int(a.wait_for(-second, 0), second);
    want_int(*a.status, 6 << 8);
    want_int(a.wait_for(0, 0), first);
    want_int(a.wait_for(first, 0), -ECHILD);
    iso_close_ctx(a.ctx);
}

/* By number a child is waited for anywhere, and then by its context no more. */
ISO_CASE(a_child_that_others_have_waited_for_is_gone)
{
    struct parent a = open_parent(0);
    const int pid = a.start(0, "exit 1"), other = a.start(1, "exit 2");

    want_int(waitpid(pid, NULL, 0), pid);
    want_int(a.wait_for(other, 0), other);
    want_int(a.wait(0, 0), -ECHILD);
    iso_close_ctx(a.ctx);
}

static void nothing(int sig)
{
    (void)sig;
}

static void *wait_for_three(void *arg)
{
    struct parent *p = arg;

    for (int i = 0; i < 3; i++)
        while (p->wait(0, 0) == -EINTR)
            continue;
    return NULL;
}

ISO_CASE(signals_interrupt_a_wait_and_lose_nothing)
{
    struct sigaction act = {.sa_handler = nothing};
    struct parent a = open_parent(0);
    pthread_t t;

    want_int(sigaction(SIGUSR1, &act, NULL), 0);
    for (int i = 0; i < 3; i++)
        want(a.start(i, "sleep 0.3") > 0);
    want_int(pthread_create(&t, NULL, wait_for_three, &a), 0);
    for (int i = 0; i < 20; i++) {
        usleep(5000);
        pthread_kill(t, SIGUSR1);
    }
    want_int(pthread_join(t, NULL), 0);
    want_int(a.wait(0, 0), -ECHILD);
    iso_close_ctx(a.ctx);
}

enum { LAST_WAY_TO_RUN = 6, TIMES = 30 };

/* Whoever takes the signal first, the context's thread is to have handled it when the child that has
 * sent it has been waited for, and may then have what it likes.  One in a thousand comes late where
 * threads have to wait for a processor. */
static void *handle_and_forget(void *arg)
{
    struct parent *p = arg;
    int late = 0;

    iso_expect_signals();
    for (int i = 0; i < TIMES; i++) {
        for (int way = 0; way <= LAST_WAY_TO_RUN; way++) {
            const int before = *p->handled;

            want_int(p->set(SIGUSR1, 2), 0);
            want_int(p->run(way, "kill -USR1 $PPID"), 0);
            late += *p->handled == before;
            want_int(p->set(SIGUSR1, 0), 0);
        }
    }
#ifndef __SANITIZE_THREAD__ /* which has signals wait for the end of waitpid */
    want(late <= TIMES * LAST_WAY_TO_RUN / 50);
#endif
    return NULL;
}

ISO_CASE(what_children_send_is_handled_when_they_are_waited_for)
{
    struct parent a = open_parent(0), b = open_parent(0);
    pthread_t t;

    /* So that the process has an action, and b ends by what it would get. */
    want_int(b.set(SIGUSR2, 2), 0);
    want_int(pthread_create(&t, NULL, handle_and_forget, &a), 0);
    want_int(pthread_join(t, NULL), 0);
    want_int(ended_by, 0);
    want_int(*b.handled, 0);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

static void what_a_child_has_sent_is_handled_before_it_is_waited_for(void **state)
{
    if (test_is_emulated())
        skip_because("an emulator does not tell handlers whose a signal is that was sent on");
    what_children_send_is_handled_when_they_are_waited_for(state);
}

static int run_of_program(int status)
{
    pid_t pid = fork();
    int found = -1;

    if (pid == 0)
        _exit(status);
    usleep(20000); /* the system may drop it */
    return waitpid(pid, &found, 0) == pid ? WEXITSTATUS(found) : -1;
}

static void want_gone(int pid)
{
    want(pid > 0);
    for (int ms = 0; ms < 10000 && kill(pid, 0) == 0; ms++)
        usleep(1000);
    want(kill(pid, 0) < 0 && errno == ESRCH);
}

static void want_to_wait(const struct parent *p)
{
    for (int way = 0; way <= LAST_WAY_TO_RUN; way++)
        want_int(p->run(way, "exit 3"), 3 << 8);
}

/* sigaction(2), SA_NOCLDWAIT: the children of who ignores SIGCHLD are gone once they have ended. */
ISO_CASE(contexts_drop_their_own_children_alone)
{
    struct parent a = open_parent(0), b = open_parent(0), c = open_library_parent(), d;

    want_int(a.set(SIGCHLD, 2), 0);
    want_int(a.set(SIGCHLD, 0), 0);
    want_to_wait(&a);
    for (int how = 1; how <= 3; how += 2) {
        want_int(a.set(SIGCHLD, how), 0);
        d = open_parent(0);
        for (int way = 0; way < WAYS_TO_START; way++)
            want_gone(a.start(way, "exit 3"));
        want_int(a.wait(0, 0), -ECHILD);
        want_to_wait(&b);
        want_to_wait(&c);
        want_to_wait(&d);
        want_int(run_of_program(4), 4);
        iso_close_ctx(d.ctx);
    }
    want_int(a.set(SIGCHLD, 0), 0);
    want_to_wait(&a);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
    iso_close_ctx(c.ctx);
}

/* ---- what they inherit ---- */

/* And no more than that, though signals wait while they are started. */
ISO_CASE(children_block_the_signals_that_their_parent_blocks)
{
    struct parent a = open_parent(0);
    sigset_t one, now;

    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    want_int(pthread_sigmask(SIG_SETMASK, &one, NULL), 0);
    for (int way = 0; way <= LAST_WAY_TO_RUN; way++) {
        if (way < WAYS_TO_START && way != BY_PATH)
            want_int(a.has_line(way, "^SigBlk:.0000000000000800$"), 1); /* SIGUSR2 */
        want_int(a.run(way, "exit 0"), 0);
        want_int(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
        for (int sig = 1; sig < 32; sig++)
            want_int(sigismember(&now, sig), sig == SIGUSR2);
    }
    iso_close_ctx(a.ctx);
}

enum { WAYS_TO_MAKE_ENDS = 5, SECOND = 1000 };

/* Closes one end in this process; whether the other one is at its end, which the child must let come. */
static bool ends_beside(const int ends[2], int child, int milliseconds)
{
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    char byte;
    bool ended;

    want(child > 0);
    want_int(close(ends[1]), 0);
    ended = poll(&p, 1, milliseconds) == 1 && read(ends[0], &byte, 1) == 0;
    want_int(close(ends[0]), 0);
    want_int(kill(child, SIGKILL), 0);
    want_int(waitpid(child, NULL, 0), child);
    return ended;
}

static void a_child_blocks_the_signals_that_its_parent_blocks(void **state)
{
    if (test_is_emulated())
        skip_because("an emulator blocks signals of its own accord");
    children_block_the_signals_that_their_parent_blocks(state);
}

ISO_CASE(a_child_does_not_hold_what_other_contexts_have_made)
{
    struct parent a = open_parent(0), b = open_parent(0);

    for (int way = 0; way < WAYS_TO_MAKE_ENDS; way++) {
        want_int(a.make_ends(way), 0);
        want(ends_beside(a.ends, b.fork_idle(), 30 * SECOND));
    }
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(control_a_child_holds_its_own_contexts_and_the_programs)
{
    struct parent a = open_parent(0), b = open_parent(0);
    int ends[2];

    want_int(a.make_ends(0), 0);
    want(!ends_beside(a.ends, a.fork_idle(), SECOND / 5));
    want_int(pipe(ends), 0);
    want(!ends_beside(ends, b.fork_idle(), SECOND / 5));
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

/* The number is another file's by now. */
ISO_CASE(a_child_keeps_what_has_taken_a_number_since)
{
    struct parent a = open_parent(0), b = open_parent(0);
    int taken[2];

    want_int(a.make_ends(0), 0);
    want_int(close(a.ends[0]), 0);
    want_int(close(a.ends[1]), 0);
    want_int(pipe(taken), 0);
    want(taken[0] == a.ends[0] && taken[1] == a.ends[1]);
    want(!ends_beside(taken, b.fork_idle(), SECOND / 5));
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(a_child_ignores_what_its_context_ignores)
{
    struct parent a, b;

    want(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
    a = open_parent(0);
    b = open_parent(0);
    want_int(a.set(SIGUSR1, 1), 0);
    want_int(b.set(SIGUSR1, 2), 0); /* so that the process does not ignore it */
    want_int(b.set(SIGUSR2, 0), 0);
    for (int start = 0; start < 2; start++) {
        want(a.start(start, "kill -USR1 $$; kill -USR2 $$; exit 3") > 0);
        want(a.wait(1, 0) > 0);
        want_int(*a.status, 3 << 8);
        want(b.start(start, "kill -USR1 $$; exit 3") > 0);
        want(b.wait(1, 0) > 0);
        want_int(*b.status, SIGUSR1);
        want(b.start(start, "kill -USR2 $$; exit 3") > 0);
        want(b.wait(1, 0) > 0);
        want_int(*b.status, SIGUSR2);
    }
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_context_waits_for_its_own_children),
        cmocka_unit_test(what_shares_the_processs_signals_waits_for_all),
        cmocka_unit_test(children_that_run_are_waited_for),
        cmocka_unit_test(ends_and_stops_are_told_apart),
        cmocka_unit_test(groups_are_waited_for),
        cmocka_unit_test(a_child_that_others_have_waited_for_is_gone),
        cmocka_unit_test(signals_interrupt_a_wait_and_lose_nothing),
        cmocka_unit_test(what_a_child_has_sent_is_handled_before_it_is_waited_for),
        cmocka_unit_test(contexts_drop_their_own_children_alone),
        cmocka_unit_test(a_child_blocks_the_signals_that_its_parent_blocks),
        cmocka_unit_test(a_child_does_not_hold_what_other_contexts_have_made),
        cmocka_unit_test(control_a_child_holds_its_own_contexts_and_the_programs),
        cmocka_unit_test(a_child_keeps_what_has_taken_a_number_since),
        cmocka_unit_test(a_child_ignores_what_its_context_ignores),
    };

    return cmocka_run_group_tests_name("isolation/children", tests, NULL, NULL);
}
