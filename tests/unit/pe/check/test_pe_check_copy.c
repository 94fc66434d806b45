/* Checks of planned copies: they pass, and no changed byte goes unnoticed. */
#include <stdlib.h>

#include "pe/check/pe_check.h"
#include "tests/unit/pe/pe_copy.h"

#define MINGW "x86_64-w64-mingw32-gcc"

static int count_finding(void *user, const struct exti_error *finding)
{
    struct copy_fixture *f = user;

    if (f->err.code == EXTI_OK)
        f->err = *finding;
    return 1;
}

/* Whether the check has a finding; the first goes to f->err. */
static bool has_finding(struct copy_fixture *f, struct exti_span before,
                        const struct exti_request *req, const struct exti_plan *plan)
{
    struct exti_error err = {.code = EXTI_OK};

    f->err = (struct exti_error){.code = EXTI_OK};
    assert_ok(exti__pe_check(before, exti__span(f->bytes, f->n), req, plan, count_finding, f, &err),
              &err);
    return f->err.code != EXTI_OK;
}

static void assert_let_pass(struct copy_fixture *f, struct exti_span before)
{
    const struct exti_request req = {
        .opts = &f->opts, .bind = &f->bind, .bind_count = f->bind.p != NULL};

    if (has_finding(f, before, &req, &f->plan) || has_finding(f, before, &req, NULL) ||
        has_finding(f, before, NULL, NULL))
        fail_msg("finding: %s", f->err.message);
}

/* Changes one bit of every `step`th byte. */
static void assert_each_byte_counts(struct copy_fixture *f, struct exti_span before, size_t step)
{
    const struct exti_request req = {
        .opts = &f->opts, .bind = &f->bind, .bind_count = f->bind.p != NULL};

    for (size_t i = 0; i < f->n; i += step) {
        const uint8_t bit = (uint8_t)(1 << i % 8);

        f->bytes[i] ^= bit;
        if (!has_finding(f, before, &req, NULL))
            fail_msg("byte 0x%zx of 0x%zx is 0x%02x, and nothing is found", i, f->n, f->bytes[i]);
        f->bytes[i] ^= bit;
    }
}

struct shape {
    struct pe_toy_opts toy;
    const char *api, *id;
    size_t sections; /* of the copy */
    size_t room;     /* if not 0: so much is left of tightened headers, plus 1 */
};

static const struct shape shapes[] = {
    {{.narrow = false}, "py311c001.dll", "toy.cp1", 4, 0},                /* in place */
    {{.low = true}, "py3c.dll", NULL, 4, 0},                              /* shorter */
    {{.narrow = true, .by_address = true}, LONGER, "a-longer.pyd", 4, 0}, /* slack */
    {{.full = true, .arm = true}, LONGER, "a-longer.pyd", 5, 0},          /* a section */
    {{.full = true, .symbols = true, .certified = true}, LONGER, NULL, 5, 0},
    {{.full = true, .bound = true}, LONGER, NULL, 5, 0},
    {{.full = true, .room = 8}, LONGER, NULL, 5, 0},         /* headers that slide over the stub */
    {{.full = true, .certified = true}, LONGER, NULL, 5, 9}, /* and that grow */
};

static void make_shape(struct copy_fixture *f, const struct shape *s)
{
    f->opts.needed_count = 0;
    f->opts.id = s->id;
    copy_replace(f, "python311.dll", s->api);
    pe_toy_make(&f->toy, s->toy);
    if (s->room)
        tighten_headers(&f->toy, s->room - 1);
    copy_make(f);
    assert_int_equal(f->file.section_count, s->sections);
}

static void planned_copies_pass(void **state)
{
    struct copy_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        make_shape(f, &shapes[i]);
        assert_let_pass(f, exti__span(f->toy.b, f->toy.n));
    }
}

static void every_changed_byte_is_found(void **state)
{
    struct copy_fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        make_shape(f, &shapes[i]);
        assert_each_byte_counts(f, exti__span(f->toy.b, f->toy.n), 1);
    }
}

static void a_copy_with_other_edits_is_reported(void **state)
{
    struct copy_fixture *f = *state;
    const struct exti_request req = {.opts = &f->opts};

    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        make_shape(f, &shapes[i]);
        f->needed[0].to = "another.dll";
        assert_true(has_finding(f, exti__span(f->toy.b, f->toy.n), &req, NULL));
        f->opts.needed_count = 0;
        assert_true(has_finding(f, exti__span(f->toy.b, f->toy.n), &req, NULL));
        f->opts.needed_count = 1;
        f->needed[0].to = shapes[i].api;
        f->opts.id = "another.pyd";
        assert_true(has_finding(f, exti__span(f->toy.b, f->toy.n), &req, NULL));
    }
}

/* The loader fills whole pages from the file, so a list may end in the zeros past VirtualSize. */
static void names_over_the_end_of_a_list_are_found(void **state)
{
    static const char *const exports[] = {"PyInit_toy", NULL}; /* no forwarder, which is moved */
    struct copy_fixture *f = *state;
    const struct exti_request req = {.opts = &f->opts};
    struct pe_toy *t = &f->toy;
    size_t delay;

    copy_replace(f, "python311.dll", LONGER);
    pe_toy_make(t, (struct pe_toy_opts){.exports = exports});
    copy_make(f);
    assert_let_pass(f, exti__span(t->b, t->n));
    delay = ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT);
    ptoy_set_directory(t, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT,
                       t->start[PTOY_RDATA] + t->virtual_size[PTOY_RDATA], DELAY_DESCRIPTOR_SIZE);
    memcpy(f->bytes + delay, t->b + delay, 8);
    assert_true(has_finding(f, exti__span(t->b, t->n), &req, NULL));
    assert_true(has_finding(f, exti__span(t->b, t->n), NULL, NULL));
}

static void symbols_of_the_bound_library_are_checked(void **state)
{
    static const char *const all[] = {"PyModule_Create2", "Py_BuildValue", NULL};
    static const char *const one[] = {"PyModule_Create2", NULL};
    struct copy_fixture *f = *state;
    const struct exti_request req = {.opts = &f->opts, .bind = &f->bind, .bind_count = 1};

    pe_toy_make(&f->library, (struct pe_toy_opts){.exports = all, .id = "python311.dll"});
    f->bind = exti__span(f->library.b, f->library.n);
    f->opts.bind_file = "python311.dll";
    f->opts.bind_name = LONGER;
    copy_replace(f, "KERNEL32", "kernel-of-context-1.dll"); /* not the library's */
    copy_replace(f, "python311", LONGER);
    pe_toy_make(&f->toy, (struct pe_toy_opts){.by_ordinal = true}); /* whose copy it is */
    copy_make(f);
    assert_let_pass(f, exti__span(f->toy.b, f->toy.n));

    pe_toy_make(&f->library, (struct pe_toy_opts){.exports = all, .id = "other.dll"});
    assert_true(has_finding(f, exti__span(f->toy.b, f->toy.n), &req, NULL));
    assert_says(&f->err, "by ordinal 77");

    pe_toy_make(&f->library, (struct pe_toy_opts){.exports = one, .id = "python311.dll"});
    pe_toy_make(&f->toy, (struct pe_toy_opts){.by_ordinal = false});
    f->bind.p = NULL;
    copy_make(f);
    f->bind = exti__span(f->library.b, f->library.n);
    assert_true(has_finding(f, exti__span(f->toy.b, f->toy.n), &req, NULL));
    assert_says(&f->err, "no symbol Py_BuildValue");

    pe_toy_make(&f->library, (struct pe_toy_opts){.exports = all, .arm = true});
    assert_true(has_finding(f, exti__span(f->toy.b, f->toy.n), &req, NULL));
    assert_says(&f->err, "the library to import is for 0xaa64");
}

/* ---- files that GNU ld linked ---------------------------------------------------------------- */

static void copy_linked(struct copy_fixture *f, struct exti_span file)
{
    copy_reset(f);
    assert_ok(plan_of(f, file, &f->plan), &f->err);
    f->n = (size_t)exti__plan_size(&f->plan, file.n);
    f->bytes = calloc(1, f->n > file.n ? f->n : file.n);
    assert_non_null(f->bytes);
    memcpy(f->bytes, file.p, file.n);
    exti__plan_apply(&f->plan, f->bytes, file.n);
}

static void linked_copies_are_checked_alike(void **state)
{
    static const char source[] = "__declspec(dllimport) unsigned __stdcall GetLastError(void);\n"
                                 "__declspec(dllexport) int one(void) { return 1; }\n"
                                 "__declspec(dllexport) int two(void) { return GetLastError(); }\n";
    struct copy_fixture *f = *state;
    struct test *t;
    struct exti_span file;
    const char *c, *dll;
    size_t n;
    void *fixture;

    if (!test_have(MINGW))
        skip_because(MINGW " is not installed");
    test_setup(&fixture);
    t = fixture;
    c = test_path(t, "x.c");
    dll = test_path(t, "x.dll");
    test_write(c, source, sizeof source - 1);
    test_must_run(t, MINGW, "-shared", "-nostdlib", "-Wl,-e,one", "-o", dll, c, "-lkernel32",
                  (char *)NULL);
    file.p = (const uint8_t *)test_read(t, dll, &n);
    file = exti__span(file.p, n);

    f->opts.id = "x.of-context-1.dll";
    copy_replace(f, "kernel32.dll", "kernel32-of-context-1.dll");
    copy_linked(f, file);
    assert_let_pass(f, file);
    assert_each_byte_counts(f, file, 7);
    test_teardown(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        copy_test(planned_copies_pass),
        copy_test(every_changed_byte_is_found),
        copy_test(a_copy_with_other_edits_is_reported),
        copy_test(names_over_the_end_of_a_list_are_found),
        copy_test(symbols_of_the_bound_library_are_checked),
        copy_test(linked_copies_are_checked_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
