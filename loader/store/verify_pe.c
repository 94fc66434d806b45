/* Where the imports and forwarders of PE copies lead, as Windows follows them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "loader/resolve/dll_name.h"
#include "loader/store/edits.h"
#include "loader/store/stable_abi.h"
#include "loader/store/verify_priv.h"

/* Forwarders lead to forwarders; a circle ends here. */
#define MOST_FORWARDS 8

/* ---- names ---- */

static int by_name(const void *a, const void *b)
{
    const struct exti_member *const *x = a, *const *y = b;

    return strcasecmp((*x)->entry->copy, (*y)->entry->copy);
}

/* Windows finds loaded modules by their file's name. */
static int check_names(struct exti_member_set *s, struct exti_error *err)
{
    const struct exti_member **order = exti__members_sorted(s, by_name);

    if (!order)
        return exti__fail_nomem(err);
    for (size_t i = 1; i < s->n; i++)
        if (by_name(&order[i - 1], &order[i]) == 0)
            exti__member_fault(s, order[i], "has the name of another copy, %s, but for case",
                               order[i - 1]->entry->copy);
    exti__free(order);
    return 0;
}

/* ---- what is imported from where ---- */

static const struct exti_member *member_of(const struct exti_member_set *s, const char *library)
{
    for (size_t i = 0; i < s->n; i++)
        if (exti__same_dll(s->v[i].entry->copy, library))
            return &s->v[i];
    return NULL;
}

static const struct exti_need *need_of(const struct exti_entry *e, const char *library)
{
    for (size_t i = 0; i < e->need_count; i++)
        if (exti__same_dll(e->needs[i].name, library))
            return &e->needs[i];
    return NULL;
}

/* Of the API library, or of another that `at` is to have a copy of. */
static bool is_original(const struct exti_member_set *s, const struct exti_member *at,
                        const char *library)
{
    const struct exti_need *n = need_of(at->entry, library);

    return exti__edits_is_api(s->m, library) || exti__stable_abi_is(s->m, library) ||
           (n && n->isolated);
}

/* Why `symbol` of `from` leads nowhere in the context, into `why`; true: it is there, or is forwarded to a
 * library of the system's. */
static bool is_there(const struct exti_member_set *s, const struct exti_member *from,
                     const char *symbol, char *why, size_t cap)
{
    char library[EXTI_FILE_NAME_MAX + 1];

    for (int i = 0; i < MOST_FORWARDS; i++) {
        const struct exti_image_symbol *x;

        if (!from->im)
            return true;
        x = exti__exports_find(&from->exports, symbol);
        if (!x) {
            snprintf(why, cap, "%s does not export %.128s", from->entry->copy, symbol);
            return false;
        }
        if (!x->forward || !(symbol = exti__forward_split(x->forward, library)))
            return true;
        if (is_original(s, from, library)) {
            snprintf(why, cap, "%s forwards it to %.128s, in an original", from->entry->copy,
                     x->forward);
            return false;
        }
        from = member_of(s, library);
        if (!from)
            return true;
    }
    snprintf(why, cap, "its forwarders go round in a circle");
    return false;
}

/* Those of one library follow each other. */
static void check_symbols(struct exti_member_set *s, const struct exti_member *at)
{
    const struct exti_member *from = NULL;
    int32_t library = 0;

    for (size_t i = 0; i < at->im->info.symbol_count && !s->stop; i++) {
        const struct exti_image_symbol *x = &at->im->symbols[i];
        char why[EXTI_FILE_NAME_MAX * 2];
        const char *name;

        if (x->flags & EXTI_SYM_EXPORT || x->library <= 0)
            continue;
        name = at->im->needed[x->library - 1].name;
        if (x->library != library)
            from = is_original(s, at, name) ? NULL : member_of(s, name);
        library = x->library;
        if (from && !is_there(s, from, x->name, why, sizeof why))
            exti__member_fault(s, at, "imports '%.64s' from %s: %s", x->name, name, why);
    }
}

/* `was`: what the original imports there, NULL if not known. */
static void check_import(struct exti_member_set *s, const struct exti_member *at, size_t i,
                         const char *was)
{
    const char *name = at->im->needed[i].name;
    const char *how = at->im->needed[i].flags & EXTI_NEED_WEAK ? "imports late" : "imports";

    const struct exti_need *n = was ? need_of(at->entry, was) : NULL;

    if (is_original(s, at, name))
        exti__member_fault(s, at, "%s from %s, the original, and not from the context's copy", how,
                           name);
    else if (n && n->isolated && !exti__same_dll(name, n->to))
        exti__member_fault(s, at, "%s from %s in place of %s, which is %s here", how, name, was,
                           n->to);
    else if (n && !n->isolated && !exti__same_dll(name, was))
        exti__member_fault(s, at, "%s from %s in place of %s, which is shared", how, name, was);
    else if (was && !exti__same_dll(was, name) && !member_of(s, name))
        exti__member_fault(s, at,
                           "%s from %s, which is none of the context's copies, in place of %s", how,
                           name, was);
}

static void check_imports(struct exti_member_set *s, const struct exti_member *at)
{
    struct exti_image *source = NULL;

    if (exti_inspect(at->entry->source, &source, NULL) ||
        source->info.needed_count != at->im->info.needed_count) {
        exti_image_free(source);
        source = NULL;
    }
    for (size_t i = 0; i < at->im->info.needed_count && !s->stop; i++)
        check_import(s, at, i, source ? source->needed[i].name : NULL);
    exti_image_free(source);
}

static void check_forwarders(struct exti_member_set *s, const struct exti_member *at)
{
    for (size_t i = 0; i < at->im->info.symbol_count && !s->stop; i++) {
        const struct exti_image_symbol *x = &at->im->symbols[i];
        char library[EXTI_FILE_NAME_MAX + 1];

        if (x->flags & EXTI_SYM_EXPORT && x->forward && exti__forward_split(x->forward, library) &&
            is_original(s, at, library)) {
            exti__member_fault(s, at, "forwards '%.64s' to %.128s, in an original", x->name,
                               x->forward);
            return; /* of hundreds one is enough */
        }
    }
}

int exti__verify_pe(struct exti_member_set *s, struct exti_error *err)
{
    int rc = check_names(s, err);

    for (size_t i = 0; i < s->n && !rc; i++)
        if (s->v[i].im)
            rc = exti__exports_of(s->v[i].im, &s->v[i].exports, err);
    for (size_t i = 0; i < s->n && !rc; i++)
        if (s->v[i].im) {
            check_imports(s, &s->v[i]);
            check_symbols(s, &s->v[i]);
            check_forwarders(s, &s->v[i]);
        }
    return rc;
}
