/* Which format a file has: by the library's description, or cheaply by its first bytes.  Describing
 * an ELF file takes as long as copying it, so files of other formats are told apart first. */
#ifndef CLI_FIND_FORMAT_H
#define CLI_FIND_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include <extisolate.h>

bool cli_is_macho(const struct exti_image *im);
bool cli_is_pe(const struct exti_image *im);

/* Whether two files are for the same machine, in the same format. */
bool cli_same_target(const struct exti_image_info *a, const struct exti_image_info *b);

/* What a file's magic number says it is; universal files count as Mach-O. */
enum cli_magic {
    CLI_MAGIC_UNREADABLE, /* it cannot be opened */
    CLI_MAGIC_EMPTY,
    CLI_MAGIC_OTHER,
    CLI_MAGIC_ELF,
    CLI_MAGIC_MACHO,
    CLI_MAGIC_PE
};
enum cli_magic cli_magic_of(const char *path);

#endif
