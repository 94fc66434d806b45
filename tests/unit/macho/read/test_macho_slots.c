#include "macho/read/macho_slots.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tests/support/exti_test.h"
#include "tests/unit/macho/macho_toy.h"

struct fixture {
    struct macho_toy toy;
    struct exti_error err;
    struct exti_macho_slot slots[8];
    size_t count, wanted; /* stop after `wanted` slots */
};

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof f);
    f.wanted = ARRAY_SIZE(f.slots);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    exti__mem_fail_after(-1);
    return 0;
}

#define slots_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int keep_slot(void *user, const struct exti_macho_slot *slot)
{
    struct fixture *f = user;

    assert_true(f->count < ARRAY_SIZE(f->slots));
    f->slots[f->count++] = *slot;
    return f->count == f->wanted;
}

static int walk(struct fixture *f, uint32_t cputype)
{
    /* CPU_SUBTYPE_X86_64_ALL, CPU_SUBTYPE_ARM64_ALL */
    const uint32_t cpusubtype = cputype == CPU_TYPE_X86_64 ? 3 : 0;

    f->count = 0;
    return exti__macho_named_slots(exti__span(f->toy.b, f->toy.n), cputype, cpusubtype, keep_slot,
                                   f, &f->err);
}

/* The toy of each machine and encoding. */
static const struct macho_toy_opts forms[] = {
    {0},
    {.arm = true},
    {.chained = true},
    {.chained = true, .arm = true},
    {.chained = true, .imports = DYLD_CHAINED_IMPORT_ADDEND64}};

static uint32_t machine_of(const struct macho_toy_opts *o)
{
    return o->arm ? CPU_TYPE_ARM64 : CPU_TYPE_X86_64;
}

static const struct exti_macho_slot *slot_named(const struct fixture *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->slots[i].name, name) == 0)
            return &f->slots[i];
    fail_msg("no slot is bound to %s", name);
    return NULL;
}

static void assert_slot(const struct fixture *f, const char *name, size_t place, int32_t library,
                        bool weak_import, bool defined_here)
{
    const struct exti_macho_slot *s = slot_named(f, name);

    assert_int_equal(s->offset, f->toy.data + 8 * place);
    assert_int_equal(s->addend, 0);
    assert_int_equal(s->library, library);
    assert_int_equal(s->weak_import, weak_import);
    assert_int_equal(s->defined_here, defined_here);
}

/* What macho_toy.h says of __DATA; of the names, the toy exports _toy_weak. */
static void slots_of_every_form_are_reported(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        macho_toy_make(&f->toy, forms[i]);
        assert_ok(walk(f, machine_of(&forms[i])), &f->err);
        assert_int_equal(f->count, 4);
        assert_slot(f, "_PyFlat", 0, EXTI_BIND_FLAT, false, false);
        assert_slot(f, "_malloc", 1, 1, false, false);
        assert_slot(f, "_PyOptional", 2, EXTI_BIND_FLAT, true, false);
        assert_slot(f, "_toy_weak", 3, EXTI_BIND_WEAK, false, true);
    }
}

static void a_walk_ends_when_the_caller_asks(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        macho_toy_make(&f->toy, forms[i]);
        for (f->wanted = 1; f->wanted < 4; f->wanted++) {
            assert_ok(walk(f, machine_of(&forms[i])), &f->err);
            assert_int_equal(f->count, f->wanted);
        }
    }
}

static void a_machine_that_the_file_lacks_is_refused(void **state)
{
    struct fixture *f = *state;

    macho_toy_make(&f->toy, forms[0]);
    assert_exti(walk(f, CPU_TYPE_ARM64), EXTI_E_UNSUPPORTED, &f->err, 0);
    assert_says(&f->err, "arm64");
    assert_int_equal(f->count, 0);
}

static void every_allocation_may_fail_in_a_walk(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        int rc = EXTI_E_NOMEM;

        macho_toy_make(&f->toy, forms[i]);
        for (long n = 0; rc; n++) {
            f->err = (struct exti_error){0};
            exti__mem_fail_after(n);
            rc = walk(f, machine_of(&forms[i]));
            exti__mem_fail_after(-1);
            if (rc)
                assert_exti(rc, EXTI_E_NOMEM, &f->err, ANY_OFFSET);
        }
        assert_int_equal(f->count, 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {slots_test(slots_of_every_form_are_reported),
                                       slots_test(a_walk_ends_when_the_caller_asks),
                                       slots_test(a_machine_that_the_file_lacks_is_refused),
                                       slots_test(every_allocation_may_fail_in_a_walk)};

    return cmocka_run_group_tests_name("macho/read/macho_slots", tests, NULL, NULL);
}
