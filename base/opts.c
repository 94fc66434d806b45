#include "base/opts.h"

#include <string.h>

#include "base/error.h"

/* Every option struct starts with its size. */
static size_t declared_size(const void *s)
{
    size_t size;

    memcpy(&size, s, sizeof size);
    return size;
}

int exti__opts_take(void *ours, size_t known, const void *theirs, const char *name,
                    struct exti_error *err)
{
    size_t size;
    const uint8_t *p = theirs;

    if (!theirs)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "%s is NULL", name);
    size = declared_size(theirs);
    if (size < sizeof size)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "%s.size is %zu; set it to sizeof", name,
                          size);
    for (size_t i = known; i < size; i++)
        if (p[i])
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                              "%s: this library is older than its caller and does not know the "
                              "member at byte %zu",
                              name, i);
    memset(ours, 0, known);
    memcpy(ours, theirs, size < known ? size : known);
    return 0;
}

int exti__opts_give(void *theirs, const void *ours, size_t known)
{
    size_t size;

    if (!theirs)
        return EXTI_E_ARG;
    size = declared_size(theirs);
    if (size < sizeof size)
        return EXTI_E_ARG;
    memcpy((uint8_t *)theirs + sizeof size, (const uint8_t *)ours + sizeof size,
           (size < known ? size : known) - sizeof size);
    return 0;
}
