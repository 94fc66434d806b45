/* Memory from the heap, and arrays in it.  No other file of the library calls malloc, so that tests
 * can make any allocation fail.  Any thread. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include <extisolate.h>

/* As in the C library; NULL if memory is out.  A size of 0 gives a block that can be freed. */
void *exti__alloc(size_t n);
void *exti__calloc(size_t count, size_t n);
void *exti__realloc(void *p, size_t n);
void *exti__realloc_array(void *p, size_t count, size_t n); /* also NULL on overflow */
char *exti__strdup(const char *s);
void exti__free(void *p); /* NULL ok */

/* Makes room for one more item of `size` bytes in an array of `count` items, which has room for
 * *cap; the array grows by doubling.  Returns the array, which may have moved; or NULL if memory is
 * out, and then the old array is still valid. */
void *exti__array_room(void *items, size_t count, size_t *cap, size_t size);

/* Sets *out to a copy of `text`; exti__free it.  *out becomes NULL if `text` is NULL, and also if
 * memory is out. */
int exti__copy_text(char **out, const char *text, struct exti_error *err);

/* Counts the items that start at or below `address`, by binary search.  `items` is an array of
 * `count` items of `size` bytes in ascending order of `start`. */
size_t exti__count_up_to(const void *items, size_t count, size_t size,
                         uintptr_t (*start)(const void *item), uintptr_t address);

/* memmem, which Windows lacks. */
const void *exti__mem_find(const void *p, size_t n, const void *what, size_t size);

/* strcmp with the parameters that tsearch(3) and qsort(3) expect. */
int exti__string_order(const void *a, const void *b);

/* Frees a tree made by tsearch(3) and passes each of its keys to `free_key`.  Only the GNU C
 * library has tdestroy. */
void exti__tree_free(void **root, int (*order)(const void *, const void *),
                     void (*free_key)(void *));

/* For tests: makes one allocation of the calling thread fail after `n` have succeeded.  A negative
 * `n` switches this off. */
void exti__mem_fail_after(long n);

#endif
