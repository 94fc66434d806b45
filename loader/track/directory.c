#define _GNU_SOURCE /* unshare, O_PATH */
#include "loader/track/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/track/helper_thread.h"
#include "loader/track/home.h"

/* Of the process, as contexts may end while threads are theirs. */
typedef uint64_t directory_id; /* 0: none */

struct exti_directory {
    directory_id id;
    int error; /* why it has no threads of its own; 0: it may have */
    atomic_bool switches;

    /* All that follows is used only if it switches, and changed under the lock. */
    atomic_int fd; /* the directory; the number stays, and what it stands for changes */
    _Atomic(mode_t) mask;
    /* A thread of the context's group, which changes that for threads that are not in it. */
    struct exti_helper_thread *helper;
    struct exti_directory *next;
};

/* Where the calling thread is. */
static _Thread_local struct {
    directory_id own; /* whose group it is in */
    directory_id in;  /* where it was taken to */
    struct exti_directory *at;
    struct exti_home home; /* while it is in one */
} self;

/* Guards the list and what is in it.  Signals are blocked meanwhile, as chdir(2) may be called in
 * handlers.  Innermost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;
static struct exti_directory *all;
static directory_id last_id;
static _Atomic(pid_t) process;

/* Nothing here is a cancellation point of POSIX.  One that were cancelled would keep the lock. */
static int begin_uncancelled(void)
{
    int state = PTHREAD_CANCEL_ENABLE;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

static void end_uncancelled(int state)
{
    pthread_setcancelstate(state, NULL);
}

static void lock_directories(sigset_t *signals)
{
    sigset_t every;

    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, signals);
    pthread_mutex_lock(&lock);
}

static void unlock_directories(const sigset_t *signals)
{
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, signals, NULL);
}

/* NULL: there is none any more.  The lock is held. */
static struct exti_directory *find_directory(directory_id id)
{
    struct exti_directory *d = all;

    while (d && d->id != id)
        d = d->next;
    return d;
}

/* ---- beginning and end ---- */

/* On a thread that nobody else uses, as a mask can only be read by setting it.  Where the system
 * refuses that it is of no use. */
static void read_mask(void *arg)
{
    if (unshare(CLONE_FS) == 0)
        *(mode_t *)arg = umask(0);
}

/* The place of the calling thread.  0 or an errno value. */
static int read_place(struct exti_directory *d)
{
    struct exti_helper_thread *reader;
    mode_t mask = 022;
    int rc;

    d->fd = open(".", EXTI_ONLY_FOLDER);
    if (d->fd < 0)
        return errno;
    rc = exti__helper_thread_start(&reader);
    if (rc) {
        close(d->fd);
        d->fd = -1;
        return rc;
    }
    exti__helper_thread_run(reader, read_mask, &mask);
    exti__helper_thread_end(reader);
    d->mask = mask;
    return 0;
}

static void add_directory(struct exti_directory *d)
{
    sigset_t signals;

    lock_directories(&signals);
    d->id = ++last_id;
    d->next = all;
    all = d;
    unlock_directories(&signals);
}

/* A program may run where it cannot search the current directory: so does its context, on threads
 * that have the process's. */
int exti__directory_new(struct exti_directory **out, bool switches, struct exti_error *err)
{
    struct exti_directory *d = exti__calloc(1, sizeof *d);
    int state;

    if (!d)
        return exti__fail_nomem(err);
    d->fd = -1;
    state = begin_uncancelled();
    d->error = switches ? read_place(d) : 0;
    d->switches = switches && !d->error;
    add_directory(d);
    end_uncancelled(state);
    *out = d;
    return 0;
}

void exti__directory_end(struct exti_directory *d)
{
    struct exti_directory **link = &all;
    struct exti_helper_thread *helper;
    sigset_t signals;
    int state;

    if (!d)
        return;
    state = begin_uncancelled();
    lock_directories(&signals);
    while (*link && *link != d)
        link = &(*link)->next;
    if (*link)
        *link = d->next;
    helper = d->helper;
    d->helper = NULL;
    d->switches = false;
    if (exti__is_place(d->fd))
        close(d->fd);
    d->fd = -1;
    unlock_directories(&signals);
    if (helper)
        exti__helper_thread_end(helper);
    end_uncancelled(state);
}

void exti__directory_free(struct exti_directory *d)
{
    exti__directory_end(d);
    exti__free(d);
}

/* ---- taking a thread there ---- */

/* The mask that the thread had; -1 and errno: it cannot go there.  The thread shares its own with
 * none. */
static int arrive(struct exti_directory *d)
{
    if (!exti__is_place(d->fd)) {
        errno = EBADF;
        return -1;
    }
    return fchdir(d->fd) ? -1 : (int)umask(d->mask);
}

static void go_home(void)
{
    exti__home_return(&self.home);
    self.in = 0;
    self.at = NULL;
}

/* From outside, or from another context. */
static void go(struct exti_directory *d)
{
    struct exti_home home = self.home;
    int mask;

    if (!self.in && !exti__home_note(&home))
        return;
    mask = arrive(d);
    if (mask < 0 && self.in)
        go_home();
    else if (mask < 0)
        close(home.fd);
    if (mask < 0)
        return;
    if (!self.in)
        home.mask = (mode_t)mask;
    self.home = home;
    self.in = d->id;
    self.at = d;
}

static bool is_open(directory_id id)
{
    sigset_t signals;
    bool found;

    lock_directories(&signals);
    found = find_directory(id) != NULL;
    unlock_directories(&signals);
    return found;
}

static bool is_own(void)
{
    if (self.own && !is_open(self.own))
        self.own = 0;
    return self.own != 0;
}

void exti__directory_enter(struct exti_directory *d)
{
    const directory_id to = d && d->switches ? d->id : 0;
    int state, error;

    if (to == self.in || (to && to == self.own) || is_own())
        return;
    error = errno;
    state = begin_uncancelled();
    /* Each time: what this thread has started since shares them, and is not to be moved.  Who has
     * forbidden that meanwhile is taken home all the same. */
    if (unshare(CLONE_FS) == 0 || !to) {
        if (to)
            go(d);
        else
            go_home();
    }
    end_uncancelled(state);
    errno = error;
}

/* ---- the context's own threads ---- */

/* The group's first thread.  The lock is held.  The helper shares what the thread has. */
static int found_group(struct exti_directory *d)
{
    struct exti_helper_thread *helper;
    int rc;

    if (d->helper)
        return EBUSY;
    if (unshare(CLONE_FS))
        return errno;
    if (!d->switches)
        return 0;
    rc = exti__helper_thread_start(&helper);
    if (rc)
        return rc;
    if (arrive(d) < 0) {
        rc = errno;
        exti__helper_thread_end(helper);
        return rc;
    }
    d->helper = helper;
    return 0;
}

static int own_thread(struct exti_directory *d, bool started)
{
    sigset_t signals;
    int rc;

    if (is_own())
        return EBUSY;
    exti__directory_enter(NULL);
    lock_directories(&signals);
    rc = started ? 0 : found_group(d);
    if (!rc)
        self.own = d->id;
    unlock_directories(&signals);
    return rc;
}

int exti__directory_own_thread(struct exti_directory *d, bool started)
{
    int state, rc;

    if (self.own == d->id || d->error)
        return d->error;
    state = begin_uncancelled();
    rc = own_thread(d, started);
    end_uncancelled(state);
    return rc;
}

/* ---- threads that copies start ---- */

struct creation {
    struct exti_directory *d;
    pthread_t *out;
    const pthread_attr_t *attr;
    void *(*run)(void *arg);
    void *arg;
    cpu_set_t processors;
    int rc;
};

/* On the helper's thread. */
static void create(void *arg)
{
    struct creation *c = arg;

    sched_setaffinity(0, sizeof c->processors, &c->processors);
    c->rc = pthread_create(c->out, c->attr, c->run, c->arg);
}

/* Likewise, where the thread that has started it is in no context's group. */
static void move_apart(void *arg)
{
    struct creation *c = arg;

    c->rc = unshare(CLONE_FS) || arrive(c->d) < 0 ? EPERM : 0;
}

/* The lock is held. */
static bool has_helper(struct exti_directory *d)
{
    struct creation c = {.d = d};
    struct exti_helper_thread *helper;

    if (d->helper)
        return true;
    if (exti__helper_thread_start(&helper))
        return false;
    exti__helper_thread_run(helper, move_apart, &c);
    if (c.rc)
        exti__helper_thread_end(helper);
    else
        d->helper = helper;
    return !c.rc;
}

/* In glibc from 2.32 on. */
extern int pthread_attr_getsigmask_np(const pthread_attr_t *attr, sigset_t *out)
    __attribute__((weak));

static bool has_mask(const pthread_attr_t *attr, sigset_t *out)
{
    return attr && pthread_attr_getsigmask_np && pthread_attr_getsigmask_np(attr, out) == 0;
}

/* By the group's helper, as if the calling thread did.  False: there is none. */
static bool create_in_group(struct creation *c, struct exti_directory_start *begin)
{
    bool done;
    sigset_t signals;

    sched_getaffinity(0, sizeof c->processors, &c->processors);
    lock_directories(&signals);
    done = c->d->switches && has_helper(c->d);
    if (done) {
        begin->own = c->d->id;
        begin->inherits = true;
        if (!has_mask(c->attr, &begin->signals))
            begin->signals = signals;
        prctl(PR_GET_NAME, begin->name);
        exti__helper_thread_run(c->d->helper, create, c);
    }
    unlock_directories(&signals);
    return done;
}

int exti__directory_create(struct exti_directory *d, struct exti_directory_start *begin,
                           pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *arg),
                           void *arg)
{
    struct creation c = {.d = d, .out = out, .attr = attr, .run = run, .arg = arg};
    struct exti_directory *const at = self.in && is_open(self.in) ? self.at : NULL;
    const int state = begin_uncancelled();

    *begin = (struct exti_directory_start){.own = self.own};
    if (!d || !d->switches || self.own == d->id || !create_in_group(&c, begin)) {
        /* What the thread starts shares its place until it moves again. */
        exti__directory_enter(d);
        c.rc = pthread_create(out, attr, run, arg);
        exti__directory_enter(at);
    }
    end_uncancelled(state);
    return c.rc;
}

void exti__directory_begin(const struct exti_directory_start *begin)
{
    self.own = begin->own;
    if (!begin->inherits)
        return;
    prctl(PR_SET_NAME, begin->name);
    pthread_sigmask(SIG_SETMASK, &begin->signals, NULL);
}

/* ---- what copies call ---- */

/* A vfork child has its parent's memory, and a place of its own. */
static bool is_ours(void)
{
    return getpid() == process;
}

/* The directory of which others are to be told, with the lock; or NULL, without it. */
static struct exti_directory *begin_change(sigset_t *signals)
{
    const directory_id id = self.own ? self.own : self.in;
    struct exti_directory *d;

    if (!id || !is_ours())
        return NULL;
    lock_directories(signals);
    d = find_directory(id);
    if (d && d->switches)
        return d;
    unlock_directories(signals);
    return NULL;
}

static void tell_directory(void *arg)
{
    (void)!fchdir(*(const int *)arg);
}

static void tell_mask(void *arg)
{
    umask(*(const mode_t *)arg);
}

/* What others find from now on.  `fd` is given to the directory. */
static void publish(struct exti_directory *d, int fd)
{
    if (fd != d->fd && exti__is_place(d->fd) && dup3(fd, d->fd, O_CLOEXEC) >= 0)
        close(fd);
    else
        d->fd = fd;
}

/* The lock is held. */
static int change_directory(struct exti_directory *d, int fd)
{
    int there;

    if (fchdir(fd)) {
        const int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    publish(d, fd);
    there = d->fd;
    if (self.own != d->id && d->helper)
        exti__helper_thread_run(d->helper, tell_directory, &there);
    return 0;
}

static bool is_told(void)
{
    sigset_t signals;
    const bool told = begin_change(&signals) != NULL;

    if (told)
        unlock_directories(&signals);
    return told;
}

/* `fd`, which is a place only, is consumed. */
static int move_to(int fd)
{
    struct exti_directory *d;
    sigset_t signals;
    int rc, error;

    if (fd < 0)
        return -1;
    d = begin_change(&signals);
    rc = d ? change_directory(d, fd) : fchdir(fd);
    error = errno;
    if (d)
        unlock_directories(&signals);
    else
        close(fd);
    errno = error;
    return rc;
}

int exti__directory_chdir(const char *path)
{
    const int state = begin_uncancelled();
    const int rc = is_told() ? move_to(open(path, EXTI_ONLY_FOLDER)) : chdir(path);

    end_uncancelled(state);
    return rc;
}

int exti__directory_fchdir(int fd)
{
    const int state = begin_uncancelled();
    const int rc = fd >= 0 && is_told() ? move_to(openat(fd, ".", EXTI_ONLY_FOLDER)) : fchdir(fd);

    end_uncancelled(state);
    return rc;
}

mode_t exti__directory_umask(mode_t mask)
{
    const int state = begin_uncancelled();
    sigset_t signals;
    struct exti_directory *d = begin_change(&signals);
    const mode_t before = umask(mask);

    if (d) {
        d->mask = mask & 0777;
        if (self.own != d->id && d->helper)
            exti__helper_thread_run(d->helper, tell_mask, &mask);
        unlock_directories(&signals);
    }
    end_uncancelled(state);
    return before;
}

/* ---- forks ---- */

static sigset_t fork_signals; /* of the thread that forks, which holds the lock */

static void begin_fork(void)
{
    sigset_t signals;

    lock_directories(&signals);
    fork_signals = signals;
}

static void end_fork(void)
{
    const sigset_t signals = fork_signals;

    unlock_directories(&signals);
}

/* The thread that forks has a copy of its place for itself. */
static void begin_child(void)
{
    process = getpid();
    for (struct exti_directory *d = all; d; d = d->next) {
        if (d->helper)
            exti__helper_thread_forget(d->helper);
        d->helper = NULL;
    }
    end_fork();
}

static void install_fork_handlers(void)
{
    process = getpid();
    fork_error = pthread_atfork(begin_fork, end_fork, begin_child);
}

int exti__directories_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handlers);
    return fork_error;
}
