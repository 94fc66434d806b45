/* The guard between forks and the system's loader. */
#include "tests/support/exti_test.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "loader/process/fork_guard.h"

static volatile sig_atomic_t signals;

/* What a profiler's handler does that looks up where it interrupted the thread. */
static void enter_and_leave(int signal)
{
    (void)signal;
    exti__fork_guard_enter();
    exti__fork_guard_leave();
    signals++;
}

/* A thread that waits for itself is ended by SIGALRM. */
static void a_signal_handler_may_enter_at_any_moment(void **state)
{
    const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = enter_and_leave};

    (void)state;
    assert_int_equal(sigaction(SIGVTALRM, &action, NULL), 0);
    alarm(60);
    assert_int_equal(setitimer(ITIMER_VIRTUAL, &often, NULL), 0);
    while (signals < 300) {
        exti__fork_guard_enter();
        exti__fork_guard_leave();
    }
    assert_int_equal(setitimer(ITIMER_VIRTUAL, &never, NULL), 0);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_handler_may_enter_at_any_moment),
    };

    return cmocka_run_group_tests_name("process/fork_guard", tests, NULL, NULL);
}
