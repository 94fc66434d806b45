/* How a table of links reaches Python's objects.  Counts are changed and references followed by
 * millions, without a context at hand that would give the functions: so this is by their layout, as
 * in Include/object.h, Include/cpython/object.h and Include/internal/pycore_gc.h of CPython 3.9 to
 * 3.15, and each context's is checked. */
#include "runtime/embed/context.h"
#include "runtime/fail.h"
#include <extisolate/link.h>

typedef int (*visit_function)(struct pyobj *object, void *arg);
typedef int (*traverse_function)(struct pyobj *object, visit_function visit, void *arg);

struct laid_out_type;

/* PyObject */
struct laid_out {
    union {
        intptr_t word; /* before 3.12 it is the count */
        int32_t halves[2];
    } count;
    const struct laid_out_type *type;
};

/* PyTypeObject, as far as to tp_traverse. */
struct laid_out_type {
    struct laid_out base;
    ptrdiff_t size;
    const char *name;
    ptrdiff_t sizes[2];
    void (*slots[15])(void); /* tp_dealloc to tp_as_buffer */
    unsigned long flags;
    const char *doc;
    traverse_function traverse;
    void (*more_slots[17])(void);
    int (*is_gc)(struct pyobj *object);
};

/* PyGC_Head, which is before the object; 0: the collector does not know it (yet). */
struct laid_out_head {
    uintptr_t next, previous;
};

#define HAS_HEAD (1ul << 14) /* Py_TPFLAGS_HAVE_GC */

/* ---- counts ---- */

static int64_t count_word(void *user, const void *native)
{
    (void)user;
    return ((const struct laid_out *)native)->count.word;
}

static void add_to_word(void *user, void *native, int64_t n)
{
    (void)user;
    ((struct laid_out *)native)->count.word += (intptr_t)n;
}

/* From 3.12 on it is the lower half, and an object whose count is negative there is immortal
 * (PEP 683); from 3.14 on the upper one is used otherwise. */
static int32_t *half_of(const void *native)
{
    const int big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

    return &((struct laid_out *)native)->count.halves[big_endian];
}

static int64_t count_half(void *user, const void *native)
{
    (void)user;
    return *half_of(native) < 0 ? INT32_MAX : *half_of(native);
}

static void add_to_half(void *user, void *native, int64_t n)
{
    (void)user;
    if (*half_of(native) >= 0)
        *half_of(native) += (int32_t)n;
}

/* ---- references ---- */

struct visiting {
    exti_native_visit visit;
    void *arg;
};

static int visit_object(struct pyobj *object, void *arg)
{
    const struct visiting *v = arg;

    return v->visit(object, v->arg);
}

/* PyObject_GC_IsTracked */
static int is_tracked(const struct laid_out_type *type, void *native)
{
    return (type->flags & HAS_HEAD) && (!type->is_gc || type->is_gc(native)) &&
           ((struct laid_out_head *)native)[-1].next;
}

static int traverse(void *user, void *native, exti_native_visit visit, void *arg)
{
    const struct laid_out_type *type = ((struct laid_out *)native)->type;
    struct visiting v = {visit, arg};

    (void)user;
    if (!is_tracked(type, native))
        return 0;
    return type->traverse(native, visit_object, &v);
}

/* ---- the check ---- */

struct seen {
    struct pyobj *object;
    int times;
};

static int see(void *native, void *arg)
{
    struct seen *s = arg;

    s->times += native == s->object;
    return native != s->object;
}

static int counts_as(const struct exti_natives *n, struct extipy_ctx *c, struct pyobj *object,
                     int64_t count)
{
    int known = n->count(NULL, object) == count;

    c->py.Py_IncRef(object);
    n->add(NULL, object, 1);
    known = known && n->count(NULL, object) == count + 2;
    n->add(NULL, object, -1);
    c->py.Py_DecRef(object);
    return known && n->count(NULL, object) == count;
}

static int is_of(const struct extipy_ctx *c, struct pyobj *object, struct pyobj *type)
{
    const struct laid_out_type *t = ((struct laid_out *)object)->type;

    return (const void *)t == type && t->flags == c->calls.PyType_GetFlags(type) &&
           (t->flags & HAS_HEAD);
}

/* A type that is not on the heap is not the collector's, which its own type says. */
static int knows_static_types(const struct exti_natives *n, struct extipy_ctx *c)
{
    struct seen seen = {0};

    return is_of(c, c->calls.PyList_Type, c->calls.PyType_Type) &&
           n->traverse(NULL, c->calls.PyList_Type, see, &seen) == 0;
}

/* `list` has `item` alone. */
static int is_laid_out(const struct exti_natives *n, struct extipy_ctx *c, struct pyobj *list,
                       struct pyobj *item)
{
    struct seen seen = {.object = item};

    if (!counts_as(n, c, list, 1) || !counts_as(n, c, item, 2) ||
        !is_of(c, list, c->calls.PyList_Type) || !knows_static_types(n, c) ||
        n->traverse(NULL, list, see, &seen) != 0)
        return 0;
    c->calls.PyObject_GC_UnTrack(list);
    n->traverse(NULL, list, see, &seen);
    c->calls.PyObject_GC_Track(list);
    return seen.times == 1;
}

/* -1: without memory. */
static int check(const struct exti_natives *n, struct extipy_ctx *c)
{
    struct pyobj *list = c->py.PyList_New(0), *item = c->py.PyList_New(0);
    int known = -1;

    if (list && item && c->py.PyList_Append(list, item) == 0)
        known = is_laid_out(n, c, list, item);
    else
        c->py.PyErr_Clear();
    c->py.Py_DecRef(list);
    c->py.Py_DecRef(item);
    return known;
}

int extipy_natives(struct exti_natives *out, struct extipy_ctx *c, struct exti_error *err)
{
    struct exti_natives natives = {.count = count_word, .add = add_to_word, .traverse = traverse};
    int known;

    if (!out || !c)
        return pyrt_fail(err, EXTI_E_ARG, "out or the context is NULL");
    if (c->py.build.free_threaded)
        return pyrt_fail(err, EXTI_E_UNSUPPORTED,
                         "this CPython is built without the GIL: no lock guards the counts of its "
                         "objects, so they cannot be linked; take a build with the GIL");
    if (!c->calls.current_state())
        return pyrt_fail(err, EXTIPY_E_PLACE, "this thread does not have the context's GIL");
    if (c->py.build.minor >= 12) {
        natives.count = count_half;
        natives.add = add_to_half;
    }
    known = check(&natives, c);
    if (known < 0)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    if (!known)
        return pyrt_fail(err, EXTI_E_UNSUPPORTED,
                         "objects of CPython 3.%d are not laid out as in any version that this "
                         "library knows",
                         c->py.build.minor);
    *out = natives;
    return 0;
}
