/* The copies of a context, as the formats' checks of them see them. */
#ifndef LOADER_STORE_VERIFY_PRIV_H
#define LOADER_STORE_VERIFY_PRIV_H

#include "base/error.h"
#include "base/os/fs.h"
#include "loader/image/exports.h"
#include "loader/store/manifest.h"

struct exti_member {
    const struct exti_entry *entry;
    const char *path;
    struct exti_file_id id;      /* size 0: no such file */
    struct exti_image *im;       /* owned; NULL: ELF, or it cannot be read */
    struct exti_exports exports; /* of PE files */
};

struct exti_member_set {
    const struct exti_manifest *m;
    struct exti_member *v; /* the API copy first */
    size_t n;
    exti_report_fn report;
    void *user;
    int stop; /* what the report answered */
};

/* Tells of a fault of the copy `at`. */
void exti__member_fault(struct exti_member_set *s, const struct exti_member *at, const char *fmt,
                        ...) EXTI_PRINTF(3, 4);

/* Pointers to all, in the order of qsort's `compare`; exti__free them.  NULL: no memory. */
const struct exti_member **exti__members_sorted(const struct exti_member_set *s,
                                                int (*compare)(const void *, const void *));

/* That the system tells the copies' names apart; that nothing they import, now or late, or forward to is
 * an original that the context has a copy of, or a library that is not there; and that each symbol is in
 * the copy that it is imported from. */
int exti__verify_pe(struct exti_member_set *s, struct exti_error *err);

/* That each library the copies need is one of them, the system's, or one that the manifest says is shared,
 * and that no copy can be taken for its original. */
int exti__verify_macho(struct exti_member_set *s, struct exti_error *err);

#endif
