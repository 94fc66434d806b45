/* What the rules and steps of the self-check share. */
#ifndef PE_CHECK_PE_CHECK_STATE_H
#define PE_CHECK_PE_CHECK_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/findings.h"
#include "base/format.h"
#include "pe/check/pe_ranges.h"
#include "pe/check/pe_view.h"
#include "pe/check/pe_view_export.h"
#include "pe/check/pe_view_import.h"

struct pe_check {
    struct pe_view before, after;
    const struct exti_rewrite_opts *opts; /* NULL: any difference that a copy may have */
    const struct exti_plan *plan;         /* what made `after`; NULL: not known */
    const struct exti_span *bind;
    size_t bind_count;
    bool same;         /* the copy is the original, byte for byte */
    uint64_t raw_from; /* where the original's sections begin in the file */
    uint64_t kept_end; /* the original's end without its certificates */
    uint64_t shift;    /* by how much all from raw_from on moved */
    struct pe_dlls dlls_before, dlls_after;
    struct pe_exported exports_before, exports_after;
    bool forwarders_change;  /* or may, without opts */
    struct pe_ranges texts;  /* the original's bytes that hold names which edits may change */
    struct pe_ranges fields; /* and others that another step answers for */

    struct exti_findings judge;
};

void exti__pe_finding(struct pe_check *c, uint64_t at, const char *fmt, ...) EXTI_PRINTF(3, 4);
/* A breach of a rule, about `subject`, which must not hold numbers that a rewrite moves. */
void exti__pe_broken(struct pe_check *c, uint64_t at, const char *subject, const char *fmt, ...)
    EXTI_PRINTF(4, 5);

#endif
