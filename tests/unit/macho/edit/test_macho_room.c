/* Making space for the load commands of a copy. */
#include "tests/unit/macho/macho_commands.h"

/* How much shorter the file gets without its 8 bytes of function starts: the signature is
 * aligned. */
enum { STARTS = 16 };

#define LONG_NAME "/a/name/for/libpython3.11.dylib" /* a command of 56 bytes */

static bool has(const struct macho_build *b, uint32_t cmd)
{
    const uint8_t *p = b->commands.p;

    for (uint32_t i = 0; i < b->command_count; i++, p += command_u32(p + 4))
        if (command_u32(p) == cmd)
            return cmd != LC_BUILD_VERSION || command_u32(p + 20);
    return false;
}

/* How the commands were made to fit. */
static char *sacrifices(struct test *t, const struct macho_build *b)
{
    static const struct {
        uint32_t cmd;
        const char *name;
    } droppable[] = {{LC_DATA_IN_CODE, "data"},       {LC_SOURCE_VERSION, "source"},
                     {LC_DYLIB_CODE_SIGN_DRS, "drs"}, {LC_SEGMENT_SPLIT_INFO, "split"},
                     {LC_BUILD_VERSION, "tools"},     {LC_FUNCTION_STARTS, "starts"}};
    char *text = strstr(command_names(t, b), "load /p1") ? "short" : "";

    for (size_t i = 0; i < ARRAY_SIZE(droppable); i++) {
        bool had = false;

        for (size_t k = 0; k < b->f->command_count; k++)
            had = had || b->f->commands[k].cmd == droppable[i].cmd;
        if (had && !has(b, droppable[i].cmd))
            text = test_format(t, "%s -%s", text, droppable[i].name);
    }
    assert_true(has(b, LC_UUID));
    return b->shift ? test_format(t, "%s shift %llx", text, (unsigned long long)b->shift) : text;
}

static const struct {
    size_t room;
    const char *brief, *made;
} ladder[] = {
    {56, "/p1", ""},
    {48, "/p1", "short"},
    {32, "/p1", "short"},
    {24, "/p1", "short -data"},
    {16, "/p1", "short -data"},
    {8, "/p1", "short -data -source"},
    {48, NULL, " -data"},
    {24, NULL, " -data -source"},
    {16, NULL, " -data -source -tools"},
    {8, NULL, " -data -source -tools -starts"},
};

static void room_is_made_with_least_harm(void **state)
{
    static const struct exti_needed add = {NULL, LONG_NAME, EXTI_NEEDED_LAST};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ladder); i++) {
        struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = ladder[i].room});
        struct macho_making m;
        struct exti_span s;

        making_open(t, &m, toy_span(toy));
        m.opts.needed = &add;
        m.opts.needed_count = 1;
        m.opts.bind_name = LONG_NAME;
        m.opts.bind_short = ladder[i].brief;
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        assert_string_equal(sacrifices(t, &m.b), ladder[i].made);
        assert_int_equal(m.b.bind_ordinal, 4);
        s = making_put_together(t, &m);
        assert_int_equal(m.f.pieces[MACHO_SIGNATURE].s.base - m.fileoff - m.linkedit.n,
                         strstr(ladder[i].made, "starts") ? STARTS : 0);
        making_close(&m);
        making_check(t, s);
    }
}

/* A copy that has the short name instead of the long one already is as requested. */
static void short_name_replaces_the_long_one(void **state)
{
    static const struct exti_needed ops[] = {{NULL, LONG_NAME, EXTI_NEEDED_LAST},
                                             {"/gone.dylib", LONG_NAME, EXTI_NEEDED_LAST}};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = 8});
        struct macho_making m;

        making_open(t, &m, toy_span(toy));
        m.opts.needed = &ops[i];
        m.opts.needed_count = 1;
        m.opts.bind_name = LONG_NAME;
        m.opts.bind_short = MTOY_WEAK_LIB;
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        assert_int_equal(m.b.bind_ordinal, 2);
        assert_int_equal(m.b.commands.n, m.f.sizeofcmds);
        assert_memory_equal(m.b.commands.p, toy->b + MACH_HEADER_64_SIZE, m.b.commands.n);
        making_close(&m);
    }
}

/* Even if the full name would fit in the end. */
static void short_name_in_the_original_stays(void **state)
{
    static const struct exti_needed add[] = {{NULL, LONG_NAME, EXTI_NEEDED_LAST},
                                             {NULL, "/x", EXTI_NEEDED_LAST}};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = 8});
    struct macho_making m;
    char *id = test_alloc(t, 301);

    making_open(t, &m, toy_span(toy));
    m.opts.id = memset(id, 'i', 300);
    m.opts.needed = add;
    m.opts.needed_count = ARRAY_SIZE(add);
    m.opts.bind_name = LONG_NAME;
    m.opts.bind_short = MTOY_WEAK_LIB;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    assert_int_equal(m.b.shift, 0x4000);
    assert_contains(command_names(t, &m.b), "weak " MTOY_WEAK_LIB "\n");
    assert_null(strstr(command_names(t, &m.b), LONG_NAME));
    making_close(&m);
}

/* If dropping everything does not suffice, nothing is dropped. */
static void shift_keeps_all_commands(void **state)
{
    const size_t lengths[] = {200, 10000, 30000};
    const char *const made[] = {" shift 4000", " shift 4000", " shift 8000"};
    struct test *t = *state;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
        char *name = test_alloc(t, lengths[i / 2] + 1), *brief = test_alloc(t, 151);
        const struct exti_needed add = {NULL, memset(name, 'x', lengths[i / 2]), EXTI_NEEDED_FIRST};
        struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.arm = true, .room = 16});
        struct macho_making m;

        making_open(t, &m, toy_span(toy));
        m.opts.needed = &add;
        m.opts.needed_count = 1;
        m.opts.bind_name = name;
        m.opts.bind_short = memset(brief, 'y', 150);
        if (i % 2) {
            m.f.cpusubtype = 0x80000000u | CPU_SUBTYPE_ARM64E;
            assert_exti(exti__macho_edit_commands(&m.b, &t->err), EXTI_E_NOSPACE, &t->err,
                        m.f.commands_end);
            assert_says(&t->err, "arm64e");
        } else {
            assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
            assert_string_equal(sacrifices(t, &m.b), made[i / 2]);
            assert_contains(command_names(t, &m.b), test_format(t, "load %s", name));
            assert_true(MACH_HEADER_64_SIZE + m.b.commands.n <= m.b.shift);
        }
        making_close(&m);
    }
}

/* The new signature's command takes 16 bytes of the room. */
static void signature_command_needs_room(void **state)
{
    static const struct exti_needed add = {NULL, "/p2", EXTI_NEEDED_LAST};
    struct test *t = *state;

    for (size_t room = 40; room <= 48; room += 8) {
        struct macho_toy *toy =
            make_toy(t, (struct macho_toy_opts){.arm = true, .naked = true, .room = room});
        struct macho_making m;

        making_open(t, &m, toy_span(toy));
        m.opts.needed = &add;
        m.opts.needed_count = 1;
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        assert_true(has(&m.b, LC_CODE_SIGNATURE));
        assert_string_equal(sacrifices(t, &m.b), room < 48 ? " -data" : "");
        making_check(t, making_put_together(t, &m));
        making_close(&m);
    }
}

static void other_commands_are_dropped(void **state)
{
    static const struct exti_needed add = {NULL, LONG_NAME, EXTI_NEEDED_LAST};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = 8});
    struct macho_making m;
    struct exti_span s;

    mtoy_put(toy, mtoy_find(toy, LC_SOURCE_VERSION, 0), 4, LC_RPATH);
    mtoy_put(toy, mtoy_find(toy, LC_RPATH, 0) + 8, 4, 12);
    memcpy(toy->b + mtoy_find(toy, LC_RPATH, 0) + 12, "/a", 3);
    mtoy_put(toy, mtoy_find(toy, LC_FUNCTION_STARTS, 0), 4, LC_SEGMENT_SPLIT_INFO);
    mtoy_put(toy, mtoy_find(toy, LC_DATA_IN_CODE, 0), 4, LC_DYLIB_CODE_SIGN_DRS);
    memcpy(toy->b + mtoy_find(toy, LC_RPATH, 1) + 12, "/a", 3);
    making_open(t, &m, toy_span(toy));
    m.opts.needed = &add;
    m.opts.needed_count = 1;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    /* The second path, of 32 bytes, goes first, then these. */
    assert_string_equal(sacrifices(t, &m.b), " -drs");
    assert_null(strstr(strstr(command_names(t, &m.b), "\nrpath /a\n") + 1, "\nrpath"));
    making_close(&m);

    mtoy_put(toy, mtoy_find(toy, LC_RPATH, 1) + 13, 1, 'b');
    making_open(t, &m, toy_span(toy));
    m.opts.needed = &add;
    m.opts.needed_count = 1;
    m.opts.id = "@rpath/longer/than/libtoy.dylib";
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    assert_string_equal(sacrifices(t, &m.b), " shift 4000");
    making_close(&m);

    making_open(t, &m, toy_span(toy));
    m.opts.needed = &(struct exti_needed){NULL, "/p2/and/some", EXTI_NEEDED_LAST};
    m.opts.needed_count = 1;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    assert_string_equal(sacrifices(t, &m.b), " -drs -split");
    s = making_put_together(t, &m);
    assert_int_equal(m.f.pieces[MACHO_SIGNATURE].s.base - m.fileoff - m.linkedit.n, STARTS);
    making_close(&m);
    making_check(t, s);
}

/* Readers of the code need LC_DATA_IN_CODE unless it is empty. */
static void data_in_code_stays_unless_empty(void **state)
{
    static const struct exti_needed add = {NULL, "/p2", EXTI_NEEDED_LAST};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = 16});
    struct macho_making m;

    mtoy_put(toy, mtoy_find(toy, LC_FUNCTION_STARTS, 0) + 12, 4, 0);
    mtoy_put(toy, mtoy_find(toy, LC_DATA_IN_CODE, 0) + 8, 4, toy->starts);
    mtoy_put(toy, mtoy_find(toy, LC_DATA_IN_CODE, 0) + 12, 4, 8);
    making_open(t, &m, toy_span(toy));
    m.opts.needed = &add;
    m.opts.needed_count = 1;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    assert_string_equal(sacrifices(t, &m.b), " -source");
    making_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(room_is_made_with_least_harm),     exti_test(short_name_replaces_the_long_one),
        exti_test(short_name_in_the_original_stays), exti_test(shift_keeps_all_commands),
        exti_test(signature_command_needs_room),     exti_test(other_commands_are_dropped),
        exti_test(data_in_code_stays_unless_empty),
    };

    return cmocka_run_group_tests_name("macho/macho_room", tests, NULL, NULL);
}
