#include "cli/os/memory.h"
#include "cli/os/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/os/path.h"

extern char **environ;

/* SIGXFSZ would end the program without a word; ignored, it leaves the call to fail with EFBIG,
 * which is told with the file's name.  CPython ignores it, too. */
bool cli_start(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    signal(SIGXFSZ, SIG_IGN);
    return true;
}

void cli_hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* glibc gives the end of its heap back whenever 128 KiB of it are free, so that each file would be
 * read into pages that the kernel has to clear anew, which takes longer than the reading. */
void cli_keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

bool cli_is_terminal(FILE *f)
{
    const char *term = getenv("TERM");

    return term != NULL && strcmp(term, "dumb") != 0 && isatty(fileno(f));
}

/* ---- files ----------------------------------------------------------------------------------- */

bool cli_stat(const char *path, struct cli_stat *out)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    *out = (struct cli_stat){S_ISDIR(st.st_mode), S_ISREG(st.st_mode), (uint64_t)st.st_size};
    return true;
}

bool cli_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 ||
           (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != ENAMETOOLONG);
}

bool cli_is_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

FILE *cli_open(const char *path)
{
    return cli_unless_full(fopen(path, "re"));
}

/* rmdir(2) takes no symbolic link. */
bool cli_remove_dir(const char *path)
{
    char *real = realpath(path, NULL);
    bool ok = real != NULL && rmdir(real) == 0;
    int why = errno;

    free(real);
    errno = why;
    return ok;
}

/* EINVAL: the file system cannot sync a folder, and so does not need it. */
static bool sync_parent(const char *path)
{
    char *real = realpath(path, NULL), *slash = real != NULL ? strrchr(real, '/') : NULL;
    int fd = -1, why;
    bool ok;

    if (slash != NULL) {
        slash[slash == real] = '\0';
        fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    ok = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    why = errno;
    if (fd >= 0)
        close(fd);
    free(real);
    errno = why;
    return ok;
}

bool cli_make_dir(const char *path, bool sync)
{
    if (mkdir(path, 0755) == 0)
        return !sync || sync_parent(path);
    /* Who made it may have been stopped before it was synced.  We may not be allowed to do that. */
    return errno == EEXIST && (!sync || sync_parent(path) || errno == EACCES);
}

size_t cli_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (size_t)n : 1;
}

char *cli_full_path(const char *path)
{
    return cli_unless_full(realpath(path, NULL));
}

/* Some file systems, such as older XFS, report no types. */
static enum cli_type type_of(const struct dirent *e)
{
    return e->d_type == DT_REG   ? CLI_TYPE_FILE
           : e->d_type == DT_DIR ? CLI_TYPE_DIR
                                 : CLI_TYPE_UNKNOWN;
}

bool cli_each_name(const char *dir, cli_name_fn each, void *user)
{
    DIR *d = cli_unless_full(opendir(dir));
    struct dirent *e = NULL;
    bool more = true;
    int error = 0;

    if (d == NULL)
        return false;
    while (more) {
        errno = 0; /* which tells the folder's end from an error */
        e = readdir(d);
        error = e == NULL ? errno : 0;
        more = e != NULL;
        if (more && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            more = each(user, e->d_name, type_of(e));
    }
    closedir(d);
    errno = error;
    return error == 0;
}

/* ---- the linker's folders -------------------------------------------------------------------- */

#define INCLUDE_DEPTH 8

struct visit {
    bool (*each)(void *user, const char *dir, const char *from);
    void *user;
};

static bool visit_conf(const struct visit *v, const char *conf, int depth);

static bool visit_includes(const struct visit *v, const char *pattern, const char *conf, int depth)
{
    char *dir = cli_folder_of(conf);
    char *full = pattern[0] == '/' ? cli_copy_text(pattern) : cli_join(dir, pattern);
    bool found = false;
    glob_t all;
    int rc = glob(full, 0, NULL, &all);

    if (rc == GLOB_NOSPACE)
        cli_out_of_memory();
    if (rc == 0) {
        for (size_t i = 0; i < all.gl_pathc && !found; i++)
            found = visit_conf(v, all.gl_pathv[i], depth + 1);
        globfree(&all);
    }
    free(full);
    free(dir);
    return found;
}

/* Reads ld.so.conf(5) as ldconfig(8) does: a folder per line, `include PATTERN`, # comments. */
static bool visit_conf(const struct visit *v, const char *conf, int depth)
{
    FILE *f = depth < INCLUDE_DEPTH ? cli_open(conf) : NULL;
    char *line = NULL;
    size_t cap = 0;
    bool found = false;

    if (f == NULL)
        return false;
    while (!found && getline(&line, &cap, f) >= 0) {
        line[strcspn(line, "#\n")] = '\0';
        char *at = line + strspn(line, " \t");
        if (strncmp(at, "include", 7) == 0 && (at[7] == ' ' || at[7] == '\t')) {
            at += 7 + strspn(at + 7, " \t");
            at[strcspn(at, " \t")] = '\0';
            found = visit_includes(v, at, conf, depth);
        } else if (*at == '/') {
            at[strcspn(at, " \t=")] = '\0';
            found = v->each(v->user, at, NULL);
        }
    }
    if (!found && !feof(f) && errno == ENOMEM)
        cli_out_of_memory();
    free(line);
    fclose(f);
    return found;
}

static bool visit_variable(const struct visit *v, const char *name)
{
    const char *at = getenv(name);
    bool found = false;

    while (at != NULL && !found) {
        size_t n = strcspn(at, ":;");
        char *dir = n > 0 ? cli_unless_full(strndup(at, n)) : NULL;
        found = dir != NULL && v->each(v->user, dir, name);
        free(dir);
        at = at[n] != '\0' ? at + n + 1 : NULL;
    }
    return found;
}

bool cli_each_library_dir(bool (*each)(void *user, const char *dir, const char *from), void *user)
{
    static const char *const standard[] = {"/usr/local/lib", "/lib64", "/usr/lib64", "/lib",
                                           "/usr/lib"};
    const struct visit v = {each, user};

    bool found = visit_variable(&v, "LD_LIBRARY_PATH") || visit_conf(&v, "/etc/ld.so.conf", 0);
    for (size_t i = 0; i < sizeof standard / sizeof *standard && !found; i++)
        found = each(user, standard[i], NULL);
    return found;
}

/* ---- a program ------------------------------------------------------------------------------- */

/* 0 or an errno. */
static int spawn_program(char *const *argv, int out, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t ignored;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (rc != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return rc;
    }
    /* What cli_start ignores. */
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGXFSZ);
    rc = posix_spawnattr_setsigdefault(&attributes, &ignored);
    if (rc == 0)
        rc = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (rc == 0)
        rc = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Waits for the program; 0 or an errno.  Shells, and scripts that stand for a Python that is not
 * installed, exit with 127. */
static int end_program(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return ENOENT;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EIO;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads to the end of file; false after `ms` milliseconds or `cap` bytes. */
static bool read_until_end(int fd, int ms, char *buf, size_t cap, size_t *n)
{
    int64_t end = now_ms() + ms;

    *n = 0;
    while (*n < cap) {
        struct pollfd p = {fd, POLLIN, 0};
        int64_t left = end - now_ms();
        int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t got = read(fd, buf + *n, cap - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        *n += (size_t)got;
    }
    return false;
}

bool cli_run_program(char *const *argv, int ms, char *out, size_t cap, size_t *n)
{
    int fds[2], error, ended;
    pid_t pid;

    if (pipe(fds) != 0)
        return false;
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    error = spawn_program(argv, fds[1], &pid);
    close(fds[1]);
    if (error == 0) {
        error = read_until_end(fds[0], ms, out, cap, n) ? 0 : EIO;
        if (error != 0)
            kill(pid, SIGKILL);
        ended = end_program(pid);
        error = error != 0 ? error : ended;
    }
    close(fds[0]);
    errno = error;
    return error == 0;
}
