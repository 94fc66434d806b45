/* This room looks things up on behalf of commands: the libpython that belongs to a file, context
 * directories, the format of a file, what an interpreter or a file name tells. */
#ifndef CLI_FIND_FIND_LIBPYTHON_H
#define CLI_FIND_FIND_LIBPYTHON_H

#include "cli/find/abi.h"

/* A search for the libpython that works with some files. */
struct cli_libpython_search;

struct cli_libpython_search *cli_libpython_search(void);

/* Adds an ELF or PE file, which is kept open no longer than it is of use: takes ownership of `im`,
 * its image, but not of `path`. */
void cli_libpython_for(struct cli_libpython_search *s, const char *path, struct exti_image *im);

/* Finds a libpython that works with all files, of which there is at least one, and its version.
 * `python`, or NULL, is an interpreter to ask first.  The caller frees *out.  On failure prints
 * where it looked and what to do, and returns CLI_FAILED. */
int cli_libpython_find(struct cli_libpython_search *s, const char *python, char **out,
                       struct cli_abi *abi);

void cli_libpython_search_free(struct cli_libpython_search *s);

#endif
