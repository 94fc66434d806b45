/* One transaction over all the edits of a copy.
 *
 * pe/edit plans the copy of a DLL: which names change and into what, whether the file can be
 * changed at all, where the new names go, and the headers and checksum that follow from it.  It
 * uses pe/read and base/ and knows nothing of pe/check; exti__pe_plan is its only entry.  One
 * thread per transaction. */
#ifndef PE_EDIT_PE_EDIT_H
#define PE_EDIT_PE_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/plan.h"
#include "pe/read/pe_export.h"
#include "pe/read/pe_file.h"

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

#endif
