/* Closing libraries together.  glibc only. */
#ifndef LOADER_PROCESS_UNLOAD_BATCH_H
#define LOADER_PROCESS_UNLOAD_BATCH_H

#include <stdbool.h>
#include <stddef.h>

struct exti_unload_batch {
    void *handle;
    int fd;
};

/* Takes a reference to each of the loaded libraries `needed`, paths; exti__unload_batch_close drops
 * all of them in one call, so that no finaliser runs after another library's code is gone: Qt
 * deletes its plug-ins' objects.  False where the system has no such call, or without memory or
 * descriptors: then the libraries can only be closed one by one. */
bool exti__unload_batch_open(struct exti_unload_batch *b, const char *const *needed, size_t count);

/* Calls the function, which closes the libraries' handles, from a finaliser of the batch, while the
 * loader closes that: it looks for what nobody uses any more when the outer call ends, and not at
 * each (dl_close_state in glibc's elf/dl-close.c). */
void exti__unload_batch_close(struct exti_unload_batch *b, void (*close_all)(void *user),
                              void *user);

#endif
