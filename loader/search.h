/* Where the system's loader finds a library that a file needs: glibc's rules, ld.so(8), for an object
 * that is opened by dlopen.  Files are looked at, nothing is loaded. */
#ifndef LOADER_SEARCH_H
#define LOADER_SEARCH_H

#include "loader/base/format.h"
#include "loader/base/fs.h"
#include "loader/ld_cache.h"

/* What is the same for all look-ups of a process.  Zero-filled, all is the running system's. */
struct exti_search_opts {
    const char *library_path;   /* LD_LIBRARY_PATH as the process was started with; NULL: none */
    const char *cache_file;     /* NULL: /etc/ld.so.cache; "": none */
    const char *const *dirs;    /* the default folders, NULL-ended; NULL: those the loader has */
    const char *const *hwcaps;  /* subfolders of glibc-hwcaps, best first; NULL: the processor's */
    const char *lib, *platform; /* $LIB, $PLATFORM */
    const char *loader;         /* the loader's own file, which is never searched for */
    const char *program;        /* the main program; its DT_RPATH counts for all; NULL: none */
};

struct exti_search; /* any thread once made */

int exti__search_open(const struct exti_search_opts *opts, struct exti_search **out,
                      struct exti_error *err);
/* As the loader of the running process searches: with the program that runs, where it can be told, and
 * with LD_LIBRARY_PATH as it was when the process started; what was set since is nothing to the loader. */
int exti__search_open_running(struct exti_search **out, struct exti_error *err);
void exti__search_close(struct exti_search *s); /* NULL ok */

/* The default folders, NULL-ended. */
const char *const *exti__search_dirs(const struct exti_search *s);

/* What code an ELF file has: of its header, gABI chapter 4. */
struct exti_elf_kind {
    uint8_t class, data;
    uint16_t machine;
};

int exti__elf_kind(struct exti_span file, struct exti_elf_kind *out, struct exti_error *err);

/* A file that needs libraries, and the one that it was first loaded for, whose DT_RPATH counts too. */
struct exti_requester {
    const char *path; /* as the loader knows it: $ORIGIN is its folder, links not followed */
    const char *rpath, *runpath; /* NULL: none */
    uint32_t flags;              /* EXTI_IMAGE_* */
    struct exti_elf_kind kind;
    const struct exti_requester *loader; /* NULL: dlopen */
};

/* `text` with $ORIGIN, $LIB and $PLATFORM, each also in braces, replaced; *out is NULL where one of them
 * stands for nothing known.  exti__free it. */
int exti__search_expand(const struct exti_search *s, const char *path, const char *text, char **out,
                        struct exti_error *err);

/* The file that `from` gets for the needed library `name`; exti__free *out.  *out is NULL if there is
 * none.  Files for another machine are passed over; one that is no ELF file at all ends the search, as
 * with ld.so: EXTI_E_FORMAT. */
int exti__search_find(const struct exti_search *s, const struct exti_requester *from,
                      const char *name, char **out, struct exti_error *err);

/* Whether a copy of `from` in another folder, with its search path or a longer one, finds `file` by
 * `name` as it stands: by the cache and the default folders, with no folder before them that has another
 * library of that name. */
int exti__search_by_name(const struct exti_search *s, const struct exti_requester *from,
                         const char *name, const struct exti_file_id *file, bool *out,
                         struct exti_error *err);

#endif
