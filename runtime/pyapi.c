#include "runtime/pyapi.h"

#include <string.h>

int pyrt_symbol_find(struct exti_module *m, const char *name, void *slot, struct exti_error *err)
{
    void *p;
    int rc = exti_symbol(m, name, &p, err);

    /* ISO C cannot convert object to function pointers; on POSIX both have the same layout. */
    if (rc == 0)
        memcpy(slot, &p, sizeof p);
    return rc;
}

int pyrt_symbols_find(struct exti_module *m, const struct pyrt_symbol *table, size_t count,
                      struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = pyrt_symbol_find(m, table[i].name, table[i].slot, err);
    return rc;
}

int pyrt_api_find(struct pyrt_api *out, struct exti_module *libpython, struct pyrt_build build,
                  struct exti_error *err)
{
    struct pyrt_api api = {.build = build};
#define ENTRY(type, name, args) {#name, &api.name},
    const struct pyrt_symbol every[] = {
        PYRT_FUNCTIONS(ENTRY) /* */
        {"_Py_NoneStruct", &api.none},
        {"PyLong_Type", &api.long_type},
        {"PyExc_SystemExit", &api.system_exit},
        {"PyExc_KeyboardInterrupt", &api.keyboard_interrupt},
        {"PyExc_RuntimeError", &api.runtime_error},
    };
    const struct pyrt_symbol layout[] = {PYRT_CONFIG_FUNCTIONS(ENTRY)};
    const struct pyrt_symbol named[] = {PYRT_INITCONFIG_FUNCTIONS(ENTRY)};
#undef ENTRY
    int rc = pyrt_symbols_find(libpython, every, sizeof every / sizeof *every, err);

    if (rc == 0 && build.minor > PYRT_MINOR_LAYOUT)
        rc = pyrt_symbols_find(libpython, named, sizeof named / sizeof *named, err);
    else if (rc == 0)
        rc = pyrt_symbols_find(libpython, layout, sizeof layout / sizeof *layout, err);
    if (rc == 0)
        *out = api;
    return rc;
}
