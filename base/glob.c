#include "base/glob.h"

#include <string.h>

/* Windows ignores case in names and takes either slash. */
static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '\\' ? '/' : c;
}

static bool same_char(char a, char b, bool fold)
{
    return fold ? folded(a) == folded(b) : a == b;
}

static bool in_range(char from, char c, char to)
{
    return from <= c && c <= to;
}

/* Whether the set that starts at `p` contains `c`; *end points behind the set.  A bracket that is
 * never closed stands for itself. */
static bool in_set(const char *p, char c, bool fold, const char **end)
{
    const char other = fold && c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : fold ? folded(c) : c;
    const bool negated = p[1] == '!';
    const char *q = p + 1 + negated, *first = q;
    bool found = false;

    for (; *q && (*q != ']' || q == first); q++) {
        if (q[1] == '-' && q[2] && q[2] != ']') {
            found = found || in_range(q[0], c, q[2]) || in_range(q[0], other, q[2]);
            q += 2;
        } else {
            found = found || same_char(*q, c, fold);
        }
    }
    *end = *q ? q + 1 : p + 1;
    return *q ? found != negated : c == '[';
}

bool exti__glob_matches(const char *glob, const char *text, bool fold)
{
    const char *star = NULL, *from = NULL, *end;

    while (*text) {
        if (*glob == '*') {
            star = ++glob;
            from = text;
        } else if (*glob == '[' && in_set(glob, *text, fold, &end)) {
            glob = end;
            text++;
        } else if (*glob && *glob != '[' && (*glob == '?' || same_char(*glob, *text, fold))) {
            glob++;
            text++;
        } else if (star) { /* extend the last star by one character */
            glob = star;
            text = ++from;
        } else {
            return false;
        }
    }
    return !glob[strspn(glob, "*")];
}
