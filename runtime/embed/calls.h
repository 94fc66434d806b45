/* The functions of the Python C API that only the library of contexts calls: see runtime/pyapi.h. */
#ifndef RUNTIME_EMBED_CALLS_H
#define RUNTIME_EMBED_CALLS_H

#include "runtime/pyapi.h"

#define EXTIPY_FUNCTIONS(X)                                                                        \
    X(void *, PyInterpreterState_Main, (void))                                                     \
    X(void *, PyThreadState_New, (void *))                                                         \
    X(void, PyThreadState_Clear, (void *))                                                         \
    X(void, PyThreadState_DeleteCurrent, (void))                                                   \
    X(void *, PyGILState_GetThisThreadState, (void))

struct extipy_calls {
#define MEMBER(type, name, args) type(*name) args;
    EXTIPY_FUNCTIONS(MEMBER)
#undef MEMBER
    /* PyThreadState_GetUnchecked, which before 3.13 had an underscore and another name: the state
     * that has the GIL, or NULL.  From 3.12 on only if that is one of this thread. */
    void *(*current_state)(void);
};

int extipy__calls_find(struct extipy_calls *out, struct exti_module *libpython,
                       struct exti_error *err);

#endif
