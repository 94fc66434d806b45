#include "cli/os/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
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

bool cli_start(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return true;
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

    return lstat(path, &st) == 0;
}

bool cli_is_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

FILE *cli_open(const char *path)
{
    return fopen(path, "re");
}

bool cli_remove_dir(const char *path)
{
    return rmdir(path) == 0;
}

bool cli_make_dir(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

size_t cli_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (size_t)n : 1;
}

char *cli_full_path(const char *path)
{
    return realpath(path, NULL);
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
    DIR *d = opendir(dir);
    struct dirent *e;
    bool more = true;

    if (d == NULL)
        return false;
    while (more && (e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            more = each(user, e->d_name, type_of(e));
    closedir(d);
    return true;
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
    char *full = dir == NULL ? NULL : pattern[0] == '/' ? strdup(pattern) : cli_join(dir, pattern);
    bool found = false;
    glob_t all;

    if (full != NULL && glob(full, 0, NULL, &all) == 0) {
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
        char *dir = n > 0 ? strndup(at, n) : NULL;
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

static bool spawn_program(char *const *argv, int out, pid_t *pid)
{
    posix_spawn_file_actions_t actions;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    bool ok =
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawnp(pid, argv[0], &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return ok;
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
    int fds[2], status;
    bool whole = false;
    pid_t pid;

    if (pipe(fds) != 0)
        return false;
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    bool started = spawn_program(argv, fds[1], &pid);
    close(fds[1]);
    if (started) {
        whole = read_until_end(fds[0], ms, out, cap, n);
        if (!whole)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        whole = whole && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    close(fds[0]);
    return whole;
}
