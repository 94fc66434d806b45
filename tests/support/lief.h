/* LIEF, through its C API: a reader of object files that shares no code with ours. */
#ifndef TESTS_SUPPORT_LIEF_H
#define TESTS_SUPPORT_LIEF_H

#include <stddef.h>

/* Whether the library is there. */
int lief_found(void);

/* What LIEF sees of an ELF file: the id in `id` (empty if none), the needed libraries in `needed`, a
 * line each, in order.  0 when it cannot read the file, or crashes on it. */
int lief_read(const char *path, char *id, size_t id_cap, char *needed, size_t needed_cap);

/* What LIEF sees of a Mach-O file, in lines: `slice CPU SEGMENTS SECTIONS SYMBOLS`, and after each one its
 * `id NAME`, `library NAME`s and `rpath NAME`s in order.  As above otherwise. */
int lief_read_macho(const char *path, char *facts, size_t cap);

/* What LIEF sees of a PE file, in lines: `machine MACHINE SECTIONS`, then `import NAME SYMBOLS` for each
 * library, delay imports left out.  As above otherwise. */
int lief_read_pe(const char *path, char *facts, size_t cap);

#endif
