/* The library's only door to the heap, so that tests can make the Nth allocation fail. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

/* As the C library's; NULL when memory is out.  A size of 0 gives a block that can be freed. */
void *exti__alloc(size_t n);
void *exti__calloc(size_t count, size_t n);
void *exti__realloc(void *p, size_t n);
void *exti__realloc_array(void *p, size_t count, size_t n); /* NULL on overflow too */
char *exti__strdup(const char *s);
void exti__free(void *p); /* NULL ok */

/* memmem, which Windows lacks. */
const void *exti__mem_find(const void *p, size_t n, const void *what, size_t size);

/* strcmp as tsearch(3) and its like take it. */
int exti__string_order(const void *a, const void *b);

/* Frees a tree of tsearch(3) and gives each of its keys to `free_key`: tdestroy is the GNU C library's
 * alone. */
void exti__tree_free(void **root, int (*order)(const void *, const void *),
                     void (*free_key)(void *));

/* Tests only: let `n` allocations succeed, then fail one, once; a negative `n` switches this off.
 * Counts the allocations of the calling thread. */
void exti__mem_fail_after(long n);

#endif
