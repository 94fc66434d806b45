/* Removes what a changed copy cannot keep: the signature, bound addresses, and limits on where the
 * loader looks for libraries. */
#include "pe/edit/pe_strip.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "pe/edit/pe_put.h"
#include "pe/read/pe_address.h"
#include "pe/read/pe_import.h"

/* Field offsets in their structures. */
enum {
    OPTIONAL_DLL_CHARACTERISTICS = 70,
    IMPORT_TIMESTAMP = 4, /* ForwarderChain follows */
    DELAY_TIMESTAMP = 28
};

int exti__pe_refuse(const struct pe_edit *e, struct exti_error *err)
{
    uint64_t at;
    const char *why = exti__pe_unfit(e->f, &at);

    return why ? exti__fail(err, EXTI_E_UNSUPPORTED, at, "%s", why) : 0;
}

static int strip_certificate(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_file *f = e->f;
    const struct pe_directory_entry *d = &f->directories[IMAGE_DIRECTORY_ENTRY_SECURITY];

    e->keep = f->overlay_end;
    if (!d->rva || !d->size)
        return 0;
    if (e->keep == f->file.n)
        return exti__fail(err, EXTI_E_UNSUPPORTED, (uint64_t)d->rva + d->size,
                          "certificate table: cannot be removed, as %" PRIu64 " bytes follow it",
                          (uint64_t)f->file.n - d->rva - d->size);
    return exti__pe_put_zeros(e, d->at, 8, "certificate table", err);
}

/* The bound import directory holds the old names.  It is in the headers, outside the sections. */
static int strip_bound_directory(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_directory_entry *d = &e->f->directories[IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT];
    const uint64_t table_end = e->f->sections_at + e->f->section_count * SECTION_HEADER_SIZE;
    struct exti_span bytes;
    int rc;

    if (!d->rva)
        return 0;
    if (d->rva < table_end || d->rva >= e->f->size_of_headers)
        return exti__fail(err, EXTI_E_FORMAT, d->at,
                          "bound import directory: at RVA 0x%" PRIx32
                          ", not behind the section table, which ends at 0x%" PRIx64,
                          d->rva, table_end);
    rc = exti__pe_at(e->f, d->rva, d->size, "bound imports", &bytes, err);
    if (!rc)
        rc = exti__pe_put_zeros(e, bytes.base, bytes.n, "bound imports", err);
    return rc ? rc : exti__pe_put_zeros(e, d->at, 8, "bound import directory", err);
}

static int unbind(void *user, const struct pe_import *im, struct exti_error *err)
{
    if (!im->timestamp)
        return 0;
    if (im->delay)
        return exti__pe_put_u32(user, im->at + DELAY_TIMESTAMP, 0, "delay import", err);
    return exti__pe_put_zeros(user, im->at + IMPORT_TIMESTAMP, 8, "import", err);
}

int exti__pe_strip(struct pe_edit *e, struct exti_error *err)
{
    const uint32_t characteristics = e->f->dll_characteristics;
    int rc = strip_certificate(e, err);

    if (!rc)
        rc = strip_bound_directory(e, err);
    if (!rc)
        rc = exti__pe_imports(e->f, unbind, e, err);
    /* DependentLoadFlags restrict the search to folders other than that of the copies. */
    if (!rc && e->f->dependent_load_flags)
        rc = exti__pe_put_u16(e, e->f->dependent_load_flags_at, 0, "DependentLoadFlags", err);
    /* The loader would refuse an unsigned copy. */
    if (!rc && characteristics & IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY)
        rc = exti__pe_put_u16(
            e, e->f->optional_at + OPTIONAL_DLL_CHARACTERISTICS,
            (uint16_t)(characteristics & ~IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY),
            "DllCharacteristics", err);
    return rc;
}
