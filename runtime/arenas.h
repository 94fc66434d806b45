/* The arenas of CPythons' object allocators, as PyObject_SetArenaAllocator has them.  What one
 * context frees the next one gets: for the kernel to clear a new page takes longer than to fill it.
 * Any thread. */
#ifndef RUNTIME_ARENAS_H
#define RUNTIME_ARENAS_H

#include <stddef.h>

/* NULL without memory.  An arena has any contents. */
void *pyrt_arena_take(size_t size);

/* Keeps it for later, if not more is kept than used, and no more than 32 MB. */
void pyrt_arena_give(void *arena, size_t size);

/* Around fork: a lock that another thread holds then would stay locked in the child. */
void pyrt_arenas_lock(void);
void pyrt_arenas_unlock(void);

#endif
