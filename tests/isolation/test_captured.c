/* A program that exports symbols of libraries which contexts would share: copies get their own, and
 * what is left is counted. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <link.h>

#include "tests/isolation/captured.h"

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

/* The SONAME of a library that this program names. */
static const char *named_by_program(void)
{
    const struct link_map *program = _r_debug.r_map;
    const char *strings = NULL;

    for (const ElfW(Dyn) *d = program->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr;
    for (const ElfW(Dyn) *d = program->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED && strstr(strings + d->d_un.d_val, "cmocka"))
            return strings + d->d_un.d_val;
    iso_want(0, "this program needs cmocka", __FILE__, __LINE__);
    return NULL;
}

/* What is open before a library of such a name that is opened later was not preloaded for that. */
ISO_CASE(a_shared_library_takes_nothing_from_a_copy_whatever_is_named_as_a_programs)
{
    struct exti_ctx *ctx = iso_open(NULL);
    const char *twin = named_by_program();
    struct exti_module *m;

    build_library("int next(void) { return 100; } int first(void) { return 1; }", "first", "");
    iso_build("int twin(void) { return 1; }", twin,
              iso_text("-Wl,-soname,%s -Wl,-z,nodelete", twin));
    iso_build("int next(void) { return 7; } int own_next(void) { return next(); }", "libown.so.1",
              "-Wl,-soname,libown.so.1");
    iso_build("int own_next(void); int user_next(void) { return own_next(); }", "user.so",
              iso_text("-Wl,--no-as-needed '%s' '%s' '%s' -Wl,-rpath,'%s'", in_tmp("libfirst.so.1"),
                       in_tmp(twin), in_tmp("libown.so.1"), iso_tmp));
    m = iso_load(ctx, in_tmp("user.so"));
    want_int(call_int(m, "user_next"), 7);
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).leaks, 0);
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

/* The module needs only what exports nothing of the program's, and what that needs is not asked
 * about by name. */
static void make_for_others(void)
{
    struct exti_error err = {0};
    struct exti_ctx_opts opts;
    struct exti_ctx *ctx;
    const char *path;

    build_all();
    iso_build("int top_next(void); int user_top_next(void) { return top_next(); }", "user.so",
              iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("libtop.so.1"), iso_tmp));
    opts = iso_opts(in_tmp("x"), NULL);
    opts.flags = EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING;
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, in_tmp("user.so"), &path, &err), 0, &err);
    iso_close_ctx(ctx);
}

ISO_CASE(copies_that_need_a_captured_library_through_another_are_made_again)
{
    struct exti_ctx *ctx;

    make_for_others();
    for (int i = 0; i < 2; i++) {
        ctx = iso_open("x");
        want_int(call_int(iso_load(ctx, in_tmp("user.so")), "user_top_next"), 2);
        want_int(base_count, 100);
        iso_close_ctx(ctx);
    }
}

/* One that is isolated by default stands between the library and its user, which asks to be
 * shared. */
ISO_CASE(what_needs_a_captured_library_through_an_isolated_one_is_isolated)
{
    struct exti_ctx *ctx;
    struct exti_module *m;

    build_all();
    iso_build(
        "int base_next(void); int mid_next(void) { return base_next(); }", "libmid.so.1",
        iso_text("-Wl,-soname,libmid.so.1 '%s' -Wl,-rpath,'%s'", in_tmp("libbase.so.1"), iso_tmp));
    build_library("int mid_next(void); int far_next(void) { return mid_next(); }", "far",
                  iso_text("'%s'", in_tmp("libmid.so.1")));
    iso_build("int far_next(void), base_next(void);\n"
              "int user_far_next(void) { return far_next(); }\n"
              "int user_next(void) { return base_next(); }\n",
              "user.so",
              iso_text("'%s' '%s' -Wl,-rpath,'%s'", in_tmp("libfar.so.1"), in_tmp("libbase.so.1"),
                       iso_tmp));
    ctx = iso_open("x");
    m = iso_load(ctx, in_tmp("user.so"));
    want_int(call_int(m, "user_next"), 2);
    want_int(call_int(m, "user_far_next"), 3);
    want_int(base_count, 100);
    iso_close_ctx(ctx);
    iso_dir_clean(in_tmp("x"));
}

/* ---- a directory that cannot be written to ---- */

static const char opener[] =
    "#include <dlfcn.h>\n"
    "int base_next(void);\n"
    "int user_next(void) { return base_next(); }\n"
    "int user_opens(void) { return dlopen(\"libbase.so.1\", RTLD_NOW) != 0; }\n";

static void use_read_only(void *arg)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct findings f = {.captured = 0};
    struct exti_ctx *ctx;
    struct exti_module *m;

    (void)arg;
    want(geteuid() != 0 || (setegid(65534) == 0 && seteuid(65534) == 0));
    opts.api_library = in_tmp("libtoy.so.1");
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, in_tmp("user.so"));
    want_int(call_int(m, "user_next"), 101);
    want_int(call_int(m, "user_opens"), 1);
    want_int((long)iso_proof(ctx, add_finding, &f).captured, 1);
    iso_close_ctx(ctx);
    _exit(0); /* a leak sanitizer may not look into a process that has changed its user */
}

/* The directory was made for another process, and has no copy of the library. */
ISO_CASE(a_captured_library_stays_shared_where_nothing_can_be_written)
{
    struct exti_error err = {0};
    struct exti_ctx_opts opts;
    struct exti_ctx *ctx;
    const char *path;

    build_all();
    /* The toys as built may lie in a folder that only their owner can enter. */
    copy_file(toy("libtoy.so.1"), in_tmp("libtoy.so.1"));
    iso_build(opener, "user.so", iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("libbase.so.1"), iso_tmp));
    opts = iso_opts(in_tmp("x"), NULL);
    opts.api_library = in_tmp("libtoy.so.1");
    opts.flags = EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING;
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, in_tmp("user.so"), &path, &err), 0, &err);
    iso_close_ctx(ctx);
    want(chmod(iso_tmp, 0755) == 0 && chmod(in_tmp("x"), 0555) == 0);
    want(iso_join(iso_spawn(use_read_only, NULL)));
    /* The lock alone can be written. */
    want(geteuid() != 0 || chown(in_tmp("x/.lock"), 65534, 65534) == 0);
    want(iso_join(iso_spawn(use_read_only, NULL)));
}

/* ---- a reference that cannot be led ---- */

static void build_initial_exec(void)
{
    iso_build("__thread int base_tls = 1; int tls_get(void) { return base_tls; }", "libtls.so.1",
              "-Wl,-soname,libtls.so.1");
    iso_build("extern __thread int base_tls __attribute__((tls_model(\"initial-exec\")));\n"
              "int tls_get(void);\n"
              "int user_set(void) { return base_tls = 33; }\n"
              "int user_get(void) { return tls_get(); }\n",
              "user.so", iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("libtls.so.1"), iso_tmp));
}

/* The context's copy has no fixed place in threads, so that its user would have the program's. */
ISO_CASE(a_captured_reference_that_cannot_be_led_to_the_contexts_own_fails)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m;
    struct exti_error err = {0};

    build_initial_exec();
    want_exti(exti_load(ctx, in_tmp("user.so"), &m, &err), EXTI_E_INTERPOSED, &err);
    want_text(err.message, "initial-exec reference to the thread-local variable base_tls");
    want_text(err.message, "the program");
    iso_close_ctx(ctx);
}

ISO_CASE(control_what_means_a_shared_one_is_only_counted)
{
    const struct exti_rule rules[] = {{"libtls.so.1", 1}};
    struct findings f = {.captured = 0};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_ctx *ctx;
    struct exti_module *m;

    build_initial_exec();
    opts.rules = rules;
    opts.rule_count = 1;
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, in_tmp("user.so"));
    want_int(call_int(m, "user_set"), 33);
    want_int(base_tls, 33);
    want_int((long)iso_proof(ctx, add_finding, &f).captured, 1);
    want_text(f.text, "base_tls");
    iso_close_ctx(ctx);
}

/* ---- failing allocations ---- */

static void check_own(struct exti_ctx *ctx, struct exti_module *m)
{
    int *count;

    (void)m;
    want_own(ctx, &count);
}

/* Opens a copy of the directory that others have made, with the n-th allocation failing.  Whether
 * fewer allocations were made. */
static bool use_while_allocation_fails(long n)
{
    const struct exti_ctx_opts opts = iso_opts(in_tmp("copy"), NULL);
    struct exti_module *m = NULL;
    struct exti_error err = {0};
    struct exti_ctx *ctx = NULL;
    bool all;
    int rc;

    want(system(iso_text("rm -rf '%s' && cp -a '%s' '%s'", opts.dir, in_tmp("x"), opts.dir)) == 0);
    exti__mem_fail_after(n);
    rc = exti_ctx_open(&ctx, &opts, &err);
    if (!rc)
        rc = exti_load(ctx, in_tmp("user.so"), &m, &err);
    all = is_pending(7 * step());
    if (rc)
        want_exti(rc, EXTI_E_NOMEM, &err);
    ctx = ctx ? ctx : iso_open_opts(&opts);
    m = m ? m : iso_load(ctx, in_tmp("user.so"));
    want_int(call_int(m, "user_top_next"), 2);
    iso_close_ctx(ctx);
    return all;
}

ISO_CASE(copies_are_made_again_whatever_allocation_fails)
{
    long n = 0;

    make_for_others();
    while (n < 100000 && !use_while_allocation_fails(n))
        n += 7 * step();
    want(n > 50 && n < 100000);
}

ISO_CASE(isolating_survives_each_failing_allocation)
{
    build_all();
    load_while_allocations_fail(check_own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_made_again_whatever_allocation_fails),
        cmocka_unit_test(isolating_survives_each_failing_allocation),
        cmocka_unit_test(a_shared_library_of_which_the_program_has_its_own_is_isolated),
        cmocka_unit_test(control_what_a_rule_shares_is_counted_as_captured),
        cmocka_unit_test(
            a_shared_library_takes_nothing_from_a_copy_whatever_is_named_as_a_programs),
        cmocka_unit_test(captured_references_are_reported_to_who_can_count_them),
        cmocka_unit_test(copies_made_for_other_processes_are_made_again),
        cmocka_unit_test(copies_that_need_a_captured_library_through_another_are_made_again),
        cmocka_unit_test(what_needs_a_captured_library_through_an_isolated_one_is_isolated),
        cmocka_unit_test(a_captured_library_stays_shared_where_nothing_can_be_written),
        cmocka_unit_test(a_captured_reference_that_cannot_be_led_to_the_contexts_own_fails),
        cmocka_unit_test(control_what_means_a_shared_one_is_only_counted),
    };

    return cmocka_run_group_tests_name("isolation/captured", tests, NULL, NULL);
}
