/* The self-check: pairs the slices, opens both files, then runs all rules and steps. */
#include "macho/check/macho_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "macho/check/macho_check_bind.h"
#include "macho/check/macho_check_bytes.h"
#include "macho/check/macho_check_chain.h"
#include "macho/check/macho_check_command.h"
#include "macho/check/macho_check_edit.h"
#include "macho/check/macho_check_expect.h"
#include "macho/check/macho_check_fat.h"
#include "macho/check/macho_check_follow.h"
#include "macho/check/macho_check_linkedit.h"
#include "macho/check/macho_check_ref.h"
#include "macho/check/macho_check_report.h"
#include "macho/check/macho_check_segment.h"
#include "macho/check/macho_check_sign.h"
#include "macho/check/macho_check_table.h"
#include "macho/check/macho_check_trie.h"
#include "macho/check/macho_check_weak.h"
#include "macho/read/macho_withheld.h"

const struct macho_check_rule exti__macho_rules[] = {
    {"identity", exti__macho_rule_identity},    {"linked dylibs", exti__macho_rule_dylibs},
    {"search paths", exti__macho_rule_rpaths},  {"segments", exti__macho_rule_segments},
    {"sections", exti__macho_rule_sections},    {"linkedit blobs", exti__macho_rule_blobs},
    {"linkedit order", exti__macho_rule_order}, {"symbol entries", exti__macho_rule_symbols},
    {"opcodes", exti__macho_rule_opcodes},      {"chained fixups", exti__macho_rule_chains},
    {"exports trie", exti__macho_rule_trie},    {"code signature", exti__macho_rule_signature},
};
const size_t exti__macho_rule_count = sizeof exti__macho_rules / sizeof *exti__macho_rules;

const struct macho_check_step exti__macho_steps[] = {
    {"header", exti__macho_step_header},
    {"commands", exti__macho_step_commands},
    {"id", exti__macho_step_id},
    {"needed", exti__macho_step_needed},
    {"paths", exti__macho_step_rpaths},
    {"bindings", exti__macho_step_opcodes},
    {"weak bindings", exti__macho_step_weak},
    {"imports", exti__macho_step_imports},
    {"exports", exti__macho_step_exports},
    {"symbols", exti__macho_step_symbols},
    {"function starts", exti__macho_step_starts},
    {"data in code", exti__macho_step_data_in_code},
    {"linkedit pieces", exti__macho_step_pieces},
    {"header room", exti__macho_step_room},
    {"content", exti__macho_step_bytes},
    {"signature", exti__macho_step_signature},
};
const size_t exti__macho_step_count = sizeof exti__macho_steps / sizeof *exti__macho_steps;

/* ---- one slice ------------------------------------------------------------------------------- */

static int open_after(struct macho_check *c, struct exti_span after, bool *sound,
                      struct exti_error *err)
{
    struct exti_error why = {.code = EXTI_OK};
    int rc = exti__macho_open(after, &c->after, &why);

    *sound = !rc;
    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    if (rc) {
        c->after.file = exti__span(NULL, 0);
        exti__macho_finding(c, why.offset, "not a sound Mach-O library: %s", why.message);
    }
    return 0;
}

static bool same_dylibs(const struct macho_check *c)
{
    for (size_t i = 0; i < c->before.dylib_count; i++)
        if (i >= c->after.dylib_count ||
            strcmp(c->before.dylibs[i].name, c->after.dylibs[i].name) != 0)
            return false;
    return true;
}

/* Without a request a copy may withhold all constructors or none. */
static bool must_withhold(const struct macho_check *c)
{
    bool some = false;

    if (c->opts)
        return c->opts->flags & EXTI_RW_WITHHOLD;
    for (size_t i = 0; i < c->after.section_count; i++)
        some = some || exti__macho_section_is_withheld(c->after.sections[i].flags);
    for (size_t i = 0; i < c->after.command_count; i++)
        some = some || c->after.commands[i].cmd == EXTI_LC_ROUTINES_64;
    return some;
}

/* Whether both files have the same segments and sections, shifted by whole pages in the copy. */
static bool comparable(struct macho_check *c)
{
    const struct macho_file *b = &c->before, *a = &c->after;

    c->shift = a->room_end - b->room_end;
    if (a->cputype != b->cputype || a->filetype != b->filetype) {
        exti__macho_finding(c, 4, "header: CPU type 0x%x and file type %u, not 0x%x and %u",
                            a->cputype, a->filetype, b->cputype, b->filetype);
        return false;
    }
    if (a->segment_count != b->segment_count || a->section_count != b->section_count) {
        exti__macho_finding(c, EXTI_NO_OFFSET, "%zu segments and %zu sections, not %zu and %zu",
                            a->segment_count, a->section_count, b->segment_count, b->section_count);
        return false;
    }
    if (a->room_end < b->room_end || c->shift % 0x4000) {
        exti__macho_finding(
            c, EXTI_NO_OFFSET,
            "the first section starts at 0x%llx, not at 0x%llx or a multiple of 0x4000 bytes later",
            (unsigned long long)a->room_end, (unsigned long long)b->room_end);
        return false;
    }
    return true;
}

int exti__macho_check_open(struct macho_check *c, struct exti_span before, struct exti_span after,
                           bool *sound, struct exti_error *err)
{
    int rc = exti__macho_open(before, &c->before, err);

    if (rc)
        return rc;
    rc = open_after(c, after, sound, err);
    if (!rc && *sound) {
        *sound = comparable(c);
        c->same_dylibs = same_dylibs(c);
        c->withheld = must_withhold(c);
    }
    if (!rc && *sound)
        rc = exti__macho_expect(c, err);
    if (rc)
        exti__macho_check_close(c);
    return rc;
}

void exti__macho_check_close(struct macho_check *c)
{
    exti__macho_close(&c->before);
    exti__macho_close(&c->after);
    c->before = c->after = (struct macho_file){.id = NULL};
    exti__macho_expect_free(&c->expect);
    exti__macho_follow_free(c);
    exti__findings_free(&c->judge);
}

static int run_rules(struct macho_check *c, const struct macho_file *f, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && !c->judge.stop && i < exti__macho_rule_count; i++)
        rc = exti__macho_rules[i].run(c, f, err);
    return rc;
}

static int check_rules(struct macho_check *c, struct exti_error *err)
{
    int rc = 0;

    if (!c->judge.strict) {
        c->judge.collecting = true;
        rc = run_rules(c, &c->before, err);
        c->judge.collecting = false;
    }
    if (!rc && c->judge.nomem)
        rc = exti__fail_nomem(err);
    return rc ? rc : run_rules(c, &c->after, err);
}

static int check_steps(struct macho_check *c, struct exti_error *err)
{
    int rc = 0;

    c->judge.quiet = true;
    for (size_t i = 0; !rc && !c->judge.stop && i < exti__macho_step_count; i++)
        rc = exti__macho_steps[i].run(c, err);
    c->judge.quiet = false;
    return rc;
}

static int check_slice(struct macho_check *c, struct exti_span before, struct exti_span after,
                       struct exti_error *err)
{
    bool sound;
    int rc = exti__macho_check_open(c, before, after, &sound, err);

    if (rc)
        return rc;
    if (sound)
        rc = check_rules(c, err);
    if (!rc && sound)
        rc = check_steps(c, err);
    exti__macho_check_close(c);
    return rc;
}

int exti__macho_check(struct exti_span before, struct exti_span after,
                      const struct exti_request *req, const struct exti_plan *plan,
                      exti_report_fn fn, void *user, struct exti_error *err)
{
    struct macho_check c = {.opts = req ? req->opts : NULL,
                            .plan = plan,
                            .bind = req ? req->bind : NULL,
                            .bind_count = req ? req->bind_count : 0,
                            .judge = {.report = fn, .user = user}};

    return exti__macho_check_fat(before, after, &c, check_slice, err);
}
