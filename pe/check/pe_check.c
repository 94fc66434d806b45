/* Opens both files, then runs the rules and the steps in the order of the tables. */
#include "pe/check/pe_check.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "pe/check/pe_changeable.h"
#include "pe/check/pe_check_bytes.h"
#include "pe/check/pe_check_edit.h"
#include "pe/check/pe_check_export.h"
#include "pe/check/pe_check_header.h"
#include "pe/check/pe_check_import.h"
#include "pe/check/pe_check_table.h"
#include "pe/read/pe_file.h"

enum { CERTIFICATE_ALIGN = 8 };

const struct pe_check_rule exti__pe_rules[] = {
    {"machine", exti__pe_rule_machine},
    {"library", exti__pe_rule_library},
    {"alignment", exti__pe_rule_alignment},
    {"headers", exti__pe_rule_headers},
    {"section addresses", exti__pe_rule_addresses},
    {"image size", exti__pe_rule_image_size},
    {"section bytes", exti__pe_rule_raw},
    {"directories", exti__pe_rule_directories},
    {"imports", exti__pe_rule_imports},
    {"delay imports", exti__pe_rule_delayed},
    {"exports", exti__pe_rule_exports},
    {"relocations", exti__pe_rule_relocs},
    {"TLS", exti__pe_rule_tls},
    {"load configuration", exti__pe_rule_load_config},
    {"debug directory", exti__pe_rule_debug},
    {"COFF symbols", exti__pe_rule_symbols},
    {"checksum", exti__pe_rule_checksum},
};
const size_t exti__pe_rule_count = sizeof exti__pe_rules / sizeof *exti__pe_rules;

const struct pe_check_step exti__pe_steps[] = {
    {"header fields", exti__pe_step_headers},
    {"directory table", exti__pe_step_directories},
    {"section table", exti__pe_step_sections},
    {"added section", exti__pe_step_added},
    {"needed", exti__pe_step_imports},
    {"bound imports", exti__pe_step_bound},
    {"provided symbols", exti__pe_step_provided},
    {"id", exti__pe_step_id},
    {"exported symbols", exti__pe_step_exports},
    {"forwarders", exti__pe_step_forwarders},
    {"relocated names", exti__pe_step_relocs},
    {"load flags", exti__pe_step_load_flags},
    {"debug data", exti__pe_step_debug},
    {"signature", exti__pe_step_signature},
    {"content", exti__pe_step_bytes},
    {"end", exti__pe_step_end},
    {"new checksum", exti__pe_step_checksum},
};
const size_t exti__pe_step_count = sizeof exti__pe_steps / sizeof *exti__pe_steps;

/* ---- the two files --------------------------------------------------------------------------- */

static bool same_bytes(const struct exti_plan *plan, struct exti_span b, struct exti_span a)
{
    if (plan)
        return !plan->count && !plan->tail.n;
    return b.n == a.n && (b.p == a.p || memcmp(b.p, a.p, b.n) == 0);
}

/* Certificates at the end sign the original alone; a copy does not keep them. */
static uint64_t without_certificates(const struct pe_view *v)
{
    uint64_t at, end;

    return exti__pe_view_signed(v, &at, &end) && v->file.n - end < CERTIFICATE_ALIGN &&
                   at >= v->header_size
               ? at
               : v->file.n;
}

static uint64_t first_raw(const struct pe_view *v)
{
    uint64_t at = v->file.n;

    for (size_t i = 0; i < v->section_count; i++)
        if (v->sections[i].raw_at && v->sections[i].raw_size && v->sections[i].raw_at < at)
            at = v->sections[i].raw_at;
    return at;
}

/* Sections may move in the file only all together, to make room for a header. */
static bool comparable(struct pe_check *c)
{
    const uint64_t was = first_raw(&c->before), now = first_raw(&c->after);

    c->raw_from = was;
    c->kept_end = without_certificates(&c->before);
    if (c->after.plus != c->before.plus) {
        exti__pe_finding(c, c->after.optional, "optional header of kind 0x%x, not 0x%x",
                         c->after.magic, c->before.magic);
        return false;
    }
    if (now < was || was < c->before.table_end) {
        exti__pe_finding(c, EXTI_NO_OFFSET,
                         "the first section is at 0x%" PRIx64 " in the file, not at 0x%" PRIx64,
                         now, was);
        return false;
    }
    c->shift = was == c->before.file.n ? 0 : now - was;
    return true;
}

static int read_tables(struct pe_check *c, struct exti_error *err)
{
    int rc;

    c->findings.quiet = true;
    rc = exti__pe_dlls(c, &c->before, false, &c->dlls_before, err);
    if (!rc)
        rc = exti__pe_dlls(c, &c->before, true, &c->dlls_before, err);
    if (!rc)
        rc = exti__pe_dlls(c, &c->after, false, &c->dlls_after, err);
    if (!rc)
        rc = exti__pe_dlls(c, &c->after, true, &c->dlls_after, err);
    exti__pe_exported(c, &c->before, &c->exports_before);
    exti__pe_exported(c, &c->after, &c->exports_after);
    if (!rc)
        rc = exti__pe_changeable(c, err);
    c->findings.quiet = false;
    return rc;
}

/* No copy can be made of a file that the reader refuses. */
static int open_before(struct pe_check *c, struct exti_span before, struct exti_error *err)
{
    struct pe_file f;
    int rc = exti__pe_open(before, &f, err);

    if (rc)
        return rc;
    exti__pe_close(&f);
    return exti__pe_view_open(before, &c->before, err);
}

int exti__pe_check_open(struct pe_check *c, struct exti_span before, struct exti_span after,
                        bool *sound, struct exti_error *err)
{
    struct exti_error why = {.code = EXTI_OK};
    int rc = open_before(c, before, err);

    *sound = false;
    if (!rc) {
        rc = exti__pe_view_open(after, &c->after, &why);
        if (rc == EXTI_E_NOMEM)
            exti__fail_nomem(err);
        else if (rc)
            exti__pe_finding(c, why.offset, "not a sound DLL: %s", why.message);
        else
            *sound = comparable(c);
        rc = rc == EXTI_E_NOMEM ? rc : 0;
    }
    c->same = *sound && same_bytes(c->plan, before, after);
    if (*sound)
        rc = read_tables(c, err);
    if (rc)
        exti__pe_check_close(c);
    return rc;
}

void exti__pe_check_close(struct pe_check *c)
{
    exti__pe_view_close(&c->before);
    exti__pe_view_close(&c->after);
    exti__pe_dlls_free(&c->dlls_before);
    exti__pe_dlls_free(&c->dlls_after);
    exti__free(c->texts.v);
    exti__free(c->fields.v);
    exti__findings_free(&c->findings);
    c->texts = c->fields = (struct pe_ranges){NULL, 0, 0};
}

static int run_rules_on(struct pe_check *c, const struct pe_view *v, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && !c->findings.stop && i < exti__pe_rule_count; i++)
        rc = exti__pe_rules[i].run(c, v, err);
    return rc;
}

int exti__pe_check_rules(struct pe_check *c, struct exti_error *err)
{
    int rc = 0;

    if (!c->findings.strict) {
        c->findings.collecting = true;
        rc = run_rules_on(c, &c->before, err);
        c->findings.collecting = false;
    }
    if (!rc && c->findings.nomem)
        rc = exti__fail_nomem(err);
    return rc ? rc : run_rules_on(c, &c->after, err);
}

int exti__pe_check_steps(struct pe_check *c, struct exti_error *err)
{
    int rc = 0;

    c->findings.quiet = true;
    for (size_t i = 0; !rc && !c->findings.stop && i < exti__pe_step_count; i++)
        rc = exti__pe_steps[i].run(c, err);
    c->findings.quiet = false;
    return rc;
}

int exti__pe_check(struct exti_span before, struct exti_span after, const struct exti_request *req,
                   const struct exti_plan *plan, exti_report_fn fn, void *user,
                   struct exti_error *err)
{
    struct pe_check c = {.opts = req ? req->opts : NULL,
                         .plan = plan,
                         .bind = req ? req->bind : NULL,
                         .bind_count = req ? req->bind_count : 0,
                         .findings = {.report = fn, .user = user}};
    bool sound;
    int rc = exti__pe_check_open(&c, before, after, &sound, err);

    if (rc)
        return rc;
    if (sound)
        rc = exti__pe_check_rules(&c, err);
    if (!rc && sound)
        rc = exti__pe_check_steps(&c, err);
    exti__pe_check_close(&c);
    return rc;
}
