/* Where the system's loader finds a library that a file needs.  This room answers from files alone:
 * nothing is loaded.  It reads them through loader/image/ and base/os/; loader/store/ asks it which
 * files a context is to have copies of.
 *
 * This header is the seam between the closure and the rules of each format's loader: search_elf.h,
 * search_macho.h, search_pe.h. */
#ifndef LOADER_RESOLVE_SEARCH_H
#define LOADER_RESOLVE_SEARCH_H

#include "base/format.h"
#include "base/os/fs_id.h"

/* The machine of an ELF file, from its header: gABI chapter 4. */
struct exti_elf_kind {
    uint8_t class, data;
    uint16_t machine;
};

/* A file that needs libraries. */
struct exti_requester {
    const char *path; /* as the loader knows it: $ORIGIN is its folder, links not followed */
    const char *rpath, *runpath; /* ELF; NULL: none */
    uint32_t flags;              /* EXTI_IMAGE_* */
    struct exti_elf_kind kind;   /* ELF */
    /* The file for which this one was first loaded, whose search path counts too; NULL: dlopen. */
    const struct exti_requester *loader;
    const char *real;         /* Mach-O: `path`, links followed */
    const char *const *paths; /* Mach-O: its LC_RPATHs */
    size_t path_count;
    const char *machines; /* Mach-O, PE: a library must have one of them */
    const char *api;      /* PE: the API library; NULL: none */
};

struct exti_search; /* what the look-ups of a format depend on; any thread once made */

/* The rules of one format's loader. */
struct exti_search_ops {
    enum exti_file_format format;

    /* Gathers what look-ups of the running process depend on.  NULL: they depend on nothing, and
     * `s` below is NULL. */
    int (*open_running)(struct exti_search **out, struct exti_error *err);
    void (*close)(struct exti_search *s); /* NULL ok */

    /* Describes, as text for exti__free, what the answers depend on in the system.  NULL:
     * nothing. */
    int (*key)(char **out, struct exti_error *err);

    /* Reads a file's machine.  NULL where `machines` tells it. */
    int (*kind)(struct exti_span file, struct exti_elf_kind *out, struct exti_error *err);

    /* Whether the loader takes two names for the same library. */
    bool (*same_name)(const char *a, const char *b);

    /* Whether `name`, a needed library's, is a name of the API library: the file `file`, whose own
     * name is `id`, or NULL. */
    bool (*is_api)(const char *name, const char *file, const char *id);

    /* Whether a library of that name is part of the system, with a file or without: contexts share
     * it.  NULL: no name says so. */
    bool (*is_system)(const char *name);

    /* The name by which the loader looks among the loaded libraries before it searches folders;
     * exti__free it.  *out NULL: it does not look there. */
    int (*loaded_name)(const struct exti_search *s, const char *path, const char *name, char **out,
                       struct exti_error *err);
    bool remembers; /* it also knows a library by each name under which it was found before */
    bool by_file;   /* it knows a library by its file's name, not by its own */

    /* The file that `from` gets for `name`, for exti__free; *out NULL if there is none.  Files for
     * other machines are passed over.  A file of which is_system holds need not exist.  An error of
     * which exti__is_unseen holds leaves open whether there is one. */
    int (*find)(const struct exti_search *s, const struct exti_requester *from, const char *name,
                char **out, struct exti_error *err);

    /* Whether a copy of `from` in any folder, with its search path or a longer one, finds `file` by
     * `name`, in the original's or the copy's spelling. */
    int (*by_name)(const struct exti_search *s, const struct exti_requester *from, const char *name,
                   const struct exti_file_id *file, bool *out, struct exti_error *err);
};

/* NULL: the needs of such files cannot be resolved on this system. */
const struct exti_search_ops *exti__search_ops(enum exti_file_format format);

#endif
