/* They may be called between vfork and exec, so nothing is allocated. */
#define _GNU_SOURCE /* execvpe, strchrnul */
#include "loader/interpose/exec_calls.h"

#include <alloca.h>
#include <errno.h>
#include <limits.h>
#include <paths.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/interpose/exec_child.h"
#include "loader/interpose/spawn.h"
#include "loader/track/address_map.h"
#include "loader/track/redirects.h"
#include "loader/track/surroundings.h"

extern char **environ;

#define CALL (uintptr_t) __builtin_return_address(0)

static char *const *list_at(uintptr_t call)
{
    const struct exti_environment *e = exti__environment_at(call);

    return e ? e->list : environ;
}

/* ---- along PATH ---- */

struct path_search {
    const char *rest; /* NULL: at its end */
    char file[PATH_MAX + NAME_MAX + 2];
};

static struct path_search begin_search(struct exti_environment *e)
{
    /* Older systems searched the current folder by default; POSIX leaves it open. */
    const char *path = exti__environment_get(e, "PATH");

    return (struct path_search){.rest = path ? path : "/bin:/usr/bin"};
}

/* Puts the next file into s->file; false: there are no more.  An empty entry is the current
 * folder. */
static bool next_file(struct path_search *s, const char *name)
{
    const size_t name_size = strlen(name) + 1;

    while (s->rest) {
        const char *folder = s->rest, *end = strchrnul(folder, ':');
        const size_t length = (size_t)(end - folder);

        s->rest = *end ? end + 1 : NULL;
        if (length > PATH_MAX || name_size > NAME_MAX + 1)
            continue;
        memcpy(s->file, folder, length);
        s->file[length] = '/';
        memcpy(s->file + length + (length != 0), name, name_size);
        return true;
    }
    return false;
}

/* Whether a folder of PATH without the file is no reason to stop. */
static bool is_passed_over(int error)
{
    return error == EACCES || error == ENOENT || error == ENOTDIR || error == ESTALE ||
           error == ENODEV || error == ETIMEDOUT;
}

static size_t count_arguments(char *const argv[])
{
    size_t n = 0;

    while (argv[n])
        n++;
    return n;
}

/* POSIX: a file that is no program is one for the shell. */
static int run_file(const char *file, char *const argv[], char *const envp[])
{
    const size_t count = count_arguments(argv);
    char **words;

    execve(file, argv, envp);
    if (errno != ENOEXEC)
        return -1;
    words = alloca((count + 3) * sizeof *words);
    words[0] = (char *)_PATH_BSHELL;
    words[1] = (char *)file;
    if (count)
        memcpy(words + 2, argv + 1, count * sizeof *words);
    else
        words[2] = NULL;
    return execve(_PATH_BSHELL, words, envp);
}

static int run_along_path(struct exti_environment *e, const char *file, char *const argv[],
                          char *const envp[])
{
    struct path_search s;
    int error = ENOENT;

    if (!*file || strchr(file, '/')) {
        errno = ENOENT;
        return *file ? run_file(file, argv, envp) : -1;
    }
    s = begin_search(e);
    while (next_file(&s, file)) {
        run_file(s.file, argv, envp);
        if (!is_passed_over(errno))
            return -1;
        if (errno == EACCES)
            error = EACCES;
    }
    errno = error;
    return -1;
}

/* ---- exec ---- */

struct execution {
    const char *file;
    char *const *argv, *const *envp;
    struct exti_environment *e; /* whose PATH is searched; NULL: the process's */
    bool search;
    int fd; /* if there is no file */
};

static int run_execution(const void *what)
{
    const struct execution *x = what;

    if (!x->file)
        return fexecve(x->fd, x->argv, x->envp);
    if (!x->search)
        return execve(x->file, x->argv, x->envp);
    return x->e ? run_along_path(x->e, x->file, x->argv, x->envp)
                : execvpe(x->file, x->argv, x->envp);
}

static int interposed_execve(const char *file, char *const argv[], char *const envp[])
{
    const struct execution x = {.file = file, .argv = argv, .envp = envp};

    return exti__exec_for(CALL, run_execution, &x);
}

static int interposed_fexecve(int fd, char *const argv[], char *const envp[])
{
    const struct execution x = {.fd = fd, .argv = argv, .envp = envp};

    return exti__exec_for(CALL, run_execution, &x);
}

static int interposed_execv(const char *file, char *const argv[])
{
    const struct execution x = {.file = file, .argv = argv, .envp = list_at(CALL)};

    return exti__exec_for(CALL, run_execution, &x);
}

static int interposed_execvpe(const char *file, char *const argv[], char *const envp[])
{
    const struct execution x = {file, argv, envp, exti__environment_at(CALL), true, -1};

    return exti__exec_for(CALL, run_execution, &x);
}

static int interposed_execvp(const char *file, char *const argv[])
{
    const struct execution x = {file, argv, list_at(CALL), exti__environment_at(CALL), true, -1};

    return exti__exec_for(CALL, run_execution, &x);
}

static size_t count_words(va_list ap)
{
    size_t n = 1;

    while (va_arg(ap, char *))
        n++;
    return n;
}

static void read_words(char **out, size_t count, const char *first, va_list ap)
{
    out[0] = (char *)first;
    for (size_t i = 1; i <= count; i++)
        out[i] = i < count ? va_arg(ap, char *) : NULL;
}

/* The arguments from `first` on as a list, on the stack of the function that has them. */
#define WORDS(words, first)                                                                        \
    do {                                                                                           \
        va_list ap;                                                                                \
        size_t count;                                                                              \
                                                                                                   \
        va_start(ap, first);                                                                       \
        count = (first) ? count_words(ap) : 0;                                                     \
        va_end(ap);                                                                                \
        (words) = alloca((count + 1) * sizeof *(words));                                           \
        va_start(ap, first);                                                                       \
        read_words((words), count, (first), ap);                                                   \
        va_end(ap);                                                                                \
    } while (0)

static int interposed_execl(const char *file, const char *first, ...)
{
    struct execution x = {.file = file, .envp = list_at(CALL)};
    char **words;

    WORDS(words, first);
    x.argv = words;
    return exti__exec_for(CALL, run_execution, &x);
}

static int interposed_execlp(const char *file, const char *first, ...)
{
    struct execution x = {file, NULL, list_at(CALL), exti__environment_at(CALL), true, -1};
    char **words;

    WORDS(words, first);
    x.argv = words;
    return exti__exec_for(CALL, run_execution, &x);
}

/* The environment follows the arguments and their NULL. */
static int interposed_execle(const char *file, const char *first, ...)
{
    struct execution x = {.file = file};
    char **words;
    va_list more;

    WORDS(words, first);
    va_start(more, first);
    for (const char *word = first; word; word = va_arg(more, const char *))
        ;
    x.envp = va_arg(more, char *const *);
    va_end(more);
    x.argv = words;
    return exti__exec_for(CALL, run_execution, &x);
}

/* ---- posix_spawnp ---- */

/* The first file that could be run, or an errno.  File actions that change the folder come after
 * this: they do not matter where PATH has full paths. */
static int find_program(struct exti_environment *e, const char *name, struct path_search *s)
{
    int error = ENOENT;
    struct stat st;

    *s = begin_search(e);
    while (next_file(s, name)) {
        if (access(s->file, X_OK) == 0 && stat(s->file, &st) == 0 && S_ISREG(st.st_mode))
            return 0;
        if (errno == EACCES)
            error = EACCES;
    }
    return error;
}

static int interposed_spawnp(pid_t *pid, const char *name,
                             const posix_spawn_file_actions_t *actions,
                             const posix_spawnattr_t *attributes, char *const argv[],
                             char *const envp[])
{
    struct exti_environment *e = exti__environment_at(CALL);
    struct exti_ctx *ctx = exti__address_map_ctx(CALL);
    struct path_search s;
    int rc;

    if (!e || !*name || strchr(name, '/'))
        return exti__spawn(ctx, posix_spawnp, pid, name, actions, attributes, argv, envp);
    rc = find_program(e, name, &s);
    return rc ? rc : exti__spawn(ctx, posix_spawn, pid, s.file, actions, attributes, argv, envp);
}

/* ---- looking them up ---- */

void *exti__exec_call(const struct exti_ctx *ctx, const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"execve", EXTI_ADDRESS(interposed_execve)},
        {"fexecve", EXTI_ADDRESS(interposed_fexecve)},
        {"execle", EXTI_ADDRESS(interposed_execle)},
        {"execv", EXTI_ADDRESS(interposed_execv)},
        {"execvp", EXTI_ADDRESS(interposed_execvp)},
        {"execvpe", EXTI_ADDRESS(interposed_execvpe)},
        {"execl", EXTI_ADDRESS(interposed_execl)},
        {"execlp", EXTI_ADDRESS(interposed_execlp)},
        {"posix_spawnp", EXTI_ADDRESS(interposed_spawnp)},
    };

    if ((ctx->flags & EXTI_CTX_PROCESS_ENDS) &&
        (!ctx->surroundings || !ctx->surroundings->environment))
        return NULL;
    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
