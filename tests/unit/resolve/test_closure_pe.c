/* Dependency sets of PE files.  The files are made by hand; each has three needs, and one of them
 * is KERNEL32.dll. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loader/resolve/closure.h"
#include "tests/support/exti_test.h"
#include "tests/unit/pe/pe_toy.h"

static const char *const symbols[] = {"PyModule_Create2", "Py_BuildValue", NULL};

struct fixture {
    struct test *t;
    struct exti_closure_graph g;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    if (test_setup((void **)&f->t))
        return -1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    exti__closure_close(&f->g);
    free(f);
    return test_teardown(&t);
}

#define closure_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* A file that imports from `import` and delay-loads `delayed`; "" stands for a system DLL. */
static const char *make_dll(struct test *t, const char *name, const char *import,
                            const char *delayed)
{
    static struct pe_toy toy;
    char *folder = test_format(t, "%s", test_path(t, name));

    pe_toy_make(&toy, (struct pe_toy_opts){.api = *import ? import : "USER32.dll",
                                           .delayed = *delayed ? delayed : "WS2_32.dll",
                                           .id = strstr(name, "python") ? NULL : "original.dll",
                                           .exports = symbols});
    *strrchr(folder, '/') = 0;
    test_must_run(t, "mkdir", "-p", folder, NULL);
    test_write(test_path(t, name), toy.b, toy.n);
    return test_path(t, name);
}

static void make_forwarding(struct test *t, const char *name, const char *to)
{
    static struct pe_toy toy;

    pe_toy_make(&toy, (struct pe_toy_opts){.api = "USER32.dll", .exports = symbols, .forward = to});
    test_write(test_path(t, name), toy.b, toy.n);
}

static void open_closure(struct fixture *f, struct exti_closure_opts o)
{
    exti__closure_close(&f->g);
    o.api_library = make_dll(f->t, "python311.dll", "", "");
    assert_ok(exti__closure_init(&f->g, &o, &f->t->err), &f->t->err);
}

static const struct exti_closure_node *add_root(struct fixture *f, const char *path)
{
    size_t node;

    assert_ok(exti__closure_add(&f->g, path, true, &node, &f->t->err), &f->t->err);
    return &f->g.nodes[node];
}

/* The file that satisfies a node's need, or "system" or "missing". */
static const char *need(struct fixture *f, const struct exti_closure_node *n, const char *name)
{
    for (size_t i = 0; i < n->need_count; i++) {
        const struct exti_closure_need *d = &n->needs[i];

        if (strcmp(d->name, name) != 0)
            continue;
        if (d->system)
            return "system";
        return d->node == EXTI_NO_NODE ? "missing"
                                       : f->g.nodes[d->node].real + strlen(f->t->dir) + 1;
    }
    fail_msg("no need of %s", name);
    return NULL;
}

static bool isolated(struct fixture *f, const char *file)
{
    for (size_t i = 0; i < f->g.count; i++)
        if (strcmp(f->g.nodes[i].real, test_path(f->t, file)) == 0)
            return f->g.nodes[i].isolated;
    fail_msg("%s is not in the closure", file);
    return false;
}

static void needs_lead_to_files_and_to_the_system(void **state)
{
    struct fixture *f = *state;
    const struct exti_closure_node *x;

    make_dll(f->t, "Vendored.DLL", "MSVCP140.dll", "lost.dll");
    make_dll(f->t, "msvcp140.dll", "", "");
    open_closure(f, (struct exti_closure_opts){0});
    x = add_root(f, make_dll(f->t, "x.pyd", "python3.dll", "vendored.dll"));
    assert_string_equal(need(f, x, "python3.dll"), "python311.dll");
    assert_string_equal(need(f, x, "KERNEL32.dll"), "system");
    assert_string_equal(need(f, x, "vendored.dll"), "Vendored.DLL");
    assert_true(x->reaches_api && !x->needs[0].optional);
    for (size_t i = 0; i < x->need_count; i++)
        assert_int_equal(x->needs[i].optional, strcmp(x->needs[i].name, "vendored.dll") == 0);
    assert_true(isolated(f, "Vendored.DLL"));
    assert_false(isolated(f, "msvcp140.dll"));
    assert_int_equal(f->g.missing, 0);
    assert_int_equal(f->g.missing_optional, 1); /* lost.dll */
    assert_int_equal(f->g.count, 4);
}

/* The name in its export directory, here the same for all, does not count. */
static void a_loaded_module_is_known_by_its_file_name(void **state)
{
    struct fixture *f = *state;
    const struct exti_closure_node *x;

    make_dll(f->t, "a/first.dll", "ORIGINAL.dll", "");
    make_dll(f->t, "a/x.libs/shared.dll", "", "");
    make_dll(f->t, "b/shared.dll", "", "");
    open_closure(f, (struct exti_closure_opts){0});
    x = add_root(f, make_dll(f->t, "a/x.pyd", "first.dll", "FIRST.dll"));
    assert_string_equal(need(f, x, "first.dll"), "a/first.dll");
    assert_string_equal(need(f, x, "FIRST.dll"), "a/first.dll");
    assert_string_equal(need(f, &f->g.nodes[x->needs[0].node], "ORIGINAL.dll"), "missing");
}

/* The folder of the root comes before the folder of the file that has the need. */
static void the_folder_of_the_root_is_searched_for_all_needs(void **state)
{
    struct fixture *f = *state;
    const struct exti_closure_node *x;

    make_dll(f->t, "site-packages/p.libs/mid.dll", "leaf.dll", "other.dll");
    make_dll(f->t, "site-packages/p.libs/leaf.dll", "", "");
    make_dll(f->t, "site-packages/p/leaf.dll", "", "");
    make_dll(f->t, "site-packages/q.libs/other.dll", "mid.dll", ""); /* a circle */
    open_closure(f, (struct exti_closure_opts){0});
    x = add_root(f, make_dll(f->t, "site-packages/p/x.pyd", "mid.dll", ""));
    x = &f->g.nodes[x->needs[0].node];
    assert_string_equal(need(f, x, "leaf.dll"), "site-packages/p/leaf.dll");
    assert_string_equal(need(f, x, "other.dll"), "site-packages/q.libs/other.dll");
    assert_true(isolated(f, "site-packages/q.libs/other.dll"));
}

static void forwarders_are_optional_needs(void **state)
{
    struct fixture *f = *state;
    const struct exti_closure_node *x;

    make_forwarding(f->t, "x.dll", "other");
    make_forwarding(f->t, "other.dll", "python3");
    make_forwarding(f->t, "y.dll", "nowhere");
    open_closure(f, (struct exti_closure_opts){.mode = EXTI_CLOSURE_API});
    x = add_root(f, test_path(f->t, "x.dll"));
    assert_string_equal(need(f, x, "other"), "other.dll");
    assert_true(x->reaches_api && isolated(f, "other.dll"));
    x = add_root(f, test_path(f->t, "y.dll"));
    assert_string_equal(need(f, x, "nowhere"), "missing");
    assert_int_equal(f->g.missing, 0);
}

static void rules_ignore_case(void **state)
{
    struct fixture *f = *state;
    const struct exti_rule rules[] = {{"LIB*.dll", 1}, {"libb.*", 0}};
    struct exti_closure_opts o = {.rules = rules, .rule_count = 2};
    const char *x;

    make_dll(f->t, "Liba.dll", "", "");
    make_dll(f->t, "LIBB.dll", "", "");
    make_dll(f->t, "uses.dll", "python311.dll", "");
    x = make_dll(f->t, "x.pyd", "liba.dll", "libb.dll");
    open_closure(f, o);
    add_root(f, x);
    assert_true(!isolated(f, "Liba.dll") && isolated(f, "LIBB.dll"));
    open_closure(f, (struct exti_closure_opts){.mode = EXTI_CLOSURE_API});
    add_root(f, x);
    add_root(f, make_dll(f->t, "y.pyd", "uses.dll", ""));
    assert_true(!isolated(f, "Liba.dll") && isolated(f, "uses.dll"));
    open_closure(f, (struct exti_closure_opts){.mode = EXTI_CLOSURE_NONE});
    add_root(f, test_path(f->t, "y.pyd"));
    assert_false(isolated(f, "uses.dll"));
}

static void memory_runs_out_cleanly(void **state)
{
    struct fixture *f = *state;
    const char *x = make_dll(f->t, "site-packages/p/x.pyd", "MID.dll", "late.dll");
    size_t node, nodes;
    int rc = EXTI_E_NOMEM;

    make_dll(f->t, "site-packages/p.libs/mid.dll", "python3.dll", "");
    make_forwarding(f->t, "site-packages/p/late.dll", "mid");
    open_closure(f, (struct exti_closure_opts){0});
    nodes = f->g.count;
    for (int n = 0; rc == EXTI_E_NOMEM; n++) {
        exti__mem_fail_after(n);
        rc = exti__closure_add(&f->g, x, true, &node, &f->t->err);
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || (rc == EXTI_E_NOMEM && f->g.count == nodes));
        assert_true(n < 2000);
    }
    assert_int_equal(f->g.count, nodes + 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        closure_test(needs_lead_to_files_and_to_the_system),
        closure_test(a_loaded_module_is_known_by_its_file_name),
        closure_test(the_folder_of_the_root_is_searched_for_all_needs),
        closure_test(forwarders_are_optional_needs),
        closure_test(rules_ignore_case),
        closure_test(memory_runs_out_cleanly),
    };

    return cmocka_run_group_tests_name("loader/closure_pe", tests, NULL, NULL);
}
