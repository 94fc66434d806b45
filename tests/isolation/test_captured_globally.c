/* Libraries that are open globally, and so come before what copies mean. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include "tests/isolation/captured.h"

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

/* ---- what a library means ---- */

static const char weak_dep[] = "__attribute__((weak)) int weak_count = START;\n"
                               "#ifndef ALONE\n"
                               "int dep_weak_count(void) { return weak_count; }\n"
                               "#endif\n";

/* The library and its user have one variable: what it holds in the global library then. */
static int weak_count_of(const char *flags)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m;
    void *other;

    iso_build(weak_dep, "libdep.so.1", "-Wl,-soname,libdep.so.1 -DSTART=1");
    iso_build(weak_dep, "other.so", iso_text("-DSTART=50 %s", flags));
    iso_build("extern int weak_count;\n"
              "int dep_weak_count(void);\n"
              "int user_set(void) { return weak_count = 7; }\n"
              "int user_get(void) { return dep_weak_count(); }\n",
              "user.so", iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("libdep.so.1"), iso_tmp));
    other = open_global(in_tmp("other.so"));
    m = iso_load(ctx, in_tmp("user.so"));
    want_int(call_int(m, "user_set"), 7);
    want_int(call_int(m, "user_get"), 7);
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).captured, 0);
    iso_close_ctx(ctx);
    return *(int *)dlsym(other, "weak_count");
}

/* The library leaves the variable to the global one, so its user must, too. */
ISO_CASE(a_weak_variable_is_the_same_for_the_library_and_its_user)
{
    want_int(weak_count_of("-DALONE"), 7);
}

/* Its function is captured, too, so its copy binds to its own symbols first (DF_SYMBOLIC). */
ISO_CASE(a_weak_variable_of_a_library_that_keeps_its_own_is_led_back)
{
    want_int(weak_count_of(""), 50);
}

static const char versions[] = "static int old(void) { return 1; }\n"
                               "static int new(void) { return 2; }\n"
                               "extern __typeof(old) dep_old __attribute__((alias(\"old\")));\n"
                               "extern __typeof(new) dep_new __attribute__((alias(\"new\")));\n"
                               "__asm__(\".symver dep_old, dep_version@DEP_1\");\n"
                               "__asm__(\".symver dep_new, dep_version@@DEP_2\");\n"
                               "int older(void);\n"
                               "__asm__(\".symver older, dep_version@DEP_1\");\n"
                               "int dep_call_older(void) { return older(); }\n";

/* The module's reference has no version, the library's own has that of the older symbol. */
static void build_versions(void)
{
    iso_build("int dep_version(void) { return 50; }", "other.so", "");
    iso_build("int dep_version(void) { return 0; }", "libdep.so.1", "-Wl,-soname,libdep.so.1");
    iso_build("int dep_version(void);\n"
              "int user_version(void) { return dep_version(); }\n",
              "user.so", iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("libdep.so.1"), iso_tmp));
    iso_write_text(in_tmp("dep.map"), "DEP_1 { };\nDEP_2 { global: dep_*; local: *; } DEP_1;\n");
    iso_build(versions, "libdep.so.1",
              iso_text("-Wl,-soname,libdep.so.1 -Wl,--version-script='%s'", in_tmp("dep.map")));
}

ISO_CASE(a_captured_reference_is_led_to_the_version_that_it_means)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m, *own;

    build_versions();
    open_global(in_tmp("other.so"));
    m = iso_load(ctx, in_tmp("user.so"));
    own = iso_load(ctx, in_tmp("libdep.so.1"));
    want_int(call_int(m, "user_version"), 1);
    want_int(call_int(own, "dep_call_older"), 1);
    want_int(call_int(own, "dep_version"), 2);
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).captured, 0);
    iso_close_ctx(ctx);
}

static void want_version(int expected)
{
    void *m, *own;

    m = dlopen(in_tmp("user.so"), RTLD_NOW);
    want(m);
    own = dlopen(in_tmp("libdep.so.1"), RTLD_NOW);
    want(own);
    want_int(((int (*)(void))dlsym(m, "user_version"))(), expected);
    want_int(((int (*)(void))dlsym(own, "dep_call_older"))(), expected);
}

ISO_CASE(control_dlopen_binds_a_reference_without_version_to_the_oldest)
{
    build_versions();
    want_version(1);
}

ISO_CASE(control_a_global_library_captures_references_of_any_version)
{
    build_versions();
    open_global(in_tmp("other.so"));
    want_version(50);
}

/* Copies name a shared library by its path, so another of that SONAME is not what they need. */
ISO_CASE(a_namesake_that_is_open_globally_captures)
{
    struct findings f = {.captured = 0};
    struct exti_ctx *ctx;
    struct exti_module *m;
    void *other;

    build_dep("-Wl,-z,nodelete");
    want(mkdir(in_tmp("other"), 0777) == 0);
    iso_build(dep, "other/libdep.so.1", "-Wl,-soname,libdep.so.1");
    ctx = iso_open("x");
    other = open_global(in_tmp("other/libdep.so.1"));
    m = iso_load(ctx, in_tmp("user.so"));
    want(call_ptr(m, "user_dep_count") == dlsym(other, "dep_count"));
    want_int((long)iso_proof(ctx, add_finding, &f).captured, 2);
    want_int(f.captured, 2);
    want_text(f.text, in_tmp("other/libdep.so.1"));
    iso_close_ctx(ctx);
}

/* ---- failing allocations ---- */

static void check_dep(struct exti_ctx *ctx, struct exti_module *m)
{
    struct exti_module *own = iso_load(ctx, in_tmp("libdep.so.1"));

    want(call_ptr(m, "user_dep_count") == iso_sym(own, "dep_count"));
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).captured, 0);
}

/* A library with static TLS would be shared. */
static struct exti_ctx *open_isolating(const char *library)
{
    const struct exti_rule rule = {library, 0};
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);

    opts.rules = &rule;
    opts.rule_count = 1;
    return iso_open_opts(&opts);
}

/* A context has loaded the file `loads`, which is or needs late.so, before the library is opened
 * that would capture its symbols. */
static void capture_later_than(const char *loads, const char *source, const char *flags)
{
    struct exti_ctx *early, *late;
    void *other;

    iso_build(source, "late.so", iso_text("-Wl,-soname,late.so %s", flags));
    iso_build(source, "other.so", flags);
    iso_build("int state_next(void); int next(void) { return state_next(); }", "user.so",
              iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("late.so"), iso_tmp));
    early = open_isolating("late.so");
    want_int(call_int(iso_load(early, in_tmp(loads)), "state_next"), 2);
    other = open_global(in_tmp("other.so"));
    want_int(((int (*)(void))dlsym(other, "state_next"))(), 2);
    late = open_isolating("late.so");
    want_int(call_int(iso_load(late, in_tmp(loads)), "state_next"), 2);
    want_int((long)iso_proof(late, iso_print_finding, NULL).leaks, 0);
    iso_close_ctx(late);
    iso_close_ctx(early);
}

static void capture_later(const char *source, const char *flags)
{
    capture_later_than("late.so", source, flags);
}

ISO_CASE(a_library_that_is_opened_later_captures_no_variable)
{
    capture_later("int state = 1; int *state_of(void) { return &state; }\n"
                  "int state_next(void) { return ++*state_of(); }\n",
                  "");
}

ISO_CASE(a_library_that_is_opened_later_captures_no_weak_variable)
{
    capture_later("__attribute__((weak)) int state = 1;\n"
                  "int state_next(void) { return ++state; }\n",
                  "");
}

/* References to it cannot be re-pointed. */
static const char fixed_offset[] = "__thread int state = 1;\n"
                                   "int state_next(void) { return ++state; }\n";

ISO_CASE(a_library_that_is_opened_later_captures_no_variable_at_a_fixed_offset)
{
    capture_later(fixed_offset, "-ftls-model=initial-exec");
}

ISO_CASE(nor_one_of_a_library_that_a_module_needs)
{
    capture_later_than("user.so", fixed_offset, "-ftls-model=initial-exec");
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
        cmocka_unit_test(a_global_library_does_not_capture_what_a_copy_means),
        cmocka_unit_test(control_dlopen_binds_to_the_global_library),
        cmocka_unit_test(what_a_global_library_captures_from_a_shared_one_is_counted),
        cmocka_unit_test(a_library_that_the_copy_needs_captures_nothing),
        cmocka_unit_test(a_weak_variable_is_the_same_for_the_library_and_its_user),
        cmocka_unit_test(a_weak_variable_of_a_library_that_keeps_its_own_is_led_back),
        cmocka_unit_test(a_captured_reference_is_led_to_the_version_that_it_means),
        cmocka_unit_test(control_dlopen_binds_a_reference_without_version_to_the_oldest),
        cmocka_unit_test(control_a_global_library_captures_references_of_any_version),
        cmocka_unit_test(a_namesake_that_is_open_globally_captures),
        cmocka_unit_test(a_library_that_is_opened_later_captures_no_variable),
        cmocka_unit_test(a_library_that_is_opened_later_captures_no_weak_variable),
        cmocka_unit_test(a_library_that_is_opened_later_captures_no_variable_at_a_fixed_offset),
        cmocka_unit_test(nor_one_of_a_library_that_a_module_needs),
        cmocka_unit_test(leading_references_back_survives_each_failing_allocation),
    };

    return cmocka_run_group_tests_name("isolation/captured_globally", tests, NULL, NULL);
}
