/* The record locks of contexts: they exclude each other as processes do. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "tests/isolation/lock_toy.h"

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    want(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void begin_two(struct locker *a, struct locker *b)
{
    locks_build();
    *a = locks_in_context();
    *b = locks_in_context();
}

static void end_two(const struct locker *a, const struct locker *b)
{
    iso_close_ctx(a->ctx);
    iso_close_ctx(b->ctx);
}

/* The library's lie above those of the tests, however few are allowed. */
static int kept_descriptor(void)
{
    for (int fd = 512; fd < 1100; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return fd;
    return -1;
}

/* ---- exclusion ---- */

ISO_CASE(contexts_exclude_each_other)
{
    struct locker a, b;
    int x, y;

    begin_two(&a, &b);
    x = open_file("data", O_RDWR);
    y = open_file("data", O_RDWR);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 10, 10), 0);
    want_int(lock_bytes(&b, y, F_SETLK, F_WRLCK, 19, 1), EAGAIN);
    want_int(lock_bytes(&b, y, F_SETLK, F_RDLCK, 0, 0), EAGAIN);
    want_int(lock_bytes(&b, y, F_SETLK, F_WRLCK, 20, 10), 0);
    want_int(lock_owner(&b, y, F_WRLCK, 0, 100), getpid());
    want_int(lock_owner(&b, y, F_WRLCK, 20, 10), 0);
    want_int(lock_owner(&a, x, F_WRLCK, 10, 10), 0);
    /* Of one context, all descriptors have the same locks. */
    want_int(lock_bytes(&a, y, F_SETLK, F_WRLCK, 10, 10), 0);
    want_int(lock_bytes(&a, y, F_SETLK, F_UNLCK, 10, 10), 0);
    want_int(lock_bytes(&b, x, F_SETLK, F_WRLCK, 10, 10), 0);
    end_two(&a, &b);
}

/* What the original of a shared library does, such as SQLite's. */
ISO_CASE(a_context_and_the_rest_of_the_process_exclude_each_other)
{
    struct locker a, host;
    int x, y;

    locks_build();
    a = locks_in_context();
    host = locks_by_themselves();
    x = open_file("data", O_RDWR);
    y = open_file("data", O_RDWR);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
    want_int(lock_bytes(&host, y, F_SETLK, F_WRLCK, 0, 1), EAGAIN);
    want_int(lock_bytes(&host, y, F_SETLK, F_WRLCK, 5, 1), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_RDLCK, 5, 1), EAGAIN);
    want_int(lock_bytes(&a, x, F_SETLK, F_UNLCK, 0, 0), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_RDLCK, 5, 1), EAGAIN);
    want_int(lock_owner(&a, x, F_RDLCK, 5, 1), getpid());
    want_int(host.close(y, BY_CLOSE), 0);
    y = open_file("data", O_RDWR);
    want_int(lock_bytes(&host, y, F_SETLK, F_RDLCK, 0, 1), EAGAIN);
    want_int(lock_bytes(&a, x, F_SETLK, F_RDLCK, 5, 1), 0);
    iso_close_ctx(a.ctx);
    want_int(lock_bytes(&host, y, F_SETLK, F_RDLCK, 0, 10), 0);
}

/* A process loses its record locks on a file when it closes any descriptor of that file. */
ISO_CASE(a_context_that_begins_to_lock_leaves_the_rest_of_the_process_its_locks)
{
    struct locker a, host;
    int x, y;

    locks_build();
    a = locks_in_context();
    host = locks_by_themselves();
    x = open_file("data", O_RDWR);
    y = open_file("data", O_RDWR);
    want_int(lock_bytes(&host, y, F_SETLK, F_WRLCK, 5, 1), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 5, 1), EAGAIN);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 5, 1), EAGAIN);
    want_int(lock_owner(&a, x, F_RDLCK, 5, 1), getpid());
    want_int(host.close(y, BY_CLOSE), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 5, 1), 0);
    iso_close_ctx(a.ctx);
}

static int next_lock_is(pid_t expected, int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_start = 5, .l_len = 1};

    want_int(fcntl(fd, F_OFD_GETLK, &l), 0);
    return l.l_type != F_UNLCK && l.l_pid == expected;
}

/* What the library keeps is closed only when that takes nothing from the process. */
ISO_CASE(the_rest_of_the_process_keeps_its_locks_until_it_lets_go)
{
    struct locker a, b, host;
    int r, both, x, y, kept, before;

    locks_build();
    a = locks_in_context();
    b = locks_in_context();
    host = locks_by_themselves();
    before = count_descriptors();
    r = open_file("data", O_RDONLY);
    both = open_file("data", O_RDWR);
    y = open_file("data", O_RDWR);
    /* Locks are moved to another description, for writing. */
    want_int(lock_bytes(&a, r, F_SETLK, F_RDLCK, 0, 1), 0);
    want_int(lock_bytes(&host, y, F_SETLK, F_WRLCK, 5, 1), 0);
    want_int(lock_bytes(&a, both, F_SETLK, F_WRLCK, 1, 1), 0);
    want(next_lock_is(getpid(), both));
    /* A context takes a number that the library keeps. */
    kept = kept_descriptor();
    x = open_file("other", O_RDWR);
    want(kept > 0);
    want_int(errno_of(a.dup2(x, kept)), EBUSY);
    want(next_lock_is(getpid(), both));
    /* Both contexts are closed. */
    want_int(lock_bytes(&b, both, F_SETLK, F_WRLCK, 7, 1), 0);
    iso_close_ctx(a.ctx);
    want(next_lock_is(getpid(), both));
    want_int(lock_bytes(&b, both, F_SETLK, F_RDLCK, 1, 1), 0);
    iso_close_ctx(b.ctx);
    want(next_lock_is(getpid(), both));
    want(count_descriptors() > before + 4);
    want_int(lock_bytes(&host, y, F_SETLK, F_UNLCK, 0, 0), 0);
    /* The next context that locks anything, or is closed, lets them go. */
    a = locks_in_context();
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
    iso_close_ctx(a.ctx);
    want_int(count_descriptors(), before + 4);
}

ISO_CASE(a_context_that_is_closed_leaves_no_lock_and_no_descriptor)
{
    struct locker a, b;
    int x, before;

    begin_two(&a, &b);
    x = open_file("data", O_RDWR);
    before = count_descriptors();
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 0), 0);
    want_int(count_descriptors(), before + 1);
    want_int(lock_bytes(&b, x, F_SETLK, F_RDLCK, 0, 1), EAGAIN);
    want_int(count_descriptors(), before + 2);
    iso_close_ctx(a.ctx);
    want_int(count_descriptors(), before + 1);
    want_int(lock_bytes(&b, x, F_SETLK, F_RDLCK, 0, 1), 0);
    want_int(b.close(x, BY_CLOSE), 0);
    want_int(count_descriptors(), before - 1);
    iso_close_ctx(b.ctx);
}

/* ---- closing ---- */

static void want_closing_to_drop_own_locks(struct locker *a, struct locker *b, int way)
{
    int x = open_file("data", O_RDWR), y = open_file("data", O_RDWR),
        other = open_file("data", O_RDONLY), rc;

    want_int(lock_bytes(a, x, F_SETLK, F_WRLCK, 0, 10), 0);
    want_int(lock_bytes(b, y, F_SETLK, F_WRLCK, 10, 10), 0);
    rc = a->close(other, way);
    if (rc && errno == ENOSYS) {
        close(other);
    } else {
        want_int(rc, 0);
        want(fcntl(other, F_GETFD) < 0);
        want_int(lock_bytes(b, y, F_SETLK, F_WRLCK, 0, 10), 0);
        want_int(lock_bytes(a, x, F_SETLK, F_RDLCK, 10, 10), EAGAIN);
    }
    want_int(b->close(y, way), way == BY_FROM ? 0 : rc);
    want_int(lock_bytes(a, x, F_SETLK, F_WRLCK, 0, 20), 0);
    want_int(a->close(x, BY_CLOSE), 0);
}

ISO_CASE(closing_a_descriptor_drops_the_locks_of_its_context_alone)
{
    struct locker a, b;

    begin_two(&a, &b);
    for (int way = 0; way < LOCK_WAYS; way++)
        want_closing_to_drop_own_locks(&a, &b, way);
    end_two(&a, &b);
}

/* As libstdc++'s streams do, which are no copies. */
ISO_CASE(locks_by_descriptors_that_others_have_closed_are_in_nobodys_way)
{
    struct locker a, b;
    int x, x2, y, before;

    begin_two(&a, &b);
    x = open_file("data", O_RDWR);
    x2 = open_file("data", O_RDWR);
    y = open_file("data", O_RDWR);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
    want_int(lock_bytes(&a, x2, F_SETLK, F_WRLCK, 1, 1), 0);
    close(x);
    want_int(lock_bytes(&b, y, F_SETLK, F_WRLCK, 0, 1), EAGAIN);
    close(x2);
    want_int(lock_owner(&b, y, F_WRLCK, 0, 1), 0);
    want_int(lock_bytes(&b, y, F_SETLK, F_WRLCK, 0, 2), 0);
    before = count_descriptors();
    for (int i = 0; i < 20; i++) {
        x = open_file(iso_text("data%d", i), O_RDWR);
        want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
        want_int(lock_bytes(&a, x, F_SETLK, F_UNLCK, 0, 1), 0);
        close(x);
    }
    want_int(count_descriptors(), before + 1);
    end_two(&a, &b);
}

ISO_CASE(a_copy_cannot_close_what_the_library_keeps)
{
    struct locker a, b;
    int x, y, kept;

    begin_two(&a, &b);
    x = open_file("data", O_RDWR);
    y = open_file("data", O_RDWR);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
    kept = kept_descriptor();
    want(kept > 0);
    want(fcntl(kept, F_GETFD) & FD_CLOEXEC);
    want_int(errno_of(b.close(kept, BY_CLOSE)), EBADF);
    want_int(b.close(kept, BY_RANGE), 0);
    want_int(b.dup2(y, kept), kept);
    want_int(lock_bytes(&b, y, F_SETLK, F_WRLCK, 0, 1), EAGAIN);
    want_int(b.close(kept, BY_CLOSE), 0);
    want_int(lock_bytes(&b, y, F_SETLK, F_WRLCK, 0, 1), EAGAIN);
    /* The program's own code can. */
    while ((kept = kept_descriptor()) > 0)
        close(kept);
    want_int(lock_bytes(&b, y, F_SETLK, F_WRLCK, 0, 1), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), EAGAIN);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 5, 1), 0);
    end_two(&a, &b);
}

/* ---- files ---- */

ISO_CASE(a_file_may_have_lost_its_name)
{
    struct locker a, b;
    int x, y;

    begin_two(&a, &b);
    x = open_file("data", O_RDWR);
    y = open_file("data", O_RDONLY);
    want(fchmod(x, 0) == 0 && unlink(in_tmp("data")) == 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
    want_int(lock_bytes(&b, y, F_SETLK, F_RDLCK, 0, 1), EAGAIN);
    want_int(a.close(x, BY_CLOSE), 0);
    want_int(lock_bytes(&b, y, F_SETLK, F_RDLCK, 0, 1), 0);
    end_two(&a, &b);
}

ISO_CASE(a_lock_needs_the_access_that_the_descriptor_has)
{
    struct locker a, b;
    int r, w, both;

    begin_two(&a, &b);
    both = open_file("data", O_RDWR);
    r = open_file("data", O_RDONLY);
    w = open_file("data", O_WRONLY);
    want_int(lock_bytes(&a, r, F_SETLK, F_WRLCK, 0, 1), EBADF);
    want_int(lock_bytes(&a, w, F_SETLK, F_RDLCK, 0, 1), EBADF);
    want_int(lock_bytes(&a, 999, F_SETLK, F_RDLCK, 0, 1), EBADF);
    want_int(lock_bytes(&a, r, F_SETLK, F_RDLCK, 0, 10), 0);
    want_int(lock_bytes(&b, r, F_SETLK, F_RDLCK, 0, 5), 0);
    /* The description that the library keeps can have read locks alone, until now. */
    want_int(lock_bytes(&a, both, F_SETLK, F_WRLCK, 5, 1), 0);
    want_int(lock_bytes(&b, both, F_SETLK, F_WRLCK, 6, 1), EAGAIN);
    want_int(lock_bytes(&b, both, F_SETLK, F_RDLCK, 6, 1), 0);
    want_int(lock_bytes(&b, both, F_SETLK, F_RDLCK, 5, 1), EAGAIN);
    want_int(lock_bytes(&a, w, F_SETLK, F_WRLCK, 20, 1), 0);
    want_int(lock_bytes(&a, r, F_SETLK, F_RDLCK, 20, 1), 0);
    end_two(&a, &b);
}

/* Another file that has a descriptor's number later. */
ISO_CASE(each_file_has_its_own_locks)
{
    struct locker a, b;
    int x, y;

    begin_two(&a, &b);
    x = open_file("one", O_RDWR);
    y = open_file("two", O_RDWR);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
    want_int(lock_bytes(&b, y, F_SETLK, F_WRLCK, 0, 1), 0);
    want_int(b.close(y, BY_CLOSE), 0);
    want_int(lock_bytes(&b, x, F_SETLK, F_WRLCK, 0, 1), EAGAIN);
    end_two(&a, &b);
}

/* ---- waiting ---- */

struct waiter {
    struct locker *t;
    int fd, rc;
    off_t start;
    pthread_t thread;
    _Atomic int done;
};

static void *wait_for_lock(void *arg)
{
    struct waiter *w = arg;

    w->rc = lock_bytes(w->t, w->fd, F_SETLKW, F_WRLCK, w->start, 1);
    w->done = 1;
    return NULL;
}

static void start_waiter(struct waiter *w)
{
    want_int(pthread_create(&w->thread, NULL, wait_for_lock, w), 0);
    usleep(100000);
}

static int join_waiter(struct waiter *w)
{
    want_int(pthread_join(w->thread, NULL), 0);
    return w->rc;
}

ISO_CASE(a_context_waits_for_another)
{
    struct waiter w = {.start = 3};
    struct locker a, b;
    int x;

    begin_two(&a, &b);
    x = open_file("data", O_RDWR);
    w.t = &b;
    w.fd = open_file("data", O_RDWR);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 10), 0);
    start_waiter(&w);
    want(!w.done);
    want_int(lock_bytes(&a, x, F_SETLK, F_UNLCK, 3, 1), 0);
    want_int(join_waiter(&w), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 3, 1), EAGAIN);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 4, 1), 0);
    end_two(&a, &b);
}

ISO_CASE(a_lock_that_comes_after_its_descriptor_was_closed_is_dropped)
{
    struct waiter w = {.start = 0};
    struct locker a, b, c;
    int x;

    begin_two(&a, &b);
    c = locks_in_context();
    x = open_file("data", O_RDWR);
    w.t = &b;
    w.fd = open_file("data", O_RDWR);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 10), 0);
    start_waiter(&w);
    want_int(b.close(w.fd, BY_CLOSE), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_UNLCK, 0, 0), 0);
    want_int(join_waiter(&w), EBADF);
    want_int(lock_bytes(&c, x, F_SETLK, F_WRLCK, 0, 0), 0);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
    iso_close_ctx(c.ctx);
}

ISO_CASE(a_thread_that_waits_may_be_cancelled)
{
    struct waiter w = {.start = 0};
    struct locker a, b;
    int x, before;

    begin_two(&a, &b);
    x = open_file("data", O_RDWR);
    w.t = &b;
    w.fd = open_file("data", O_RDWR);
    before = count_descriptors();
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 10), 0);
    start_waiter(&w);
    want_int(pthread_cancel(w.thread), 0);
    join_waiter(&w);
    want(!w.done);
    want_int(lock_bytes(&a, x, F_SETLK, F_UNLCK, 0, 0), 0);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 0), 0);
    want_int(a.close(x, BY_CLOSE), 0);
    want_int(b.close(w.fd, BY_CLOSE), 0);
    want_int(count_descriptors(), before - 2);
    end_two(&a, &b);
}

ISO_CASE(a_circle_of_waiting_contexts_is_refused)
{
    struct waiter one = {.start = 1}, two = {.start = 2};
    struct locker t[3];
    int fd[3];

    locks_build();
    for (int i = 0; i < 3; i++) {
        t[i] = locks_in_context();
        fd[i] = open_file("data", O_RDWR);
        want_int(lock_bytes(&t[i], fd[i], F_SETLK, F_WRLCK, i, 1), 0);
    }
    one.t = &t[0];
    one.fd = fd[0];
    two.t = &t[1];
    two.fd = fd[1];
    start_waiter(&one);
    start_waiter(&two);
    want_int(lock_bytes(&t[2], fd[2], F_SETLKW, F_WRLCK, 0, 1), EDEADLK);
    want(!one.done && !two.done);
    want_int(lock_bytes(&t[2], fd[2], F_SETLK, F_UNLCK, 2, 1), 0);
    want_int(join_waiter(&two), 0);
    want_int(lock_bytes(&t[1], fd[1], F_SETLK, F_UNLCK, 1, 1), 0);
    want_int(join_waiter(&one), 0);
    for (int i = 0; i < 3; i++)
        iso_close_ctx(t[i].ctx);
}

/* ---- other processes ---- */

struct forked {
    struct locker *a, *b;
    int x, y;
};

static void child_has_no_locks(void *arg)
{
    struct forked *f = arg;

    want(kept_descriptor() < 0);
    want_int(lock_bytes(f->a, f->x, F_SETLK, F_RDLCK, 0, 1), EAGAIN);
    want_int(lock_bytes(f->b, f->y, F_SETLK, F_RDLCK, 0, 1), EAGAIN);
    want_int(lock_bytes(f->a, f->x, F_SETLK, F_WRLCK, 20, 1), 0);
    want_int(lock_bytes(f->b, f->y, F_SETLK, F_WRLCK, 20, 1), EAGAIN);
    want_int(f->a->close(f->x, BY_CLOSE), 0);
    want_int(lock_bytes(f->b, f->y, F_SETLK, F_WRLCK, 20, 1), 0);
}

static void child_outlives_lock(void *arg)
{
    struct forked *f = arg;

    (void)f;
    pause();
}

ISO_CASE(a_forked_child_has_no_locks_and_drops_none)
{
    struct locker a, b;
    struct forked f = {&a, &b, 0, 0};
    pid_t pid;

    begin_two(&a, &b);
    f.x = open_file("data", O_RDWR);
    f.y = open_file("data", O_RDWR);
    want_int(lock_bytes(&a, f.x, F_SETLK, F_WRLCK, 0, 10), 0);
    want(iso_join(iso_spawn(child_has_no_locks, &f)));
    want_int(lock_bytes(&b, f.y, F_SETLK, F_RDLCK, 9, 1), EAGAIN);
    pid = iso_spawn(child_outlives_lock, &f);
    want_int(a.close(f.x, BY_CLOSE), 0);
    want_int(lock_bytes(&b, f.y, F_SETLK, F_WRLCK, 0, 0), 0);
    want_int(kill(pid, SIGKILL), 0);
    want_int(waitpid(pid, NULL, 0), pid);
    end_two(&a, &b);
}

/* It has the parent's memory, and descriptors of its own. */
ISO_CASE(a_vfork_child_that_closes_drops_none)
{
    struct locker a, b;
    int x, y, status;

    begin_two(&a, &b);
    x = open_file("data", O_RDWR);
    y = open_file("data", O_RDWR);
    want_int(lock_bytes(&a, x, F_SETLK, F_WRLCK, 0, 1), 0);
    status = a.vfork_close(x);
    want(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    want_int(lock_bytes(&b, y, F_SETLK, F_RDLCK, 0, 1), EAGAIN);
    end_two(&a, &b);
}

static void want_other_id(void *arg)
{
    int (*id)(void) = *(int (**)(void))arg;

    want((id() & 0x3fffff) == getpid());
}

/* The library's own rule for LMDB. */
ISO_CASE(lmdb_has_a_process_id_for_each_context)
{
    int (*id[2])(void);
    struct exti_ctx *ctx[2];

    want(mkdir(in_tmp("lmdb"), 0700) == 0);
    iso_build("#include <unistd.h>\nint id(void) { int n = getpid(); return n; }\n",
              "lmdb/cpython.toy.so", "");
    for (int i = 0; i < 2; i++) {
        ctx[i] = iso_open(NULL);
        *(void **)&id[i] = iso_sym(iso_load(ctx[i], in_tmp("lmdb/cpython.toy.so")), "id");
        want_int(id[i](), id[i]());
        /* Linux PID_MAX_LIMIT */
        want(id[i]() > 1 << 22);
        want_int(id[i]() & 0x3fffff, getpid());
    }
    want(id[0]() != id[1]());
    want(iso_join(iso_spawn(want_other_id, &id[0])));
    iso_build("#include <unistd.h>\nint id(void) { int n = getpid(); return n; }\n", "other.so",
              "");
    want_int(call_int(iso_load(ctx[0], in_tmp("other.so")), "id"), getpid());
    for (int i = 0; i < 2; i++)
        iso_close_ctx(ctx[i]);
}

/* ---- as two processes ---- */

struct lock_op {
    int who, what, way;
    int fd; /* of three: for reading and writing, for reading, for writing */
    struct flock l;
    off_t at; /* where the descriptor stands */
};
enum { OP_SET, OP_GET, OP_SECTION, OP_CLOSE, OPS };

struct lock_result {
    int rc, error;
    struct flock l;
};

struct party {
    struct locker t;
    const char *file;
    int fd[3];
};

static const int modes[] = {O_RDWR, O_RDONLY, O_WRONLY};

static void open_party(struct party *p)
{
    for (int i = 0; i < 3; i++)
        p->fd[i] = open_file(p->file, modes[i]);
}

static struct lock_result perform(struct party *p, const struct lock_op *op)
{
    static const int sections[] = {F_TLOCK, F_ULOCK, F_TEST, 77};
    struct lock_result r = {.l = op->l};
    int fd = p->fd[op->fd];

    lseek(fd, op->at, SEEK_SET);
    errno = 0;
    switch (op->what) {
    case OP_SET:
        r.rc = p->t.lock(fd, F_SETLK, &r.l);
        break;
    case OP_GET:
        r.rc = p->t.lock(fd, F_GETLK, &r.l);
        break;
    case OP_SECTION:
        r.rc = p->t.section(fd, sections[op->way % 4], op->l.l_len);
        break;
    default:
        r.rc = p->t.close(fd, op->way % 5);
        p->fd[op->fd] = open_file(p->file, modes[op->fd]);
    }
    r.error = r.rc < 0 ? errno : 0;
    return r;
}

/* Performs what comes through a pipe. */
static void be_party(const char *file, int in, int out)
{
    struct party p = {.t = locks_by_themselves(), .file = file};
    struct lock_op op;

    want(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    open_party(&p);
    while (read(in, &op, sizeof op) == sizeof op) {
        struct lock_result r = perform(&p, &op);

        want(write(out, &r, sizeof r) == sizeof r);
    }
    _exit(0);
}

static unsigned next_random(unsigned below)
{
    static unsigned seed = 99;

    seed = seed * 1103515245 + 12345;
    return (seed >> 12) % below;
}

static struct lock_op random_op(void)
{
    static const short types[] = {F_RDLCK, F_WRLCK, F_UNLCK, 9};
    static const short whences[] = {SEEK_SET, SEEK_CUR, SEEK_END, 9};
    static const off_t odd[] = {INT64_MAX, INT64_MIN, INT64_MAX - 5, -100};
    struct lock_op op = {.who = (int)next_random(2), .what = (int)next_random(3)};

    if (next_random(20) == 0)
        op.what = OP_CLOSE;
    op.way = (int)next_random(20);
    op.fd = next_random(2) ? 0 : (int)next_random(3);
    op.at = next_random(30);
    op.l.l_type = types[next_random(next_random(10) ? 3 : 4)];
    op.l.l_whence = whences[next_random(next_random(10) ? 3 : 4)];
    op.l.l_start = (off_t)next_random(30) - (op.l.l_whence == SEEK_SET ? 0 : 10);
    op.l.l_len = (off_t)next_random(30) - (next_random(4) ? 0 : 15);
    if (!next_random(20))
        op.l.l_start = odd[next_random(4)];
    if (!next_random(20))
        op.l.l_len = odd[next_random(4)];
    op.l.l_pid = 4711;
    return op;
}

ISO_CASE(calls_of_all_kinds_give_what_they_give_two_processes)
{
    struct party own[2] = {{.file = "own"}, {.file = "own"}};
    int to[2][2], from[2][2], refused = 0, given = 0;
    pid_t pids[2];

    locks_build();
    want(system(iso_text("printf 0123456789abcdef >%s; cp %s %s", in_tmp("own"), in_tmp("own"),
                         in_tmp("theirs"))) == 0);
    for (int i = 0; i < 2; i++) {
        want(pipe(to[i]) == 0 && pipe(from[i]) == 0);
        pids[i] = fork();
        if (!pids[i])
            be_party("theirs", to[i][0], from[i][1]);
    }
    for (int i = 0; i < 2; i++) {
        own[i].t = locks_in_context();
        open_party(&own[i]);
    }
    for (int n = 0; n < 20000; n++) {
        const struct lock_op op = random_op();
        struct lock_result r = perform(&own[op.who], &op), theirs;

        want(write(to[op.who][1], &op, sizeof op) == sizeof op);
        want(read(from[op.who][0], &theirs, sizeof theirs) == sizeof theirs);
        want_int(r.rc, theirs.rc);
        want_int(r.error, theirs.error);
        want_int(r.l.l_type, theirs.l.l_type);
        want_int(r.l.l_whence, theirs.l.l_whence);
        want_int(r.l.l_start, theirs.l.l_start);
        want_int(r.l.l_len, theirs.l.l_len);
        want_int(r.l.l_pid, theirs.l.l_pid == pids[!op.who] ? getpid() : theirs.l.l_pid);
        refused += r.error == EAGAIN;
        given += op.what == OP_SET && !r.rc;
    }
    want(refused > 1000 && given > 1000);
    for (int i = 0; i < 2; i++) {
        kill(pids[i], SIGKILL);
        want_int(waitpid(pids[i], NULL, 0), pids[i]);
        iso_close_ctx(own[i].t.ctx);
    }
}

static void every_call_gives_what_it_gives_two_processes(void **state)
{
    if (test_is_emulated())
        skip_because("an emulator refuses odd ranges by itself, and for other reasons");
    calls_of_all_kinds_give_what_they_give_two_processes(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_exclude_each_other),
        cmocka_unit_test(a_context_and_the_rest_of_the_process_exclude_each_other),
        cmocka_unit_test(a_context_that_begins_to_lock_leaves_the_rest_of_the_process_its_locks),
        cmocka_unit_test(the_rest_of_the_process_keeps_its_locks_until_it_lets_go),
        cmocka_unit_test(a_context_that_is_closed_leaves_no_lock_and_no_descriptor),
        cmocka_unit_test(closing_a_descriptor_drops_the_locks_of_its_context_alone),
        cmocka_unit_test(locks_by_descriptors_that_others_have_closed_are_in_nobodys_way),
        cmocka_unit_test(a_copy_cannot_close_what_the_library_keeps),
        cmocka_unit_test(a_file_may_have_lost_its_name),
        cmocka_unit_test(a_lock_needs_the_access_that_the_descriptor_has),
        cmocka_unit_test(each_file_has_its_own_locks),
        cmocka_unit_test(a_context_waits_for_another),
        cmocka_unit_test(a_lock_that_comes_after_its_descriptor_was_closed_is_dropped),
        cmocka_unit_test(a_thread_that_waits_may_be_cancelled),
        cmocka_unit_test(a_circle_of_waiting_contexts_is_refused),
        cmocka_unit_test(a_forked_child_has_no_locks_and_drops_none),
        cmocka_unit_test(a_vfork_child_that_closes_drops_none),
        cmocka_unit_test(lmdb_has_a_process_id_for_each_context),
        cmocka_unit_test(every_call_gives_what_it_gives_two_processes),
    };

    return cmocka_run_group_tests_name("isolation/record_locks", tests, NULL, NULL);
}
