/* Shared by the tests of the Mach-O self-check: a toy and its copy, and the names of the checks
 * that report something. */
#ifndef TESTS_UNIT_MACHO_JUDGE_H
#define TESTS_UNIT_MACHO_JUDGE_H

#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/check/macho_check.h"
#include "tests/unit/macho/macho_toy.h"

struct fixture {
    struct macho_toy before, after;
    struct exti_error err, first;
    size_t findings;
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

static const struct macho_toy_opts opcodes = {.naked = true},
                                   chained = {.naked = true, .chained = true};

static inline void make_pair(struct fixture *f, const struct macho_toy_opts *o)
{
    macho_toy_make(&f->before, *o);
    macho_toy_make(&f->after, *o);
}

static inline int note_finding(void *user, const struct exti_error *finding)
{
    struct fixture *f = user;

    if (!f->findings++)
        f->first = *finding;
    assert_int_equal(finding->code, EXTI_E_CHECK);
    assert_true(finding->message[0] != 0);
    return 0;
}

static inline struct exti_span bytes_of(const struct macho_toy *t)
{
    return exti__span(t->b, t->n);
}

static inline int check_spans(struct fixture *f, struct exti_span before, struct exti_span after,
                              const struct exti_request *req)
{
    f->findings = 0;
    f->err = f->first = (struct exti_error){.code = EXTI_OK};
    return exti__macho_check(before, after, req, NULL, note_finding, f, &f->err);
}

static inline int run_checks(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    const struct exti_request req = {.opts = opts};

    return check_spans(f, bytes_of(&f->before), bytes_of(&f->after), opts ? &req : NULL);
}

static inline void assert_clean(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    assert_ok(run_checks(f, opts), &f->err);
    if (f->findings)
        fail_msg("finding: %s", f->first.message);
}

struct findings {
    char text[4096];
};

static inline int add_finding(void *user, const struct exti_error *finding)
{
    struct findings *all = user;
    const size_t n = strlen(all->text);

    snprintf(all->text + n, sizeof all->text - n, "%s\n", finding->message);
    return 0;
}

/* Asserts that the check finds what `says` says, maybe among other things; NULL: nothing. */
static inline void assert_finds(struct fixture *f, const struct exti_rewrite_opts *opts,
                                const char *says)
{
    const struct exti_request req = {.opts = opts};
    struct findings all = {""};

    assert_ok(exti__macho_check(bytes_of(&f->before), bytes_of(&f->after), opts ? &req : NULL, NULL,
                                add_finding, &all, &f->err),
              &f->err);
    if (says)
        assert_contains(all.text, says);
    else
        assert_string_equal(all.text, "");
}

/* `names` lists the checks that report something, each followed by a space. */
static inline void note_name(struct fixture *f, char *names, size_t cap, const char *name,
                             struct exti_error *says)
{
    if (f->findings && !*names)
        *says = f->first;
    if (f->findings)
        snprintf(names + strlen(names), cap - strlen(names), "%s,", name);
    f->findings = 0;
}

static inline void run_rules(struct fixture *f, struct exti_span file, char *names, size_t cap,
                             struct exti_error *says)
{
    struct macho_check c = {.judge = {.report = note_finding, .user = f}};
    bool sound;

    *names = 0;
    f->findings = 0;
    assert_ok(exti__macho_check_open(&c, file, file, &sound, &f->err), &f->err);
    assert_true(sound);
    c.judge.strict = true;
    for (size_t i = 0; i < exti__macho_rule_count; i++) {
        assert_ok(exti__macho_rules[i].run(&c, &c.after, &f->err), &f->err);
        note_name(f, names, cap, exti__macho_rules[i].name, says);
    }
    exti__macho_check_close(&c);
}

/* ---- edits of a toy -------------------------------------------------------------------------- */

static inline void set_field(struct macho_toy *t, uint32_t cmd, unsigned nth, size_t at,
                             size_t width, uint64_t v)
{
    const size_t command = mtoy_find(t, cmd, nth);

    assert_true(command != 0);
    mtoy_put(t, command + at, width, v);
}

static inline void rename_dylib(struct macho_toy *t, uint32_t cmd, const char *name)
{
    const size_t at = mtoy_find(t, cmd, 0), size = (size_t)mtoy_get(t, at + 4, 4) - 24;

    assert_true(at && strlen(name) < size);
    memset(t->b + at + 24, 0, size);
    memcpy(t->b + at + 24, name, strlen(name));
}

static inline void set_sdk(struct macho_toy *t, uint32_t sdk)
{
    set_field(t, LC_BUILD_VERSION, 0, 16, 4, sdk);
}

static inline void set_stream(struct macho_toy *t, size_t at, size_t room, const char *bytes,
                              size_t n)
{
    assert_true(n <= room);
    memset(t->b + at, 0, room);
    memcpy(t->b + at, bytes, n);
}

#define SET_BIND(t, s) set_stream((t), (t)->bind, (t)->bind_n, (s), sizeof(s) - 1)

#endif
