/* Forwarders are exports that name a symbol of another library, as in "python311.PyList_New".  The
 * loader recognises one by its address alone, which lies in the range of the export directory.
 * Forwarders that grow therefore move together with the directory. */
#include "pe/edit/pe_forward.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "pe/edit/pe_put.h"
#include "pe/edit/pe_rename.h"
#include "pe/read/pe_address.h"

enum { FUNCTIONS = 28 }; /* offset of AddressOfFunctions in the export directory */

static int add_forwarder(struct pe_edit *e, struct pe_forwarder x, struct exti_error *err)
{
    struct pe_forwarder *p =
        exti__array_room(e->forwarders, e->forwarder_count, &e->forwarder_cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    e->forwarders = p;
    e->forwarders[e->forwarder_count++] = x;
    return 0;
}

/* The length of the new library's name without ".dll", which loaders add to the text before the
 * dot.  They disagree about which of several dots that is, so the name must have no other. */
static int stem_of(const char *to, size_t *n, uint64_t at, struct exti_error *err)
{
    const char *dot = strchr(to, '.');

    *n = dot ? (size_t)(dot - to) : strlen(to);
    if (*n && (!dot || exti__pe_same_dll(to, strlen(to), to, *n)))
        return 0;
    return exti__fail(
        err, EXTI_E_UNSUPPORTED, at,
        "exports are forwarded to a library that '%s' replaces: choose a name without a "
        "dot except for .dll",
        to);
}

static int retarget_forwarder(struct pe_edit *e, struct pe_forwarder *x, struct exti_error *err)
{
    const char *first = strchr(x->was, '.'), *dot = strrchr(x->was, '.'), *to;
    uint64_t at = exti__pe_offset(e->f, x->was);
    size_t n, old;
    int rc;

    if (first != dot && exti__pe_new_name(e, x->was, (size_t)(first - x->was)) != x->was)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "forwarder '%.64s': cannot tell which dot ends the library's name",
                          x->was);
    old = (size_t)(dot - x->was);
    to = exti__pe_new_name(e, x->was, old);
    if (to == x->was)
        return 0;
    rc = stem_of(to, &n, at, err);
    if (rc || (n == old && memcmp(x->was, to, n) == 0))
        return rc;
    x->text = e->texts.n;
    rc = exti__buf_append(&e->texts, to, n, err);
    return rc ? rc : exti__buf_append(&e->texts, dot, strlen(dot) + 1, err);
}

static int collect_forwarder(void *user, const struct pe_export *ex, struct exti_error *err)
{
    struct pe_edit *e = user;
    struct pe_forwarder x = {ex->slot_at, ex->forwarder, PE_NONE, 0};
    int rc;

    /* An export with several names comes once per name. */
    if (!ex->forwarder ||
        (e->forwarder_count && e->forwarders[e->forwarder_count - 1].slot_at == ex->slot_at))
        return 0;
    rc = retarget_forwarder(e, &x, err);
    return rc ? rc : add_forwarder(e, x, err);
}

int exti__pe_edit_forwarders(struct pe_edit *e, struct exti_error *err)
{
    int rc = 0;

    if (!e->req->opts->needed_count || !e->exports.present)
        return 0;
    rc = exti__pe_exports(e->f, &e->exports, collect_forwarder, e, err);
    for (size_t i = 0; !rc && i < e->forwarder_count; i++) {
        const struct pe_forwarder *x = &e->forwarders[i];

        if (x->text != PE_NONE)
            rc = exti__pe_add_rename(e,
                                     (struct pe_rename){.was = x->was,
                                                        .to = (char *)e->texts.p + x->text,
                                                        .field_at = x->slot_at,
                                                        .forwarder = true},
                                     err);
    }
    return rc;
}

int exti__pe_move_exports(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_exports *x = &e->exports;
    struct exti_span functions;
    int rc = exti__pe_at(e->f, x->functions_rva, (uint64_t)x->function_count * 4,
                         "export address table", &functions, err);

    if (!rc)
        rc = exti__buf_append(&e->moved, e->f->file.p + x->at, EXPORT_DIRECTORY_SIZE, err);
    if (!rc)
        rc = exti__buf_append(&e->moved, functions.p, functions.n, err);
    for (size_t i = 0; !rc && i < e->forwarder_count; i++) {
        struct pe_forwarder *fw = &e->forwarders[i];
        const char *text = fw->text == PE_NONE ? fw->was : (char *)e->texts.p + fw->text;

        fw->offset = (uint32_t)e->moved.n;
        rc = exti__buf_append(&e->moved, text, strlen(text) + 1, err);
    }
    return rc;
}

/* Refuses exports of code or data that the moved directory's range would turn into forwarders. */
static int refuse_caught(const struct pe_edit *e, struct exti_error *err)
{
    const struct pe_exports *x = &e->exports;

    for (uint32_t i = 0; i < x->function_count; i++) {
        uint32_t rva = exti__pe_u32(e->moved.p + EXPORT_DIRECTORY_SIZE + 4 * (size_t)i);

        if (rva - x->rva >= x->size && rva - e->blob_rva < e->moved.n)
            return exti__fail(err, EXTI_E_UNSUPPORTED, x->at,
                              "export #%" PRIu64 " lies at 0x%" PRIx32
                              ", past the end of its section, where the export directory has to go",
                              (uint64_t)x->base + i, rva);
    }
    return 0;
}

int exti__pe_settle_exports(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_directory_entry *entry = &e->f->directories[IMAGE_DIRECTORY_ENTRY_EXPORT];
    uint8_t *p = e->moved.p, *functions = p + EXPORT_DIRECTORY_SIZE;
    struct exti_span old;
    int rc = refuse_caught(e, err);

    if (!rc)
        rc = exti__pe_at(e->f, e->exports.functions_rva, 4, "export address table", &old, err);
    if (rc)
        return rc;
    exti__put_u32(p + FUNCTIONS, e->blob_rva + EXPORT_DIRECTORY_SIZE, false);
    for (size_t i = 0; i < e->forwarder_count; i++)
        exti__put_u32(functions + (e->forwarders[i].slot_at - old.base),
                      e->blob_rva + e->forwarders[i].offset, false);
    rc = exti__pe_put_u32(e, entry->at, e->blob_rva, "export directory", err);
    return rc ? rc
              : exti__pe_put_u32(e, entry->at + 4, (uint32_t)e->moved.n, "export directory", err);
}
