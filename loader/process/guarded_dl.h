/* The functions of the system's loader that take its locks, and no thread forks meanwhile: the
 * child would find the lock taken by a thread that it does not have.  dladdr is not among them:
 * signal handlers call it, which must not wait for a fork, and its lock is made anew in the child
 * (glibc posix/fork.c, musl src/process/fork.c).  For sources that define _GNU_SOURCE.  POSIX. */
#ifndef LOADER_PROCESS_GUARDED_DL_H
#define LOADER_PROCESS_GUARDED_DL_H

#include <dlfcn.h>
#if !defined(__APPLE__)
#include <link.h>
#endif

void *exti__dlopen(const char *file, int mode);
int exti__dlclose(void *handle);
void *exti__dlsym(void *handle, const char *name);
#if defined(__GLIBC__)
void *exti__dlvsym(void *handle, const char *name, const char *version);
#endif
#if !defined(__APPLE__)
int exti__dl_iterate_phdr(int (*each)(struct dl_phdr_info *info, size_t size, void *user),
                          void *user);
#endif

#endif
