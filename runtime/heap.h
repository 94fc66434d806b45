/* Tracks the memory that a context's CPython allocates, because Py_FinalizeEx does not free all of
 * it. */
#ifndef RUNTIME_HEAP_H
#define RUNTIME_HEAP_H

#include "runtime/pyapi.h"

struct pyrt_heap;
int pyrt_heap_new(struct pyrt_heap **out, struct exti_error *err);

/* Makes CPython take raw memory and arenas from the heap.  Call it right after Py_PreInitialize,
 * which sets the allocators, and before anything else allocates. */
void pyrt_heap_install(struct pyrt_heap *h, const struct pyrt_api *py);

/* What the interpreter has of it at the moment.  NULL ok: 0. */
size_t pyrt_heap_bytes(struct pyrt_heap *h);

/* Frees whatever CPython has not.  Call it when no code of the context is mapped any more, because
 * destructors use the memory until then.  NULL ok. */
void pyrt_heap_free(struct pyrt_heap *h);

#endif
