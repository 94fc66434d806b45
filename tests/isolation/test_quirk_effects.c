/* The effects of quirks on copies and loaded modules, which the cases run. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>

#include "base/mem.h"
#include "tests/isolation/iso.h"

/* ---- toys: an API, a library, and an extension that uses both ---- */

static const char api_source[] = "int api_n; int api_next(void) { return ++api_n; }\n"
                                 "int api_ten(void) { return 10; }\n"
                                 "int rand_seen; int api_rand(void) { rand_seen++; return 77; }\n";
static const char dep_source[] = "static int n; int dep_step(void) { return ++n; }\n";
static const char ext_source[] = "int api_next(void), dep_step(void), rand(void);\n"
                                 "int ext_next(void) { return api_next(); }\n"
                                 "int ext_step(void) { return dep_step(); }\n"
                                 "int ext_rand(void) { return rand(); }\n"
                                 "int ext_old(void) { return 7; }\n";

/* Compiles a shared library.  In `flags` % stands for the case's folder. */
static const char *build_library(const char *name, const char *source, const char *flags)
{
    const char *cc = getenv("CC"), *c = iso_text("%s/%s.c", iso_tmp, name);
    const char *out = iso_text("%s/%s", iso_tmp, name);
    char expanded[512] = "";
    FILE *f = fopen(c, "w");

    want(f && fputs(source, f) >= 0 && fclose(f) == 0);
    for (size_t n = 0; *flags; flags++)
        n += (size_t)snprintf(expanded + n, sizeof expanded - n, *flags == '%' ? "%s" : "%.1s",
                              *flags == '%' ? iso_tmp : flags);
    want(system(iso_text("%s -shared -fPIC -w -o '%s' '%s' %s", cc && *cc ? cc : "cc", out, c,
                         expanded)) == 0);
    return out;
}

static void build_toys(const char *dep_soname)
{
    build_library("libquirkapi.so", api_source, "-Wl,-soname,libquirkapi.so.1");
    build_library("libquirkdep.so", dep_source, iso_text("-Wl,-soname,%s", dep_soname));
    want(rename(in_tmp("libquirkdep.so"), in_tmp(dep_soname)) == 0);
    build_library("ext.so", ext_source,
                  iso_text("-Wl,--no-as-needed -Wl,--disable-new-dtags -Wl,-rpath,%% -L%% -l:%s",
                           dep_soname));
}

/* A duplicate of the text that lives as long as the case. */
static const char *keep_text(const char *text)
{
    static char *texts[64];
    static size_t used;

    want(used < ARRAY_SIZE(texts));
    texts[used] = strdup(text);
    want(texts[used]);
    return texts[used++];
}

static struct exti_ctx_opts with_quirks(const char *dir, const char *rules)
{
    static const char *paths[16];
    static size_t used;
    struct exti_ctx_opts opts = {.size = sizeof opts};
    FILE *f;

    opts.dir = keep_text(in_tmp(dir));
    opts.api_library = keep_text(in_tmp("libquirkapi.so"));
    if (!rules)
        return opts;
    want(used < ARRAY_SIZE(paths));
    paths[used] = keep_text(iso_text("%s/%zu.json", iso_tmp, used));
    f = fopen(paths[used], "w");
    want(f && fprintf(f, "{\"extisolate_quirks\": 1, \"quirks\": [%s]}", rules) > 0 &&
         fclose(f) == 0);
    opts.quirk_files = &paths[used++];
    opts.quirk_file_count = 1;
    return opts;
}

static struct exti_ctx *open_with(const char *dir, const char *rules)
{
    struct exti_ctx_opts opts = with_quirks(dir, rules);

    return iso_open_opts(&opts);
}

static void want_no_findings(const char *dir)
{
    struct exti_error err = {0};
    size_t findings = 1;

    want_exti(exti_dir_verify(in_tmp(dir), iso_print_finding, NULL, &findings, &err), 0, &err);
    want_int((long)findings, 0);
}

static void want_no_leaks(struct exti_ctx *ctx)
{
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).leaks, 0);
}

/* ---- refusing ---- */

#define REFUSE(file)                                                                               \
    "{\"id\": \"no-go\", \"match\": {\"file\": \"" file "\"}, \"refuse\": \"it cannot\"}"

ISO_CASE(refused_files_have_no_copies)
{
    struct exti_error err = {0};
    struct exti_module *m;
    struct exti_ctx *ctx;

    build_toys("libquirkdep.so.1");
    ctx = open_with("x", REFUSE("ext.so"));
    want_exti(exti_copy(ctx, in_tmp("ext.so"), NULL, &err), EXTI_E_UNSUPPORTED, &err);
    want_text(err.message, "cannot be isolated: it cannot (quirk no-go)");
    want_text(err.file, "/ext.so");
    want_exti(exti_load(ctx, in_tmp("ext.so"), &m, &err), EXTI_E_UNSUPPORTED, &err);
    want_exti(exti_copy(ctx, in_tmp("libquirkdep.so.1"), NULL, &err), 0, &err);
    iso_close_ctx(ctx);
}

ISO_CASE(the_error_names_the_file_that_needs_a_refused_library)
{
    struct exti_ctx_opts opts;
    const struct exti_rule share = {"libquirkdep.so.1", 1};
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    build_toys("libquirkdep.so.1");
    ctx = open_with("x", REFUSE("libquirkdep*"));
    want_exti(exti_copy(ctx, in_tmp("ext.so"), NULL, &err), EXTI_E_UNSUPPORTED, &err);
    want_text(err.file, "/libquirkdep.so.1");
    want_text(err.message, "it cannot (quirk no-go)");
    want_text(err.message, "ext.so");
    iso_close_ctx(ctx);
    /* A shared library needs no copy, so the quirk does not matter. */
    opts = with_quirks("y", REFUSE("libquirkdep*"));
    opts.rules = &share;
    opts.rule_count = 1;
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, in_tmp("ext.so"), NULL, &err), 0, &err);
    iso_close_ctx(ctx);
}

ISO_CASE(an_api_library_may_be_refused)
{
    struct exti_ctx_opts opts;
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    build_toys("libquirkdep.so.1");
    opts = with_quirks("x", REFUSE("libquirkapi.so.1"));
    want_exti(exti_ctx_open(&ctx, &opts, &err), EXTI_E_UNSUPPORTED, &err);
    want(!file_exists(in_tmp("x")));
}

/* ---- sharing ---- */

#define LIBRARY(match, what) "{\"id\": \"lib\", \"match\": {" match "}, \"library\": \"" what "\"}"

/* The count in the second context after one step in each: 2 if they share the library, else 1. */
static int count_steps(struct exti_ctx *a, struct exti_ctx *b)
{
    want_int(call_int(iso_load(a, in_tmp("ext.so")), "ext_step"), 1);
    return call_int(iso_load(b, in_tmp("ext.so")), "ext_step");
}

ISO_CASE(a_library_is_shared_if_a_quirk_says_so)
{
    struct exti_ctx *a, *b;
    void *original;

    build_toys("libquirkdep.so.1");
    a = open_with("a", LIBRARY("\"exports\": \"dep_step\"", "share"));
    b = open_with("b", LIBRARY("\"exports\": \"dep_step\"", "share"));
    want_int(count_steps(a, b), 2);
    original = dlopen(in_tmp("libquirkdep.so.1"), RTLD_NOW | RTLD_NOLOAD);
    want(original);
    want_int(((int (*)(void))dlsym(original, "dep_step"))(), 3);
    want_no_leaks(a);
    want_no_leaks(b);
    iso_close_ctx(a);
    iso_close_ctx(b);
    want_no_findings("a");
}

/* The base set, which is shared, has a library of this name. */
ISO_CASE(a_library_is_isolated_if_a_quirk_says_so)
{
    struct exti_ctx *a, *b, *c;

    build_toys("libvdpau.so.1");
    a = open_with("a", LIBRARY("\"file\": \"libvdpau.so.*\"", "isolate"));
    b = open_with("b", LIBRARY("\"file\": \"libvdpau.so.*\"", "isolate"));
    c = open_with("c", NULL);
    want_int(count_steps(a, b), 1);
    want_int(call_int(iso_load(c, in_tmp("ext.so")), "ext_step"), 1);
    want(dlopen(in_tmp("libvdpau.so.1"), RTLD_NOW | RTLD_NOLOAD));
    want_no_leaks(a);
    iso_close_ctx(a);
    iso_close_ctx(b);
    iso_close_ctx(c);
    want_no_findings("a");
}

ISO_CASE(rules_of_the_context_go_before_quirks)
{
    const struct exti_rule isolate = {"libquirkdep.so.1", 0};
    struct exti_ctx_opts opts;
    struct exti_ctx *a, *b;

    build_toys("libquirkdep.so.1");
    opts = with_quirks("a", LIBRARY("\"exports\": \"dep_step\"", "share"));
    opts.rules = &isolate;
    opts.rule_count = 1;
    a = iso_open_opts(&opts);
    opts.dir = in_tmp("b");
    b = iso_open_opts(&opts);
    want_int(count_steps(a, b), 1);
    iso_close_ctx(a);
    iso_close_ctx(b);
}

/* ---- renaming ---- */

#define RENAME                                                                                     \
    "{\"id\": \"re\", \"match\": {\"file\": \"ext.so\"}, \"rename\": {\"ext_old\": "               \
    "\"ext_a_much_longer_name\", \"api_next\": \"api_ten\"}}"

static void want_renamed_symbols(uint32_t flags)
{
    struct exti_ctx_opts opts = with_quirks("x", RENAME);
    struct exti_error err = {0};
    struct exti_module *m;
    struct exti_ctx *ctx;
    void *p;

    opts.flags = flags;
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, in_tmp("ext.so"));
    want_int(call_int(m, "ext_a_much_longer_name"), 7);
    want_exti(exti_symbol(m, "ext_old", &p, &err), EXTI_E_NOSYM, &err);
    want_int(call_int(m, "ext_next"), 10);
    want_no_leaks(ctx);
    iso_close_ctx(ctx);
    want_no_findings("x");
}

ISO_CASE(symbols_are_renamed)
{
    build_toys("libquirkdep.so.1");
    want_renamed_symbols(0);
}

ISO_CASE(symbols_are_renamed_where_the_api_has_private_names)
{
    build_toys("libquirkdep.so.1");
    want_renamed_symbols(EXTI_CTX_RENAME);
}

ISO_CASE(a_rename_to_an_existing_symbol_is_refused)
{
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    build_toys("libquirkdep.so.1");
    ctx = open_with("x", "{\"id\": \"re\", \"match\": {\"file\": \"ext.so\"}, \"rename\": "
                         "{\"ext_old\": \"ext_next\"}}");
    want_exti(exti_copy(ctx, in_tmp("ext.so"), NULL, &err), EXTI_E_UNSUPPORTED, &err);
    want_text(err.message, "ext_next");
    iso_close_ctx(ctx);
}

/* ---- redirecting ---- */

#define REDIRECT(to)                                                                               \
    "{\"id\": \"re\", \"match\": {\"file\": \"ext.so\"}, \"redirect\": {\"rand\": \"" to "\"}}"

static int program_rand(void)
{
    return 55;
}

static void want_redirected_calls(uint32_t flags)
{
    const struct exti_redirect program = {"rand", (void *)program_rand};
    struct exti_ctx_opts opts = with_quirks(flags ? "x" : "y", REDIRECT("api_rand"));
    struct exti_ctx *ctx;

    opts.flags = flags;
    ctx = iso_open_opts(&opts);
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_rand"), 77);
    want_int(*(int *)iso_sym(iso_api(ctx), "rand_seen"), 1);
    want_no_leaks(ctx);
    iso_close_ctx(ctx);
    /* A redirect of the program goes before that of a quirk. */
    opts.redirects = &program;
    opts.redirect_count = 1;
    ctx = iso_open_opts(&opts);
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_rand"), 55);
    iso_close_ctx(ctx);
}

ISO_CASE(references_are_redirected)
{
    build_toys("libquirkdep.so.1");
    want_redirected_calls(0);
    want_redirected_calls(EXTI_CTX_RENAME);
}

ISO_CASE(references_can_be_redirected_to_the_file_itself_or_the_program)
{
    struct exti_ctx *ctx;

    build_toys("libquirkdep.so.1");
    ctx = open_with("x", REDIRECT("ext_old"));
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_rand"), 7);
    iso_close_ctx(ctx);
    ctx = open_with("y", REDIRECT("getppid"));
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_rand"), getppid());
    iso_close_ctx(ctx);
}

ISO_CASE(a_redirect_to_an_undefined_symbol_fails)
{
    struct exti_error err = {0};
    struct exti_module *m;
    struct exti_ctx *ctx;

    build_toys("libquirkdep.so.1");
    ctx = open_with("x", REDIRECT("no_such_function"));
    want_exti(exti_load(ctx, in_tmp("ext.so"), &m, &err), EXTI_E_NOSYM, &err);
    want_text(err.message, "redirects rand to no_such_function, which no library defines");
    want_text(err.file, "/ext.so");
    iso_close_ctx(ctx);
}

/* ---- directories and files ---- */

ISO_CASE(copies_are_made_again_when_quirks_change)
{
    struct exti_ctx *ctx;

    build_toys("libquirkdep.so.1");
    ctx = open_with("x", NULL);
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_old"), 7);
    iso_close_ctx(ctx);
    want_renamed_symbols(0);
    ctx = open_with("x", NULL);
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_old"), 7);
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_next"), 1);
    iso_close_ctx(ctx);
    want_no_findings("x");
}

ISO_CASE(quirks_without_effect_on_copies_do_not_remake_them)
{
    const char *path, *again;
    struct stat before, after;
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    build_toys("libquirkdep.so.1");
    ctx = open_with("x", NULL);
    want_exti(exti_copy(ctx, in_tmp("ext.so"), &path, &err), 0, &err);
    want(stat(path, &before) == 0);
    path = keep_text(path);
    iso_close_ctx(ctx);
    ctx = open_with("x", "{\"id\": \"n\", \"match\": {\"file\": \"ext.so\"}, \"note\": \"n\", "
                         "\"environment\": {\"QUIRK_TEST\": \"1\"}}");
    want_exti(exti_copy(ctx, in_tmp("ext.so"), &again, &err), 0, &err);
    want_text(again, path);
    want(stat(again, &after) == 0 && before.st_ino == after.st_ino);
    /* The library leaves the environment to the program. */
    want(!getenv("QUIRK_TEST"));
    iso_close_ctx(ctx);
}

ISO_CASE(a_faulty_quirk_file_leaves_no_directory)
{
    struct exti_ctx_opts opts;
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    build_toys("libquirkdep.so.1");
    opts = with_quirks("x", "{\"id\": \"a\"}");
    want_exti(exti_ctx_open(&ctx, &opts, &err), EXTI_E_FORMAT, &err);
    want_text(err.message, "quirks[0] (a): has no match");
    want_text(err.file, ".json");
    want(!file_exists(in_tmp("x")));
    opts.quirk_files = NULL;
    want_exti(exti_ctx_open(&ctx, &opts, &err), EXTI_E_ARG, &err);
}

static bool has_failed(long n)
{
    bool waiting = false;

    while (n-- >= 0 && !waiting) {
        void *p = exti__alloc(1);

        waiting = !p;
        exti__free(p);
    }
    exti__mem_fail_after(-1);
    return !waiting;
}

/* Opens, copies and loads, in a new or an existing directory. */
static int load_once(const struct exti_ctx_opts *opts, struct exti_error *err)
{
    struct exti_ctx *ctx = NULL;
    struct exti_module *m;
    int rc = exti_ctx_open(&ctx, opts, err);

    if (rc)
        return rc;
    rc = exti_load(ctx, in_tmp("ext.so"), &m, err);
    exti_ctx_close(ctx, rc ? NULL : err);
    return rc;
}

ISO_CASE(each_allocation_may_fail)
{
    struct exti_ctx_opts opts;
    bool failed = true;

    build_toys("libquirkdep.so.1");
    opts = with_quirks(
        "x", RENAME
        "," LIBRARY("\"exports\": \"dep_step\"",
                    "share") "," //
                             "{\"id\": \"d\", \"match\": {\"file\": \"ext.so\"}, \"redirect\": "
                             "{\"rand\": \"api_rand\"}}");
    for (long n = 0; failed; n++) {
        struct exti_error err = {0};
        int rc;

        exti_dir_clean(in_tmp("x"), NULL);
        exti__mem_fail_after(n);
        rc = load_once(&opts, &err);
        failed = has_failed(n);
        if (rc)
            want_exti(rc, EXTI_E_NOMEM, &err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_files_have_no_copies),
        cmocka_unit_test(the_error_names_the_file_that_needs_a_refused_library),
        cmocka_unit_test(an_api_library_may_be_refused),
        cmocka_unit_test(a_library_is_shared_if_a_quirk_says_so),
        cmocka_unit_test(a_library_is_isolated_if_a_quirk_says_so),
        cmocka_unit_test(rules_of_the_context_go_before_quirks),
        cmocka_unit_test(symbols_are_renamed),
        cmocka_unit_test(symbols_are_renamed_where_the_api_has_private_names),
        cmocka_unit_test(a_rename_to_an_existing_symbol_is_refused),
        cmocka_unit_test(references_are_redirected),
        cmocka_unit_test(references_can_be_redirected_to_the_file_itself_or_the_program),
        cmocka_unit_test(a_redirect_to_an_undefined_symbol_fails),
        cmocka_unit_test(copies_are_made_again_when_quirks_change),
        cmocka_unit_test(quirks_without_effect_on_copies_do_not_remake_them),
        cmocka_unit_test(a_faulty_quirk_file_leaves_no_directory),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("isolation/quirk_effects", tests, NULL, NULL);
}
