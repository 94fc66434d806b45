/* Places the names that do not fit in place: in the unused end of a readable section, preferably
 * that of the directory, since some tools look for names only there; else in a section of their
 * own. */
#include "pe/edit/pe_place.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "pe/edit/pe_forward.h"
#include "pe/edit/pe_put.h"
#include "pe/edit/pe_room.h"
#include "pe/edit/pe_slot.h"
#include "pe/read/pe_address.h"

#define PAGE 4096u
#define UNWANTED (IMAGE_SCN_MEM_SHARED | IMAGE_SCN_MEM_DISCARDABLE | IMAGE_SCN_MEM_EXECUTE)

enum { SECTION_VIRTUAL_SIZE = 8 };

static struct pe_fresh *fresh_for(struct pe_edit *e, const char *text)
{
    for (size_t i = 0; i < e->fresh_count; i++)
        if (strcmp(e->fresh[i].text, text) == 0)
            return &e->fresh[i];
    return NULL;
}

static bool goes_into_blob(const struct pe_edit *e, const struct pe_rename *r)
{
    return !exti__pe_in_place(e, r) && !r->forwarder;
}

/* Lists the blob's contents.  All its names come from the options; each is stored once. */
static int lay_out_blob(struct pe_edit *e, struct exti_error *err)
{
    uint64_t size;
    int rc = 0;

    e->fresh = exti__calloc(e->req->opts->needed_count + 1, sizeof *e->fresh);
    if (!e->fresh)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < e->rename_count; i++)
        if (e->renames[i].forwarder && !exti__pe_in_place(e, &e->renames[i]))
            e->move_exports = true;
    if (e->move_exports)
        rc = exti__pe_move_exports(e, err);
    size = e->moved.n;
    for (size_t i = 0; !rc && i < e->rename_count; i++) {
        const struct pe_rename *r = &e->renames[i];

        if (!goes_into_blob(e, r) || fresh_for(e, r->to))
            continue;
        e->fresh[e->fresh_count++] = (struct pe_fresh){r->to, (uint32_t)size};
        size += strlen(r->to) + 1;
    }
    e->blob_size = (uint32_t)size;
    return rc;
}

/* Tries the zeros between a section's VirtualSize and the end of its bytes in the file. */
static bool fits_slack(struct pe_edit *e, const struct pe_section *s, struct exti_error *err)
{
    const struct pe_file *f = e->f;
    uint64_t from, pages, to;

    if (!(s->characteristics & IMAGE_SCN_MEM_READ) ||
        !(s->characteristics & IMAGE_SCN_CNT_INITIALIZED_DATA) || s->characteristics & UNWANTED ||
        !s->virtual_size || !exti__align(s->virtual_size, f->section_alignment, &pages))
        return false;
    to = pages < s->raw_size ? pages : s->raw_size;
    from = s->virtual_size;
    if (e->move_exports && !exti__align(from, 4, &from))
        return false;
    if (from > to || e->blob_size > to - from || s->raw_offset + from + e->blob_size > e->keep)
        return false;
    for (uint64_t i = s->virtual_size; i < from + e->blob_size; i++)
        if (f->file.p[s->raw_offset + i])
            return false;
    e->blob_rva = (uint32_t)(s->rva + from);
    e->blob_offset = s->raw_offset + from;
    return !exti__pe_put_u32(e, s->at + SECTION_VIRTUAL_SIZE, (uint32_t)(from + e->blob_size),
                             "section header", err);
}

static bool place_in_slack(struct pe_edit *e, struct exti_error *err)
{
    const struct pe_file *f = e->f;
    const enum pe_directory home =
        e->move_exports ? IMAGE_DIRECTORY_ENTRY_EXPORT : IMAGE_DIRECTORY_ENTRY_IMPORT;
    const struct pe_section *own =
        f->directories[home].rva ? exti__pe_section_of(f, f->directories[home].rva) : NULL;

    if (own && fits_slack(e, own, err))
        return true;
    for (size_t i = 0; i < f->section_count; i++)
        if (!(f->sections[i].characteristics & IMAGE_SCN_MEM_WRITE) &&
            fits_slack(e, &f->sections[i], err))
            return true;
    return false;
}

static int put_in_place(struct pe_edit *e, const struct pe_slot *s, struct exti_error *err)
{
    const size_t n = strlen(s->to);
    int rc = exti__pe_put(e, s->at, s->to, n, "name", err);

    return rc ? rc : exti__pe_put_zeros(e, s->at + n, s->end - s->at - n, "name", err);
}

static int put_slots(struct pe_edit *e, struct exti_error *err)
{
    int rc = 0;

    /* Once the directory has moved, nothing refers to the forwarders' old texts. */
    for (size_t i = 0; i < e->rename_count; i++)
        if (e->renames[i].forwarder && e->move_exports && exti__pe_in_place(e, &e->renames[i]))
            e->slots[e->renames[i].slot].taken = true;
    for (size_t i = 0; !rc && i < e->slot_count; i++)
        if (!e->slots[i].taken)
            rc = put_in_place(e, &e->slots[i], err);
    return rc;
}

/* Points the field of a rename at its new name. */
static int put_reference(struct pe_edit *e, const struct pe_rename *r, struct exti_error *err)
{
    const struct pe_exports *x = &e->exports;
    const struct pe_fresh *fresh = fresh_for(e, r->to);
    uint64_t to;

    assert(fresh); /* lay_out_blob has placed each such name */
    to = (uint64_t)e->blob_rva + fresh->offset;
    if (r->by_address)
        to += e->f->image_base;
    if (to > UINT32_MAX)
        return exti__fail(err, EXTI_E_UNSUPPORTED, r->field_at,
                          "delay import of '%s': the address 0x%" PRIx64
                          " of its new name has more than 32 bits",
                          r->was, to);
    if (e->move_exports && r->field_at >= x->at && r->field_at - x->at < EXPORT_DIRECTORY_SIZE) {
        exti__put_u32(e->moved.p + (r->field_at - x->at), (uint32_t)to, false);
        return 0;
    }
    return exti__pe_put_u32(e, r->field_at, (uint32_t)to, "address of a name", err);
}

static int put_blob(struct pe_edit *e, struct exti_error *err)
{
    const bool added = e->blob_offset >= e->keep;
    int rc = e->move_exports ? exti__pe_settle_exports(e, err) : 0;

    for (size_t i = 0; !rc && i < e->rename_count; i++)
        if (goes_into_blob(e, &e->renames[i]))
            rc = put_reference(e, &e->renames[i], err);
    for (size_t i = 0; !rc && i < e->fresh_count; i++)
        rc = exti__buf_append(&e->moved, e->fresh[i].text, strlen(e->fresh[i].text) + 1, err);
    if (rc)
        return rc;
    if (added)
        return exti__buf_patch(&e->added, 0, e->moved.p, e->moved.n, err);
    return exti__pe_put(e, e->blob_offset, e->moved.p, e->moved.n, "names", err);
}

int exti__pe_place(struct pe_edit *e, struct exti_error *err)
{
    int rc = lay_out_blob(e, err);

    if (!rc)
        rc = put_slots(e, err);
    if (rc || !e->blob_size)
        return rc;
    /* The loader maps such a file flat and ignores its sections. */
    if (e->f->section_alignment < PAGE)
        return exti__fail(err, EXTI_E_UNSUPPORTED, e->f->optional_at + 32,
                          "sections are aligned to %" PRIu32 " bytes, less than a page: use names "
                          "that are not longer than the old ones",
                          e->f->section_alignment);
    if (!place_in_slack(e, err))
        rc = exti__pe_append(e, err);
    return rc ? rc : put_blob(e, err);
}
