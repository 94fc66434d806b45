/* Findings of the formats' self-checks: reporting them, and excusing in a copy the broken rules
 * that its original breaks too.  One thread. */
#ifndef BASE_FINDINGS_H
#define BASE_FINDINGS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A rule that the original breaks, identified by the format of its message and its subject. */
struct exti_excuse {
    const char *fmt;
    char subject[64];
};

struct exti_findings {
    exti_report_fn report;
    void *user;
    bool stop;                   /* `report` returned non-zero */
    char label[16];              /* precedes each message: the slice of a fat file, "arm64: " */
    bool strict;                 /* the original excuses nothing */
    bool collecting;             /* broken rules become excuses, not findings */
    bool quiet;                  /* broken rules are ignored: they were reported before */
    bool nomem;                  /* an excuse was lost for lack of memory */
    struct exti_excuse *excuses; /* owned */
    size_t excuse_count, excuse_cap;
};

void exti__findings_report(struct exti_findings *j, uint64_t offset, const char *fmt, va_list ap)
    EXTI_PRINTF(3, 0);
/* Reports a broken rule unless the original excuses it.  `subject` must not contain numbers that a
 * rewrite changes.  `fmt` must be the same literal for the original and the copy. */
void exti__findings_broken(struct exti_findings *j, uint64_t offset, const char *subject,
                           const char *fmt, va_list ap) EXTI_PRINTF(4, 0);
void exti__findings_free(struct exti_findings *j); /* frees the excuses */

#endif
