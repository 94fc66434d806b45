/* Thread-local storage descriptors (A. Oliva, "Thread-Local Storage Descriptors"): a pair of words,
 * a function and its argument.  Code calls the function with the pair's address, by a convention of
 * its own, and gets an offset from the thread pointer.  ELF only. */
#ifndef LOADER_PROCESS_TLS_DESCRIPTOR_H
#define LOADER_PROCESS_TLS_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls the descriptor: the offset from the calling thread's thread pointer at which its variable
 * is.  May allocate that thread's block.  What the words mean is the C library's own, so only this
 * tells where a descriptor leads. */
uintptr_t exti__tls_descriptor_call(const uintptr_t pair[2]);

/* Makes a descriptor that leads to `offset` in the blocks of the module with that number.  It needs
 * no memory but the pair.  False if there is none for this machine, or for such numbers. */
bool exti__tls_descriptor_make(size_t module, uintptr_t offset, uintptr_t pair[2]);

#endif
