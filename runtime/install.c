#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/fail.h"
#include "runtime/python.h"
#include "runtime/system.h"

extern char **environ;

/* Runs in the interpreter, and writes "key=value", each with a NUL at its end.  It must be valid in
 * any version of Python, so that an unsuitable one gets our message instead of a SyntaxError, and
 * it imports little: half of an interpreter's start would be `site` and `json`.  The libpython is
 * the one that the interpreter is linked with, else one where the installation keeps it, else one
 * that the system's linker finds; the last is known only by loading it. */
static const char question[] =
    "import os, sys, sysconfig\n"
    "if os.environ.get('NIX_PYTHONEXECUTABLE'):\n" /* sitecustomize makes it sys.executable */
    "    import site\n"
    "    site.main()\n"
    "var = sysconfig.get_config_var\n"
    "flags = getattr(sys, 'abiflags', '')\n"
    "stem = 'libpython%d.%d%s.so' % (sys.version_info[0], sys.version_info[1], flags)\n"
    "names = [n for n in (var('INSTSONAME'), stem + '.1.0', stem) if n and '.so' in n]\n"
    "def mapped():\n"
    "    try:\n"
    "        maps = open('/proc/self/maps')\n"
    "    except OSError:\n" /* a chroot or container without /proc */
    "        return None\n"
    "    with maps:\n"
    "        for line in maps:\n"
    "            path = line[line.find('/'):].rstrip('\\n') if '/' in line else ''\n"
    "            if os.path.basename(path).startswith(stem) and os.path.isfile(path):\n"
    "                return path\n"
    "def kept():\n"
    "    dirs = [var('LIBDIR'), os.path.join(var('LIBDIR') or '', var('MULTIARCH') or ''),\n"
    "            os.path.join(getattr(sys, 'base_exec_prefix', sys.exec_prefix), 'lib'),\n"
    "            var('LIBPL')]\n"
    "    for d in dirs:\n"
    "        for n in names:\n"
    "            if d and os.path.isfile(os.path.join(d, n)):\n"
    "                return os.path.realpath(os.path.join(d, n))\n"
    "def linked():\n"
    "    try:\n"
    "        import ctypes\n"
    "    except ImportError:\n"
    "        return None\n"
    "    for n in names:\n"
    "        try:\n"
    "            ctypes.CDLL(n)\n"
    "        except OSError:\n"
    "            continue\n"
    "        return mapped()\n"
    "impl = getattr(sys, 'implementation', None)\n"
    "encoded = getattr(os, 'fsencode', str)\n"
    "out = getattr(sys.stdout, 'buffer', sys.stdout)\n"
    "for key, value in (\n"
    "        ('implementation', impl.name if impl else 'cpython'),\n"
    "        ('major', sys.version_info[0]), ('minor', sys.version_info[1]),\n"
    "        ('version', '%d.%d.%d' % sys.version_info[:3]), ('executable', sys.executable),\n"
    "        ('free_threaded', int(bool(var('Py_GIL_DISABLED')))),\n"
    "        ('debug', int(bool(var('Py_DEBUG')))), ('soname', names[0]),\n"
    "        ('libpython', mapped() or kept() or linked() or '')):\n"
    "    out.write(encoded('%s=%s\\0' % (key, value or '')))\n";

/* The answer is short, but a program that is not a Python may write for ever. */
#define ANSWER_MAX 65536

static int spawn_interpreter(pid_t *pid, int *out, const char *exe)
{
    char *argv[] = {(char *)exe, "-I", "-S", "-c", (char *)question, NULL};
    posix_spawn_file_actions_t actions;
    int fds[2], rc;

    if (pyrt_pipe(fds) != 0)
        return errno;
    rc = posix_spawn_file_actions_init(&actions);
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
        if (rc == 0)
            rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (rc == 0)
            rc = posix_spawnp(pid, exe, &actions, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(fds[1]);
    if (rc != 0)
        close(fds[0]);
    else
        *out = fds[0];
    return rc;
}

/* Reads the answer, `*size` bytes, into `buf`, NUL-terminated.  Returns the child's wait status, or
 * -1 if it wrote too much and was killed. */
static int read_answer(pid_t pid, int fd, char *buf, size_t room, size_t *size)
{
    size_t n = 0;
    int status = -1;

    for (;;) {
        ssize_t got = read(fd, buf + n, room - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
        if (n == room - 1) {
            kill(pid, SIGKILL);
            break;
        }
    }
    buf[n] = '\0';
    *size = n;
    close(fd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return n == room - 1 ? -1 : status;
}

/* What the interpreter has written, `n` bytes and a NUL. */
struct answer {
    char text[ANSWER_MAX];
    size_t n;
};

/* The value of a key, or "". */
static const char *answer_text(const struct answer *a, const char *key)
{
    const size_t length = strlen(key);

    for (const char *at = a->text; at < a->text + a->n; at += strlen(at) + 1)
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return at + length + 1;
    return "";
}

static int answer_number(const struct answer *a, const char *key)
{
    return atoi(answer_text(a, key));
}

static int ask_interpreter(struct answer *a, const char *exe, struct exti_error *err)
{
    int fd = -1, rc;
    pid_t pid = -1;

    rc = spawn_interpreter(&pid, &fd, exe);
    if (rc != 0)
        return pyrt_fail_os(err, rc, exe, "the interpreter cannot be run");
    rc = read_answer(pid, fd, a->text, ANSWER_MAX, &a->n);
    if (rc == 0 && *answer_text(a, "implementation"))
        return 0;
    return pyrt_fail(err, EXTI_E_ARG,
                     "%s did not describe itself as a CPython 3 interpreter does; contexts need "
                     "one, 3.%d or later",
                     exe, PYRT_MINOR_FIRST);
}

static int check_answer(const struct answer *answer, const char *exe, struct exti_error *err)
{
    int major = answer_number(answer, "major"), minor = answer_number(answer, "minor");

    if (strcmp(answer_text(answer, "implementation"), "cpython") != 0)
        return pyrt_fail(err, EXTI_E_ARG, "%s is %s %s; contexts need a CPython", exe,
                         answer_text(answer, "implementation"), answer_text(answer, "version"));
    if (major != 3 || minor < PYRT_MINOR_FIRST)
        return pyrt_fail(err, EXTI_E_ARG, "%s is CPython %s; contexts need 3.%d or later", exe,
                         answer_text(answer, "version"), PYRT_MINOR_FIRST);
    if (!*answer_text(answer, "libpython"))
        return pyrt_fail(
            err, EXTI_E_ARG,
            "%s (CPython %s) has no shared library %s, of which each context has a copy; "
            "on Debian and Ubuntu install the package libpython3.%d, otherwise build "
            "Python with --enable-shared (with pyenv: "
            "PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install %s)",
            exe, answer_text(answer, "version"), answer_text(answer, "soname"), minor,
            answer_text(answer, "version"));
    if (!*answer_text(answer, "executable"))
        return pyrt_fail(err, EXTI_E_ARG, "%s does not know its own path (sys.executable is empty)",
                         exe);
    return 0;
}

int pyrt_install_find(struct pyrt_install *out, const char *exe, struct exti_error *err)
{
    struct answer *answer = malloc(sizeof *answer);
    struct pyrt_install in;
    int rc;

    if (!answer)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    exe = exe ? exe : "python3";
    rc = ask_interpreter(answer, exe, err);
    if (rc == 0)
        rc = check_answer(answer, exe, err);
    if (rc == 0) {
        in = (struct pyrt_install){
            .minor = answer_number(answer, "minor"),
            .free_threaded = answer_number(answer, "free_threaded"),
            .debug = answer_number(answer, "debug"),
            .version = strdup(answer_text(answer, "version")),
            .executable = strdup(answer_text(answer, "executable")),
            .libpython = strdup(answer_text(answer, "libpython")),
        };
        if (in.version && in.executable && in.libpython) {
            *out = in;
        } else {
            pyrt_install_free(&in);
            rc = pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
        }
    }
    free(answer);
    return rc;
}

void pyrt_install_free(struct pyrt_install *in)
{
    free(in->version);
    free(in->executable);
    free(in->libpython);
    *in = (struct pyrt_install){0};
}
