/* Checks where the data directories lie, and refuses kinds of files that they reveal. */
#include "pe/read/pe_directory.h"

#include <inttypes.h>

#include "base/error.h"
#include "pe/read/pe_address.h"

static const char *const names[IMAGE_NUMBEROF_DIRECTORY_ENTRIES] = {
    [IMAGE_DIRECTORY_ENTRY_EXPORT] = "export directory",
    [IMAGE_DIRECTORY_ENTRY_IMPORT] = "import directory",
    [IMAGE_DIRECTORY_ENTRY_RESOURCE] = "resource directory",
    [IMAGE_DIRECTORY_ENTRY_EXCEPTION] = "exception directory",
    [IMAGE_DIRECTORY_ENTRY_SECURITY] = "certificate table",
    [IMAGE_DIRECTORY_ENTRY_BASERELOC] = "relocation directory",
    [IMAGE_DIRECTORY_ENTRY_DEBUG] = "debug directory",
    [IMAGE_DIRECTORY_ENTRY_ARCHITECTURE] = "architecture directory",
    [IMAGE_DIRECTORY_ENTRY_GLOBALPTR] = "global pointer",
    [IMAGE_DIRECTORY_ENTRY_TLS] = "TLS directory",
    [IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG] = "load configuration",
    [IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT] = "bound import directory",
    [IMAGE_DIRECTORY_ENTRY_IAT] = "import address table",
    [IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT] = "delay import directory",
    [IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR] = ".NET header",
    [15] = "reserved directory",
};

/* Each directory lies within one section, except bound imports, which follow the section table. */
static int check_range(const struct pe_file *f, size_t i, struct exti_error *err)
{
    const struct pe_directory_entry *d = &f->directories[i];
    const uint64_t end = (uint64_t)d->rva + d->size;
    const struct pe_section *s = exti__pe_section_of(f, d->rva);

    if (!d->rva || (s && (end == d->rva || (end - 1 <= UINT32_MAX &&
                                            exti__pe_section_of(f, (uint32_t)(end - 1)) == s))))
        return 0;
    if (i == IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT && end <= f->size_of_headers)
        return 0;
    return exti__fail(err, EXTI_E_FORMAT, d->at,
                      "%s: 0x%" PRIx32 " bytes at RVA 0x%" PRIx32 " are not within one section",
                      names[i], d->size, d->rva);
}

/* The only directory with a file offset in place of an RVA: it follows everything else. */
static int check_certificates(struct pe_file *f, struct exti_error *err)
{
    const struct pe_directory_entry *d = &f->directories[IMAGE_DIRECTORY_ENTRY_SECURITY];
    struct exti_span s;
    int rc;

    f->overlay_end = f->file.n;
    if (!d->size)
        return 0;
    if (d->rva % 8 || d->rva < f->raw_end)
        return exti__fail(err, EXTI_E_FORMAT, d->at,
                          "certificate table: its file offset 0x%" PRIx32
                          " is not a multiple of 8 from 0x%" PRIx64
                          " on, where the sections' contents end",
                          d->rva, f->raw_end);
    rc = exti__span_sub(f->file, d->rva, d->size, "certificate table", &s, err);
    if (!rc && s.base + s.n == f->file.n)
        f->overlay_end = d->rva;
    return rc;
}

/* The structure's first field holds its size; linkers wrote a wrong size into the directory for
 * years. CHPEMetadataPointer marks files with a second set of tables for another machine. */
static int read_load_config(struct pe_file *f, struct exti_error *err)
{
    const struct pe_directory_entry *d = &f->directories[IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG];
    const uint32_t flags_at = f->plus ? 78 : 54, chpe_at = f->plus ? 200 : 124;
    const uint32_t word = f->plus ? 8 : 4;
    struct exti_span s;
    struct exti_cur c;
    uint32_t size;
    int rc;

    if (!d->rva || !d->size)
        return 0;
    rc = exti__pe_error_at(exti__pe_at(f, d->rva, 4, names[10], &s, err), d->at, err);
    if (rc)
        return rc;
    c = exti__cur(s, false);
    size = exti__cur_u32(&c);
    rc = exti__pe_at(f, d->rva, size, names[10], &s, err);
    if (rc)
        return rc;
    c = exti__cur(s, false);
    exti__cur_skip(&c, flags_at);
    f->dependent_load_flags = exti__cur_u16(&c);
    if (!c.failed)
        f->dependent_load_flags_at = s.base + flags_at;
    c = exti__cur(s, false);
    exti__cur_skip(&c, chpe_at);
    if ((word == 8 ? exti__cur_u64(&c) : exti__cur_u32(&c)) != 0)
        return exti__fail(
            err, EXTI_E_UNSUPPORTED, s.base + chpe_at,
            "load configuration: CHPEMetadataPointer is set: ARM64EC and ARM64X files, "
            "with tables for two machines, are not supported");
    return 0;
}

int exti__pe_check_directories(struct pe_file *f, struct exti_error *err)
{
    const struct pe_directory_entry *net = &f->directories[IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR];
    int rc = check_certificates(f, err);

    for (size_t i = 0; !rc && i < f->directory_count; i++)
        if (i != IMAGE_DIRECTORY_ENTRY_SECURITY)
            rc = check_range(f, i, err);
    if (!rc && net->rva)
        return exti__fail(err, EXTI_E_UNSUPPORTED, net->at, "a .NET assembly, not a native DLL");
    return rc ? rc : read_load_config(f, err);
}
