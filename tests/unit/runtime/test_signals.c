/* What copies call in place of sigaction and its relatives.  This program is no libpython, so that
 * it is treated as a library of a package. */
#include "tests/support/exti_test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/signals.h"

typedef void (*handler)(int);
typedef int (*sigaction_fn)(int, const struct sigaction *, struct sigaction *);
typedef handler (*signal_fn)(int, handler);
typedef int (*siginterrupt_fn)(int, int);

static void *redirect(const char *name)
{
    const struct exti_redirect *r;
    size_t n;

    r = pyrt_signal_redirects(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(r[i].symbol, name) == 0)
            return r[i].to;
    fail_msg("%s is not redirected", name);
    return NULL;
}

static int set_action(int sig, handler h, int flags, struct sigaction *old)
{
    const struct sigaction a = {.sa_handler = h, .sa_flags = flags};

    return ((sigaction_fn)redirect("sigaction"))(sig, &a, old);
}

static handler set_signal(int sig, handler h)
{
    return ((signal_fn)redirect("signal"))(sig, h);
}

static void nothing(int sig)
{
    (void)sig;
}

static handler handler_of(int sig)
{
    struct sigaction now;

    assert_int_equal(sigaction(sig, NULL, &now), 0);
    return now.sa_handler;
}

static void handlers_of_other_signals_are_refused(void **state)
{
    (void)state;
    errno = 0;
    assert_int_equal(set_action(SIGUSR1, nothing, 0, NULL), -1);
    assert_int_equal(errno, EPERM);
    errno = 0;
    assert_true(set_signal(SIGUSR1, nothing) == SIG_ERR);
    assert_int_equal(errno, EPERM);
    errno = 0;
    assert_int_equal(((siginterrupt_fn)redirect("siginterrupt"))(SIGUSR1, 1), -1);
    assert_int_equal(errno, EPERM);
    assert_true(handler_of(SIGUSR1) == SIG_DFL);
}

static void those_that_end_a_process_are_left_alone_without_a_word(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        struct sigaction old = {.sa_handler = nothing};

        signal(signals[i], SIG_DFL);
        assert_int_equal(set_action(signals[i], nothing, 0, &old), 0);
        assert_true(old.sa_handler == SIG_DFL);
        assert_true(set_signal(signals[i], nothing) == SIG_DFL);
        assert_true(handler_of(signals[i]) == SIG_DFL);
    }
}

static void what_is_in_force_may_be_asked_and_set(void **state)
{
    const struct sigaction a = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    struct sigaction old = {0};

    (void)state;
    assert_int_equal(sigaction(SIGUSR2, &a, NULL), 0);
    assert_int_equal(((sigaction_fn)redirect("__sigaction"))(SIGUSR2, NULL, &old), 0);
    assert_true(old.sa_handler == nothing);
    assert_int_equal(set_action(SIGUSR2, nothing, handler_of(SIGUSR2) ? old.sa_flags : 0, NULL), 0);
    assert_true(set_signal(SIGUSR2, nothing) == nothing);
    /* The same handler with other flags is another action; flags of SIG_IGN mean nothing. */
    assert_int_equal(set_action(SIGUSR2, nothing, SA_NODEFER, NULL), -1);
    signal(SIGUSR2, SIG_IGN);
    assert_int_equal(set_action(SIGUSR2, SIG_IGN, SA_NODEFER, NULL), 0);
    signal(SIGUSR2, SIG_DFL);
    assert_int_equal(set_action(SIGUSR2, SIG_DFL, SA_NODEFER, NULL), 0);
}

static void no_such_signal_is_the_systems_error(void **state)
{
    (void)state;
    errno = 0;
    assert_int_equal(set_action(999, SIG_DFL, 0, NULL), -1);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_true(set_signal(999, SIG_DFL) == SIG_ERR);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_int_equal(((siginterrupt_fn)redirect("siginterrupt"))(999, 0), -1);
    assert_int_equal(errno, EINVAL);
}

static bool restarts(int sig)
{
    struct sigaction now = {0};

    return sigaction(sig, NULL, &now) == 0 && (now.sa_flags & SA_RESTART);
}

static bool child_sets_what_it_likes(void)
{
    siginterrupt_fn interrupt = (siginterrupt_fn)redirect("siginterrupt");
    struct sigaction now;

    if (set_action(SIGUSR1, nothing, 0, NULL) != 0 || handler_of(SIGUSR1) != nothing ||
        set_signal(SIGTERM, nothing) != SIG_DFL || handler_of(SIGTERM) != nothing)
        return false;
    if (interrupt(SIGUSR1, 0) != 0 || !restarts(SIGUSR1) || interrupt(SIGUSR1, 1) != 0)
        return false;
    return sigaction(SIGUSR1, NULL, &now) == 0 && !(now.sa_flags & SA_RESTART) &&
           now.sa_handler == nothing;
}

static void a_forked_child_is_free(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    signal(SIGTERM, SIG_DFL);
    redirect("signal"); /* the first call says whose process it is */
    pid = fork();
    if (pid == 0)
        _exit(child_sets_what_it_likes() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_of_other_signals_are_refused),
        cmocka_unit_test(those_that_end_a_process_are_left_alone_without_a_word),
        cmocka_unit_test(what_is_in_force_may_be_asked_and_set),
        cmocka_unit_test(no_such_signal_is_the_systems_error),
        cmocka_unit_test(a_forked_child_is_free),
    };

    return cmocka_run_group_tests_name("runtime/signals", tests, NULL, NULL);
}
