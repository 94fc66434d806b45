/* The system's loader, as little of it as the library needs.  Error texts are copied at once, on
 * the thread that caused them.  Any thread. */
#ifndef LOADER_PROCESS_DL_H
#define LOADER_PROCESS_DL_H

#include <stdbool.h>

#include <extisolate.h>

/* The message of exti__dl_open where glibc's block for static TLS is full.  The error's file is the
 * library that found no room, which may be one that the opened file needs. */
#define EXTI_DL_STATIC_TLS_FULL "cannot allocate memory in static TLS block"

/* Opens with local visibility and binds every reference at once. */
int exti__dl_open(const char *path, void **handle, struct exti_error *err);
int exti__dl_close(void *handle, struct exti_error *err);
bool exti__dl_is_open(const char *path);

/* Another reference, for exti__dl_close, to a library that is loaded already, by name or path; or
 * NULL. */
void *exti__dl_find(const char *name);

/* Opens the library `file` as the loader would for a library whose search path is `path` (NULL:
 * none) and whose folder is `origin`: a name without slash is looked for along the path, then where
 * the system looks.  `mode` as for dlopen; NULL as from dlopen.  POSIX only. */
void *exti__dl_open_for(const char *path, const char *origin, const char *file, int mode);

/* Likewise, with local visibility and bound at once; a failure leaves no dlerror behind.  A library
 * of which something would be lost each time that it is unloaded stays in the process for good. */
void *exti__dl_open_shared(const char *path, const char *origin, const char *file);

/* Has this library stay in the process for good, whoever closes it.  POSIX only. */
void exti__stay_loaded(void);

/* NULL if there is no such symbol, or its value is NULL. */
void *exti__dl_symbol(void *handle, const char *name);

/* What a reference of a newly loaded library would find before anything of its own, or NULL. */
void *exti__dl_global(const char *name);

#endif
