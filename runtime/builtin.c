#include "runtime/builtin.h"

#include "runtime/fail.h"
#include "runtime/module.h"

/* Identifiers of PyModuleDef_Slot, and values of the last two. */
#define EXEC 2
#define MULTIPLE_INTERPRETERS 3 /* from 3.12 on */
#define GIL 4                   /* from 3.13 on */
#define NOT_SUPPORTED ((void *)0)
#define NOT_USED ((void *)1)

/* That of the context whose main thread this is.  No other thread makes the module: the others of
 * the interpreter find it in sys.modules, and sub-interpreters with a GIL are refused it. */
static _Thread_local struct pyrt_builtin *of_thread;

static struct pyobj *define(void)
{
    return of_thread ? of_thread->py->PyModuleDef_Init(&of_thread->object) : NULL;
}

static int fill(struct pyobj *module)
{
    const struct pyrt_builtin *b = of_thread;

    return b ? pyrt_module_fill(b->py, module, b->ctx, b->index, b->count) : -1;
}

int pyrt_builtin_add(struct pyrt_builtin *b, const struct pyrt_api *py, const struct exti_ctx *ctx,
                     int index, int count, struct exti_error *err)
{
    struct pyrt_module_definition *definition =
        py->build.free_threaded ? &b->object.threaded.definition : &b->object.usual.definition;
    size_t n = 0;

    *b = (struct pyrt_builtin){.py = py, .ctx = ctx, .index = index, .count = count};
    b->slots[n++] = (struct pyrt_module_slot){EXEC, {.exec = fill}};
    if (py->build.minor >= 12)
        b->slots[n++] = (struct pyrt_module_slot){MULTIPLE_INTERPRETERS, {.choice = NOT_SUPPORTED}};
    if (py->build.minor >= 13)
        b->slots[n++] = (struct pyrt_module_slot){GIL, {.choice = NOT_USED}};
    *definition = (struct pyrt_module_definition){.name = PYRT_MODULE_NAME, .slots = b->slots};
    of_thread = b;
    if (py->PyImport_AppendInittab(PYRT_MODULE_NAME, define) != 0)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    return 0;
}

int pyrt_builtin_import(const struct pyrt_builtin *b)
{
    struct pyobj *m = b->py->PyImport_ImportModule(PYRT_MODULE_NAME);

    b->py->Py_DecRef(m);
    return m ? 0 : -1;
}
