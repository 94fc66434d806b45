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

/* Of the process, as contexts may end while threads are theirs. */
typedef uint64_t directory_id; /* 0: none */

struct exti_directory {
    directory_id id;
    bool switches;

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
    int home; /* while it is in one: the directory that it has outside */
    mode_t home_mask;
} self;

#define ONLY_FOLDER (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* Guards the list and what is in it.  Signals are blocked meanwhile, as chdir(2) may be called in
 * handlers.  Innermost. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;
static struct exti_directory *all;
static directory_id last_id;
static _Atomic(pid_t) process;

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

/* Programs close whatever numbers there are: one that is no place any more is somebody else's. */
static bool is_place(int fd)
{
    const int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_PATH);
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

/* The place of the calling thread. */
static int read_place(struct exti_directory *d, struct exti_error *err)
{
    struct exti_helper_thread *reader;
    mode_t mask = 022;

    d->fd = open(".", ONLY_FOLDER);
    if (d->fd < 0)
        return exti__fail_io(err, errno, ".", "cannot open the current directory");
    reader = exti__helper_thread_start();
    if (!reader) {
        close(d->fd);
        return exti__fail_nomem(err);
    }
    exti__helper_thread_run(reader, read_mask, &mask);
    exti__helper_thread_end(reader);
    d->mask = mask;
    return 0;
}

int exti__directory_new(struct exti_directory **out, bool switches, struct exti_error *err)
{
    struct exti_directory *d = exti__calloc(1, sizeof *d);
    sigset_t signals;
    int rc;

    if (!d)
        return exti__fail_nomem(err);
    d->switches = switches;
    d->fd = -1;
    rc = switches ? read_place(d, err) : 0;
    if (rc) {
        exti__free(d);
        return rc;
    }
    lock_directories(&signals);
    d->id = ++last_id;
    d->next = all;
    all = d;
    unlock_directories(&signals);
    *out = d;
    return 0;
}

void exti__directory_free(struct exti_directory *d)
{
    struct exti_directory **link = &all;
    sigset_t signals;

    if (!d)
        return;
    lock_directories(&signals);
    while (*link != d)
        link = &(*link)->next;
    *link = d->next;
    unlock_directories(&signals);
    if (d->helper)
        exti__helper_thread_end(d->helper);
    if (is_place(d->fd))
        close(d->fd);
    exti__free(d);
}

/* ---- taking a thread there ---- */

/* The mask that the thread had; -1: it cannot go there.  The thread shares its own with none. */
static int arrive(struct exti_directory *d)
{
    return fchdir(d->fd) ? -1 : (int)umask(d->mask);
}

static void go_home(void)
{
    if (fchdir(self.home) == 0)
        close(self.home);
    umask(self.home_mask);
    self.in = 0;
    self.at = NULL;
}

/* From outside, or from another context. */
static void go(struct exti_directory *d)
{
    const int home = self.in ? self.home : open(".", ONLY_FOLDER);
    const int before = home < 0 ? -1 : arrive(d);

    if (before < 0) {
        if (self.in)
            go_home();
        else if (home >= 0)
            close(home);
        return;
    }
    if (!self.in) {
        self.home = home;
        self.home_mask = (mode_t)before;
    }
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
    const int error = errno;

    if (to == self.in || (to && to == self.own) || is_own())
        return;
    /* Each time: what this thread has started since shares them, and is not to be moved. */
    if (unshare(CLONE_FS) == 0) {
        if (to)
            go(d);
        else
            go_home();
    }
    errno = error;
}

/* ---- the context's own threads ---- */

/* The group's first thread.  The lock is held. */
static int found_group(struct exti_directory *d)
{
    if (d->helper)
        return EBUSY;
    if (unshare(CLONE_FS))
        return errno;
    if (!d->switches)
        return 0;
    if (arrive(d) < 0)
        return errno;
    d->helper = exti__helper_thread_start();
    return d->helper ? 0 : EAGAIN;
}

int exti__directory_own_thread(struct exti_directory *d, bool started)
{
    sigset_t signals;
    int rc = 0;

    if (self.own == d->id)
        return 0;
    if (is_own())
        return EBUSY;
    exti__directory_enter(NULL);
    lock_directories(&signals);
    if (!started)
        rc = found_group(d);
    if (!rc)
        self.own = d->id;
    unlock_directories(&signals);
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

    if (d->helper)
        return true;
    d->helper = exti__helper_thread_start();
    if (!d->helper)
        return false;
    exti__helper_thread_run(d->helper, move_apart, &c);
    if (!c.rc)
        return true;
    exti__helper_thread_end(d->helper);
    d->helper = NULL;
    return false;
}

/* By the group's helper, as if the calling thread did.  False: there is none. */
static bool create_in_group(struct creation *c, struct exti_directory_start *begin)
{
    bool done;
    sigset_t signals;

    sched_getaffinity(0, sizeof c->processors, &c->processors);
    lock_directories(&signals);
    done = has_helper(c->d);
    if (done) {
        begin->own = c->d->id;
        begin->inherits = true;
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
    int rc;

    *begin = (struct exti_directory_start){.own = self.own};
    if (d && d->switches && self.own != d->id && create_in_group(&c, begin))
        return c.rc;
    /* What the thread starts shares its place until it moves again. */
    exti__directory_enter(d);
    rc = pthread_create(out, attr, run, arg);
    exti__directory_enter(at);
    return rc;
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

static int publish(struct exti_directory *d, int fd)
{
    if (is_place(d->fd))
        return dup3(fd, d->fd, O_CLOEXEC);
    d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return d->fd;
}

/* The lock is held. */
static int change_directory(struct exti_directory *d, int fd)
{
    if (fchdir(fd) || publish(d, fd) < 0)
        return -1;
    if (self.own != d->id && d->helper)
        exti__helper_thread_run(d->helper, tell_directory, &fd);
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

/* Closes `fd`, which is a place only. */
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
    close(fd);
    errno = error;
    return rc;
}

int exti__directory_chdir(const char *path)
{
    return is_told() ? move_to(open(path, ONLY_FOLDER)) : chdir(path);
}

int exti__directory_fchdir(int fd)
{
    return fd >= 0 && is_told() ? move_to(openat(fd, ".", ONLY_FOLDER)) : fchdir(fd);
}

mode_t exti__directory_umask(mode_t mask)
{
    sigset_t signals;
    struct exti_directory *d = begin_change(&signals);
    const mode_t before = umask(mask);

    if (!d)
        return before;
    d->mask = mask & 0777;
    if (self.own != d->id && d->helper)
        exti__helper_thread_run(d->helper, tell_mask, &mask);
    unlock_directories(&signals);
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
