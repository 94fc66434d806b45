/* Reads import and delay import descriptors and the symbols that they name. */
#include "pe/read/pe_import.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "pe/read/pe_address.h"

typedef int (*import_fn)(void *user, const struct pe_import *im, struct exti_error *err);

/* "import 3" or "delay import 3". */
struct what {
    char text[32];
};

static struct what what_of(bool delay, size_t i)
{
    struct what w;

    snprintf(w.text, sizeof w.text, "%simport %zu", delay ? "delay " : "", i);
    return w;
}

/* A DLL's name is printable ASCII: the loader finds no other. */
static int read_dll_name(const struct pe_file *f, struct pe_import *im, const char *what,
                         struct exti_error *err)
{
    int rc = exti__pe_error_at(
        exti__pe_string(f, im->name_rva, PE_LONGEST_NAME, what, &im->name, err), im->name_at, err);

    if (rc)
        return rc;
    for (const char *p = im->name; *p; p++)
        if (*p < ' ' || *p > '~')
            return exti__fail(err, EXTI_E_FORMAT, im->name_at,
                              "%s: its name has the byte 0x%02x, which is not printable ASCII",
                              what, (unsigned)(unsigned char)*p);
    if (!*im->name)
        return exti__fail(err, EXTI_E_FORMAT, im->name_at, "%s: its name is empty", what);
    return 0;
}

static int check_tables(const struct pe_file *f, const struct pe_import *im, uint32_t iat_field,
                        const char *what, struct exti_error *err)
{
    struct exti_span unused;

    if (!exti__pe_section_of(f, im->iat_rva))
        return exti__fail(err, EXTI_E_FORMAT, im->at + iat_field,
                          "%s: its address table's RVA 0x%" PRIx32 " is in no section", what,
                          im->iat_rva);
    return exti__pe_error_at(exti__pe_from(f, im->lookup_rva, what, &unused, err), im->lookup_at,
                             err);
}

/* ---- import descriptors ---------------------------------------------------------------------- */

/* Borland's linker left garbage in OriginalFirstThunk.  Windows ignores the field unless it is an
 * RVA inside the image. */
static bool has_lookup(const struct pe_file *f, uint32_t rva)
{
    return rva >= f->size_of_headers && rva < f->size_of_image;
}

static int read_import_descriptor(const struct pe_file *f, struct exti_span s, size_t i,
                                  struct pe_import *im, bool *end, struct exti_error *err)
{
    struct exti_cur c = exti__cur(s, false);
    const struct what w = what_of(false, i);
    int rc;

    *im = (struct pe_import){.at = s.base, .name_at = s.base + 12};
    im->lookup_rva = exti__cur_u32(&c);
    im->timestamp = exti__cur_u32(&c);
    exti__cur_skip(&c, 4);
    im->name_rva = exti__cur_u32(&c);
    im->iat_rva = exti__cur_u32(&c);
    /* The loader ends the list at either, whatever the other fields hold. */
    *end = !im->name_rva || !im->iat_rva;
    if (*end)
        return 0;
    rc = read_dll_name(f, im, w.text, err);
    if (rc)
        return rc;
    im->lookup_at = im->at;
    if (!has_lookup(f, im->lookup_rva)) {
        if (im->timestamp)
            return exti__fail(
                err, EXTI_E_UNSUPPORTED, im->at + 4,
                "%s: bound to %s without an import lookup table, so its symbols' names are "
                "lost",
                w.text, im->name);
        im->lookup_rva = im->iat_rva;
        im->lookup_at = im->at + 16;
    }
    return check_tables(f, im, 16, w.text, err);
}

/* ---- delay import descriptors ---------------------------------------------------------------- */

/* Fields of version 1, which only 32-bit files can have, hold addresses in place of RVAs. */
static int to_rva(const struct pe_file *f, const struct pe_import *im, uint32_t field,
                  uint32_t *value, const char *what, struct exti_error *err)
{
    if (!im->by_address)
        return 0;
    if (*value < f->image_base)
        return exti__fail(err, EXTI_E_FORMAT, im->at + field,
                          "%s: address 0x%" PRIx32 " is below the image's base 0x%" PRIx64, what,
                          *value, f->image_base);
    *value -= (uint32_t)f->image_base;
    return 0;
}

static int read_delay_descriptor(const struct pe_file *f, struct exti_span s, size_t i,
                                 struct pe_import *im, bool *end, struct exti_error *err)
{
    struct exti_cur c = exti__cur(s, false);
    const struct what w = what_of(true, i);
    uint32_t attributes = exti__cur_u32(&c);
    int rc;

    *im = (struct pe_import){.at = s.base, .name_at = s.base + 4, .lookup_at = s.base + 16};
    im->delay = true;
    im->name_rva = exti__cur_u32(&c);
    exti__cur_skip(&c, 4);
    im->iat_rva = exti__cur_u32(&c);
    im->lookup_rva = exti__cur_u32(&c);
    exti__cur_skip(&c, 8);
    im->timestamp = exti__cur_u32(&c);
    *end = !im->name_rva;
    if (*end)
        return 0;
    im->by_address = !(attributes & 1);
    if (im->by_address && f->plus)
        return exti__fail(err, EXTI_E_FORMAT, im->at,
                          "%s: attributes 0x%" PRIx32
                          " mean that its fields hold addresses, but those of a 64-bit file "
                          "do not fit",
                          w.text, attributes);
    rc = to_rva(f, im, 4, &im->name_rva, w.text, err);
    if (!rc)
        rc = to_rva(f, im, 12, &im->iat_rva, w.text, err);
    if (!rc)
        rc = to_rva(f, im, 16, &im->lookup_rva, w.text, err);
    if (!rc)
        rc = read_dll_name(f, im, w.text, err);
    return rc ? rc : check_tables(f, im, 12, w.text, err);
}

/* ---- both ------------------------------------------------------------------------------------ */

static int visit_descriptors(const struct pe_file *f, bool delay, import_fn each, void *user,
                             struct exti_error *err)
{
    const struct pe_directory_entry *d =
        &f->directories[delay ? IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT : IMAGE_DIRECTORY_ENTRY_IMPORT];
    const char *what = delay ? "delay import directory" : "import directory";
    const uint64_t size = delay ? DELAY_DESCRIPTOR_SIZE : IMPORT_DESCRIPTOR_SIZE;
    struct exti_span all, one;
    bool end = false;
    int rc;

    if (!d->rva)
        return 0;
    rc = exti__pe_error_at(exti__pe_from(f, d->rva, what, &all, err), d->at, err);
    for (size_t i = 0; !rc && !end; i++) {
        struct pe_import im;

        if (i == PE_MOST_DESCRIPTORS)
            return exti__fail(err, EXTI_E_FORMAT, all.base + i * size,
                              "%s: no end after %zu descriptors", what, i);
        rc = exti__span_sub(all, i * size, size, what, &one, err);
        if (!rc)
            rc = delay ? read_delay_descriptor(f, one, i, &im, &end, err)
                       : read_import_descriptor(f, one, i, &im, &end, err);
        if (!rc && !end)
            rc = each(user, &im, err);
    }
    return rc;
}

int exti__pe_imports(const struct pe_file *f, import_fn each, void *user, struct exti_error *err)
{
    int rc = visit_descriptors(f, false, each, user, err);

    return rc ? rc : visit_descriptors(f, true, each, user, err);
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* One entry of an import lookup table: an ordinal with the high bit set, or the RVA of a hint and a
 * name.  In a delay import by address it is an address, too. */
static int read_symbol(const struct pe_file *f, const struct pe_import *im, uint64_t at,
                       uint64_t entry, const char **name, uint16_t *ordinal, struct exti_error *err)
{
    const uint64_t by_ordinal = f->plus ? (uint64_t)1 << 63 : (uint64_t)1 << 31;
    const uint64_t rva = entry - (im->by_address ? f->image_base : 0);

    *name = NULL;
    *ordinal = (uint16_t)entry;
    if (entry & by_ordinal)
        return 0;
    if (rva > UINT32_MAX - 2)
        return exti__fail(err, EXTI_E_FORMAT, at,
                          "imports from %s: entry 0x%" PRIx64 " is neither an RVA nor an ordinal",
                          im->name, entry);
    *ordinal = 0;
    return exti__pe_error_at(
        exti__pe_string(f, (uint32_t)rva + 2, PE_LONGEST_SYMBOL, "imported symbol", name, err), at,
        err);
}

int exti__pe_import_symbols(const struct pe_file *f, const struct pe_import *im,
                            int (*each)(void *user, const char *name, uint16_t ordinal,
                                        struct exti_error *err),
                            void *user, struct exti_error *err)
{
    struct exti_span table;
    struct exti_cur c;
    int rc = exti__pe_error_at(exti__pe_from(f, im->lookup_rva, "import lookup table", &table, err),
                               im->lookup_at, err);

    if (rc)
        return rc;
    c = exti__cur(table, false);
    for (size_t i = 0;; i++) {
        const uint64_t at = table.base + c.at;
        const uint64_t entry = f->plus ? exti__cur_u64(&c) : exti__cur_u32(&c);
        const char *name;
        uint16_t ordinal;

        rc = exti__cur_end(&c, "import lookup table", err);
        if (rc || !entry)
            return rc;
        if (i == PE_MOST_SYMBOLS)
            return exti__fail(err, EXTI_E_FORMAT, at, "imports from %s: no end after %zu symbols",
                              im->name, i);
        rc = read_symbol(f, im, at, entry, &name, &ordinal, err);
        if (!rc)
            rc = each(user, name, ordinal, err);
        if (rc)
            return rc;
    }
}
