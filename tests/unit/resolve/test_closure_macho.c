/* Dependency sets of Mach-O files.  lld links them on any system. */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/resolve/closure.h"
#include "tests/unit/macho/macho_link.h"

#define BOTH "x86_64+arm64"
#define OBJDUMP "llvm-objdump"

struct fixture {
    struct test *t;
    struct exti_closure_graph g;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    if (test_setup((void **)&f->t))
        return -1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    if (f->g.state)
        exti__closure_close(&f->g);
    free(f);
    return test_teardown(&t);
}

#define macho_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- files ---- */

static void link_one(struct test *t, const char *arch, const char *out, const char *source,
                     const char *options)
{
    char *argv[64] = {MACHO_LD, "-arch", (char *)arch, "-platform_version", "macos",
                      "11.0",   "13.3",  "-undefined", "dynamic_lookup"};
    char *o = test_path(t, "part.o"), *text;
    size_t n = 9;

    test_write(test_path(t, "libSystem.tbd"), macho_tbd, sizeof macho_tbd - 1);
    test_write(test_path(t, "part.c"), source, strlen(source));
    test_must_run(t, MACHO_CC, "-target", test_format(t, "%s-apple-macos11", arch), "-O1", "-fPIC",
                  "-fno-stack-protector", "-c", test_path(t, "part.c"), "-o", o, (char *)NULL);
    for (char *p = strtok(test_format(t, "%s", options), " "); p; p = strtok(NULL, " "))
        argv[n++] = *p == '%' ? test_path(t, p + 1) : p;
    argv[n++] = o;
    argv[n++] = test_path(t, "libSystem.tbd");
    argv[n++] = "-o";
    argv[n++] = (char *)out;
    argv[n] = NULL;
    if (test_runv(t, &text, argv))
        fail_msg("%s: %s", out, text);
}

/* Links dir/name for "x86_64", "arm64" or both, and makes its folder.  In `options`, a word after %
 * is a file of the test. */
static const char *link_file(struct fixture *f, const char *arch, const char *name,
                             const char *source, const char *options)
{
    struct test *t = f->t;
    char *out = test_path(t, name), *folder = test_format(t, "%s", out);

    *strrchr(folder, '/') = 0;
    test_must_run(t, "mkdir", "-p", folder, (char *)NULL);
    if (strcmp(arch, BOTH) != 0) {
        link_one(t, arch, out, source, options);
        return out;
    }
    link_one(t, "x86_64", test_path(t, "x"), source, options);
    link_one(t, "arm64", test_path(t, "a"), source, options);
    test_must_run(t, "llvm-lipo", "-create", test_path(t, "x"), test_path(t, "a"), "-output", out,
                  (char *)NULL);
    return out;
}

static const char plain[] = "int part(void) { return 1; }";
static const char user[] = "int Py_GetVersion(void); int use(void) { return Py_GetVersion(); }";

/* A library with the install name `id`, by which files that are linked with it name it. */
static const char *lib(struct fixture *f, const char *name, const char *id, const char *options)
{
    return link_file(f, "arm64", name, plain,
                     test_format(f->t, "-dylib -install_name %s %s", id, options));
}

static const char *bundle(struct fixture *f, const char *name, const char *options)
{
    return link_file(f, "arm64", name, plain, test_format(f->t, "-bundle %s", options));
}

static const char *api(struct fixture *f, const char *arch)
{
    return link_file(f, arch, "libpython3.11.dylib",
                     "int Py_GetVersion(void) { return 1; } int _Py_Other(void) { return 2; }",
                     "-dylib -install_name @rpath/libpython3.11.dylib");
}

/* ---- graphs ---- */

static void close_over(struct fixture *f, const char *root, const char *api_library)
{
    const struct exti_closure_opts o = {.api_library = api_library};
    size_t node;

    if (f->g.state)
        exti__closure_close(&f->g);
    assert_ok(exti__closure_init(&f->g, &o, &f->t->err), &f->t->err);
    assert_ok(exti__closure_add(&f->g, root, true, &node, &f->t->err), &f->t->err);
}

static const struct exti_closure_node *node_of(struct fixture *f, const char *name)
{
    const char *real = test_path(f->t, name);

    for (size_t i = 0; i < f->g.count; i++)
        if (strcmp(f->g.nodes[i].real, real) == 0)
            return &f->g.nodes[i];
    return NULL;
}

static const struct exti_closure_need *need_of(struct fixture *f, const char *name,
                                               const char *needed)
{
    const struct exti_closure_node *n = node_of(f, name);

    assert_non_null(n);
    for (size_t i = 0; i < n->need_count; i++)
        if (strcmp(n->needs[i].name, needed) == 0)
            return &n->needs[i];
    fail_msg("%s does not need %s", name, needed);
    return NULL;
}

/* Asserts that dir/name gets dir/file for `needed`, or nothing if `file` is NULL. */
static void assert_gets(struct fixture *f, const char *name, const char *needed, const char *file)
{
    const struct exti_closure_need *need = need_of(f, name, needed);

    if (!file) {
        assert_int_equal(need->node, EXTI_NO_NODE);
        return;
    }
    if (need->node == EXTI_NO_NODE)
        fail_msg("%s: %s: %s", name, needed, need->problem ? need->problem : "the system's");
    assert_string_equal(f->g.nodes[need->node].real, test_path(f->t, file));
}

/* ---- tests ---- */

/* A wheel as delocate makes it. */
static void libraries_in_a_vendored_folder_are_found(void **state)
{
    struct fixture *f = *state;
    const char *ext;

    macho_skip_without_tools();
    lib(f, "p/.dylibs/libb.dylib", "@loader_path/libb.dylib", "");
    lib(f, "p/.dylibs/liba.dylib", "@loader_path/../.dylibs/liba.dylib", "%p/.dylibs/libb.dylib");
    ext = bundle(f, "p/s/ext.so", "%p/.dylibs/liba.dylib");
    lib(f, "p/.dylibs/libb.dylib", "/DLC/p/.dylibs/libb.dylib", "");
    close_over(f, ext, api(f, "arm64"));
    assert_int_equal(f->g.count, 4);
    assert_int_equal(f->g.missing, 0);
    assert_gets(f, "p/s/ext.so", "@loader_path/../.dylibs/liba.dylib", "p/.dylibs/liba.dylib");
    assert_gets(f, "p/.dylibs/liba.dylib", "@loader_path/libb.dylib", "p/.dylibs/libb.dylib");
    assert_true(need_of(f, "p/s/ext.so", "/usr/lib/libSystem.B.dylib")->system);
    assert_null(need_of(f, "p/s/ext.so", "/usr/lib/libSystem.B.dylib")->problem);
    assert_true(node_of(f, "p/.dylibs/libb.dylib")->isolated);
}

/* dyld(1), LC_RPATH: first those of the file, then those of the file that loaded it. */
static void rpaths_of_loading_files_count(void **state)
{
    struct fixture *f = *state;
    const char *ext;

    macho_skip_without_tools();
    lib(f, "p/lib/libb.dylib", "@rpath/libb.dylib", "");
    lib(f, "p/lib/liba.dylib", "@rpath/liba.dylib", "%p/lib/libb.dylib");
    ext =
        bundle(f, "p/ext.so", "%p/lib/liba.dylib -rpath @loader_path/none -rpath @loader_path/lib");
    close_over(f, ext, NULL);
    assert_gets(f, "p/ext.so", "@rpath/liba.dylib", "p/lib/liba.dylib");
    assert_gets(f, "p/lib/liba.dylib", "@rpath/libb.dylib", "p/lib/libb.dylib");
    close_over(f, test_path(f->t, "p/lib/liba.dylib"), NULL);
    assert_gets(f, "p/lib/liba.dylib", "@rpath/libb.dylib", NULL);
    assert_int_equal(f->g.missing, 1);
    assert_contains(need_of(f, "p/lib/liba.dylib", "@rpath/libb.dylib")->problem, "none of");
}

/* dyld goes on to the next LC_RPATH, and reports the wrong file if it finds no other. */
static void files_for_another_machine_are_skipped(void **state)
{
    struct fixture *f = *state;
    const char *ext;

    macho_skip_without_tools();
    lib(f, "p/2/liba.dylib", "@rpath/liba.dylib", "");
    ext =
        bundle(f, "p/ext.so",
               "%p/2/liba.dylib -rpath @loader_path/0 -rpath @loader_path/1 -rpath @loader_path/2");
    link_file(f, "x86_64", "p/1/liba.dylib", plain, "-dylib -install_name @rpath/liba.dylib");
    test_must_run(f->t, "mkdir", "-p", test_path(f->t, "p/0"), (char *)NULL);
    test_write(test_path(f->t, "p/0/liba.dylib"), "no library", 10);
    close_over(f, ext, NULL);
    assert_gets(f, "p/ext.so", "@rpath/liba.dylib", "p/2/liba.dylib");
    test_must_run(f->t, "rm", "-r", test_path(f->t, "p/2"), test_path(f->t, "p/0"), (char *)NULL);
    close_over(f, ext, NULL);
    assert_gets(f, "p/ext.so", "@rpath/liba.dylib", NULL);
    assert_contains(need_of(f, "p/ext.so", "@rpath/liba.dylib")->problem,
                    "is for x86-64, not arm64");
}

/* Loader.cpp, matchesPath: the install names of loaded images come before the search, for paths and
 * "@rpath/...". */
static void loaded_install_names_come_first(void **state)
{
    struct fixture *f = *state;
    const char *ext;

    macho_skip_without_tools();
    lib(f, "2/libc.dylib", "@rpath/libc.dylib", "");
    lib(f, "1/libc.dylib", "@rpath/libc.dylib", "");
    lib(f, "libb.dylib", "@loader_path/libb.dylib", "%2/libc.dylib -rpath @loader_path/2");
    ext = bundle(f, "ext.so", "%1/libc.dylib %libb.dylib -rpath @loader_path/1");
    close_over(f, ext, NULL);
    assert_gets(f, "libb.dylib", "@rpath/libc.dylib", "1/libc.dylib");
    /* A library that was found by that name, but has another install name, is looked for again. */
    lib(f, "1/libc.dylib", "/DLC/libc.dylib", "");
    close_over(f, ext, NULL);
    assert_gets(f, "ext.so", "@rpath/libc.dylib", "1/libc.dylib");
    assert_gets(f, "libb.dylib", "@rpath/libc.dylib", "2/libc.dylib");
}

static void system_libraries_need_no_files(void **state)
{
    struct fixture *f = *state;
    const char *ext;

    macho_skip_without_tools();
    lib(f, "libs.dylib", "@rpath/libs.dylib", "");
    lib(f, "libf.dylib", "/System/Library/Frameworks/F.framework/F", "");
    ext =
        bundle(f, "ext.so", "%libs.dylib %libf.dylib -rpath /usr/lib/swift -rpath @loader_path/x");
    close_over(f, ext, NULL);
    assert_int_equal(f->g.count, 1);
    assert_int_equal(f->g.missing, 0);
    assert_true(need_of(f, "ext.so", "@rpath/libs.dylib")->system);
    assert_true(need_of(f, "ext.so", "/System/Library/Frameworks/F.framework/F")->system);
    lib(f, "x/libs.dylib", "@rpath/libs.dylib", ""); /* a file that does exist */
    close_over(f, ext, NULL);
    assert_gets(f, "ext.so", "@rpath/libs.dylib", "x/libs.dylib");
}

static void names_that_no_file_resolves_are_reported(void **state)
{
    struct fixture *f = *state;
    const char *ext;

    macho_skip_without_tools();
    lib(f, "libe.dylib", "@executable_path/libe.dylib", "");
    lib(f, "libr.dylib", "libr.dylib", "");
    lib(f, "libw.dylib", "@loader_path/gone/libw.dylib", "");
    ext = bundle(f, "ext.so", "%libe.dylib %libr.dylib -weak_library %libw.dylib");
    close_over(f, ext, NULL);
    assert_int_equal(f->g.count, 1);
    assert_int_equal(f->g.missing, 2);
    assert_int_equal(f->g.missing_optional, 1);
    assert_contains(need_of(f, "ext.so", "@executable_path/libe.dylib")->problem,
                    "@executable_path");
    assert_contains(need_of(f, "ext.so", "libr.dylib")->problem, "current folder");
    assert_true(need_of(f, "ext.so", "@loader_path/gone/libw.dylib")->optional);
}

static void circles_of_needs_end(void **state)
{
    struct fixture *f = *state;

    macho_skip_without_tools();
    lib(f, "liba.dylib", "@loader_path/liba.dylib", "");
    lib(f, "libb.dylib", "@loader_path/libb.dylib", "%liba.dylib");
    lib(f, "liba.dylib", "@loader_path/liba.dylib", "%libb.dylib");
    close_over(f, bundle(f, "ext.so", "%liba.dylib"), NULL);
    assert_int_equal(f->g.count, 3);
    assert_gets(f, "libb.dylib", "@loader_path/liba.dylib", "liba.dylib");
    assert_gets(f, "liba.dylib", "@loader_path/libb.dylib", "libb.dylib");
    assert_true(node_of(f, "libb.dylib")->isolated);
}

/* Slices that no context can load are ignored. */
static void only_slices_that_the_api_has_count(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *ext;

    macho_skip_without_tools();
    if (!test_have("llvm-lipo"))
        skip_because("llvm-lipo is not installed");
    link_file(f, BOTH, "liba.dylib", plain, "-dylib -install_name @loader_path/liba.dylib");
    link_file(f, BOTH, "libb.dylib", plain, "-dylib -install_name @loader_path/libb.dylib");
    link_file(f, "x86_64", "x.so", plain, "-bundle %liba.dylib");
    link_file(f, "arm64", "a.so", plain, "-bundle %libb.dylib");
    ext = test_path(t, "ext.so");
    test_must_run(t, "llvm-lipo", "-create", test_path(t, "x.so"), test_path(t, "a.so"), "-output",
                  ext, (char *)NULL);
    close_over(f, ext, api(f, BOTH));
    assert_gets(f, "ext.so", "@loader_path/liba.dylib", "liba.dylib");
    assert_gets(f, "ext.so", "@loader_path/libb.dylib", "libb.dylib");
    assert_int_equal(f->g.count, 4);
    close_over(f, ext, api(f, "arm64"));
    assert_gets(f, "ext.so", "@loader_path/libb.dylib", "libb.dylib");
    assert_int_equal(f->g.count, 3);
}

/* An edit applies to the slices that have the library that it names. */
static void slices_may_name_different_libraries(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    struct exti_needed needed[] = {
        {"@loader_path/liba.dylib", "@loader_path/libA.dylib", EXTI_NEEDED_LAST},
        {"@loader_path/libb.dylib", "@loader_path/libB.dylib", EXTI_NEEDED_LAST}};
    struct exti_rewrite_opts opts = {
        .size = sizeof opts, .needed = needed, .needed_count = ARRAY_SIZE(needed)};
    const char *ext, *copy = test_path(t, "copy.so");
    size_t findings = 1;
    char *out;

    macho_skip_without_tools();
    if (!test_have("llvm-lipo") || !test_have(OBJDUMP))
        skip_because("llvm-lipo or " OBJDUMP " is not installed");
    link_file(f, BOTH, "liba.dylib", plain, "-dylib -install_name @loader_path/liba.dylib");
    link_file(f, BOTH, "libb.dylib", plain, "-dylib -install_name @loader_path/libb.dylib");
    link_file(f, "x86_64", "x.so", plain, "-bundle %liba.dylib");
    link_file(f, "arm64", "a.so", plain, "-bundle %libb.dylib");
    ext = test_path(t, "ext.so");
    test_must_run(t, "llvm-lipo", "-create", test_path(t, "x.so"), test_path(t, "a.so"), "-output",
                  ext, (char *)NULL);
    assert_ok(exti_rewrite(ext, copy, &opts, &t->err), &t->err);
    assert_ok(exti_verify(copy, ext, NULL, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
    out =
        test_must_run(t, OBJDUMP, "--macho", "--arch=x86_64", "--dylibs-used", copy, (char *)NULL);
    assert_contains(out, "libA.dylib");
    assert_null(strstr(out, "libB.dylib"));
    out = test_must_run(t, OBJDUMP, "--macho", "--arch=arm64", "--dylibs-used", copy, (char *)NULL);
    assert_contains(out, "libB.dylib");
    assert_null(strstr(out, "libA.dylib"));
    needed[1].from = "@loader_path/libc.dylib";
    assert_exti(exti_rewrite(ext, copy, &opts, &t->err), EXTI_E_ARG, &t->err, ANY_OFFSET);
    assert_says(&t->err, "there is no '@loader_path/libc.dylib' to replace");
}

/* By a flat reference, or by a reference to the library's own name. */
static void libraries_that_use_the_api_are_known(void **state)
{
    struct fixture *f = *state;
    const char *python, *ext;

    macho_skip_without_tools();
    python = api(f, "arm64");
    link_file(f, "arm64", "libflat.dylib", user, "-dylib -install_name @loader_path/libflat.dylib");
    link_file(f, "arm64", "libown.dylib", "int Py_GetVersion(void) { return 7; }",
              "-dylib -install_name @loader_path/libown.dylib");
    link_file(f, "arm64", "libother.dylib", user,
              "-dylib -install_name @loader_path/libother.dylib %libown.dylib");
    link_file(f, "arm64", "libbound.dylib", user,
              "-dylib -install_name @loader_path/libbound.dylib %libpython3.11.dylib");
    ext = bundle(f, "ext.so", "%libflat.dylib %libother.dylib %libbound.dylib");
    close_over(f, ext, python);
    assert_true(node_of(f, "libflat.dylib")->uses_api);
    assert_true(node_of(f, "libbound.dylib")->uses_api);
    assert_false(node_of(f, "libother.dylib")->uses_api); /* gets it from libown */
    assert_false(node_of(f, "ext.so")->uses_api);
    assert_true(node_of(f, "ext.so")->reaches_api);
    assert_gets(f, "libbound.dylib", "@rpath/libpython3.11.dylib", "libpython3.11.dylib");
}

static void every_allocation_may_fail(void **state)
{
    struct fixture *f = *state;
    struct exti_closure_opts o = {0};
    const char *ext;
    size_t node;
    long n;
    int rc = EXTI_E_NOMEM;

    macho_skip_without_tools();
    o.api_library = api(f, "arm64");
    lib(f, "lib/libb.dylib", "@rpath/libb.dylib", "");
    lib(f, "liba.dylib", "@loader_path/liba.dylib", "%lib/libb.dylib -rpath /usr/lib/x");
    ext = bundle(f, "ext.so", "%liba.dylib -rpath @loader_path/lib/");
    assert_ok(exti__closure_init(&f->g, &o, &f->t->err), &f->t->err);
    for (n = 0; rc; n++) {
        assert_int_equal(f->g.count, 1);
        exti__mem_fail_after(n);
        rc = exti__closure_add(&f->g, ext, true, &node, &f->t->err);
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || rc == EXTI_E_NOMEM);
    }
    assert_true(n > 50);
    assert_int_equal(f->g.count, 4);
    assert_gets(f, "liba.dylib", "@rpath/libb.dylib", "lib/libb.dylib");
}

/* Two names of one file become one name, to which symbols of either are bound. */
static void two_names_of_a_library_become_one_copy(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    struct exti_ctx_opts o = {.size = sizeof o, .flags = EXTI_CTX_COPY_ONLY};
    struct exti_ctx *ctx;
    const char *ext, *copy, *first, *second;
    char *out, *names;
    size_t findings = 1;

    macho_skip_without_tools();
    o.dir = test_path(t, "ctx");
    o.api_library = api(f, "arm64");
    link_file(f, "arm64", "o/liba.dylib", "int one(void) { return 1; }",
              "-dylib -install_name @loader_path/liba.dylib");
    link_file(f, "arm64", "liba.dylib", "int two(void) { return 1; }",
              "-dylib -install_name @rpath/liba.dylib");
    ext = link_file(f, "arm64", "ext.so",
                    "int one(void), two(void); int both(void) { return one() + two(); }",
                    "-bundle %o/liba.dylib %liba.dylib -rpath @loader_path");
    link_file(f, "arm64", "liba.dylib", "int one(void) { return 1; } int two(void) { return 2; }",
              "-dylib -install_name @rpath/liba.dylib");
    assert_ok(exti_ctx_open(&ctx, &o, &t->err), &t->err);
    assert_ok(exti_copy(ctx, ext, &copy, &t->err), &t->err);
    out = test_must_run(t, OBJDUMP, "--macho", "--dylibs-used", copy, (char *)NULL);
    names = test_format(t, "%s", out);
    first = strstr(names, "@loader_path/liba.");
    assert_non_null(first);
    if (strstr(strchr(first, '\n'), "liba."))
        fail_msg("%s", names);
    out = test_must_run(t, OBJDUMP, "--macho", "--bind", "--lazy-bind", copy, (char *)NULL);
    exti_ctx_close(ctx, NULL);
    first = strstr(out, " liba.");
    second = first ? strstr(first + 1, " liba.") : NULL;
    assert_true(second && strstr(first, "_one\n") && strstr(first, "_two\n"));
    assert_ok(exti_dir_verify(o.dir, NULL, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
}

/* If an allocation fails, there are no copies or all.  One of the two vendored libraries is
 * shared. */
static void a_copy_without_memory_is_complete_or_missing(void **state)
{
    static const struct exti_rule rules[] = {{"libb.*", 1}};
    struct fixture *f = *state;
    struct test *t = f->t;
    struct exti_ctx_opts o = {.size = sizeof o, .flags = EXTI_CTX_COPY_ONLY};
    struct exti_ctx *ctx;
    const char *ext, *copy;
    size_t findings = 1;
    int rc = EXTI_E_NOMEM;

    macho_skip_without_tools();
    o.dir = test_path(t, "ctx");
    o.api_library = api(f, "arm64");
    o.rules = rules;
    o.rule_count = ARRAY_SIZE(rules);
    lib(f, "v/libb.dylib", "@loader_path/libb.dylib", "");
    lib(f, "v/liba.dylib", "@loader_path/v/liba.dylib", "%v/libb.dylib");
    ext = bundle(f, "ext.so", "%v/liba.dylib");
    for (long n = 0; rc; n += 1 + n / 30) {
        exti__mem_fail_after(n);
        rc = exti_ctx_open(&ctx, &o, &t->err);
        if (!rc) {
            rc = exti_copy(ctx, ext, &copy, &t->err);
            exti__mem_fail_after(-1);
            exti_ctx_close(ctx, NULL);
        }
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || rc == EXTI_E_NOMEM);
        if (rc && !access(o.dir, F_OK))
            test_must_run(t, "rm", "-r", o.dir, (char *)NULL);
    }
    assert_ok(exti_dir_verify(o.dir, NULL, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
    assert_contains(test_list(t, o.dir), "liba.");
    assert_null(strstr(test_list(t, o.dir), "libb."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        macho_test(libraries_in_a_vendored_folder_are_found),
        macho_test(rpaths_of_loading_files_count),
        macho_test(files_for_another_machine_are_skipped),
        macho_test(loaded_install_names_come_first),
        macho_test(system_libraries_need_no_files),
        macho_test(names_that_no_file_resolves_are_reported),
        macho_test(circles_of_needs_end),
        macho_test(only_slices_that_the_api_has_count),
        macho_test(slices_may_name_different_libraries),
        macho_test(libraries_that_use_the_api_are_known),
        macho_test(every_allocation_may_fail),
        macho_test(two_names_of_a_library_become_one_copy),
        macho_test(a_copy_without_memory_is_complete_or_missing),
    };

    return cmocka_run_group_tests_name("closure_macho", tests, NULL, NULL);
}
