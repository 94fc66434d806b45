/* What the formats' self-checks share: how findings are told, and which breaches of a rule the original
 * excuses in its copy.  One thread. */
#ifndef BASE_FINDINGS_H
#define BASE_FINDINGS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A rule that the original breaks: the message's format and what it is about tell one from another. */
struct exti_excuse {
    const char *fmt;
    char subject[64];
};

struct exti_findings {
    exti_report_fn report;
    void *user;
    bool stop;                   /* the report asked for it */
    char label[16];              /* before each message: the slice of a fat file, "arm64: " */
    bool strict;                 /* the original excuses nothing */
    bool collecting;             /* breaches are no findings, but excuses */
    bool quiet;                  /* nor either: they have been told already */
    bool nomem;                  /* an excuse was lost */
    struct exti_excuse *excuses; /* owned */
    size_t excuse_count, excuse_cap;
};

void exti__findings_report(struct exti_findings *j, uint64_t offset, const char *fmt, va_list ap)
    EXTI_PRINTF(3, 0);
/* A breach of a rule, about `subject`, which must not hold numbers that a rewrite moves.  `fmt` is the
 * same literal for the original and the copy. */
void exti__findings_broken(struct exti_findings *j, uint64_t offset, const char *subject,
                           const char *fmt, va_list ap) EXTI_PRINTF(4, 0);
void exti__findings_free(struct exti_findings *j); /* the excuses */

#endif
