#include "loader/verify_set.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "loader/base/error.h"
#include "loader/base/mem.h"
#include "loader/edits.h"
#include "loader/exports.h"
#include "loader/stable.h"

/* Forwarders lead to forwarders; a circle ends here. */
#define MOST_FORWARDS 8

struct member {
    const struct exti_entry *entry;
    const char *path;
    struct exti_file_id id; /* size 0: no such file */
    struct exti_image *im;  /* NULL: not readable, or not PE */
    struct exti_exports exports;
};

struct set {
    const struct exti_manifest *m;
    struct member *v;
    size_t n;
    exti_report_fn report;
    void *user;
    int stop;
};

static void find_fault(struct set *s, const struct member *at, const char *fmt, ...)
    EXTI_PRINTF(3, 4);
static void find_fault(struct set *s, const struct member *at, const char *fmt, ...)
{
    struct exti_error finding = {.code = EXTI_E_CHECK, .offset = EXTI_NO_OFFSET};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(finding.message, sizeof finding.message, fmt, ap);
    va_end(ap);
    exti__error_file(&finding, at->path);
    if (!s->stop)
        s->stop = s->report(s->user, &finding);
}

/* ---- files and names ---- */

static int by_name(const void *a, const void *b)
{
    const struct member *const *x = a, *const *y = b;

    return strcasecmp((*x)->entry->copy, (*y)->entry->copy);
}

static int by_inode(const void *a, const void *b)
{
    const struct member *const *x = a, *const *y = b;
    const struct exti_file_id *i = &(*x)->id, *j = &(*y)->id;

    if (i->device != j->device)
        return i->device < j->device ? -1 : 1;
    return (i->inode > j->inode) - (i->inode < j->inode);
}

/* A file with two names is loaded once, and one with its original's name is the original. */
static void check_files(struct set *s, const struct member **order)
{
    qsort(order, s->n, sizeof *order, by_inode);
    for (size_t i = 0; i < s->n; i++) {
        struct exti_file_id source;

        if (!order[i]->id.size)
            continue;
        if (i && order[i - 1]->id.size && by_inode(&order[i - 1], &order[i]) == 0)
            find_fault(s, order[i], "is one file with %s, which the system would load once",
                       order[i - 1]->entry->copy);
        if (!exti__fs_id(order[i]->entry->source, &source, NULL) &&
            source.device == order[i]->id.device && source.inode == order[i]->id.inode)
            find_fault(s, order[i], "is one file with its original, %s", order[i]->entry->source);
    }
}

/* Windows finds loaded modules by their file's name. */
static void check_names(struct set *s, const struct member **order)
{
    qsort(order, s->n, sizeof *order, by_name);
    for (size_t i = 1; i < s->n; i++)
        if (by_name(&order[i - 1], &order[i]) == 0)
            find_fault(s, order[i], "has the name of another copy, %s, but for case",
                       order[i - 1]->entry->copy);
}

/* ---- what is imported from where ---- */

static const struct member *member_of(const struct set *s, const char *library)
{
    for (size_t i = 0; i < s->n; i++)
        if (exti__name_same_dll(s->v[i].entry->copy, library))
            return &s->v[i];
    return NULL;
}

static const struct exti_need *need_of(const struct exti_entry *e, const char *library)
{
    for (size_t i = 0; i < e->need_count; i++)
        if (exti__name_same_dll(e->needs[i].name, library))
            return &e->needs[i];
    return NULL;
}

/* Of the API library, or of another that `at` is to have a copy of. */
static bool is_original(const struct set *s, const struct member *at, const char *library)
{
    const struct exti_need *n = need_of(at->entry, library);

    return exti__edits_is_api(s->m, library) || exti__stable_is(s->m, library) ||
           (n && n->isolated);
}

/* Why `symbol` of `from` leads nowhere in the context, into `why`; true: it is there, or is forwarded to a
 * library of the system's. */
static bool is_there(const struct set *s, const struct member *from, const char *symbol, char *why,
                     size_t cap)
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
static void check_symbols(struct set *s, const struct member *at)
{
    const struct member *from = NULL;
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
            find_fault(s, at, "imports '%.64s' from %s: %s", x->name, name, why);
    }
}

/* `was`: what the original imports there, NULL if not known. */
static void check_import(struct set *s, const struct member *at, size_t i, const char *was)
{
    const char *name = at->im->needed[i].name;
    const char *how = at->im->needed[i].flags & EXTI_NEED_WEAK ? "imports late" : "imports";

    const struct exti_need *n = was ? need_of(at->entry, was) : NULL;

    if (is_original(s, at, name))
        find_fault(s, at, "%s from %s, the original, and not from the context's copy", how, name);
    else if (n && n->isolated && !exti__name_same_dll(name, n->to))
        find_fault(s, at, "%s from %s in place of %s, which is %s here", how, name, was, n->to);
    else if (n && !n->isolated && !exti__name_same_dll(name, was))
        find_fault(s, at, "%s from %s in place of %s, which is shared", how, name, was);
    else if (was && !exti__name_same_dll(was, name) && !member_of(s, name))
        find_fault(s, at, "%s from %s, which is none of the context's copies, in place of %s", how,
                   name, was);
}

static void check_imports(struct set *s, const struct member *at)
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

static void check_forwarders(struct set *s, const struct member *at)
{
    for (size_t i = 0; i < at->im->info.symbol_count && !s->stop; i++) {
        const struct exti_image_symbol *x = &at->im->symbols[i];
        char library[EXTI_FILE_NAME_MAX + 1];

        if (x->flags & EXTI_SYM_EXPORT && x->forward && exti__forward_split(x->forward, library) &&
            is_original(s, at, library)) {
            find_fault(s, at, "forwards '%.64s' to %.128s, in an original", x->name, x->forward);
            return; /* of hundreds one is enough */
        }
    }
}

/* ---- the set ---- */

static int open_member(struct member *v, bool pe, struct exti_error *err)
{
    struct exti_error why;
    int rc = 0;

    if (exti__fs_id(v->path, &v->id, NULL))
        v->id = (struct exti_file_id){0};
    if (!v->id.size || !pe)
        return 0;
    rc = exti_inspect(v->path, &v->im, &why);
    if (!rc)
        return exti__exports_of(v->im, &v->exports, err);
    return rc == EXTI_E_NOMEM ? exti__fail_nomem(err) : 0;
}

static int check_all(struct set *s, bool pe, struct exti_error *err)
{
    const struct member **order = exti__calloc(s->n, sizeof *order);

    if (!order)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < s->n; i++)
        order[i] = &s->v[i];
    check_files(s, order);
    if (pe)
        check_names(s, order);
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].im) {
            check_imports(s, &s->v[i]);
            check_symbols(s, &s->v[i]);
            check_forwarders(s, &s->v[i]);
        }
    exti__free(order);
    return 0;
}

int exti__verify_set(const struct exti_manifest *m, char *const *copies, exti_report_fn report,
                     void *user, struct exti_error *err)
{
    const bool pe = strcmp(m->target.format, "PE") == 0;
    struct set s = {.m = m, .n = m->count + 1, .report = report, .user = user};
    int rc = 0;

    s.v = exti__calloc(s.n, sizeof *s.v);
    if (!s.v)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < s.n && !rc; i++) {
        s.v[i].entry = i ? &m->entries[i - 1] : &m->api;
        s.v[i].path = copies[i];
        rc = open_member(&s.v[i], pe, err);
    }
    if (!rc)
        rc = check_all(&s, pe, err);
    if (!rc && !s.stop && strcmp(m->target.format, "Mach-O") == 0)
        rc = exti__verify_macho(m, copies, report, user, err);
    for (size_t i = 0; i < s.n; i++) {
        exti__exports_free(&s.v[i].exports);
        exti_image_free(s.v[i].im);
    }
    exti__free(s.v);
    return rc;
}
