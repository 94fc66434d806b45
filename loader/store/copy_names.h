/* Names of contexts and of copies.  Pure but for exti__context_name_make; any thread. */
#ifndef LOADER_STORE_COPY_NAMES_H
#define LOADER_STORE_COPY_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/path.h"
#include <extisolate.h>

#define EXTI_NAME_MAX 32 /* longest context name */

/* A fresh context name: 8 random characters, so that directories made by different processes do not
 * collide.  `out` has room for EXTI_NAME_MAX+1 bytes. */
int exti__context_name_make(char *out, struct exti_error *err);

/* EXTI_E_ARG unless `name` is [A-Za-z0-9_-]{1,32}. */
int exti__context_name_check(const char *name, struct exti_error *err);

/* The API library's copy: "libpython3.11.so.1.0" in context "k3x9q2m4" becomes
 * "libpython3.11.so.k3x9q2m4", a name that debuggers and profilers still take for a libpython.
 * Later generations end in ".2", ".3"...  `out` has room for EXTI_FILE_NAME_MAX+1 bytes. */
void exti__copy_name_api(const char *source, const char *context, unsigned generation, char *out);

/* Any other copy: before the first dot go the context's name and a hash of the source's path,
 * which tells apart the "_core.so" of many packages.  `out` has room for EXTI_FILE_NAME_MAX+1
 * bytes. */
void exti__copy_name(const char *source, const char *context, char *out);

/* Whether `file` has the form of a name that exti__copy_name or exti__copy_name_pe makes for
 * `context`, so that it can be nothing but a copy. */
bool exti__copy_name_is_of(const char *file, const char *context);

/* The SONAME for an API copy called `copy`: `copy` cut to the length of `old_id`, so that it
 * overwrites that in place and libpython's layout does not change.  The loader looks libraries
 * up by DT_NEEDED, which holds the whole file name.  Without room for a distinct name, `copy`
 * itself.  `out` has room for EXTI_FILE_NAME_MAX+1 bytes. */
void exti__copy_name_api_id(const char *old_id, const char *copy, char *out);

/* The install name of a Mach-O copy: a slash and EXTI_INSTALL_LEAST letters and digits, hashed
 * from the names of context and copy; up to ten of them while they fit `room` bytes.  dyld
 * matches install names against loaded libraries whether or not there is such a file
 * (Loader.cpp, matchesPath), and so short a name fits the room that every linker leaves.  `out`
 * has room for EXTI_FILE_NAME_MAX+1 bytes. */
#define EXTI_INSTALL_LEAST 6
void exti__copy_name_install(const char *context, const char *copy, size_t room, char *out);

/* The API copy in a PE context: "python311.dll" in context "k3x9q2m4" becomes "pk3x9q2m4.dll".
 * The length stays, so that most imports are overwritten in place.  The stem has no dot, at
 * which loaders split forwarders, and is not "python" and digits, which CPython takes for
 * another version's library.  Contexts with other names than exti__context_name_make's, and
 * later generations, have a hash instead of the name.  `out` has room for EXTI_FILE_NAME_MAX+1
 * bytes. */
void exti__copy_name_pe_api(const char *source, const char *context, unsigned generation,
                            char *out);

/* The copy of python3.dll in a PE context: "sk3x9q2m4.dll", likewise, in every generation. */
void exti__copy_name_pe_stable_abi(const char *context, char *out);

/* The copy of any other DLL in a PE context: the end of the stem, or what follows a stem too
 * short for that, becomes "-", a tag of the context's name and a hash of the source's path.  So
 * "libopenblas64_-43e11ff0749b8cbe0a615c9cf6737e0e.dll" keeps its length.  `out` likewise. */
void exti__copy_name_pe(const char *source, const char *context, char *out);

/* Whether imports and forwarders can refer to a copy by `name`: its stem has no dot, and neither
 * CPython nor Windows gives such names a meaning of their own. */
bool exti__copy_name_pe_fits(const char *name);

#endif
