/* The judge of rewritten copies.  It reads both files from scratch: headers, imports, exports and the
 * checksum are decoded here a second time, so that a fault of the rewriter's decoders is not hidden by
 * the same fault in the judge's. */
#ifndef PE_CHECK_PE_CHECK_PRIV_H
#define PE_CHECK_PE_CHECK_PRIV_H

#include "base/findings.h"
#include "pe/read/pe_priv.h"

/* ---- one file ------------------------------------------------------------------------------------ */

struct pe_view_section {
    char name[9];
    uint32_t virtual_size, rva, raw_size, raw_at, flags;
    uint64_t at;     /* of its header */
    uint64_t extent; /* bytes of the image that it takes */
    uint64_t backed; /* bytes of those that the file holds */
};

struct pe_view {
    struct exti_span file;
    uint64_t nt, optional, table, table_end; /* file offsets of the headers */
    bool plus;
    uint16_t machine, magic, optional_size, flags, dll_flags;
    uint64_t base;
    uint32_t section_align, file_align, image_size, header_size, checksum;
    uint32_t symbols_at, symbol_count;
    uint32_t directory_count; /* as the file says it */
    struct {
        uint32_t rva, size;
    } directory[IMAGE_NUMBEROF_DIRECTORY_ENTRIES];
    struct pe_view_section *sections; /* owned */
    size_t section_count;             /* PE_MOST_SECTIONS at most */
    uint16_t sections_said;
};

/* A descriptor of imports or delay imports. */
struct pe_dll {
    uint64_t at; /* file offset */
    const char *name;
    uint64_t name_at; /* file offset of its text */
    uint32_t lookup, iat, timestamp, chain, attributes, handle;
    bool delay;
};
struct pe_dlls {
    struct pe_dll *v; /* owned */
    size_t n, cap;
};

/* One imported symbol. */
struct pe_thunk {
    const char *name; /* NULL: by ordinal */
    uint16_t number;  /* the hint or the ordinal */
};

struct pe_exported {
    bool present;
    uint64_t at; /* file offset of the directory */
    const char *dll;
    uint64_t dll_at; /* file offset of its text */
    struct exti_span directory, functions, names, ordinals;
    uint32_t rva, size, function_count, name_count;
};

/* ---- the check ----------------------------------------------------------------------------------- */

struct pe_range {
    uint64_t at, end;
};
struct pe_ranges {
    struct pe_range *v; /* owned */
    size_t n, cap;
};

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

/* A rule about one file, whether it is a copy or not. */
struct pe_check_rule {
    const char *name;
    int (*run)(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
};
extern const struct pe_check_rule exti__pe_rules[];
extern const size_t exti__pe_rule_count;

/* What the copy must have in common with the original. */
struct pe_check_step {
    const char *name;
    int (*run)(struct pe_check *c, struct exti_error *err);
};
extern const struct pe_check_step exti__pe_steps[];
extern const size_t exti__pe_step_count;

/* Opens both; fails when `before` cannot be read or memory is out.  When `after` cannot be compared with
 * it, reports that and leaves *sound false.  Close in any case but failure. */
int exti__pe_check_open(struct pe_check *c, struct exti_span before, struct exti_span after,
                        bool *sound, struct exti_error *err);
void exti__pe_check_close(struct pe_check *c);
int exti__pe_check_rules(struct pe_check *c, struct exti_error *err);
int exti__pe_check_steps(struct pe_check *c, struct exti_error *err);

void exti__pe_finding(struct pe_check *c, uint64_t at, const char *fmt, ...) EXTI_PRINTF(3, 4);
/* A breach of a rule, about `subject`, which must not hold numbers that a rewrite moves. */
void exti__pe_broken(struct pe_check *c, uint64_t at, const char *subject, const char *fmt, ...)
    EXTI_PRINTF(4, 5);

int exti__pe_range_add(struct pe_ranges *r, uint64_t at, uint64_t size, struct exti_error *err);
void exti__pe_ranges_sort(struct pe_ranges *r);
/* Whether sorted ranges have something of [at, end). */
bool exti__pe_ranges_meet(const struct pe_ranges *r, uint64_t at, uint64_t end);

/* ---- pe_check_view.c ------------------------------------------------------------------------------- */

int exti__pe_view_open(struct exti_span file, struct pe_view *v, struct exti_error *err);
void exti__pe_view_close(struct pe_view *v);
uint16_t exti__pe_word16(const uint8_t *p);
uint32_t exti__pe_word32(const uint8_t *p);
uint64_t exti__pe_word64(const uint8_t *p);
/* The file's bytes for `n` bytes of the image, all in one section or the headers. */
bool exti__pe_view_at(const struct pe_view *v, uint64_t rva, uint64_t n, struct exti_span *out);
/* From `rva` to the end of what the file has of its section. */
bool exti__pe_view_from(const struct pe_view *v, uint64_t rva, struct exti_span *out);
/* The text at `rva`, NULL if it is not there or longer than `most`. */
const char *exti__pe_view_text(const struct pe_view *v, uint64_t rva, size_t most);
/* Whether the image has `n` bytes there, in one section. */
bool exti__pe_view_mapped(const struct pe_view *v, uint64_t rva, uint64_t n);
const struct pe_view_section *exti__pe_view_section(const struct pe_view *v, uint64_t rva);
/* Where a certificate table stands, which needs no section. */
bool exti__pe_view_signed(const struct pe_view *v, uint64_t *at, uint64_t *end);

/* ---- pe_check_header.c: headers and sections ----------------------------------------------------------- */

int exti__pe_rule_machine(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_library(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_alignment(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_headers(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_addresses(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_image_size(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_raw(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_directories(struct pe_check *c, const struct pe_view *v, struct exti_error *err);

/* ---- pe_check_import.c --------------------------------------------------------------------------------- */

/* Adds the descriptors; a breach of the loader's rules is reported and ends the list. */
int exti__pe_dlls(struct pe_check *c, const struct pe_view *v, bool delay, struct pe_dlls *out,
                  struct exti_error *err);
void exti__pe_dlls_free(struct pe_dlls *list);
/* Symbol `i` of the import; false at the end of the table and when it cannot be read, which *sound
 * then says. */
bool exti__pe_thunk(const struct pe_view *v, const struct pe_dll *dll, size_t i,
                    struct pe_thunk *out, bool *sound);
int exti__pe_rule_imports(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_delayed(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_step_imports(struct pe_check *c, struct exti_error *err);
int exti__pe_step_bound(struct pe_check *c, struct exti_error *err);
int exti__pe_step_provided(struct pe_check *c, struct exti_error *err);

/* ---- pe_check_export.c --------------------------------------------------------------------------------- */

/* Opens the export directory; a breach is reported and leaves *out without exports. */
void exti__pe_exported(struct pe_check *c, const struct pe_view *v, struct pe_exported *out);
/* The forwarder in that slot of the address table, or NULL. */
const char *exti__pe_forwarder(const struct pe_view *v, const struct pe_exported *x, uint32_t slot,
                               uint32_t *rva);
/* The RVA behind the last of the forwarders. */
uint64_t exti__pe_forwarders_end(const struct pe_view *v, const struct pe_exported *x);
int exti__pe_rule_exports(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_step_id(struct pe_check *c, struct exti_error *err);
int exti__pe_step_exports(struct pe_check *c, struct exti_error *err);
int exti__pe_step_forwarders(struct pe_check *c, struct exti_error *err);

/* ---- pe_check_table.c: what else the loader and tools read ---------------------------------------------- */

int exti__pe_rule_relocs(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_tls(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_load_config(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_debug(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_symbols(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_checksum(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
/* Calls `each` with every address that the loader adds to and how many bytes it changes there;
 * *flaw is the file offset of the first thing that is not sound, or EXTI_NO_OFFSET. */
void exti__pe_relocs(const struct pe_view *v, void (*each)(void *user, uint64_t rva, unsigned size),
                     void *user, uint64_t *flaw);
/* Where DependentLoadFlags stands in the file; false: the load configuration has none. */
bool exti__pe_load_flags_at(const struct pe_view *v, uint64_t *at);
int exti__pe_step_relocs(struct pe_check *c, struct exti_error *err);
int exti__pe_step_load_flags(struct pe_check *c, struct exti_error *err);
int exti__pe_step_debug(struct pe_check *c, struct exti_error *err);
int exti__pe_step_checksum(struct pe_check *c, struct exti_error *err);

/* ---- pe_check_expect.c: the edits, by the words of the public header --------------------------------- */

/* What a library of that name has to be called in the copy; `name` itself when nothing renames it. */
const char *exti__pe_renamed(const struct pe_check *c, const char *name);
/* Whether a reference to library `was` may now name `now`. */
bool exti__pe_follows(const struct pe_check *c, const char *was, const char *now);
/* The same for whole forwarders. */
bool exti__pe_forwarder_follows(const struct pe_check *c, const char *was, const char *now);
/* Whether the loader takes the two names for one library. */
bool exti__pe_same_library(const char *a, const char *b);
/* Whether edits may change a reference to library `name`. */
bool exti__pe_may_rename(const struct pe_check *c, const char *name);
/* The name of the library that a forwarder names, with its length. */
bool exti__pe_forwarder_library(const char *forwarder, char *out, size_t cap);

/* ---- pe_check_edit.c: headers and section table ------------------------------------------------------- */

int exti__pe_step_headers(struct pe_check *c, struct exti_error *err);
int exti__pe_step_directories(struct pe_check *c, struct exti_error *err);
int exti__pe_step_sections(struct pe_check *c, struct exti_error *err);
int exti__pe_step_added(struct pe_check *c, struct exti_error *err);
int exti__pe_step_signature(struct pe_check *c, struct exti_error *err);

/* ---- pe_check_bytes.c ------------------------------------------------------------------------------------ */

/* Notes what of the original edits may change. */
int exti__pe_changeable(struct pe_check *c, struct exti_error *err);
int exti__pe_step_bytes(struct pe_check *c, struct exti_error *err);
int exti__pe_step_end(struct pe_check *c, struct exti_error *err);

#endif
