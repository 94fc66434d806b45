/* Where glibc's loader finds a library for an object that dlopen opens: ld.so(8). */
#ifndef LOADER_RESOLVE_SEARCH_ELF_H
#define LOADER_RESOLVE_SEARCH_ELF_H

#include "base/os/fs_id.h"
#include "loader/resolve/search.h"

/* The rules for the closure.  NULL on systems without ld.so, where the needs of ELF files cannot be
 * resolved. */
const struct exti_search_ops *exti__search_elf(void);

/* What all look-ups of a process have in common.  Zero-filled, everything is the running
 * system's. */
struct exti_elf_search_opts {
    const char *library_path;   /* LD_LIBRARY_PATH when the process started; NULL: none */
    const char *cache_file;     /* NULL: /etc/ld.so.cache; "": none */
    const char *const *dirs;    /* default folders, NULL-ended; NULL: the loader's own */
    const char *const *hwcaps;  /* subfolders of glibc-hwcaps, best first; NULL: the processor's */
    const char *lib, *platform; /* values of $LIB and $PLATFORM */
    const char *loader;         /* the loader's own file, which is never searched for */
    const char *program;        /* the main program, whose DT_RPATH counts for all; NULL: none */
};

int exti__elf_search_open(const struct exti_elf_search_opts *opts, struct exti_search **out,
                          struct exti_error *err);
/* As the loader of the running process searches: with the running program, if it can be read, and
 * with LD_LIBRARY_PATH as it was when the process started, since the loader ignores later
 * changes. */
int exti__elf_search_open_running(struct exti_search **out, struct exti_error *err);
void exti__elf_search_close(struct exti_search *s); /* NULL ok */

/* The default folders, NULL-ended. */
const char *const *exti__elf_search_dirs(const struct exti_search *s);

/* The file that `from` gets for the needed library `name`, for exti__free; *out NULL if there is
 * none.  Files for another machine are passed over.  A file that is not ELF ends the search with
 * EXTI_E_FORMAT, as it does in ld.so. */
int exti__elf_search_find(const struct exti_search *s, const struct exti_requester *from,
                          const char *name, char **out, struct exti_error *err);

/* Whether a copy of `from` in another folder, with its search path or a longer one, finds `file` by
 * `name` as it stands: in the cache or a default folder, with no other library of that name in a
 * folder searched before. */
int exti__elf_search_by_name(const struct exti_search *s, const struct exti_requester *from,
                             const char *name, const struct exti_file_id *file, bool *out,
                             struct exti_error *err);

#endif
