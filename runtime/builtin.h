/* The module `extisolate` as one that is built into the interpreter, so that what runs when it
 * starts (sitecustomize, the lines of .pth files) can import it, too. */
#ifndef RUNTIME_BUILTIN_H
#define RUNTIME_BUILTIN_H

#include "runtime/pyapi.h"

/* PyModuleDef_Slot */
struct pyrt_module_slot {
    int id;
    union {
        int (*exec)(struct pyobj *module);
        void *choice;
    } value;
};

/* PyModuleDef, without the PyObject that it begins with. */
struct pyrt_module_definition {
    void *init;
    ptrdiff_t index;
    struct pyobj *copy;
    const char *name, *doc;
    ptrdiff_t size;
    const struct pyrt_method *methods;
    const struct pyrt_module_slot *slots;
    void *traverse, *clear, *free;
};

/* A context's.  It must live as long as the context's libpython. */
struct pyrt_builtin {
    union {
        struct {
            ptrdiff_t count;
            void *type;
            struct pyrt_module_definition definition;
        } usual;
        struct {
            uintptr_t thread;
            uint32_t bits, local;
            ptrdiff_t shared;
            void *type;
            struct pyrt_module_definition definition;
        } threaded; /* of a CPython without the GIL */
    } object;
    struct pyrt_module_slot slots[4];
    const struct pyrt_api *py;
    const struct exti_ctx *ctx;
    int index, count;
};

/* Has the interpreter know it, which the calling thread is about to initialise.  Parameters as of
 * pyrt_module_add. */
int pyrt_builtin_add(struct pyrt_builtin *b, const struct pyrt_api *py, const struct exti_ctx *ctx,
                     int index, int count, struct exti_error *err);
/* Imports it on the same thread, which has the GIL.  -1 with an exception set. */
int pyrt_builtin_import(const struct pyrt_builtin *b);

#endif
