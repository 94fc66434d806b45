/* All bytes that no other step compares equal the original's. */
#include "pe/check/pe_check_bytes.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

enum { CERTIFICATE_ALIGN = 8 };

/* ---- the comparison -------------------------------------------------------------------------- */

static const char *name_of_place(const struct pe_view *v, uint64_t at)
{
    static const char *const directories[IMAGE_NUMBEROF_DIRECTORY_ENTRIES] = {
        [IMAGE_DIRECTORY_ENTRY_EXPORT] = "exports",
        [IMAGE_DIRECTORY_ENTRY_RESOURCE] = "resources",
        [IMAGE_DIRECTORY_ENTRY_EXCEPTION] = "exception table",
        [IMAGE_DIRECTORY_ENTRY_BASERELOC] = "relocations",
        [IMAGE_DIRECTORY_ENTRY_DEBUG] = "debug directory",
        [IMAGE_DIRECTORY_ENTRY_TLS] = "TLS directory",
        [IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG] = "load configuration",
        [IMAGE_DIRECTORY_ENTRY_IAT] = "import address table",
    };
    struct exti_span s;

    for (size_t i = 0; i < IMAGE_NUMBEROF_DIRECTORY_ENTRIES; i++)
        if (directories[i] && exti__pe_view_at(v, v->directory[i].rva, v->directory[i].size, &s) &&
            at >= s.base && at - s.base < s.n)
            return directories[i];
    for (size_t i = 0; i < v->section_count; i++)
        if (at >= v->sections[i].raw_at && at - v->sections[i].raw_at < v->sections[i].raw_size)
            return v->sections[i].name;
    return "behind the sections";
}

static void compare_bytes(struct pe_check *c, uint64_t at, uint64_t end)
{
    const uint8_t *b = c->before.file.p, *a = c->after.file.p + c->shift;

    if (at >= end || c->findings.stop || memcmp(b + at, a + at, (size_t)(end - at)) == 0)
        return;
    while (b[at] == a[at])
        at++;
    exti__pe_finding(c, at + c->shift, "%s: byte 0x%02x, not 0x%02x", name_of_place(&c->before, at),
                     a[at], b[at]);
}

/* Compares the original's [at, end) except for `left_out`. */
static void compare_outside(struct pe_check *c, const struct pe_ranges *left_out, uint64_t at,
                            uint64_t end)
{
    for (size_t i = 0; i < left_out->n && at < end && !c->findings.stop; i++) {
        const struct pe_range *r = &left_out->v[i];

        if (r->end <= at)
            continue;
        compare_bytes(c, at, r->at < end ? r->at : end);
        at = r->end;
    }
    compare_bytes(c, at, end);
}

static void compare_planned(struct pe_check *c, const struct pe_ranges *left_out, uint64_t at,
                            uint64_t end)
{
    uint64_t from, to;

    for (size_t i = 0; exti__plan_part(c->plan, i, at, end, &from, &to); i++)
        compare_outside(c, left_out, from, to);
}

/* Leaves out the padding behind a section's own bytes, where names may have been written over
 * zeros. */
static int note_slack(struct pe_check *c, struct pe_ranges *out, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < c->before.section_count && i < c->after.section_count; i++) {
        const struct pe_view_section *b = &c->before.sections[i], *a = &c->after.sections[i];
        uint64_t end = a->extent < b->raw_size ? a->extent : b->raw_size;

        if (b->raw_at <= c->before.file.n && end > c->before.file.n - b->raw_at)
            end = c->before.file.n - b->raw_at;
        if (!b->raw_at || b->raw_at > c->before.file.n || end <= b->extent)
            continue;
        rc = exti__pe_range_add(out, b->raw_at + b->extent, end - b->extent, err);
        for (uint64_t at = b->raw_at + b->extent; at < b->raw_at + end; at++)
            if (at + c->shift < c->after.file.n && c->before.file.p[at] &&
                c->before.file.p[at] != c->after.file.p[at + c->shift]) {
                exti__pe_finding(c, at + c->shift,
                                 "section %s: written over 0x%02x behind its bytes", b->name,
                                 c->before.file.p[at]);
                break;
            }
    }
    return rc;
}

static int note_exported(struct pe_check *c, struct pe_ranges *out, struct exti_error *err)
{
    const struct pe_exported *x = &c->exports_after;
    int rc = exti__pe_range_add(out, x->at, EXPORT_DIRECTORY_SIZE, err);

    if (!rc)
        rc = exti__pe_range_add(out, x->functions.base, x->functions.n, err);
    if (!rc)
        rc = exti__pe_range_add(out, x->dll_at, strlen(x->dll), err);
    for (uint32_t i = 0; !rc && i < x->function_count; i++) {
        uint32_t rva;
        const char *text = exti__pe_forwarder(&c->after, x, i, &rva);

        if (text)
            rc = exti__pe_range_add(out, (uint64_t)((const uint8_t *)text - c->after.file.p),
                                    strlen(text), err);
    }
    return rc;
}

/* Collects the bytes that the copy's tables refer to and that edits may have written. */
static int note_named(struct pe_check *c, struct pe_ranges *out, struct exti_error *err)
{
    int rc = c->exports_after.present ? note_exported(c, out, err) : 0;

    for (size_t i = 0; !rc && i < c->dlls_after.n; i++)
        rc = exti__pe_range_add(out, c->dlls_after.v[i].name_at, strlen(c->dlls_after.v[i].name),
                                err);
    exti__pe_ranges_sort(out);
    return rc;
}

/* Reports bytes of the copy's [at, end) that are neither zero, nor the original's, nor referred
 * to. */
static void check_written(struct pe_check *c, const struct pe_ranges *named, uint64_t at,
                          uint64_t end)
{
    const struct exti_span b = c->before.file, a = c->after.file;

    for (; at < end && at < a.n && !c->findings.stop; at++) {
        const uint64_t was = at - c->shift;

        if (!a.p[at] || (was < c->kept_end && a.p[at] == b.p[was]) ||
            exti__pe_ranges_meet(named, at, at + 1))
            continue;
        exti__pe_finding(c, at, "byte 0x%02x was written, and nothing refers to it", a.p[at]);
        return;
    }
}

/* A section grows only by what was written, which ends with a name. */
static void check_end_of_growth(struct pe_check *c, const struct pe_view_section *a, uint64_t from)
{
    const uint64_t end = a->raw_at + a->extent;

    if (a->extent <= from || a->extent > a->raw_size || end > c->after.file.n)
        return;
    if (a->extent - from < 2 || !c->after.file.p[end - 2] || c->after.file.p[end - 1])
        exti__pe_finding(c, a->at + 8, "section %s: 0x%x bytes, but the last are not a name",
                         a->name, a->virtual_size);
}

/* Checks the places of names, the growth of sections, and an added section. */
static void check_all_written(struct pe_check *c, const struct pe_ranges *named)
{
    const size_t n = c->before.section_count;

    for (size_t i = 0; i < c->texts.n; i++)
        check_written(c, named, c->texts.v[i].at + c->shift, c->texts.v[i].end + c->shift);
    for (size_t i = 0; i < c->after.section_count; i++) {
        const struct pe_view_section *a = &c->after.sections[i];
        const uint64_t from = i < n ? c->before.sections[i].extent : 0;

        if (!a->raw_at || (i < n && a->extent <= from))
            continue;
        check_written(c, named, a->raw_at + from, (uint64_t)a->raw_at + a->raw_size);
        check_end_of_growth(c, a, from);
    }
}

/* The end of the original's bytes in the copy.  A few zeros before a certificate may go with it. */
static uint64_t kept_in_copy(const struct pe_check *c)
{
    uint64_t end = c->kept_end;

    while (c->kept_end < c->before.file.n && end + c->shift > c->after.file.n &&
           c->kept_end - end < CERTIFICATE_ALIGN - 1 && !c->before.file.p[end - 1])
        end--;
    return end;
}

static int gather(struct pe_check *c, struct pe_ranges *left_out, struct pe_ranges *named,
                  struct exti_error *err)
{
    int rc = note_slack(c, left_out, err);

    for (size_t i = 0; !rc && i < c->texts.n; i++)
        rc = exti__pe_range_add(left_out, c->texts.v[i].at, c->texts.v[i].end - c->texts.v[i].at,
                                err);
    for (size_t i = 0; !rc && i < c->fields.n; i++)
        rc = exti__pe_range_add(left_out, c->fields.v[i].at, c->fields.v[i].end - c->fields.v[i].at,
                                err);
    exti__pe_ranges_sort(left_out);
    return rc ? rc : note_named(c, named, err);
}

int exti__pe_step_bytes(struct pe_check *c, struct exti_error *err)
{
    struct pe_ranges left_out = {NULL, 0, 0}, named = {NULL, 0, 0};
    const uint64_t end = kept_in_copy(c);
    int rc;

    if (c->same)
        return 0;
    if (end + c->shift > c->after.file.n) {
        exti__pe_finding(c, EXTI_NO_OFFSET, "0x%zx bytes, not at least 0x%" PRIx64, c->after.file.n,
                         c->kept_end + c->shift);
        return 0;
    }
    rc = gather(c, &left_out, &named, err);
    if (!rc && c->plan && !c->shift)
        compare_planned(c, &left_out, c->raw_from, end);
    else if (!rc)
        compare_outside(c, &left_out, c->raw_from, end);
    if (!rc)
        check_all_written(c, &named);
    exti__free(left_out.v);
    exti__free(named.v);
    return rc;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Where the bytes begin that only the copy has, in a new section or at the end of the last;
 * UINT64_MAX if it has none. */
static uint64_t added_from(const struct pe_check *c)
{
    const size_t n = c->before.section_count;

    if (c->after.section_count > n)
        return c->after.sections[n].raw_at;
    if (n && c->after.section_count == n &&
        c->after.sections[n - 1].raw_size > c->before.sections[n - 1].raw_size)
        return (uint64_t)c->after.sections[n - 1].raw_at + c->before.sections[n - 1].raw_size;
    return UINT64_MAX;
}

int exti__pe_step_end(struct pe_check *c, struct exti_error *err)
{
    const uint64_t kept = kept_in_copy(c) + c->shift, n = c->after.file.n, from = added_from(c);
    const struct pe_view_section *last =
        c->after.section_count ? &c->after.sections[c->after.section_count - 1] : NULL;

    (void)err;
    if (c->same || kept > n)
        return 0;
    if (from == UINT64_MAX || !last) {
        if (n != kept)
            exti__pe_finding(c, kept, "0x%" PRIx64 " bytes, not 0x%" PRIx64, n, kept);
        return 0;
    }
    if (from < kept || from - kept >= c->after.file_align ||
        (uint64_t)last->raw_at + last->raw_size != n) {
        exti__pe_finding(c, kept,
                         "section %s: 0x%x bytes at 0x%x do not complete a file of 0x%" PRIx64
                         " bytes, the first 0x%" PRIx64 " of them the original's",
                         last->name, last->raw_size, last->raw_at, n, kept);
        return 0;
    }
    for (uint64_t at = kept; at < from; at++)
        if (c->after.file.p[at]) {
            exti__pe_finding(c, at, "before section %s: 0x%02x, not 0", last->name,
                             c->after.file.p[at]);
            return 0;
        }
    return 0;
}
