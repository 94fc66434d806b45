/* A host that has the API, or an extension's symbols, in its global scope interposes nothing in a
 * context: references are isolated, or the load is refused with an error that names the library. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>

#include "tests/isolation/pair.h"

static void open_global(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    want(handle);
}

static void *plain_ptr(void *handle, const char *function)
{
    void *p = dlsym(handle, function);

    want(p);
    return ((void *(*)(void))p)();
}

/* A host without the API makes the directory; then one opens it that needs private names. */
ISO_CASE_EACH(a_directory_made_without_private_names_serves_an_exporting_host)
{
    struct exti_ctx *ctx = iso_open("x");
    struct toy_one x;

    want(exti_copy(ctx, toy("ext_a.so"), NULL, NULL) == 0);
    iso_close_ctx(ctx);
    open_global(toy("libtoy.so.1"));
    x = toy_open_one("x", 0);
    toy_check_inside(&x);
    iso_prove_clean(x.ctx, 3);
    iso_close_ctx(x.ctx);
    iso_dir_clean(in_tmp("x"));
}

/* The reverse: no host needs the private names that the directory has. */
ISO_CASE_EACH(a_directory_made_with_private_names_serves_any_host)
{
    struct toy_one x = toy_open_one("x", EXTI_CTX_RENAME);

    iso_close_ctx(x.ctx);
    x = toy_open_one("x", 0);
    toy_check_inside(&x);
    toy_check_own(&x);
    iso_prove_clean(x.ctx, 3);
    iso_close_ctx(x.ctx);
    iso_dir_clean(in_tmp("x"));
}

/* The host opens the API only after the context was opened, or after it has loaded a module. */
ISO_CASE_EACH(an_api_that_is_opened_globally_later_interposes_nothing)
{
    struct exti_ctx *before = iso_open("x"), *loaded = iso_open("y");
    struct exti_error err = {0};
    struct exti_module *m = iso_load(loaded, toy("ext_a.so")), *later = NULL;
    int rc;

    open_global(toy("libtoy.so.1"));
    want(call_ptr(m, "ext_count") == iso_sym(iso_api(loaded), "toy_count"));
    rc = exti_load(loaded, toy("ext_b.so"), &later, &err);
    if (rc) {
        want_exti(rc, EXTI_E_INTERPOSED, &err);
        want_text(err.message, "toy_");
        want_text(err.message, "libtoy.so.1");
    } else {
        want(call_ptr(later, "ext_count") == iso_sym(iso_api(loaded), "toy_count"));
    }
    iso_prove_clean(loaded, 2);
    rc = exti_load(before, toy("ext_a.so"), &later, &err);
    if (rc) {
        want_exti(rc, EXTI_E_INTERPOSED, &err);
        want_text(err.message, "libtoy.so.1");
    } else {
        want(call_ptr(later, "ext_count") == iso_sym(iso_api(before), "toy_count"));
        iso_prove_clean(before, 2);
    }
    iso_close_ctx(loaded);
    iso_close_ctx(before);
}

/* The global library defines a symbol that the extension exports and uses itself. */
ISO_CASE_EACH(a_global_library_does_not_interpose_an_extensions_symbols)
{
    struct toy_one x;
    void *host;

    open_global(toy("libtoy.so.1"));
    open_global(toy("ext_b.so"));
    host = dlsym(RTLD_DEFAULT, "ext_own");
    want(host);
    x = toy_open_one("x", 0);
    toy_check_inside(&x);
    toy_check_own(&x);
    want(iso_sym(x.a, "ext_own") != host);
    want_int(*(int *)host, 5);
    iso_prove_clean(x.ctx, 3);
    iso_close_ctx(x.ctx);
}

/* The symbol "t": no other name has its length and hash, so a longer one takes its place. */
ISO_CASE(a_symbol_without_a_private_name_of_its_length_is_isolated)
{
    const char *api = iso_text("%s/libtoyshort.so.1", iso_toys());
    struct exti_ctx_opts opts = {.size = sizeof opts, .dir = in_tmp("x"), .api_library = api};
    struct exti_module *m;
    struct exti_ctx *ctx;
    int (*host)(void);

    open_global(api);
    host = (int (*)(void))dlsym(RTLD_DEFAULT, "t");
    want(host && host() == 1);
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, iso_text("%s/ext_short.so", iso_toys()));
    want_int(call_int(m, "short_next"), 1);
    want_int(call_int(iso_api(ctx), "t"), 2); /* by the API's own name for it */
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).leaks, 0);
    want_int(host(), 2);
    iso_close_ctx(ctx);
    iso_dir_clean(in_tmp("x"));
}

/* Makes the manifest an earlier version's, which gave no longer names. */
static void forget_names(void)
{
    const char *manifest = in_tmp("x/manifest.json");

    want(system(iso_text("grep -q '\"names\": 2,' '%s' && sed -i '/\"names\":/d' '%s'", manifest,
                         manifest)) == 0);
}

/* Opens the context, loads the module and leaves the name of the API library's copy in `out`. */
static void use_short(char *out)
{
    const char *api = iso_text("%s/libtoyshort.so.1", iso_toys());
    struct exti_ctx_opts opts = {.size = sizeof opts, .dir = in_tmp("x"), .api_library = api};
    struct exti_ctx *ctx = iso_open_opts(&opts);

    want_int(call_int(iso_load(ctx, iso_text("%s/ext_short.so", iso_toys())), "short_next"), 1);
    snprintf(out, 256, "%s", exti_module_copy(iso_api(ctx)));
    iso_close_ctx(ctx);
}

static int keep_finding(void *to, const struct exti_error *finding)
{
    *(struct exti_error *)to = *finding;
    return 0;
}

/* The API library's copy lacks the longer names, by which a new copy would call it. */
ISO_CASE(a_directory_with_an_earlier_versions_private_names_is_made_again)
{
    char first[256], second[256], again[256];
    struct exti_error err = {0}, finding;
    size_t findings = 0;

    open_global(iso_text("%s/libtoyshort.so.1", iso_toys()));
    use_short(first);
    use_short(again);
    want(strcmp(first, again) == 0);
    forget_names();
    want_exti(exti_dir_verify(in_tmp("x"), keep_finding, &finding, &findings, &err), 0, &err);
    want_int((long)findings, 1);
    want_text(finding.message, "private names are another version's");
    use_short(second);
    want(strcmp(first, second) != 0);
    use_short(again);
    want(strcmp(second, again) == 0);
    iso_dir_clean(in_tmp("x"));
}

/* CPython's names, like these, all have others of their length. */
ISO_CASE(an_earlier_versions_directory_without_longer_names_is_kept)
{
    struct toy_one x = toy_open_one("x", EXTI_CTX_RENAME);
    char first[256];

    snprintf(first, sizeof first, "%s", exti_module_copy(x.api));
    iso_close_ctx(x.ctx);
    forget_names();
    iso_dir_clean(in_tmp("x"));
    x = toy_open_one("x", 0);
    want(strcmp(first, exti_module_copy(x.api)) == 0);
    iso_close_ctx(x.ctx);
    iso_dir_clean(in_tmp("x"));
}

/* A needed library that uses the API cannot be shared: each context has a copy of its own, or the
 * load is refused with the names of the symbol and of the interposing library. */
static void want_isolated_or_refused(int host_has_it)
{
    struct exti_module *mx = NULL, *my = NULL;
    struct exti_error err = {0};
    struct exti_ctx *x, *y;
    void *host = NULL;

    if (host_has_it) {
        open_global(toy("libtoy.so.1"));
        host = dlopen(toy("ext_dep.so"), RTLD_NOW);
        want(host && plain_ptr(host, "depext_dep_count") == dlsym(RTLD_DEFAULT, "toy_count"));
    }
    x = iso_open("x");
    y = iso_open("y");
    if (exti_load(x, toy("ext_dep.so"), &mx, &err)) {
        want_int(err.code, EXTI_E_INTERPOSED);
    } else {
        want(call_ptr(mx, "depext_count") == iso_sym(iso_api(x), "toy_count"));
        want(call_ptr(mx, "depext_dep_count") == iso_sym(iso_api(x), "toy_count"));
        iso_prove_clean(x, 2);
        if (exti_load(y, toy("ext_dep.so"), &my, &err))
            want_int(err.code, EXTI_E_INTERPOSED);
    }
    if (err.code) {
        fprintf(stderr, "%s: %s\n", err.file, err.message);
        want_text(iso_text("%s %s", err.file, err.message), "toydep");
        want_text(err.message, host_has_it ? "toy" : exti_ctx_dir(x));
    }
    if (my) {
        want(call_ptr(my, "depext_dep_count") == iso_sym(iso_api(y), "toy_count"));
        want(call_ptr(my, "depext_dep_static") != call_ptr(mx, "depext_dep_static"));
        iso_prove_clean(y, 2);
    }
    iso_close_ctx(y);
    iso_close_ctx(x);
}

ISO_CASE_EACH(a_needed_library_that_uses_the_api_is_isolated_or_refused)
{
    want_isolated_or_refused(0);
}

ISO_CASE_EACH(a_needed_library_that_the_host_has_too_is_isolated_or_refused)
{
    want_isolated_or_refused(1);
}

ISO_CASE_EACH(loading_an_extension_with_a_missing_symbol_fails)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_error err = {0};
    struct exti_module *m = NULL;

    want_exti(exti_load(ctx, toy("ext_missing.so"), &m, &err), EXTI_E_LOAD, &err);
    want_text(err.message, "toy_defined_nowhere");
    want(!m);
    want_int(call_int(iso_load(ctx, toy("ext_a.so")), "ext_count_at_init"), 1);
    iso_close_ctx(ctx);
    iso_dir_clean(in_tmp("x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_made_without_private_names_serves_an_exporting_host),
        cmocka_unit_test(a_directory_made_with_private_names_serves_any_host),
        cmocka_unit_test(an_api_that_is_opened_globally_later_interposes_nothing),
        cmocka_unit_test(a_global_library_does_not_interpose_an_extensions_symbols),
        cmocka_unit_test(a_symbol_without_a_private_name_of_its_length_is_isolated),
        cmocka_unit_test(a_directory_with_an_earlier_versions_private_names_is_made_again),
        cmocka_unit_test(an_earlier_versions_directory_without_longer_names_is_kept),
        cmocka_unit_test(a_needed_library_that_uses_the_api_is_isolated_or_refused),
        cmocka_unit_test(a_needed_library_that_the_host_has_too_is_isolated_or_refused),
        cmocka_unit_test(loading_an_extension_with_a_missing_symbol_fails),
    };

    return cmocka_run_group_tests_name("isolation/interposing_host", tests, NULL, NULL);
}
