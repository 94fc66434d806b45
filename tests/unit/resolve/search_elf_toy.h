/* Fixture of the tests of ELF look-ups, in a folder of toy libraries. */
#ifndef TESTS_UNIT_SEARCH_ELF_TOY_H
#define TESTS_UNIT_SEARCH_ELF_TOY_H

#include "base/mem.h"
#include "loader/resolve/elf_kind.h"
#include "loader/resolve/search_elf.h"
#include "loader/resolve/search_elf_state.h"
#include "tests/unit/resolve/search_toy.h"

static const char *const no_dirs[] = {NULL};

struct fixture {
    struct test *t;
    struct exti_search *s;
    struct exti_image *im;
    char *found;
};

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    if (test_setup((void **)&f->t))
        return -1;
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    exti__elf_search_close(f->s);
    exti_image_free(f->im);
    exti__free(f->found);
    free(f);
    return test_teardown(&t);
}

#define search_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline void open_search(struct fixture *f, struct exti_elf_search_opts o)
{
    exti__elf_search_close(f->s);
    f->s = NULL;
    assert_ok(exti__elf_search_open(&o, &f->s, &f->t->err), &f->t->err);
}

static inline struct exti_requester requester(struct fixture *f, const char *path,
                                              const struct exti_image *im)
{
    struct exti_requester from = {.path = path,
                                  .rpath = im->info.rpath,
                                  .runpath = im->info.runpath,
                                  .flags = im->info.flags};

    assert_ok(exti__elf_kind(im->bytes, &from.kind, &f->t->err), &f->t->err);
    return from;
}

/* The file that `path` gets for `name`, or NULL. */
static inline const char *find_for(struct fixture *f, const char *path, const char *name)
{
    struct exti_requester from;

    exti__free(f->found);
    exti_image_free(f->im);
    f->found = NULL;
    f->im = NULL;
    assert_ok(exti_inspect(path, &f->im, &f->t->err), &f->t->err);
    from = requester(f, path, f->im);
    assert_ok(exti__elf_search_find(f->s, &from, name, &f->found, &f->t->err), &f->t->err);
    return f->found;
}

static inline void make_leaf(struct fixture *f, const char *dir)
{
    toy_lib(f->t, test_format(f->t, "%s/libleaf.so", dir), "-Wl,-soname,libleaf.so");
}

/* Valgrind emulates another processor than the one on which the loader runs when it is asked.  It
 * also reports that dlinfo reads past a string's end, a word at a time. */
static inline void skip_under_valgrind(void)
{
    if (test_under_valgrind())
        skip_because("valgrind's processor is not the loader's");
}

#endif
