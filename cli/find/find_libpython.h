/* This room looks things up on behalf of commands: the libpython that belongs to a file, context
 * directories, the format of a file, what an interpreter or a file name tells. */
#ifndef CLI_FIND_FIND_LIBPYTHON_H
#define CLI_FIND_FIND_LIBPYTHON_H

#include <stddef.h>

/* Finds a libpython that works with all `files`, which are ELF or PE files that exti_inspect can
 * read.  `python`, or NULL, is an interpreter to ask first.  The caller frees *out.  On failure
 * prints where it looked and what to do, and returns CLI_FAILED. */
int cli_find_libpython(char *const *files, size_t count, const char *python, char **out);

#endif
