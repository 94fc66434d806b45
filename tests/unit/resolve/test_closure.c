#include <unistd.h>

#include "tests/unit/resolve/closure_elf.h"

static size_t index_of(struct fixture *f, const char *file)
{
    const char *path = test_path(f->t, file);

    for (size_t i = 0; i < f->g.count; i++)
        if (strcmp(f->g.nodes[i].real, path) == 0)
            return i;
    fail_msg("%s is not in the closure", file);
    return 0;
}

static const struct exti_closure_node *node_of(struct fixture *f, const char *file)
{
    return &f->g.nodes[index_of(f, file)];
}

/* Asserts whether dir/file is isolated, and words that exti__closure_describe must use. */
static void assert_node(struct fixture *f, const char *file, bool isolated, const char *says)
{
    char text[512];
    const size_t i = index_of(f, file);

    exti__closure_describe(&f->g, i, text, sizeof text);
    if (f->g.nodes[i].isolated != isolated)
        fail_msg("%s is %s", file, text);
    assert_contains(text, isolated ? "isolated: " : "shared: ");
    assert_contains(text, says);
}

/* top -> mid -> leaf, top -> side; all with DT_RUNPATH $ORIGIN. */
#define HERE " -L% -Wl,-rpath,$ORIGIN"
static const char *make_chain(struct fixture *f)
{
    toy_lib(f->t, "libleaf.so", "-Wl,-soname,libleaf.so");
    toy_lib(f->t, "libside.so", "-Wl,-soname,libside.so");
    toy_lib(f->t, "libmid.so", "-Wl,-soname,libmid.so -lleaf" HERE);
    return toy_lib(f->t, "top.so", "-lmid -lside" HERE);
}

static void every_library_is_a_node(void **state)
{
    struct fixture *f = *state;
    const struct exti_closure_node *n;

    close_over(f, make_chain(f), EXTI_CLOSURE_ALL);
    n = f->g.nodes;
    assert_int_equal(f->g.count, 4);
    assert_int_equal(f->g.missing, 0);
    assert_string_equal(n[0].path, test_path(f->t, "top.so")); /* breadth first */
    assert_string_equal(n[1].soname, "libmid.so");
    assert_string_equal(n[2].soname, "libside.so");
    assert_string_equal(n[3].soname, "libleaf.so");
    assert_int_equal(n[1].needs[0].node, 3);
    assert_string_equal(n[1].needs[0].name, "libleaf.so");
    assert_int_equal(n[3].loader, 1);
    assert_true(n[0].root && !n[1].root);
    assert_node(f, "top.so", true, "it is loaded into the context");
    assert_node(f, "libleaf.so", true, "by default");
}

static void dependencies_are_shared_in_modes_api_and_none(void **state)
{
    struct fixture *f = *state;
    const char *top = make_chain(f);

    for (int mode = EXTI_CLOSURE_API; mode <= EXTI_CLOSURE_NONE; mode++) {
        close_over(f, top, (enum exti_closure)mode);
        assert_node(f, "top.so", false, "isolated: it is loaded into the context");
        assert_node(f, "libmid.so", false, "by default");
        assert_node(f, "libleaf.so", false, "by default");
    }
}

/* Makes libapi, and a libleaf that uses it without needing it. */
static const char *make_api(struct fixture *f)
{
    static const char call[] = "int api_call(void); int uses(void) { return api_call(); }";

    toy_text(f->t, "api.c", "int api_call(void) { return 1; }");
    toy_text(f->t, "leaf.c", call);
    toy_lib(f->t, "libleaf.so", "%/leaf.c -Wl,-soname,libleaf.so");
    return toy_lib(f->t, "libapi.so", "%/api.c -Wl,-soname,libapi.so");
}

static void libraries_that_use_the_api_isolate_those_that_need_them(void **state)
{
    struct fixture *f = *state;
    const char *top = make_chain(f), *api = make_api(f);
    struct exti_rule rules[] = {{"libmid.so", 1}, {"libleaf.so", 1}};
    struct exti_closure_opts o = {.api_library = api, .rules = rules, .rule_count = 1};

    for (int mode = EXTI_CLOSURE_ALL; mode <= EXTI_CLOSURE_API; mode++) {
        o.mode = (enum exti_closure)mode;
        o.rule_count = 1;
        open_closure(f, o);
        add_root(f, top);
        assert_node(f, "libapi.so", true, "the API library");
        assert_node(f, "libleaf.so", true, "uses the API library");
        assert_node(f, "libmid.so", true, "needs libleaf.so, which is isolated: it uses the API");
        assert_true(node_of(f, "libmid.so")->overridden);
        assert_false(node_of(f, "libleaf.so")->overridden);
        assert_node(f, "libside.so", mode == EXTI_CLOSURE_ALL, "by default");
        o.rule_count = 2;
        open_closure(f, o);
        add_root(f, top);
        assert_node(f, "libleaf.so", true, "uses the API library");
        assert_true(node_of(f, "libleaf.so")->overridden);
    }
    o.mode = EXTI_CLOSURE_NONE;
    open_closure(f, o);
    add_root(f, top);
    assert_node(f, "libleaf.so", false, "the user says so");
    assert_true(node_of(f, "libleaf.so")->uses_api);
    assert_false(node_of(f, "libleaf.so")->reaches_api);
    assert_true(node_of(f, "libapi.so")->isolated);
}

/* By whatever name, and even if another file has that name. */
static void needs_of_the_api_lead_to_its_node(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *api, *top;
    const struct exti_closure_node *n;

    toy_lib(t, "stub/libpython3.so", "-Wl,-soname,libpython3.so");
    toy_lib(t, "stub/libpython3.7m.so.1.0", "-Wl,-soname,libpython3.7m.so.1.0");
    top =
        toy_lib(t, "top.so", "-L%/stub -lpython3 -l:libpython3.7m.so.1.0 -Wl,-rpath,$ORIGIN/stub");
    api = toy_lib(t, "libpython3.7m.so.1.0", "-Wl,-soname,libpython3.7m.so.1.0");
    open_closure(f, (struct exti_closure_opts){.api_library = api});
    add_root(f, top);
    n = node_of(f, "top.so");
    assert_int_equal(f->g.count, 2);
    assert_int_equal(n->need_count, 2);
    assert_int_equal(n->needs[0].node, f->g.api);
    assert_int_equal(n->needs[1].node, f->g.api);
    assert_true(n->reaches_api && !n->uses_api);
    open_closure(f, (struct exti_closure_opts){.api_library = test_path(t, "top.so")});
    add_root(f, api);
    assert_int_equal(f->g.count, 4); /* with another API library, they are ordinary libraries */
}

static void shared_libraries_use_originals(void **state)
{
    struct fixture *f = *state;
    const char *top = make_chain(f);
    struct exti_rule rules[] = {{"libmid.so", 1}, {"libleaf*", 0}};
    struct exti_closure_opts o = {.rules = rules, .rule_count = 1};

    open_closure(f, o);
    add_root(f, top);
    assert_node(f, "libmid.so", false, "the original of libleaf.so, not the context");
    assert_int_equal(node_of(f, "libmid.so")->original_of, index_of(f, "libleaf.so"));
    assert_node(f, "libleaf.so", true, "by default");
    assert_node(f, "libside.so", true, "by default");
    o.mode = EXTI_CLOSURE_API;
    open_closure(f, o);
    add_root(f, top);
    assert_int_equal(node_of(f, "libmid.so")->original_of, EXTI_NO_NODE);
    o.rule_count = 2;
    for (int mode = EXTI_CLOSURE_ALL; mode <= EXTI_CLOSURE_NONE; mode++) {
        o.mode = (enum exti_closure)mode;
        open_closure(f, o);
        add_root(f, top);
        assert_node(f, "libleaf.so", true, "the user says so");
        assert_node(f, "libmid.so", false, "the original of libleaf.so");
        assert_false(node_of(f, "libmid.so")->overridden);
    }
    toy_lib(f->t, "libmid.so", "-Wl,-soname,libmid.so -lleaf -Wl,-z,nodelete" HERE);
    open_closure(f, (struct exti_closure_opts){0});
    add_root(f, top);
    assert_node(f, "libmid.so", false, "DF_1_NODELETE");
    assert_node(f, "libleaf.so", true, "by default");
    assert_int_equal(node_of(f, "libmid.so")->original_of, EXTI_NO_NODE);
}

static void a_library_that_a_rule_isolates_isolates_those_that_need_it(void **state)
{
    struct fixture *f = *state;
    const char *top = make_chain(f);
    struct exti_rule rule = {"libleaf*", 0};

    for (int mode = EXTI_CLOSURE_API; mode <= EXTI_CLOSURE_NONE; mode++) {
        open_closure(f, (struct exti_closure_opts){
                            .rules = &rule, .rule_count = 1, .mode = (enum exti_closure)mode});
        add_root(f, top);
        assert_node(f, "libmid.so", true,
                    "it needs libleaf.so, which is isolated: the user says so");
        assert_false(node_of(f, "libmid.so")->overridden);
        assert_node(f, "libside.so", false, "by default");
    }
}

static void circles_of_needs_end(void **state)
{
    struct fixture *f = *state;
    const char *api = make_api(f), *a;
    struct exti_closure_opts o = {.api_library = api, .mode = EXTI_CLOSURE_API};

    toy_lib(f->t, "libb.so", "-Wl,-soname,libb.so");
    toy_lib(f->t, "liba.so", "-Wl,-soname,liba.so -lb" HERE);
    toy_lib(f->t, "libb.so", "-Wl,-soname,libb.so -la" HERE);
    a = toy_lib(f->t, "liba.so", "-Wl,-soname,liba.so -lb -la" HERE);
    close_over(f, a, EXTI_CLOSURE_ALL);
    assert_int_equal(f->g.count, 2);
    assert_node(f, "libb.so", true, "by default");
    open_closure(f, o);
    add_root(f, a);
    assert_node(f, "liba.so", false, "as a dependency it is shared");
    assert_node(f, "libb.so", false, "by default"); /* a root does not isolate what needs it */
    toy_lib(f->t, "libb.so", "-Wl,-soname,libb.so -la -lleaf" HERE);
    open_closure(f, o);
    add_root(f, a);
    assert_node(f, "libb.so", true,
                "it needs libleaf.so, which is isolated: it uses the API library");
    assert_true(node_of(f, "liba.so")->isolated);
}

static void order_of_roots_does_not_matter(void **state)
{
    struct fixture *f = *state;
    const char *top = make_chain(f), *api = make_api(f);
    const char *files[] = {top, test_path(f->t, "libmid.so"), test_path(f->t, "libleaf.so"),
                           test_path(f->t, "libside.so")};
    static const bool isolated[] = {true, true, true, false};

    for (size_t first = 0; first < 4; first++)
        for (size_t step = 1; step < 4; step += 2) {
            open_closure(f,
                         (struct exti_closure_opts){.api_library = api, .mode = EXTI_CLOSURE_API});
            for (size_t i = 0; i < 4; i++)
                add_root(f, files[(first + i * step) % 4]);
            assert_int_equal(f->g.count, 5);
            for (size_t i = 0; i < 4; i++) {
                const struct exti_closure_node *n = node_of(f, strrchr(files[i], '/') + 1);

                assert_int_equal(n->isolated, isolated[i]);
                assert_true(n->root);
            }
        }
}

static void roots_are_added_one_by_one(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *top = make_chain(f), *other;
    size_t node, count;

    toy_lib(t, "libnew.so", "-Wl,-soname,libnew.so -lleaf" HERE);
    other = toy_lib(t, "other.so", "-lside -lnew" HERE);
    close_over(f, top, EXTI_CLOSURE_ALL);
    assert_int_equal(add_root(f, top), 0);
    assert_int_equal(f->g.count, 4);
    assert_ok(exti__closure_add(&f->g, test_path(t, "libmid.so"), false, &node, &t->err), &t->err);
    assert_int_equal(node, 1);
    assert_false(f->g.nodes[1].root);
    assert_int_equal(add_root(f, test_path(t, "libmid.so")), 1);
    assert_int_equal(add_root(f, other), 4);
    assert_int_equal(f->g.count, 6);
    assert_int_equal(f->g.nodes[5].needs[0].node, 3);
    /* Finds libraries as dlopen does for top.so, by its search path; the last one does not
     * exist. */
    toy_lib(t, "liblate.so", "-Wl,-soname,liblate.so -lnew" HERE);
    assert_ok(exti__closure_find(&f->g, 0, "liblate.so", &node, &t->err), &t->err);
    assert_int_equal(node, 6);
    assert_string_equal(f->g.nodes[6].path, test_path(t, "liblate.so"));
    assert_int_equal(f->g.nodes[6].needs[0].node, 5);
    assert_false(f->g.nodes[6].root);
    assert_ok(exti__closure_find(&f->g, 0, "libleaf.so", &node, &t->err), &t->err);
    assert_int_equal(node, 3);
    count = f->g.count;
    assert_ok(exti__closure_find(&f->g, 0, "libnobodys.so", &node, &t->err), &t->err);
    assert_int_equal(node, EXTI_NO_NODE);
    assert_int_equal(f->g.count, count);
    for (size_t i = 0; i < count; i++)
        assert_true(exti__closure_is_current(&f->g, i));
    toy_lib(t, "libside.so", "-Wl,-soname,libside.so -lleaf" HERE);
    assert_false(exti__closure_is_current(&f->g, 2));
    assert_true(exti__closure_is_current(&f->g, 1));
    unlink(test_path(t, "libside.so"));
    assert_false(exti__closure_is_current(&f->g, 2));
}

/* The C library is found by its name from any folder; a library beside the file is not. */
static void needs_found_by_name_from_anywhere_are_marked(void **state)
{
    struct fixture *f = *state;
    const char *top;
    const struct exti_closure_need *needs;

    make_chain(f);
    top = toy_lib(f->t, "top.so", "-lmid -lc" HERE);
    close_over(f, top, EXTI_CLOSURE_NONE);
    needs = node_of(f, "top.so")->needs;
    assert_string_equal(needs[0].name, "libmid.so");
    assert_false(needs[0].by_name);
    assert_string_equal(needs[1].name, "libc.so.6");
    assert_true(needs[1].by_name);
}

static void one_file_with_several_names_is_one_node(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *top, *trace;
    size_t i;

    toy_lib(t, "libreal.so.1.2", "-Wl,-soname,libreal.so.1");
    assert_int_equal(symlink("libreal.so.1.2", test_path(t, "libreal.so.1")), 0);
    assert_int_equal(symlink("libreal.so.1.2", test_path(t, "libreal.so")), 0);
    toy_lib(t, "libother.so", "-Wl,-soname,libreal2.so");
    toy_lib(t, "liba.so", "-Wl,-soname,liba.so -lreal" HERE);
    toy_lib(t, "libreal.so.1.2", ""); /* without a SONAME, it is found as libreal.so below */
    toy_lib(t, "libb.so", "-Wl,-soname,libb.so -lreal" HERE);
    top = toy_lib(t, "top.so", "-la -lb" HERE);
    close_over(f, top, EXTI_CLOSURE_ALL);
    assert_int_equal(f->g.count, 4);
    i = index_of(f, "libreal.so.1.2");
    assert_string_equal(f->g.nodes[i].path, test_path(t, "libreal.so.1"));
    assert_int_equal(node_of(f, "liba.so")->needs[0].node, i);
    assert_int_equal(node_of(f, "libb.so")->needs[0].node, i);
    assert_true(f->g.nodes[i].alias_count >= 2);
    trace = toy_trace(t, NULL, top);
    assert_string_equal(toy_traced(t, trace, "libreal.so.1"), f->g.nodes[i].path);
}

static void names_of_loaded_files_come_before_the_search(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *top;

    /* Both liba and libb need libx.so, each from its own folder; the process has the first. */
    toy_lib(t, "a/libx.so", "-Wl,-soname,libx.so");
    toy_lib(t, "b/libx.so", "-Wl,-soname,libx.so");
    toy_lib(t, "liba.so", "-Wl,-soname,liba.so -L%/a -lx -Wl,-rpath,$ORIGIN/a");
    toy_lib(t, "libb.so", "-Wl,-soname,libb.so -L%/b -lx -Wl,-rpath,$ORIGIN/b");
    top = toy_lib(t, "top.so", "-la -lb" HERE);
    close_over(f, top, EXTI_CLOSURE_ALL);
    assert_int_equal(f->g.count, 4);
    assert_int_equal(node_of(f, "libb.so")->needs[0].node, index_of(f, "a/libx.so"));
    assert_string_equal(toy_traced(t, toy_trace(t, NULL, top), "libx.so"),
                        test_path(t, "a/libx.so"));
    /* As separate roots, each has its own. */
    open_closure(f, (struct exti_closure_opts){0});
    add_root(f, test_path(t, "liba.so"));
    add_root(f, test_path(t, "libb.so"));
    assert_int_equal(f->g.count, 4);
    assert_int_equal(node_of(f, "libb.so")->needs[0].node, index_of(f, "b/libx.so"));
}

static void missing_libraries_are_reported(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *top = make_chain(f);

    unlink(test_path(t, "libside.so"));
    toy_text(t, "libmid.so",
             "/* GNU ld script */ GROUP ( libmid.so.1 libmid_nonshared.a ) and so on");
    close_over(f, top, EXTI_CLOSURE_ALL);
    assert_int_equal(f->g.count, 1);
    assert_int_equal(f->g.missing, 2);
    assert_string_equal(f->g.nodes[0].needs[0].name, "libmid.so");
    assert_int_equal(f->g.nodes[0].needs[0].node, EXTI_NO_NODE);
    assert_contains(f->g.nodes[0].needs[0].problem, "not an ELF file");
    assert_contains(f->g.nodes[0].needs[1].problem, "none of the folders");
}

static void roots_that_cannot_be_read_are_errors(void **state)
{
    struct fixture *f = *state;
    const char *root = test_path(f->t, "none.so");
    size_t node = 7;

    open_closure(f, (struct exti_closure_opts){0});
    assert_int_equal(exti__closure_add(&f->g, root, true, &node, &f->t->err), EXTI_E_IO);
    assert_string_equal(f->t->err.file, root);
    test_write(root, "text", 4);
    assert_int_equal(exti__closure_add(&f->g, root, true, &node, &f->t->err), EXTI_E_FORMAT);
    assert_int_equal(exti__closure_add(&f->g, "none.so", true, &node, &f->t->err), EXTI_E_ARG);
    assert_int_equal(f->g.count, 0);
    assert_int_equal(node, 7);
    exti__closure_close(&f->g);
    assert_int_equal(
        exti__closure_init(&f->g, &(struct exti_closure_opts){.api_library = root}, &f->t->err),
        EXTI_E_FORMAT);
    assert_int_equal(f->g.count, 0);
}

static void every_allocation_may_fail(void **state)
{
    struct fixture *f = *state;
    const char *top = make_chain(f);
    struct exti_closure_opts o = {.search = f->s, .api_library = test_path(f->t, "libside.so")};
    size_t node;
    long n;
    int rc = EXTI_E_NOMEM;

    for (n = 0; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__closure_init(&f->g, &o, &f->t->err);
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || rc == EXTI_E_NOMEM);
    }
    assert_true(n > 10);
    for (n = 0, rc = EXTI_E_NOMEM; rc; n++) {
        assert_int_equal(f->g.count, 1);
        exti__mem_fail_after(n);
        rc = exti__closure_add(&f->g, top, true, &node, &f->t->err);
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || rc == EXTI_E_NOMEM);
    }
    assert_true(n > 50);
    assert_int_equal(f->g.count, 4);
    assert_int_equal(node, 1);
    for (n = 0, rc = EXTI_E_NOMEM; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__closure_find(&f->g, node, "libc.so.6", &node, &f->t->err);
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || rc == EXTI_E_NOMEM);
    }
    assert_true(n > 10 && f->g.count > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        closure_test(every_library_is_a_node),
        closure_test(dependencies_are_shared_in_modes_api_and_none),
        closure_test(libraries_that_use_the_api_isolate_those_that_need_them),
        closure_test(needs_of_the_api_lead_to_its_node),
        closure_test(shared_libraries_use_originals),
        closure_test(a_library_that_a_rule_isolates_isolates_those_that_need_it),
        closure_test(circles_of_needs_end),
        closure_test(order_of_roots_does_not_matter),
        closure_test(roots_are_added_one_by_one),
        closure_test(needs_found_by_name_from_anywhere_are_marked),
        closure_test(one_file_with_several_names_is_one_node),
        closure_test(names_of_loaded_files_come_before_the_search),
        closure_test(missing_libraries_are_reported),
        closure_test(roots_that_cannot_be_read_are_errors),
        closure_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("closure", tests, NULL, NULL);
}
