/* Copies that differ in the names of their contexts, and other copies. */
#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "loader/store/pattern.h"

#define FIRST "abcdefgh"
#define SECOND "stuvwxyz"

enum { KEPT = 64, SIZE = 100 };

/* A copy in memory: two edits, the second of which names the context, and an end that does too. */
struct made {
    uint8_t bytes[SIZE];
    struct exti_range changed[2];
    struct exti_need need;
    struct exti_entry e;
    struct exti_rewritten copy;
};

/* The name between two parts. */
static char *text(struct test *t, const char *before, const char *name, const char *after)
{
    char *s = test_alloc(t, 64);

    snprintf(s, 64, "%s%s%s", before, name, after);
    return s;
}

static void make(struct test *t, const char *name, struct made *m)
{
    *m = (struct made){.changed = {{3, 2}, {20, 12}}};
    memset(m->bytes, '.', KEPT);
    memcpy(m->bytes + 3, "xy", 2);
    snprintf((char *)m->bytes + 20, 12, "to.%s", name);
    snprintf((char *)m->bytes + KEPT, SIZE - KEPT, "lib.%s %s", name, name);
    m->need = (struct exti_need){.name = text(t, "libdep.so", "", ""),
                                 .to = text(t, "libdep.", name, ".so"),
                                 .file = text(t, "/lib/libdep.so", "", ""),
                                 .isolated = true};
    m->e = (struct exti_entry){.source = text(t, "/lib/mod.so", "", ""),
                               .copy = text(t, "mod.", name, ".so"),
                               .edits = text(t, "{\"id\": \"mod.", name, ".so\"}"),
                               .takes_api = true,
                               .withheld = true,
                               .needs = &m->need,
                               .need_count = 1};
    m->copy = (struct exti_rewritten){
        .copy = {.fd = -1, .size = SIZE, .kept = KEPT, .image = {.p = m->bytes, .n = SIZE}},
        .changed = m->changed,
        .changed_count = 2,
        .left_out = {{{40, 4}}, 1}};
}

static void take(const char *name, const struct made *m, struct exti_pattern *out)
{
    assert_true(exti__pattern_take(name, m->e.copy, &m->e, &m->copy, out));
}

/* A copy whose id has as much of its name as the original's leaves room for: an edit has changed
 * the three bytes that differ from that. */
#define CUT "mod.so.90"
enum { ID_AT = 40 };

static char *make_cut(struct test *t, const char *name, struct made *m)
{
    char *id = text(t, "mod.so.", name, "");

    make(t, name, m);
    id[strlen(CUT)] = 0;
    m->e.source_name = text(t, CUT, "", "");
    m->e.copy = text(t, "mod.so.", name, "");
    m->e.edits = text(t, "{\"id\": \"", id, "\"}");
    strcpy((char *)m->bytes + ID_AT, id);
    m->changed[1] = (struct exti_range){ID_AT + 7, 2};
    return id;
}

static void take_cut(struct test *t, const char *name, struct made *m, struct exti_pattern *out)
{
    const char *id = make_cut(t, name, m);

    assert_true(exti__pattern_take(name, id, &m->e, &m->copy, out));
}

static void a_copy_is_the_pattern_of_one_that_differs_in_the_name(void **state)
{
    struct test *t = *state;
    struct exti_pattern first, second;
    struct exti_entry e;
    struct made a, b;
    uint8_t *bytes;

    make(t, FIRST, &a);
    make(t, SECOND, &b);
    take(FIRST, &a, &first);
    take(SECOND, &b, &second);
    assert_true(exti__pattern_matches(&first, &second));
    assert_true(exti__pattern_matches(&second, &first));

    assert_true(exti__pattern_entry(&first, SECOND, &e));
    assert_string_equal(e.copy, "mod." SECOND ".so");
    assert_string_equal(e.edits, b.e.edits);
    assert_string_equal(e.source, "/lib/mod.so");
    assert_string_equal(e.needs[0].to, "libdep." SECOND ".so");
    assert_true(e.takes_api && e.withheld && e.needs[0].isolated && !e.symbolic);
    assert_int_equal(e.left_out.part[0].at, 40);
    exti__entry_clear(&e);

    bytes = exti__pattern_bytes(&first, SECOND);
    assert_int_equal(first.byte_count, 2 + 12 + SIZE - KEPT);
    assert_memory_equal(bytes, "xy", 2);
    assert_memory_equal(bytes + 2, b.bytes + 20, 12);
    assert_memory_equal(bytes + 14, b.bytes + KEPT, SIZE - KEPT);
    exti__free(bytes);
    exti__pattern_free(&first);
    exti__pattern_free(&second);
}

static void an_id_that_is_cut_off_is_replaced_too(void **state)
{
    struct test *t = *state;
    struct exti_pattern first, second;
    struct exti_entry e;
    struct made a, b;
    uint8_t *bytes;

    take_cut(t, FIRST, &a, &first);
    take_cut(t, SECOND, &b, &second);
    assert_true(exti__pattern_differs(&first, &second));
    assert_true(exti__pattern_matches(&first, &second));
    assert_true(exti__pattern_entry(&first, SECOND, &e));
    assert_string_equal(e.edits, "{\"id\": \"mod.so.st\"}");
    assert_string_equal(e.copy, "mod.so." SECOND);
    exti__entry_clear(&e);
    bytes = exti__pattern_bytes(&first, SECOND);
    assert_memory_equal(bytes, "xyst", 4);
    exti__free(bytes);
    exti__pattern_free(&first);
    exti__pattern_free(&second);
}

/* Two such copies do not tell where others have the rest of their names. */
static void ids_that_are_alike_tell_nothing(void **state)
{
    struct test *t = *state;
    struct exti_pattern first, second, third;
    struct made m;

    take_cut(t, "abcde123", &m, &first);
    take_cut(t, "abcde456", &m, &second);
    take_cut(t, "bacde456", &m, &third);
    assert_false(exti__pattern_differs(&first, &first));
    assert_false(exti__pattern_differs(&first, &second));
    assert_true(exti__pattern_differs(&second, &third));
    assert_true(exti__pattern_matches(&second, &third));
    exti__pattern_free(&first);
    exti__pattern_free(&second);
    exti__pattern_free(&third);
}

/* "mod.so.90" would be the original's. */
static void an_id_that_would_not_be_cut_off_is_planned(void **state)
{
    struct test *t = *state;
    struct exti_pattern p;
    struct exti_entry e;
    struct made m;

    take_cut(t, FIRST, &m, &p);
    assert_false(exti__pattern_entry(&p, "90abcdef", &e));
    assert_null(exti__pattern_bytes(&p, "90abcdef"));
    exti__pattern_free(&p);
}

static void what_was_not_cut_off_is_no_pattern_of_others(void **state)
{
    struct test *t = *state;
    struct exti_pattern p;
    struct made m;

    make_cut(t, "90abcdef", &m);
    assert_false(exti__pattern_take("90abcdef", m.e.copy, &m.e, &m.copy, &p));
    assert_null(p.bytes);
}

static void an_id_elsewhere_is_no_pattern(void **state)
{
    struct test *t = *state;
    struct exti_pattern p;
    struct made m;
    const char *id;

    make(t, FIRST, &m);
    assert_false(exti__pattern_take(FIRST, "libother.so", &m.e, &m.copy, &p));
    assert_null(p.bytes);
    /* An edit has written a part of it only. */
    id = make_cut(t, FIRST, &m);
    m.changed[1].n = 1;
    assert_false(exti__pattern_take(FIRST, id, &m.e, &m.copy, &p));
    /* It is there twice. */
    id = make_cut(t, FIRST, &m);
    strcpy((char *)m.bytes + KEPT, id);
    assert_false(exti__pattern_take(FIRST, id, &m.e, &m.copy, &p));
    assert_null(p.bytes);
}

/* Whether the copy is another one once `change` has seen to it. */
static bool differs(struct test *t, void (*change)(struct made *m))
{
    struct exti_pattern first, second;
    struct made a, b;
    bool matches;

    make(t, FIRST, &a);
    make(t, SECOND, &b);
    change(&b);
    take(FIRST, &a, &first);
    take(SECOND, &b, &second);
    matches = exti__pattern_matches(&first, &second);
    exti__pattern_free(&first);
    exti__pattern_free(&second);
    return !matches;
}

static void change_edit(struct made *m)
{
    m->bytes[4]++;
}

static void change_end(struct made *m)
{
    m->bytes[SIZE - 1]++;
}

static void change_place(struct made *m)
{
    m->changed[0].at++;
}

static void change_size(struct made *m)
{
    m->copy.copy.size--;
}

static void change_holes(struct made *m)
{
    m->copy.left_out.part[0].n++;
}

static void change_copy(struct made *m)
{
    m->e.copy[0]++;
}

static void change_need(struct made *m)
{
    m->need.file = NULL;
}

static void change_needs(struct made *m)
{
    m->e.need_count = 0;
}

static void change_flag(struct made *m)
{
    m->e.symbolic = true;
}

static void change_resolution(struct made *m)
{
    m->e.resolution++;
}

/* As where an edit happens to look like a context's name: it must not be renamed. */
static void keep_a_name(struct made *m)
{
    memcpy(m->bytes + 20, "to." FIRST, 11);
}

static void change_nothing(struct made *m)
{
    (void)m;
}

static void any_other_difference_is_one(void **state)
{
    static void (*const changes[])(struct made *) = {
        change_edit, change_end,   change_place, change_size,       change_holes, change_copy,
        change_need, change_needs, change_flag,  change_resolution, keep_a_name};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
        if (!differs(t, changes[i]))
            fail_msg("change %zu is not seen", i);
    assert_false(differs(t, change_nothing));
}

/* exti__mem_fail_after: each allocation in turn. */
static void without_memory_there_is_no_pattern(void **state)
{
    struct test *t = *state;
    struct exti_pattern p;
    struct exti_entry e;
    struct made m;
    bool done = false;

    make(t, FIRST, &m);
    for (long n = 0; !done; n++) {
        exti__mem_fail_after(n);
        done = exti__pattern_take(FIRST, m.e.copy, &m.e, &m.copy, &p);
        exti__mem_fail_after(-1);
        assert_true(done || (!p.bytes && !p.e.source));
        assert_in_range(n, 0, 30);
    }
    done = false;
    for (long n = 0; !done; n++) {
        exti__mem_fail_after(n);
        done = exti__pattern_entry(&p, SECOND, &e);
        exti__mem_fail_after(-1);
        assert_true(done || !e.source);
        assert_in_range(n, 0, 30);
    }
    exti__entry_clear(&e);
    exti__mem_fail_after(0);
    assert_null(exti__pattern_bytes(&p, SECOND));
    exti__mem_fail_after(-1);
    exti__pattern_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(a_copy_is_the_pattern_of_one_that_differs_in_the_name),
        exti_test(an_id_that_is_cut_off_is_replaced_too),
        exti_test(ids_that_are_alike_tell_nothing),
        exti_test(an_id_that_would_not_be_cut_off_is_planned),
        exti_test(what_was_not_cut_off_is_no_pattern_of_others),
        exti_test(an_id_elsewhere_is_no_pattern),
        exti_test(any_other_difference_is_one),
        exti_test(without_memory_there_is_no_pattern),
    };

    return cmocka_run_group_tests_name("store/pattern", tests, NULL, NULL);
}
