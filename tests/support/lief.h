/* LIEF, through its C API: a reader of object files that shares no code with ours. */
#ifndef TESTS_SUPPORT_LIEF_H
#define TESTS_SUPPORT_LIEF_H

#include <stddef.h>

/* Whether the library is installed. */
int lief_found(void);

/* Describes an ELF file: puts its id in `id` ("" if none) and its needed libraries in `needed`, one
 * per line, in order.  Returns 0 if LIEF cannot read the file or crashes. */
int lief_read(const char *path, char *id, size_t id_cap, char *needed, size_t needed_cap);

/* Describes a Mach-O file in lines: `slice CPU SEGMENTS SECTIONS SYMBOLS`, each followed by its `id
 * NAME`, `library NAME` and `rpath NAME` lines in order.  Fails like the above. */
int lief_read_macho(const char *path, char *facts, size_t cap);

/* Describes a PE file in lines: `machine MACHINE SECTIONS`, then `import NAME SYMBOLS` for each
 * library, without delay imports.  Fails like the above. */
int lief_read_pe(const char *path, char *facts, size_t cap);

#endif
