#include "loader/store/verify_members.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void exti__member_fault(struct exti_member_set *s, const struct exti_member *at, const char *fmt,
                        ...)
{
    struct exti_error finding = {.code = EXTI_E_CHECK, .offset = EXTI_NO_OFFSET};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(finding.message, sizeof finding.message, fmt, ap);
    va_end(ap);
    exti__error_file(&finding, at->path);
    if (!s->stop)
        s->stop = s->report(s->user, &finding);
}

const struct exti_member **exti__members_sorted(const struct exti_member_set *s,
                                                int (*compare)(const void *, const void *))
{
    const struct exti_member **order = exti__calloc(s->n, sizeof *order);

    for (size_t i = 0; order && i < s->n; i++)
        order[i] = &s->v[i];
    if (order)
        qsort(order, s->n, sizeof *order, compare);
    return order;
}
