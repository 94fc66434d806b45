/* What every file format offers the loader: pure functions over memory.  No format reads files, has
 * globals or knows another one, so each builds, tests and fuzzes on every host. */
#ifndef BASE_FORMAT_H
#define BASE_FORMAT_H

#include <stdbool.h>

#include "base/plan.h"
#include "base/span.h"
#include <extisolate.h>

enum exti_file_format { EXTI_FORMAT_NONE, EXTI_FORMAT_ELF, EXTI_FORMAT_MACHO, EXTI_FORMAT_PE };

/* "ELF", "Mach-O" or "PE", as in exti_image_info; NULL for EXTI_FORMAT_NONE. */
const char *exti__format_name(enum exti_file_format format);
/* The format of that name, or EXTI_FORMAT_NONE. */
enum exti_file_format exti__format_named(const char *name);

/* One dynamic symbol.  Strings point into the file's bytes. */
struct exti_image_symbol {
    const char *name, *version;
    uint32_t flags;  /* EXTI_SYM_* */
    int32_t library; /* as in the public header */
    const char *forward;
    uint32_t ordinal;
};

struct exti_image_needed {
    const char *name;
    uint32_t flags; /* EXTI_NEED_* */
};

/* Found by loader/image/hazards.c; strings are the image's. */
struct exti_image_hazards {
    uint64_t calls[2];      /* by the place in its table of functions */
    size_t unique;          /* symbols, weak definitions of Mach-O */
    size_t api;             /* of Python's, exported by a program */
    const char *openmp;     /* a symbol or library, or NULL */
    const char *blas;       /* likewise */
    const char *unique_one; /* the first of them */
};

/* The format-neutral description of one file.  Strings point into the file's bytes or are static,
 * but for build_id and those in `strings`.  The bytes must outlive it. */
struct exti_image {
    /* Of the whole file; set by exti_inspect, as the formats do not need it. */
    struct exti_span bytes;
    enum exti_file_format format;
    struct exti_image_info info;       /* rpath etc. as in the public header */
    char *build_id;                    /* owned; info.build_id */
    struct exti_image_needed *needed;  /* owned array */
    struct exti_image_symbol *symbols; /* owned array */
    char *strings;                     /* owned: names of which the file has only the parts */
    const char **paths;                /* owned array; Mach-O's search path, entry by entry */
    size_t path_count;
    struct exti_image *slices;         /* owned array of info.slice_count */
    size_t finalisers;                 /* ELF: the entries of DT_FINI_ARRAY */
    struct exti_image_hazards hazards; /* set by exti_inspect */
};

/* What a rewrite is asked to do, and the bytes of the files that it is told to look into. */
struct exti_request {
    const struct exti_rewrite_opts *opts;
    const struct exti_span *bind; /* opts->bind_file, then the libraries that it re-exports */
    size_t bind_count;
};

/* Frees what the image owns and empties it. */
void exti__image_clear(struct exti_image *im);
/* The i-th of the parts that a file consists of: a universal file's slices, else itself; or NULL. */
const struct exti_image *exti__image_part(const struct exti_image *im, size_t i);
/* Append; the arrays grow by doubling. */
int exti__image_add_needed(struct exti_image *im, const char *name, uint32_t flags,
                           struct exti_error *err);
int exti__image_add_path(struct exti_image *im, const char *path, struct exti_error *err);
int exti__image_add_symbol(struct exti_image *im, struct exti_image_symbol s,
                           struct exti_error *err);

struct exti_format_ops {
    enum exti_file_format format;

    /* Whether the bytes claim to be of this format (magic only). */
    bool (*probe)(struct exti_span file);

    /* Describes the file into a zeroed image. */
    int (*read)(struct exti_span file, struct exti_image *im, struct exti_error *err);

    /* Plans the edits of `req` into an initialised plan and seals it.  EXTI_E_UNSUPPORTED where they
     * cannot be made safely.  A file that already is as asked gives an empty plan. */
    int (*plan)(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                struct exti_error *err);

    /* Checks `after` on its own and against `before`, independently of `plan`.  With `req`, each
     * edit must be there and no other; without, only differences that a copy may have are let
     * pass.  `plan`, if given, made `after` from `before`: bytes that it does not name are then
     * known to be equal and not read.  Findings go to `report`; a non-zero answer ends the check. */
    int (*check)(struct exti_span before, struct exti_span after, const struct exti_request *req,
                 const struct exti_plan *plan, exti_report_fn report, void *user,
                 struct exti_error *err);
};

#endif
