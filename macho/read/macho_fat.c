/* Universal files: a big-endian table of slices, each a complete file (<mach-o/fat.h>). */
#include "macho/read/macho_fat.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/read/macho_arch.h"

/* dyld's kMaxSliceCount. */
enum { MAX_SLICES = 16 };

enum { FAT_HEADER_SIZE = 8, FAT_ARCH_SIZE = 20, FAT_ARCH_64_SIZE = 32 };

const struct macho_slice *exti__macho_slice_for(const struct macho_fat *fat, uint32_t cputype,
                                                uint32_t cpusubtype)
{
    const struct macho_slice *alike = NULL;

    for (size_t i = 0; i < fat->count; i++) {
        const struct macho_slice *s = &fat->slices[i];

        if (s->cputype != cputype)
            continue;
        if (exti__macho_plain_subtype(s->cpusubtype) == exti__macho_plain_subtype(cpusubtype))
            return s;
        if (!alike && exti__macho_is_arm64e(s->cputype, s->cpusubtype) ==
                          exti__macho_is_arm64e(cputype, cpusubtype))
            alike = s;
    }
    return alike;
}

bool exti__macho_slice_handled(const struct macho_slice *slice)
{
    struct exti_cur c = exti__cur(slice->s, false);

    return exti__cur_u32(&c) == MH_MAGIC_64 &&
           exti__macho_arch_handled(slice->cputype, slice->cpusubtype);
}

static uint64_t fat_entry_at(const struct macho_fat *fat, size_t i)
{
    return FAT_HEADER_SIZE + i * (fat->wide ? FAT_ARCH_64_SIZE : FAT_ARCH_SIZE);
}

static int fail_slice(const struct macho_fat *fat, size_t i, uint32_t at, int code,
                      struct exti_error *err, const char *what, uint64_t value)
{
    const struct macho_slice *s = &fat->slices[i];

    return exti__fail(err, code, fat_entry_at(fat, i) + at, "slice %zu %s: %s 0x%" PRIx64, i,
                      exti__macho_arch(s->cputype, s->cpusubtype), what, value);
}

/* The slice's own header must name the architecture that the table names.  dyld accepts an
 * arm64e slice whose table entry lacks the ABI version in the high byte. */
static int check_contents(const struct macho_fat *fat, size_t i, struct exti_error *err)
{
    const struct macho_slice *s = &fat->slices[i];
    struct exti_cur c = exti__cur(s->s, false);
    uint32_t magic = exti__cur_u32(&c), cputype, cpusubtype;

    if (magic == MH_CIGAM || magic == MH_CIGAM_64)
        c.big_endian = true;
    else if (magic != MH_MAGIC && magic != MH_MAGIC_64)
        return exti__fail(
            err,
            s->s.n >= 8 && memcmp(s->s.p, "!<arch>\n", 8) == 0 ? EXTI_E_UNSUPPORTED : EXTI_E_FORMAT,
            s->offset, "slice %zu %s: is %s", i, exti__macho_arch(s->cputype, s->cpusubtype),
            s->s.n >= 8 && memcmp(s->s.p, "!<arch>\n", 8) == 0
                ? "a static library; link it into a shared one first"
                : "not a Mach-O file");
    cputype = exti__cur_u32(&c);
    cpusubtype = exti__cur_u32(&c);
    if (c.failed || cputype != s->cputype ||
        exti__macho_plain_subtype(cpusubtype) != exti__macho_plain_subtype(s->cpusubtype))
        return exti__fail(err, EXTI_E_FORMAT, s->offset + 4,
                          "slice %zu %s: its own header says %s (cputype 0x%" PRIx32
                          ", cpusubtype 0x%" PRIx32 ")",
                          i, exti__macho_arch(s->cputype, s->cpusubtype),
                          exti__macho_arch(cputype, cpusubtype), cputype, cpusubtype);
    return 0;
}

/* Checks offset and size of slice `i` against the file and the earlier slices. */
static int check_slice(const struct macho_fat *fat, size_t i, struct exti_span file,
                       struct exti_error *err)
{
    struct macho_slice *s = &fat->slices[i];
    uint32_t size_at = fat->wide ? 16 : 12;
    uint64_t page = s->cputype == CPU_TYPE_ARM64 ? 0x4000 : 0x1000;

    if (s->offset < fat->at_end)
        return fail_slice(fat, i, 8, EXTI_E_FORMAT, err, "starts within the table, which ends at",
                          fat->at_end);
    if (s->offset > file.n || s->size > file.n - s->offset)
        return fail_slice(fat, i, size_at, EXTI_E_FORMAT, err, "ends past the file's end", file.n);
    if (s->align > 31 || s->offset % (UINT64_C(1) << s->align))
        return fail_slice(fat, i, size_at + (fat->wide ? 8 : 4), EXTI_E_FORMAT, err,
                          "its offset is not a multiple of 2 to the power of", s->align);
    if (s->offset % page)
        return fail_slice(fat, i, 8, EXTI_E_FORMAT, err,
                          "its offset is not a multiple of the page size", page);
    for (size_t k = 0; k < i; k++) {
        const struct macho_slice *o = &fat->slices[k];

        if (o->cputype == s->cputype &&
            exti__macho_plain_subtype(o->cpusubtype) == exti__macho_plain_subtype(s->cpusubtype))
            return fail_slice(fat, i, 0, EXTI_E_FORMAT, err, "the same architecture as slice", k);
        if (s->offset < o->offset ? o->offset - s->offset < s->size
                                  : s->offset - o->offset < o->size)
            return fail_slice(fat, i, 8, EXTI_E_FORMAT, err, "shares bytes with slice", k);
    }
    s->s = (struct exti_span){0};
    if (exti__span_sub(file, s->offset, s->size, "slice", &s->s, err))
        return EXTI_E_FORMAT;
    return check_contents(fat, i, err);
}

static void read_entry(struct exti_cur *c, bool wide, struct macho_slice *s)
{
    s->cputype = exti__cur_u32(c);
    s->cpusubtype = exti__cur_u32(c);
    s->offset = wide ? exti__cur_u64(c) : exti__cur_u32(c);
    s->size = wide ? exti__cur_u64(c) : exti__cur_u32(c);
    s->align = exti__cur_u32(c);
    if (wide)
        exti__cur_skip(c, 4);
}

/* lipo hides an arm64 slice after the last entry of a 32-bit table, from systems that would
 * reject the table with it.  dyld looks there. */
static void read_hidden(struct macho_fat *fat, struct exti_cur *c)
{
    struct exti_cur peek = *c;
    struct macho_slice s = {0};

    read_entry(&peek, false, &s);
    if (peek.failed || s.cputype != CPU_TYPE_ARM64 ||
        exti__macho_plain_subtype(s.cpusubtype) != CPU_SUBTYPE_ARM64_ALL)
        return;
    fat->slices[fat->count++] = s;
    fat->hidden = true;
    *c = peek;
}

static int read_table(struct exti_span file, uint32_t count, struct macho_fat *fat,
                      struct exti_error *err)
{
    struct exti_cur c = exti__cur(file, true);
    int rc;

    exti__cur_skip(&c, FAT_HEADER_SIZE);
    for (uint32_t i = 0; i < count; i++)
        read_entry(&c, fat->wide, &fat->slices[fat->count++]);
    rc = exti__cur_end(&c, "universal file's table", err);
    if (rc)
        return rc;
    if (!fat->wide)
        read_hidden(fat, &c);
    fat->at_end = c.at;
    for (size_t i = 0; !rc && i < fat->count; i++)
        rc = check_slice(fat, i, file, err);
    return rc;
}

static int read_thin(struct exti_span file, struct macho_fat *fat, struct exti_error *err)
{
    struct exti_cur c = exti__cur(file, false);
    uint32_t magic = exti__cur_u32(&c);
    struct macho_slice s = {.size = file.n, .s = file};

    c.big_endian = magic == MH_CIGAM || magic == MH_CIGAM_64;
    s.cputype = exti__cur_u32(&c);
    s.cpusubtype = exti__cur_u32(&c);
    fat->slices[fat->count++] = s;
    return exti__cur_end(&c, "Mach-O header", err);
}

int exti__macho_fat_open(struct exti_span file, struct macho_fat *fat, struct exti_error *err)
{
    struct exti_cur c = exti__cur(file, true);
    uint32_t magic = exti__cur_u32(&c), count;
    bool thin = magic != FAT_MAGIC && magic != FAT_MAGIC_64;
    int rc;

    *fat = (struct macho_fat){.wide = magic == FAT_MAGIC_64};
    fat->slices = exti__calloc(MAX_SLICES + 1, sizeof *fat->slices);
    if (!fat->slices)
        return exti__fail_nomem(err);
    count = thin ? 1 : exti__cur_u32(&c);
    rc = exti__cur_end(&c, thin ? "Mach-O header" : "universal file's header", err);
    if (!rc && (!count || count > MAX_SLICES))
        rc = exti__fail(err, EXTI_E_FORMAT, 4,
                        "universal file's header: nfat_arch is %" PRIu32 ", not from 1 to %d",
                        count, MAX_SLICES);
    if (!rc)
        rc = thin ? read_thin(file, fat, err) : read_table(file, count, fat, err);
    if (rc)
        exti__macho_fat_close(fat);
    return rc;
}

void exti__macho_fat_close(struct macho_fat *fat)
{
    exti__free(fat->slices);
    *fat = (struct macho_fat){0};
}
