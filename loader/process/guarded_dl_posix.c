#define _GNU_SOURCE /* dl_iterate_phdr, dlvsym */
#include "loader/process/guarded_dl.h"

#include "loader/process/fork_guard.h"

#define GUARDED(type, call)                                                                        \
    type result;                                                                                   \
                                                                                                   \
    exti__fork_guard_enter();                                                                      \
    result = call;                                                                                 \
    exti__fork_guard_leave();                                                                      \
    return result

void *exti__dlopen(const char *file, int mode)
{
    GUARDED(void *, dlopen(file, mode));
}

int exti__dlclose(void *handle)
{
    GUARDED(int, dlclose(handle));
}

void *exti__dlsym(void *handle, const char *name)
{
    GUARDED(void *, dlsym(handle, name));
}

#if defined(__GLIBC__)
void *exti__dlvsym(void *handle, const char *name, const char *version)
{
    GUARDED(void *, dlvsym(handle, name, version));
}
#endif

#if !defined(__APPLE__)
int exti__dl_iterate_phdr(int (*each)(struct dl_phdr_info *info, size_t size, void *user),
                          void *user)
{
    GUARDED(int, dl_iterate_phdr(each, user));
}
#endif
