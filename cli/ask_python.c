/* Asks a python on PATH where its libpython is.  The child is isolated (-I, -S): neither the
 * environment nor the current folder nor a .pth file has a say in the answer. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/ask_python.h"
#include "cli/cli.h"

#define ANSWER_MAX 65536
#define PATIENCE_MS 20000

extern char **environ;

static const char question[] =
    "import json, sys, sysconfig\n"
    "v = lambda name: sysconfig.get_config_var(name) or ''\n"
    "lib = sys.base_exec_prefix + '/lib'\n"
    "print(json.dumps({'name': sys.implementation.name, 'major': sys.version_info[0],\n"
    "    'minor': sys.version_info[1], 'flags': sys.abiflags, 'exe': sys.executable or '',\n"
    "    'libs': [v('INSTSONAME'), v('LDLIBRARY')],\n"
    "    'dirs': [v('LIBDIR'), v('LIBDIR') + '/' + v('MULTIARCH'), lib, lib + '64']}))\n";

static bool spawn(const char *python, int out, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    char name[64], isolated[] = "-I", no_site[] = "-S", dash_c[] = "-c", code[sizeof question];
    char *argv[] = {name, isolated, no_site, dash_c, code, NULL};

    snprintf(name, sizeof name, "%s", python);
    memcpy(code, question, sizeof question);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    bool ok =
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawnp(pid, python, &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return ok;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads to the end; false if that takes too long or too much. */
static bool read_all(int fd, char *buf, size_t cap, size_t *n)
{
    int64_t end = now_ms() + PATIENCE_MS;

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

json_t *cli_ask_python(const char *python)
{
    int fds[2], status;
    pid_t pid;
    size_t n = 0;
    json_t *answer = NULL;
    char *buf = malloc(ANSWER_MAX);

    if (buf == NULL || pipe(fds) != 0) {
        free(buf);
        return NULL;
    }
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    bool started = spawn(python, fds[1], &pid);
    close(fds[1]);
    if (started) {
        bool whole = read_all(fds[0], buf, ANSWER_MAX, &n);
        if (!whole)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (whole && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            answer = json_loadb(buf, n, 0, NULL);
    }
    close(fds[0]);
    free(buf);
    return answer;
}
