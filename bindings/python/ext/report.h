/* What a check reports, kept as lines of text. */
#ifndef BINDINGS_PYTHON_EXT_REPORT_H
#define BINDINGS_PYTHON_EXT_REPORT_H

#include <stdio.h>

#include <extisolate.h>

struct pkg_report {
    char *text; /* after pkg_report_end; the caller frees it */
    size_t size;
    FILE *out;
};

/* EXTI_E_NOMEM, or 0. */
int pkg_report_begin(struct pkg_report *r);
/* An exti_report_fn; any thread that has no GIL. */
int pkg_report_add(void *report, const struct exti_error *finding);
/* EXTI_E_NOMEM: lines were lost. */
int pkg_report_end(struct pkg_report *r);

#endif
