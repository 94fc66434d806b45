#include "elf/check/elf_check.h"

#include "base/mem.h"
#include "elf/check/elf_check_block.h"
#include "elf/check/elf_check_bytes.h"
#include "elf/check/elf_check_dynamic.h"
#include "elf/check/elf_check_expect.h"
#include "elf/check/elf_check_hash.h"
#include "elf/check/elf_check_layout.h"
#include "elf/check/elf_check_room.h"
#include "elf/check/elf_check_section.h"
#include "elf/check/elf_check_symbol.h"
#include "elf/read/elf_open.h"

const struct elf_check_step exti__elf_checks[] = {
    {"ELF header", exti__elf_check_header},
    {"header count", exti__elf_check_header_count},
    {"program headers", exti__elf_check_program_headers},
    {"stack", exti__elf_check_stack},
    {"segments", exti__elf_check_loads},
    {"containment", exti__elf_check_contained},
    {"notes", exti__elf_check_notes},
    {"table growth", exti__elf_check_table_growth},
    {"segment growth", exti__elf_check_load_growth},
    {"tail", exti__elf_check_tail},
    {"dynamic tags", exti__elf_check_tags},
    {"dynamic end", exti__elf_check_terminator},
    {"id", exti__elf_check_id},
    {"needed", exti__elf_check_needed},
    {"search path", exti__elf_check_path},
    {"flags", exti__elf_check_flags},
    {"symbols", exti__elf_check_symbols},
    {"versions", exti__elf_check_versions},
    {"GNU hash", exti__elf_check_gnu_hash},
    {"SysV hash", exti__elf_check_sysv_hash},
    {"sections", exti__elf_check_sections},
    {"static symbols", exti__elf_check_static_symbols},
    {"strings", exti__elf_check_strings},
    {"bytes", exti__elf_check_bytes},
};
const size_t exti__elf_check_count = sizeof exti__elf_checks / sizeof *exti__elf_checks;

static int open_after(struct elf_check *c, struct exti_span after, bool *sound,
                      struct exti_error *err)
{
    struct exti_error why = {.code = EXTI_OK};
    int rc = exti__elf_open(after, &c->after, &why);

    *sound = !rc;
    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    if (rc) {
        exti__elf_finding(c, why.offset, "not a sound shared object: %s", why.message);
        return 0;
    }
    if (c->before.is64 != c->after.is64 || c->before.big_endian != c->after.big_endian) {
        *sound = false;
        exti__elf_finding(c, EI_CLASS,
                          "ELF identification: class %d and byte order %d, not %d and %d",
                          after.p[EI_CLASS], after.p[EI_DATA], c->before.file.p[EI_CLASS],
                          c->before.file.p[EI_DATA]);
    }
    return 0;
}

static void match_originals(struct elf_check *c)
{
    exti__elf_match_headers(c);
    exti__elf_match_block(c);
}

int exti__elf_check_open(struct elf_check *c, struct exti_span before, struct exti_span after,
                         bool *sound, struct exti_error *err)
{
    int rc = exti__elf_open(before, &c->before, err);

    if (rc)
        return rc;
    rc = open_after(c, after, sound, err);
    if (!rc && *sound) {
        c->match = exti__calloc(c->after.phnum, sizeof *c->match);
        rc = c->match ? exti__elf_expect(c, err) : exti__fail_nomem(err);
    }
    if (rc)
        exti__elf_check_close(c);
    else if (*sound)
        match_originals(c);
    return rc;
}

void exti__elf_check_close(struct elf_check *c)
{
    exti__elf_close(&c->before);
    exti__elf_close(&c->after);
    exti__elf_expect_free(&c->expect);
    exti__free(c->match);
    exti__free(c->ranges);
    *c = (struct elf_check){.opts = NULL};
}

int exti__elf_check(struct exti_span before, struct exti_span after, const struct exti_request *req,
                    const struct exti_plan *plan, exti_report_fn report, void *user,
                    struct exti_error *err)
{
    struct elf_check c = {
        .opts = req ? req->opts : NULL, .plan = plan, .findings = {.report = report, .user = user}};
    bool sound;
    int rc = exti__elf_check_open(&c, before, after, &sound, err);

    if (rc)
        return rc;
    for (size_t i = 0; sound && !rc && !c.findings.stop && i < exti__elf_check_count; i++)
        rc = exti__elf_checks[i].run(&c, err);
    exti__elf_check_close(&c);
    return rc;
}
