/* DLL names and their replacements. */
#include "pe/edit/pe_rename.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static int fold_case(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool equal_ignoring_case(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fold_case(a[i]) != fold_case(b[i]))
            return false;
    return true;
}

static size_t stem_length(const char *name, size_t n)
{
    return n > 4 && equal_ignoring_case(name + n - 4, ".dll", 4) ? n - 4 : n;
}

bool exti__pe_same_dll(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t n = stem_length(a, a_size);

    return n == stem_length(b, b_size) && equal_ignoring_case(a, b, n);
}

const char *exti__pe_new_name(struct pe_edit *e, const char *name, size_t n)
{
    const struct exti_rewrite_opts *o = e->req->opts;

    for (size_t i = 0; i < o->needed_count; i++) {
        const struct exti_needed *op = &o->needed[i];
        const bool named = exti__pe_same_dll(name, n, op->from, strlen(op->from));

        /* Replaced already: editing a file twice is the same as editing it once. */
        if (named || (op->to && exti__pe_same_dll(name, n, op->to, strlen(op->to))))
            e->seen[i] = true;
        if (!named || !op->to)
            continue;
        name = op->to;
        n = strlen(name);
    }
    return name;
}

int exti__pe_add_rename(struct pe_edit *e, struct pe_rename r, struct exti_error *err)
{
    struct pe_rename *p = exti__array_room(e->renames, e->rename_count, &e->rename_cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    e->renames = p;
    e->renames[e->rename_count++] = r;
    return 0;
}
