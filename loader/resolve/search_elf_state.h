/* What ELF look-ups depend on; for the files that implement search_elf.h. */
#ifndef LOADER_RESOLVE_SEARCH_ELF_STATE_H
#define LOADER_RESOLVE_SEARCH_ELF_STATE_H

#include "base/os/fs_map.h"
#include "loader/resolve/default_memo.h"
#include "loader/resolve/ld_cache.h"
#include "loader/resolve/search.h"

/* All strings and arrays are owned; arrays are NULL-ended. */
struct exti_search {
    char *library_path;            /* NULL or not empty */
    char *lib, *platform, *loader; /* each may be NULL */
    char **dirs;                   /* default folders */
    char **hwcaps;                 /* subfolders of glibc-hwcaps, searched first in each folder */
    char **legacy;                 /* subfolders searched after those */
    struct exti_mapping cache_file;
    struct exti_ld_cache cache; /* without entries if there is none */
    char *program_path;         /* NULL if none is given */
    char *program_rpath;        /* NULL if it has none */
    struct exti_default_memo *memo;
};

#endif
