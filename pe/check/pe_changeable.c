/* Which bytes of the original the edits may change. */
#include "pe/check/pe_changeable.h"

#include <string.h>

#include "pe/check/pe_check_expect.h"
#include "pe/check/pe_view_table.h"

static int note_imports(struct pe_check *c, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < c->dlls_before.n; i++) {
        const struct pe_dll *d = &c->dlls_before.v[i];

        rc = d->delay ? exti__pe_range_add(&c->fields, d->at + 4, 4, err)
                      : exti__pe_range_add(&c->fields, d->at + 4, 12, err);
        if (!rc && d->delay)
            rc = exti__pe_range_add(&c->fields, d->at + 28, 4, err);
        if (!rc && exti__pe_may_rename(c, d->name))
            rc = exti__pe_range_add(&c->texts, d->name_at, strlen(d->name) + 1, err);
    }
    return rc;
}

/* When the directory has moved, the old one must be unchanged. */
static bool exports_moved(const struct pe_check *c)
{
    return c->exports_after.present && c->exports_after.rva != c->exports_before.rva;
}

static int note_forwarders(struct pe_check *c, struct exti_error *err)
{
    const struct pe_exported *x = &c->exports_before;
    char library[PE_LONGEST_NAME + 1];
    int rc = 0;

    for (uint32_t i = 0; !rc && i < x->function_count; i++) {
        uint32_t rva;
        const char *text = exti__pe_forwarder(&c->before, x, i, &rva);

        if (!text || !exti__pe_forwarder_library(text, library, sizeof library) ||
            !exti__pe_may_rename(c, library))
            continue;
        c->forwarders_change = true;
        if (exports_moved(c))
            return 0;
        rc = exti__pe_range_add(&c->texts, (uint64_t)((const uint8_t *)text - c->before.file.p),
                                strlen(text) + 1, err);
        if (!rc)
            rc = exti__pe_range_add(&c->fields, x->functions.base + 4 * (uint64_t)i, 4, err);
    }
    return rc;
}

static int note_exports(struct pe_check *c, struct exti_error *err)
{
    const struct pe_exported *x = &c->exports_before;
    int rc = 0;

    if (!x->present)
        return 0;
    if (!exports_moved(c))
        rc = exti__pe_range_add(&c->fields, x->at + 12, 4, err);
    if (!rc && x->dll_at && (!c->opts || c->opts->id))
        rc = exti__pe_range_add(&c->texts, x->dll_at, strlen(x->dll) + 1, err);
    return rc ? rc : note_forwarders(c, err);
}

static int note_debug(struct pe_check *c, struct exti_error *err)
{
    const struct pe_view *b = &c->before;
    const size_t i = IMAGE_DIRECTORY_ENTRY_DEBUG;
    struct exti_span s;
    int rc = 0;

    if (!c->shift || !exti__pe_view_at(b, b->directory[i].rva, b->directory[i].size, &s))
        return 0;
    for (size_t at = 0; !rc && at + DEBUG_DIRECTORY_SIZE <= s.n; at += DEBUG_DIRECTORY_SIZE)
        rc = exti__pe_range_add(&c->fields, s.base + at + 24, 4, err);
    return rc;
}

int exti__pe_changeable(struct pe_check *c, struct exti_error *err)
{
    uint64_t at;
    int rc = note_imports(c, err);

    if (!rc)
        rc = note_exports(c, err);
    if (!rc && exti__pe_load_flags_at(&c->before, &at))
        rc = exti__pe_range_add(&c->fields, at, 2, err);
    if (!rc)
        rc = note_debug(c, err);
    exti__pe_ranges_sort(&c->texts);
    exti__pe_ranges_sort(&c->fields);
    return rc;
}
