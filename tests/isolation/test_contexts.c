/* Contexts of the toy API in one process share nothing, and can be closed in any order. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>

#include "tests/isolation/pair.h"

ISO_CASE_EACH(two_contexts_share_nothing)
{
    toy_check_pair(0, 0);
}

ISO_CASE_EACH(two_contexts_with_private_names_share_nothing)
{
    toy_check_pair(EXTI_CTX_RENAME, 1);
}

/* The following controls show that the checks above can fail: they load libraries without a
 * rewrite. */
static void *open_plain(const char *path, int flags)
{
    void *handle = dlopen(path, RTLD_NOW | flags);

    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    want(handle);
    return handle;
}

static void *plain_ptr(void *handle, const char *function)
{
    void *p = dlsym(handle, function);

    want(p);
    return ((void *(*)(void))p)();
}

ISO_CASE_EACH(control_one_file_opened_twice_is_shared)
{
    void *x, *y;

    open_plain(toy("libtoy.so.1"), RTLD_GLOBAL);
    x = open_plain(toy("ext_a.so"), 0);
    y = open_plain(toy("ext_a.so"), 0);
    want(plain_ptr(x, "ext_static") == plain_ptr(y, "ext_static"));
}

ISO_CASE_EACH(control_plain_copies_share_the_api)
{
    void *x, *y;

    copy_file(toy("ext_a.so"), in_tmp("x.so"));
    copy_file(toy("ext_a.so"), in_tmp("y.so"));
    copy_file(toy("libtoy.so.1"), in_tmp("other.so"));
    open_plain(toy("libtoy.so.1"), RTLD_GLOBAL);
    open_plain(in_tmp("other.so"), RTLD_GLOBAL);
    x = open_plain(in_tmp("x.so"), 0);
    y = open_plain(in_tmp("y.so"), 0);
    want(plain_ptr(x, "ext_static") != plain_ptr(y, "ext_static"));
    want(plain_ptr(x, "ext_count") == plain_ptr(y, "ext_count"));
    want(plain_ptr(x, "ext_meta") == plain_ptr(y, "ext_meta"));
}

/* Only gcc makes unique symbols; clang does not. */
ISO_CASE(control_plain_copies_share_unique_symbols)
{
    static const char *const places[] = {"cxxext_inline", "cxxext_function_static",
                                         "cxxext_template"};
    void *x, *y;

    copy_file(toy("ext_cxx.so"), in_tmp("x.so"));
    copy_file(toy("ext_cxx.so"), in_tmp("y.so"));
    open_plain(toy("libtoy.so.1"), RTLD_GLOBAL);
    x = open_plain(in_tmp("x.so"), 0);
    y = open_plain(in_tmp("y.so"), 0);
    for (size_t i = 0; i < 3; i++)
        want(plain_ptr(x, places[i]) == plain_ptr(y, places[i]));
}

/* Builds a library, and two modules that need it and define what its header defines. */
static void build_with_header(void)
{
    static const char header[] = "inline int shared = 1;\n"
                                 "inline int *local() { static int value = 1; return &value; }\n";
    static const char *const files[] = {"lib", "a", "b"};

    for (size_t i = 0; i < 3; i++) {
        FILE *f = fopen(in_tmp("source.cc"), "w");

        want(f);
        fprintf(f, "%sextern \"C\" int *%s_shared() { return &shared; }\n", header, files[i]);
        fprintf(f, "extern \"C\" int *%s_local() { return local(); }\n", files[i]);
        want(fclose(f) == 0);
        want(system(iso_text("g++ -std=c++17 -O1 -fPIC -shared -o '%s/%s.so' '%s' "
                             "-Wl,-soname,%s.so -Wl,-rpath,'%s' -Wl,--no-as-needed %s",
                             iso_tmp, files[i], in_tmp("source.cc"), files[i], iso_tmp,
                             i ? in_tmp("lib.so") : "")) == 0);
    }
}

ISO_CASE(control_modules_share_unique_symbols)
{
    void *a, *b;

    build_with_header();
    a = open_plain(in_tmp("a.so"), 0);
    b = open_plain(in_tmp("b.so"), 0);
    want(plain_ptr(a, "a_shared") == plain_ptr(b, "b_shared"));
    want(plain_ptr(a, "a_local") == plain_ptr(b, "b_local"));
    want(plain_ptr(a, "lib_shared") == plain_ptr(a, "a_shared"));
}

/* A limit that README.md documents: only files that one load brings together share such symbols. */
ISO_CASE(unique_symbols_are_shared_by_files_that_are_loaded_together)
{
    struct exti_ctx *x = iso_open("x");
    struct exti_module *a, *b;

    build_with_header();
    a = iso_load(x, in_tmp("a.so"));
    b = iso_load(x, in_tmp("b.so"));
    want(call_ptr(a, "a_shared") == call_ptr(a, "lib_shared"));
    want(call_ptr(a, "a_local") == call_ptr(a, "lib_local"));
    want(call_ptr(b, "lib_shared") == call_ptr(a, "lib_shared"));
    want(call_ptr(b, "b_shared") != call_ptr(a, "a_shared"));
    want(call_ptr(b, "b_local") != call_ptr(a, "a_local"));
    iso_prove_clean(x, 4);
    iso_close_ctx(x);
}

ISO_CASE(control_an_extension_alone_does_not_load)
{
    want(!dlopen(toy("ext_a.so"), RTLD_NOW));
}

ISO_CASE_EACH(unique_symbols_are_not_shared)
{
    static const char *const places[] = {"cxxext_inline", "cxxext_function_static",
                                         "cxxext_template", "cxxext_thread_local",
                                         "cxxext_inline_tls"};
    struct exti_ctx *x = iso_open("x"), *y = iso_open("y");
    struct exti_module *mx = iso_load(x, toy("ext_cxx.so")), *my = iso_load(y, toy("ext_cxx.so"));

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int *px = call_ptr(mx, places[i]), *py = call_ptr(my, places[i]);

        want(px != py);
        *px += 100;
        want(*py < 100);
    }
    want_int(call_int(mx, "cxxext_throw_and_catch"), 1);
    want_int(call_int(my, "cxxext_throw_and_catch"), 1);
    want_int(call_int(mx, "cxxext_next"), 1);
    want_int(call_int(my, "cxxext_next"), 1);
    iso_prove_clean(x, 2);
    iso_prove_clean(y, 2);
    iso_dir_clean(exti_ctx_dir(x));
    iso_close_ctx(x);
    iso_close_ctx(y);
}

static void want_sixty_four_isolated(uint32_t flags)
{
    static struct toy_one all[64];

    for (int i = 0; i < 64; i++) {
        all[i] = toy_open_one(NULL, flags);
        toy_check_inside(&all[i]);
    }
    for (int i = 0; i < 64; i++) {
        want_int(*(int *)iso_sym(all[i].api, "toy_count"), 5);
        for (int n = 0; n < i; n++)
            call_int(all[i].a, "ext_next");
    }
    for (int i = 0; i < 64; i++) {
        want_int(*(int *)call_ptr(all[i].b, "ext_count"), 5 + i);
        for (int j = 0; j < i; j++)
            want(call_ptr(all[i].a, "ext_count") != call_ptr(all[j].a, "ext_count"));
    }
    iso_prove_clean(all[0].ctx, 3);
    iso_prove_clean(all[63].ctx, 3);
    for (int i = 63; i >= 0; i--)
        iso_close_ctx(all[i].ctx);
}

ISO_CASE(sixty_four_contexts_share_nothing)
{
    want_sixty_four_isolated(0);
}

ISO_CASE(sixty_four_contexts_with_private_names_share_nothing)
{
    want_sixty_four_isolated(EXTI_CTX_RENAME);
}

ISO_CASE_EACH(contexts_close_in_any_order)
{
    struct toy_one x = toy_open_one("x", 0), y = toy_open_one("y", 0), z = toy_open_one("z", 0);

    iso_close_ctx(y.ctx);
    want_int(call_int(x.a, "ext_next"), 3);
    want_int(call_int(z.a, "ext_next"), 3);
    iso_close_ctx(x.ctx);
    want_int(call_int(z.b, "ext_next"), 4);
    iso_prove_clean(z.ctx, 3);
    iso_close_ctx(z.ctx);
}

/* Whether the file is loaded.  Only glibc unmaps files on dlclose. */
static int is_loaded(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

    if (handle)
        dlclose(handle);
    return handle != NULL;
}

static void want_unloaded(const char *path)
{
#ifdef __GLIBC__
    want(!is_loaded(path));
#else
    (void)path;
#endif
}

ISO_CASE_EACH(a_reopened_context_starts_afresh)
{
    const char *files[] = {"ext_a.so", "ext_b.so", "ext_cxx.so", "ext_dl.so"};
    char copies[4][512];

    for (int round = 0; round < 3; round++) {
        struct exti_ctx *ctx = iso_open("x");
        struct exti_module *m = NULL;

        for (int i = 0; i < 4; i++) {
            m = iso_load(ctx, toy(files[i]));
            snprintf(copies[i], sizeof copies[i], "%s", exti_module_copy(m));
            want(is_loaded(copies[i]));
        }
        want_int(call_int(iso_load(ctx, toy("ext_a.so")), "ext_count_at_init"), 1);
        want_int(call_int(m, "dl_next"), 3);
        iso_close_ctx(ctx);
        for (int i = 0; i < 4; i++)
            want_unloaded(copies[i]);
    }
}

static void want_kept(struct toy_one x)
{
    char copy[512];
    int (*next)(void) = (int (*)(void))iso_sym(x.a, "ext_next");

    snprintf(copy, sizeof copy, "%s", exti_module_copy(x.a));
    iso_close_ctx(x.ctx);
    want(is_loaded(copy));
    want_int(next(), 3);
}

ISO_CASE(modules_of_a_kept_context_stay_mapped)
{
    struct toy_one x = toy_open_one("x", 0);

    exti_ctx_keep(NULL);
    exti_ctx_keep(x.ctx);
    want_kept(x);
    want_kept(toy_open_one("y", EXTI_CTX_KEEP));
}

ISO_CASE(closing_removes_a_private_directory)
{
    struct toy_one x = toy_open_one(NULL, 0);
    char dir[512];

    snprintf(dir, sizeof dir, "%s", exti_ctx_dir(x.ctx));
    want(dir[0] == '/' && file_exists(dir));
    iso_close_ctx(x.ctx);
    want(!file_exists(dir));
}

ISO_CASE_EACH(loading_a_file_again_returns_the_same_module)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, toy("ext_a.so")), *same;
    struct exti_error err = {0};
    char copy[512];

    snprintf(copy, sizeof copy, "%s", exti_module_copy(m));
    want(iso_load(ctx, toy("ext_a.so")) == m);
    want(symlink(toy("ext_a.so"), in_tmp("link.so")) == 0);
    same = iso_load(ctx, in_tmp("link.so"));
    want(same == m);
    want_exti(exti_close(m, &err), 0, &err);
    want_exti(exti_close(m, &err), 0, &err);
    want_int(call_int(m, "ext_next"), 2);
    want(is_loaded(copy));
    want_exti(exti_close(m, &err), 0, &err);
    want_unloaded(copy);
    m = iso_load(ctx, toy("ext_a.so"));
    want_int(call_int(m, "ext_count_at_init"), 3);
    iso_close_ctx(ctx);
    want_unloaded(copy);
}

ISO_CASE(loading_a_copy_loads_its_source)
{
    struct exti_ctx *ctx = iso_open("x"), *other = iso_open("y");
    struct exti_module *m = iso_load(ctx, toy("ext_a.so")), *again = NULL;
    struct exti_error err = {0};
    char copy[512];

    snprintf(copy, sizeof copy, "%s", exti_module_copy(m));
    want(iso_load(ctx, copy) == m);
    want_int(strcmp(exti_module_original(m), toy("ext_a.so")), 0);
    /* A copy of another context is traced to the same source, or refused while that context's
     * manifest does not name it yet.  It is never copied again. */
    if (exti_load(other, copy, &again, &err))
        want_int(err.code, EXTI_E_BUSY);
    else
        want_int(strcmp(exti_module_original(again), toy("ext_a.so")), 0);
    iso_close_ctx(ctx);
    again = iso_load(other, copy);
    want_int(strcmp(exti_module_original(again), toy("ext_a.so")), 0);
    want(call_ptr(again, "ext_count") == iso_sym(iso_api(other), "toy_count"));
    iso_close_ctx(other);
    iso_dir_clean(in_tmp("y"));
}

/* A thread has a value of its own in each context.  The toy's TLS blocks are dynamic: there is
 * little room for static ones. */
ISO_CASE_EACH(thread_locals_are_per_context)
{
    struct toy_one x = toy_open_one("x", 0), y = toy_open_one("y", 0);
    int *px = call_ptr(x.a, "ext_tls"), *py = call_ptr(y.a, "ext_tls");

    want_int(*px, 3);
    *px = 9;
    want_int(*py, 3);
    want_int(*(int *)call_ptr(x.api, "toy_tls_seen"), 7);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_contexts_share_nothing),
        cmocka_unit_test(two_contexts_with_private_names_share_nothing),
        cmocka_unit_test(control_one_file_opened_twice_is_shared),
        cmocka_unit_test(control_plain_copies_share_the_api),
        cmocka_unit_test(control_plain_copies_share_unique_symbols),
        cmocka_unit_test(control_modules_share_unique_symbols),
        cmocka_unit_test(unique_symbols_are_shared_by_files_that_are_loaded_together),
        cmocka_unit_test(control_an_extension_alone_does_not_load),
        cmocka_unit_test(unique_symbols_are_not_shared),
        cmocka_unit_test(sixty_four_contexts_share_nothing),
        cmocka_unit_test(sixty_four_contexts_with_private_names_share_nothing),
        cmocka_unit_test(contexts_close_in_any_order),
        cmocka_unit_test(a_reopened_context_starts_afresh),
        cmocka_unit_test(modules_of_a_kept_context_stay_mapped),
        cmocka_unit_test(closing_removes_a_private_directory),
        cmocka_unit_test(loading_a_file_again_returns_the_same_module),
        cmocka_unit_test(loading_a_copy_loads_its_source),
        cmocka_unit_test(thread_locals_are_per_context),
    };

    return cmocka_run_group_tests_name("isolation/contexts", tests, NULL, NULL);
}
