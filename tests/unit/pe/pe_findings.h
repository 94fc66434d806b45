/* Fixture of the tests of the PE check: a toy and its copy, and the names of rules or steps with
 * findings. */
#ifndef TESTS_UNIT_PE_FINDINGS_H
#define TESTS_UNIT_PE_FINDINGS_H

#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "pe/check/pe_check.h"
#include "tests/unit/pe/pe_toy.h"

struct fixture {
    struct pe_toy before, after;
    struct exti_error err, first;
    size_t findings;
    char names[256]; /* of the checks with findings, each followed by a comma */
};

static inline int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof f);
    *state = &f;
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    exti__mem_fail_after(-1);
    return 0;
}

#define check_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline int note_pe_finding(void *user, const struct exti_error *finding)
{
    struct fixture *f = user;

    if (!f->findings++)
        f->first = *finding;
    assert_int_equal(finding->code, EXTI_E_CHECK);
    assert_true(finding->message[0] != 0);
    return 0;
}

static inline struct exti_span bytes_of(const struct pe_toy *t)
{
    return exti__span(t->b, t->n);
}

static inline int check_spans(struct fixture *f, struct exti_span before, struct exti_span after,
                              const struct exti_request *req)
{
    f->findings = 0;
    f->err = f->first = (struct exti_error){.code = EXTI_OK};
    return exti__pe_check(before, after, req, NULL, note_pe_finding, f, &f->err);
}

static inline int check_copy_with(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    const struct exti_request req = {.opts = opts};

    return check_spans(f, bytes_of(&f->before), bytes_of(&f->after), opts ? &req : NULL);
}

static inline void assert_clean(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    assert_ok(check_copy_with(f, opts), &f->err);
    if (f->findings)
        fail_msg("finding: %s", f->first.message);
}

static inline void add_check_name(struct fixture *f, size_t so_far, const char *name)
{
    const size_t n = strlen(f->names);

    if (f->findings > so_far)
        snprintf(f->names + n, sizeof f->names - n, "%s,", name);
}

/* Fills in f->names and f->first. */
static inline void run_rules(struct fixture *f, struct exti_span original, struct exti_span file)
{
    struct pe_check c = {.findings = {.report = note_pe_finding, .user = f, .strict = true}};
    bool sound;

    f->names[0] = 0;
    f->findings = 0;
    assert_ok(exti__pe_check_open(&c, original, file, &sound, &f->err), &f->err);
    assert_true(sound);
    for (size_t i = 0; i < exti__pe_rule_count; i++) {
        const size_t so_far = f->findings;

        assert_ok(exti__pe_rules[i].run(&c, &c.after, &f->err), &f->err);
        add_check_name(f, so_far, exti__pe_rules[i].name);
    }
    exti__pe_check_close(&c);
}

static inline void run_steps(struct fixture *f, const struct exti_request *req,
                             struct exti_span before, struct exti_span after)
{
    struct pe_check c = {.findings = {.report = note_pe_finding, .user = f, .quiet = true},
                         .opts = req ? req->opts : NULL,
                         .bind = req ? req->bind : NULL,
                         .bind_count = req ? req->bind_count : 0};
    bool sound;

    f->names[0] = 0;
    f->findings = 0;
    assert_ok(exti__pe_check_open(&c, before, after, &sound, &f->err), &f->err);
    assert_true(sound);
    c.findings.quiet = true;
    for (size_t i = 0; i < exti__pe_step_count; i++) {
        const size_t so_far = f->findings;

        assert_ok(exti__pe_steps[i].run(&c, &f->err), &f->err);
        add_check_name(f, so_far, exti__pe_steps[i].name);
    }
    exti__pe_check_close(&c);
}

static inline void put_text(struct pe_toy *t, size_t at, const char *text)
{
    memcpy(t->b + at, text, strlen(text) + 1);
}

static inline void put_checksum(struct pe_toy *t)
{
    ptoy_put(t, t->optional + 64, 4, ptoy_checksum(t->b, t->n, t->optional + 64));
}

#endif
