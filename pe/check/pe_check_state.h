/* The state that the rules and steps of the self-check share, and how they report.  One thread. */
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
    const struct exti_rewrite_opts *opts; /* NULL: accept every difference that a copy may have */
    const struct exti_plan *plan;         /* made `after`; NULL: unknown */
    const struct exti_span *bind;
    size_t bind_count;
    bool same;         /* the copy equals the original, byte for byte */
    uint64_t raw_from; /* file offset of the original's first section */
    uint64_t kept_end; /* end of the original, its final certificates excluded */
    uint64_t shift;    /* bytes by which all from raw_from on moved */
    struct pe_dlls dlls_before, dlls_after;
    struct pe_exported exports_before, exports_after;
    bool forwarders_change;  /* or may change, without opts */
    struct pe_ranges texts;  /* bytes of the original with names that edits may change */
    struct pe_ranges fields; /* bytes of the original that other steps compare */

    struct exti_findings findings;
};

/* Reports a finding at file offset `at` of the copy. */
void exti__pe_finding(struct pe_check *c, uint64_t at, const char *fmt, ...) EXTI_PRINTF(3, 4);
/* Reports a breach of a rule.  The original excuses it by the same breach about the same `subject`,
 * which therefore must not contain numbers that a rewrite changes. */
void exti__pe_broken(struct pe_check *c, uint64_t at, const char *subject, const char *fmt, ...)
    EXTI_PRINTF(4, 5);

#endif
