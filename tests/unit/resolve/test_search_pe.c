/* Where the DLLs of a PE file are looked for.  Nothing reads the files, so they may have any
 * content. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loader/resolve/search_pe.h"
#include "tests/support/exti_test.h"

static int teardown(void **state)
{
    exti__mem_fail_after(-1);
    return test_teardown(state);
}

#define search_test(f) cmocka_unit_test_setup_teardown(f, test_setup, teardown)

static const char *make_file(struct test *t, const char *name)
{
    char *folder = test_format(t, "%s", test_path(t, name));

    *strrchr(folder, '/') = 0;
    test_must_run(t, "mkdir", "-p", folder, NULL);
    test_write(test_path(t, name), "", 0);
    return test_path(t, name);
}

/* The file that `from` gets for `name`, below the test's folder, or "none". */
static const char *found(struct test *t, const struct exti_requester *from, const char *name)
{
    const size_t n = strlen(t->dir);
    char *path, *out;

    assert_ok(exti__search_pe()->find(NULL, from, name, &path, &t->err), &t->err);
    if (!path)
        return "none";
    out = test_format(t, "%s", strncmp(path, t->dir, n) == 0 ? path + n + 1 : path);
    exti__free(path);
    return out;
}

static struct exti_requester module(struct test *t, const char *name)
{
    return (struct exti_requester){.path = make_file(t, name),
                                   .api = make_file(t, "py/python311.dll")};
}

static void folders_have_an_order(void **state)
{
    struct test *t = *state;
    static const char *const in_order[] = {
        "py/Lib/site-packages/pkg/sub/need.dll",
        "py/need.dll",
        "py/Lib/site-packages/pkg/.libs/need.dll",
        "py/Lib/site-packages/pkg/lib/need.dll",
        "py/Lib/site-packages/pkg.libs/need.dll",
        "py/Lib/site-packages/Other.libs/need.dll",
        "py/Lib/site-packages/other.libs/need.dll",
        "py/Lib/site-packages/pywin32_system32/need.dll",
    };
    struct exti_requester m = module(t, "py/Lib/site-packages/pkg/sub/x.pyd");

    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++)
        make_file(t, in_order[i]);
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        assert_string_equal(found(t, &m, "need.dll"), in_order[i]);
        test_must_run(t, "rm", test_path(t, in_order[i]), NULL);
    }
    assert_string_equal(found(t, &m, "need.dll"), "none");
    make_file(t,
              "py/Lib/site-packages/pkg/need.dll"); /* a folder between the two is not searched */
    make_file(t, "py/Lib/site-packages/need.dll");
    make_file(t, "py/Lib/need.dll");
    assert_string_equal(found(t, &m, "need.dll"), "none");
}

/* The folder of the file that was loaded by its path comes first. */
static void needs_of_a_dependency_are_looked_for_beside_the_root(void **state)
{
    struct test *t = *state;
    struct exti_requester root = module(t, "site-packages/pkg/x.pyd"),
                          dependency = {.path = make_file(t, "site-packages/pkg.libs/mid.dll"),
                                        .api = root.api,
                                        .loader = &root};

    make_file(t, "site-packages/pkg/leaf.dll");
    make_file(t, "site-packages/pkg.libs/leaf.dll");
    assert_string_equal(found(t, &dependency, "leaf.dll"), "site-packages/pkg/leaf.dll");
    test_must_run(t, "rm", test_path(t, "site-packages/pkg/leaf.dll"), NULL);
    assert_string_equal(found(t, &dependency, "leaf.dll"), "site-packages/pkg.libs/leaf.dll");
    dependency.loader = NULL; /* as if ctypes.CDLL loaded it */
    assert_string_equal(found(t, &dependency, "leaf.dll"), "site-packages/pkg.libs/leaf.dll");
}

static void packages_outside_site_packages_are_recognised(void **state)
{
    struct test *t = *state;
    struct exti_requester m = module(t, "src/pkg/sub/x.pyd"), bare = module(t, "lone/x.pyd");

    make_file(t, "src/pkg.libs/a.dll");
    make_file(t, "src/other.libs/b.dll");
    make_file(t, "lone.libs/c.dll");
    assert_string_equal(found(t, &m, "a.dll"), "none");
    make_file(t, "src/pkg/__init__.py");
    make_file(t, "src/pkg/sub/__init__.py");
    assert_string_equal(found(t, &m, "a.dll"), "src/pkg.libs/a.dll");
    assert_string_equal(found(t, &m, "b.dll"), "none"); /* not a folder of packages */
    assert_string_equal(found(t, &bare, "c.dll"), "none");
}

static void a_module_in_no_package_finds_dlls_of_all_packages(void **state)
{
    struct test *t = *state;
    struct exti_requester m = module(t, "Site-Packages/x.pyd");

    make_file(t, "Site-Packages/x.libs/a.dll");
    make_file(t, "Site-Packages/lib/b.dll");
    make_file(t, "Site-Packages.libs/c.dll");
    assert_string_equal(found(t, &m, "a.dll"), "Site-Packages/x.libs/a.dll");
    assert_string_equal(found(t, &m, "b.dll"), "none");
    assert_string_equal(found(t, &m, "c.dll"), "none");
}

static void file_names_ignore_case(void **state)
{
    struct test *t = *state;
    struct exti_requester m = module(t, "a/x.pyd");

    make_file(t, "a/NEED.Dll");
    assert_string_equal(found(t, &m, "need.dll"), "a/NEED.Dll");
    make_file(t, "a/NEED.DLL");
    assert_string_equal(found(t, &m, "need.dll"), "a/NEED.DLL"); /* the first by name */
    make_file(t, "a/need.dll");
    assert_string_equal(found(t, &m, "need.dll"), "a/need.dll");
    assert_string_equal(found(t, &m, "need"), "a/need.dll"); /* as forwarders name it */
    assert_string_equal(found(t, &m, "need.pyd"), "none");
    make_file(t, "a/with.dot");
    assert_string_equal(found(t, &m, "WITH.dot"), "a/with.dot");
    test_must_run(t, "mkdir", test_path(t, "a/folder.dll"), NULL);
    assert_string_equal(found(t, &m, "folder.dll"), "none");
    assert_string_equal(found(t, &m, "FOLDER.dll"), "none");
}

static void names_with_a_slash_are_not_looked_for(void **state)
{
    struct test *t = *state;
    struct exti_requester m = module(t, "a/x.pyd");

    make_file(t, "a/b/need.dll");
    assert_string_equal(found(t, &m, "b/need.dll"), "none");
    assert_string_equal(found(t, &m, ""), "none");
    assert_string_equal(found(t, &m, ".."), "none");
}

/* Its DLLs have no files here. */
static void system_dlls_need_no_files(void **state)
{
    struct test *t = *state;
    const struct exti_search_ops *ops = exti__search_pe();
    struct exti_requester m = module(t, "a/x.pyd");
    static const char *const first[] = {"KERNEL32.dll",
                                        "kernel32",
                                        "ntdll.dll",
                                        "UCRTBASE.DLL",
                                        "api-ms-win-crt-heap-l1-1-0.dll",
                                        "EXT-ms-win-x.dll",
                                        "WS2_32.dll",
                                        "node.exe"};
    static const char *const last[] = {"bcrypt.dll", "D3D11.dll", "winspool.drv", "VERSION.dll"};

    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        assert_true(ops->is_system(first[i]));
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        assert_false(ops->is_system(last[i]));
        assert_true(ops->is_system(found(t, &m, last[i])));
    }
    make_file(t, "a/bcrypt.dll"); /* any program may have its own */
    assert_string_equal(found(t, &m, "bcrypt.dll"), "a/bcrypt.dll");
    m = module(t, "site-packages/p/x.pyd"); /* Windows comes before the DLLs of other packages */
    make_file(t, "site-packages/q.libs/msvcp140.dll");
    assert_true(ops->is_system(found(t, &m, "MSVCP140.dll")));
    make_file(t, "site-packages/p.libs/msvcp140.dll");
    assert_string_equal(found(t, &m, "MSVCP140.dll"), "site-packages/p.libs/msvcp140.dll");
    assert_false(ops->is_system(test_path(t, "a/bcrypt.dll")));
    assert_false(ops->is_system("kernel33.dll") || ops->is_system("msvcp140.dll"));
    assert_string_equal(found(t, &m, "nosuch140.dll"), "none");
    assert_true(ops->is_system(found(t, &m, "VCRUNTIME140.dll")));
    make_file(t, "py/vcruntime140.dll");
    assert_string_equal(found(t, &m, "VCRUNTIME140.dll"), "py/vcruntime140.dll");
}

static void the_api_library_also_has_the_name_of_the_stable_abi(void **state)
{
    const struct exti_search_ops *ops = exti__search_pe();
    static const char file[] = "/py/python311.dll";

    (void)state;
    assert_true(ops->is_api("python311.dll", file, NULL));
    assert_true(ops->is_api("Python311", file, NULL));
    assert_true(ops->is_api("PYTHON3.dll", file, NULL));
    assert_false(ops->is_api("python3_d.dll", file, NULL));
    assert_true(ops->is_api("python3_d.dll", "/py/python311_d.dll", NULL));
    assert_false(ops->is_api("python312.dll", file, "python311.dll"));
    assert_true(ops->is_api("python311.dll", "/py/renamed.dll", "python311.dll"));
    assert_true(ops->is_api("renamed.dll", "/py/renamed.dll", "python311.dll"));
    assert_false(ops->is_api("python3.dll", "/js/node.dll", NULL));
}

static void memory_runs_out_cleanly(void **state)
{
    struct test *t = *state;
    struct exti_requester m = module(t, "site-packages/pkg/x.pyd");
    char *path;
    int rc = EXTI_E_NOMEM;

    make_file(t, "site-packages/b.libs/NEED.dll");
    make_file(t, "site-packages/a.libs/other.dll");
    for (int n = 0; rc == EXTI_E_NOMEM; n++) {
        exti__mem_fail_after(n);
        rc = exti__search_pe()->find(NULL, &m, "need.dll", &path, &t->err);
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || rc == EXTI_E_NOMEM);
        assert_true(n < 200);
    }
    assert_string_equal(path, test_path(t, "site-packages/b.libs/NEED.dll"));
    exti__free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        search_test(folders_have_an_order),
        search_test(needs_of_a_dependency_are_looked_for_beside_the_root),
        search_test(packages_outside_site_packages_are_recognised),
        search_test(a_module_in_no_package_finds_dlls_of_all_packages),
        search_test(file_names_ignore_case),
        search_test(names_with_a_slash_are_not_looked_for),
        search_test(system_dlls_need_no_files),
        search_test(the_api_library_also_has_the_name_of_the_stable_abi),
        search_test(memory_runs_out_cleanly),
    };

    return cmocka_run_group_tests_name("loader/search_pe", tests, NULL, NULL);
}
