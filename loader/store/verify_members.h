/* The copies of a context as one set, for checks that look at several of them. */
#ifndef LOADER_STORE_VERIFY_MEMBERS_H
#define LOADER_STORE_VERIFY_MEMBERS_H

#include "base/error.h"
#include "base/os/fs_id.h"
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

/* Reports a fault of the copy `at`, unless an earlier report said to stop. */
void exti__member_fault(struct exti_member_set *s, const struct exti_member *at, const char *fmt,
                        ...) EXTI_PRINTF(3, 4);

/* Pointers to all members, sorted as by qsort(3) with `compare`; exti__free the array.  NULL
 * when memory is out. */
const struct exti_member **exti__members_sorted(const struct exti_member_set *s,
                                                int (*compare)(const void *, const void *));

#endif
