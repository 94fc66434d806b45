/* Shared by the isolation and API tests: a child process for each case, the toy libraries, and
 * shorthands for contexts.  A loaded library may stay mapped, so each case that loads any runs in a
 * child process, which a failed want() ends with a message. */
#ifndef TESTS_ISOLATION_ISO_H
#define TESTS_ISOLATION_ISO_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <extisolate.h>

#define want(cond) iso_want(!!(cond), #cond, __FILE__, __LINE__)
#define want_int(got, expected) iso_want_int((got), (expected), #got, __FILE__, __LINE__)
#define want_exti(rc, expected, err) iso_want_exti((rc), (expected), (err), #rc, __FILE__, __LINE__)
#define want_text(text, part) iso_want_text((text), (part), #text, __FILE__, __LINE__)

/* The thread sanitizer does not see the lock under which ld.so fills its link maps and runs
 * initialisers. */
#ifdef __SANITIZE_THREAD__
const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void)
{
    return "race:ld-linux\nrace:linkmap_elf.c\nrace:references_elf.c\nrace:toy_register\n";
}
#endif

/* For a thread that signals are to reach.  What the thread sanitizer of gcc 12 keeps of a thread's
 * signals is made in its first call that may block, and a signal that arrives meanwhile is lost. */
static inline void iso_expect_signals(void)
{
    usleep(1);
}

static const char *iso_flavour = "gcc"; /* of the toy libraries */
static char iso_tmp[64];                /* the case's own folder */

static inline void iso_fail_at(const char *file, int line)
{
    fprintf(stderr, "  at %s:%d, toy libraries of flavour %s\n", file, line, iso_flavour);
    fflush(NULL);
    _exit(1);
}

static inline void iso_want(int ok, const char *what, const char *file, int line)
{
    if (ok)
        return;
    fprintf(stderr, "failed: %s\n", what);
    iso_fail_at(file, line);
}

static inline void iso_want_int(long got, long expected, const char *what, const char *file,
                                int line)
{
    if (got == expected)
        return;
    fprintf(stderr, "%s is %ld, expected %ld\n", what, got, expected);
    iso_fail_at(file, line);
}

static inline void iso_want_text(const char *text, const char *part, const char *what,
                                 const char *file, int line)
{
    if (text && strstr(text, part))
        return;
    fprintf(stderr, "%s is \"%s\", which lacks \"%s\"\n", what, text ? text : "(null)", part);
    iso_fail_at(file, line);
}

static inline void iso_want_exti(int rc, int expected, const struct exti_error *err,
                                 const char *what, const char *file, int line)
{
    if (rc == expected && (!rc || !err || (err->code == rc && err->message[0])))
        return;
    fprintf(stderr, "%s gave %s, expected %s", what, exti_code_name(rc), exti_code_name(expected));
    if (rc && err)
        fprintf(stderr, "; error: code %s, file \"%s\", message \"%s\"", exti_code_name(err->code),
                err->file, err->message);
    fputc('\n', stderr);
    iso_fail_at(file, line);
}

/* Formats into one of sixteen static buffers: the text is valid until the sixteenth call after
 * it. */
__attribute__((format(printf, 1, 2))) static inline const char *iso_text(const char *fmt, ...)
{
    static _Thread_local char texts[16][1024];
    static _Thread_local unsigned next;
    char *text = texts[next++ % 16];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof texts[0], fmt, ap);
    va_end(ap);
    return text;
}

static inline const char *iso_build_dir(void)
{
    static char dir[512];

    if (!dir[0]) {
        const char *given = getenv("EXTI_BUILD");
        char *real = realpath(given ? given : "build", NULL);

        want(real);
        snprintf(dir, sizeof dir, "%s", real);
        free(real);
    }
    return dir;
}

/* Builds the toy libraries from the root of the source tree, where all tests run. */
static inline const char *iso_toys(void)
{
    static char dir[600];

    if (!dir[0]) {
        snprintf(dir, sizeof dir, "%s/toys", iso_build_dir());
        want(system(iso_text("sh testdata/src/toy/build.sh '%s'", dir)) == 0);
    }
    return dir;
}

static inline const char *toy(const char *file)
{
    return iso_text("%s/%s/%s", iso_toys(), iso_flavour, file);
}

static inline const char *in_tmp(const char *name)
{
    return iso_text("%s/%s", iso_tmp, name);
}

static inline int file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static inline void copy_file(const char *from, const char *to)
{
    want(system(iso_text("cp '%s' '%s'", from, to)) == 0);
}

/* ---- a child per case ----------------------------------------------------------------------- */

static inline pid_t iso_spawn(void (*body)(void *), void *arg)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid)
        return pid;
    /* The child does without cmocka's signal handlers. */
    for (int i = 1; i < 16; i++)
        signal(i, SIG_DFL);
    alarm(1800);
    /* For private directories of contexts that are not closed. */
    if (*iso_tmp)
        want(setenv("TMPDIR", iso_tmp, 1) == 0);
    body(arg);
    exit(0);
}

/* Waits for the child; returns whether it ended with status 0. */
static inline int iso_join(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return 0;
    }
    if (WIFSIGNALED(status))
        fprintf(stderr, "the child died of signal %d (%s)\n", WTERMSIG(status), iso_flavour);
    else if (WEXITSTATUS(status) > 1)
        fprintf(stderr, "the child ended with status %d\n", WEXITSTATUS(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static inline int iso_fork(void (*body)(void *), void *arg)
{
    int ok;

    iso_toys();
    snprintf(iso_tmp, sizeof iso_tmp, "/tmp/exti-test.XXXXXX");
    want(mkdtemp(iso_tmp));
    ok = iso_join(iso_spawn(body, arg));
    want(system(iso_text("chmod -R u+w %s; rm -rf %s", iso_tmp, iso_tmp)) == 0);
    return ok;
}

/* The i-th flavour that was built, or NULL past the last.  EXTI_FLAVOURS limits their number. */
static inline const char *iso_flavour_at(size_t i)
{
    static char names[32][32];
    static size_t count;
    const char *most = getenv("EXTI_FLAVOURS");

    if (!count) {
        FILE *f = fopen(iso_text("%s/flavours", iso_toys()), "r");

        want(f);
        while (count < 31 && fscanf(f, "%31s", names[count]) == 1)
            count++;
        fclose(f);
        want(count > 3);
        if (most && strtoul(most, NULL, 10) < count)
            count = strtoul(most, NULL, 10);
    }
    return i < count ? names[i] : NULL;
}

/* iso_fork once for each flavour of the toy libraries, whether or not one of them fails. */
static inline int iso_fork_each(void (*body)(void *), void *arg)
{
    int ok = 1;

    for (size_t i = 0; iso_flavour_at(i); i++) {
        iso_flavour = iso_flavour_at(i);
        if (!iso_fork(body, arg)) {
            fprintf(stderr, "failed with the toy libraries of flavour %s\n", iso_flavour);
            ok = 0;
        }
    }
    iso_flavour = "gcc";
    return ok;
}

/* ISO_CASE(name) { body } is a cmocka test whose body runs in a child process.  ISO_CASE_EACH runs
 * it in one child for each flavour of the toy libraries. */
#define ISO_CASE_BY(runner, name)                                                                  \
    static void name##_body(void *arg);                                                            \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        assert_true(runner(name##_body, NULL));                                                    \
    }                                                                                              \
    static void name##_body(void *arg __attribute__((unused)))
#define ISO_CASE(name) ISO_CASE_BY(iso_fork, name)
#define ISO_CASE_EACH(name) ISO_CASE_BY(iso_fork_each, name)

/* ---- contexts of the toy API ---------------------------------------------------------------- */

static inline struct exti_ctx_opts iso_opts(const char *dir, const char *name)
{
    struct exti_ctx_opts opts = {.size = sizeof opts};

    opts.dir = dir;
    opts.name = name;
    opts.api_library = toy("libtoy.so.1");
    return opts;
}

static inline struct exti_ctx *iso_open_opts(const struct exti_ctx_opts *opts)
{
    struct exti_error err = {0};
    struct exti_ctx *ctx = NULL;

    want_exti(exti_ctx_open(&ctx, opts, &err), 0, &err);
    want(ctx);
    return ctx;
}

/* Opens a context in the folder `dir` of iso_tmp, or in a private directory if that is NULL. */
static inline struct exti_ctx *iso_open(const char *dir)
{
    struct exti_ctx_opts opts = iso_opts(dir ? in_tmp(dir) : NULL, NULL);

    return iso_open_opts(&opts);
}

static inline struct exti_module *iso_load(struct exti_ctx *ctx, const char *path)
{
    struct exti_error err = {0};
    struct exti_module *m = NULL;

    want_exti(exti_load(ctx, path, &m, &err), 0, &err);
    want(m);
    return m;
}

static inline struct exti_module *iso_api(struct exti_ctx *ctx)
{
    struct exti_error err = {0};
    struct exti_module *m = NULL;

    want_exti(exti_api(ctx, &m, &err), 0, &err);
    want(m);
    return m;
}

static inline void *iso_sym(struct exti_module *m, const char *name)
{
    struct exti_error err = {0};
    void *p = NULL;

    want_exti(exti_symbol(m, name, &p, &err), 0, &err);
    want(p);
    return p;
}

static inline int call_int(struct exti_module *m, const char *name)
{
    return ((int (*)(void))iso_sym(m, name))();
}

static inline void *call_ptr(struct exti_module *m, const char *name)
{
    return ((void *(*)(void))iso_sym(m, name))();
}

static inline void iso_close_ctx(struct exti_ctx *ctx)
{
    struct exti_error err = {0};

    want_exti(exti_ctx_close(ctx, &err), 0, &err);
}

static inline int iso_print_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    fprintf(stderr, "finding: %s: %s: %s\n", exti_code_name(finding->code), finding->file,
            finding->message);
    return 0;
}

static inline struct exti_proof iso_proof(struct exti_ctx *ctx, exti_report_fn report, void *user)
{
    struct exti_proof proof = {.size = sizeof proof};
    struct exti_error err = {0};

    want_exti(exti_ctx_prove(ctx, report, user, &proof, &err), 0, &err);
    return proof;
}

static inline void iso_prove_clean(struct exti_ctx *ctx, size_t modules)
{
    struct exti_proof proof = iso_proof(ctx, iso_print_finding, NULL);

    want_int((long)proof.leaks, 0);
    want(proof.modules >= modules);
    want(proof.references > proof.modules);
}

static inline void iso_dir_clean(const char *dir)
{
    struct exti_error err = {0};
    size_t findings = 99;

    want_exti(exti_dir_verify(dir, iso_print_finding, NULL, &findings, &err), 0, &err);
    want_int((long)findings, 0);
}

#endif
