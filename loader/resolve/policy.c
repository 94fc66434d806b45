#include "loader/resolve/policy.h"

#include <string.h>

#include "base/os/fs.h"

/* ---- globs ------------------------------------------------------------------------------------- */

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

static bool matches(const char *glob, const char *text, bool fold)
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

bool exti__glob_matches(const char *glob, const char *text)
{
    return matches(glob, text, false);
}

/* ---- decisions --------------------------------------------------------------------------------- */

static const char *file_name(const char *path)
{
    const char *slash = exti__fs_last_slash(path);

    return slash ? slash + 1 : path;
}

static bool names(const struct exti_policy *p, const char *glob, const char *soname,
                  const char *path)
{
    const bool fold = p->format && strcmp(p->format, "PE") == 0;

    if (strpbrk(glob, fold ? "/\\" : "/"))
        return matches(glob, path, fold);
    return (soname && matches(glob, soname, fold)) || matches(glob, file_name(path), fold);
}

/* The base set's entry for it, if there is one. */
static bool find_base(const struct exti_policy *p, const char *soname, const char *path,
                      struct exti_decision *out)
{
    const char *glob, *reason;
    bool fixed;

    for (size_t i = 0; (glob = exti__policy_base(p->format, i, &reason, &fixed)); i++)
        if (names(p, glob, soname, path)) {
            *out =
                (struct exti_decision){true, fixed ? EXTI_WHY_FIXED : EXTI_WHY_BASE, glob, reason};
            return true;
        }
    return false;
}

struct exti_decision exti__policy_decide(const struct exti_policy *p, const char *soname,
                                         const char *path, uint32_t flags)
{
    struct exti_decision base;
    const bool found = find_base(p, soname, path, &base);

    if (found && base.why == EXTI_WHY_FIXED)
        return base;
    for (size_t i = p->rule_count; i-- > 0;)
        if (names(p, p->rules[i].glob, soname, path))
            return (struct exti_decision){p->rules[i].share, EXTI_WHY_RULE, p->rules[i].glob,
                                          "the user says so"};
    if (found)
        return base;
    if (flags & EXTI_IMAGE_CLASSES)
        return (struct exti_decision){true, EXTI_WHY_FLAGS, NULL,
                                      "it has Objective-C classes or Swift types, whose names are "
                                      "one per process"};
    if (flags & EXTI_IMAGE_NODELETE && strcmp(p->format, "ELF") == 0)
        return (struct exti_decision){true, EXTI_WHY_FLAGS, NULL,
                                      "it says that it cannot be unloaded (DF_1_NODELETE)"};
    if (flags & EXTI_IMAGE_STATIC_TLS)
        return (struct exti_decision){true, EXTI_WHY_FLAGS, NULL,
                                      "its thread-locals are in the static TLS block, which few "
                                      "copies would fill (DF_STATIC_TLS)"};
    return (struct exti_decision){p->share_by_default, EXTI_WHY_DEFAULT, NULL,
                                  p->share_by_default ? "libraries are shared by default"
                                                      : "libraries are isolated by default"};
}
