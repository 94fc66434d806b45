#define _GNU_SOURCE /* memmem */
#include "base/mem.h"

#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"

static _Thread_local long countdown = -1;

void exti__mem_fail_after(long n)
{
    countdown = n;
}

static bool must_fail(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *exti__alloc(size_t n)
{
    return must_fail() ? NULL : malloc(n ? n : 1);
}

void *exti__calloc(size_t count, size_t n)
{
    return must_fail() ? NULL : calloc(count ? count : 1, n ? n : 1);
}

void *exti__realloc(void *p, size_t n)
{
    return must_fail() ? NULL : realloc(p, n ? n : 1);
}

void *exti__realloc_array(void *p, size_t count, size_t n)
{
    uint64_t size;

    if (!exti__mul(count, n, &size) || size > SIZE_MAX)
        return NULL;
    return exti__realloc(p, (size_t)size);
}

char *exti__strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = exti__alloc(n);

    if (copy)
        memcpy(copy, s, n);
    return copy;
}

void exti__free(void *p)
{
    free(p);
}

void *exti__array_room(void *items, size_t count, size_t *cap, size_t size)
{
    const size_t more = *cap ? 2 * *cap : 16;
    void *grown;

    if (count < *cap)
        return items;
    grown = exti__realloc_array(items, more, size);
    if (grown)
        *cap = more;
    return grown;
}

int exti__copy_text(char **out, const char *text, struct exti_error *err)
{
    *out = text ? exti__strdup(text) : NULL;
    return *out || !text ? 0 : exti__fail_nomem(err);
}

size_t exti__count_up_to(const void *items, size_t count, size_t size,
                         uintptr_t (*start)(const void *item), uintptr_t address)
{
    size_t lo = 0, hi = count;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if (start((const char *)items + mid * size) <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const void *exti__mem_find(const void *p, size_t n, const void *what, size_t size)
{
#ifdef _WIN32
    const char *at = p, *end = at + n;

    for (; size && (size_t)(end - at) >= size; at++) {
        at = memchr(at, *(const char *)what, (size_t)(end - at) - size + 1);
        if (!at || memcmp(at, what, size) == 0)
            return at;
    }
    return size ? NULL : p;
#else
    return memmem(p, n, what, size);
#endif
}

int exti__string_order(const void *a, const void *b)
{
    return strcmp(a, b);
}

void exti__tree_free(void **root, int (*order)(const void *, const void *),
                     void (*free_key)(void *))
{
    while (*root) {
        void *key = *(void **)*root;

        tdelete(key, root, order);
        free_key(key);
    }
}
