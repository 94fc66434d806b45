/* Collects the names that change: of imported DLLs, of DLLs that forwarders name, and the file's
 * own. */
#include "pe/edit/pe_names.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "pe/edit/pe_forward.h"
#include "pe/edit/pe_hidden.h"
#include "pe/edit/pe_rename.h"
#include "pe/read/pe_import.h"

static int rename_import(void *user, const struct pe_import *im, struct exti_error *err)
{
    struct pe_edit *e = user;
    const char *to = exti__pe_new_name(e, im->name, strlen(im->name));

    if (strcmp(to, im->name) == 0)
        return 0;
    return exti__pe_add_rename(
        e,
        (struct pe_rename){
            .was = im->name, .to = to, .field_at = im->name_at, .by_address = im->by_address},
        err);
}

static int rename_exported_dll(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_exports *x = &e->exports;
    const char *id = e->req->opts->id;

    if (!id || !x->present || (x->dll && strcmp(x->dll, id) == 0))
        return 0;
    return exti__pe_add_rename(
        e, (struct pe_rename){.was = x->dll, .to = id, .field_at = x->name_at}, err);
}

/* The loader looks a bare name up among the loaded modules, but takes a name with a folder for a
 * path. */
static int check_name(const char *name, struct exti_error *err)
{
    size_t n = strlen(name);

    if (!n || n > PE_LONGEST_NAME)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the DLL name '%.64s' has %zu characters; 1 to %u are allowed", name, n,
                          PE_LONGEST_NAME);
    for (size_t i = 0; i < n; i++)
        if (name[i] <= ' ' || name[i] > '~' || strchr("\\/:*?\"<>|", name[i]))
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                              "the DLL name '%s' has the character 0x%02x, which is not allowed",
                              name, (unsigned char)name[i]);
    return 0;
}

static int fail_removal(const struct exti_needed *op, struct exti_error *err)
{
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "no library can be removed from the imports of a PE file ('%s')", op->from);
}

static int check_options(const struct exti_rewrite_opts *o, struct exti_error *err)
{
    int rc = o->id ? check_name(o->id, err) : 0;

    if (!rc && o->rename_count)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                        "symbols of PE files cannot be renamed ('%s')", o->renames[0].from);
    for (size_t i = 0; !rc && i < o->needed_count; i++) {
        const struct exti_needed *op = &o->needed[i];

        if (!op->from)
            rc = exti__fail(
                err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                "no library can be added to the imports of a PE file ('%s'): name the library that "
                "it replaces",
                op->to);
        else if (!op->to && !(o->flags & EXTI_RW_ALLOW_ABSENT))
            rc = fail_removal(op, err);
        else if (op->to)
            rc = check_name(op->to, err);
    }
    return rc;
}

/* Checks that the file imports what is to be replaced, and nothing that is to be removed. */
static int check_seen(const struct pe_edit *e, struct exti_error *err)
{
    const struct exti_rewrite_opts *o = e->req->opts;

    for (size_t i = 0; i < o->needed_count; i++) {
        const struct exti_needed *op = &o->needed[i];

        if (e->seen[i] && !op->to)
            return fail_removal(op, err);
        if (!e->seen[i] && !(o->flags & EXTI_RW_ALLOW_ABSENT))
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                              "imports: there is no '%s' to replace", op->from);
    }
    return 0;
}

int exti__pe_edit_names(struct pe_edit *e, struct exti_error *err)
{
    const struct exti_rewrite_opts *o = e->req->opts;
    int rc = check_options(o, err);

    if (rc)
        return rc;
    e->seen = exti__calloc(o->needed_count + 1, sizeof *e->seen);
    if (!e->seen)
        return exti__fail_nomem(err);
    rc = exti__pe_exports_open(e->f, &e->exports, err);
    if (!rc)
        rc = rename_exported_dll(e, err);
    if (!rc)
        rc = exti__pe_imports(e->f, rename_import, e, err);
    if (!rc)
        rc = exti__pe_edit_forwarders(e, err);
    if (!rc)
        rc = exti__pe_refuse_hidden(e, err);
    return rc ? rc : check_seen(e, err);
}
