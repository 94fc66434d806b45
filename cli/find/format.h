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

/* Reads up to 4 first bytes into `head` and returns their number; false if the file cannot be
 * opened. */
bool cli_read_head(const char *path, unsigned char head[4], size_t *n);

#endif
