/* What search_elf.c and search_host.c share. */
#ifndef LOADER_RESOLVE_SEARCH_PRIV_H
#define LOADER_RESOLVE_SEARCH_PRIV_H

#include "loader/resolve/search.h"

struct exti_search_memory; /* search_elf.c */

struct exti_search {
    char *library_path;            /* NULL or not empty */
    char *lib, *platform, *loader; /* each may be NULL */
    char **legacy;         /* subfolders that come behind those of glibc-hwcaps; NULL-ended */
    char **dirs, **hwcaps; /* NULL-ended */
    struct exti_mapping cache_file;
    struct exti_ld_cache cache; /* of no entries where there is none */
    char *program_path;         /* NULL if none is given */
    char *program_rpath;        /* NULL if it has none */
    struct exti_search_memory *memory;
};

/* ---- search_host.c: what the running system answers ---- */

/* The file of the process's own loader, NULL if it has none; exti__free it. */
int exti__host_loader(char **out, struct exti_error *err);
/* The default folders that a loader's file has built in; NULL-ended.  exti__strings_free them. */
int exti__host_dirs(struct exti_span loader, char ***out, struct exti_error *err);
/* The subfolders of glibc-hwcaps that the loader searches on this processor, best first; static. */
const char *const *exti__host_hwcaps(void);
/* Further subfolders that loaders before glibc 2.37 search, best first. */
int exti__host_legacy(const char *platform, char ***out, struct exti_error *err);
/* What $PLATFORM is for the loader on this processor; static, or NULL. */
const char *exti__host_platform(void);
/* What the process's environment, `n` bytes of NUL-ended "NAME=VALUE", has for `name`, or NULL. */
const char *exti__host_setting(const char *environment, size_t n, const char *name);
/* LD_LIBRARY_PATH as the loader read it when the process started, NULL for none; exti__free it. */
int exti__host_library_path(char **out, struct exti_error *err);

int exti__strings_copy(const char *const *from, char ***out, struct exti_error *err);
void exti__strings_free(char **strings); /* NULL ok */

#endif
