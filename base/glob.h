/* Matching names against patterns.  Pure; any thread. */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

/* Whether all of `text` matches `glob`.  * matches any text, ? any character, [a-z] and [!a-z] one
 * character in or outside a set.  A slash is an ordinary character.  With `fold` names match as on
 * Windows: letters in either case, and either slash. */
bool exti__glob_matches(const char *glob, const char *text, bool fold);

#endif
