/* What the edits make of names of libraries, as the public header defines it. */
#include "pe/check/pe_check_expect.h"

#include <string.h>

static char ascii_lower(char ch)
{
    return ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
}

static bool same_letters(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ascii_lower(a[i]) != ascii_lower(b[i]))
            return false;
    return true;
}

/* Length of a library's name without ".dll", which the loader adds to names that lack it. */
static size_t stem_of_library(const char *name)
{
    const size_t n = strlen(name);

    return n > 4 && same_letters(name + n - 4, ".dll", 4) ? n - 4 : n;
}

bool exti__pe_same_library(const char *a, const char *b)
{
    const size_t n = stem_of_library(a);

    return n == stem_of_library(b) && same_letters(a, b, n);
}

const char *exti__pe_renamed(const struct pe_check *c, const char *name)
{
    for (size_t i = 0; c->opts && i < c->opts->needed_count; i++) {
        const struct exti_needed *n = &c->opts->needed[i];

        if (n->from && n->to && exti__pe_same_library(n->from, name))
            name = n->to;
    }
    return name;
}

bool exti__pe_may_rename(const struct pe_check *c, const char *name)
{
    return !c->opts || exti__pe_renamed(c, name) != name;
}

bool exti__pe_follows(const struct pe_check *c, const char *was, const char *now)
{
    const char *wanted = exti__pe_renamed(c, was);

    if (!c->opts)
        return *now != 0;
    return strcmp(wanted, now) == 0 ||
           (exti__pe_same_library(wanted, was) && strcmp(was, now) == 0);
}

/* ---- forwarders: "library.symbol", the library without ".dll" -------------------------------- */

/* Mangled C++ names begin with a question mark and may contain dots; elsewhere the last dot
 * counts. */
static const char *symbol_of(const char *forwarder)
{
    const char *mangled = strstr(forwarder, ".?"), *dot = strrchr(forwarder, '.');

    return mangled ? mangled : dot;
}

bool exti__pe_forwarder_library(const char *forwarder, char *out, size_t cap)
{
    const char *dot = symbol_of(forwarder);
    const size_t n = dot ? (size_t)(dot - forwarder) : 0;

    if (!n || n >= cap)
        return false;
    memcpy(out, forwarder, n);
    out[n] = 0;
    return true;
}

bool exti__pe_forwarder_follows(const struct pe_check *c, const char *was, const char *now)
{
    char from[PE_LONGEST_NAME + 1], to[PE_LONGEST_NAME + 1];
    const char *wanted;

    if (!exti__pe_forwarder_library(was, from, sizeof from) ||
        !exti__pe_forwarder_library(now, to, sizeof to))
        return strcmp(was, now) == 0;
    if (strcmp(symbol_of(was), symbol_of(now)) != 0)
        return false;
    wanted = exti__pe_renamed(c, from);
    if (!c->opts || strcmp(from, to) == 0)
        return !c->opts || exti__pe_same_library(wanted, from);
    return strlen(to) == stem_of_library(wanted) &&
           strncmp(to, wanted, stem_of_library(wanted)) == 0;
}
