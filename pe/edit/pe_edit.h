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

/* A string of the file that changes in the copy: a DLL's name or a forwarder. */
struct pe_rename {
    const char *was; /* NULL: the field is 0 */
    const char *to;
    uint64_t field_at; /* file offset of the field that holds the string's RVA... */
    bool by_address;   /* ...or its address */
    bool forwarder;
    size_t slot; /* index into pe_edit.slots */
};

/* The bytes of one string, which several fields may refer to. */
struct pe_slot {
    uint64_t at, end; /* file offsets; the NUL at `end` is not included */
    const char *to;
    bool taken; /* must not be overwritten: shared with something else, or too short for `to` */
};

struct pe_forwarder {
    uint64_t slot_at; /* file offset of its entry in the export address table */
    const char *was;
    size_t text;     /* offset of its new text in pe_edit.texts, or PE_NONE */
    uint32_t offset; /* in the moved export directory */
};

/* A new name that does not fit in place. */
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
    bool *seen; /* per opts->needed: the file imports the library or its replacement */
    struct pe_forwarder *forwarders;
    size_t forwarder_count, forwarder_cap;
    struct exti_buf texts; /* new texts of forwarders */
    struct pe_slot *slots; /* by file offset */
    size_t slot_count;

    struct pe_fresh *fresh;
    size_t fresh_count;
    bool move_exports;
    /* Export directory, address table and forwarders, in one range: the loader takes every export
     * whose address lies in the directory's range for a forwarder. */
    struct exti_buf moved;
    uint32_t blob_size; /* all new bytes: `moved`, then the fresh names */
    uint32_t blob_rva;
    uint64_t blob_offset; /* in the file; from `keep` on, in `added` */

    struct exti_buf head;      /* the headers of the copy */
    uint64_t keep;             /* bytes of the file that the copy keeps, from its start */
    uint64_t grow_at, grow_by; /* zeros inserted into the headers; all that follows moves */
    uint64_t slid;             /* bytes by which the NT headers moved towards the start */
    uint64_t added_pad;        /* zeros behind the kept bytes */
    struct exti_buf added;     /* bytes behind those zeros */
};

#endif
