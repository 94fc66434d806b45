/* Opens a PE image: MS-DOS, COFF and optional headers. */
#include "pe/read/pe_file.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "pe/read/pe_directory.h"
#include "pe/read/pe_section.h"

/* Fields of the optional header at the same offset in PE32 and PE32+. */
enum {
    OPTIONAL_SIZE_OF_IMAGE = 56,
    OPTIONAL_SIZE_OF_HEADERS = 60,
    OPTIONAL_SECTION_ALIGNMENT = 32,
    OPTIONAL_FILE_ALIGNMENT = 36,
    LEAST_FILE_ALIGNMENT = 512,
    MOST_FILE_ALIGNMENT = 0x10000,
    PAGE = 4096
};

struct machine {
    uint16_t number;
    const char *name;
    bool handled;
};

static const struct machine machines[] = {
    {IMAGE_FILE_MACHINE_I386, "i386", true},
    {IMAGE_FILE_MACHINE_AMD64, "x86-64", true},
    {IMAGE_FILE_MACHINE_ARM64, "arm64", true},
    {IMAGE_FILE_MACHINE_ARM64EC, "arm64ec", false},
    {IMAGE_FILE_MACHINE_ARM64X, "arm64x", false},
    {0x01c0, "arm", false},
    {0x01c2, "thumb", false},
    {0x01c4, "armnt", false},
    {0x0200, "ia64", false},
    {0x5032, "riscv32", false},
    {0x5064, "riscv64", false},
    {0x6264, "loongarch64", false},
};

static const struct machine *machine_of(uint16_t number)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].number == number)
            return &machines[i];
    return NULL;
}

const char *exti__pe_machine(uint16_t machine)
{
    const struct machine *m = machine_of(machine);

    return m ? m->name : "unknown";
}

/* ---- the MS-DOS header ----------------------------------------------------------------------- */

static int not_pe(uint32_t signature, uint64_t at, uint16_t relocations_at, struct exti_error *err)
{
    const uint16_t first = (uint16_t)signature;

    if (first == 0x454e || first == 0x454c || first == 0x584c) /* NE, LE, LX */
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "a file for 16-bit Windows or OS/2 (%c%c), not a PE file", first & 0xff,
                          first >> 8);
    /* In a file with a newer header, e_lfarlc points past e_lfanew. */
    if (relocations_at < DOS_HEADER_SIZE)
        return exti__fail(err, EXTI_E_UNSUPPORTED, 0, "an MS-DOS program, not a PE file");
    return exti__fail(err, EXTI_E_FORMAT, at, "PE signature is 0x%" PRIx32 ", not 0x%x", signature,
                      IMAGE_NT_SIGNATURE);
}

static int check_magic(uint16_t magic, struct exti_error *err)
{
    const struct machine *object = machine_of(magic);

    if (magic == IMAGE_DOS_SIGNATURE)
        return 0;
    if (object)
        return exti__fail(err, EXTI_E_UNSUPPORTED, 0, "a COFF object for %s, not a DLL",
                          object->name);
    return exti__fail(err, EXTI_E_FORMAT, 0, "MS-DOS header: magic is 0x%" PRIx16 ", not 0x%x",
                      magic, IMAGE_DOS_SIGNATURE);
}

static int read_dos_header(struct pe_file *f, struct exti_error *err)
{
    struct exti_cur c = exti__cur(f->file, false);
    uint16_t magic = exti__cur_u16(&c), relocations_at;
    uint32_t signature;
    int rc = exti__cur_end(&c, "MS-DOS header", err);

    if (!rc)
        rc = check_magic(magic, err);
    if (rc)
        return rc;
    exti__cur_skip(&c, 22);
    relocations_at = exti__cur_u16(&c);
    exti__cur_skip(&c, 34);
    f->nt_at = exti__cur_u32(&c);
    rc = exti__cur_end(&c, "MS-DOS header", err);
    if (rc)
        return rc;
    if (f->nt_at > f->file.n || f->file.n - f->nt_at < 4 + COFF_HEADER_SIZE) {
        if (relocations_at < DOS_HEADER_SIZE)
            return not_pe(0, 0, relocations_at, err);
        return exti__fail(err, EXTI_E_FORMAT, DOS_E_LFANEW,
                          "MS-DOS header: e_lfanew is 0x%" PRIx64
                          ", where a file of 0x%zx bytes has no room for PE headers",
                          f->nt_at, f->file.n);
    }
    c = exti__cur(f->file, false);
    exti__cur_skip(&c, f->nt_at);
    signature = exti__cur_u32(&c);
    if (signature != IMAGE_NT_SIGNATURE)
        return not_pe(signature, f->nt_at, relocations_at, err);
    if (f->nt_at % 4 || f->nt_at < DOS_HEADER_SIZE)
        return exti__fail(err, EXTI_E_FORMAT, DOS_E_LFANEW,
                          "MS-DOS header: e_lfanew is 0x%" PRIx64 ", not a multiple of 4 from 0x%x",
                          f->nt_at, DOS_HEADER_SIZE);
    return 0;
}

/* ---- the COFF header ------------------------------------------------------------------------- */

static int check_kind(const struct pe_file *f, struct exti_error *err)
{
    const struct machine *m = machine_of(f->machine);

    if (!m || !m->handled)
        return exti__fail(err, EXTI_E_UNSUPPORTED, f->nt_at + 4,
                          "PE header: for %s (Machine 0x%" PRIx16
                          "); i386, x86-64 and arm64 are handled",
                          exti__pe_machine(f->machine), f->machine);
    if (!(f->characteristics & IMAGE_FILE_EXECUTABLE_IMAGE))
        return exti__fail(err, EXTI_E_FORMAT, f->nt_at + 22,
                          "PE header: Characteristics 0x%" PRIx16
                          " say that the file was not linked",
                          f->characteristics);
    if (!(f->characteristics & IMAGE_FILE_DLL))
        return exti__fail(err, EXTI_E_UNSUPPORTED, f->nt_at + 22, "a program (EXE), not a DLL");
    return 0;
}

/* The symbols, and behind them their strings, which begin with their size. */
static int check_coff_symbols(const struct pe_file *f, struct exti_error *err)
{
    uint64_t size = (uint64_t)f->symbol_count * COFF_SYMBOL_SIZE;
    struct exti_span s, strings;
    struct exti_cur c;
    int rc;

    if (!f->symbols_at)
        return 0;
    rc = exti__span_sub(f->file, f->symbols_at, size, "COFF symbol table", &s, err);
    if (rc)
        return rc;
    c = exti__cur(f->file, false);
    exti__cur_skip(&c, f->symbols_at + size);
    size = exti__cur_u32(&c);
    if (c.failed)
        return 0;
    return exti__span_sub(f->file, s.base + s.n, size, "COFF string table", &strings, err);
}

static int read_coff_header(struct pe_file *f, uint16_t *optional_size, struct exti_error *err)
{
    struct exti_cur c = exti__cur(f->file, false);
    int rc;

    exti__cur_skip(&c, f->nt_at + 4);
    f->machine = exti__cur_u16(&c);
    f->section_count = exti__cur_u16(&c);
    exti__cur_skip(&c, 4);
    f->symbols_at = exti__cur_u32(&c);
    f->symbol_count = exti__cur_u32(&c);
    *optional_size = exti__cur_u16(&c);
    f->characteristics = exti__cur_u16(&c);
    rc = exti__cur_end(&c, "PE header", err);
    if (!rc)
        rc = check_kind(f, err);
    if (rc)
        return rc;
    if (!f->section_count || f->section_count > PE_MOST_SECTIONS)
        return exti__fail(err, EXTI_E_FORMAT, f->nt_at + 6,
                          "PE header: %zu sections, not 1 to %u, as Windows demands",
                          f->section_count, PE_MOST_SECTIONS);
    return check_coff_symbols(f, err);
}

/* ---- the optional header --------------------------------------------------------------------- */

static int check_alignments(const struct pe_file *f, struct exti_error *err)
{
    const uint32_t file = f->file_alignment, section = f->section_alignment;

    if (!exti__is_power_of_2(file) || file > MOST_FILE_ALIGNMENT)
        return exti__fail(err, EXTI_E_FORMAT, f->optional_at + OPTIONAL_FILE_ALIGNMENT,
                          "optional header: FileAlignment is 0x%" PRIx32
                          ", not a power of two up to 0x%x",
                          file, MOST_FILE_ALIGNMENT);
    if (!exti__is_power_of_2(section) || section < file || (section < PAGE && section != file))
        return exti__fail(
            err, EXTI_E_FORMAT, f->optional_at + OPTIONAL_SECTION_ALIGNMENT,
            "optional header: SectionAlignment is 0x%" PRIx32
            ", not a power of two of a page or more, nor the FileAlignment 0x%" PRIx32,
            section, file);
    if (file < LEAST_FILE_ALIGNMENT)
        return exti__fail(err, EXTI_E_UNSUPPORTED, f->optional_at + OPTIONAL_FILE_ALIGNMENT,
                          "optional header: FileAlignment is 0x%" PRIx32
                          ", as in drivers; only 0x%x and above are supported",
                          file, LEAST_FILE_ALIGNMENT);
    return 0;
}

static int check_optional_magic(struct pe_file *f, uint16_t magic, struct exti_error *err)
{
    const bool plus = f->machine != IMAGE_FILE_MACHINE_I386;
    const uint16_t right = plus ? IMAGE_NT_OPTIONAL_HDR64_MAGIC : IMAGE_NT_OPTIONAL_HDR32_MAGIC;

    if (magic != right)
        return exti__fail(err, EXTI_E_FORMAT, f->optional_at,
                          "optional header: magic is 0x%" PRIx16 ", not 0x%" PRIx16
                          ", which %s needs",
                          magic, right, exti__pe_machine(f->machine));
    f->plus = plus;
    return 0;
}

static void read_optional_fields(struct pe_file *f, struct exti_cur *c)
{
    exti__cur_skip(c, f->plus ? 22 : 26);
    f->image_base = f->plus ? exti__cur_u64(c) : exti__cur_u32(c);
    f->section_alignment = exti__cur_u32(c);
    f->file_alignment = exti__cur_u32(c);
    exti__cur_skip(c, 16);
    f->size_of_image = exti__cur_u32(c);
    f->size_of_headers = exti__cur_u32(c);
    f->checksum = exti__cur_u32(c);
    exti__cur_skip(c, 2);
    f->dll_characteristics = exti__cur_u16(c);
    exti__cur_skip(c, f->plus ? 36 : 20);
    f->directory_count = exti__cur_u32(c);
}

static int read_optional_header(struct pe_file *f, uint16_t size, struct exti_error *err)
{
    struct exti_span s;
    struct exti_cur c;
    uint64_t count_at;
    int rc = exti__span_sub(f->file, f->optional_at, size, "optional header", &s, err);

    if (rc)
        return rc;
    c = exti__cur(s, false);
    rc = check_optional_magic(f, exti__cur_u16(&c), err);
    if (rc)
        return rc;
    read_optional_fields(f, &c);
    rc = exti__cur_end(&c, "optional header", err);
    if (rc)
        return rc;
    count_at = f->optional_at + c.at - 4;
    if (f->directory_count > IMAGE_NUMBEROF_DIRECTORY_ENTRIES)
        return exti__fail(err, EXTI_E_FORMAT, count_at,
                          "optional header: NumberOfRvaAndSizes is %zu, more than %d",
                          f->directory_count, IMAGE_NUMBEROF_DIRECTORY_ENTRIES);
    for (size_t i = 0; i < f->directory_count; i++) {
        f->directories[i].at = f->optional_at + c.at;
        f->directories[i].rva = exti__cur_u32(&c);
        f->directories[i].size = exti__cur_u32(&c);
    }
    if (c.failed)
        return exti__fail(err, EXTI_E_FORMAT, f->nt_at + 20,
                          "PE header: SizeOfOptionalHeader is %" PRIu16
                          ", too small for %zu data directories",
                          size, f->directory_count);
    return check_alignments(f, err);
}

static int check_sizes(const struct pe_file *f, uint64_t table_end, struct exti_error *err)
{
    if (f->size_of_headers < table_end || f->size_of_headers > f->file.n ||
        f->size_of_headers % f->file_alignment)
        return exti__fail(
            err, EXTI_E_FORMAT, f->optional_at + OPTIONAL_SIZE_OF_HEADERS,
            "optional header: SizeOfHeaders is 0x%" PRIx32
            ", not a multiple of FileAlignment from the section table's end 0x%" PRIx64
            " to the file's 0x%zx",
            f->size_of_headers, table_end, f->file.n);
    return 0;
}

/* Windows maps no image whose last section ends elsewhere than SizeOfImage says. */
static int check_image_end(const struct pe_file *f, struct exti_error *err)
{
    const struct pe_section *last = &f->sections[f->section_count - 1];
    uint64_t end = 0, size = 0;

    exti__align((uint64_t)last->rva + last->virtual_size, f->section_alignment, &end);
    exti__align(f->size_of_image, f->section_alignment, &size);
    if (size != end)
        return exti__fail(err, EXTI_E_FORMAT, f->optional_at + OPTIONAL_SIZE_OF_IMAGE,
                          "optional header: SizeOfImage is 0x%" PRIx32
                          ", but the sections end at 0x%" PRIx64,
                          f->size_of_image, end);
    return 0;
}

static int read_headers(struct pe_file *f, struct exti_error *err)
{
    uint16_t optional_size = 0;
    uint64_t table_end;
    int rc = read_dos_header(f, err);

    if (!rc)
        rc = read_coff_header(f, &optional_size, err);
    if (rc)
        return rc;
    f->optional_at = f->nt_at + 4 + COFF_HEADER_SIZE;
    f->sections_at = f->optional_at + optional_size;
    table_end = f->sections_at + f->section_count * SECTION_HEADER_SIZE;
    rc = read_optional_header(f, optional_size, err);
    if (!rc)
        rc = check_sizes(f, table_end, err);
    if (!rc)
        rc = exti__pe_read_sections(f, table_end, err);
    if (!rc)
        rc = check_image_end(f, err);
    return rc ? rc : exti__pe_check_directories(f, err);
}

int exti__pe_open(struct exti_span file, struct pe_file *f, struct exti_error *err)
{
    int rc;

    *f = (struct pe_file){.file = file};
    rc = read_headers(f, err);
    if (rc)
        exti__pe_close(f);
    return rc;
}

void exti__pe_close(struct pe_file *f)
{
    exti__free(f->sections);
    *f = (struct pe_file){0};
}

const char *exti__pe_unfit(const struct pe_file *f, uint64_t *at)
{
    const struct pe_section *first = &f->sections[0];

    if (at)
        *at = f->nt_at + 22;
    if (f->characteristics & IMAGE_FILE_RELOCS_STRIPPED)
        return "has no relocations (IMAGE_FILE_RELOCS_STRIPPED): a copy could not be loaded beside "
               "the original";
    if (at)
        *at = first->at;
    if (first->characteristics & IMAGE_SCN_MEM_EXECUTE && !first->raw_size)
        return "is packed: its first section is code that the file does not hold";
    return NULL;
}
