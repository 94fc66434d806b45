/* Tables of links reach Python's objects: counts, references, and circles through both heaps. */
#include "tests/python/support/host.h"

#include <stdlib.h>
#include <string.h>

#include <extisolate/link.h>

#include "tests/unit/link/heap.h"

struct python {
    struct extipy_ctx *c;
    void *(*eval)(const char *source, int start, void *globals, void *locals);
    void *(*add_module)(const char *name);
    void *(*dict)(void *module);
    void (*incref)(void *object);
    void (*decref)(void *object);
    void (*print)(void);
};

static struct python python_open(void)
{
    struct python p = {.c = host_open()};

    host_symbol(p.c, "PyRun_String", &p.eval);
    host_symbol(p.c, "PyImport_AddModule", &p.add_module);
    host_symbol(p.c, "PyModule_GetDict", &p.dict);
    host_symbol(p.c, "Py_IncRef", &p.incref);
    host_symbol(p.c, "Py_DecRef", &p.decref);
    host_symbol(p.c, "PyErr_Print", &p.print);
    return p;
}

/* A reference to what the expression gives; the thread is inside. */
static void *eval(const struct python *p, const char *expression)
{
    const int eval_input = 258; /* Py_eval_input */
    void *globals = p->dict(p->add_module("__main__"));
    void *object = p->eval(expression, eval_input, globals, globals);

    if (!object)
        p->print();
    assert_non_null(object);
    return object;
}

static struct exti_natives natives_of(const struct python *p)
{
    struct exti_natives n;
    struct exti_error err = {0};

    assert_ok(extipy_natives(&n, p->c, &err), &err);
    return n;
}

struct seen {
    void *objects[8];
    size_t count;
};

static int see(void *native, void *arg)
{
    struct seen *s = arg;

    assert_true(s->count < ARRAY_SIZE(s->objects));
    s->objects[s->count++] = native;
    return 0;
}

static void counts_and_references_are_pythons(void **state)
{
    struct python p = python_open();
    struct exti_natives n;
    struct seen seen = {0};
    void *list, *item;

    (void)state;
    host_run(p.c, "item = object()\nlist_ = [item, item, None]\n");
    assert_int_equal(extipy_enter(p.c, NULL), 0);
    n = natives_of(&p);
    assert_null(n.clear);
    list = eval(&p, "list_");
    item = eval(&p, "item");
    assert_int_equal(n.count(NULL, list), 2);
    assert_int_equal(n.count(NULL, item), 4);
    n.add(NULL, item, 3);
    assert_int_equal(n.count(NULL, item), 7);
    assert_int_equal(host_run_inside(p.c, "import sys; assert sys.getrefcount(item) == 8"), 0);
    n.add(NULL, item, -3);
    assert_int_equal(n.traverse(NULL, list, see, &seen), 0);
    assert_int_equal(seen.count, 3);
    assert_ptr_equal(seen.objects[1], item); /* a list's last item comes first */
    assert_ptr_equal(seen.objects[2], item);
    seen.count = 0;
    assert_int_equal(n.traverse(NULL, item, see, &seen), 0); /* has none, and no head */
    assert_int_equal(seen.count, 0);
    p.decref(item);
    p.decref(list);
    /* Of the types only those on the heap are the collector's. */
    item = eval(&p, "object");
    assert_int_equal(n.traverse(NULL, item, see, &seen), 0);
    assert_int_equal(seen.count, 0);
    p.decref(item);
    assert_int_equal(extipy_leave(p.c, NULL), 0);
    host_close(p.c);
}

static void an_immortal_object_keeps_its_count(void **state)
{
    struct python p = python_open();
    struct extipy_python_info info = {.size = sizeof info};
    struct exti_natives n;
    int64_t count;
    void *none;

    (void)state;
    extipy_python_info(host_python(), &info);
    assert_int_equal(extipy_enter(p.c, NULL), 0);
    n = natives_of(&p);
    none = eval(&p, "None");
    count = n.count(NULL, none);
    n.add(NULL, none, 1);
    assert_int_equal(n.count(NULL, none), info.minor >= 12 ? count : count + 1);
    n.add(NULL, none, -1);
    p.decref(none);
    assert_int_equal(extipy_leave(p.c, NULL), 0);
    host_close(p.c);
}

static void only_who_has_the_gil_is_told(void **state)
{
    struct extipy_ctx *c = host_open();
    struct exti_natives n;
    struct exti_error err = {0};

    (void)state;
    assert_int_equal(extipy_natives(&n, c, &err), EXTIPY_E_PLACE);
    assert_non_null(strstr(err.message, "GIL"));
    assert_int_equal(extipy_natives(NULL, c, &err), EXTI_E_ARG);
    assert_int_equal(extipy_natives(&n, NULL, &err), EXTI_E_ARG);
    host_close(c);
}

/* An object of the host refers to the proxy of a list, which has the object's shell. */
static void a_circle_through_a_host_ends(void **state)
{
    struct python p = python_open();
    struct heap h = {0};
    struct exti_links_opts o = heap_opts(&h);
    struct exti_links_info info = {.size = sizeof info};
    struct object *object;
    void *shell, *list;

    (void)state;
    host_run(p.c, "import gc, weakref\n"
                  "class Shell: pass\n"
                  "class List(list): pass\n"
                  "shell = Shell(); list_ = List([shell])\n"
                  "shell_is, list_is = weakref.ref(shell), weakref.ref(list_)\n");
    assert_int_equal(extipy_enter(p.c, NULL), 0);
    o.natives = natives_of(&p);
    o.base = 1;
    o.light = 0;
    assert_int_equal(exti_links_open(&h.links, &o, NULL), 0);
    shell = eval(&p, "shell"); /* the references are the links' */
    list = eval(&p, "list_");
    object = heap_new(&h);
    assert_int_equal(exti_link_host(h.links, (exti_host_word)object, shell, 0), 0);
    object->fields[0] = heap_new(&h);
    object->fields[0]->in[0].native = list;
    assert_int_equal(exti_link_native(h.links, (exti_host_word)object->fields[0], list), 0);

    assert_int_equal(host_run_inside(p.c, "del shell"), 0);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(h.count, 2); /* `list_` has all */
    assert_int_equal(host_run_inside(p.c, "del list_; gc.collect(); assert list_is()"), 0);
    heap_collect(&h, EXTI_LINKS_ALL);
    assert_int_equal(h.count, 0);
    exti_links_info(h.links, &info);
    assert_int_equal(info.links, 0);
    for (void *dead; (dead = exti_links_next_dead(h.links));)
        p.decref(dead);
    assert_int_equal(host_run_inside(p.c, "gc.collect(); assert not list_is() and not shell_is()"),
                     0);
    heap_close(&h);
    assert_int_equal(extipy_leave(p.c, NULL), 0);
    host_close(p.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_references_are_pythons),
        cmocka_unit_test(an_immortal_object_keeps_its_count),
        cmocka_unit_test(only_who_has_the_gil_is_told),
        cmocka_unit_test(a_circle_through_a_host_ends),
    };

    return cmocka_run_group_tests_name("python/natives", tests, NULL, NULL);
}
