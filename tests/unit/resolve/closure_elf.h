/* Fixture of the tests of ELF dependency sets. */
#ifndef TESTS_UNIT_CLOSURE_ELF_H
#define TESTS_UNIT_CLOSURE_ELF_H

#include "base/mem.h"
#include "loader/resolve/closure.h"
#include "loader/resolve/search_elf.h"
#include "tests/unit/resolve/search_toy.h"

struct fixture {
    struct test *t;
    struct exti_search *s;
    struct exti_closure_graph g;
};

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct exti_elf_search_opts o = {0};

    assert_non_null(f);
    if (test_setup((void **)&f->t))
        return -1;
    assert_ok(exti__elf_search_open(&o, &f->s, &f->t->err), &f->t->err);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    exti__closure_close(&f->g);
    exti__elf_search_close(f->s);
    free(f);
    return test_teardown(&t);
}

#define closure_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline void open_closure(struct fixture *f, struct exti_closure_opts o)
{
    exti__closure_close(&f->g);
    o.search = f->s;
    assert_ok(exti__closure_init(&f->g, &o, &f->t->err), &f->t->err);
}

static inline size_t add_root(struct fixture *f, const char *root)
{
    size_t node = EXTI_NO_NODE;

    assert_ok(exti__closure_add(&f->g, root, true, &node, &f->t->err), &f->t->err);
    assert_true(node < f->g.count && f->g.nodes[node].root);
    return node;
}

static inline void close_over(struct fixture *f, const char *root, enum exti_closure mode)
{
    open_closure(f, (struct exti_closure_opts){.mode = mode});
    add_root(f, root);
}

#endif
