#include "bindings/python/ext/python.h"

#include "bindings/python/ext/natives.h"

#include "bindings/python/ext/object.h"

/* ---- counts ---- */

/* From CPython 3.12 on a count has 32 bits, and what is negative in them is immortal (PEP 683);
 * from 3.14 on other bits share the word with it. */
static int counts_are_small; /* the word is the count */

static int32_t *low_half(PyObject *o)
{
    return (int32_t *)(void *)o + (PY_BIG_ENDIAN ? 1 : 0);
}

static int64_t count(void *user, const void *native)
{
    PyObject *o = (PyObject *)native;

    (void)user;
    if (counts_are_small)
        return *low_half(o) < 0 ? INT32_MAX : *low_half(o);
    return (int64_t)o->ob_refcnt;
}

static void add(void *user, void *native, int64_t n)
{
    PyObject *o = native;

    (void)user;
    if (!counts_are_small)
        o->ob_refcnt += (Py_ssize_t)n;
    else if (*low_half(o) >= 0)
        *low_half(o) += (int32_t)n;
}

/* ---- references ---- */

struct visiting {
    exti_native_visit visit;
    void *arg;
};

static int visit_object(PyObject *object, void *arg)
{
    const struct visiting *v = arg;

    return v->visit(object, v->arg);
}

static traverseproc traverse_of(PyTypeObject *type)
{
#ifdef Py_LIMITED_API
    return (traverseproc)PyType_GetSlot(type, Py_tp_traverse);
#else
    return type->tp_traverse;
#endif
}

/* What CPython's own collector would follow. */
static int traverse(void *user, void *native, exti_native_visit visit, void *arg)
{
    struct visiting v = {visit, arg};
    PyObject *o = native;
    traverseproc proc;

    (void)user;
    if (!PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HAVE_GC) || !PyObject_GC_IsTracked(o))
        return 0;
    proc = traverse_of(Py_TYPE(o));
    return proc ? proc(o, visit_object, &v) : 0;
}

/* ---- handles ---- */

static int survives(void *user, exti_host_word *word)
{
    (void)user;
    return ((struct pkg_object *)*word)->marked;
}

static void keep(void *user, exti_host_word word)
{
    struct pkg_object *o = (struct pkg_object *)word;

    (void)user;
    o->marked = true;
    if (o->native)
        exti_link_marked(o->heap->links, o->native);
}

/* Handles keep their objects, and proxies their handles, so that no reference is ever made strong
 * or weak. */
static int strengthen(void *user, exti_host_word word)
{
    (void)user;
    (void)word;
    return 0;
}

static void weaken(void *user, exti_host_word word)
{
    (void)user;
    (void)word;
}

int pkg_natives_open(struct exti_links **out)
{
    const struct exti_links_opts opts = {
        .size = sizeof opts,
        .natives = {.count = count, .add = add, .traverse = traverse},
        .marking = {survives, keep},
        .toggling = {.strengthen = strengthen, .weaken = weaken},
    };

#ifdef Py_LIMITED_API
    counts_are_small = Py_Version >= 0x030C0000;
#endif
    return exti_links_open(out, &opts, NULL);
}
