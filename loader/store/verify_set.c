#include "loader/store/verify_set.h"

#include "base/mem.h"
#include "base/os/fs_id.h"
#include "loader/store/verify_macho.h"
#include "loader/store/verify_members.h"
#include "loader/store/verify_pe.h"

static int file_order(const void *a, const void *b)
{
    const struct exti_member *const *x = a, *const *y = b;
    const struct exti_file_id *i = &(*x)->id, *j = &(*y)->id;

    if (i->device != j->device)
        return i->device < j->device ? -1 : 1;
    return (i->inode > j->inode) - (i->inode < j->inode);
}

/* Hard links defeat isolation: the system loads a file with two names once. */
static int check_files(struct exti_member_set *s, struct exti_error *err)
{
    const struct exti_member **order = exti__members_sorted(s, file_order);

    if (!order)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        const struct exti_member *at = order[i];
        struct exti_file_id source;

        if (!at->id.size)
            continue;
        if (i && order[i - 1]->id.size && file_order(&order[i - 1], &order[i]) == 0)
            exti__member_fault(s, at,
                               "is the same file as %s, so that the system would load it only once",
                               order[i - 1]->entry->copy);
        if (!exti__fs_id(at->entry->source, &source, NULL) && source.device == at->id.device &&
            source.inode == at->id.inode)
            exti__member_fault(s, at, "is the same file as its original, %s", at->entry->source);
    }
    exti__free(order);
    return 0;
}

static int open_member(struct exti_member *v, bool read, struct exti_error *err)
{
    if (exti__fs_id(v->path, &v->id, NULL))
        v->id = (struct exti_file_id){0};
    if (read && v->id.size && exti_inspect(v->path, &v->im, NULL) == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    return 0;
}

int exti__verify_set(const struct exti_manifest *m, char *const *copies, exti_report_fn report,
                     void *user, struct exti_error *err)
{
    const bool pe = m->target.format == EXTI_FORMAT_PE;
    const bool macho = m->target.format == EXTI_FORMAT_MACHO;
    struct exti_member_set s = {.m = m, .n = m->count + 1, .report = report, .user = user};
    int rc = 0;

    s.v = exti__calloc(s.n, sizeof *s.v);
    if (!s.v)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < s.n && !rc; i++) {
        s.v[i].entry = i ? &m->entries[i - 1] : &m->api;
        s.v[i].path = copies[i];
        rc = open_member(&s.v[i], pe || macho, err);
    }
    if (!rc)
        rc = check_files(&s, err);
    if (!rc && pe)
        rc = exti__verify_pe(&s, err);
    if (!rc && macho)
        rc = exti__verify_macho(&s, err);
    for (size_t i = 0; i < s.n; i++) {
        exti__exports_free(&s.v[i].exports);
        exti_image_free(s.v[i].im);
    }
    exti__free(s.v);
    return rc;
}
