/* Libraries that the system does not let us look for.  Each is there: a look-up that ends with
 * "missing" would leave its original to whoever loads the copy. */
#include "tests/support/fail_calls.h"

#include "loader/resolve/absent.h"
#include "loader/resolve/search_macho.h"
#include "loader/resolve/search_pe.h"
#include "tests/unit/resolve/closure_elf.h"

static int let_all_work(void **state)
{
    fail_calls.in = NULL;
    fail_calls.in_stat = false;
    return teardown(state);
}

#define unseen_test(f) cmocka_unit_test_setup_teardown(f, setup, let_all_work)

static void let_fail(const char *in, int error)
{
    fail_calls.in = in;
    fail_calls.error = error;
    fail_calls.failed = 0;
}

#define HERE " -L% -Wl,-rpath,$ORIGIN"
static const char *make_chain(struct fixture *f)
{
    toy_lib(f->t, "libleaf.so", "-Wl,-soname,libleaf.so");
    toy_lib(f->t, "libmid.so", "-Wl,-soname,libmid.so -lleaf" HERE);
    return toy_lib(f->t, "top.so", "-lmid" HERE);
}

static void passing_errors_fail_the_closure(void **state)
{
    static const int errors[] = {EMFILE, ENFILE, EIO, EINTR, ENOMEM, ESTALE, EACCES};
    struct fixture *f = *state;
    const char *top = make_chain(f);

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        size_t node = 7;
        int rc;

        open_closure(f, (struct exti_closure_opts){0});
        let_fail("/libleaf.so", errors[i]);
        rc = exti__closure_add(&f->g, top, true, &node, &f->t->err);
        fail_calls.in = NULL;
        assert_true(fail_calls.failed > 0);
        assert_int_equal(rc, errors[i] == ENOMEM ? EXTI_E_NOMEM : EXTI_E_IO);
        assert_int_equal(f->g.count, 0);
        assert_int_equal(node, 7);
        if (rc == EXTI_E_NOMEM)
            continue;
        assert_int_equal(f->t->err.os_error, errors[i]);
        assert_contains(f->t->err.file, "libleaf.so");
        assert_contains(f->t->err.message, "cannot open file");
        assert_contains(f->t->err.message, "libmid.so needs libleaf.so");
        /* The graph heals as soon as the file can be looked at. */
        add_root(f, top);
        assert_int_equal(f->g.count, 3);
        assert_int_equal(f->g.missing, 0);
    }
}

static void absent_files_are_only_missing(void **state)
{
    static const int errors[] = {ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG};
    struct fixture *f = *state;
    const char *top = make_chain(f);

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        let_fail("/libleaf.so", errors[i]);
        close_over(f, top, EXTI_CLOSURE_ALL);
        assert_int_equal(f->g.count, 2);
        assert_int_equal(f->g.missing, 1);
    }
}

/* As ld.so does.  Only if there is no other, it may be the one. */
static void a_forbidden_library_gives_way_to_another(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *top;

    test_must_run(t, "mkdir", "-p", test_path(t, "a"), test_path(t, "b"), NULL);
    toy_lib(t, "a/libleaf.so", "-Wl,-soname,libleaf.so");
    toy_lib(t, "b/libleaf.so", "-Wl,-soname,libleaf.so");
    top = toy_lib(t, "top.so", "-L%/a -lleaf -Wl,-rpath,$ORIGIN/a:$ORIGIN/b");
    let_fail("/a/libleaf.so", EACCES);
    close_over(f, top, EXTI_CLOSURE_ALL);
    assert_int_equal(f->g.count, 2);
    assert_string_equal(f->g.nodes[1].real, test_path(t, "b/libleaf.so"));
}

/* Otherwise a passing error would put a path where the name suffices. */
static void whether_a_name_suffices_is_not_guessed(void **state)
{
    struct fixture *f = *state;
    struct exti_requester from;
    struct exti_file_id id;
    bool by_name = true;
    char *path;

    toy_lib(f->t, "top.so", "");
    from = (struct exti_requester){.path = test_path(f->t, "top.so")};
    open_closure(f, (struct exti_closure_opts){0});
    add_root(f, from.path);
    from.kind = f->g.nodes[0].kind;
    assert_ok(exti__elf_search_find(f->s, &from, "libm.so.6", &path, &f->t->err), &f->t->err);
    assert_non_null(path);
    assert_ok(exti__fs_id(path, &id, &f->t->err), &f->t->err);
    exti__free(path);
    fail_calls.in_stat = true;
    let_fail("/libm.so.6", EIO);
    assert_int_equal(exti__elf_search_by_name(f->s, &from, "libm.so.6", &id, &by_name, &f->t->err),
                     EXTI_E_IO);
    assert_int_equal(f->t->err.os_error, EIO);
}

static const char *make_dll(struct fixture *f, const char *name)
{
    const char *path = test_path(f->t, name);

    test_write(path, "MZ", 2);
    return path;
}

static void dlls_are_not_missing_either(void **state)
{
    struct fixture *f = *state;
    const struct exti_requester from = {.path = make_dll(f, "mod.pyd"),
                                        .api = make_dll(f, "python311.dll")};
    char *path = NULL;

    make_dll(f, "need.dll");
    fail_calls.in_stat = true;
    let_fail("/need.dll", EIO);
    assert_int_equal(exti__search_pe()->find(NULL, &from, "need.dll", &path, &f->t->err),
                     EXTI_E_IO);
    assert_null(path);
    assert_contains(f->t->err.file, "need.dll");
    /* Which folders count depends on where the package ends. */
    let_fail("/__init__.py", EIO);
    assert_int_equal(exti__search_pe()->find(NULL, &from, "other.dll", &path, &f->t->err),
                     EXTI_E_IO);
    assert_contains(f->t->err.file, "__init__.py");
    fail_calls.in = NULL;
    assert_ok(exti__search_pe()->find(NULL, &from, "need.dll", &path, &f->t->err), &f->t->err);
    assert_contains(path, "need.dll");
    exti__free(path);
}

static void mach_o_libraries_are_not_missing_either(void **state)
{
    struct fixture *f = *state;
    const struct exti_requester from = {
        .path = test_path(f->t, "mod.so"), .real = test_path(f->t, "mod.so"), .machines = "x86_64"};
    const char *first = test_path(f->t, "a"), *second = test_path(f->t, "b");
    const char *const paths[] = {first, second};
    struct exti_requester searching = from;
    char *path = NULL;

    searching.paths = paths;
    searching.path_count = 2;
    let_fail("/a/libx.dylib", EMFILE);
    assert_int_equal(
        exti__search_macho()->find(NULL, &searching, "@rpath/libx.dylib", &path, &f->t->err),
        EXTI_E_IO);
    assert_int_equal(f->t->err.os_error, EMFILE);
    assert_contains(f->t->err.file, "/a/libx.dylib");
    let_fail("/a/libx.dylib", EACCES); /* b has none, so a may */
    assert_int_equal(
        exti__search_macho()->find(NULL, &searching, "@rpath/libx.dylib", &path, &f->t->err),
        EXTI_E_IO);
    assert_int_equal(f->t->err.os_error, EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        unseen_test(passing_errors_fail_the_closure),
        unseen_test(absent_files_are_only_missing),
        unseen_test(a_forbidden_library_gives_way_to_another),
        unseen_test(whether_a_name_suffices_is_not_guessed),
        unseen_test(dlls_are_not_missing_either),
        unseen_test(mach_o_libraries_are_not_missing_either),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
