#include "runtime/embed/calls.h"

int extipy__calls_find(struct extipy_calls *out, struct exti_module *libpython,
                       struct exti_error *err)
{
    struct extipy_calls calls = {0};
    const struct pyrt_symbol table[] = {
#define ENTRY(type, name, args) {#name, &calls.name},
        EXTIPY_FUNCTIONS(ENTRY)
#undef ENTRY
#define ENTRY(type, name) {#name, &calls.name},
            EXTIPY_TYPES(ENTRY)
#undef ENTRY
    };
    int rc = pyrt_symbols_find(libpython, table, sizeof table / sizeof *table, err);

    if (rc == 0 &&
        pyrt_symbol_find(libpython, "PyThreadState_GetUnchecked", &calls.current_state, NULL) < 0)
        rc = pyrt_symbol_find(libpython, "_PyThreadState_UncheckedGet", &calls.current_state, err);
    if (rc == 0)
        *out = calls;
    return rc;
}
