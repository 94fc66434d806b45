/* Finds the strings that can be overwritten in place: those with room for the new text whose bytes
 * nothing else uses, neither as a string or its tail nor as a part of a table. */
#include "pe/edit/pe_slot.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "pe/edit/pe_put.h"
#include "pe/read/pe_address.h"
#include "pe/read/pe_import.h"

/* Several times the count in the largest libraries; bounds the work on a hostile file. */
enum { MOST_REFERENCES = 1 << 22 };

struct claims {
    struct pe_edit *e;
    size_t longest;   /* length of the longest slot */
    uint32_t count;   /* of strings claimed */
    uint64_t symbols; /* of the current import */
};

static int by_string_address(const void *a, const void *b)
{
    const struct pe_rename *const *x = a, *const *y = b;
    const char *p = (*x)->was, *q = (*y)->was;

    return (p > q) - (p < q);
}

static void add_slot(struct pe_edit *e, struct pe_rename *r)
{
    uint64_t at = exti__pe_offset(e->f, r->was);
    struct pe_slot *s = e->slot_count ? &e->slots[e->slot_count - 1] : NULL;

    if (!s || s->at != at) {
        s = &e->slots[e->slot_count++];
        *s = (struct pe_slot){.at = at, .end = at + strlen(r->was), .to = r->to};
        s->taken = strlen(r->to) > s->end - s->at || at < e->head.n;
    } else if (strcmp(s->to, r->to) != 0) {
        s->taken = true;
    }
    r->slot = (size_t)(s - e->slots);
}

/* Strings with a common ending may share its bytes. */
static void part_overlaps(struct pe_edit *e, struct claims *c)
{
    uint64_t end = 0; /* the highest so far */

    for (size_t i = 0; i < e->slot_count; i++) {
        struct pe_slot *s = &e->slots[i];

        if ((i && end >= s->at) || (i + 1 < e->slot_count && s->end >= s[1].at))
            s->taken = true;
        if (s->end > end)
            end = s->end;
        if (s->end - s->at > c->longest)
            c->longest = (size_t)(s->end - s->at);
    }
}

/* The first slot that can reach `at`. */
static size_t first_slot(const struct claims *c, uint64_t at)
{
    const struct pe_edit *e = c->e;
    uint64_t from = at > c->longest ? at - c->longest : 0;
    size_t low = 0, high = e->slot_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (e->slots[middle].at < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int claim(struct claims *c, const char *text, struct exti_error *err)
{
    struct pe_edit *e = c->e;
    uint64_t at, end;

    if (!text)
        return 0;
    if (c->count++ == MOST_REFERENCES)
        return exti__fail(err, EXTI_E_UNSUPPORTED, exti__pe_offset(e->f, text),
                          "more than %d names are imported and exported", MOST_REFERENCES);
    at = exti__pe_offset(e->f, text);
    end = at + strlen(text);
    for (size_t i = first_slot(c, at); i < e->slot_count && e->slots[i].at <= end; i++)
        if (e->slots[i].end >= at)
            e->slots[i].taken = true;
    return 0;
}

/* For bytes that are not strings. */
static void claim_bytes(struct claims *c, uint64_t at, uint64_t n)
{
    struct pe_edit *e = c->e;

    for (size_t i = first_slot(c, at); n && i < e->slot_count && e->slots[i].at < at + n; i++)
        if (e->slots[i].end >= at)
            e->slots[i].taken = true;
}

static void claim_image(struct claims *c, uint32_t rva, uint64_t n)
{
    struct exti_span s;

    if (n && !exti__pe_at(c->e->f, rva, n, "table", &s, NULL))
        claim_bytes(c, s.base, s.n);
}

/* Claims the directories that hold no DLL names. */
static void claim_directories(struct claims *c)
{
    static const enum pe_directory nameless[] = {
        IMAGE_DIRECTORY_ENTRY_RESOURCE,  IMAGE_DIRECTORY_ENTRY_EXCEPTION,
        IMAGE_DIRECTORY_ENTRY_BASERELOC, IMAGE_DIRECTORY_ENTRY_DEBUG,
        IMAGE_DIRECTORY_ENTRY_TLS,       IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG,
        IMAGE_DIRECTORY_ENTRY_IAT};
    const struct pe_exports *x = &c->e->exports;

    for (size_t i = 0; i < sizeof nameless / sizeof *nameless; i++) {
        const struct pe_directory_entry *d = &c->e->f->directories[nameless[i]];

        if (d->rva)
            claim_image(c, d->rva, d->size);
    }
    if (!x->present)
        return;
    claim_bytes(c, x->at, EXPORT_DIRECTORY_SIZE);
    claim_image(c, x->functions_rva, (uint64_t)x->function_count * 4);
    claim_image(c, x->names_rva, (uint64_t)x->name_count * 4);
    claim_image(c, x->ordinals_rva, (uint64_t)x->name_count * 2);
}

static bool is_renamed(const struct pe_edit *e, const char *text)
{
    const struct claims c = {.e = (struct pe_edit *)e};
    uint64_t at = exti__pe_offset(e->f, text);
    size_t i = first_slot(&c, at);

    return i < e->slot_count && e->slots[i].at == at;
}

static int claim_symbol(void *user, const char *name, uint16_t ordinal, struct exti_error *err)
{
    struct claims *c = user;

    (void)ordinal;
    c->symbols++;
    if (name)
        claim_bytes(c, exti__pe_offset(c->e->f, name) - 2, 2); /* the hint before it */
    return claim(c, name, err);
}

static int claim_import(void *user, const struct pe_import *im, struct exti_error *err)
{
    struct claims *c = user;
    int rc = 0;

    /* Imports that share a renamed string also share its new text. */
    if (!is_renamed(c->e, im->name))
        rc = claim(c, im->name, err);
    c->symbols = 0;
    if (!rc)
        rc = exti__pe_import_symbols(c->e->f, im, claim_symbol, c, err);
    if (rc)
        return rc;
    claim_bytes(c, im->at, im->delay ? DELAY_DESCRIPTOR_SIZE : IMPORT_DESCRIPTOR_SIZE);
    claim_image(c, im->lookup_rva, (c->symbols + 1) * (c->e->f->plus ? 8 : 4));
    claim_image(c, im->iat_rva, (c->symbols + 1) * (c->e->f->plus ? 8 : 4));
    return 0;
}

static int claim_export(void *user, const struct pe_export *x, struct exti_error *err)
{
    struct claims *c = user;
    int rc = claim(c, x->name, err);

    if (!rc && x->forwarder && !is_renamed(c->e, x->forwarder))
        rc = claim(c, x->forwarder, err);
    return rc;
}

static int claim_all(struct claims *c, struct exti_error *err)
{
    struct pe_edit *e = c->e;
    const struct pe_exports *x = &e->exports;
    int rc = exti__pe_imports(e->f, claim_import, c, err);

    if (!rc && x->dll && (!e->req->opts->id || strcmp(x->dll, e->req->opts->id) == 0))
        rc = claim(c, x->dll, err);
    if (!rc && x->present)
        rc = exti__pe_exports(e->f, x, claim_export, c, err);
    claim_directories(c);
    return rc;
}

int exti__pe_classify_slots(struct pe_edit *e, struct exti_error *err)
{
    struct pe_rename **order = exti__calloc(e->rename_count, sizeof *order);
    struct claims c = {.e = e};
    size_t count = 0;

    e->slots = exti__calloc(e->rename_count, sizeof *e->slots);
    if (!order || !e->slots) {
        exti__free(order);
        return exti__fail_nomem(err);
    }
    for (size_t i = 0; i < e->rename_count; i++) {
        e->renames[i].slot = PE_NONE;
        if (e->renames[i].was)
            order[count++] = &e->renames[i];
    }
    if (count)
        qsort(order, count, sizeof *order, by_string_address);
    for (size_t i = 0; i < count; i++)
        add_slot(e, order[i]);
    exti__free(order);
    part_overlaps(e, &c);
    return claim_all(&c, err);
}

bool exti__pe_in_place(const struct pe_edit *e, const struct pe_rename *r)
{
    return r->slot != PE_NONE && !e->slots[r->slot].taken;
}
