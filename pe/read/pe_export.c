/* Reads the export directory and its three tables: addresses by ordinal, names, the names'
 * ordinals. */
#include "pe/read/pe_export.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "pe/read/pe_address.h"

static const char what[] = "export directory";

static int read_export_directory(const struct pe_file *f, struct pe_exports *x,
                                 struct exti_error *err)
{
    const struct pe_directory_entry *d = &f->directories[IMAGE_DIRECTORY_ENTRY_EXPORT];
    struct exti_span s;
    struct exti_cur c;
    uint32_t name;
    int rc;

    if (d->size < EXPORT_DIRECTORY_SIZE)
        return exti__fail(err, EXTI_E_FORMAT, d->at + 4,
                          "%s: its size is %" PRIu32 ", less than %u", what, d->size,
                          EXPORT_DIRECTORY_SIZE);
    rc =
        exti__pe_error_at(exti__pe_at(f, d->rva, EXPORT_DIRECTORY_SIZE, what, &s, err), d->at, err);
    if (rc)
        return rc;
    *x = (struct pe_exports){.present = true, .at = s.base, .rva = d->rva, .size = d->size};
    x->name_at = s.base + 12;
    c = exti__cur(s, false);
    exti__cur_skip(&c, 12);
    name = exti__cur_u32(&c);
    x->base = exti__cur_u32(&c);
    x->function_count = exti__cur_u32(&c);
    x->name_count = exti__cur_u32(&c);
    x->functions_rva = exti__cur_u32(&c);
    x->names_rva = exti__cur_u32(&c);
    x->ordinals_rva = exti__cur_u32(&c);
    if (!name)
        return 0;
    return exti__pe_error_at(
        exti__pe_string(f, name, PE_LONGEST_NAME, "exported DLL name", &x->dll, err), x->name_at,
        err);
}

static int check_counts(const struct pe_exports *x, struct exti_error *err)
{
    if (x->function_count > PE_MOST_SYMBOLS)
        return exti__fail(err, EXTI_E_FORMAT, x->at + 20,
                          "%s: NumberOfFunctions is %" PRIu32 ", more than %u", what,
                          x->function_count, PE_MOST_SYMBOLS);
    if (x->function_count && x->base > PE_MOST_SYMBOLS - x->function_count)
        return exti__fail(err, EXTI_E_FORMAT, x->at + 16,
                          "%s: Base is %" PRIu32 ", which gives %" PRIu32
                          " functions ordinals of more than 16 bits",
                          what, x->base, x->function_count);
    if (x->name_count > PE_MOST_SYMBOLS)
        return exti__fail(err, EXTI_E_FORMAT, x->at + 24,
                          "%s: NumberOfNames is %" PRIu32 ", more than %u", what, x->name_count,
                          PE_MOST_SYMBOLS);
    return 0;
}

struct tables {
    struct exti_span functions, names, ordinals;
};

struct table_place {
    const char *name;
    uint32_t field; /* offset of the field with its RVA in the export directory */
    uint32_t rva;
    uint64_t size;
};

/* A table without entries may have any RVA. */
static int open_table(const struct pe_file *f, const struct pe_exports *x, struct table_place p,
                      struct exti_span *out, struct exti_error *err)
{
    *out = exti__span(NULL, 0);
    if (!p.size)
        return 0;
    return exti__pe_error_at(exti__pe_at(f, p.rva, p.size, p.name, out, err), x->at + p.field, err);
}

static int open_tables(const struct pe_file *f, const struct pe_exports *x, struct tables *t,
                       struct exti_error *err)
{
    const struct table_place functions = {"export address table", 28, x->functions_rva,
                                          (uint64_t)x->function_count * 4};
    const struct table_place names = {"export name table", 32, x->names_rva,
                                      (uint64_t)x->name_count * 4};
    const struct table_place ordinals = {"export ordinal table", 36, x->ordinals_rva,
                                         (uint64_t)x->name_count * 2};
    int rc = open_table(f, x, functions, &t->functions, err);

    if (!rc)
        rc = open_table(f, x, names, &t->names, err);
    if (!rc)
        rc = open_table(f, x, ordinals, &t->ordinals, err);
    return rc;
}

static uint32_t table_entry(struct exti_span table, size_t i, size_t size)
{
    struct exti_cur c = exti__cur(table, false);

    exti__cur_skip(&c, i * size);
    return size == 2 ? exti__cur_u16(&c) : exti__cur_u32(&c);
}

int exti__pe_exports_open(const struct pe_file *f, struct pe_exports *out, struct exti_error *err)
{
    struct pe_exports x = {0};
    struct tables t;
    int rc = 0;

    if (f->directories[IMAGE_DIRECTORY_ENTRY_EXPORT].rva) {
        rc = read_export_directory(f, &x, err);
        if (!rc)
            rc = check_counts(&x, err);
        if (!rc)
            rc = open_tables(f, &x, &t, err);
    }
    if (!rc)
        *out = x;
    return rc;
}

/* ---- the exports ----------------------------------------------------------------------------- */

/* The names of each slot, linked through `next` in the order of the export name table.  Both arrays
 * hold indices plus 1; 0 ends a list. */
struct name_lists {
    uint32_t *first, *next;
};

static int list_names(const struct pe_exports *x, const struct tables *t, struct name_lists *l,
                      struct exti_error *err)
{
    l->first = exti__calloc(x->function_count, sizeof *l->first);
    l->next = exti__calloc(x->name_count, sizeof *l->next);
    if (!l->first || !l->next)
        return exti__fail_nomem(err);
    for (uint32_t i = x->name_count; i-- > 0;) {
        uint32_t slot = table_entry(t->ordinals, i, 2);

        if (slot >= x->function_count)
            return exti__fail(err, EXTI_E_FORMAT, t->ordinals.base + i * 2,
                              "export ordinal table: entry %" PRIu32 " is %" PRIu32
                              ", but there are %" PRIu32 " functions",
                              i, slot, x->function_count);
        l->next[i] = l->first[slot];
        l->first[slot] = i + 1;
    }
    return 0;
}

/* The loader takes an address in the directory's own range for a forwarder's text. */
static int read_forwarder(const struct pe_file *f, const struct pe_exports *x, struct pe_export *e,
                          struct exti_error *err)
{
    const char *dot;
    int rc;

    if (e->rva < x->rva || e->rva - x->rva >= x->size)
        return 0;
    rc = exti__pe_error_at(
        exti__pe_string(f, e->rva, PE_LONGEST_SYMBOL, "forwarder", &e->forwarder, err), e->slot_at,
        err);
    if (rc)
        return rc;
    dot = strrchr(e->forwarder, '.');
    if (!dot || dot == e->forwarder || !dot[1])
        return exti__fail(
            err, EXTI_E_FORMAT, e->slot_at,
            "forwarder of ordinal %" PRIu32 ": its text is not of the form DLL.symbol", e->ordinal);
    return 0;
}

static int read_export_name(const struct pe_file *f, const struct tables *t, uint32_t i,
                            const char **name, struct exti_error *err)
{
    return exti__pe_error_at(exti__pe_string(f, table_entry(t->names, i, 4), PE_LONGEST_SYMBOL,
                                             "exported symbol", name, err),
                             t->names.base + i * 4, err);
}

static int visit_slots(const struct pe_file *f, const struct pe_exports *x, const struct tables *t,
                       const struct name_lists *l,
                       int (*each)(void *user, const struct pe_export *e, struct exti_error *err),
                       void *user, struct exti_error *err)
{
    for (uint32_t slot = 0; slot < x->function_count; slot++) {
        struct pe_export e = {.ordinal = x->base + slot,
                              .rva = table_entry(t->functions, slot, 4),
                              .slot_at = t->functions.base + (uint64_t)slot * 4};
        uint32_t i = l->first[slot];
        int rc;

        if (!e.rva)
            continue;
        rc = read_forwarder(f, x, &e, err);
        if (!rc && !i)
            rc = each(user, &e, err);
        for (; !rc && i; i = l->next[i - 1]) {
            rc = read_export_name(f, t, i - 1, &e.name, err);
            if (!rc)
                rc = each(user, &e, err);
        }
        if (rc)
            return rc;
    }
    return 0;
}

int exti__pe_exports(const struct pe_file *f, const struct pe_exports *x,
                     int (*each)(void *user, const struct pe_export *e, struct exti_error *err),
                     void *user, struct exti_error *err)
{
    struct name_lists l = {NULL, NULL};
    struct tables t;
    int rc = open_tables(f, x, &t, err);

    if (!rc)
        rc = list_names(x, &t, &l, err);
    if (!rc)
        rc = visit_slots(f, x, &t, &l, each, user, err);
    exti__free(l.first);
    exti__free(l.next);
    return rc;
}
