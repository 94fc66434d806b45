/* The self-check's own reading of imports and delay imports. */
#include "pe/check/pe_view_import.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "pe/check/pe_check_state.h"

enum { MOST_THUNKS = 65536 };

void exti__pe_dlls_free(struct pe_dlls *list)
{
    exti__free(list->v);
    *list = (struct pe_dlls){NULL, 0, 0};
}

static int append_descriptor(struct pe_dlls *list, const struct pe_dll *dll, struct exti_error *err)
{
    struct pe_dll *p = exti__array_room(list->v, list->n, &list->cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    list->v = p;
    list->v[list->n++] = *dll;
    return 0;
}

static uint32_t decode_import(const uint8_t *p, struct pe_dll *d)
{
    d->lookup = exti__pe_word32(p);
    d->timestamp = exti__pe_word32(p + 4);
    d->chain = exti__pe_word32(p + 8);
    d->iat = exti__pe_word32(p + 16);
    if (!d->lookup)
        d->lookup = d->iat;
    return exti__pe_word32(p + 12);
}

/* In version 1 of delay imports the fields hold addresses, not RVAs. */
static uint32_t decode_delay_import(const struct pe_view *v, const uint8_t *p, struct pe_dll *d)
{
    const uint32_t base = exti__pe_word32(p) & 1 ? 0 : (uint32_t)v->base;
    const uint32_t lookup = exti__pe_word32(p + 16);

    d->attributes = exti__pe_word32(p);
    d->handle = exti__pe_word32(p + 8) - base;
    d->iat = exti__pe_word32(p + 12) - base;
    d->lookup = lookup ? lookup - base : 0;
    d->timestamp = exti__pe_word32(p + 28);
    return exti__pe_word32(p + 4) - base;
}

static bool is_printable(const char *s)
{
    if (!*s)
        return false;
    for (; *s; s++)
        if (*s < 0x20 || *s > 0x7e)
            return false;
    return true;
}

const char *exti__pe_import_kind(bool delay)
{
    return delay ? "delay import" : "import";
}

/* Reads the DLL's name.  False after reporting a breach. */
static bool resolve_dll_name(struct pe_check *c, const struct pe_view *v, struct pe_dll *d,
                             uint32_t name, size_t i)
{
    char subject[32];

    snprintf(subject, sizeof subject, "%d %zu", d->delay, i);
    d->name = exti__pe_view_text(v, name, PE_LONGEST_NAME);
    if (!d->name || !is_printable(d->name)) {
        exti__pe_broken(c, d->at, subject,
                        "%s %zu: no name of 1 to %u printable characters at 0x%x",
                        exti__pe_import_kind(d->delay), i, PE_LONGEST_NAME, name);
        return false;
    }
    d->name_at = (uint64_t)((const uint8_t *)d->name - v->file.p);
    return true;
}

int exti__pe_dlls(struct pe_check *c, const struct pe_view *v, bool delay, struct pe_dlls *out,
                  struct exti_error *err)
{
    const size_t size = delay ? DELAY_DESCRIPTOR_SIZE : IMPORT_DESCRIPTOR_SIZE;
    const uint64_t rva =
        v->directory[delay ? IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT : IMAGE_DIRECTORY_ENTRY_IMPORT].rva;
    const size_t first = out->n;
    struct exti_span s;

    /* The loader ignores the directory's size. */
    for (size_t i = 0; rva; i++) {
        struct pe_dll d = {.delay = delay};
        uint32_t name;
        int rc;

        if (i >= PE_MOST_DESCRIPTORS || !exti__pe_view_at(v, rva + i * size, size, &s)) {
            exti__pe_broken(c, EXTI_NO_OFFSET, delay ? "delay" : "",
                            "%ss: no empty descriptor ends them", exti__pe_import_kind(delay));
            return 0;
        }
        name = delay ? decode_delay_import(v, s.p, &d) : decode_import(s.p, &d);
        if (!exti__pe_word32(s.p + (delay ? 4 : 12)) || (!delay && !d.iat))
            return 0;
        d.at = s.base;
        if (!resolve_dll_name(c, v, &d, name, out->n - first))
            return 0;
        rc = append_descriptor(out, &d, err);
        if (rc)
            return rc;
    }
    return 0;
}

bool exti__pe_thunk(const struct pe_view *v, const struct pe_dll *dll, size_t i,
                    struct pe_thunk *out, bool *sound)
{
    const size_t width = v->plus ? 8 : 4;
    const uint64_t ordinal = v->plus ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    /* In version 1 the entries are addresses, too. */
    const uint64_t base = dll->delay && !(dll->attributes & 1) ? v->base : 0;
    struct exti_span s;
    uint64_t word;

    *sound = false;
    if (!dll->lookup || i >= MOST_THUNKS ||
        !exti__pe_view_at(v, dll->lookup + i * width, width, &s))
        return false;
    *sound = true;
    word = v->plus ? exti__pe_word64(s.p) : exti__pe_word32(s.p);
    if (!word)
        return false;
    *out = (struct pe_thunk){.number = (uint16_t)word};
    if (word & ordinal)
        return true;
    out->name = exti__pe_view_text(v, word - base + 2, PE_VIEW_LONGEST_SYMBOL);
    *sound = out->name && exti__pe_view_at(v, word - base, 2, &s);
    if (*sound)
        out->number = exti__pe_word16(s.p);
    return *sound;
}
