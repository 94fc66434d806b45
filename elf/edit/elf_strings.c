#define _GNU_SOURCE
/* Linkers share text: one string may be the end of another, and the same bytes may name a library,
 * a version and a symbol.  So a byte may change only if every reference to it wants the new value.
 * Otherwise the new text goes behind the table. */
#include "elf/edit/elf_strings.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/read/elf_hash.h"

enum { FREE, KEPT, CLAIMED };

int exti__elf_strings_init(struct elf_strings *s, const struct elf_file *f, struct exti_error *err)
{
    const size_t n = f->strtab.s.n;

    *s = (struct elf_strings){.f = f, .added = exti__buf(UINT32_MAX / 2)};
    s->bytes = exti__alloc(n);
    s->state = exti__calloc(n, 1);
    if (!s->bytes || !s->state)
        return exti__fail_nomem(err);
    memcpy(s->bytes, f->strtab.s.p, n);
    /* Offset 0 means "no name" to loaders and tools. */
    s->state[0] = KEPT;
    return 0;
}

void exti__elf_strings_free(struct elf_strings *s)
{
    exti__free(s->bytes);
    exti__free(s->state);
    exti__free(s->slots);
    exti__buf_free(&s->added);
    *s = (struct elf_strings){0};
}

int exti__elf_strings_keep(struct elf_strings *s, uint64_t off, const char *what,
                           struct exti_error *err)
{
    const char *text;
    int rc = exti__elf_string(s->f, off, what, &text, err);

    if (rc)
        return rc;
    /* A kept byte is kept up to its NUL, so the loop ends early where strings share their ends. */
    for (size_t i = (size_t)off; s->state[i] != KEPT; i++) {
        s->state[i] = KEPT;
        if (!s->bytes[i])
            break;
    }
    return 0;
}

/* Overwrites the string at `at` if it is long enough and every other reference to it agrees. */
static bool overwrite_string(struct elf_strings *s, uint64_t at, const char *text)
{
    const size_t n = strlen(text) + 1;
    const uint8_t *old = s->f->strtab.s.p + at;

    if (at >= s->f->strtab.s.n || n > s->f->strtab.s.n - at || memchr(old, 0, n - 1))
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t k = (size_t)at + i;

        if (s->state[k] != FREE && s->bytes[k] != (uint8_t)text[i])
            return false;
    }
    for (size_t i = 0; i < n; i++) {
        size_t k = (size_t)at + i;

        s->bytes[k] = (uint8_t)text[i];
        if (s->state[k] == FREE)
            s->state[k] = CLAIMED;
    }
    return true;
}

/* Finds `text` in the old bytes and claims it, so that a later edit does not overwrite it. */
static bool reuse_old_string(struct elf_strings *s, const char *text, uint64_t *off)
{
    const size_t n = strlen(text) + 1;
    const uint8_t *p = exti__mem_find(s->bytes, s->f->strtab.s.n, text, n);

    if (!p)
        return false;
    *off = (uint64_t)(p - s->bytes);
    for (size_t i = 0; i < n; i++)
        if (s->state[*off + i] == FREE)
            s->state[*off + i] = CLAIMED;
    return true;
}

/* The slot of `text` in the set of added strings: the one that has it, or a free one. */
static uint32_t *added_slot(struct elf_strings *s, const char *text)
{
    size_t i = exti__elf_gnu_hash(text) & (s->slot_count - 1);

    while (s->slots[i] && strcmp((const char *)s->added.p + s->slots[i] - 1, text) != 0)
        i = (i + 1) & (s->slot_count - 1);
    return &s->slots[i];
}

static int grow_slots(struct elf_strings *s, struct exti_error *err)
{
    size_t old_count = s->slot_count;
    uint32_t *old = s->slots;

    if (s->used * 2 < old_count)
        return 0;
    s->slot_count = old_count ? old_count * 2 : 64;
    s->slots = exti__calloc(s->slot_count, sizeof *s->slots);
    if (!s->slots) {
        s->slots = old;
        s->slot_count = old_count;
        return exti__fail_nomem(err);
    }
    for (size_t i = 0; i < old_count; i++)
        if (old[i])
            *added_slot(s, (const char *)s->added.p + old[i] - 1) = old[i];
    exti__free(old);
    return 0;
}

static int append_text(struct elf_strings *s, const char *text, uint64_t *off,
                       struct exti_error *err)
{
    int rc = grow_slots(s, err);
    uint32_t *slot;

    if (rc)
        return rc;
    slot = added_slot(s, text);
    if (!*slot) {
        uint32_t at = (uint32_t)s->added.n + 1;

        rc = exti__buf_append(&s->added, text, strlen(text) + 1, err);
        if (rc)
            return rc;
        *slot = at;
        s->used++;
    }
    *off = s->f->strtab.s.n + *slot - 1;
    if (*off > UINT32_MAX)
        return exti__fail(err, EXTI_E_NOSPACE, EXTI_NO_OFFSET, "DT_STRTAB: would grow past 4 GiB");
    return 0;
}

int exti__elf_strings_put(struct elf_strings *s, uint64_t old, const char *text, bool search,
                          uint64_t *off, struct exti_error *err)
{
    if (old != EXTI_NO_OFFSET && overwrite_string(s, old, text)) {
        *off = old;
        return 0;
    }
    if (search && reuse_old_string(s, text, off))
        return 0;
    return append_text(s, text, off, err);
}
