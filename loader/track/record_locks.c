#define _GNU_SOURCE /* F_OFD_SETLK */
#include "loader/track/record_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/track/kept_file.h"

#define SEEN_MAX 4

/* The locks of one context on one file. */
struct lock_holder {
    const struct exti_ctx *ctx; /* NULL: what is left must not be closed yet */
    struct exti_kept_file file;
    struct exti_lock_ranges ranges;
    unsigned waiting; /* threads, which use file.fd without the lock */

    /* The descriptors that the context has locked it by, as far as there is room. */
    int seen[SEEN_MAX];
    size_t seen_count; /* SEEN_MAX + 1: there was none */
    struct lock_holder *next;
};

/* A thread that waits for a lock. */
struct lock_wait {
    struct lock_holder *holder;
    struct exti_lock_range range;
    int fd, rc;
    struct lock_wait *next;
};

/* Guards all below.  Innermost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct lock_holder *holders;
static struct lock_holder *spare; /* close, which signal handlers may call, must not free */
static struct lock_wait *waits;
static atomic_size_t holder_count;
static pid_t process; /* a vfork child has our memory, but descriptors of its own */

/* ---- the lock ---- */

/* close and fcntl may be called by signal handlers, and are cancellation points. */
struct guard {
    sigset_t signals;
    int cancel;
};

static void guard_enter(struct guard *g)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &g->signals);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &g->cancel);
    pthread_mutex_lock(&lock);
}

static void guard_leave(const struct guard *g)
{
    int old;

    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(g->cancel, &old);
    pthread_sigmask(SIG_SETMASK, &g->signals, NULL);
}

static struct guard fork_guard; /* of the thread that forks, which holds the lock */

static void lock_locks(void)
{
    struct guard g;

    guard_enter(&g);
    fork_guard = g;
}

static void unlock_locks(void)
{
    const struct guard g = fork_guard;

    guard_leave(&g);
}

/* POSIX fork: a child has no record locks.  Its descriptors are of its parent's descriptions, so it
 * must not unlock, and must not keep them: the parent's locks would outlive the parent. */
static void forget_parent(void)
{
    while (holders) {
        struct lock_holder *h = holders;

        if (exti__kept_file_is(&h->file, h->file.fd))
            close(h->file.fd);
        holders = h->next;
        h->next = spare;
        spare = h;
    }
    waits = NULL;
    atomic_store(&holder_count, 0);
    process = getpid();
    unlock_locks();
}

static void install_lock_fork_handlers(void)
{
    process = getpid();
    pthread_atfork(lock_locks, unlock_locks, forget_parent);
}

void exti__record_locks_survive_forks(void)
{
    pthread_once(&fork_once, install_lock_fork_handlers);
}

/* ---- the system's locks; the lock is held from here on ---- */

static struct flock as_flock(const struct exti_lock_range *range)
{
    static const short types[] = {
        [EXTI_LOCK_NONE] = F_UNLCK, [EXTI_LOCK_READ] = F_RDLCK, [EXTI_LOCK_WRITE] = F_WRLCK};

    return (struct flock){.l_type = types[range->kind],
                          .l_whence = SEEK_SET,
                          .l_start = range->start,
                          .l_len = range->end == INT64_MAX ? 0 : range->end - range->start + 1};
}

/* fcntl(2): a system without such locks gives EINVAL. */
static int system_lock(int fd, int command, const struct exti_lock_range *range)
{
    struct flock l = as_flock(range);

    if (fcntl(fd, command, &l) == 0)
        return 0;
    return errno == EINVAL ? EXTI_LOCK_BY_SYSTEM : errno;
}

static const struct exti_lock_range everything = {0, INT64_MAX, EXTI_LOCK_NONE};

/* ---- holders ---- */

static struct lock_holder **find_holder(const struct exti_ctx *ctx, dev_t dev, ino_t ino)
{
    struct lock_holder **link = &holders;

    while (*link && !((*link)->ctx == ctx && (*link)->file.ino == ino && (*link)->file.dev == dev))
        link = &(*link)->next;
    return link;
}

/* The memory is kept for the next, with the room in its ranges. */
static void remove_holder(struct lock_holder **link)
{
    struct lock_holder *h = *link;

    *link = h->next;
    h->next = spare;
    spare = h;
    atomic_fetch_sub(&holder_count, 1);
}

/* Later, if the process would lose locks of its own. */
static void remove_idle_holder(struct lock_holder *h)
{
    struct lock_holder **link = &holders;

    if (h->ranges.count || h->waiting)
        return;
    h->ctx = NULL;
    if (!exti__kept_file_close(&h->file))
        return;
    while (*link != h)
        link = &(*link)->next;
    remove_holder(link);
}

/* Unlocks first: a child that is about to call exec may have the description as well. */
static void drop_locks(struct lock_holder *h)
{
    if (h->ranges.count && exti__kept_file_is(&h->file, h->file.fd))
        system_lock(h->file.fd, F_OFD_SETLK, &everything);
    h->ranges.count = 0;
    h->seen_count = 0;
    remove_idle_holder(h);
}

/* Finds the context's holder for the file; NULL if it has none.  One whose descriptor the program
 * has closed, as one that closes all does, has lost its locks. */
static struct lock_holder *sound_holder(const struct exti_ctx *ctx, dev_t dev, ino_t ino)
{
    struct lock_holder **link = find_holder(ctx, dev, ino), *h = *link;

    if (!h || h->waiting || exti__kept_file_is(&h->file, h->file.fd))
        return h;
    remove_holder(link);
    return NULL;
}

static void remember_descriptor(struct lock_holder *h, int fd)
{
    for (size_t i = 0; i < h->seen_count && i < SEEN_MAX; i++)
        if (h->seen[i] == fd)
            return;
    if (h->seen_count < SEEN_MAX)
        h->seen[h->seen_count] = fd;
    if (h->seen_count <= SEEN_MAX)
        h->seen_count++;
}

/* A shared library, or the program, may have closed the descriptors of a context, unseen. */
static bool is_abandoned(const struct lock_holder *h)
{
    if (h->waiting || h->seen_count > SEEN_MAX)
        return false;
    for (size_t i = 0; i < h->seen_count; i++)
        if (exti__kept_file_is(&h->file, h->seen[i]))
            return false;
    return true;
}

static void remove_abandoned_holders(void)
{
    for (struct lock_holder *h = holders, *next; h; h = next) {
        next = h->next;
        if (!h->ranges.count && is_abandoned(h))
            remove_idle_holder(h);
    }
}

static struct lock_holder *add_holder(const struct exti_ctx *ctx, const struct exti_kept_file *file)
{
    struct lock_holder *h = spare ? spare : exti__calloc(1, sizeof *h);

    if (!h)
        return NULL;
    if (spare)
        spare = h->next;
    h->ctx = ctx;
    h->file = *file;
    h->ranges.count = h->seen_count = 0;
    h->waiting = 0;
    h->next = holders;
    holders = h;
    atomic_fetch_add(&holder_count, 1);
    return h;
}

/* Whether a description opened in that access mode can have such a lock. */
static bool mode_allows(int mode, enum exti_lock_kind kind)
{
    return mode == O_RDWR || kind == EXTI_LOCK_NONE ||
           mode == (kind == EXTI_LOCK_READ ? O_RDONLY : O_WRONLY);
}

/* Moves the locks to a description that can have the other kind too.  Read locks, which a
 * description opened for reading has alone, do not conflict with their like. */
static int widen_holder(struct lock_holder *h, int fd, int mode, const struct stat *st)
{
    struct exti_kept_file wide, narrow = h->file;
    int rc = h->waiting ? ENOLCK : exti__kept_file_open(&wide, fd, mode, st);

    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < h->ranges.count; i++)
        rc = system_lock(wide.fd, F_OFD_SETLK, &h->ranges.list[i]);
    if (rc) {
        system_lock(wide.fd, F_OFD_SETLK, &everything);
        close(wide.fd);
        return ENOLCK;
    }
    system_lock(narrow.fd, F_OFD_SETLK, &everything);
    h->file = wide;
    if (!exti__kept_file_close(&narrow))
        add_holder(NULL, &narrow);
    return 0;
}

/* Finds or makes the holder for the file of `fd` and a lock of that kind.  *out is NULL if there is
 * none to unlock. */
static int take_holder(const struct exti_ctx *ctx, int fd, enum exti_lock_kind kind,
                       struct lock_holder **out)
{
    struct exti_kept_file file;
    struct lock_holder *h;
    struct stat st;
    int flags = fcntl(fd, F_GETFL), mode = flags & O_ACCMODE, rc;

    if (flags < 0 || fstat(fd, &st))
        return errno;
    /* fcntl(2): as for a descriptor that is not open at all. */
    if ((flags & O_PATH) || !mode_allows(mode, kind))
        return EBADF;
    *out = h = sound_holder(ctx, st.st_dev, st.st_ino);
    if (kind == EXTI_LOCK_NONE)
        return 0;
    if (h)
        return mode_allows(h->file.mode, kind) ? 0 : widen_holder(h, fd, mode, &st);
    rc = exti__kept_file_open(&file, fd, mode, &st);
    if (rc)
        return rc;
    remove_abandoned_holders();
    *out = add_holder(ctx, &file);
    if (*out)
        return 0;
    close(file.fd);
    return ENOLCK;
}

static bool is_in_the_way(const struct lock_holder *h, const struct exti_ctx *ctx, dev_t dev,
                          ino_t ino, const struct exti_lock_range *range)
{
    return h->ctx != ctx && h->file.ino == ino && h->file.dev == dev &&
           exti__lock_ranges_conflict(&h->ranges, range);
}

/* Drops the locks in the way that other contexts have no descriptor for any more. */
static bool drop_abandoned(const struct exti_ctx *ctx, dev_t dev, ino_t ino,
                           const struct exti_lock_range *range)
{
    bool dropped = false;

    for (struct lock_holder *h = holders, *next; h; h = next) {
        next = h->next;
        if (!is_in_the_way(h, ctx, dev, ino, range) || !is_abandoned(h))
            continue;
        drop_locks(h);
        dropped = true;
    }
    return dropped;
}

/* ---- waiting ---- */

#define CHAIN_MAX 8

/* Whether the wait is for `ctx`, or for a context that waits for it in turn. */
static bool waits_for(const struct lock_wait *w, const struct exti_ctx *ctx, int depth)
{
    const struct lock_holder *own = w->holder;

    for (const struct lock_holder *h = holders; h; h = h->next) {
        if (!is_in_the_way(h, own->ctx, own->file.dev, own->file.ino, &w->range))
            continue;
        if (h->ctx == ctx)
            return true;
        for (const struct lock_wait *other = waits; other && depth; other = other->next)
            if (other->holder->ctx == h->ctx && waits_for(other, ctx, depth - 1))
                return true;
    }
    return false;
}

/* What a wait has given is kept, unless the descriptor was closed meanwhile: then the lock would
 * have been dropped had it been there (POSIX fcntl: EBADF). */
static void settle_wait(struct lock_wait *w)
{
    struct lock_holder *h = w->holder;

    if (w->rc)
        return;
    if (h->ctx && exti__kept_file_is(&h->file, w->fd) && exti__lock_ranges_room(&h->ranges)) {
        exti__lock_ranges_set(&h->ranges, &w->range);
        remember_descriptor(h, w->fd);
        return;
    }
    w->rc = h->ctx && exti__kept_file_is(&h->file, w->fd) ? ENOLCK : EBADF;
    w->range.kind = EXTI_LOCK_NONE;
    system_lock(h->file.fd, F_OFD_SETLK, &w->range);
}

static void end_wait(void *arg)
{
    struct lock_wait *w = arg, **link = &waits;
    struct guard g;

    guard_enter(&g);
    while (*link != w)
        link = &(*link)->next;
    *link = w->next;
    w->holder->waiting--;
    settle_wait(w);
    if (!w->holder->ctx)
        remove_idle_holder(w->holder);
    guard_leave(&g);
}

/* The lock is not held: the thread may be cancelled. */
static int run_wait(struct lock_wait *w)
{
    pthread_cleanup_push(end_wait, w);
    w->rc = system_lock(w->holder->file.fd, F_OFD_SETLKW, &w->range);
    pthread_cleanup_pop(1);
    return w->rc;
}

/* Enters the thread with those that wait; false if none of them would ever get what it waits
 * for. */
static bool begin_wait(struct lock_wait *w)
{
    if (waits_for(w, w->holder->ctx, CHAIN_MAX))
        return false;
    w->holder->waiting++;
    w->next = waits;
    waits = w;
    return true;
}

/* ---- calls of copies; the lock is not held ---- */

static int try_lock(struct lock_holder *h, const struct exti_lock_range *range)
{
    int rc = exti__lock_ranges_room(&h->ranges) ? 0 : ENOLCK;

    if (!rc)
        rc = system_lock(h->file.fd, F_OFD_SETLK, range);
    if (rc == EAGAIN && drop_abandoned(h->ctx, h->file.dev, h->file.ino, range))
        rc = system_lock(h->file.fd, F_OFD_SETLK, range);
    if (!rc)
        exti__lock_ranges_set(&h->ranges, range);
    return rc;
}

int exti__record_lock(const struct exti_ctx *ctx, int fd, const struct exti_lock_range *range,
                      bool wait)
{
    struct lock_wait w = {.range = *range, .fd = fd, .rc = ECANCELED};
    bool waiting = false;
    struct guard g;
    int rc;

    if (getpid() != process)
        return EXTI_LOCK_BY_SYSTEM;
    guard_enter(&g);
    rc = take_holder(ctx, fd, range->kind, &w.holder);
    if (!rc && w.holder) {
        remember_descriptor(w.holder, fd);
        rc = try_lock(w.holder, range);
        waiting = rc == EAGAIN && wait;
        if (waiting && !begin_wait(&w)) {
            waiting = false;
            rc = EDEADLK;
        }
    }
    guard_leave(&g);
    return waiting ? run_wait(&w) : rc;
}

/* The process of the lock at `start`; fcntl(2) gives -1 for a description's. */
static pid_t owner_of(pid_t told, const struct exti_ctx *ctx, const struct stat *st,
                      const struct exti_lock_range *range)
{
    for (const struct lock_holder *h = holders; told == -1 && h; h = h->next)
        if (is_in_the_way(h, ctx, st->st_dev, st->st_ino, range))
            told = process;
    return told;
}

static int test_lock(const struct exti_ctx *ctx, int fd, struct exti_lock_range *range, pid_t *pid)
{
    const struct lock_holder *h;
    struct flock l = as_flock(range);
    struct stat st;

    if (fstat(fd, &st))
        return errno;
    h = sound_holder(ctx, st.st_dev, st.st_ino);
    /* A descriptor of the copy's own serves to look: without a holder nothing of the context is
     * in the way. */
    if (fcntl(h ? h->file.fd : fd, F_OFD_GETLK, &l))
        return errno == EINVAL ? EXTI_LOCK_BY_SYSTEM : errno;
    if (l.l_type != F_UNLCK && drop_abandoned(ctx, st.st_dev, st.st_ino, range)) {
        l = as_flock(range);
        if (fcntl(h ? h->file.fd : fd, F_OFD_GETLK, &l))
            return errno;
    }
    if (l.l_type == F_UNLCK) {
        range->kind = EXTI_LOCK_NONE;
        return 0;
    }
    *pid = owner_of(l.l_pid, ctx, &st, range);
    *range = (struct exti_lock_range){l.l_start, l.l_len ? l.l_start + l.l_len - 1 : INT64_MAX,
                                      l.l_type == F_RDLCK ? EXTI_LOCK_READ : EXTI_LOCK_WRITE};
    return 0;
}

int exti__record_lock_test(const struct exti_ctx *ctx, int fd, struct exti_lock_range *range,
                           pid_t *pid)
{
    struct guard g;
    int rc;

    if (getpid() != process)
        return EXTI_LOCK_BY_SYSTEM;
    guard_enter(&g);
    rc = test_lock(ctx, fd, range, pid);
    guard_leave(&g);
    return rc;
}

bool exti__record_locks_any(void)
{
    return atomic_load_explicit(&holder_count, memory_order_relaxed) != 0;
}

static bool is_kept(int fd)
{
    const struct lock_holder *h = holders;

    while (h && h->file.fd != fd)
        h = h->next;
    return h != NULL;
}

void exti__record_locks_closing(const struct exti_ctx *ctx, int fd, struct exti_closing_file *out)
{
    struct stat st;
    struct guard g;

    *out = (struct exti_closing_file){0};
    if (getpid() != process || fstat(fd, &st))
        return;
    guard_enter(&g);
    out->kept = is_kept(fd);
    if (!out->kept && *find_holder(ctx, st.st_dev, st.st_ino))
        *out = (struct exti_closing_file){ctx, st.st_dev, st.st_ino, false};
    guard_leave(&g);
}

void exti__record_locks_closed(const struct exti_closing_file *closing)
{
    const int error = errno;
    struct lock_holder *h;
    struct guard g;

    if (!closing->ctx)
        return;
    guard_enter(&g);
    h = *find_holder(closing->ctx, closing->dev, closing->ino);
    if (h)
        drop_locks(h);
    guard_leave(&g);
    errno = error;
}

int exti__record_locks_next_kept(int fd)
{
    struct guard g;
    int next = -1;

    if (getpid() != process)
        return -1;
    guard_enter(&g);
    for (const struct lock_holder *h = holders; h; h = h->next)
        if (h->file.fd >= fd && (next < 0 || h->file.fd < next))
            next = h->file.fd;
    guard_leave(&g);
    return next;
}

/* The number stays open, for dup2 to close. */
bool exti__record_locks_vacate(int fd)
{
    struct guard g;
    bool free = true;

    if (getpid() != process)
        return true;
    guard_enter(&g);
    for (struct lock_holder *h = holders; h; h = h->next)
        if (h->file.fd == fd)
            free = !h->waiting && exti__kept_file_can_close(&h->file) &&
                   exti__kept_file_move(&h->file) == 0;
    guard_leave(&g);
    return free;
}

void exti__record_locks_forget(const struct exti_ctx *ctx)
{
    struct guard g;

    if (!exti__record_locks_any())
        return;
    guard_enter(&g);
    for (struct lock_holder *h = holders, *next; h; h = next) {
        next = h->next;
        if (h->ctx && h->ctx != ctx)
            continue;
        h->ctx = NULL;
        drop_locks(h);
    }
    guard_leave(&g);
}
