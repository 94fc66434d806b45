/* An extension that calls dlopen and dlsym itself gets its context's libraries. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>

#include "tests/isolation/pair.h"

struct dl {
    struct exti_ctx *ctx;
    struct exti_module *api, *m;
    void *(*open)(const char *, int);
    void *(*sym)(void *, const char *);
    void *(*sym_default)(const char *);
    int (*close)(void *);
    const char *(*error)(void);
};

static struct dl open_dl(const char *dir, uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp(dir), NULL);
    struct dl d;

    opts.flags = flags;
    d.ctx = iso_open_opts(&opts);
    d.m = iso_load(d.ctx, toy("ext_dl.so"));
    d.api = iso_api(d.ctx);
    d.open = (void *(*)(const char *, int))iso_sym(d.m, "dl_open");
    d.sym = (void *(*)(void *, const char *))iso_sym(d.m, "dl_sym");
    d.sym_default = (void *(*)(const char *))iso_sym(d.m, "dl_sym_default");
    d.close = (int (*)(void *))iso_sym(d.m, "dl_close");
    d.error = (const char *(*)(void))iso_sym(d.m, "dl_error");
    return d;
}

static void *must_open(const struct dl *d, const char *path, int flags)
{
    void *handle = d->open(path, flags);

    if (!handle)
        fprintf(stderr, "%s\n", d->error());
    want(handle);
    return handle;
}

static void *must_sym(const struct dl *d, void *handle, const char *name)
{
    void *p = d->sym(handle, name);

    if (!p)
        fprintf(stderr, "%s\n", d->error());
    want(p);
    return p;
}

static void want_null_handle_in_context(const struct dl *d)
{
    void *self = must_open(d, NULL, RTLD_NOW);

    want(must_sym(d, self, "toy_next") == iso_sym(d->api, "toy_next"));
    want(must_sym(d, self, "toy_count") == iso_sym(d->api, "toy_count"));
    want(must_sym(d, self, "malloc") == dlsym(RTLD_DEFAULT, "malloc"));
    want_int(d->close(self), 0);
    want(d->sym_default("toy_next") == iso_sym(d->api, "toy_next"));
    want(d->sym_default("malloc") == dlsym(RTLD_DEFAULT, "malloc"));
    want(!d->sym_default("no_such_symbol_anywhere"));
    want_text(d->error(), "no_such_symbol_anywhere");
}

ISO_CASE_EACH(the_null_handle_is_that_of_the_context)
{
    struct dl x = open_dl("x", 0), y = open_dl("y", 0);

    want_null_handle_in_context(&x);
    want_null_handle_in_context(&y);
    want(x.sym_default("toy_next") != y.sym_default("toy_next"));
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

ISO_CASE_EACH(the_null_handle_finds_private_symbols_by_their_original_names)
{
    struct dl x = open_dl("x", EXTI_CTX_RENAME), y = open_dl("y", EXTI_CTX_RENAME);

    want_null_handle_in_context(&x);
    want_null_handle_in_context(&y);
    iso_close_ctx(y.ctx);
    iso_close_ctx(x.ctx);
}

static void want_extension_opened(const struct dl *d)
{
    void *handle = must_open(d, toy("ext_a.so"), RTLD_NOW | RTLD_GLOBAL);
    const char *error = d->error();
    int *(*count)(void) = (int *(*)(void))must_sym(d, handle, "ext_count");
    struct exti_module *m;

    want(!error);
    want(count() == iso_sym(d->api, "toy_count"));
    want(!dlsym(RTLD_DEFAULT, "ext_count"));
    m = iso_load(d->ctx, toy("ext_a.so"));
    want(iso_sym(m, "ext_count") == (void *)count);
    want_int(d->close(handle), 0);
    want(call_ptr(m, "ext_count") == iso_sym(d->api, "toy_count"));
    want_text(exti_module_copy(m), exti_ctx_dir(d->ctx));
}

ISO_CASE_EACH(an_extension_opened_by_path_joins_the_context)
{
    struct dl x = open_dl("x", 0), y = open_dl("y", EXTI_CTX_RENAME);

    want_extension_opened(&x);
    want_extension_opened(&y);
    iso_prove_clean(x.ctx, 3);
    iso_prove_clean(y.ctx, 3);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

ISO_CASE_EACH(the_api_opened_by_path_is_the_contexts)
{
    struct dl d = open_dl("x", 0);
    void *handle = must_open(&d, toy("libtoy.so.1"), RTLD_NOW | RTLD_GLOBAL);

    want(must_sym(&d, handle, "toy_next") == iso_sym(d.api, "toy_next"));
    want(!dlsym(RTLD_DEFAULT, "toy_next"));
    want_int(d.close(handle), 0);
    want_int(call_int(d.m, "dl_next"), 1);
    iso_close_ctx(d.ctx);
}

ISO_CASE_EACH(system_libraries_still_open_by_name)
{
    struct dl d = open_dl("x", 0);
    void *handle = must_open(&d, "libm.so.6", RTLD_NOW);
    void *host = dlopen("libm.so.6", RTLD_NOW);

    want(host);
    want(must_sym(&d, handle, "cos") == dlsym(host, "cos"));
    want(!d.sym(handle, "toy_next"));
    want_text(d.error(), "toy_next");
    want_int(d.close(handle), 0);
    dlclose(host);
    iso_close_ctx(d.ctx);
}

ISO_CASE_EACH(dlerror_reports_an_error_once)
{
    struct dl d = open_dl("x", 0);
    void *self;

    want(!d.error());
    want(!d.open("/nowhere/at/all.so", RTLD_NOW));
    want_text(d.error(), "/nowhere/at/all.so");
    want(!d.error());
    want(!d.open(toy("ext_missing.so"), RTLD_NOW));
    want_text(d.error(), "toy_defined_nowhere");
    want(!d.error());
    self = must_open(&d, NULL, RTLD_NOW);
    want(!d.sym(self, "not_there"));
    want_text(d.error(), "not_there");
    want(!d.error());
    want_int(d.close(self), 0);
    iso_close_ctx(d.ctx);
}

/* Calls are patched, and so are the addresses of the loader's functions in initialised data. */
ISO_CASE_EACH(function_tables_are_patched)
{
    struct dl d = open_dl("x", 0);
    void *(*by_table)(const char *, int);
    void *(*sym_by_table)(void *, const char *);
    void *handle;

    by_table = (void *(*)(const char *, int))iso_sym(d.m, "dl_open_by_table");
    sym_by_table = (void *(*)(void *, const char *))iso_sym(d.m, "dl_sym_by_table");
    handle = by_table(toy("ext_b.so"), RTLD_NOW);
    want(handle);
    want(((int *(*)(void))sym_by_table(handle, "ext_count"))() == iso_sym(d.api, "toy_count"));
    handle = by_table(NULL, RTLD_NOW);
    want(handle);
    want(sym_by_table(handle, "toy_next") == iso_sym(d.api, "toy_next"));
    iso_close_ctx(d.ctx);
}

/* A module may hand its table on.  Callers in no context get the loader's own behaviour. */
ISO_CASE_EACH(function_tables_give_the_program_the_loaders_behaviour)
{
    struct dl d = open_dl("x", 0);
    void *(*open)(const char *, int) =
        *(void *(**)(const char *, int))iso_sym(d.m, "dl_table_open");
    void *(*sym)(void *, const char *) =
        *(void *(**)(void *, const char *))iso_sym(d.m, "dl_table_sym");
    int (*close)(void *) = *(int (**)(void *))iso_sym(d.m, "dl_table_close");
    void *host = dlopen(NULL, RTLD_NOW), *handle = open(NULL, RTLD_NOW);

    want(open != dlopen);
    want(handle && handle == host);
    want(!sym(handle, "toy_next"));
    want(sym(handle, "malloc") == dlsym(host, "malloc"));
    want_int(close(handle), 0);
    dlclose(host);
    iso_close_ctx(d.ctx);
}

static int refuse_b(void *user, struct exti_ctx *ctx, const char *original, const char *copy)
{
    (void)user;
    (void)ctx;
    (void)copy;
    return strstr(original, "ext_b.so") ? -1 : 0;
}

ISO_CASE_EACH(dlerror_reports_a_hooks_refusal_once)
{
    struct exti_hooks hooks = {.size = sizeof hooks, .before_load = refuse_b};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_ctx *ctx;
    struct exti_module *m;
    const char *(*error)(void);
    void *(*open)(const char *, int);

    opts.hooks = &hooks;
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, toy("ext_dl.so"));
    open = (void *(*)(const char *, int))iso_sym(m, "dl_open");
    error = (const char *(*)(void))iso_sym(m, "dl_error");
    want(!open(toy("ext_b.so"), RTLD_NOW));
    want_text(error(), "ext_b.so: the before_load hook refused it");
    want(!error());
    want(!open(toy("ext_b.so"), RTLD_NOW));
    want(open(toy("ext_a.so"), RTLD_NOW)); /* clears the error */
    want(!error());
    iso_close_ctx(ctx);
}

/* A bare name is searched along the caller's own DT_RUNPATH or DT_RPATH. */
ISO_CASE(bare_names_are_found_along_runpath_and_rpath)
{
    static const char *const kinds[] = {"enable", "disable"};

    for (size_t i = 0; i < 2; i++) {
        struct exti_ctx *ctx = iso_open(kinds[i]);
        struct exti_module *m;
        void *handle;

        want(mkdir(in_tmp(iso_text("lib-%s", kinds[i])), 0777) == 0);
        want(system(iso_text("echo 'int only_here = 7;' | gcc -shared -fPIC -xc - -o "
                             "'%s/lib-%s/libonly-%s.so'",
                             iso_tmp, kinds[i], kinds[i])) == 0);
        want(system(iso_text("gcc -O1 -fPIC -shared -Wl,--%s-new-dtags,-rpath,'%s/lib-%s' "
                             "testdata/src/toy/toy_dl.c -o '%s'",
                             kinds[i], iso_tmp, kinds[i], in_tmp("dl.so"))) == 0);
        copy_file(in_tmp("dl.so"), in_tmp(kinds[i][0] == 'e' ? "e.so" : "d.so"));
        m = iso_load(ctx, in_tmp(kinds[i][0] == 'e' ? "e.so" : "d.so"));
        handle = ((void *(*)(const char *, int))iso_sym(m, "dl_open"))(
            iso_text("libonly-%s.so", kinds[i]), RTLD_NOW);
        want(handle);
        want_int(*(int *)dlsym(handle, "only_here"), 7);
        iso_close_ctx(ctx);
    }
}

/* A handle that the extension left open ends with the context. */
ISO_CASE_EACH(handles_left_open_do_not_keep_the_context_mapped)
{
    for (int round = 0; round < 3; round++) {
        struct dl d = open_dl("x", 0);
        void *handle = must_open(&d, toy("ext_a.so"), RTLD_NOW);
        int (*first)(void) = (int (*)(void))must_sym(&d, handle, "ext_count_at_init");

        must_open(&d, toy("ext_a.so"), RTLD_LAZY);
        want_int(first(), 1);
        iso_close_ctx(d.ctx);
    }
}

/* Has the extension's destructor close a handle, as that of a plug-in manager does. */
static int close_at_end(const struct dl *d, int *result)
{
    void *handle = must_open(d, toy("ext_a.so"), RTLD_NOW);

    *result = 99;
    ((void (*)(void *, int *))iso_sym(d->m, "dl_close_at_end"))(handle, result);
    return call_int(iso_load(d->ctx, toy("ext_a.so")), "ext_count_at_init");
}

ISO_CASE_EACH(destructors_may_close_what_they_opened)
{
    struct dl x = open_dl("x", 0), y = open_dl("y", 0);
    int result = 0;
    struct exti_module *a;

    close_at_end(&x, &result);
    a = iso_load(x.ctx, toy("ext_a.so"));
    want(exti_close(x.m, NULL) == 0);
    want_int(result, 0);
    /* Of three references the destructor has dropped one; two are ours. */
    want(call_ptr(a, "ext_count") == iso_sym(x.api, "toy_count"));
    want(exti_close(a, NULL) == 0);
    want(call_ptr(a, "ext_count") == iso_sym(x.api, "toy_count"));
    iso_close_ctx(x.ctx);
    /* The context closes the module before that destructor runs. */
    close_at_end(&y, &result);
    iso_close_ctx(y.ctx);
    want_int(result, 0);
}

ISO_CASE(relative_paths_can_be_opened)
{
    struct dl d = open_dl("x", 0);
    void *handle;

    want(chdir(toy(".")) == 0);
    handle = must_open(&d, "./ext_a.so", RTLD_NOW);
    want(((int *(*)(void))must_sym(&d, handle, "ext_count"))() == iso_sym(d.api, "toy_count"));
    iso_close_ctx(d.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_null_handle_is_that_of_the_context),
        cmocka_unit_test(the_null_handle_finds_private_symbols_by_their_original_names),
        cmocka_unit_test(an_extension_opened_by_path_joins_the_context),
        cmocka_unit_test(the_api_opened_by_path_is_the_contexts),
        cmocka_unit_test(system_libraries_still_open_by_name),
        cmocka_unit_test(dlerror_reports_an_error_once),
        cmocka_unit_test(function_tables_are_patched),
        cmocka_unit_test(function_tables_give_the_program_the_loaders_behaviour),
        cmocka_unit_test(dlerror_reports_a_hooks_refusal_once),
        cmocka_unit_test(bare_names_are_found_along_runpath_and_rpath),
        cmocka_unit_test(handles_left_open_do_not_keep_the_context_mapped),
        cmocka_unit_test(destructors_may_close_what_they_opened),
        cmocka_unit_test(relative_paths_can_be_opened),
    };

    return cmocka_run_group_tests_name("isolation/loader_calls", tests, NULL, NULL);
}
