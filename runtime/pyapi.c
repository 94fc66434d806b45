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

int pyrt_api_find(struct pyrt_api *out, struct exti_module *libpython, struct pyrt_build build,
                  struct exti_error *err)
{
    struct pyrt_api api = {.build = build};
    const struct {
        const char *name;
        void *slot;
    } table[] = {
#define ENTRY(type, name, args) {#name, &api.name},
        PYRT_FUNCTIONS(ENTRY)
#undef ENTRY
            {"_Py_NoneStruct", &api.none},
        {"PyLong_Type", &api.long_type},
        {"PyExc_SystemExit", &api.system_exit},
        {"PyExc_KeyboardInterrupt", &api.keyboard_interrupt},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int rc = find_symbol(libpython, table[i].name, table[i].slot, err);
        if (rc < 0)
            return rc;
    }
    *out = api;
    return 0;
}
