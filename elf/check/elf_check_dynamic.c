/* Entries that an edit names must have their new value, all others their old one. */
#include "elf/check/elf_check_dynamic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/read/elf_withheld.h"

static uint64_t dynamic_at(const struct elf_file *f)
{
    return f->phdr[f->dynamic_phdr].p_offset;
}

/* Tags that have a check of their own. */
static bool has_own_check(int64_t tag)
{
    return tag == DT_NEEDED || tag == DT_SONAME || tag == DT_RPATH || tag == DT_RUNPATH ||
           tag == DT_FLAGS || tag == DT_FLAGS_1 || tag == DT_SYMBOLIC;
}

/* Tags for the place or size of a table that may move; other checks compare the contents. */
static bool is_placed(int64_t tag)
{
    return tag == DT_STRTAB || tag == DT_STRSZ || tag == DT_HASH || tag == DT_GNU_HASH;
}

/* The value to compare slot `i` by. */
static uint64_t comparable_value(const struct elf_file *f, size_t i)
{
    const GElf_Dyn *d = &f->dyn[i];

    if (is_placed(d->d_tag))
        return 0;
    /* Relative to the address of its own slot (glibc sysdeps/mips/dl-debug.h). */
    if (d->d_tag == DT_MIPS_RLD_MAP_REL && f->ehdr.e_machine == EM_MIPS)
        return f->phdr[f->dynamic_phdr].p_vaddr + i * exti__elf_dyn_size(f) + d->d_un.d_val;
    return d->d_un.d_val;
}

static int by_tag_and_value(const void *a, const void *b)
{
    const GElf_Dyn *x = a, *y = b;

    if (x->d_tag != y->d_tag)
        return x->d_tag < y->d_tag ? -1 : 1;
    return (x->d_un.d_val > y->d_un.d_val) - (x->d_un.d_val < y->d_un.d_val);
}

/* Gives the entries that no edit may touch, sorted, with constructors as withheld ones if
 * `withhold`.  The caller frees *out. */
static int kept_tags(const struct elf_file *f, bool withhold, GElf_Dyn **out, size_t *n,
                     struct exti_error *err)
{
    GElf_Dyn *kept = exti__calloc(f->dyn_count, sizeof *kept);

    if (!kept)
        return exti__fail_nomem(err);
    *n = 0;
    for (size_t i = 0; i < f->dyn_count; i++)
        if (!has_own_check(f->dyn[i].d_tag) && !exti__elf_tag_is_string(f->dyn[i].d_tag))
            kept[(*n)++] =
                (GElf_Dyn){withhold ? exti__elf_withheld_tag(f->dyn[i].d_tag) : f->dyn[i].d_tag,
                           {comparable_value(f, i)}};
    qsort(kept, *n, sizeof *kept, by_tag_and_value);
    *out = kept;
    return 0;
}

/* Loaders work without the relocation counts, so a full table may drop them for new entries. */
static bool is_dispensable(const struct elf_check *c, int64_t tag)
{
    return (tag == DT_RELACOUNT || tag == DT_RELCOUNT) &&
           c->after.dyn_count + 1 == c->after.dyn_slots;
}

static void compare_kept(struct elf_check *c, const GElf_Dyn *b, size_t bn, const GElf_Dyn *a,
                         size_t an)
{
    size_t i = 0, j = 0;

    while (i < bn || j < an) {
        int order = i == bn ? 1 : j == an ? -1 : by_tag_and_value(&b[i], &a[j]);

        if (order < 0 && !is_dispensable(c, b[i].d_tag))
            exti__elf_finding(c, dynamic_at(&c->after),
                              "PT_DYNAMIC: tag 0x%" PRIx64 " with value 0x%" PRIx64 " is gone",
                              (uint64_t)b[i].d_tag, b[i].d_un.d_val);
        else if (order > 0)
            exti__elf_finding(c, dynamic_at(&c->after),
                              "PT_DYNAMIC: tag 0x%" PRIx64 " with value 0x%" PRIx64
                              " is not in the original",
                              (uint64_t)a[j].d_tag, a[j].d_un.d_val);
        i += order <= 0;
        j += order >= 0;
    }
}

/* The next slot from `i` on with a string that no edit may change. */
static size_t next_string(const struct elf_file *f, size_t i)
{
    while (i < f->dyn_count &&
           (has_own_check(f->dyn[i].d_tag) || !exti__elf_tag_is_string(f->dyn[i].d_tag)))
        i++;
    return i;
}

static const char *shown(const char *text)
{
    return text ? text : "(none)";
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Compares DT_AUXILIARY, DT_FILTER, DT_CONFIG and similar entries. */
static void compare_strings(struct elf_check *c)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    size_t i = next_string(b, 0), j = next_string(a, 0);

    for (; i < b->dyn_count || j < a->dyn_count;
         i = next_string(b, i + 1), j = next_string(a, j + 1)) {
        const GElf_Dyn *x = i < b->dyn_count ? &b->dyn[i] : NULL;
        const GElf_Dyn *y = j < a->dyn_count ? &a->dyn[j] : NULL;
        const char *want = x ? exti__elf_check_text(b, x->d_un.d_val) : NULL;
        const char *have = y ? exti__elf_check_text(a, y->d_un.d_val) : NULL;

        if (x && y && x->d_tag == y->d_tag && same_text(want, have))
            continue;
        exti__elf_finding(c, y ? exti__elf_dyn_offset(a, j) : dynamic_at(a),
                          "PT_DYNAMIC: string tag 0x%" PRIx64 " \"%s\", not 0x%" PRIx64 " \"%s\"",
                          y ? (uint64_t)y->d_tag : 0, shown(have), x ? (uint64_t)x->d_tag : 0,
                          shown(want));
        if (!x || !y)
            return;
    }
}

int exti__elf_check_tags(struct elf_check *c, struct exti_error *err)
{
    const bool withheld = c->opts && c->opts->flags & EXTI_RW_WITHHOLD;
    GElf_Dyn *b = NULL, *a = NULL;
    size_t bn, an;
    int rc = kept_tags(&c->before, withheld || !c->opts, &b, &bn, err);

    if (!rc)
        rc = kept_tags(&c->after, !c->opts, &a, &an, err);
    if (!rc) {
        compare_kept(c, b, bn, a, an);
        compare_strings(c);
    }
    exti__free(b);
    exti__free(a);
    return rc;
}

/* Loaders walk to DT_NULL and do not stop at p_filesz; glibc sizes its list of needed libraries by
 * p_memsz (dl-deps.c).  Slots behind DT_NULL must stay as they were, or be zero. */
int exti__elf_check_terminator(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *b = &c->before, *a = &c->after;
    const GElf_Phdr *ph = &a->phdr[a->dynamic_phdr], *old = &b->phdr[b->dynamic_phdr];

    (void)err;
    if (a->dyn_count == a->dyn_slots &&
        (b->dyn_count < b->dyn_slots || a->dyn_slots != b->dyn_slots))
        exti__elf_finding(c, dynamic_at(a), "PT_DYNAMIC: no DT_NULL among its %zu entries",
                          a->dyn_slots);
    if (ph->p_memsz < ph->p_filesz &&
        (ph->p_filesz != old->p_filesz || ph->p_memsz != old->p_memsz))
        exti__elf_finding(c, dynamic_at(a),
                          "PT_DYNAMIC: p_memsz 0x%" PRIx64 " is less than p_filesz 0x%" PRIx64,
                          ph->p_memsz, ph->p_filesz);
    for (size_t i = a->dyn_count; i < a->dyn_slots; i++) {
        const GElf_Dyn *d = &a->dyn[i];
        bool was = i < b->dyn_slots && b->dyn[i].d_tag == d->d_tag &&
                   b->dyn[i].d_un.d_val == d->d_un.d_val && old->p_filesz >= ph->p_filesz;

        if (!was && (d->d_tag || d->d_un.d_val))
            exti__elf_finding(c, exti__elf_dyn_offset(a, i),
                              "PT_DYNAMIC: free slot %zu has tag 0x%" PRIx64 ", not 0", i,
                              (uint64_t)d->d_tag);
    }
    return 0;
}

static size_t count_tag(const struct elf_file *f, int64_t tag)
{
    size_t n = 0;

    for (size_t i = 0; i < f->dyn_count; i++)
        n += f->dyn[i].d_tag == tag;
    return n;
}

/* The tag must have one entry with the text `want`, or none when that is NULL. */
static void check_tag_string(struct elf_check *c, int64_t tag, const char *name, const char *want)
{
    const GElf_Dyn *d = exti__elf_tag(&c->after, tag);
    const char *have = exti__elf_check_tag_text(&c->after, tag);
    size_t n = count_tag(&c->after, tag), was = count_tag(&c->before, tag);

    if (!same_text(have, want) || (d && !have))
        exti__elf_finding(c, dynamic_at(&c->after), "%s: \"%s\", not \"%s\"", name, shown(have),
                          shown(want));
    if (n > 1 && n > was)
        exti__elf_finding(c, dynamic_at(&c->after), "%s: %zu entries, not %zu", name, n,
                          was ? was : 1);
}

/* For checks without opts: if there is an entry, its text must lie in DT_STRTAB. */
static void check_resolves(struct elf_check *c, int64_t tag, const char *name)
{
    const GElf_Dyn *d = exti__elf_tag(&c->after, tag);

    if (d && !exti__elf_check_text(&c->after, d->d_un.d_val))
        exti__elf_finding(c, dynamic_at(&c->after),
                          "%s: string 0x%" PRIx64 " lies outside DT_STRTAB of 0x%zx bytes", name,
                          (uint64_t)d->d_un.d_val, c->after.strtab.s.n);
}

int exti__elf_check_id(struct elf_check *c, struct exti_error *err)
{
    (void)err;
    if (c->opts)
        check_tag_string(c, DT_SONAME, "DT_SONAME", c->expect.id);
    else
        check_resolves(c, DT_SONAME, "DT_SONAME");
    return 0;
}

int exti__elf_check_path(struct elf_check *c, struct exti_error *err)
{
    const struct elf_expect *e = &c->expect;

    (void)err;
    if (!c->opts) {
        check_resolves(c, DT_RPATH, "DT_RPATH");
        check_resolves(c, DT_RUNPATH, "DT_RUNPATH");
        return 0;
    }
    check_tag_string(c, DT_RUNPATH, "DT_RUNPATH", e->runpath);
    check_tag_string(c, DT_RPATH, "DT_RPATH", e->rpath);
    return 0;
}

int exti__elf_check_needed(struct elf_check *c, struct exti_error *err)
{
    const struct elf_file *a = &c->after;
    const struct elf_expect *e = &c->expect;
    size_t n = 0;

    (void)err;
    for (size_t i = 0; i < a->dyn_count; i++) {
        const char *have, *want;

        if (a->dyn[i].d_tag != DT_NEEDED)
            continue;
        have = exti__elf_check_text(a, a->dyn[i].d_un.d_val);
        want = !c->opts ? have : n < e->needed_count ? e->needed[n] : NULL;
        if (!have || !same_text(have, want))
            exti__elf_finding(c, exti__elf_dyn_offset(a, i), "DT_NEEDED %zu: \"%s\", not \"%s\"", n,
                              shown(have), shown(want));
        n++;
    }
    for (; c->opts && n < e->needed_count; n++)
        exti__elf_finding(c, dynamic_at(a), "DT_NEEDED %zu: \"(none)\", not \"%s\"", n,
                          e->needed[n]);
    return 0;
}

static uint64_t flags_of(const struct elf_file *f, int64_t tag)
{
    const GElf_Dyn *d = exti__elf_tag(f, tag);

    return d ? d->d_un.d_val : 0;
}

/* DT_SYMBOLIC is the older spelling of DF_SYMBOLIC. */
static uint64_t effective_flags(const struct elf_file *f)
{
    return flags_of(f, DT_FLAGS) | (exti__elf_tag(f, DT_SYMBOLIC) ? DF_SYMBOLIC : 0);
}

/* Bits in `free_bits` may have any value. */
static void compare_flags(struct elf_check *c, const char *name, uint64_t have, uint64_t want,
                          uint64_t free_bits)
{
    if ((have ^ want) & ~free_bits)
        exti__elf_finding(c, dynamic_at(&c->after), "%s: 0x%" PRIx64 ", not 0x%" PRIx64, name, have,
                          want);
}

int exti__elf_check_flags(struct elf_check *c, struct exti_error *err)
{
    uint64_t flags = effective_flags(&c->before), flags_1 = flags_of(&c->before, DT_FLAGS_1);

    (void)err;
    if (c->opts && c->opts->flags & EXTI_RW_SYMBOLIC)
        flags |= DF_SYMBOLIC;
    if (c->opts && c->opts->flags & EXTI_RW_CLEAR_NODELETE)
        flags_1 &= ~(uint64_t)DF_1_NODELETE;
    compare_flags(c, "DT_FLAGS", effective_flags(&c->after), flags, c->opts ? 0 : DF_SYMBOLIC);
    compare_flags(c, "DT_FLAGS_1", flags_of(&c->after, DT_FLAGS_1), flags_1,
                  c->opts ? 0 : DF_1_NODELETE);
    return 0;
}
