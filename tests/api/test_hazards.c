/* exti_image_hazard finds what readelf and nm see, and nothing in files without hazards. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

struct call {
    const char *kind, *names; /* of functions, in the order of their bytes */
    enum exti_outcome outcome;
};

static const struct call calls[] = {
    {"thread-keys", "pthread_key_create, tss_create", EXTI_OUTCOME_LIMIT},
    {"threads", "pthread_create, thrd_create", EXTI_OUTCOME_UNLOAD},
    {"destructors", "__cxa_atexit, atexit", EXTI_OUTCOME_UNLOAD},
    {"exit-handlers", "__cxa_at_quick_exit, at_quick_exit, on_exit", EXTI_OUTCOME_UNLOAD},
    {"thread-exit", "__cxa_thread_atexit, __cxa_thread_atexit_impl", EXTI_OUTCOME_UNLOAD},
    {"signals",
     "__sysv_signal, alarm, bsd_signal, setitimer, sigaction, siginterrupt, signal, sigset",
     EXTI_OUTCOME_SHARED},
    {"fork", "__register_atfork, daemon, fork, forkpty, pthread_atfork", EXTI_OUTCOME_SHARED},
    {"directory", "chdir, chroot, fchdir", EXTI_OUTCOME_SHARED},
    {"umask", "umask", EXTI_OUTCOME_SHARED},
    {"environment", "clearenv, putenv, setenv, unsetenv", EXTI_OUTCOME_SHARED},
    {"locale", "setlocale", EXTI_OUTCOME_SHARED},
    {"end", "_Exit, _exit, exit, quick_exit", EXTI_OUTCOME_SHARED},
    {"record-locks", "fcntl, fcntl64, lockf, lockf64", EXTI_OUTCOME_LOAD},
};

/* ---- building and asking --------------------------------------------------------------------- */

/* Builds a library from the source, or fails the test. */
static char *build_source(struct test *t, const char *name, const char *source, const char *flag,
                          const char *more)
{
    char *src = test_path(t, test_format(t, "%s.c", name)), *out = test_path(t, name);

    test_write(src, source, strlen(source));
    test_must_run(t, "gcc", "-shared", "-fPIC", "-O1", "-o", out, src, flag, more, NULL);
    return out;
}

static struct exti_image *inspect(struct test *t, const char *path)
{
    struct exti_image *im = NULL;

    assert_ok(exti_inspect(path, &im, &t->err), &t->err);
    return im;
}

/* Lists the kinds of all hazards of the file: "kind, kind". */
static char *kinds_of(struct test *t, const char *path)
{
    struct exti_hazard_info h = {.size = sizeof h};
    struct exti_image *im = inspect(t, path);
    char *all = test_format(t, "%s", "");

    for (size_t i = 0; exti_image_hazard(im, i, &h) == 0; i++) {
        assert_non_null(h.advice);
        assert_true(h.count > 0);
        all = test_format(t, "%s%s%s", all, i ? ", " : "", h.name);
    }
    exti_image_free(im);
    return all;
}

static struct exti_hazard_info hazard_of(struct test *t, const char *path, const char *kind)
{
    struct exti_hazard_info h = {.size = sizeof h};
    struct exti_image *im = inspect(t, path);
    bool found = false;

    for (size_t i = 0; !found && exti_image_hazard(im, i, &h) == 0; i++)
        found = strcmp(h.name, kind) == 0;
    exti_image_free(im);
    if (!found) {
        print_message("%s has no %s\n", path, kind);
        fail();
    }
    return h;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Refers to each function by address, so that nothing else is imported. */
static char *caller(struct test *t, const struct call *c)
{
    char *names = test_format(t, "%s", c->names), *save = NULL,
         *declared = test_format(t, "%s", ""), *used = declared;

    for (char *n = strtok_r(names, ", ", &save); n; n = strtok_r(NULL, ", ", &save)) {
        declared = test_format(t, "%sextern char %s[];\n", declared, n);
        used = test_format(t, "%s%s, ", used, n);
    }
    return build_source(t, test_format(t, "%s.so", c->kind),
                        test_format(t, "%schar *uses[] = {%s};\n", declared, used), "-nostdlib",
                        "-fno-builtin");
}

/* Gives the undefined symbols that nm lists, joined. */
static char *imports(struct test *t, const char *path)
{
    char *text = test_must_run(t, "nm", "-D", "-u", path, NULL), *save = NULL;
    char *all = test_format(t, "%s", "");

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        all = test_format(t, "%s%s%s", all, *all ? ", " : "", strrchr(line, ' ') + 1);
    return all;
}

static void calls_are_found(void **state)
{
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        const struct call *c = &calls[i];
        char *path = caller(t, c);
        struct exti_hazard_info h = hazard_of(t, path, c->kind);
        size_t commas = 0;

        assert_string_equal(kinds_of(t, path), c->kind);
        assert_string_equal(h.evidence, c->names);
        assert_int_equal(h.outcome, c->outcome);
        assert_true(h.most == EXTI_NO_LIMIT);
        for (const char *at = c->names; (at = strchr(at, ',')); at++)
            commas++;
        assert_int_equal(h.count, commas + 1);
        setenv("LC_ALL", "C", 1); /* makes nm sort by bytes */
        assert_string_equal(imports(t, path), c->names);
    }
}

/* A file that defines a function does not call the system's. */
static void own_functions_are_none(void **state)
{
    struct test *t = *state;
    char *path = build_source(t, "own.so",
                              "int fork(void); int fork(void) { return 1; }\n"
                              "int sigaction(void); int sigaction(void) { return fork(); }\n",
                              "-fno-builtin", "-Wl,-Bsymbolic");

    assert_string_equal(kinds_of(t, path), "");
}

/* The compiler's start-up code has a destructor and imports __cxa_finalize. */
static void an_ordinary_library_has_none(void **state)
{
    struct test *t = *state;
    char *path = build_source(t, "plain.so",
                              "#include <stdio.h>\n#include <stdlib.h>\n#include <errno.h>\n"
                              "__thread int slot[4]; void f(char *); void f(char *s)\n"
                              "{ puts(s); slot[1] = errno; if (!*s) abort(); }\n",
                              "-g", "-lc");
    char *text = test_must_run(t, "readelf", "-dW", path, NULL);

    assert_contains(text, "(FINI_ARRAY)");
    assert_string_equal(kinds_of(t, path), "");
}

static void destructors_are_counted(void **state)
{
    struct test *t = *state;
    char *two = build_source(t, "two.so",
                             "#define D __attribute__((destructor)) static void\n"
                             "int n; D a(void) { n++; } D b(void) { n--; }\n",
                             "-g", "-lc");
    char *bare = build_source(t, "bare.so",
                              "int n; __attribute__((destructor)) static void a(void) { n++; }\n",
                              "-nostdlib", "-g");
    char *at = build_source(t, "at.so",
                            "#include <stdlib.h>\nstatic void a(void) {} void f(void);\n"
                            "void f(void) { atexit(a); }\n",
                            "-g", "-lc");
    struct exti_hazard_info h = hazard_of(t, two, "destructors");

    assert_int_equal(h.count, 2);
    assert_string_equal(h.evidence, "DT_FINI_ARRAY");
    /* Counts the bytes, with those of the compiler. */
    assert_contains(test_must_run(t, "readelf", "-dW", two, NULL),
                    test_format(t, "%zu (bytes)", 3 * sizeof(void *)));
    assert_int_equal(hazard_of(t, bare, "destructors").count, 1);
    h = hazard_of(t, at, "destructors");
    assert_string_equal(h.evidence, "__cxa_atexit");
    assert_contains(imports(t, at), "__cxa_atexit");
}

/* ---- flags ----------------------------------------------------------------------------------- */

static char *make_copy(struct test *t, const char *path)
{
    struct exti_rewrite_opts o = {.size = sizeof o};
    char *out = test_format(t, "%s.copy", path);

    o.flags = EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE;
    assert_ok(exti_rewrite(path, out, &o, &t->err), &t->err);
    return out;
}

static void flags_that_copies_lack(void **state)
{
    struct test *t = *state;
    char *nodelete = build_source(t, "nodelete.so", "int x;\n", "-Wl,-z,nodelete", "-nostdlib");
    char *unique = build_source(t, "unique.so",
                                "__asm__(\".data\\n\"\n"
                                "\".globl one\\n.type one, @gnu_unique_object\\n.size one, 4\\n"
                                "one: .long 1\\n\"\n"
                                "\".globl two\\n.type two, @gnu_unique_object\\n.size two, 4\\n"
                                "two: .long 2\\n\");\n",
                                "-nostdlib", "-g");
    struct exti_hazard_info h = hazard_of(t, nodelete, "nodelete");

    assert_int_equal(h.outcome, EXTI_OUTCOME_COPY);
    assert_contains(test_must_run(t, "readelf", "-dW", nodelete, NULL), "NODELETE");
    assert_string_equal(kinds_of(t, nodelete), "nodelete");
    assert_string_equal(kinds_of(t, make_copy(t, nodelete)), "");
    h = hazard_of(t, unique, "unique-symbols");
    assert_int_equal(h.outcome, EXTI_OUTCOME_COPY);
    assert_int_equal(h.count, 2);
    assert_string_equal(kinds_of(t, unique), "unique-symbols");
    assert_string_equal(kinds_of(t, make_copy(t, unique)), "");
}

/* How far libraries of this machine may be aligned in the block, and how much room they have. */
#ifdef __x86_64__
enum { MOST_ALIGNED = 64, ROOM = EXTI_STATIC_TLS_ROOM };
#else
enum { MOST_ALIGNED = 32, ROOM = EXTI_STATIC_TLS_ROOM - 512 };
#endif

static void static_tls_is_measured(void **state)
{
    static const struct {
        int size, align;
        uint64_t takes, most;
    } of[] = {{8, 8, 8, ROOM / 8},
              {64, 8, 64, ROOM / 64},
              {100, 4, 100, ROOM / 100},
              {100, 8, 104, ROOM / 104},
              {72, MOST_ALIGNED, (72 / MOST_ALIGNED + 1) * MOST_ALIGNED,
               ROOM / ((72 / MOST_ALIGNED + 1) * MOST_ALIGNED)},
              {ROOM, 8, ROOM, 1},
              {ROOM + 8, 8, ROOM + 8, 0},
              {128, 128, 128, 0}};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
        char *source = test_format(t,
                                   "__thread char b[%d] __attribute__((aligned(%d), "
                                   "tls_model(\"initial-exec\")));\n"
                                   "char *f(void); char *f(void) { return b; }\n",
                                   of[i].size, of[i].align);
        char *path = build_source(t, test_format(t, "tls%zu.so", i), source, "-nostdlib", "-g");
        struct exti_hazard_info h = hazard_of(t, path, "static-tls");

        assert_string_equal(kinds_of(t, path), "static-tls");
        assert_int_equal(h.outcome, EXTI_OUTCOME_LIMIT);
        assert_int_equal(h.count, of[i].takes);
        assert_int_equal(h.most, of[i].most);
    }
}

/* GNU ld never sets the flag on arm64. */
static void static_tls_is_found_without_the_flag(void **state)
{
    static const char own[] = "__thread char b[40] __attribute__((tls_model(\"initial-exec\")));\n"
                              "char *f(void); char *f(void) { return b; }\n",
                      foreign[] =
                          "extern __thread int e __attribute__((tls_model(\"initial-exec\")));\n"
                          "int f(void); int f(void) { return e; }\n";
#ifdef __aarch64__
    const char *const gcc = "gcc";
#else
    const char *const gcc = "aarch64-linux-gnu-gcc";
#endif
    const char *const sources[] = {own, foreign};
    struct test *t = *state;

    if (!test_have(gcc))
        skip_because("no %s", gcc);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        char *src = test_path(t, "arm64.c"), *path = test_path(t, "arm64.so");
        struct exti_image_info info = {.size = sizeof info};
        struct exti_image *im;

        test_write(src, sources[i], strlen(sources[i]));
        test_must_run(t, gcc, "-shared", "-fPIC", "-nostdlib", "-o", path, src, NULL);
        assert_null(strstr(test_must_run(t, "readelf", "-dW", path, NULL), "STATIC_TLS"));
        assert_contains(test_must_run(t, "readelf", "-rW", path, NULL), "R_AARCH64_TLS_TPREL");
        im = inspect(t, path);
        assert_int_equal(exti_image_info(im, &info), 0);
        assert_true(info.flags & EXTI_IMAGE_STATIC_TLS);
        exti_image_free(im);
        assert_string_equal(kinds_of(t, path), i ? "" : "static-tls");
        if (i == 0) {
            assert_string_equal(hazard_of(t, path, "static-tls").evidence, "R_AARCH64_TLS_TPREL");
            assert_int_equal(hazard_of(t, path, "static-tls").most, 1152 / 40);
        }
    }
}

/* Thread-locals without the flag are allocated as needed; the flag without thread-locals refers to
 * those of another library. */
static void other_tls_takes_nothing(void **state)
{
    struct test *t = *state;
    char *foreign =
        build_source(t, "foreign.so",
                     "extern __thread int e __attribute__((tls_model(\"initial-exec\")));\n"
                     "int f(void); int f(void) { return e; }\n",
                     "-nostdlib", "-g");
    char *dynamic = build_source(
        t, "dynamic.so", "__thread char b[64]; char *f(void); char *f(void) { return b; }\n", "-g",
        "-lc");

#ifdef __x86_64__ /* see static_tls_is_found_without_the_flag */
    assert_contains(test_must_run(t, "readelf", "-dW", foreign, NULL), "STATIC_TLS");
#endif
    assert_string_equal(kinds_of(t, foreign), "");
    assert_contains(test_must_run(t, "readelf", "-lW", dynamic, NULL), "\n  TLS ");
    assert_string_equal(kinds_of(t, dynamic), "");
}

/* ---- libraries ------------------------------------------------------------------------------- */

static void thread_pools_are_found(void **state)
{
    struct test *t = *state;
    char *blas =
        build_source(t, "libopenblas.so.0",
                     "void openblas_set_num_threads(int n); void openblas_set_num_threads(int n)\n"
                     "{ (void)n; }\n",
                     "-Wl,-soname,libopenblas.so.0", "-nostdlib");
    char *user = build_source(t, "user.so", "int x;\n", "-Wl,--no-as-needed", blas);
    char *team = build_source(
        t, "team.so", "void GOMP_parallel(void); void f(void); void f(void) { GOMP_parallel(); }\n",
        "-nostdlib", "-g");

    assert_string_equal(kinds_of(t, blas), "blas");
    assert_string_equal(hazard_of(t, blas, "blas").evidence, "openblas_set_num_threads");
    assert_string_equal(kinds_of(t, user), "blas");
    assert_string_equal(hazard_of(t, user, "blas").evidence, "libopenblas.so.0");
    assert_string_equal(kinds_of(t, team), "openmp");
    assert_string_equal(hazard_of(t, team, "openmp").evidence, "GOMP_parallel");
}

static void a_host_that_exports_the_api_is_found(void **state)
{
    struct test *t = *state;
    const char *source = "int Py_One; int _Py_Two(void); int _Py_Two(void) { return 2; }\n"
                         "int PyOne; int Qy; int main(void) { return 0; }\n";
    char *src = test_path(t, "host.c"), *host = test_path(t, "host"),
         *quiet = test_path(t, "quiet");
    struct exti_hazard_info h;

    test_write(src, source, strlen(source));
    test_must_run(t, "gcc", "-fPIE", "-pie", "-rdynamic", "-o", host, src, NULL);
    test_must_run(t, "gcc", "-fPIE", "-pie", "-o", quiet, src, NULL);
    h = hazard_of(t, host, "host-api");
    assert_int_equal(h.outcome, EXTI_OUTCOME_LOAD);
    assert_int_equal(h.count, 3);
    assert_string_equal(kinds_of(t, quiet), "");
    /* A library is expected to export the API. */
    assert_string_equal(kinds_of(t, build_source(t, "lib.so", "int Py_One;\n", "-nostdlib", "-g")),
                        "");
}

/* ---- the call itself ------------------------------------------------------------------------- */

static void a_long_name_is_cut(void **state)
{
    struct test *t = *state;
    char *name = test_format(t, "GOMP_%0500d", 0);
    char *path = build_source(
        t, "long.so",
        test_format(t, "void %s(void); void f(void); void f(void) { %s(); }\n", name, name),
        "-nostdlib", "-g");
    struct exti_hazard_info h = hazard_of(t, path, "openmp");

    assert_true(strlen(h.evidence) < sizeof h.evidence);
    assert_int_equal(strncmp(h.evidence, name, strlen(h.evidence) - strlen(", ...")), 0);
    assert_string_equal(h.evidence + strlen(h.evidence) - strlen(", ..."), ", ...");
}

static void wrong_calls_are_refused(void **state)
{
    struct test *t = *state;
    struct {
        struct exti_hazard_info h;
        char tail[8];
    } longer = {.h = {.size = sizeof longer}, .tail = "intact"};
    struct exti_hazard_info h = {.size = 4};
    struct exti_image *im =
        inspect(t, build_source(t, "k.so", "int x;\n", "-Wl,-z,nodelete", "-nostdlib"));

    assert_int_equal(exti_image_hazard(NULL, 0, &h), EXTI_E_ARG);
    assert_int_equal(exti_image_hazard(im, 0, NULL), EXTI_E_ARG);
    assert_int_equal(exti_image_hazard(im, 0, &h), EXTI_E_ARG);
    assert_int_equal(exti_image_hazard(im, 1, &longer.h), EXTI_E_ARG);
    assert_int_equal(exti_image_hazard(im, SIZE_MAX, &longer.h), EXTI_E_ARG);
    assert_int_equal(exti_image_hazard(im, 0, &longer.h), 0);
    assert_string_equal(longer.tail, "intact");
    /* An older caller's struct, which ends before the members unknown to it. */
    h = (struct exti_hazard_info){.size = offsetof(struct exti_hazard_info, count), .count = 77};
    assert_int_equal(exti_image_hazard(im, 0, &h), 0);
    assert_string_equal(h.name, "nodelete");
    assert_int_equal(h.count, 77);
    exti_image_free(im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(calls_are_found),
        exti_test(own_functions_are_none),
        exti_test(an_ordinary_library_has_none),
        exti_test(destructors_are_counted),
        exti_test(flags_that_copies_lack),
        exti_test(static_tls_is_measured),
        exti_test(static_tls_is_found_without_the_flag),
        exti_test(other_tls_takes_nothing),
        exti_test(thread_pools_are_found),
        exti_test(a_host_that_exports_the_api_is_found),
        exti_test(a_long_name_is_cut),
        exti_test(wrong_calls_are_refused),
    };

    return cmocka_run_group_tests_name("api/hazards", tests, NULL, NULL);
}
