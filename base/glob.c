#include "base/glob.h"

#include <string.h>

/* As Windows takes names: case does not count, and slashes are of either kind. */
static char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '\\' ? '/' : c;
}

static bool same(char a, char b, bool fold)
{
    return fold ? folded(a) == folded(b) : a == b;
}

static bool in_range(char from, char c, char to)
{
    return from <= c && c <= to;
}

/* Whether the set that `p` is at has `c`; *end is behind it.  One without an end is a plain bracket. */
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
            found = found || same(*q, c, fold);
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
        } else if (*glob && *glob != '[' && (*glob == '?' || same(*glob, *text, fold))) {
            glob++;
            text++;
        } else if (star) { /* let the last star have one character more */
            glob = star;
            text = ++from;
        } else {
            return false;
        }
    }
    return !glob[strspn(glob, "*")];
}
