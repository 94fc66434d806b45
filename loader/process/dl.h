/* The system's loader, as little of it as the library needs.  Error texts are taken at once, on the
 * thread that caused them.  Any thread. */
#ifndef LOADER_PROCESS_DL_H
#define LOADER_PROCESS_DL_H

#include <stdbool.h>

#include <extisolate.h>

/* Opens with local visibility and binds every reference at once. */
int exti__dl_open(const char *path, void **handle, struct exti_error *err);
int exti__dl_close(void *handle, struct exti_error *err);
bool exti__dl_is_open(const char *path);

/* One that is loaded already, by name or path, as another reference to it: for exti__dl_close; or NULL. */
void *exti__dl_find(const char *name);

/* Opens the library `file` as the loader would for one whose search path is `path` (NULL: none) and
 * whose folder is `origin`: a name without slash is looked for along it, then where the system looks.
 * `mode` as for dlopen; NULL as from dlopen.  POSIX only. */
void *exti__dl_open_for(const char *path, const char *origin, const char *file, int mode);

/* The same with local visibility, bound at once; a failure leaves no dlerror behind. */
void *exti__dl_open_shared(const char *path, const char *origin, const char *file);

/* NULL when the symbol is not there (a symbol whose value is NULL counts as such). */
void *exti__dl_symbol(void *handle, const char *name);

/* What a reference from a newly loaded library would find before anything of its own. */
void *exti__dl_global(const char *name);

/* ---- bundle.c: libraries that go together ---- */

struct exti_unload_batch {
    void *handle;
    int fd;
};

/* Keeps loaded libraries until it is closed, and then lets go of all of them at once, so that no finaliser
 * runs after another library's code is gone: Qt deletes the objects of its plug-ins.  False where
 * the system has nothing for it, or no memory: they can but be closed one by one. */
bool exti__unload_batch_open(struct exti_unload_batch *b, const char *const *needed, size_t count);
void exti__unload_batch_close(struct exti_unload_batch *b);

#endif
