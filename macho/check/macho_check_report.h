/* Reporting findings, and what several checks ask about the two files. */
#ifndef MACHO_CHECK_MACHO_CHECK_REPORT_H
#define MACHO_CHECK_MACHO_CHECK_REPORT_H

#include "macho/check/macho_check_state.h"

#define MACHO_SDK(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor) << 8)

/* Reports a difference.  `at` is an offset in the copy's slice or EXTI_NO_OFFSET. */
void exti__macho_finding(struct macho_check *c, uint64_t at, const char *fmt, ...)
    EXTI_PRINTF(3, 4);

/* Reports that `f` breaks a rule.  `subject` tells breaches of one rule apart; it must not contain
 * numbers that a rewrite changes. */
void exti__macho_broken(struct macho_check *c, const struct macho_file *f, uint64_t at,
                        const char *subject, const char *fmt, ...) EXTI_PRINTF(5, 6);

/* Whether dyld applies to `f` a rule that it has for files linked against macOS SDK `sdk` or
 * later. */
bool exti__macho_gate(const struct macho_file *f, uint32_t sdk);

/* Whether the files have the same bytes in this piece, or both lack it. */
bool exti__macho_same_piece(const struct macho_check *c, enum macho_piece_kind kind);

/* Whether a rule about `f` can skip piece `kind`: it is the original's, and so are all its
 * faults. */
bool exti__macho_settled(const struct macho_check *c, const struct macho_file *f,
                         enum macho_piece_kind kind);

/* The largest library ordinal that `f` may use.  dyld gives a file without libraries libSystem as
 * number 1. */
size_t exti__macho_most_ordinal(const struct macho_file *f);

/* The name of the library that `ordinal` stands for; NULL if it is not in the list. */
const char *exti__macho_library_of(const struct macho_file *f, int32_t ordinal);

#endif
