/* Load commands while a file is being opened: their names, sizes and kinds, and errors that name
 * them. */
#ifndef MACHO_READ_MACHO_COMMAND_H
#define MACHO_READ_MACHO_COMMAND_H

#include "base/error.h"
#include "macho/read/macho_file.h"

/* What exti__macho_open does with a command. */
enum macho_command_kind {
    COMMAND_PLAIN, /* holds nothing that an edit relies on */
    COMMAND_SEGMENT,
    COMMAND_ID,
    COMMAND_DYLIB,
    COMMAND_RPATH,
    COMMAND_STRING, /* an lc_str after cmd and cmdsize */
    COMMAND_PIECES,
    COMMAND_UUID,
    COMMAND_VERSION_MIN,
    COMMAND_BUILD_VERSION,
    COMMAND_ENCRYPTION,
    COMMAND_32_BIT,
    COMMAND_REFUSED
};

struct macho_command_rule {
    uint32_t cmd;
    const char *name;
    uint32_t size;
    bool exact; /* cmdsize must equal `size`; otherwise `size` is the minimum */
    enum macho_command_kind kind;
};

/* NULL for an unknown command. */
const struct macho_command_rule *exti__macho_command_rule(uint32_t cmd);

/* "LC_SEGMENT_64 2 __DATA": a command's name, index and, if it is a segment that was already read,
 * segment name. */
struct macho_name {
    char text[64];
};
struct macho_name exti__macho_name(const struct macho_file *f, size_t i);

/* Instead of a command's index: the fault is in the Mach-O header. */
#define MACHO_HEADER SIZE_MAX

/* Reports a fault at offset `at` of command `i`, and returns `code`. */
int exti__macho_fail(const struct macho_file *f, size_t i, uint32_t at, int code,
                     struct exti_error *err, const char *fmt, ...) EXTI_PRINTF(6, 7);

/* The 32-bit field at offset `at` of command `i`, whose size was checked. */
uint32_t exti__macho_field(const struct macho_file *f, size_t i, uint32_t at);

#endif
