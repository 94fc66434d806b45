/* The parts of opening a Mach-O file, for macho_open alone. */
#ifndef MACHO_READ_MACHO_READ_H
#define MACHO_READ_MACHO_READ_H

#include "base/error.h"
#include "macho/read/macho_priv.h"

/* Where a fault lies: a load command by its index, or the header. */
#define MACHO_HEADER SIZE_MAX

/* "LC_SYMTAB", or NULL for a command that is not known; static. */
const char *exti__macho_command_name(uint32_t cmd);

/* "LC_SEGMENT_64 2 __DATA": what messages call command `i`.  For a command, its index and, if it is a
 * segment that was read already, its name. */
struct macho_name {
    char text[64];
};
struct macho_name exti__macho_name(const struct macho_file *f, size_t i);

/* Fails with a fault `at` bytes into command `i`. */
int exti__macho_fail(const struct macho_file *f, size_t i, uint32_t at, int code,
                     struct exti_error *err, const char *fmt, ...) EXTI_PRINTF(6, 7);

/* The 32-bit field at `at` of command `i`, whose size was checked. */
uint32_t exti__macho_field(const struct macho_file *f, size_t i, uint32_t at);

/* macho_segments.c: one LC_SEGMENT_64 and its sections; then all of them against each other, which also
 * gives f->text, f->linkedit and f->room_end. */
int exti__macho_read_segment(struct macho_file *f, size_t i, struct exti_error *err);
int exti__macho_check_segments(struct macho_file *f, struct exti_error *err);

/* macho_pieces.c: the pieces of __LINKEDIT that command `i` tells of, none for other commands; then all
 * of them against each other. */
int exti__macho_read_pieces(struct macho_file *f, size_t i, struct exti_error *err);
int exti__macho_check_pieces(struct macho_file *f, struct exti_error *err);

#endif
