/* The judge of rewritten copies.  It reads both files from scratch and shares no code with the
 * planner, so that a fault in one is not hidden by the same fault in the other. */
#ifndef ELF_CHECK_ELF_CHECK_PRIV_H
#define ELF_CHECK_ELF_CHECK_PRIV_H

#include "base/error.h"
#include "elf/read/elf_priv.h"

#define ELF_NO_MATCH SIZE_MAX

/* What the edits make of the original's dynamic strings. */
struct elf_expect {
    const char *id;      /* NULL: no DT_SONAME */
    const char **needed; /* owned array */
    size_t needed_count;
    char *rpath, *runpath; /* owned; NULL: no such tag */
    char **translated;     /* owned, as are its strings; parallel to `needed` as it was */
    size_t translated_count;
    size_t *renames; /* owned hash table of indices into opts->renames, plus 1; 0: free */
    size_t rename_slots, rename_longest;
};

struct elf_range {
    uint64_t at, end; /* file offsets */
};

struct elf_check {
    struct elf_file before, after;
    const struct exti_rewrite_opts *opts; /* NULL: any difference that a copy may have */
    const struct exti_plan *plan;         /* what made `after`; NULL: not known */
    struct elf_expect expect;             /* meaningful with opts */
    size_t *match;   /* owned: for each program header of `after` its original or ELF_NO_MATCH */
    size_t new_load; /* the PT_LOAD in `after` that has no original, or ELF_NO_MATCH */
    exti_report_fn report;
    void *user;
    bool stop;                /* the report asked for it */
    struct elf_range *ranges; /* owned: what another check answers for, not the byte comparison */
    size_t range_count, range_cap;
};

/* Each looks at one property and reports every breach of it; the result is negative only when the
 * check could not be made. */
struct elf_check_step {
    const char *name;
    int (*run)(struct elf_check *c, struct exti_error *err);
};
extern const struct elf_check_step exti__elf_checks[];
extern const size_t exti__elf_check_count;

/* Fails when `before` is no sound shared object or memory is out.  When `after` is not, reports that
 * and leaves *sound false.  Close in any case but failure. */
int exti__elf_check_open(struct elf_check *c, struct exti_span before, struct exti_span after,
                         bool *sound, struct exti_error *err);
void exti__elf_check_close(struct elf_check *c);

void exti__elf_finding(struct elf_check *c, uint64_t offset, const char *fmt, ...)
    EXTI_PRINTF(3, 4);

/* The string at `off` of DT_STRTAB, or NULL. */
const char *exti__elf_check_text(const struct elf_file *f, uint64_t off);
/* The text of the last entry with that tag, or NULL. */
const char *exti__elf_check_tag_text(const struct elf_file *f, int64_t tag);
bool exti__elf_is_defined(const GElf_Sym *s); /* by this file, for others to find */

/* ---- elf_check_expect.c */
int exti__elf_expect(struct elf_check *c, struct exti_error *err);
void exti__elf_expect_free(struct elf_expect *e);
const char *exti__elf_renamed(const struct elf_check *c, const char *name);
/* Whether a version table that named library `was` may now name `name`. */
bool exti__elf_follows_needed(const struct elf_check *c, const char *was, const char *name);

/* ---- elf_check_dynamic.c */
int exti__elf_check_tags(struct elf_check *c, struct exti_error *err);
int exti__elf_check_id(struct elf_check *c, struct exti_error *err);
int exti__elf_check_needed(struct elf_check *c, struct exti_error *err);
int exti__elf_check_path(struct elf_check *c, struct exti_error *err);
int exti__elf_check_flags(struct elf_check *c, struct exti_error *err);
int exti__elf_check_terminator(struct elf_check *c, struct exti_error *err);

/* ---- elf_check_symbol.c */
int exti__elf_check_symbols(struct elf_check *c, struct exti_error *err);
int exti__elf_check_versions(struct elf_check *c, struct exti_error *err);
int exti__elf_check_static_symbols(struct elf_check *c, struct exti_error *err);

/* ---- elf_check_hash.c */
int exti__elf_check_gnu_hash(struct elf_check *c, struct exti_error *err);
int exti__elf_check_sysv_hash(struct elf_check *c, struct exti_error *err);
/* Bytes of the table as far as it lies in the file; 0 when there is none. */
uint64_t exti__elf_gnu_hash_size(const struct elf_file *f);
uint64_t exti__elf_sysv_hash_size(const struct elf_file *f);

/* ---- elf_check_layout.c */
void exti__elf_match_headers(struct elf_check *c);
int exti__elf_check_header(struct elf_check *c, struct exti_error *err);
int exti__elf_check_header_count(struct elf_check *c, struct exti_error *err);
int exti__elf_check_program_headers(struct elf_check *c, struct exti_error *err);
int exti__elf_check_stack(struct elf_check *c, struct exti_error *err);
int exti__elf_check_loads(struct elf_check *c, struct exti_error *err);
int exti__elf_check_contained(struct elf_check *c, struct exti_error *err);
int exti__elf_check_notes(struct elf_check *c, struct exti_error *err);

/* ---- elf_check_room.c: that new contents lie where nothing else did */
int exti__elf_check_table_growth(struct elf_check *c, struct exti_error *err);
int exti__elf_check_load_growth(struct elf_check *c, struct exti_error *err);
int exti__elf_check_tail(struct elf_check *c, struct exti_error *err);

/* ---- elf_check_section.c */
int exti__elf_check_sections(struct elf_check *c, struct exti_error *err);
/* The address that section `i` of the original has to have in the copy, by what it holds. */
uint64_t exti__elf_section_moved(const struct elf_check *c, size_t i);

/* ---- elf_check_bytes.c */
int exti__elf_check_strings(struct elf_check *c, struct exti_error *err);
int exti__elf_check_bytes(struct elf_check *c, struct exti_error *err);

#endif
