/* The library's only door to the heap, so that tests can make the Nth allocation fail. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <extisolate.h>
#include <stddef.h>
#include <stdint.h>

/* As the C library's; NULL when memory is out.  A size of 0 gives a block that can be freed. */
void *exti__alloc(size_t n);
void *exti__calloc(size_t count, size_t n);
void *exti__realloc(void *p, size_t n);
void *exti__realloc_array(void *p, size_t count, size_t n); /* NULL on overflow too */
char *exti__strdup(const char *s);
void exti__free(void *p); /* NULL ok */

/* Room for one more item of `size` bytes in an array of `count` items that has room for *cap: the array, which
 * may have moved, or NULL when memory is out; then it is what it was.  It grows by doubling. */
void *exti__array_room(void *items, size_t count, size_t *cap, size_t size);

/* A copy of `text`, or NULL for NULL, in *out. */
int exti__copy_text(char **out, const char *text, struct exti_error *err);

/* How many of `count` items of `size` bytes, in ascending order of `start`, start at or below `address`. */
size_t exti__count_up_to(const void *items, size_t count, size_t size,
                         uintptr_t (*start)(const void *item), uintptr_t address);

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
