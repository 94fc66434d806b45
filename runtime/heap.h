/* The memory that CPython takes from the system, owned by the context: finalising does not give it
 * all back. */
#ifndef RUNTIME_HEAP_H
#define RUNTIME_HEAP_H

#include "runtime/pyapi.h"

struct pyrt_heap;
int pyrt_heap_new(struct pyrt_heap **out, struct exti_error *err);

/* Makes the heap the source of CPython's raw memory and arenas.  Between Py_PreInitialize, which
 * sets the allocators, and whatever else calls for memory. */
void pyrt_heap_install(struct pyrt_heap *h, const struct pyrt_api *py);

/* Gives back all that CPython has not.  Once no code of the context is mapped any more: its
 * destructors use the memory up to the end.  NULL ok. */
void pyrt_heap_free(struct pyrt_heap *h);

#endif
