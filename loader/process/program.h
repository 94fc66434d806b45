/* What the program itself defines for the libraries that it loads: the loader binds their
 * references to that before anything else.  Any thread.  Nothing on macOS and Windows, where a
 * reference names its library. */
#ifndef LOADER_PROCESS_PROGRAM_H
#define LOADER_PROCESS_PROGRAM_H

#include "loader/process/linkmap.h"

/* Finds the program in memory, once.  Asks the system's loader, so no lock of the library is held.
 * Until then the program defines nothing. */
void exti__program_find(void);

/* Whether the program defines anything at all for libraries. */
bool exti__program_has_exports(void);

/* Whether it defines the symbol itself.  A variable that it has copied from a library (R_*_COPY) is
 * that library's. */
bool exti__program_exports(const char *name);

/* Whether the variable at the address is one that the program `lib` has copied from a library. */
bool exti__program_has_copied(const struct exti_loaded *lib, uintptr_t address);

/* Whether the program does not need the library, but had it loaded before what it needs, as
 * LD_PRELOAD asks for.  Takes locks of the system's loader. */
bool exti__is_preloaded(const struct exti_loaded *lib);

/* Whether the file has the name of the system's loader, which every process has: glibc knows its
 * own by that and by no other path than the one in the program, and would map it once more. */
bool exti__is_loader(const char *file);

#endif
