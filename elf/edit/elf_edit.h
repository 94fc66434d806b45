/* The room edit/ plans the rewrite of one shared object.  It uses base/ and elf/read/ only, and its
 * one caller is elf_format.c, through exti__elf_plan.
 *
 * The steps, in order: elf_dynamic.c decides the new dynamic entries and elf_rename.c the new
 * symbol names, elf_text.c and elf_strings.c place their text in the string table, elf_rehash.c
 * adapts the hash tables, elf_place.c finds room for the structures that must move, elf_emit.c
 * turns all of it into patches and the appended blob, and elf_cut.c finds what a lean copy can be
 * without.
 *
 * This header has the state that the steps share, struct elf_edit: one rewrite in the making, used
 * by one thread. */
#ifndef ELF_EDIT_ELF_EDIT_H
#define ELF_EDIT_ELF_EDIT_H

#include "base/plan.h"
#include "elf/edit/elf_strings.h"
#include "elf/read/elf_file.h"

/* A dynamic entry of the new file. */
struct elf_tag {
    GElf_Dyn d;
    const char *text; /* string entries: the new text; NULL keeps the old one */
    uint64_t text_at; /* offset of `text` in DT_STRTAB, once placed */
    size_t slot;      /* index in the input; SIZE_MAX for a new entry */
};

/* A vn_file of DT_VERNEED that follows a changed DT_NEEDED. */
struct elf_version_edit {
    uint64_t name_at; /* file offset of vn_file */
    uint64_t name;    /* its old value */
    uint64_t text_at; /* its new value, once placed */
    const char *text;
};

/* The structures that may move to a new place, in the order in which they are laid out there. */
enum { ELF_MOVE_DYNAMIC, ELF_MOVE_GNU_HASH, ELF_MOVE_HASH, ELF_MOVE_STRTAB, ELF_MOVE_COUNT };

struct elf_move {
    bool moves;
    uint64_t vaddr, offset; /* in the input */
    uint64_t room;          /* size in the input; 0 when the input has no such structure */
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
    char **texts;     /* owned: strings made for this edit */
    size_t text_count, text_cap, text_bytes;

    struct elf_version_edit *versions; /* in table order */
    size_t version_count, version_cap;

    const char **names; /* each symbol's new name or NULL; NULL when nothing is renamed */
    uint64_t *name_at;  /* for each renamed symbol the offset of its new name in DT_STRTAB */
    struct elf_strings strings;

    struct elf_move move[ELF_MOVE_COUNT];
    uint64_t tail_at; /* from here on the file is written anew: its end, or that of its kept part */
    GElf_Phdr *phdr;  /* the new table, with room for one more entry than the input's */
    size_t phnum;
    GElf_Shdr *shdr; /* the new table; empty without section headers */
    /* Notes that make room for a longer program header table: the range of file offsets that they
     * occupy in the input, and the distance by which they move up. */
    uint64_t notes_at, notes_end, notes_by;
};

/* The end of `size` bytes at `at`; UINT64_MAX where a file's values would wrap around. */
static inline uint64_t exti__elf_end(uint64_t at, uint64_t size)
{
    return size > UINT64_MAX - at ? UINT64_MAX : at + size;
}

/* Whether [a, a_end) and [b, b_end) have a byte in common. */
static inline bool exti__elf_overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
    return a < b_end && b < a_end;
}

#endif
