/* One rewrite of one shared object in the making.
 *
 * Order: elf_dynamic.c and elf_rename.c decide what the new entries and names are, elf_strings.c
 * where their text lies, elf_rehash.c what that does to the hash tables, elf_place.c where whatever
 * must move goes, elf_emit.c writes it all down as patches and the appended blob. */
#ifndef ELF_EDIT_ELF_PLAN_H
#define ELF_EDIT_ELF_PLAN_H

#include "base/buf.h"
#include "elf/read/elf_priv.h"

/* A dynamic entry of the new file. */
struct elf_tag {
    GElf_Dyn d;
    const char *text; /* of a string entry: its new text; NULL keeps it */
    uint64_t text_at; /* where that is, once placed */
    size_t slot;      /* in the input; SIZE_MAX for a new entry */
};

/* A vn_file of DT_VERNEED that follows a changed DT_NEEDED. */
struct elf_version_edit {
    uint64_t name_at, name, text_at;
    const char *text;
};

/* The new string table: the old bytes, some overwritten, and text behind them. */
struct elf_strings {
    const struct elf_file *f;
    uint8_t *bytes; /* DT_STRSZ bytes */
    uint8_t *state; /* per byte: free, kept by an unchanged string, claimed by a new one */
    struct exti_buf added;
    uint32_t *slots; /* hash set of offsets into `added`, plus 1 */
    size_t slot_count, used;
};

/* The structures that may move to a new place.  In the order in which they are laid out. */
enum { ELF_MOVE_DYNAMIC, ELF_MOVE_GNU_HASH, ELF_MOVE_HASH, ELF_MOVE_STRTAB, ELF_MOVE_COUNT };

struct elf_move {
    bool moves;
    uint64_t vaddr, offset; /* in the input */
    uint64_t room;          /* its size in the input; 0 when it is not there */
    uint64_t size;          /* of the new contents */
    uint64_t align;
    uint64_t to_vaddr, to_offset;
    uint8_t *bytes; /* hash tables: the new contents, or NULL where unchanged */
};

struct elf_edit {
    const struct elf_file *f;
    const struct exti_rewrite_opts *opts;
    struct exti_plan *plan;

    struct elf_tag *tags; /* without DT_NULL */
    size_t tag_count, tag_cap;
    size_t dyn_slots; /* of the new PT_DYNAMIC */
    char **texts;     /* strings made for this edit, owned */
    size_t text_count, text_cap, text_bytes;

    struct elf_version_edit *versions;
    size_t version_count, version_cap;

    const char **names; /* per symbol its new name or NULL; NULL when nothing is renamed */
    uint64_t *name_at;  /* per renamed symbol the offset of its new name */
    struct elf_strings strings;

    struct elf_move move[ELF_MOVE_COUNT];
    GElf_Phdr *phdr; /* the new table */
    size_t phnum;
    GElf_Shdr *shdr; /* the new table; NULL without one */
    /* Notes that make room for a longer program header table: file range, and how far they go. */
    uint64_t notes_at, notes_end, notes_by;
};

/* ---- elf_dynamic.c ---- */
/* Decides the new dynamic entries. */
int exti__elf_edit_tags(struct elf_edit *e, struct exti_error *err);
/* Counts the slots and, when they run out, drops what loaders can do without or moves the table. */
void exti__elf_fit_tags(struct elf_edit *e);
/* Keeps a string for the life of the edit; takes it over even on failure. */
int exti__elf_own_text(struct elf_edit *e, char *text, struct exti_error *err);

/* ---- elf_needed.c ---- */
int exti__elf_edit_needed(struct elf_edit *e, struct exti_error *err);

/* ---- elf_tags.c: the list of entries ---- */
struct elf_tag *exti__elf_find_tag(struct elf_edit *e, int64_t tag);
int exti__elf_add_tag(struct elf_edit *e, int64_t tag, uint64_t value, const char *text,
                      struct exti_error *err);
void exti__elf_drop_tags(struct elf_edit *e, int64_t tag); /* all of that kind */
/* Gives an entry its new text, which outlives the edit. */
int exti__elf_set_text(struct elf_edit *e, struct elf_tag *t, const char *text,
                       struct exti_error *err);

/* ---- elf_paths.c ---- */
int exti__elf_edit_paths(struct elf_edit *e, struct exti_error *err);
/* $ORIGIN in *text becomes the directory it stood for; *text changes only where it is there. */
int exti__elf_translate(struct elf_edit *e, const char **text, struct exti_error *err);

/* ---- elf_rename.c ---- */
int exti__elf_edit_names(struct elf_edit *e, struct exti_error *err);

/* ---- elf_strings.c ---- */
int exti__elf_strings_init(struct elf_strings *s, const struct elf_file *f, struct exti_error *err);
void exti__elf_strings_free(struct elf_strings *s);
/* An unchanged reference to offset `off`. */
int exti__elf_strings_keep(struct elf_strings *s, uint64_t off, const char *what,
                           struct exti_error *err);
/* Places `text`, in place of the string at `old` (EXTI_NO_OFFSET: a new reference) if every other
 * reference to these bytes can bear it.  `search` also looks for the text among the old bytes.  All
 * unchanged references must have been kept before. */
int exti__elf_strings_put(struct elf_strings *s, uint64_t old, const char *text, bool search,
                          uint64_t *off, struct exti_error *err);

/* ---- elf_text.c ---- */
/* Places the text of every changed reference. */
int exti__elf_place_text(struct elf_edit *e, struct exti_error *err);

/* ---- elf_rehash.c ---- */
int exti__elf_edit_hashes(struct elf_edit *e, struct exti_error *err);

/* ---- elf_place.c, elf_slot.c ---- */
int exti__elf_place(struct elf_edit *e, struct exti_error *err);
/* Makes room for one more program header, directly after the last PT_LOAD, and gives its index.
 * `e->phdr` has room for it. */
int exti__elf_take_slot(struct elf_edit *e, size_t *index, struct exti_error *err);
bool exti__elf_overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end);

/* ---- elf_symtab.c ---- */
int exti__elf_emit_symtab(struct elf_edit *e, struct exti_error *err);

/* ---- elf_emit.c ---- */
int exti__elf_emit(struct elf_edit *e, struct exti_error *err);

#endif
