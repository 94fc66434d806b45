/* One of the contexts of a machine: its Python objects, what native code there has of them, and how
 * the machine does to them what native code does.  Each object tells by a capsule when it ends. */
#ifndef TESTS_PYTHON_LINK_SIDE_H
#define TESTS_PYTHON_LINK_SIDE_H

#include "tests/python/support/host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/link/heap.h"

struct machine;
struct side;

enum revives { NEVER, BY_LIST, BY_PROXY };

/* A Python object, and what the model knows of it. */
struct thing {
    void *object;
    struct side *side;
    struct thing *fields[FIELDS]; /* as the object's items are */
    struct object *at;            /* its object or proxy, as of the last walk */
    void *weak;                   /* a weak reference to it, or NULL */
    bool unsure; /* Python's collector may have cleared that, although it was revived */
    bool shell;  /* has its object as long as it can be reached */
    bool waits;  /* may be one that exti_links_next_dead is to give */
    bool finalised, ended;
    enum revives revives; /* its end is not its end, once */
    size_t links, held;   /* references: bases of links, and those of native code */
    size_t gone;          /* links of whose end the table has been told, maybe */
    size_t referred;      /* those of other things' fields, as of the last walk */
    size_t litter;        /* garbage that refers to it, at most */
    unsigned seen;
};

struct things {
    struct thing **all;
    size_t count, capacity;
};

struct definition { /* PyMethodDef */
    const char *name;
    void *(*function)(void *self, void *argument);
    int flags;
    const char *doc;
};

struct api {
    void (*incref)(void *object);
    void (*decref)(void *object);
    void *(*call)(void *function, ...);
    int (*set_attribute)(void *object, const char *name, void *value);
    void *(*attribute)(void *object, const char *name);
    void *(*capsule)(void *pointer, const char *name, void (*destroy)(void *capsule));
    void *(*pointer)(void *capsule, const char *name);
    void *(*item)(void *list, ptrdiff_t at); /* borrowed */
    int (*set_item)(void *list, ptrdiff_t at, void *item);
    ptrdiff_t (*length)(void *list);
    int (*set_slice)(void *list, ptrdiff_t begin, ptrdiff_t end, void *items);
    void *(*weak)(void *object, void *callback);
    void *(*number)(long n);
    void *(*truth)(long n);
    void *(*function)(const struct definition *d, void *self, void *module);
    void *(*module)(const char *name); /* borrowed */
    int (*occurred)(void *exception);
    void (*clear)(void);
};

struct side {
    struct machine *m;
    size_t number; /* of its table */
    struct extipy_ctx *c;
    pthread_rwlock_t lives; /* against its end; for threads that have not the machine's lock */
    struct api py;
    struct exti_natives natives;
    void *none, *fields, *node, *use, *churn, *collect, *revived, *error, *numbers[8];
    struct things held; /* references of native code */
};

/* The side that the machine is in. */
static struct side *inside;

/* Of the machine: */
static void thing_ended(struct machine *m, struct thing *t);
static bool thing_finalised(struct machine *m, struct thing *t);
static void hold(struct thing *t);

static inline void push(struct things *list, struct thing *t)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 64;
        list->all = realloc(list->all, list->capacity * sizeof *list->all);
        assert_non_null(list->all);
    }
    list->all[list->count++] = t;
}

static inline struct thing *take_out(struct things *list, size_t i)
{
    struct thing *t = list->all[i];

    list->all[i] = list->all[--list->count];
    return t;
}

/* ---- what Python calls --------------------------------------------------------------------- */

/* Python may have cleared an object before it ends it; nobody reaches it any more then. */
static void capsule_ended(void *capsule)
{
    thing_ended(inside->m, inside->py.pointer(capsule, NULL));
}

static inline struct thing *thing_in(const struct side *s, void *object)
{
    void *capsule = s->py.attribute(object, "capsule");
    struct thing *t = s->py.pointer(capsule, NULL);

    s->py.decref(capsule);
    return t;
}

static void *finalise(void *self, void *object)
{
    (void)self;
    return inside->py.truth(thing_finalised(inside->m, thing_in(inside, object)));
}

static const struct definition finalise_definition = {"finalise", finalise, 8 /* METH_O */, NULL};

/* What the objects reach is no more than is here, so that a look at all that natives refer to is
 * not one at the whole interpreter.  What is there by then Python's collector leaves alone. */
static const char source[] =
    "import gc, builtins\n"
    "gc.disable()\n"
    "world = {'finalise': finalise, 'revived': [], 'list': list, 'Error': ValueError,\n"
    "         '__name__': 'world', '__builtins__': {'__build_class__': builtins.__build_class__}}\n"
    "exec('''\n"
    "class Node(list):\n"
    "    __slots__ = 'capsule', '__weakref__'\n"
    "    def __del__(self):\n"
    "        if finalise(self):\n"
    "            revived.append(self)\n"
    "def use(how, a, b, at):\n"
    "    if how == 1:\n"
    "        a[at] = b\n"
    "    elif how == 2:\n"
    "        a[at] = b\n"
    "        raise Error(a)\n"
    "    elif how == 3:\n"
    "        a[at], a[0] = a[0], a[at]\n"
    "    elif how == 4:\n"
    "        try:\n"
    "            raise Error(b)\n"
    "        except Error as error:\n"
    "            itself = error\n" /* a circle: error, traceback, frame */
    "    return a\n"
    "def churn(n):\n"
    "    lists = [[n, [k]] for k in (n, n, n)]\n"
    "    for l in lists:\n"
    "        l.append(lists)\n"
    "        l.clear()\n"
    "''', world)\n"
    "world['__builtins__'].clear()\n"
    "gc.collect()\n"
    "gc.freeze()\n";

enum use { RETURNS, STORES, STORES_AND_RAISES, SWAPS, LITTERS, USES };

/* ---- contexts ------------------------------------------------------------------------------ */

static inline void enter(struct side *s)
{
    host_must(extipy_enter(s->c, NULL));
    inside = s;
}

/* Native code has got what finalisers put into the list. */
static inline void take_revived(struct side *s)
{
    const ptrdiff_t count = s->py.length(s->revived);

    for (ptrdiff_t i = 0; i < count; i++)
        hold(thing_in(s, s->py.item(s->revived, i)));
    if (count)
        host_must(s->py.set_slice(s->revived, 0, count, NULL));
}

/* Finalisers have nothing to put into the list any more. */
static inline void leave_for_good(struct side *s)
{
    inside = NULL;
    host_must(extipy_leave(s->c, NULL));
}

static inline void leave(struct side *s)
{
    take_revived(s);
    inside = NULL;
    host_must(extipy_leave(s->c, NULL));
}

static inline void side_symbols(struct side *s)
{
    struct api *py = &s->py;

    host_symbol(s->c, "Py_IncRef", &py->incref);
    host_symbol(s->c, "Py_DecRef", &py->decref);
    host_symbol(s->c, "PyObject_CallFunctionObjArgs", &py->call);
    host_symbol(s->c, "PyObject_SetAttrString", &py->set_attribute);
    host_symbol(s->c, "PyObject_GetAttrString", &py->attribute);
    host_symbol(s->c, "PyCapsule_New", &py->capsule);
    host_symbol(s->c, "PyCapsule_GetPointer", &py->pointer);
    host_symbol(s->c, "PyList_GetItem", &py->item);
    host_symbol(s->c, "PyList_SetItem", &py->set_item);
    host_symbol(s->c, "PyList_Size", &py->length);
    host_symbol(s->c, "PyList_SetSlice", &py->set_slice);
    host_symbol(s->c, "PyWeakref_NewRef", &py->weak);
    host_symbol(s->c, "PyLong_FromLong", &py->number);
    host_symbol(s->c, "PyBool_FromLong", &py->truth);
    host_symbol(s->c, "PyCFunction_NewEx", &py->function);
    host_symbol(s->c, "PyImport_AddModule", &py->module);
    host_symbol(s->c, "PyErr_ExceptionMatches", &py->occurred);
    host_symbol(s->c, "PyErr_Clear", &py->clear);
}

static inline void *evaluate(const struct side *s, const char *expression)
{
    void *(*run)(const char *, int, void *, void *);
    void *globals = s->py.attribute(s->py.module("__main__"), "__dict__");
    void *object;

    host_symbol(s->c, "PyRun_String", &run);
    object = run(expression, 258 /* Py_eval_input */, globals, globals);
    s->py.decref(globals);
    host_must(object ? 0 : EXTIPY_E_RAISED);
    return object;
}

/* Also on threads that are not the test's. */
static inline void side_open(struct side *s)
{
    void *function;

    host_must(extipy_open(&s->c, host_python(), NULL, NULL));
    side_symbols(s);
    enter(s);
    host_must(extipy_natives(&s->natives, s->c, NULL));
    function = s->py.function(&finalise_definition, NULL, NULL);
    s->py.set_attribute(s->py.module("__main__"), "finalise", function);
    s->py.decref(function);
    host_must(host_run_inside(s->c, source));
    s->none = evaluate(s, "None");
    s->fields = evaluate(s, "[None] * 4");
    s->node = evaluate(s, "world['Node']");
    s->use = evaluate(s, "world['use']");
    s->churn = evaluate(s, "world['churn']");
    s->revived = evaluate(s, "world['revived']");
    s->error = evaluate(s, "ValueError");
    s->collect = evaluate(s, "gc.collect");
    for (size_t i = 0; i < ARRAY_SIZE(s->numbers); i++)
        s->numbers[i] = s->py.number((long)i);
    leave(s);
}

/* The thread is inside, and there are no more objects of native code's. */
static inline void side_drop(struct side *s)
{
    void *all[] = {s->none, s->fields, s->node, s->use, s->churn, s->revived, s->error, s->collect};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        s->py.decref(all[i]);
    for (size_t i = 0; i < ARRAY_SIZE(s->numbers); i++)
        s->py.decref(s->numbers[i]);
}

/* ---- what native code does; the thread is inside -------------------------------------------- */

/* A new object with a reference, which is the caller's. */
static inline void *node_new(const struct side *s, struct thing *t)
{
    void *object = s->py.call(s->node, s->fields, NULL);
    void *capsule = s->py.capsule(t, NULL, capsule_ended);

    host_must(object && capsule ? 0 : EXTI_E_NOMEM);
    host_must(s->py.set_attribute(object, "capsule", capsule));
    s->py.decref(capsule);
    return object;
}

static inline void node_store(const struct side *s, const struct thing *t, uint32_t field,
                              const struct thing *to)
{
    void *item = to ? to->object : s->none;

    s->py.incref(item);
    host_must(s->py.set_item(t->object, field, item));
}

/* What the function gives, with a reference; NULL: it has raised. */
static inline void *node_use(const struct side *s, enum use how, const struct thing *t,
                             const struct thing *to, uint32_t field)
{
    void *result = s->py.call(s->use, s->numbers[how], t->object, to ? to->object : s->none,
                              s->numbers[field], NULL);

    if (!result) {
        host_must(s->py.occurred(s->error) ? 0 : EXTIPY_E_RAISED);
        s->py.clear();
    }
    return result;
}

/* What the weak reference gives, with a reference; NULL: nothing. */
static inline void *node_weak(const struct side *s, const struct thing *t)
{
    void *object = s->py.call(t->weak, NULL);

    host_must(object ? 0 : EXTIPY_E_RAISED);
    if (object != s->none)
        return object;
    s->py.decref(object);
    return NULL;
}

static inline void collect_garbage(const struct side *s, uint32_t generation)
{
    void *count = s->py.call(s->collect, s->numbers[generation], NULL);

    host_must(count ? 0 : EXTIPY_E_RAISED);
    s->py.decref(count);
}

static inline int64_t node_count(const struct side *s, const struct thing *t)
{
    return s->natives.count(NULL, t->object);
}

#endif
