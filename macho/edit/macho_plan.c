/* The plan operation, for thin files and universal ones. */
#include "macho/edit/macho_plan.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_rewrite.h"
#include "macho/edit/macho_universal.h"
#include "macho/read/macho_arch.h"
#include "macho/read/macho_fat.h"

static int plan_thin(struct exti_span file, const struct macho_slice *slice,
                     const struct exti_request *req, struct exti_span *bind, struct exti_plan *plan,
                     struct exti_error *err)
{
    struct macho_rewritten r;
    size_t bind_count;
    int rc =
        exti__macho_bind_slices(req, slice->cputype, slice->cpusubtype, bind, &bind_count, err);

    if (rc)
        return rc;
    if (req->bind_count && !bind_count)
        return exti__fail(err, EXTI_E_UNSUPPORTED, 0, "is for %s, but %s has no code for it",
                          exti__macho_arch(slice->cputype, slice->cpusubtype),
                          req->opts->bind_file);
    rc = exti__macho_rewrite(file, req->opts, bind, bind_count, NULL, &r, err);
    if (rc)
        return rc;
    if (r.changed) {
        rc = exti__plan_patch(plan, 0, r.head.p, r.head.n, "header and load commands", err);
        exti__buf_free(&plan->tail);
        plan->tail = r.tail;
        plan->tail_offset = r.tail_offset;
        r.tail = (struct exti_buf){0};
    }
    exti__macho_rewritten_free(&r);
    return rc;
}

int exti__macho_plan(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                     struct exti_error *err)
{
    struct exti_span *bind = exti__calloc(req->bind_count + 1, sizeof *bind);
    struct macho_fat fat;
    int rc = bind ? exti__macho_fat_open(file, &fat, err) : exti__fail_nomem(err);

    if (rc) {
        exti__free(bind);
        return rc;
    }
    rc = fat.at_end ? exti__macho_plan_universal(file, &fat, req, bind, plan, err)
                    : plan_thin(file, &fat.slices[0], req, bind, plan, err);
    if (!rc)
        rc = exti__plan_seal(plan, file, err);
    exti__macho_fat_close(&fat);
    exti__free(bind);
    return rc;
}
