/* Looks up each symbol with the loader's algorithms.  Shares nothing with the code that writes hash
 * tables, not even the hash functions. */
#include "elf/check/elf_check_hash.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/mem.h"
#include "elf/read/elf_symbols.h"

struct words {
    struct exti_span s;
    size_t size; /* bytes per word */
    bool big_endian;
};

/* Word `i`, where i < 2^60.  Past the end it sets *ok to false. */
static uint64_t word_at(const struct words *w, uint64_t i, bool *ok)
{
    const uint8_t *p;

    if (w->s.n < w->size || i * w->size > w->s.n - w->size) {
        *ok = false;
        return 0;
    }
    p = w->s.p + i * w->size;
    return w->size == 8 ? exti__bytes_u64(p, w->big_endian) : exti__bytes_u32(p, w->big_endian);
}

/* Bernstein's hash, as in glibc's dl-new-hash.h. */
static uint32_t times_33(const char *s)
{
    uint32_t h = 5381;

    while (*s)
        h = (h << 5) + h + (uint8_t)*s++;
    return h;
}

/* gABI, "Hash Table". */
static uint32_t gabi_hash(const char *s)
{
    uint32_t h = 0, top;

    while (*s) {
        h = (h << 4) + (uint8_t)*s++;
        top = h & 0xf0000000;
        h = (h ^ top >> 24) & ~top;
    }
    return h;
}

/* ---- DT_GNU_HASH ----------------------------------------------------------------------------- */

struct gnu_table {
    uint64_t buckets, first, blooms, shift;
    struct words bloom, bucket, chain;
};

static struct words words_at(const struct elf_file *f, struct exti_span s, uint64_t off,
                             uint64_t count, size_t size, bool *ok)
{
    struct words w = {.size = size, .big_endian = f->big_endian};

    if (exti__span_table(s, off, count, size, "", &w.s, NULL))
        *ok = false;
    return w;
}

/* All counts are below 2^32, so the sums cannot wrap. */
static bool decode_gnu_table(const struct elf_file *f, struct gnu_table *t)
{
    const size_t size = f->is64 ? 8 : 4;
    struct exti_span all = f->gnu_hash.s;
    bool ok = f->gnu_hash.present;
    struct words head = words_at(f, all, 0, 4, 4, &ok);
    uint64_t bucket_off, chain_off;

    if (!ok)
        return false;
    t->buckets = word_at(&head, 0, &ok);
    t->first = word_at(&head, 1, &ok);
    t->blooms = word_at(&head, 2, &ok);
    t->shift = word_at(&head, 3, &ok);
    bucket_off = 16 + t->blooms * size;
    chain_off = bucket_off + t->buckets * 4;
    t->bloom = words_at(f, all, 16, t->blooms, size, &ok);
    t->bucket = words_at(f, all, bucket_off, t->buckets, 4, &ok);
    t->chain =
        words_at(f, all, chain_off, t->first < f->sym_count ? f->sym_count - t->first : 0, 4, &ok);
    return ok && t->buckets && exti__is_power_of_2(t->blooms);
}

uint64_t exti__elf_gnu_hash_size(const struct elf_file *f)
{
    struct gnu_table t;

    return decode_gnu_table(f, &t) ? 16 + t.bloom.s.n + t.bucket.s.n + t.chain.s.n : 0;
}

/* glibc's do_lookup_x: bloom filter, bucket, then the chain until a word with bit 0 set.  The chain
 * is an array, so a look-up reaches symbol `i` if its bucket starts at or before `i` with no end of
 * a chain between them.  `run` is where the chain that `i` lies in starts. */
static bool gnu_reaches(const struct elf_file *f, const struct gnu_table *t, size_t i, uint64_t run)
{
    const char *name = exti__elf_check_text(f, f->sym[i].st_name);
    const uint64_t bits = t->bloom.size * 8;
    uint64_t filter, start, have;
    bool ok = name != NULL;
    uint32_t h;

    if (!ok)
        return false;
    h = times_33(name);
    filter = word_at(&t->bloom, h / bits & (t->blooms - 1), &ok);
    if (!(filter >> h % bits & filter >> (h >> (t->shift & 31)) % bits & 1))
        return false;
    start = word_at(&t->bucket, h % t->buckets, &ok);
    have = word_at(&t->chain, i - t->first, &ok);
    return ok && start >= t->first && start >= run && start <= i && (have | 1) == (h | 1);
}

static void gnu_reach(const struct elf_file *f, bool *reach)
{
    struct gnu_table t;
    uint64_t run;

    if (!decode_gnu_table(f, &t))
        return;
    run = t.first;
    for (size_t i = (size_t)t.first; i < f->sym_count; i++) {
        bool ok = true;

        reach[i] = gnu_reaches(f, &t, i, run);
        if (word_at(&t.chain, i - t.first, &ok) & 1)
            run = i + 1;
    }
}

/* ---- DT_HASH --------------------------------------------------------------------------------- */

struct sysv_table {
    uint64_t buckets, chains;
    struct words all;
};

static bool decode_sysv_table(const struct elf_file *f, struct sysv_table *t)
{
    bool wide = f->is64 && (f->ehdr.e_machine == EM_S390 || f->ehdr.e_machine == EM_ALPHA);
    bool ok = f->hash.present;

    t->all = (struct words){f->hash.s, wide ? 8 : 4, f->big_endian};
    t->buckets = ok ? word_at(&t->all, 0, &ok) : 0;
    t->chains = ok ? word_at(&t->all, 1, &ok) : 0;
    return ok && t->buckets && t->buckets < t->all.s.n && t->chains <= t->all.s.n;
}

uint64_t exti__elf_sysv_hash_size(const struct elf_file *f)
{
    struct sysv_table t;
    uint64_t size;

    if (!decode_sysv_table(f, &t))
        return 0;
    size = (2 + t.buckets + t.chains) * t.all.size;
    return size <= f->hash.s.n ? size : 0;
}

/* Visits each symbol once: a chain that runs into another one, or into itself, ends there. */
static void sysv_reach(const struct elf_file *f, bool *reach)
{
    struct sysv_table t;
    bool ok = decode_sysv_table(f, &t);

    for (uint64_t b = 0; ok && b < t.buckets; b++) {
        uint64_t i = word_at(&t.all, 2 + b, &ok);

        while (ok && i && i < f->sym_count && i < t.chains && !reach[i]) {
            const char *name = exti__elf_check_text(f, f->sym[i].st_name);

            if (!name || gabi_hash(name) % t.buckets != b)
                break;
            reach[i] = true;
            i = word_at(&t.all, 2 + t.buckets + i, &ok);
        }
    }
}

/* ---- the checks ------------------------------------------------------------------------------ */

static bool all_reached(const struct elf_file *f, const bool *reach)
{
    for (size_t i = 1; i < f->sym_count; i++)
        if (!reach[i] && exti__elf_is_defined(&f->sym[i]))
            return false;
    return true;
}

static void report_unreached(struct elf_check *c, const char *what, const bool *before,
                             const bool *after)
{
    size_t n = c->after.sym_count < c->before.sym_count ? c->after.sym_count : c->before.sym_count;

    for (size_t i = 1; i < n && !c->findings.stop; i++) {
        const char *name = exti__elf_check_text(&c->after, c->after.sym[i].st_name);

        if (before[i] && !after[i] && exti__elf_is_defined(&c->after.sym[i]))
            exti__elf_finding(c, exti__elf_sym_offset(&c->after, i),
                              "%s: a lookup of \"%s\" does not find symbol %zu", what,
                              name ? name : "(none)", i);
    }
}

/* Look-ups must reach in the copy every symbol that they reach in the original. */
static int compare_reach(struct elf_check *c, const char *what,
                         void (*fill)(const struct elf_file *f, bool *reach),
                         struct exti_error *err)
{
    bool *after = exti__calloc(c->after.sym_count, 1), *before = NULL;
    int rc = 0;

    if (!after)
        return exti__fail_nomem(err);
    fill(&c->after, after);
    if (!all_reached(&c->after, after)) {
        before = exti__calloc(c->before.sym_count, 1);
        if (before) {
            fill(&c->before, before);
            report_unreached(c, what, before, after);
        } else {
            rc = exti__fail_nomem(err);
        }
    }
    exti__free(after);
    exti__free(before);
    return rc;
}

int exti__elf_check_gnu_hash(struct elf_check *c, struct exti_error *err)
{
    return c->before.gnu_hash.present ? compare_reach(c, "DT_GNU_HASH", gnu_reach, err) : 0;
}

int exti__elf_check_sysv_hash(struct elf_check *c, struct exti_error *err)
{
    return c->before.hash.present ? compare_reach(c, "DT_HASH", sysv_reach, err) : 0;
}
