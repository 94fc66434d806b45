/* Shared by the tests of the page shift: a hand-made file and its shifted copy. */
#ifndef TESTS_UNIT_MACHO_SHIFT_TOY_H
#define TESTS_UNIT_MACHO_SHIFT_TOY_H

#include "tests/unit/macho/macho_shift_work.h"
#include "tests/unit/macho/macho_toy.h"

#define P 0x4000u

static inline struct macho_toy *toy(struct test *t, struct macho_toy_opts o)
{
    struct macho_toy *m = test_alloc(t, sizeof *m);

    macho_toy_make(m, o);
    return m;
}

static inline void start(struct work *w, const struct macho_toy *m, struct test *t)
{
    work_start(w, m->b, m->n, P, &t->err);
}

/* The toy's section of that name. */
static inline struct macho_section *toy_section(struct work *w, const char *name)
{
    size_t i = 0;

    while (strcmp(w->f.sections[i].name, name) != 0)
        assert_true(++i < w->f.section_count);
    return &w->f.sections[i];
}

#endif
