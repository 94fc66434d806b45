/* Exports: the loader's rules, and that only the file's own name and the libraries of forwarders
 * changed. */
#include "pe/check/pe_check_export.h"

#include "pe/check/pe_check_expect.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_EXPORTS = 65536 };

/* ---- the rule -------------------------------------------------------------------------------- */

static void check_forwarder(struct pe_check *c, const struct pe_exported *x, uint32_t slot,
                            const char *text, uint32_t rva)
{
    const uint64_t at = x->functions.base + 4 * (uint64_t)slot;
    const char *dot = text ? strchr(text, '.') : NULL;
    char subject[32];

    snprintf(subject, sizeof subject, "slot %u", slot);
    if (!text || strlen(text) >= x->size - (rva - x->rva))
        exti__pe_broken(c, at, subject,
                        "export %u: the forwarder at 0x%x does not end in the export directory",
                        slot, rva);
    /* Loaders disagree about which of several dots ends the library's name. */
    else if (!dot || dot == text || !dot[1] || (dot[1] != '?' && strchr(dot + 1, '.')))
        exti__pe_broken(
            c, at, subject,
            "export %u: forwarder %s, not a library without a dot, then a dot and a symbol", slot,
            text);
}

static void check_functions(struct pe_check *c, const struct pe_view *v,
                            const struct pe_exported *x)
{
    for (uint32_t i = 0; i < x->function_count && !c->findings.stop; i++) {
        uint32_t rva;
        const char *text = exti__pe_forwarder(v, x, i, &rva);
        char subject[32];

        snprintf(subject, sizeof subject, "slot %u", i);
        if (exti__pe_is_forwarder(x, rva))
            check_forwarder(c, x, i, text, rva);
        else if (rva && !exti__pe_view_section(v, rva))
            exti__pe_broken(c, x->functions.base + 4 * (uint64_t)i, subject,
                            "export %u: at 0x%x, where no section is", i, rva);
    }
}

/* The loader finds names by binary search. */
static void check_export_names(struct pe_check *c, const struct pe_view *v,
                               const struct pe_exported *x)
{
    const char *last = NULL;

    for (uint32_t i = 0; i < x->name_count && !c->findings.stop; i++) {
        const uint16_t slot = exti__pe_word16(x->ordinals.p + 2 * (size_t)i);
        const uint64_t at = x->names.base + 4 * (uint64_t)i;
        const char *name = exti__pe_view_text(v, exti__pe_word32(x->names.p + 4 * (size_t)i),
                                              PE_VIEW_LONGEST_SYMBOL);
        char subject[32];

        snprintf(subject, sizeof subject, "name %u", i);
        if (!name)
            exti__pe_broken(c, at, subject, "exported name %u: not in the file", i);
        else if (last && strcmp(last, name) >= 0)
            exti__pe_broken(c, at, subject, "exported name %u: %s does not come after %s", i, name,
                            last);
        if (slot >= x->function_count)
            exti__pe_broken(c, x->ordinals.base + 2 * (uint64_t)i, subject,
                            "exported name %u: function %u of %u", i, slot, x->function_count);
        if (name)
            last = name;
    }
}

int exti__pe_rule_exports(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    struct pe_exported x;

    (void)err;
    exti__pe_exported(c, v, &x);
    if (!x.present)
        return 0;
    check_functions(c, v, &x);
    check_export_names(c, v, &x);
    return 0;
}

/* ---- against the original -------------------------------------------------------------------- */

int exti__pe_step_id(struct pe_check *c, struct exti_error *err)
{
    const struct pe_exported *b = &c->exports_before, *a = &c->exports_after;
    const char *wanted = !c->opts ? "a name" : c->opts->id ? c->opts->id : b->dll;

    (void)err;
    if (b->present != a->present) {
        exti__pe_finding(c, EXTI_NO_OFFSET, "exports: %s", a->present ? "added" : "lost");
        return 0;
    }
    if (!a->present)
        return 0;
    if (c->opts ? strcmp(wanted, a->dll) != 0 : *b->dll && !*a->dll)
        exti__pe_finding(c, a->at + 12, "exports: the library is called \"%s\", not \"%s\"", a->dll,
                         wanted);
    return 0;
}

static void compare_names(struct pe_check *c, const struct pe_exported *b,
                          const struct pe_exported *a)
{
    for (uint32_t i = 0; i < b->name_count && !c->findings.stop; i++) {
        const char *was = exti__pe_view_text(
            &c->before, exti__pe_word32(b->names.p + 4 * (size_t)i), PE_VIEW_LONGEST_SYMBOL);
        const char *now = exti__pe_view_text(&c->after, exti__pe_word32(a->names.p + 4 * (size_t)i),
                                             PE_VIEW_LONGEST_SYMBOL);
        const uint16_t slot = exti__pe_word16(b->ordinals.p + 2 * (size_t)i);

        if (!was != !now || (was && strcmp(was, now) != 0))
            exti__pe_finding(c, a->names.base + 4 * (uint64_t)i, "exported name %u: %s, not %s", i,
                             now ? now : "lost", was ? was : "missing");
        if (exti__pe_word16(a->ordinals.p + 2 * (size_t)i) != slot)
            exti__pe_finding(c, a->ordinals.base + 2 * (uint64_t)i,
                             "exported name %u: function %u, not %u", i,
                             exti__pe_word16(a->ordinals.p + 2 * (size_t)i), slot);
    }
}

static bool same_tables(const struct pe_exported *b, const struct pe_exported *a)
{
    /* Characteristics, TimeDateStamp, version; Base and the counts. */
    return memcmp(b->directory.p, a->directory.p, 12) == 0 &&
           memcmp(b->directory.p + 16, a->directory.p + 16, 12) == 0;
}

int exti__pe_step_exports(struct pe_check *c, struct exti_error *err)
{
    const struct pe_exported *b = &c->exports_before, *a = &c->exports_after;

    (void)err;
    if (!b->present || !a->present)
        return 0;
    if (!same_tables(b, a)) {
        exti__pe_finding(
            c, a->at,
            "exports: %u functions, %u names, or the directory's other fields, are not "
            "the original's",
            a->function_count, a->name_count);
        return 0;
    }
    compare_names(c, b, a);
    for (uint32_t i = 0; i < b->function_count && !c->findings.stop; i++) {
        uint32_t was, now;

        exti__pe_forwarder(&c->before, b, i, &was);
        exti__pe_forwarder(&c->after, a, i, &now);
        if (exti__pe_is_forwarder(b, was) != exti__pe_is_forwarder(a, now) ||
            (!exti__pe_is_forwarder(b, was) && was != now))
            exti__pe_finding(c, a->functions.base + 4 * (uint64_t)i,
                             "export %u: at 0x%x, %s; not at 0x%x, %s", i, now,
                             exti__pe_is_forwarder(a, now) ? "a forwarder" : "no forwarder", was,
                             exti__pe_is_forwarder(b, was) ? "a forwarder" : "no forwarder");
    }
    return 0;
}

int exti__pe_step_forwarders(struct pe_check *c, struct exti_error *err)
{
    const struct pe_exported *b = &c->exports_before, *a = &c->exports_after;

    (void)err;
    if (!b->present || !a->present || b->function_count != a->function_count)
        return 0;
    for (uint32_t i = 0; i < b->function_count && !c->findings.stop; i++) {
        uint32_t rva;
        const char *was = exti__pe_forwarder(&c->before, b, i, &rva),
                   *now = exti__pe_forwarder(&c->after, a, i, &rva);

        if (was && now && !exti__pe_forwarder_follows(c, was, now))
            exti__pe_finding(c, a->functions.base + 4 * (uint64_t)i,
                             "export %u: forwarder %s, which no edit makes of %s", i, now, was);
    }
    return 0;
}
