/* Shared by the tests of the load commands: the toy, and its edited commands as text. */
#ifndef TESTS_UNIT_MACHO_MACHO_COMMANDS_H
#define TESTS_UNIT_MACHO_MACHO_COMMANDS_H

#include <string.h>

#include "macho/edit/macho_commands.h"
#include "tests/unit/macho/macho_edit.h"
#include "tests/unit/macho/macho_toy.h"

static inline uint32_t command_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline struct exti_span toy_span(const struct macho_toy *toy)
{
    return exti__span(toy->b, toy->n);
}

static inline struct macho_toy *make_toy(struct test *t, struct macho_toy_opts o)
{
    struct macho_toy *toy = test_alloc(t, sizeof *toy);

    if (!o.room)
        o.room = 1024;
    macho_toy_make(toy, o);
    return toy;
}

static inline const char *command_kind(uint32_t cmd)
{
    return cmd == LC_LOAD_DYLIB          ? "load"
           : cmd == LC_LOAD_WEAK_DYLIB   ? "weak"
           : cmd == LC_REEXPORT_DYLIB    ? "reexport"
           : cmd == LC_LOAD_UPWARD_DYLIB ? "upward"
           : cmd == LC_ID_DYLIB          ? "id"
           : cmd == LC_RPATH             ? "rpath"
                                         : NULL;
}

/* One line per command with a name, with a library's versions if they differ from the toy's. */
static inline char *command_names(struct test *t, const struct macho_build *b)
{
    const uint8_t *p = b->commands.p;
    char *text = test_format(t, "%s", "");

    for (uint32_t i = 0; i < b->command_count; i++, p += command_u32(p + 4)) {
        const char *kind = command_kind(command_u32(p));

        assert_int_equal(command_u32(p + 4) % 8, 0);
        if (!kind)
            continue;
        text = test_format(t, "%s%s %s", text, kind, (const char *)p + command_u32(p + 8));
        if (command_u32(p) != LC_RPATH &&
            (command_u32(p + 12) != 2 || command_u32(p + 16) != 0x10203))
            text = test_format(t, "%s %x/%x/%x", text, command_u32(p + 12), command_u32(p + 16),
                               command_u32(p + 20));
        text = test_format(t, "%s\n", text);
    }
    assert_ptr_equal(p, b->commands.p + b->commands.n);
    return text;
}

#endif
