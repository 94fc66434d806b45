#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/fs.h>
#include <sys/ioctl.h>
#endif

#include "runtime/fail.h"
#include "runtime/scratch.h"
#include "runtime/system.h"

struct pyrt_scratch {
    char *path; /* in `root` */
    char *root;
    int alive;        /* our end of a pipe, which closes when this process ends in whatever way */
    int gone;         /* reaches the end of file when the helper has ended */
    struct stat pipe; /* `alive`: the program may close it and get the number for another file */
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

static bool is_kept(int fd, const int kept[3])
{
    return fd == kept[0] || fd == kept[1] || fd == kept[2];
}

static void close_all_but(const int kept[3])
{
    long max = sysconf(_SC_OPEN_MAX);
    DIR *d = opendir("/proc/self/fd");

    if (d) {
        struct dirent *e;
        while ((e = readdir(d))) {
            char *end;
            int fd = (int)strtol(e->d_name, &end, 10);
            if (!*end && !is_kept(fd, kept) && fd != dirfd(d))
                close(fd);
        }
        closedir(d);
        return;
    }
    for (int fd = 0; fd < (max > 0 && max < 65536 ? (int)max : 65536); fd++)
        if (!is_kept(fd, kept))
            close(fd);
}

/* A byte is the order to remove now.  The end of file says that the program and its forks have
 * ended or have closed all their files (os.closerange), after which the program may live on. */
static void wait_for_end(int alive, int program)
{
    struct pollfd end = {.fd = program, .events = POLLIN};
    char byte;
    ssize_t n;

    while ((n = read(alive, &byte, 1)) < 0 && errno == EINTR)
        continue;
    while (n == 0 && program >= 0 && poll(&end, 1, -1) < 0 && errno == EINTR)
        continue;
}

/* The helper is not a child of the program, which may wait for all its children; it is in a session
 * of its own, so that terminal signals do not reach it; and it closes the program's files, so that
 * readers of the program's output see its end. */
static void run_helper(const char *path, int alive, int gone)
{
    const int program = pyrt_process_open(getppid()); /* which waits for this process */

    setsid();
    if (fork() != 0)
        _exit(0);
    close_all_but((const int[]){alive, gone, program});
    if (chdir("/") != 0)
        _exit(1);
    wait_for_end(alive, program);
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static int start_helper(struct pyrt_scratch *s)
{
    int alive[2], gone[2], error = 0;
    pid_t pid;

    if (pyrt_pipe(alive) != 0)
        return errno;
    if (pyrt_pipe(gone) != 0) {
        error = errno;
        close(alive[0]);
        close(alive[1]);
        return error;
    }
    pid = fork();
    if (pid == 0) {
        close(alive[1]);
        close(gone[0]);
        run_helper(s->root, alive[0], gone[1]);
    }
    if (pid < 0)
        error = errno;
    close(alive[0]);
    close(gone[1]);
    if (error) {
        close(alive[1]);
        close(gone[0]);
        return error;
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    s->alive = alive[1];
    s->gone = gone[0];
    fstat(s->alive, &s->pipe);
    return 0;
}

/* Where the file system spreads the folders in this one, files in them are made sooner, as none are
 * near that were removed just now: see base/os/fs_folder_posix.c. */
static void spread_folders(const char *path)
{
#ifdef FS_TOPDIR_FL
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int flags = 0;

    if (fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
        flags |= FS_TOPDIR_FL;
        ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
    if (fd >= 0)
        close(fd);
#else
    (void)path;
#endif
}

/* Gives its real path, in which `name` ends with six X. */
static char *make_dir(const char *in, const char *name)
{
    char *path = NULL, *real;

    if (asprintf(&path, "%s/%s", in, name) < 0)
        return NULL;
    if (!mkdtemp(path)) {
        free(path);
        return NULL;
    }
    real = realpath(path, NULL);
    if (!real)
        rmdir(path);
    free(path);
    return real;
}

static int make_dirs(struct pyrt_scratch *s, const char *in)
{
    int error;

    s->root = make_dir(in, "extisolate-XXXXXX");
    if (!s->root)
        return errno;
    spread_folders(s->root);
    s->path = make_dir(s->root, "XXXXXX");
    if (s->path)
        return 0;
    error = errno;
    rmdir(s->root);
    return error;
}

static void free_scratch(struct pyrt_scratch *s)
{
    free(s->path);
    free(s->root);
    free(s);
}

static int make_scratch(struct pyrt_scratch *s, struct exti_error *err)
{
    const char *tmp = getenv("TMPDIR");
    int error;

    tmp = tmp && *tmp ? tmp : "/tmp";
    error = make_dirs(s, tmp);
    if (error)
        return pyrt_fail_os(err, error, tmp,
                            "cannot create a private directory in it (TMPDIR names another place)");
    error = start_helper(s);
    if (!error)
        return 0;
    rmdir(s->path);
    rmdir(s->root);
    return pyrt_fail_os(err, error, "", "cannot start the helper that removes temporary files");
}

/* A signal that ends the process waits until there is the helper, which never gets one. */
int pyrt_scratch_new(struct pyrt_scratch **out, struct exti_error *err)
{
    struct pyrt_scratch *s = calloc(1, sizeof *s);
    sigset_t all, before;
    int rc;

    if (!s)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    rc = make_scratch(s, err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc < 0)
        free_scratch(s);
    else
        *out = s;
    return rc;
}

const char *pyrt_scratch_path(const struct pyrt_scratch *s)
{
    return s->path;
}

static bool has_pipe(const struct pyrt_scratch *s)
{
    struct stat now;

    return fstat(s->alive, &now) == 0 && now.st_dev == s->pipe.st_dev &&
           now.st_ino == s->pipe.st_ino;
}

void pyrt_scratch_free(struct pyrt_scratch *s)
{
    const bool ours = s && has_pipe(s);
    char byte = 0;

    if (!s)
        return;
    /* Closing is not enough: a forked child of the program may still hold the pipe. */
    if (ours && write(s->alive, &byte, 1) == 1)
        while (read(s->gone, &byte, 1) < 0 && errno == EINTR)
            continue;
    else
        nftw(s->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (ours) {
        close(s->alive);
        close(s->gone);
    }
    free_scratch(s);
}
