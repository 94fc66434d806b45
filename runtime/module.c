#include "runtime/module.h"

#include "runtime/fail.h"

int pyrt_module_fill(const struct pyrt_api *py, struct pyobj *module, const struct exti_ctx *ctx,
                     int index, int count)
{
    if (py->PyModule_AddIntConstant(module, "index", index) == 0 &&
        py->PyModule_AddIntConstant(module, "count", count) == 0 &&
        py->PyModule_AddStringConstant(module, "name", exti_ctx_name(ctx)) == 0)
        return 0;
    return -1;
}

int pyrt_module_add(const struct pyrt_api *py, const struct exti_ctx *ctx, int index, int count,
                    struct exti_error *err)
{
    struct pyobj *m = py->PyImport_AddModule(PYRT_MODULE_NAME);

    if (m && pyrt_module_fill(py, m, ctx, index, count) == 0)
        return 0;
    py->PyErr_Clear();
    return pyrt_fail(err, EXTI_E_NOMEM, "cannot make the module " PYRT_MODULE_NAME);
}
