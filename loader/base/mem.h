/* The library's only door to the heap, so that tests can make the Nth allocation fail. */
#ifndef LOADER_BASE_MEM_H
#define LOADER_BASE_MEM_H

#include <stddef.h>

/* As the C library's; NULL when memory is out.  A size of 0 gives a block that can be freed. */
void *exti__alloc(size_t n);
void *exti__calloc(size_t count, size_t n);
void *exti__realloc(void *p, size_t n);
void *exti__realloc_array(void *p, size_t count, size_t n); /* NULL on overflow too */
char *exti__strdup(const char *s);
void exti__free(void *p); /* NULL ok */

/* Tests only: let `n` allocations succeed, then fail one, once; a negative `n` switches this off.
 * Counts the allocations of the calling thread. */
void exti__mem_fail_after(long n);

#endif
