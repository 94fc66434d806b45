/* Initialised data that a lean copy lacks, read from the file that it is a copy of. */
#ifndef LOADER_PROCESS_ORIGINAL_DATA_ELF_H
#define LOADER_PROCESS_ORIGINAL_DATA_ELF_H

#include "base/os/fs_pieces.h"
#include "base/shareable.h"
#include "loader/process/linkmap.h"

/* Reads the one part that lies in no segment's file part, if there is one (elf_left_data.h).  The
 * words that relocations have written stay.  Once for as long as the copy stays mapped: afterwards
 * the data is the program's.  One thread at a time, while no slots of the library are written. */
int exti__original_data(const struct exti_loaded *lib, const struct exti_pieces *original,
                        const struct exti_unread *left_out, struct exti_error *err);

#endif
