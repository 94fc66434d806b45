/* What the running system's ld.so has built in or was started with.  Any thread. */
#ifndef LOADER_RESOLVE_SEARCH_HOST_H
#define LOADER_RESOLVE_SEARCH_HOST_H

#include "base/span.h"

/* The file of the process's own loader, for exti__free; NULL in a static program. */
int exti__host_loader(char **out, struct exti_error *err);
/* The default folders built into a loader's file; NULL-ended, for exti__strings_free. */
int exti__host_dirs(struct exti_span loader, char ***out, struct exti_error *err);
/* The subfolders of glibc-hwcaps that the loader searches on this processor, best first; static. */
const char *const *exti__host_hwcaps(void);
/* The subfolders that loaders before glibc 2.37 search besides, best first; for
 * exti__strings_free. */
int exti__host_legacy(const char *platform, char ***out, struct exti_error *err);
/* The loader's value of $PLATFORM on this processor; static, or NULL. */
const char *exti__host_platform(void);
/* The value of `name` in an environment of `n` bytes, NUL-ended "NAME=VALUE" strings; or NULL. */
const char *exti__host_setting(const char *environment, size_t n, const char *name);
/* LD_LIBRARY_PATH as the loader read it when the process started, for exti__free; NULL: none. */
int exti__host_library_path(char **out, struct exti_error *err);

#endif
