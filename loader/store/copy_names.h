/* What contexts and copies are called. */
#ifndef LOADER_STORE_COPY_NAMES_H
#define LOADER_STORE_COPY_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/os/path.h"
#include <extisolate.h>

#define EXTI_NAME_MAX 32 /* longest context name */

/* A fresh context name: 8 random characters, so that directories made by different processes do not
 * meet.  `out` has room for EXTI_NAME_MAX+1 bytes. */
int exti__context_name_make(char *out, struct exti_error *err);

/* EXTI_E_ARG unless `name` is [A-Za-z0-9_-]{1,32}. */
int exti__context_name_check(const char *name, struct exti_error *err);

/* The API library's copy: "libpython3.11.so.1.0" in context "k3x9q2m4" becomes
 * "libpython3.11.so.k3x9q2m4", a name that debuggers and profilers still take for a libpython.
 * Later generations end in ".2", ".3"...  `out` has room for EXTI_FILE_NAME_MAX+1 bytes. */
void exti__copy_name_api(const char *source, const char *context, unsigned generation, char *out);

/* Any other copy: the context's name and a hash of the source's path go in before the first dot, as
 * many packages have a "_core.so". */
void exti__copy_name(const char *source, const char *context, char *out);

/* Whether a file of that name can only be a copy that exti__copy_name or exti__copy_name_pe named for
 * `context`. */
bool exti__copy_name_is_of(const char *file, const char *context);

/* The SONAME that goes with an API copy called `copy`: cut to the length of the old one, so that it
 * overwrites it in place and libpython's layout does not change.  Only NEEDED entries are looked up
 * by name, and those hold the whole file name.  Without room for a distinct name, `copy` itself.
 * `out` has room for EXTI_FILE_NAME_MAX+1 bytes. */
void exti__copy_name_api_id(const char *old_id, const char *copy, char *out);

/* The install name of a Mach-O copy: a slash and EXTI_INSTALL_LEAST letters and digits, made of the
 * context's and the copy's name; more of them, up to ten, while they fit `room` bytes.  dyld takes a
 * library that is loaded already for any that asks for its install name, whether or not there is such a
 * file (Loader.cpp, matchesPath), and so short a name fits the room that every linker leaves.  `out`
 * has room for EXTI_FILE_NAME_MAX+1 bytes. */
#define EXTI_INSTALL_LEAST 6
void exti__copy_name_install(const char *context, const char *copy, size_t room, char *out);

/* The API copy of a PE context, which its imports name.  "python311.dll" in context "k3x9q2m4" becomes
 * "pk3x9q2m4.dll": of the same length, so that most imports are overwritten in place, without a dot in
 * its stem, which loaders split forwarders at, and not "python" and digits, which CPython takes for
 * another version's.  Contexts with longer or other names, and later generations, have a hash there.
 * `out` has room for EXTI_FILE_NAME_MAX+1 bytes. */
void exti__copy_name_pe_api(const char *source, const char *context, unsigned generation,
                            char *out);

/* The copy of python3.dll in a PE context, "sk3x9q2m4.dll": likewise, but always that one name. */
void exti__copy_name_pe_stable_abi(const char *context, char *out);

/* The copy of a DLL in a PE context, with the same: "libopenblas64_-43e11ff0749b8cbe0a615c9cf6737e0e.dll"
 * ends in "-", a tag of the context's name and a hash of the source's path, and has as many characters as
 * it had if there is room for that; else these come behind all of its own.  `out` likewise. */
void exti__copy_name_pe(const char *source, const char *context, char *out);

/* Whether imports and forwarders can name the copy so: no dot in its stem, and no name that CPython or
 * the system gives a meaning. */
bool exti__copy_name_pe_fits(const char *name);

#endif
