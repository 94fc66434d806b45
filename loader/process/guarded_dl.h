/* The functions of the system's loader that take its locks, and no thread forks meanwhile: the
 * child would find the lock taken by a thread that it does not have.  For sources that define
 * _GNU_SOURCE.  POSIX. */
#ifndef LOADER_PROCESS_GUARDED_DL_H
#define LOADER_PROCESS_GUARDED_DL_H

#include <dlfcn.h>
#if !defined(__APPLE__)
#include <link.h>
#endif

void *exti__dlopen(const char *file, int mode);
int exti__dlclose(void *handle);
void *exti__dlsym(void *handle, const char *name);
int exti__dladdr(const void *address, Dl_info *info);
#ifdef __GLIBC__
int exti__dladdr1(const void *address, Dl_info *info, void **extra, int flags);
#endif
#if !defined(__APPLE__)
int exti__dl_iterate_phdr(int (*each)(struct dl_phdr_info *info, size_t size, void *user),
                          void *user);
#endif

#endif
