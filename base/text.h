/* String helpers missing from <string.h>. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool exti__starts_with(const char *text, const char *prefix)
{
    /* Most texts differ in the first character, and a call costs more than that comparison. */
    return !*prefix || (*text == *prefix && strncmp(text, prefix, strlen(prefix)) == 0);
}

#endif
