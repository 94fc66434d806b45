/* Follows the imports and forwarders of PE copies as Windows does. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/path.h"
#include "loader/resolve/dll_name.h"
#include "loader/store/manifest_api.h"
#include "loader/store/verify_pe.h"

/* A forwarder may lead to another one; following them ends here in case they form a cycle. */
#define MOST_FORWARDS 8

/* ---- names ---- */

static int copy_name_order(const void *a, const void *b)
{
    const struct exti_member *const *x = a, *const *y = b;

    return strcasecmp((*x)->entry->copy, (*y)->entry->copy);
}

/* Windows finds loaded modules by file name, whatever its case. */
static int check_copy_names(struct exti_member_set *s, struct exti_error *err)
{
    const struct exti_member **order = exti__members_sorted(s, copy_name_order);

    if (!order)
        return exti__fail_nomem(err);
    for (size_t i = 1; i < s->n; i++)
        if (copy_name_order(&order[i - 1], &order[i]) == 0)
            exti__member_fault(s, order[i],
                               "has the same name as another copy, %s: Windows ignores case",
                               order[i - 1]->entry->copy);
    exti__free(order);
    return 0;
}

/* ---- imports and forwarders ---- */

static const struct exti_member *member_named(const struct exti_member_set *s, const char *library)
{
    for (size_t i = 0; i < s->n; i++)
        if (exti__same_dll(s->v[i].entry->copy, library))
            return &s->v[i];
    return NULL;
}

static const struct exti_need *need_named(const struct exti_entry *e, const char *library)
{
    for (size_t i = 0; i < e->need_count; i++)
        if (exti__same_dll(e->needs[i].name, library))
            return &e->needs[i];
    return NULL;
}

/* Whether the name is of the API library, or of another library of which `at` must use the copy. */
static bool is_original(const struct exti_member_set *s, const struct exti_member *at,
                        const char *library)
{
    const struct exti_need *n = need_named(at->entry, library);

    return exti__manifest_is_api(s->m, library) || exti__manifest_is_stable_abi(s->m, library) ||
           (n && n->isolated);
}

/* Whether `from` has `symbol`, itself or by forwarders that lead to another copy or to a library
 * of the system's.  If not, `why` tells what is wrong. */
static bool leads_somewhere(const struct exti_member_set *s, const struct exti_member *from,
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
            snprintf(why, cap, "%s forwards it to %.128s, in an original library",
                     from->entry->copy, x->forward);
            return false;
        }
        from = member_named(s, library);
        if (!from)
            return true;
    }
    snprintf(why, cap, "its forwarders form a cycle");
    return false;
}

/* The image lists imports library by library, so the copy is looked up once for each. */
static void check_imported_symbols(struct exti_member_set *s, const struct exti_member *at)
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
            from = is_original(s, at, name) ? NULL : member_named(s, name);
        library = x->library;
        if (from && !leads_somewhere(s, from, x->name, why, sizeof why))
            exti__member_fault(s, at, "imports '%.64s' from %s: %s", x->name, name, why);
    }
}

/* Import `i` of the copy against the same one of its original, `was`; NULL if that cannot be
 * told. */
static void check_import(struct exti_member_set *s, const struct exti_member *at, size_t i,
                         const char *was)
{
    const char *name = at->im->needed[i].name;
    const char *how = at->im->needed[i].flags & EXTI_NEED_WEAK ? "imports late" : "imports";

    const struct exti_need *n = was ? need_named(at->entry, was) : NULL;

    if (is_original(s, at, name))
        exti__member_fault(s, at, "%s from %s, the original, instead of the context's copy", how,
                           name);
    else if (n && n->isolated && !exti__same_dll(name, n->to))
        exti__member_fault(s, at, "%s from %s in place of %s, which is %s here", how, name, was,
                           n->to);
    else if (n && !n->isolated && !exti__same_dll(name, was))
        exti__member_fault(s, at, "%s from %s in place of %s, which is shared", how, name, was);
    else if (was && !exti__same_dll(was, name) && !member_named(s, name))
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

        if (exti__is_forwarder(x, library) && is_original(s, at, library)) {
            exti__member_fault(s, at, "forwards '%.64s' to %.128s, in an original library", x->name,
                               x->forward);
            return; /* one report is enough: a library may have hundreds */
        }
    }
}

int exti__verify_pe(struct exti_member_set *s, struct exti_error *err)
{
    int rc = check_copy_names(s, err);

    for (size_t i = 0; i < s->n && !rc; i++)
        if (s->v[i].im)
            rc = exti__exports_of(s->v[i].im, &s->v[i].exports, err);
    for (size_t i = 0; i < s->n && !rc; i++)
        if (s->v[i].im) {
            check_imports(s, &s->v[i]);
            check_imported_symbols(s, &s->v[i]);
            check_forwarders(s, &s->v[i]);
        }
    return rc;
}
