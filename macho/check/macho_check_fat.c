/* Universal files: the table, the slices' places, and the slices that are copied unchanged. */
#include "macho/check/macho_check_fat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "macho/check/macho_check_report.h"
#include "macho/read/macho_arch.h"
#include "macho/read/macho_fat.h"

/* Bytes outside the slices must be zero.  In particular, dyld would take an arm64 entry after
 * the table for an uncounted slice. */
static void check_gaps(struct macho_check *c, struct exti_span file, const struct macho_fat *fat)
{
    uint64_t at = fat->at_end;

    for (;;) {
        const struct macho_slice *next = NULL;
        uint64_t end;

        for (size_t i = 0; i < fat->count; i++)
            if (fat->slices[i].offset >= at && (!next || fat->slices[i].offset < next->offset))
                next = &fat->slices[i];
        end = next ? next->offset : file.n;
        while (at < end && !file.p[at])
            at++;
        if (at < end) {
            exti__macho_finding(c, at, "universal file: byte 0x%02x between the slices, not 0",
                                file.p[at]);
            return;
        }
        if (!next)
            return;
        at = next->offset + next->size;
    }
}

static bool same_slices(struct macho_check *c, const struct macho_fat *b, const struct macho_fat *a)
{
    if (a->count != b->count || a->hidden != b->hidden || a->wide != b->wide ||
        !a->at_end != !b->at_end) {
        exti__macho_finding(c, 0, "universal file: %zu slices%s, not %zu%s", a->count,
                            a->hidden ? ", one of them uncounted" : "", b->count,
                            b->hidden ? ", one of them uncounted" : "");
        return false;
    }
    for (size_t i = 0; i < a->count; i++)
        if (a->slices[i].cputype != b->slices[i].cputype ||
            a->slices[i].cpusubtype != b->slices[i].cpusubtype) {
            exti__macho_finding(c, a->slices[i].offset,
                                "universal file: slice %zu is for %s, not %s", i,
                                exti__macho_arch(a->slices[i].cputype, a->slices[i].cpusubtype),
                                exti__macho_arch(b->slices[i].cputype, b->slices[i].cpusubtype));
            return false;
        }
    return true;
}

static void check_carried(struct macho_check *c, const struct macho_slice *was,
                          const struct macho_slice *now)
{
    if (now->size != was->size || (was->size && memcmp(now->s.p, was->s.p, was->s.n) != 0))
        exti__macho_finding(c, now->offset,
                            "the slice for %s is not rewritten, but differs from the original's",
                            exti__macho_arch(now->cputype, now->cpusubtype));
}

/* Whether the library to bind to has a slice for this architecture.  If not, no process that
 * loads the slice could load that library, so the slice is copied unchanged. */
static int is_provided(const struct macho_check *c, const struct macho_slice *slice, bool *out,
                       struct exti_error *err)
{
    struct macho_fat fat;
    int rc;

    *out = true;
    if (!c->bind_count)
        return 0;
    rc = exti__macho_fat_open(c->bind[0], &fat, err);
    if (rc)
        return rc;
    *out = exti__macho_slice_for(&fat, slice->cputype, slice->cpusubtype) != NULL;
    exti__macho_fat_close(&fat);
    return 0;
}

static int check_slices(struct macho_check *c, const struct macho_fat *b, const struct macho_fat *a,
                        int (*slice)(struct macho_check *c, struct exti_span before,
                                     struct exti_span after, struct exti_error *err),
                        struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && !c->judge.stop && i < a->count; i++) {
        const struct macho_slice *was = &b->slices[i], *now = &a->slices[i];
        bool provided = true;

        if (a->at_end)
            rc = is_provided(c, was, &provided, err);
        if (!exti__macho_slice_handled(was) || !provided) {
            check_carried(c, was, now);
            continue;
        }
        if (a->at_end)
            snprintf(c->judge.label, sizeof c->judge.label,
                     "%s: ", exti__macho_arch(now->cputype, now->cpusubtype));
        if (!rc)
            rc = slice(c, was->s, now->s, err);
        c->judge.label[0] = 0;
    }
    return rc;
}

int exti__macho_check_fat(struct exti_span before, struct exti_span after, struct macho_check *c,
                          int (*slice)(struct macho_check *c, struct exti_span before,
                                       struct exti_span after, struct exti_error *err),
                          struct exti_error *err)
{
    struct exti_error why = {.code = EXTI_OK};
    struct macho_fat b, a;
    int rc = exti__macho_fat_open(before, &b, err);

    if (rc)
        return rc;
    rc = exti__macho_fat_open(after, &a, &why);
    if (rc) {
        exti__macho_fat_close(&b);
        if (rc == EXTI_E_NOMEM)
            return exti__fail_nomem(err);
        exti__macho_finding(c, why.offset, "not a sound Mach-O file: %s", why.message);
        return 0;
    }
    /* A plan for a universal file replaces all of it and says nothing about slices. */
    if (b.at_end)
        c->plan = NULL;
    if (same_slices(c, &b, &a)) {
        rc = check_slices(c, &b, &a, slice, err);
        if (!rc && a.at_end)
            check_gaps(c, after, &a);
    }
    exti__macho_fat_close(&b);
    exti__macho_fat_close(&a);
    return rc;
}
