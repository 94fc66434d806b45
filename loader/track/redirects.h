/* Tables of functions that calls of copies lead to in place of the system's.  Pure; any thread. */
#ifndef LOADER_TRACK_REDIRECTS_H
#define LOADER_TRACK_REDIRECTS_H

#include <stddef.h>
#include <stdint.h>

#include <extisolate.h>

/* A function as the address that a slot holds. */
#define EXTI_ADDRESS(function) ((void *)(uintptr_t)(function))

/* Where calls of `symbol` lead, or NULL. */
void *exti__redirect_find(const struct exti_redirect *redirects, size_t count, const char *symbol);

#endif
