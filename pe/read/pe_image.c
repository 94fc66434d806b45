/* Describes a DLL for the loader.  A symbol without a name gets its ordinal as "#12", which no
 * compiler emits. */
#include "pe/read/pe_image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "pe/read/pe_address.h"
#include "pe/read/pe_export.h"
#include "pe/read/pe_import.h"

/* ---- build ID, thread-local data, header room ------------------------------------------------ */

enum {
    DEBUG_TYPE_CODEVIEW = 2,
    CODEVIEW_RSDS = 0x53445352, /* PDB 7.0; also GNU ld's --build-id */
    ID_SIZE = 32 + 8 + 1
};

/* The digits of GUID and age in the order under which symbol servers file a PDB. */
static int add_codeview(struct exti_span data, struct exti_image *im, struct exti_error *err)
{
    struct exti_cur c = exti__cur(data, false);
    uint32_t magic = exti__cur_u32(&c), first, age;
    uint16_t second, third;
    uint64_t rest = 0;
    int rc;

    if (!c.failed && magic != CODEVIEW_RSDS)
        return 0;
    first = exti__cur_u32(&c);
    second = exti__cur_u16(&c);
    third = exti__cur_u16(&c);
    for (int i = 0; i < 8; i++)
        rest = rest << 8 | exti__cur_u8(&c);
    age = exti__cur_u32(&c);
    rc = exti__cur_end(&c, "CodeView record", err);
    if (rc)
        return rc;
    im->build_id = exti__alloc(ID_SIZE);
    if (!im->build_id)
        return exti__fail_nomem(err);
    snprintf(im->build_id, ID_SIZE, "%08" PRIx32 "%04" PRIx16 "%04" PRIx16 "%016" PRIx64 "%" PRIx32,
             first, second, third, rest, age);
    im->info.build_id = im->build_id;
    return 0;
}

static int add_pdb_id(const struct pe_file *f, struct exti_image *im, struct exti_error *err)
{
    const struct pe_directory_entry *d = &f->directories[IMAGE_DIRECTORY_ENTRY_DEBUG];
    struct exti_span s, data;
    int rc;

    if (!d->rva || !d->size)
        return 0;
    rc = exti__pe_error_at(exti__pe_at(f, d->rva, d->size, "debug directory", &s, err), d->at, err);
    for (uint32_t i = 0; !rc && !im->build_id && i < d->size / DEBUG_DIRECTORY_SIZE; i++) {
        struct exti_cur c = exti__cur(s, false);
        uint32_t size, rva;

        exti__cur_skip(&c, i * DEBUG_DIRECTORY_SIZE + 12);
        if (exti__cur_u32(&c) != DEBUG_TYPE_CODEVIEW)
            continue;
        size = exti__cur_u32(&c);
        rva = exti__cur_u32(&c);
        if (rva)
            rc = exti__pe_error_at(exti__pe_at(f, rva, size, "CodeView record", &data, err),
                                   s.base + c.at - 4, err);
        else
            rc = exti__span_sub(f->file, exti__cur_u32(&c), size, "CodeView record", &data, err);
        if (!rc)
            rc = add_codeview(data, im, err);
    }
    return rc;
}

static int add_tls(const struct pe_file *f, struct exti_image *im, struct exti_error *err)
{
    const struct pe_directory_entry *d = &f->directories[IMAGE_DIRECTORY_ENTRY_TLS];
    uint64_t start, end, zeros;
    struct exti_span s;
    struct exti_cur c;
    int rc;

    if (!d->rva || !d->size)
        return 0;
    rc = exti__pe_error_at(exti__pe_at(f, d->rva, f->plus ? 40 : 24, "TLS directory", &s, err),
                           d->at, err);
    if (rc)
        return rc;
    c = exti__cur(s, false);
    start = f->plus ? exti__cur_u64(&c) : exti__cur_u32(&c);
    end = f->plus ? exti__cur_u64(&c) : exti__cur_u32(&c);
    exti__cur_skip(&c, f->plus ? 16 : 8);
    zeros = exti__cur_u32(&c);
    if (end < start || end - start > f->size_of_image)
        return exti__fail(err, EXTI_E_FORMAT, s.base,
                          "TLS directory: its data from 0x%" PRIx64 " to 0x%" PRIx64
                          " do not fit into the image",
                          start, end);
    im->info.tls_size = end - start + zeros;
    return 0;
}

/* Zero bytes behind the section table, up to bound imports or the first section. */
static uint64_t header_room(const struct pe_file *f)
{
    uint64_t at = f->sections_at + f->section_count * SECTION_HEADER_SIZE, n = 0;

    while (at + n < f->size_of_headers && !f->file.p[at + n])
        n++;
    return n;
}

/* ---- symbols --------------------------------------------------------------------------------- */

struct symbols {
    const struct pe_file *f;
    struct exti_image *im;
    bool counting;     /* first of two passes: measures im->strings */
    size_t room, used; /* of im->strings */
    uint64_t imports;  /* counted */
    int32_t library;   /* index of the current import, from 1 */
    uint32_t flags;    /* of its symbols */
};

static const char *ordinal_name(struct symbols *x, uint32_t ordinal)
{
    char *name, text[16];
    int n = snprintf(text, sizeof text, "#%" PRIu32, ordinal);

    if (x->counting) {
        x->room += (size_t)n + 1;
        return NULL;
    }
    name = memcpy(x->im->strings + x->used, text, (size_t)n + 1);
    x->used += (size_t)n + 1;
    return name;
}

static int add_export(void *user, const struct pe_export *e, struct exti_error *err)
{
    struct symbols *x = user;
    struct exti_image_symbol s = {
        .name = e->name, .flags = EXTI_SYM_EXPORT, .forward = e->forwarder, .ordinal = e->ordinal};
    const struct pe_section *section = exti__pe_section_of(x->f, e->rva);

    if (!s.name)
        s.name = ordinal_name(x, e->ordinal);
    if (x->counting)
        return 0;
    if (!e->forwarder && section && section->characteristics & IMAGE_SCN_MEM_EXECUTE)
        s.flags |= EXTI_SYM_FUNCTION;
    return exti__image_add_symbol(x->im, s, err);
}

/* Caps the count: several descriptors may share one table, so a small file could otherwise name far
 * more symbols than it has bytes. */
static int add_import_symbol(void *user, const char *name, uint16_t ordinal, struct exti_error *err)
{
    struct symbols *x = user;
    struct exti_image_symbol s = {
        .name = name, .library = x->library, .flags = x->flags, .ordinal = name ? 0 : ordinal};

    if (!s.name)
        s.name = ordinal_name(x, ordinal);
    if (!x->counting)
        return exti__image_add_symbol(x->im, s, err);
    if (++x->imports > x->f->file.n / 4)
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "imports: more symbols than fit into a file of this size");
    return 0;
}

static int add_import(void *user, const struct pe_import *im, struct exti_error *err)
{
    struct symbols *x = user;
    int rc = 0;

    x->library++;
    x->flags = im->delay ? EXTI_SYM_WEAK : 0;
    if (!x->counting)
        rc = exti__image_add_needed(x->im, im->name, im->delay ? EXTI_NEED_WEAK : 0, err);
    return rc ? rc : exti__pe_import_symbols(x->f, im, add_import_symbol, x, err);
}

static int scan_symbols(struct symbols *x, const struct pe_exports *exports, struct exti_error *err)
{
    int rc = exti__pe_exports(x->f, exports, add_export, x, err);

    x->library = 0;
    return rc ? rc : exti__pe_imports(x->f, add_import, x, err);
}

static int add_symbols(const struct pe_file *f, struct exti_image *im, struct exti_error *err)
{
    struct symbols x = {.f = f, .im = im, .counting = true};
    struct pe_exports exports;
    int rc = exti__pe_exports_open(f, &exports, err);

    if (rc)
        return rc;
    im->info.id = exports.dll;
    rc = scan_symbols(&x, &exports, err);
    if (rc)
        return rc;
    im->strings = exti__alloc(x.room);
    if (!im->strings)
        return exti__fail_nomem(err);
    x.counting = false;
    return scan_symbols(&x, &exports, err);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int describe_dll(const struct pe_file *f, struct exti_image *im, struct exti_error *err)
{
    const struct pe_directory_entry *certificates = &f->directories[IMAGE_DIRECTORY_ENTRY_SECURITY];
    int rc;

    im->info.format = "PE";
    im->info.machine = exti__pe_machine(f->machine);
    im->info.bits = f->plus ? 64 : 32;
    im->info.header_room = header_room(f);
    if (certificates->size)
        im->info.signature = EXTI_SIGNATURE_IDENTITY;
    im->info.unfit = exti__pe_unfit(f, NULL);
    im->info.overlay_size = f->overlay_end - f->raw_end;
    im->info.load_flags = f->dependent_load_flags;
    if (f->directories[IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT].rva)
        im->info.flags |= EXTI_IMAGE_BOUND;
    if (f->dll_characteristics & IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY)
        im->info.flags |= EXTI_IMAGE_FORCE_INTEGRITY;
    if (!(f->characteristics & IMAGE_FILE_RELOCS_STRIPPED))
        im->info.flags |= EXTI_IMAGE_RELOCATABLE;
    rc = add_pdb_id(f, im, err);
    if (!rc)
        rc = add_tls(f, im, err);
    return rc ? rc : add_symbols(f, im, err);
}

int exti__pe_read(struct exti_span file, struct exti_image *im, struct exti_error *err)
{
    struct pe_file f;
    int rc = exti__pe_open(file, &f, err);

    if (rc)
        return rc;
    rc = describe_dll(&f, im, err);
    exti__pe_close(&f);
    if (rc)
        exti__image_clear(im);
    return rc;
}
