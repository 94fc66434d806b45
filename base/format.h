/* What every file format offers the loader: pure functions over memory.  A format reads no files,
 * has no globals and knows no other format, so each builds, is tested and is fuzzed on every
 * host. */
#ifndef BASE_FORMAT_H
#define BASE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/image.h"
#include "base/plan.h"
#include "base/span.h"
#include "base/unread.h"
#include <extisolate.h>

/* A rewrite request, with the bytes of the files that it refers to. */
struct exti_request {
    const struct exti_rewrite_opts *opts;
    const struct exti_span *bind; /* opts->bind_file, then the libraries that it re-exports */
    size_t bind_count;
    bool lean;       /* the result may be without what its loader can take from the input, */
    bool undebugged; /* and without what only debuggers look at */
};

struct exti_format_ops {
    enum exti_file_format format;

    /* Whether the bytes have the magic number of this format. */
    bool (*probe)(struct exti_span file);

    /* Describes the file in a zeroed image. */
    int (*read)(struct exti_span file, struct exti_image *im, struct exti_error *err);

    /* Plans the edits of `req` in an initialised plan and seals it.  EXTI_E_UNSUPPORTED if they
     * cannot be made safely.  The plan stays empty if the file already is as requested. */
    int (*plan)(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                struct exti_error *err);

    /* Checks `after` by itself and against `before`, independently of `plan`.  With `req`, each
     * requested edit must be there and no other; without it, any difference that a copy may have is
     * accepted.  `plan` may be NULL; otherwise it made `after` from `before`, and the check does
     * not read the bytes outside its patches, since they are known to be equal.  Findings go to
     * `report`; a non-zero return from it ends the check. */
    int (*check)(struct exti_span before, struct exti_span after, const struct exti_request *req,
                 const struct exti_plan *plan, exti_report_fn report, void *user,
                 struct exti_error *err);

    /* Tells the parts of a file that the functions above do not look at, and so may be zeros; NULL
     * if they look at all of it.  A check without `plan` compares those parts, too. */
    const struct exti_unread_ops *unread;
};

#endif
