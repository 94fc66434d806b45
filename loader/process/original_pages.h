/* Code, constants, tables and data of a lean copy, mapped or read from the file that it is a copy
 * of: base/shareable.h.  On systems that are not ELF's there are no lean copies. */
#ifndef LOADER_PROCESS_ORIGINAL_PAGES_H
#define LOADER_PROCESS_ORIGINAL_PAGES_H

#include <stdbool.h>

#include "base/os/fs_id.h"
#include "base/shareable.h"
#include "loader/process/linkmap.h"

/* Whether this process can use lean copies.  Not if it is traced: a debugger may put breakpoints
 * into pages before they are mapped over, and would later put back what it found there. */
bool exti__can_map_originals(void);

/* Whether the system allows code to be mapped from the file's file system. */
bool exti__can_map_code(const char *path);

/* Maps the read-only segments of a copy, which has a handle, that leave out something, from its
 * original in the place of its own, and with `tables` those pages of its tables that the original
 * has too; reads the data that it lacks, unless that has been done since it was mapped.  Until then
 * none of its code can run.  Its headers stay its own.  EXTI_E_IO with os_error ESTALE if the file
 * is not the version `id` any more, as far as its size, inode and time of modification tell.  One
 * thread at a time, while no slots of the copy are written. */
int exti__map_original(const struct exti_loaded *lib, const char *original,
                       const struct exti_file_id *id, const struct exti_unread *left_out,
                       bool tables, struct exti_error *err);

#endif
