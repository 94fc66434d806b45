/* Checks imports that change their library.  A name binds to any library that exports it; an
 * ordinal has a meaning only in the library that assigned it. */
#include "pe/edit/pe_bind.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "pe/edit/pe_put.h"
#include "pe/edit/pe_rename.h"
#include "pe/read/pe_export.h"
#include "pe/read/pe_import.h"

struct bind {
    struct pe_edit *e;
    struct pe_exports exports;
    const char **names; /* sorted */
    size_t count, cap;
    const char *from; /* the DLL of the current import */
    bool own;         /* `from` is the library itself, whose copy has the same ordinals */
};

static int collect_export_name(void *user, const struct pe_export *x, struct exti_error *err)
{
    struct bind *b = user;
    const char **p;

    if (!x->name)
        return 0;
    p = exti__array_room(b->names, b->count, &b->cap, sizeof *p);
    if (!p)
        return exti__fail_nomem(err);
    b->names = p;
    b->names[b->count++] = x->name;
    return 0;
}

static int export_name_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_bound_symbol(void *user, const char *name, uint16_t ordinal,
                              struct exti_error *err)
{
    const struct bind *b = user;
    const char *file = b->e->req->opts->bind_file;

    if (!name && !b->own)
        return exti__fail(
            err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
            "imports symbol #%u of %s by ordinal, which may mean another symbol in %s", ordinal,
            b->from, file);
    if (!name ||
        (b->count && bsearch(&name, b->names, b->count, sizeof *b->names, export_name_order)))
        return 0;
    return exti__fail(err, EXTI_E_UNSUPPORTED, exti__pe_offset(b->e->f, name),
                      "imports '%s' of %s, which %s does not export", name, b->from, file);
}

/* Without bind_name, bind_file stands for every library that is renamed. */
static int check_bound_import(void *user, const struct pe_import *im, struct exti_error *err)
{
    struct bind *b = user;
    const char *target = b->e->req->opts->bind_name;
    const char *to = exti__pe_new_name(b->e, im->name, strlen(im->name));

    if (strcmp(to, im->name) == 0)
        return 0;
    if (target && !exti__pe_same_dll(to, strlen(to), target, strlen(target)))
        return 0;
    b->from = im->name;
    b->own = b->exports.dll &&
             exti__pe_same_dll(im->name, strlen(im->name), b->exports.dll, strlen(b->exports.dll));
    return exti__pe_import_symbols(b->e->f, im, check_bound_symbol, b, err);
}

int exti__pe_check_bind(struct pe_edit *e, struct exti_error *err)
{
    struct bind b = {.e = e};
    struct pe_file library;
    int rc;

    if (!e->req->bind_count)
        return 0;
    rc = exti__pe_open(e->req->bind[0], &library, err);
    if (rc) {
        exti__error_file(err, e->req->opts->bind_file);
        return rc;
    }
    if (library.machine != e->f->machine)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, e->f->nt_at + 4, "is for %s, but %s is for %s",
                        exti__pe_machine(e->f->machine), e->req->opts->bind_file,
                        exti__pe_machine(library.machine));
    if (!rc) {
        rc = exti__pe_exports_open(&library, &b.exports, err);
        if (!rc)
            rc = exti__pe_exports(&library, &b.exports, collect_export_name, &b, err);
        if (rc)
            exti__error_file(err, e->req->opts->bind_file);
    }
    if (!rc) {
        if (b.count)
            qsort(b.names, b.count, sizeof *b.names, export_name_order);
        rc = exti__pe_imports(e->f, check_bound_import, &b, err);
    }
    exti__free(b.names);
    exti__pe_close(&library);
    return rc;
}
