/* A program that defines and exports the same symbols as a library that a context needs, as one
 * does that has the library linked in statically. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>

#include "loader/track/context.h"
#include "tests/isolation/build.h"

/* ---- what this program exports (see the Makefile) ---- */

#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern int dep_count;
EXPORTED int dep_next(void);
EXPORTED void *_Znwm(unsigned long size);

int dep_count = 100;

int dep_next(void)
{
    return ++dep_count;
}

/* operator new */
void *_Znwm(unsigned long size)
{
    return malloc(size);
}

/* ---- the library, and a module that needs it ---- */

static const char dep[] = "int dep_count = 1, *dep_at_init;\n"
                          "int dep_next(void) { return ++dep_count; }\n"
                          "int *dep_seen(void) { return &dep_count; }\n"
                          "int *dep_first(void) { return dep_at_init; }\n"
                          "void *_Znwm(unsigned long size) { (void)size; return &dep_count; }\n"
                          "__attribute__((constructor)) static void init(void)\n"
                          "{ dep_at_init = &dep_count; }\n";

static const char user[] = "extern int dep_count, *dep_at_init;\n"
                           "int dep_next(void), *dep_seen(void), *dep_first(void);\n"
                           "void *_Znwm(unsigned long size);\n"
                           "int (*const table[])(void) = {dep_next};\n"
                           "int user_next(void) { return dep_next(); }\n"
                           "int user_next_by_table(void) { return table[0](); }\n"
                           "int *user_count(void) { return &dep_count; }\n"
                           "int *user_dep_count(void) { return dep_seen(); }\n"
                           "int *user_dep_first(void) { return dep_first(); }\n"
                           "void *user_new(void) { return (void *)_Znwm; }\n";

static void build_both(void)
{
    iso_build(dep, "libdep.so.1", "-Wl,-soname,libdep.so.1");
    iso_build(user, "user.so", iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("libdep.so.1"), iso_tmp));
}

static struct exti_ctx *open_and_use(const char *dir, int **count)
{
    struct exti_ctx *ctx = iso_open(dir);
    struct exti_module *m = iso_load(ctx, in_tmp("user.so"));

    *count = call_ptr(m, "user_count");
    want(*count != &dep_count);
    want(call_ptr(m, "user_dep_count") == *count);
    want(call_ptr(m, "user_dep_first") == *count); /* its initialisers saw the copy too */
    want_int(call_int(m, "user_next"), 2);
    want_int(call_int(m, "user_next_by_table"), 3);
    want_int(**count, 3);
    /* The allocator stays the one that the whole process uses. */
    want(call_ptr(m, "user_new") == (void *)_Znwm);
    iso_prove_clean(ctx, 3);
    return ctx;
}

ISO_CASE(a_needed_library_is_the_contexts_copy_and_not_the_programs)
{
    struct exti_ctx *x, *y;
    int *in_x, *in_y;

    want(dlsym(RTLD_DEFAULT, "dep_next") == (void *)dep_next);
    build_both();
    x = open_and_use("x", &in_x);
    y = open_and_use("y", &in_y);
    want(in_x != in_y);
    want_int(dep_count, 100);
    iso_close_ctx(x);
    iso_close_ctx(y);
    iso_dir_clean(in_tmp("x"));
}

ISO_CASE(control_dlopen_binds_to_the_program)
{
    void *m;

    build_both();
    m = dlopen(in_tmp("user.so"), RTLD_NOW);
    want(m);
    want(((void *(*)(void))dlsym(m, "user_count"))() == &dep_count);
    want(((void *(*)(void))dlsym(m, "user_dep_first"))() == &dep_count);
}

static bool is_symbolic(struct exti_ctx *ctx, const char *file)
{
    const struct exti_entry *e;

    pthread_mutex_lock(&ctx->store.lock);
    e = exti__manifest_find(&ctx->store.manifest, file);
    want(e);
    pthread_mutex_unlock(&ctx->store.lock);
    return e->symbolic;
}

static bool is_symbolic_for_any_process(void)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("any"), NULL);
    struct exti_ctx *ctx;
    const char *path;
    bool symbolic;

    opts.flags = EXTI_CTX_COPY_ONLY;
    ctx = iso_open_opts(&opts);
    want_int(exti_copy(ctx, in_tmp("user.so"), &path, NULL), 0);
    symbolic = is_symbolic(ctx, in_tmp("libdep.so.1"));
    iso_close_ctx(ctx);
    return symbolic;
}

/* Each copy is made once then. */
ISO_CASE(what_one_context_has_found_out_the_next_ones_know)
{
    struct exti_ctx *ctx[4];
    const char *path;
    int *count;

    build_both();
    ctx[0] = open_and_use("0", &count);
    want(is_symbolic(ctx[0], in_tmp("libdep.so.1")));
    for (int i = 1; i < 4; i++) {
        ctx[i] = iso_open(iso_text("%d", i));
        want_int(exti_copy(ctx[i], in_tmp("user.so"), &path, NULL), 0);
        want(is_symbolic(ctx[i], in_tmp("libdep.so.1")));
        want_int(call_int(iso_load(ctx[i], in_tmp("user.so")), "user_next"), 2);
        iso_prove_clean(ctx[i], 3);
        iso_dir_clean(exti_ctx_dir(ctx[i]));
    }
    want(!is_symbolic_for_any_process());
    /* A file that is there again has to be looked at again. */
    iso_build("int dep_other = 3;", "libdep.so.1", "-Wl,-soname,libdep.so.1");
    iso_build("extern int dep_other; int user_next(void) { return dep_other; }", "user.so",
              iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("libdep.so.1"), iso_tmp));
    for (int i = 4; i--;)
        iso_close_ctx(ctx[i]);
    ctx[0] = iso_open("4");
    want_int(call_int(iso_load(ctx[0], in_tmp("user.so")), "user_next"), 3);
    want(!is_symbolic(ctx[0], in_tmp("libdep.so.1")));
    iso_close_ctx(ctx[0]);
}

/* EXTI_CTX_COPY_ONLY makes the copies for any process, and does not look at its own. */
ISO_CASE(copies_made_for_any_process_are_made_again)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_error err = {0};
    struct exti_ctx *ctx;
    const char *path;
    int *count;

    build_both();
    opts.flags = EXTI_CTX_COPY_ONLY;
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, in_tmp("user.so"), &path, &err), 0, &err);
    iso_close_ctx(ctx);
    iso_close_ctx(open_and_use("x", &count));
    iso_dir_clean(in_tmp("x"));
    /* The new copies are used again. */
    iso_close_ctx(open_and_use("x", &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_needed_library_is_the_contexts_copy_and_not_the_programs),
        cmocka_unit_test(control_dlopen_binds_to_the_program),
        cmocka_unit_test(what_one_context_has_found_out_the_next_ones_know),
        cmocka_unit_test(copies_made_for_any_process_are_made_again),
    };

    return cmocka_run_group_tests_name("isolation/interposed", tests, NULL, NULL);
}
