/* The arenas of CPythons' object allocators, as PyObject_SetArenaAllocator has them.  What one
 * context frees the next one gets: for the kernel to clear a new page takes longer than to fill it.
 * Where the system gives huge pages to those who ask (madvise(2)), arenas are made of them: such a
 * page takes one entry of the processor's TLB, and its small ones 512.  Any thread. */
#ifndef RUNTIME_ARENAS_H
#define RUNTIME_ARENAS_H

#include <stddef.h>

/* NULL without memory.  An arena has any contents.  `has` is what the heap that it is for has. */
void *pyrt_arena_take(size_t size, size_t has);

/* Keeps it for later, if not more is kept than used, and no more than 32 MB. */
void pyrt_arena_give(void *arena, size_t size);

#endif
