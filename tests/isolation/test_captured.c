/* A program that exports symbols of libraries which contexts would share: copies get their own, and
 * what is left is counted. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>

#include "base/mem.h"
#include "tests/isolation/build.h"

/* ---- what this program exports (see the Makefile) ---- */

#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern int base_count;
EXPORTED extern __thread int base_tls;
EXPORTED int base_next(void);
EXPORTED int base_versioned(void);
EXPORTED void *_Znwm(unsigned long size);

int base_count = 100;
__thread int base_tls = 100;

int base_next(void)
{
    return ++base_count;
}

int base_versioned(void)
{
    return -1;
}

/* operator new */
void *_Znwm(unsigned long size)
{
    return malloc(size);
}

/* ---- libraries that ask to be shared, and a module that needs them ---- */

static const char base[] = "int base_count = 1;\n"
                           "__thread int base_tls = 1;\n"
                           "int base_next(void) { return ++base_count; }\n"
                           "int *base_seen(void) { return &base_count; }\n"
                           "static int old(void) { return 1; }\n"
                           "static int new(void) { return 2; }\n"
                           "extern __typeof(old) base_old __attribute__((alias(\"old\")));\n"
                           "extern __typeof(new) base_new __attribute__((alias(\"new\")));\n"
                           "__asm__(\".symver base_old, base_versioned@BASE_1\");\n"
                           "__asm__(\".symver base_new, base_versioned@@BASE_2\");\n";

/* Exports nothing that this program does, but uses what does. */
static const char top[] = "int base_next(void);\n"
                          "int top_next(void) { return base_next(); }\n";

static const char plain[] = "int plain_count;\n"
                            "int plain_next(void) { return ++plain_count; }\n"
                            "void *_Znwm(unsigned long size) { (void)size; return 0; }\n";

static const char user[] = "extern int base_count, plain_count;\n"
                           "extern __thread int base_tls;\n"
                           "int base_next(void), *base_seen(void), base_versioned(void);\n"
                           "int top_next(void), plain_next(void);\n"
                           "__asm__(\".symver base_versioned, base_versioned@BASE_1\");\n"
                           "void *_Znwm(unsigned long size);\n"
                           "int (*table[])(void) = {base_next};\n"
                           "int user_next(void) { return base_next(); }\n"
                           "int user_next_by_table(void) { return table[0](); }\n"
                           "int user_top_next(void) { return top_next(); }\n"
                           "int user_plain_next(void) { return plain_next(); }\n"
                           "int user_versioned(void) { return base_versioned(); }\n"
                           "int user_tls(void) { return base_tls; }\n"
                           "int *user_count(void) { return &base_count; }\n"
                           "int *user_base_count(void) { return base_seen(); }\n"
                           "int *user_plain_count(void) { return &plain_count; }\n"
                           "void *user_new(void) { return (void *)_Znwm; }\n";

static void build_library(const char *source, const char *name, const char *flags)
{
    iso_build(source, iso_text("lib%s.so.1", name),
              iso_text("-Wl,-soname,lib%s.so.1 -Wl,-z,nodelete -Wl,-rpath,'%s' %s", name, iso_tmp,
                       flags));
}

static void build_all(void)
{
    iso_write_text(in_tmp("base.map"),
                   "BASE_1 { };\nBASE_2 { global: base_*; local: *; } BASE_1;\n");
    build_library(base, "base", iso_text("-Wl,--version-script='%s'", in_tmp("base.map")));
    build_library(top, "top", iso_text("'%s'", in_tmp("libbase.so.1")));
    build_library(plain, "plain", "");
    iso_build(user, "user.so",
              iso_text("'%s' '%s' '%s' -Wl,-rpath,'%s'", in_tmp("libtop.so.1"),
                       in_tmp("libbase.so.1"), in_tmp("libplain.so.1"), iso_tmp));
}

static void want_own(struct exti_ctx *ctx, int **count)
{
    struct exti_module *m = iso_load(ctx, in_tmp("user.so"));
    struct exti_proof proof;

    *count = call_ptr(m, "user_count");
    want(*count != &base_count);
    want(call_ptr(m, "user_base_count") == *count);
    want_int(call_int(m, "user_next"), 2);
    want_int(call_int(m, "user_next_by_table"), 3);
    want_int(call_int(m, "user_top_next"), 4);
    want_int(call_int(m, "user_versioned"), 1);
    want_int(call_int(m, "user_tls"), 1);
    want_int(**count, 4);
    /* The allocator is the whole process's. */
    want(call_ptr(m, "user_new") == (void *)_Znwm);
    proof = iso_proof(ctx, iso_print_finding, NULL);
    want_int((long)proof.leaks, 0);
    want_int((long)proof.captured, 0);
    want_int(base_count, 100);
}

ISO_CASE(a_shared_library_of_which_the_program_has_its_own_is_isolated)
{
    struct exti_ctx *x, *y;
    int *in_x, *in_y, *before;

    build_all();
    x = iso_open("x");
    y = iso_open("y");
    want_own(x, &in_x);
    want_own(y, &in_y);
    want(in_x != in_y);
    /* The program has nothing of this one but operator new, which it replaces for all. */
    before = call_ptr(iso_load(x, in_tmp("user.so")), "user_plain_count");
    want(call_ptr(iso_load(y, in_tmp("user.so")), "user_plain_count") == before);
    iso_close_ctx(x);
    iso_close_ctx(y);
    iso_dir_clean(in_tmp("x"));
}

struct findings {
    int captured;
    char text[4096];
};

static int add_finding(void *to, const struct exti_error *finding)
{
    struct findings *f = to;
    size_t n = strlen(f->text);

    want_int(finding->code, EXTI_E_CAPTURED);
    f->captured++;
    snprintf(f->text + n, sizeof f->text - n, "[%s: %s]", finding->file, finding->message);
    return 0;
}

static void keep_warning(void *to, enum exti_log_level level, const char *line)
{
    if (level == EXTI_LOG_WARN)
        snprintf(to, 1024, "%s", line);
}

/* Shared by a rule, the libraries are the program's, as without contexts; that is counted, and
 * told. */
ISO_CASE(control_what_a_rule_shares_is_counted_as_captured)
{
    const struct exti_rule rules[] = {{"libbase.so.1", 1}, {"libtop.so.1", 1}};
    char warning[1024] = "";
    struct exti_hooks hooks = {.size = sizeof hooks, .log = keep_warning};
    struct findings f = {.captured = 0};
    struct exti_ctx_opts opts;
    struct exti_proof proof;
    struct exti_ctx *ctx;
    struct exti_module *m;

    build_all();
    opts = iso_opts(in_tmp("x"), NULL);
    opts.rules = rules;
    opts.rule_count = 2;
    opts.hooks = &hooks;
    opts.user = warning;
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, in_tmp("user.so"));
    want_text(warning, "user.so");
    want_text(warning, "base_");
    want(call_ptr(m, "user_count") == &base_count);
    want(call_ptr(m, "user_base_count") == &base_count);
    want_int(call_int(m, "user_next"), 101);
    proof = iso_proof(ctx, add_finding, &f);
    fprintf(stderr, "%s\n", f.text);
    want_int((long)proof.leaks, 0);
    want_int((long)proof.captured, f.captured);
    want(f.captured >= 4); /* base_count, base_next twice, base_versioned */
    want_text(f.text, "reference to base_next leads to the program's symbol");
    want_text(f.text, "not to that of libbase.so.1");
    want_text(f.text, "base_count");
    want_text(f.text, "base_versioned");
    want_text(f.text, exti_module_copy(m));
    want(!strstr(f.text, "_Znwm"));
    iso_close_ctx(ctx);
}

/* A program built before the member was there hears of leaks alone. */
ISO_CASE(captured_references_are_reported_to_who_can_count_them)
{
    const struct exti_rule rules[] = {{"libbase.so.1", 1}, {"libtop.so.1", 1}};
    struct exti_ctx_opts opts;
    struct exti_proof proof = {.size = offsetof(struct exti_proof, captured), .captured = 77};
    struct findings f = {.captured = 0};
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    build_all();
    opts = iso_opts(in_tmp("x"), NULL);
    opts.rules = rules;
    opts.rule_count = 2;
    ctx = iso_open_opts(&opts);
    iso_load(ctx, in_tmp("user.so"));
    want_exti(exti_ctx_prove(ctx, add_finding, &f, &proof, &err), 0, &err);
    want_int(f.captured, 0);
    want_int((long)proof.captured, 77);
    want_int((long)proof.leaks, 0);
    iso_close_ctx(ctx);
}

/* Another process has made the directory, for which the library is to be shared. */
ISO_CASE(copies_made_for_other_processes_are_made_again)
{
    struct exti_error err = {0};
    struct exti_ctx_opts opts;
    struct exti_ctx *ctx;
    const char *path;
    int *count;

    build_all();
    opts = iso_opts(in_tmp("x"), NULL);
    opts.flags = EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING;
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, in_tmp("user.so"), &path, &err), 0, &err);
    iso_close_ctx(ctx);
    for (int i = 0; i < 2; i++) { /* and used again */
        ctx = iso_open("x");
        want_own(ctx, &count);
        iso_close_ctx(ctx);
        iso_dir_clean(in_tmp("x"));
    }
}

/* ---- libraries that are open globally ---- */

static void *open_global(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    want(handle);
    return handle;
}

static const char dep[] = "int dep_count = 1;\n"
                          "int dep_next(void) { return ++dep_count; }\n";

static const char dep_user[] = "int dep_next(void);\n"
                               "extern int dep_count;\n"
                               "int user_dep_next(void) { return dep_next(); }\n"
                               "int *user_dep_count(void) { return &dep_count; }\n";

/* Builds the library with and without -z nodelete, what captures it, and a module. */
static void build_dep(const char *flags)
{
    iso_build(dep, "libdep.so.1", iso_text("-Wl,-soname,libdep.so.1 %s", flags));
    iso_build(dep, "other.so", "");
    iso_build(dep_user, "user.so",
              iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("libdep.so.1"), iso_tmp));
}

ISO_CASE(a_global_library_does_not_capture_what_a_copy_means)
{
    void *other, *count;
    struct exti_ctx *ctx;
    struct exti_module *m;

    build_dep("");
    other = open_global(in_tmp("other.so"));
    ctx = iso_open("x");
    m = iso_load(ctx, in_tmp("user.so"));
    count = call_ptr(m, "user_dep_count");
    want(count != dlsym(other, "dep_count"));
    want(count == iso_sym(iso_load(ctx, in_tmp("libdep.so.1")), "dep_count"));
    want_int(call_int(m, "user_dep_next"), 2);
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).captured, 0);
    iso_prove_clean(ctx, 3);
    iso_close_ctx(ctx);
}

ISO_CASE(control_dlopen_binds_to_the_global_library)
{
    void *other, *m;

    build_dep("");
    other = open_global(in_tmp("other.so"));
    m = dlopen(in_tmp("user.so"), RTLD_NOW);
    want(m);
    want(((void *(*)(void))dlsym(m, "user_dep_count"))() == dlsym(other, "dep_count"));
}

/* Only what the program itself exports isolates a library, since that never changes. */
ISO_CASE(what_a_global_library_captures_from_a_shared_one_is_counted)
{
    struct findings f = {.captured = 0};
    struct exti_proof proof;
    struct exti_ctx *ctx;
    struct exti_module *m;
    void *other;

    build_dep("-Wl,-z,nodelete");
    other = open_global(in_tmp("other.so"));
    ctx = iso_open("x");
    m = iso_load(ctx, in_tmp("user.so"));
    want(call_ptr(m, "user_dep_count") == dlsym(other, "dep_count"));
    proof = iso_proof(ctx, add_finding, &f);
    want_int((long)proof.leaks, 0);
    want_int((long)proof.captured, 2);
    want_text(f.text, in_tmp("other.so"));
    want_text(f.text, "libdep.so.1");
    iso_close_ctx(ctx);
}

/* The module needs the library that is open globally, after the other one that has the symbols. */
ISO_CASE(a_library_that_the_copy_needs_captures_nothing)
{
    struct exti_ctx *ctx;
    struct exti_module *m;
    void *other;

    iso_build(dep, "libdep.so.1", "-Wl,-soname,libdep.so.1 -Wl,-z,nodelete");
    iso_build(dep, "libother.so.1", "-Wl,-soname,libother.so.1 -Wl,-z,nodelete");
    iso_build("int mid;", "libmid.so.1",
              iso_text("-Wl,--no-as-needed '%s' -Wl,-soname,libmid.so.1 -Wl,-rpath,'%s'",
                       in_tmp("libother.so.1"), iso_tmp));
    iso_build(dep_user, "user.so",
              iso_text("-Wl,--no-as-needed '%s' '%s' -Wl,-rpath,'%s'", in_tmp("libdep.so.1"),
                       in_tmp("libmid.so.1"), iso_tmp));
    other = open_global(in_tmp("libother.so.1"));
    ctx = iso_open("x");
    m = iso_load(ctx, in_tmp("user.so"));
    want(call_ptr(m, "user_dep_count") == dlsym(other, "dep_count"));
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).captured, 0);
    iso_close_ctx(ctx);
}

/* ---- failing allocations ---- */

/* EXTI_STEP=3 lets every third allocation fail. */
static long step(void)
{
    const char *text = getenv("EXTI_STEP");

    return text ? atol(text) : 1;
}

/* Whether one of the next allocations is still to fail.  Ends the failing. */
static bool is_pending(void)
{
    bool pending = false;

    for (long i = 0; i < step() && !pending; i++) {
        void *p = exti__alloc(1);

        pending = !p;
        exti__free(p);
    }
    exti__mem_fail_after(-1);
    return pending;
}

/* Loads the module into a new context with the n-th allocation failing, for each n, and tries again;
 * `check` looks at what is loaded then. */
static void load_while_allocations_fail(void (*check)(struct exti_ctx *ctx, struct exti_module *m))
{
    bool all = false;
    long n;

    for (n = 0; !all; n += step()) {
        struct exti_ctx *ctx = iso_open(NULL);
        struct exti_error err = {0};
        struct exti_module *m = NULL;
        int rc;

        want(n < 100000);
        exti__mem_fail_after(n);
        rc = exti_load(ctx, in_tmp("user.so"), &m, &err);
        all = is_pending();
        if (rc)
            want_exti(rc, EXTI_E_NOMEM, &err);
        m = iso_load(ctx, in_tmp("user.so"));
        check(ctx, m);
        iso_close_ctx(ctx);
    }
    want(n > 50);
}

static void check_own(struct exti_ctx *ctx, struct exti_module *m)
{
    int *count;

    (void)m;
    want_own(ctx, &count);
}

static void check_dep(struct exti_ctx *ctx, struct exti_module *m)
{
    struct exti_module *own = iso_load(ctx, in_tmp("libdep.so.1"));

    want(call_ptr(m, "user_dep_count") == iso_sym(own, "dep_count"));
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).captured, 0);
}

ISO_CASE(isolating_survives_each_failing_allocation)
{
    build_all();
    load_while_allocations_fail(check_own);
}

ISO_CASE(leading_references_back_survives_each_failing_allocation)
{
    build_dep("");
    open_global(in_tmp("other.so"));
    load_while_allocations_fail(check_dep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(isolating_survives_each_failing_allocation),
        cmocka_unit_test(leading_references_back_survives_each_failing_allocation),
        cmocka_unit_test(a_shared_library_of_which_the_program_has_its_own_is_isolated),
        cmocka_unit_test(control_what_a_rule_shares_is_counted_as_captured),
        cmocka_unit_test(captured_references_are_reported_to_who_can_count_them),
        cmocka_unit_test(copies_made_for_other_processes_are_made_again),
        cmocka_unit_test(a_global_library_does_not_capture_what_a_copy_means),
        cmocka_unit_test(control_dlopen_binds_to_the_global_library),
        cmocka_unit_test(what_a_global_library_captures_from_a_shared_one_is_counted),
        cmocka_unit_test(a_library_that_the_copy_needs_captures_nothing),
    };

    return cmocka_run_group_tests_name("isolation/captured", tests, NULL, NULL);
}
