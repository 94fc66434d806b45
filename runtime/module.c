#include "runtime/module.h"

#include "runtime/fail.h"

int pyrt_module_add(const struct pyrt_api *py, const struct exti_ctx *ctx, int index, int count,
                    struct exti_error *err)
{
    struct pyobj *m = py->PyImport_AddModule("extisolate");

    if (m && py->PyModule_AddIntConstant(m, "index", index) == 0 &&
        py->PyModule_AddIntConstant(m, "count", count) == 0 &&
        py->PyModule_AddStringConstant(m, "name", exti_ctx_name(ctx)) == 0)
        return 0;
    py->PyErr_Clear();
    return pyrt_fail(err, EXTI_E_NOMEM, "cannot make the module extisolate");
}
