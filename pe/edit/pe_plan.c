/* Plans all edits of a copy in one transaction. */
#include "pe/edit/pe_plan.h"

#include "base/error.h"
#include "base/mem.h"
#include "pe/edit/pe_bind.h"
#include "pe/edit/pe_finish.h"
#include "pe/edit/pe_names.h"
#include "pe/edit/pe_place.h"
#include "pe/edit/pe_slot.h"
#include "pe/edit/pe_strip.h"

/* Bound of what a plan may add: new names, and the export directory with all its forwarders. */
#define GROWTH 4
#define SLACK ((size_t)1 << 20)

static void free_edit(struct pe_edit *e)
{
    exti__free(e->renames);
    exti__free(e->seen);
    exti__free(e->forwarders);
    exti__free(e->slots);
    exti__free(e->fresh);
    exti__buf_free(&e->texts);
    exti__buf_free(&e->moved);
    exti__buf_free(&e->head);
    exti__buf_free(&e->added);
}

static int init_edit(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_file *f = e->f;
    const size_t max = f->file.n * GROWTH + SLACK;
    struct exti_span head;
    int rc = exti__span_sub(f->file, 0, f->size_of_headers, "headers", &head, err);

    e->texts = exti__buf(max);
    e->moved = exti__buf(max);
    e->added = exti__buf(max);
    e->head = exti__buf(max);
    return rc ? rc : exti__buf_append(&e->head, head.p, head.n, err);
}

static int plan_edits(struct pe_edit *e, struct exti_error *err)
{
    int rc = init_edit(e, err);

    if (!rc)
        rc = exti__pe_edit_names(e, err);
    if (rc || !e->rename_count)
        return rc;
    rc = exti__pe_refuse(e, err);
    if (!rc)
        rc = exti__pe_check_bind(e, err);
    if (!rc)
        rc = exti__pe_classify_slots(e, err);
    if (!rc)
        rc = exti__pe_strip(e, err);
    if (!rc)
        rc = exti__pe_place(e, err);
    return rc ? rc : exti__pe_finish(e, err);
}

int exti__pe_plan(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                  struct exti_error *err)
{
    struct pe_file f;
    struct pe_edit e = {.f = &f, .req = req, .plan = plan};
    int rc = exti__pe_open(file, &f, err);

    if (rc)
        return rc;
    rc = plan_edits(&e, err);
    if (!rc && !e.rename_count)
        rc = exti__plan_seal(plan, file, err);
    free_edit(&e);
    exti__pe_close(&f);
    return rc;
}
