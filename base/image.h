/* The description of one file, in terms that every format shares. */
#ifndef BASE_IMAGE_H
#define BASE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/shareable.h"
#include "base/span.h"
#include <extisolate.h>

enum exti_file_format { EXTI_FORMAT_NONE, EXTI_FORMAT_ELF, EXTI_FORMAT_MACHO, EXTI_FORMAT_PE };

/* "ELF", "Mach-O" or "PE", as in struct exti_image_info; NULL for EXTI_FORMAT_NONE. */
const char *exti__format_name(enum exti_file_format format);

/* The format with that name, or EXTI_FORMAT_NONE. */
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

/* What loader/image/hazards.c found in the file.  The image owns the strings. */
struct exti_image_hazards {
    uint64_t calls[2];      /* one bit per entry of its table of functions */
    size_t unique;          /* unique symbols; in Mach-O weak definitions */
    size_t api;             /* symbols of the Python API that a program exports */
    const char *openmp;     /* a symbol or library, or NULL */
    const char *blas;       /* likewise */
    const char *unique_one; /* the first unique symbol */
};

/* Describes one file.  Strings point into the file's bytes or are static, except build_id and those
 * in `strings`.  The bytes must outlive the image. */
struct exti_image {
    struct exti_span bytes; /* the whole file; set by exti_inspect, because no format needs it */
    struct exti_inspected *lacks; /* NULL if `bytes` has all; exti__inspected_whole */
    enum exti_file_format format;
    struct exti_image_info info;      /* rpath etc. as in the public header */
    char *build_id;                   /* owned; info.build_id */
    struct exti_image_needed *needed; /* owned array of info.needed_count */
    size_t needed_cap;
    struct exti_image_symbol *symbols; /* owned array of info.symbol_count */
    size_t symbol_cap;
    char *strings;      /* owned: names that the file holds only in parts */
    const char **paths; /* owned array; the entries of Mach-O's search path */
    size_t path_count, path_cap;
    struct exti_image *slices;         /* owned array of info.slice_count */
    size_t finalisers;                 /* ELF: entries of DT_FINI_ARRAY */
    const char *static_tls;            /* ELF: what says that it has static TLS, or NULL */
    uint32_t gnu_buckets;              /* ELF: of DT_GNU_HASH; 0: it has none */
    struct exti_shareable shareable;   /* ELF; elsewhere there is nothing */
    struct exti_image_hazards hazards; /* set by exti_inspect */
};

/* Frees what the image owns and zeroes it. */
void exti__image_clear(struct exti_image *im);

/* Gives part `i` of the file: a slice of a universal file, or the file itself as its only part.
 * NULL past the end. */
const struct exti_image *exti__image_part(const struct exti_image *im, size_t i);

/* Whether it exports a symbol with one of these EXTI_SYM_ flags. */
bool exti__image_exports(const struct exti_image *im, uint32_t flags);

/* Append to the arrays. */
int exti__image_add_needed(struct exti_image *im, const char *name, uint32_t flags,
                           struct exti_error *err);
int exti__image_add_path(struct exti_image *im, const char *path, struct exti_error *err);
int exti__image_add_symbol(struct exti_image *im, struct exti_image_symbol s,
                           struct exti_error *err);

#endif
