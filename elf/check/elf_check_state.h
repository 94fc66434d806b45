/* The room check/ compares a rewritten copy with its original.  It reads both files from scratch,
 * with base/ and elf/read/ only, and shares no code with edit/, so that a fault in one is not
 * hidden by the same fault in the other.  Its one caller is elf_format.c, through exti__elf_check.
 *
 * Each check looks at one property and reports every breach of it; its result is negative only when
 * it could not do its work.  elf_check.c has the list of checks.
 *
 * This header has the state that the checks share, struct elf_check, and their helpers.  One thread
 * uses it. */
#ifndef ELF_CHECK_ELF_CHECK_STATE_H
#define ELF_CHECK_ELF_CHECK_STATE_H

#include "base/findings.h"
#include "base/plan.h"
#include "elf/read/elf_file.h"

#define ELF_NO_MATCH SIZE_MAX

/* The dynamic strings and symbol names that the copy must have. */
struct elf_expect {
    const char *id;      /* NULL: no DT_SONAME */
    const char **needed; /* owned array */
    size_t needed_count;
    char *rpath, *runpath; /* owned; NULL: no such tag */
    char **translated;     /* owned, as are its strings: names in `needed` with $ORIGIN spelt out */
    size_t translated_count;
    size_t *renames; /* owned hash table of indices into opts->renames, plus 1; 0: free */
    size_t rename_slots, rename_longest;
};

struct elf_range {
    uint64_t at, end; /* file offsets */
};

struct elf_check {
    struct elf_file before, after;
    const struct exti_rewrite_opts *opts; /* NULL: allow any difference that a copy may have */
    const struct exti_plan *plan;         /* what made `after` from `before`; NULL: not known */
    struct elf_expect expect;             /* meaningful with opts */
    size_t *match;   /* owned: for each program header of `after` its original or ELF_NO_MATCH */
    size_t new_load; /* the PT_LOAD in `after` that has no original, or ELF_NO_MATCH */
    size_t block;    /* the original's PT_LOAD of exti__elf_match_block, or ELF_NO_MATCH */
    struct exti_findings findings;
    struct elf_range *ranges; /* owned: bytes that other checks cover, so that "bytes" skips them */
    size_t range_count, range_cap;
};

/* Reports a finding unless c->findings.stop is set. */
void exti__elf_finding(struct elf_check *c, uint64_t offset, const char *fmt, ...)
    EXTI_PRINTF(3, 4);

/* What program header `j` of the copy is in the original, or NULL. */
const GElf_Phdr *exti__elf_original(const struct elf_check *c, size_t j);

/* The string at `off` of DT_STRTAB, or NULL. */
const char *exti__elf_check_text(const struct elf_file *f, uint64_t off);
/* The text of the last entry with that tag, or NULL. */
const char *exti__elf_check_tag_text(const struct elf_file *f, int64_t tag);
/* Whether this file defines the symbol for others to find. */
bool exti__elf_is_defined(const GElf_Sym *s);

#endif
