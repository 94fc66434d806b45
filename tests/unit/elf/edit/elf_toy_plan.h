/* Plans for hand-made files.  The check operation examines every copy. */
#ifndef TESTS_UNIT_ELF_EDIT_ELF_TOY_PLAN_H
#define TESTS_UNIT_ELF_EDIT_ELF_TOY_PLAN_H

#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/elf_format.h"
#include "elf/read/elf_file.h"
#include "tests/unit/elf/elf_toy.h"

#define OPTS .size = sizeof(struct exti_rewrite_opts)

enum { ROOM = 1 << 17, PHDR = 56, SHDR = 64 };

static const struct exti_needed one_more[] = {{NULL, "libcontext.so", EXTI_NEEDED_FIRST}};
/* Text that fits only behind the old string table. */
static const struct exti_rewrite_opts longer = {OPTS, .id = "a-name-that-is-not-there.so"};

struct fixture {
    struct elf_toy toy;
    struct exti_plan plan;
    uint8_t in[ROOM], out[ROOM];
    size_t in_n, out_n;
    struct exti_error err, finding;
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
    struct fixture *f = *state;

    test_time_limit(0);
    exti__mem_fail_after(-1);
    exti__plan_free(&f->plan);
    return 0;
}

#define plan_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline int record_finding(void *user, const struct exti_error *finding)
{
    *(struct exti_error *)user = *finding;
    return 1;
}

static inline int plan(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    if (!f->in_n) {
        memcpy(f->in, f->toy.b, sizeof f->toy.b);
        f->in_n = f->toy.n;
    }
    exti__plan_free(&f->plan);
    exti__plan_init(&f->plan, ROOM);
    f->err = (struct exti_error){0};
    return exti__elf_format.plan(exti__span(f->in, f->in_n), &(struct exti_request){.opts = opts},
                                 &f->plan, &f->err);
}

/* Makes the edit; the check operation must find nothing in the copy. */
static inline void make_checked_copy(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    assert_ok(plan(f, opts), &f->err);
    f->out_n = (size_t)exti__plan_size(&f->plan, f->in_n);
    assert_true(f->out_n <= ROOM);
    memcpy(f->out, f->in, f->in_n);
    exti__plan_apply(&f->plan, f->out, f->in_n);
    f->finding = (struct exti_error){0};
    assert_ok(exti__elf_format.check(exti__span(f->in, f->in_n), exti__span(f->out, f->out_n),
                                     &(struct exti_request){.opts = opts}, NULL, record_finding,
                                     &f->finding, &f->err),
              &f->err);
    if (f->finding.message[0])
        fail_msg("finding: %s", f->finding.message);
}

static inline void assert_refused(struct fixture *f, const struct exti_rewrite_opts *opts, int code,
                                  uint64_t offset, const char *says)
{
    assert_exti(plan(f, opts), code, &f->err, offset);
    assert_says(&f->err, says);
}

static inline void new_toy(struct fixture *f)
{
    f->in_n = 0;
    elf_toy_make(&f->toy, true, false);
}

static inline size_t header(const struct elf_toy *t, size_t i, size_t field)
{
    return t->phdr + i * PHDR + field;
}

/* Without a note and an empty entry, a new header can only go behind the table. */
static inline void new_toy_without_spare(struct fixture *f)
{
    struct elf_toy *t = &f->toy;

    new_toy(f);
    toy_put(t, header(t, 3, 0), 4, 0x6fffff00);
    toy_put(t, header(t, 3, 32), 8, 0);
    toy_put(t, header(t, 3, 40), 8, 0);
}

static inline size_t tag_at(const struct elf_toy *t, uint64_t tag)
{
    for (size_t i = 0; i < t->dyn_slots; i++)
        if (toy_get(t, t->dyn + i * 16, 8) == tag)
            return t->dyn + i * 16;
    fail_msg("no tag 0x%llx", (unsigned long long)tag);
    return 0;
}

/* Puts a tag into the first free slot. */
static inline void add_tag(struct elf_toy *t, uint64_t tag, uint64_t value)
{
    size_t at = tag_at(t, DT_NULL);

    toy_put(t, at, 8, tag);
    toy_put(t, at + 8, 8, value);
}

#endif
