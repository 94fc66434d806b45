/* The Mach-O self-check of header and load commands: a toy, and a copy of it with one change that
 * no edit makes, or with one that an edit may make. */
#include "tests/unit/macho/macho_findings.h"

/* ---- fields ---------------------------------------------------------------------------------- */

/* A field of load command `cmd` number `nth`; cmd is 0: of the header.  Another one may go with
 * it, to keep the file sound. */
struct field {
    uint32_t cmd;
    unsigned nth;
    size_t at, width;
    uint64_t value;
};

#define SECTION(i) (SEGMENT_COMMAND_64_SIZE + (i)*SECTION_64_SIZE)

static const struct {
    struct field fields[2];
    const char *says;
} changes[] = {
    {{{0, 0, 8, 4, 8}}, "slice 0 is for x86-64h, not x86-64"},
    {{{0, 0, 28, 4, 1}}, "header: the reserved word differs"},
    {{{LC_SEGMENT_64, 2, 24, 8, MTOY_BASE + 0x4000}},
     "command 0x19: vmaddr is 0x14000, not 0x12000"},
    {{{LC_SEGMENT_64, 2, 24, 8, MTOY_BASE + 0x4000}, {LC_SEGMENT_64, 1, 32, 8, 0x3000}},
     "command 0x19: vmsize is 0x3000, not 0x1000"},
    {{{LC_SEGMENT_64, 1, 48, 8, 0xff0}}, "command 0x19: filesize is 0xff0, not 0x1000"},
    {{{LC_SEGMENT_64, 1, SECTION(2) + 52, 4, 0}}, "section __data: differs from the original's"},
    {{{LC_SEGMENT_64, 1, SECTION(2) + 40, 8, 8}}, "section __data: differs from the original's"},
    {{{LC_SEGMENT_64, 1, SECTION(2) + 32, 8, MTOY_BASE + 0x1020},
      {LC_SEGMENT_64, 1, SECTION(2) + 48, 4, 0x1020}},
     "a section's address is 0x11020, not 0x11018"},
    {{{LC_SEGMENT_64, 1, SECTION(2) + 32, 8, MTOY_BASE + 0x1020},
      {LC_SEGMENT_64, 1, SECTION(2) + 48, 4, 0x1020}},
     "a section's file offset is 0x1020, not 0x1018"},
    {{{LC_BUILD_VERSION, 0, 12, 4, 0x000a0000}}, "command 0x32: 0xa0000 at byte 12, not 0xb0000"},
    {{{LC_LOAD_DYLIB, 0, 0, 4, LC_LOAD_WEAK_DYLIB}},
     "needed library " MTOY_SYSTEM ": command 0x80000018, not 0xc"},
    {{{LC_LOAD_DYLIB, 0, 16, 4, 7}}, "needed library " MTOY_SYSTEM ": its versions differ"},
};

static void change(struct macho_toy *t, const struct field *c)
{
    if (!c->width)
        return;
    if (c->cmd)
        set_field(t, c->cmd, c->nth, c->at, c->width, c->value);
    else
        mtoy_put(t, c->at, c->width, c->value);
}

static void each_changed_field_is_found(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        make_pair(f, &opcodes);
        change(&f->after, &changes[i].fields[0]);
        change(&f->after, &changes[i].fields[1]);
        assert_finds(f, NULL, changes[i].says);
    }
}

static void a_library_that_the_original_does_not_need_is_found(void **state)
{
    struct fixture *f = *state;

    make_pair(f, &opcodes);
    rename_dylib(&f->after, LC_LOAD_WEAK_DYLIB, "/new.dylib");
    assert_finds(f, NULL, NULL);
    /* Renaming keeps the versions; those of an added one are 0. */
    set_field(&f->after, LC_LOAD_WEAK_DYLIB, 0, 16, 4, 9);
    assert_finds(f, NULL, "needed library /new.dylib: corresponds to no library that the original");
}

/* ---- commands that grow, shrink and go ----------------------------------------------------- */

/* Gives command `cmd` another size; the ones after it move, and the room after them gets zeros. */
static void resize(struct macho_toy *t, uint32_t cmd, size_t size)
{
    const size_t at = mtoy_find(t, cmd, 0), was = (size_t)mtoy_get(t, at + 4, 4),
                 end = MACH_HEADER_64_SIZE + (size_t)mtoy_get(t, 20, 4);

    assert_true(at != 0);
    memmove(t->b + at + size, t->b + at + was, end - at - was);
    if (size > was)
        memset(t->b + at + was, 0, size - was);
    else
        memset(t->b + end + size - was, 0, was - size);
    if (size)
        mtoy_put(t, at + 4, 4, size);
    else
        mtoy_put(t, 16, 4, --t->ncmds);
    mtoy_put(t, 20, 4, mtoy_get(t, 20, 4) + size - was);
}

static void only_commands_that_dyld_does_not_read_may_go(void **state)
{
    static const uint32_t optional[] = {LC_SOURCE_VERSION, LC_DATA_IN_CODE};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(optional); i++) {
        make_pair(f, &opcodes);
        resize(&f->after, optional[i], 0);
        assert_finds(f, NULL, NULL);
    }
    make_pair(f, &opcodes);
    resize(&f->after, LC_UUID, 0);
    assert_finds(f, NULL, "command 0x1b of the original is missing");
    make_pair(f, &opcodes);
    resize(&f->before, LC_UUID, 0);
    assert_finds(f, NULL, "command 0x1b is not in the original at this place");
}

static void a_build_version_may_lose_its_tools_alone(void **state)
{
    struct fixture *f = *state;
    size_t at;

    make_pair(f, &opcodes);
    at = mtoy_find(&f->after, LC_BUILD_VERSION, 0);
    assert_int_equal(mtoy_get(&f->after, at + 4, 4), 32);
    resize(&f->after, LC_BUILD_VERSION, 24);
    mtoy_put(&f->after, at + 20, 4, 0);
    assert_finds(f, NULL, NULL);
    mtoy_put(&f->after, at + 12, 4, 0x000a0000);
    assert_finds(f, NULL, "LC_BUILD_VERSION: differs from the original's");
}

static void a_command_of_another_size_is_found(void **state)
{
    struct fixture *f = *state;

    make_pair(f, &opcodes);
    resize(&f->after, LC_BUILD_VERSION, 40);
    set_field(&f->after, LC_BUILD_VERSION, 0, 20, 4, 2);
    assert_finds(f, NULL, "command 0x32: cmdsize is 0x28, not 0x20");
}

/* ---- what a request asks for --------------------------------------------------------------- */

static void a_request_is_compared_with_what_was_done(void **state)
{
    static const struct exti_needed added = {NULL, "/added.dylib", EXTI_NEEDED_LAST};
    static const struct exti_rewrite_opts renamed = {.size = sizeof renamed, .id = "/x"},
                                          more = {.size = sizeof more,
                                                  .needed = &added,
                                                  .needed_count = 1},
                                          path = {.size = sizeof path, .path_prepend = "/p"};
    struct fixture *f = *state;

    make_pair(f, &opcodes);
    assert_finds(f, &renamed, "id: " MTOY_ID ", not /x");
    assert_finds(f, &more, "needed library 4: none, not /added.dylib");
    assert_finds(f, &path, "search path 1: " MTOY_RPATH ", not /p");
    rename_dylib(&f->after, LC_ID_DYLIB, "/x");
    assert_finds(f, &renamed, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(each_changed_field_is_found),
        check_test(a_library_that_the_original_does_not_need_is_found),
        check_test(only_commands_that_dyld_does_not_read_may_go),
        check_test(a_build_version_may_lose_its_tools_alone),
        check_test(a_command_of_another_size_is_found),
        check_test(a_request_is_compared_with_what_was_done),
    };

    return cmocka_run_group_tests_name("macho/check/macho_check_edit", tests, NULL, NULL);
}
