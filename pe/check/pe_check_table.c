/* Relocations, thread-local storage, load configuration, debug directory, COFF symbols and the
 * checksum. */
#include "pe/check/pe_check_table.h"

#include "pe/check/pe_view_table.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- relocations ----------------------------------------------------------------------------- */

static void ignore_relocation(void *user, uint64_t rva, unsigned size)
{
    (void)user;
    (void)rva;
    (void)size;
}

int exti__pe_rule_relocs(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    uint64_t flaw;

    (void)err;
    exti__pe_relocs(v, ignore_relocation, NULL, &flaw);
    if (flaw != EXTI_NO_OFFSET)
        exti__pe_broken(
            c, flaw, "",
            "relocations: a block does not fit into the directory, or an entry is of an "
            "unknown kind or outside the image");
    return 0;
}

/* The loader adds to relocated words, so they must be unchanged: the rewrite must write no name
 * there. */
static void check_relocated_bytes(void *user, uint64_t rva, unsigned size)
{
    struct pe_check *c = user;
    struct exti_span b, a;

    if (c->findings.stop || !exti__pe_view_at(&c->after, rva, size, &a))
        return;
    if (!exti__pe_view_at(&c->before, rva, size, &b))
        exti__pe_finding(c, a.base, "relocation at 0x%" PRIx64 ": outside the original's bytes",
                         rva);
    else if (exti__pe_ranges_meet(&c->texts, b.base, b.base + size) && memcmp(a.p, b.p, size) != 0)
        exti__pe_finding(c, a.base, "relocation at 0x%" PRIx64 ": in a name that the rewrite wrote",
                         rva);
}

int exti__pe_step_relocs(struct pe_check *c, struct exti_error *err)
{
    uint64_t flaw;

    (void)err;
    if (!c->same)
        exti__pe_relocs(&c->after, check_relocated_bytes, c, &flaw);
    return 0;
}

/* ---- thread-local storage and load configuration --------------------------------------------- */

static uint64_t pointer(const struct pe_view *v, const uint8_t *p, size_t index)
{
    return v->plus ? exti__pe_word64(p + 8 * index) : exti__pe_word32(p + 4 * index);
}

int exti__pe_rule_tls(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    const uint32_t rva = v->directory[IMAGE_DIRECTORY_ENTRY_TLS].rva;
    const unsigned width = v->plus ? 8 : 4;
    struct exti_span s;
    uint64_t from, to, callbacks;

    (void)err;
    if (!rva || !v->directory[IMAGE_DIRECTORY_ENTRY_TLS].size)
        return 0;
    if (!exti__pe_view_at(v, rva, 4 * width + 8, &s)) {
        exti__pe_broken(c, EXTI_NO_OFFSET, "", "TLS directory: not in the file");
        return 0;
    }
    from = pointer(v, s.p, 0);
    to = pointer(v, s.p, 1);
    callbacks = pointer(v, s.p, 3);
    if (to < from || (to > from && !exti__pe_view_mapped(v, from - v->base, to - from)))
        exti__pe_broken(c, s.base, "data",
                        "TLS directory: data from 0x%" PRIx64 " to 0x%" PRIx64 " is in no section",
                        from, to);
    if (!exti__pe_view_mapped(v, pointer(v, s.p, 2) - v->base, 4))
        exti__pe_broken(c, s.base + 2 * width, "index",
                        "TLS directory: its index is in no section");
    if (callbacks && !exti__pe_view_mapped(v, callbacks - v->base, width))
        exti__pe_broken(c, s.base + 3 * width, "callbacks",
                        "TLS directory: its callbacks are in no section");
    return 0;
}

int exti__pe_rule_load_config(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    struct exti_span s;

    (void)err;
    if (v->directory[IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG].size && !exti__pe_load_config(v, &s))
        exti__pe_broken(c, EXTI_NO_OFFSET, "", "load configuration: not entirely in the file");
    return 0;
}

int exti__pe_step_load_flags(struct pe_check *c, struct exti_error *err)
{
    uint64_t at;

    (void)err;
    if (!c->same && exti__pe_load_flags_at(&c->after, &at) &&
        exti__pe_word16(c->after.file.p + at) != 0)
        exti__pe_finding(c, at,
                         "load configuration: DependentLoadFlags 0x%x keeps the loader from the "
                         "copies of libraries",
                         exti__pe_word16(c->after.file.p + at));
    return 0;
}

/* ---- debug directory, symbols ---------------------------------------------------------------- */

static void check_debug(struct pe_check *c, const struct pe_view *v, struct exti_span s, size_t i)
{
    const uint32_t size = exti__pe_word32(s.p + 16), rva = exti__pe_word32(s.p + 20),
                   at = exti__pe_word32(s.p + 24);
    struct exti_span data;
    char subject[24];

    snprintf(subject, sizeof subject, "%zu", i);
    if (at && (uint64_t)at + size > v->file.n)
        exti__pe_broken(c, s.base + 24, subject,
                        "debug entry %zu: 0x%x bytes at 0x%x in a file of 0x%zx", i, size, at,
                        v->file.n);
    else if (at && rva && (!exti__pe_view_at(v, rva, size, &data) || data.base != at))
        exti__pe_broken(c, s.base + 24, subject,
                        "debug entry %zu: PointerToRawData 0x%x is not where 0x%x is in the file",
                        i, at, rva);
}

int exti__pe_rule_debug(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    const uint32_t rva = v->directory[IMAGE_DIRECTORY_ENTRY_DEBUG].rva,
                   size = v->directory[IMAGE_DIRECTORY_ENTRY_DEBUG].size;
    struct exti_span s;

    (void)err;
    if (!rva || !size)
        return 0;
    if (size % DEBUG_DIRECTORY_SIZE || !exti__pe_view_at(v, rva, size, &s)) {
        exti__pe_broken(c, EXTI_NO_OFFSET, "", "debug directory: 0x%x bytes at 0x%x", size, rva);
        return 0;
    }
    for (size_t i = 0; i < size / DEBUG_DIRECTORY_SIZE; i++) {
        struct exti_span entry;

        if (!exti__span_sub(s, i * DEBUG_DIRECTORY_SIZE, DEBUG_DIRECTORY_SIZE, "", &entry, NULL))
            check_debug(c, v, entry, i);
    }
    return 0;
}

int exti__pe_step_debug(struct pe_check *c, struct exti_error *err)
{
    const size_t dir = IMAGE_DIRECTORY_ENTRY_DEBUG;
    const uint32_t rva = c->before.directory[dir].rva, size = c->before.directory[dir].size;
    struct exti_span b, a;

    (void)err;
    if (!exti__pe_view_at(&c->before, rva, size, &b) || !exti__pe_view_at(&c->after, rva, size, &a))
        return 0;
    for (size_t i = 0; i + DEBUG_DIRECTORY_SIZE <= size; i += DEBUG_DIRECTORY_SIZE) {
        const uint32_t was = exti__pe_word32(b.p + i + 24), now = exti__pe_word32(a.p + i + 24);

        if (now != was + (was >= c->raw_from ? c->shift : 0))
            exti__pe_finding(c, a.base + i + 24,
                             "debug entry %zu: PointerToRawData 0x%x, in the original 0x%x",
                             i / DEBUG_DIRECTORY_SIZE, now, was);
    }
    return 0;
}

int exti__pe_rule_symbols(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    struct exti_span s, strings;

    (void)err;
    if (!v->symbols_at)
        return 0;
    if (exti__span_table(v->file, v->symbols_at, v->symbol_count, COFF_SYMBOL_SIZE, "", &s, NULL) ||
        (v->symbol_count && exti__span_sub(v->file, s.base + s.n, 4, "", &strings, NULL)) ||
        (v->symbol_count &&
         exti__span_sub(v->file, s.base + s.n, exti__pe_word32(strings.p), "", &strings, NULL)))
        exti__pe_broken(c, v->nt + 12, "",
                        "COFF symbols: %u of them at 0x%x, or their names, are not in the file",
                        v->symbol_count, v->symbols_at);
    return 0;
}

/* ---- checksum -------------------------------------------------------------------------------- */

/* The sum of all 16-bit words with carries added back at the low end, plus the file's size.
 * CheckSum itself counts as zeros. */
static uint32_t image_checksum(const struct pe_view *v)
{
    const uint64_t field = v->optional + 64;
    const uint8_t *p = v->file.p;
    uint64_t sum = 0;
    size_t at = 0;

    /* Two words at once: since carries are added back, the weight of the upper one does not
     * matter. */
    for (; at + 3 < v->file.n; at += 4)
        sum += p[at] | (uint32_t)p[at + 1] << 8 | (uint32_t)p[at + 2] << 16 |
               (uint32_t)p[at + 3] << 24;
    for (; at < v->file.n; at++)
        sum += (uint64_t)p[at] << (at % 2 ? 8 : 0);
    for (uint64_t i = field; i < field + 4; i++)
        sum -= (uint64_t)p[i] << (i % 2 ? 8 : 0);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint32_t)(sum + v->file.n);
}

int exti__pe_rule_checksum(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    const uint32_t right = v->checksum ? image_checksum(v) : 0;

    (void)err;
    if (v->checksum != right)
        exti__pe_broken(c, v->optional + 64, "", "CheckSum 0x%x, not 0x%x", v->checksum, right);
    return 0;
}

/* A wrong checksum in the original does not excuse one in the copy, which computes it anew. */
int exti__pe_step_checksum(struct pe_check *c, struct exti_error *err)
{
    (void)err;
    if (c->same || !c->after.checksum || !c->before.checksum ||
        c->before.checksum == image_checksum(&c->before) ||
        c->after.checksum == image_checksum(&c->after))
        return 0;
    exti__pe_finding(c, c->after.optional + 64, "CheckSum 0x%x, not 0x%x", c->after.checksum,
                     image_checksum(&c->after));
    return 0;
}
