/* What the parts of the PE plan share: one transaction over all the edits of a copy. */
#ifndef PE_EDIT_PE_PLAN_H
#define PE_EDIT_PE_PLAN_H

#include "pe/read/pe_priv.h"

#define PE_NEW_SECTION ".extiso"

/* A string of the file that the copy has other words for. */
struct pe_rename {
    const char *was; /* NULL: the field is 0 */
    const char *to;
    uint64_t field_at; /* file offset of the field that holds the string's RVA */
    bool by_address;   /* the field holds its address */
    bool forwarder;
    size_t slot; /* in pe_edit.slots */
};

/* A string's place in the file, for all the fields that refer to it. */
struct pe_slot {
    uint64_t at, end; /* file offsets, without the NUL */
    const char *to;
    bool taken; /* something else refers to these bytes, or the new words are too long */
};

struct pe_forwarder {
    uint64_t slot_at; /* file offset of its entry in the address table */
    const char *was;
    size_t text;     /* of its new words in pe_edit.texts, or PE_NONE */
    uint32_t offset; /* in the moved export directory */
};

/* New words that did not fit in place. */
struct pe_fresh {
    const char *text;
    uint32_t offset; /* in the blob */
};

#define PE_NONE SIZE_MAX

struct pe_edit {
    const struct pe_file *f;
    const struct exti_request *req;
    struct exti_plan *plan;
    struct pe_exports exports;
    struct pe_rename *renames;
    size_t rename_count, rename_cap;
    bool *seen; /* for each of the needed libraries: it or its replacement is there */
    struct pe_forwarder *forwarders;
    size_t forwarder_count, forwarder_cap;
    struct exti_buf texts; /* new words of forwarders */
    struct pe_slot *slots; /* by place */
    size_t slot_count;

    struct pe_fresh *fresh;
    size_t fresh_count;
    bool move_exports;
    struct exti_buf moved; /* export directory, address table, forwarders: one range, as whatever an
                            * entry has in the directory's range is taken for a forwarder */
    uint32_t blob_size;    /* `moved`, then the fresh names */
    uint32_t blob_rva;
    uint64_t blob_offset; /* in the file, or from `keep` on: in `added` */

    struct exti_buf head;      /* the headers as they will be */
    uint64_t keep;             /* so much of the file is kept */
    uint64_t grow_at, grow_by; /* zeros put in, which move all that follows */
    uint64_t slid;             /* the NT headers moved towards the start */
    uint64_t added_pad;        /* zeros behind what is kept */
    struct exti_buf added;     /* bytes behind those */
};

/* pe_names.c: which strings change, and into what. */
int exti__pe_edit_names(struct pe_edit *e, struct exti_error *err);
int exti__pe_add_rename(struct pe_edit *e, struct pe_rename r, struct exti_error *err);
/* The name that replaces that of a DLL; the same pointer if none does.  `n` is its length. */
const char *exti__pe_new_name(struct pe_edit *e, const char *name, size_t n);
/* Whether two names mean one DLL: in any case, ".dll" is understood. */
bool exti__pe_same_dll(const char *a, size_t a_size, const char *b, size_t b_size);

/* pe_bind.c: imports that change their library must find all their symbols there. */
int exti__pe_check_bind(struct pe_edit *e, struct exti_error *err);

/* pe_hidden.c: delay imports that no directory lists. */
int exti__pe_refuse_hidden(const struct pe_edit *e, struct exti_error *err);

/* pe_forward.c */
int exti__pe_edit_forwarders(struct pe_edit *e, struct exti_error *err);
int exti__pe_move_exports(struct pe_edit *e, struct exti_error *err);   /* lays `moved` out */
int exti__pe_settle_exports(struct pe_edit *e, struct exti_error *err); /* once blob_rva is known */

/* pe_slot.c: which strings can be overwritten where they are. */
int exti__pe_classify_slots(struct pe_edit *e, struct exti_error *err);
bool exti__pe_in_place(const struct pe_edit *e, const struct pe_rename *r);

/* pe_strip.c: what a changed copy cannot keep. */
int exti__pe_refuse(const struct pe_edit *e, struct exti_error *err);
int exti__pe_strip(struct pe_edit *e, struct exti_error *err);

/* pe_place.c: where the blob goes. */
int exti__pe_place(struct pe_edit *e, struct exti_error *err);

/* pe_room.c: a section of its own for the blob, or more of the last one. */
int exti__pe_append(struct pe_edit *e, struct exti_error *err);

/* pe_put.c: overwrites bytes of the file, in the headers or elsewhere; `at` is where they were. */
int exti__pe_put(struct pe_edit *e, uint64_t at, const void *p, size_t n, const char *what,
                 struct exti_error *err);
int exti__pe_put_u16(struct pe_edit *e, uint64_t at, uint16_t v, const char *what,
                     struct exti_error *err);
int exti__pe_put_u32(struct pe_edit *e, uint64_t at, uint32_t v, const char *what,
                     struct exti_error *err);
int exti__pe_put_zeros(struct pe_edit *e, uint64_t at, uint64_t n, const char *what,
                       struct exti_error *err);
uint32_t exti__pe_u32(const uint8_t *p);
/* File offset of a string that was read from the file. */
uint64_t exti__pe_offset(const struct pe_file *f, const void *p);

/* pe_finish.c: headers, tail and checksum into the plan. */
int exti__pe_finish(struct pe_edit *e, struct exti_error *err);

#endif
