#include "runtime/pyapi.h"

#include <string.h>

static int find_symbol(struct exti_module *m, const char *name, void *slot, struct exti_error *err)
{
    void *p;
    int rc = exti_symbol(m, name, &p, err);

    /* ISO C cannot convert object to function pointers; on POSIX both have the same layout. */
    if (rc == 0)
        memcpy(slot, &p, sizeof p);
    return rc;
}

struct entry {
    const char *name;
    void *slot;
};

static int find_all(struct exti_module *m, const struct entry *table, size_t count,
                    struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = find_symbol(m, table[i].name, table[i].slot, err);
    return rc;
}

int pyrt_api_find(struct pyrt_api *out, struct exti_module *libpython, struct pyrt_build build,
                  struct exti_error *err)
{
    struct pyrt_api api = {.build = build};
#define ENTRY(type, name, args) {#name, &api.name},
    const struct entry every[] = {
        PYRT_FUNCTIONS(ENTRY) /* */
        {"_Py_NoneStruct", &api.none},
        {"PyLong_Type", &api.long_type},
        {"PyExc_SystemExit", &api.system_exit},
        {"PyExc_KeyboardInterrupt", &api.keyboard_interrupt},
        {"PyExc_RuntimeError", &api.runtime_error},
    };
    const struct entry layout[] = {PYRT_CONFIG_FUNCTIONS(ENTRY)};
    const struct entry named[] = {PYRT_INITCONFIG_FUNCTIONS(ENTRY)};
#undef ENTRY
    int rc = find_all(libpython, every, sizeof every / sizeof *every, err);

    if (rc == 0 && build.minor > PYRT_MINOR_LAYOUT)
        rc = find_all(libpython, named, sizeof named / sizeof *named, err);
    else if (rc == 0)
        rc = find_all(libpython, layout, sizeof layout / sizeof *layout, err);
    if (rc == 0)
        *out = api;
    return rc;
}
