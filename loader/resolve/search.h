/* Where the system's loader finds a library that a file needs.  Each format's loader has rules of
 * its own.  Files are looked at, nothing is loaded. */
#ifndef LOADER_RESOLVE_SEARCH_H
#define LOADER_RESOLVE_SEARCH_H

#include "base/format.h"
#include "base/os/fs.h"
#include "loader/resolve/ld_cache.h"

/* What code an ELF file has: of its header, gABI chapter 4. */
struct exti_elf_kind {
    uint8_t class, data;
    uint16_t machine;
};

/* A file that needs libraries, and the one that it was first loaded for, whose search path counts
 * too. */
struct exti_requester {
    const char *path; /* as the loader knows it: $ORIGIN is its folder, links not followed */
    const char *rpath, *runpath;         /* ELF; NULL: none */
    uint32_t flags;                      /* EXTI_IMAGE_* */
    struct exti_elf_kind kind;           /* ELF */
    const struct exti_requester *loader; /* NULL: dlopen */
    const char *real;                    /* Mach-O: `path` without links */
    const char *const *paths;            /* Mach-O: its LC_RPATHs */
    size_t path_count;
    const char *machines; /* not ELF: those that a library must have one of */
    const char *api;      /* PE: the API library; NULL: none */
};

struct exti_search; /* what a format's look-ups go by; any thread once made */

/* One format's rules. */
struct exti_search_ops {
    enum exti_file_format format;

    /* What look-ups of the running process go by.  NULL: nothing, and `s` below is NULL. */
    int (*open_running)(struct exti_search **out, struct exti_error *err);
    void (*close)(struct exti_search *s); /* NULL ok */

    /* What of the system the answers depend on, as text; exti__free it.  NULL: nothing. */
    int (*key)(char **out, struct exti_error *err);

    /* A file's machine, if that is told by `kind`; else NULL. */
    int (*kind)(struct exti_span file, struct exti_elf_kind *out, struct exti_error *err);

    /* Whether the loader takes two names for one. */
    bool (*same_name)(const char *a, const char *b);

    /* Whether a needed library's name is one of the API library's: the file `file`, whose own name
     * is `id`, or NULL. */
    bool (*is_api)(const char *name, const char *file, const char *id);

    /* Whether a library of that name is part of the system, wherever its file is, if it has one:
     * all share it.  NULL: none is by its name. */
    bool (*is_system)(const char *name);

    /* By what name the loader asks among the libraries that are loaded already, before it looks for
     * files; exti__free it.  *out NULL: it does not. */
    int (*loaded_name)(const struct exti_search *s, const char *path, const char *name, char **out,
                       struct exti_error *err);
    /* Whether it knows them by all names that they have been asked for by. */
    bool remembers;
    bool
        by_file; /* whether it knows them by their files' names alone, whatever they call themselves */

    /* The file that `from` gets for `name`; exti__free *out.  *out is NULL if there is none; it
     * need not exist if is_system holds of it.  Files for other machines are passed over. */
    int (*find)(const struct exti_search *s, const struct exti_requester *from, const char *name,
                char **out, struct exti_error *err);

    /* Whether a copy of `from` in any folder, with its search path or a longer one, finds `file` by
     * `name` as it stands, or as a copy spells it. */
    int (*by_name)(const struct exti_search *s, const struct exti_requester *from, const char *name,
                   const struct exti_file_id *file, bool *out, struct exti_error *err);
};

/* NULL: on this system needs of such files cannot be followed. */
const struct exti_search_ops *exti__search_ops(enum exti_file_format format);
const struct exti_search_ops *exti__search_elf(void);
const struct exti_search_ops *exti__search_macho(void);
const struct exti_search_ops *exti__search_pe(void);

/* ---- ELF: glibc's rules, ld.so(8), for an object that is opened by dlopen ---- */

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

int exti__search_open(const struct exti_search_opts *opts, struct exti_search **out,
                      struct exti_error *err);
/* As the loader of the running process searches: with the program that runs, where it can be told,
 * and with LD_LIBRARY_PATH as it was when the process started; what was set since is nothing to the
 * loader. */
int exti__search_open_running(struct exti_search **out, struct exti_error *err);
void exti__search_close(struct exti_search *s); /* NULL ok */

/* The default folders, NULL-ended. */
const char *const *exti__search_dirs(const struct exti_search *s);

int exti__elf_kind(struct exti_span file, struct exti_elf_kind *out, struct exti_error *err);

/* `text` with $ORIGIN, $LIB and $PLATFORM, each also in braces, replaced; *out is NULL where one of
 * them stands for nothing known.  exti__free it. */
int exti__search_expand(const struct exti_search *s, const char *path, const char *text, char **out,
                        struct exti_error *err);

/* The file that `from` gets for the needed library `name`; exti__free *out.  *out is NULL if there
 * is none.  Files for another machine are passed over; one that is no ELF file at all ends the
 * search, as with ld.so: EXTI_E_FORMAT. */
int exti__search_find(const struct exti_search *s, const struct exti_requester *from,
                      const char *name, char **out, struct exti_error *err);

/* Whether a copy of `from` in another folder, with its search path or a longer one, finds `file` by
 * `name` as it stands: by the cache and the default folders, with no folder before them that has
 * another library of that name. */
int exti__search_by_name(const struct exti_search *s, const struct exti_requester *from,
                         const char *name, const struct exti_file_id *file, bool *out,
                         struct exti_error *err);

#endif
