#include "tests/support/exti_test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/fs_lock.h"

enum { PROCESSES = 2, THREADS = 4, ROUNDS = 150 };

struct hammer {
    const char *lock, *counter;
    bool remove; /* the lock file, before unlocking */
    bool failed;
};

/* Adds 1 to the number in a file.  Without the lock, two at once would lose counts. */
static bool count_up(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    long n = 0;
    bool good = fd >= 0 && pread(fd, &n, sizeof n, 0) == sizeof n;

    n++;
    sched_yield(); /* gives others time to intrude */
    good = good && pwrite(fd, &n, sizeof n, 0) == sizeof n;
    close(fd);
    return good;
}

static void *hammer(void *arg)
{
    struct hammer *h = arg;

    for (int i = 0; i < ROUNDS; i++) {
        struct exti_lock lock;

        if (exti__fs_lock(h->lock, &lock, NULL) != 0 || !count_up(h->counter))
            h->failed = true;
        if (h->remove)
            unlink(h->lock);
        exti__fs_unlock(&lock);
    }
    return NULL;
}

static int hammer_in_threads(const char *lock, const char *counter, bool remove)
{
    struct hammer h[THREADS];
    pthread_t threads[THREADS];
    int failed = 0;

    for (int i = 0; i < THREADS; i++) {
        h[i] = (struct hammer){.lock = lock, .counter = counter, .remove = remove};
        if (pthread_create(&threads[i], NULL, hammer, &h[i]) != 0)
            return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        failed |= h[i].failed;
    }
    return failed;
}

static void check_exclusive(struct test *t, bool remove)
{
    char *lock = test_path(t, "lock"), *counter = test_path(t, "counter");
    pid_t pids[PROCESSES];
    long n = 0;
    int status;

    test_write(counter, &n, sizeof n);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (!pids[i])
            _exit(hammer_in_threads(lock, counter, remove));
    }
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    memcpy(&n, test_read(t, counter, NULL), sizeof n);
    assert_int_equal(n, PROCESSES * THREADS * ROUNDS);
}

static void lock_excludes_other_threads_and_processes(void **state)
{
    check_exclusive(*state, false);
}

static void lock_excludes_even_when_its_file_is_removed(void **state)
{
    check_exclusive(*state, true);
}

static void lock_makes_its_file_in_an_existing_folder(void **state)
{
    struct test *t = *state;
    struct exti_lock lock = {.fd = 77};

    assert_exti(exti__fs_lock(test_path(t, "no/lock"), &lock, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
    assert_exti(exti__fs_lock(t->dir, &lock, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, EISDIR);
    assert_int_equal(lock.fd, 77);
    assert_ok(exti__fs_lock(test_path(t, "lock"), &lock, &t->err), &t->err);
    assert_int_equal(fcntl(lock.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_true(lock.made);
    exti__fs_unlock(&lock);
    assert_int_equal(lock.fd, -1);
    exti__fs_unlock(&lock);
    assert_ok(exti__fs_lock(test_path(t, "lock"), &lock, &t->err), &t->err);
    assert_false(lock.made);
    exti__fs_unlock(&lock);
}

/* These limits are ample even on slow machines.  A process that holds a lock outlives one that
 * waits for it. */
enum { WAITER_LIFE = 600, HOLDER_LIFE = 1200 }; /* seconds */

/* Takes and releases the lock in another process, and returns its status: not 0 if the lock is
 * never free. */
static int lock_elsewhere(const char *path)
{
    int status;
    pid_t pid = fork();

    if (!pid) {
        struct exti_lock lock;

        alarm(WAITER_LIFE);
        if (exti__fs_lock(path, &lock, NULL) != 0)
            _exit(1);
        exti__fs_unlock(&lock);
        _exit(0);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void unlock_releases_the_lock_of_forked_children(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "lock");
    struct exti_lock lock;
    int status;
    pid_t child;

    assert_ok(exti__fs_lock(path, &lock, &t->err), &t->err);
    child = fork();
    if (!child) {
        alarm(HOLDER_LIFE);
        pause(); /* with the lock's descriptor inherited */
        _exit(0);
    }
    exti__fs_unlock(&lock);
    assert_int_equal(lock_elsewhere(path), 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
}

static void death_of_the_holder_releases_the_lock(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "lock"), byte;
    int fds[2], status;
    pid_t child;

    assert_int_equal(pipe(fds), 0);
    child = fork();
    if (!child) {
        struct exti_lock lock;

        alarm(HOLDER_LIFE);
        if (exti__fs_lock(path, &lock, NULL) != 0 || write(fds[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    kill(child, SIGKILL);
    assert_int_equal(lock_elsewhere(path), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
}

static void do_nothing(int sig)
{
    (void)sig;
}

/* Holds the lock, sends signals to `waiter`, sets `over`, and then releases the lock. */
static void hold_and_signal(const char *path, pid_t waiter, int ready, atomic_int *over)
{
    struct exti_lock lock;

    alarm(HOLDER_LIFE);
    if (exti__fs_lock(path, &lock, NULL) != 0 || write(ready, "x", 1) != 1)
        _exit(1);
    for (int i = 0; i < 50; i++) {
        usleep(2000);
        kill(waiter, SIGUSR1);
    }
    atomic_store(over, 1);
    exti__fs_unlock(&lock);
    _exit(0);
}

static void signals_do_not_end_the_wait_for_the_lock(void **state)
{
    const struct sigaction interrupting = {.sa_handler = do_nothing};
    struct test *t = *state;
    char *path = test_path(t, "lock"), byte;
    struct exti_lock lock;
    struct sigaction before;
    atomic_int *over;
    int fds[2], status, was_over;
    pid_t child, self = getpid();

    over = mmap(NULL, sizeof *over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(over, MAP_FAILED);
    sigaction(SIGUSR1, &interrupting, &before);
    assert_int_equal(pipe(fds), 0);
    child = fork();
    if (!child)
        hold_and_signal(path, self, fds[1], over);
    close(fds[1]);
    while (read(fds[0], &byte, 1) < 0)
        assert_int_equal(errno, EINTR);
    close(fds[0]);
    assert_ok(exti__fs_lock(path, &lock, &t->err), &t->err);
    was_over = atomic_load(over);
    exti__fs_unlock(&lock);
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    sigaction(SIGUSR1, &before, NULL);
    munmap(over, sizeof *over);
    assert_int_equal(status, 0);
    assert_int_equal(was_over, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(lock_excludes_other_threads_and_processes),
        exti_test(lock_excludes_even_when_its_file_is_removed),
        exti_test(lock_makes_its_file_in_an_existing_folder),
        exti_test(unlock_releases_the_lock_of_forked_children),
        exti_test(death_of_the_holder_releases_the_lock),
        exti_test(signals_do_not_end_the_wait_for_the_lock),
    };

    return cmocka_run_group_tests_name("base/fs_lock", tests, NULL, NULL);
}
