/* Matching names against patterns.  Pure; any thread. */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

/* Whether all of `text` matches `glob`: * stands for any text, ? for any character, [a-z] and [!a-z] for one
 * of a set.  A slash is a character like any other.  With `fold`, as Windows takes names: letters match in
 * either case, and slashes of either kind. */
bool exti__glob_matches(const char *glob, const char *text, bool fold);

#endif
