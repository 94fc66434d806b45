/* Symbols that are told from others by their names.  Pure; any thread. */
#ifndef LOADER_IMAGE_SYMBOL_NAMES_H
#define LOADER_IMAGE_SYMBOL_NAMES_H

#include <stdbool.h>

/* Whether the symbol belongs to its file rather than to what the file offers: the linker and the
 * loader know it by name. */
bool exti__is_file_symbol(const char *symbol);

/* Whether `symbol` is a function that allocates or frees memory.  A program that puts its own
 * before the C library's means the whole process. */
bool exti__is_allocation_function(const char *symbol);

#endif
