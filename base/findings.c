#include "base/findings.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void exti__findings_report(struct exti_findings *j, uint64_t offset, const char *fmt, va_list ap)
{
    struct exti_error finding = {.code = EXTI_E_CHECK, .offset = offset};
    int n = snprintf(finding.message, sizeof finding.message, "%s", j->label);

    if (j->stop)
        return;
    vsnprintf(finding.message + n, sizeof finding.message - (size_t)n, fmt, ap);
    j->stop = j->report(j->user, &finding) != 0;
}

static void add_excuse(struct exti_findings *j, const char *fmt, const char *subject)
{
    struct exti_excuse *p =
        exti__array_room(j->excuses, j->excuse_count, &j->excuse_cap, sizeof *p);

    if (!p) {
        j->nomem = true;
        return;
    }
    j->excuses = p;
    p += j->excuse_count++;
    p->fmt = fmt;
    snprintf(p->subject, sizeof p->subject, "%s", subject);
}

/* Uses up an excuse, so that a copy cannot break a rule more often than its original. */
static bool take_excuse(struct exti_findings *j, const char *fmt, const char *subject)
{
    struct exti_excuse key;

    snprintf(key.subject, sizeof key.subject, "%s", subject);
    for (size_t i = 0; i < j->excuse_count; i++)
        if (j->excuses[i].fmt == fmt && strcmp(j->excuses[i].subject, key.subject) == 0) {
            j->excuses[i] = j->excuses[--j->excuse_count];
            return true;
        }
    return false;
}

void exti__findings_broken(struct exti_findings *j, uint64_t offset, const char *subject,
                           const char *fmt, va_list ap)
{
    if (j->quiet)
        return;
    if (j->collecting)
        add_excuse(j, fmt, subject);
    else if (!take_excuse(j, fmt, subject))
        exti__findings_report(j, offset, fmt, ap);
}

void exti__findings_free(struct exti_findings *j)
{
    exti__free(j->excuses);
    j->excuses = NULL;
    j->excuse_count = j->excuse_cap = 0;
}
