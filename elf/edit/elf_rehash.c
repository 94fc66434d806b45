/* Renames change the hash tables only.  Symbols keep their index, so relocations, versions and
 * MIPS's GOT order stay valid. */
#include "elf/edit/elf_rehash.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/edit/elf_encode.h"
#include "elf/read/elf_hash.h"

/* Gives symbol `i`'s old and new hash; false when it is not renamed. */
static bool renamed_hashes(const struct elf_edit *e, size_t i, uint32_t (*hash)(const char *),
                           uint32_t *old, uint32_t *new)
{
    if (!e->names[i])
        return false;
    *old = hash((const char *)e->f->strtab.s.p + e->f->sym[i].st_name);
    *new = hash(e->names[i]);
    return true;
}

/* Adds a hash to the bloom filter. */
static void add_to_bloom(const struct elf_file *f, uint8_t *bloom, uint32_t hash)
{
    const struct elf_gnu_hash *h = &f->gnu;
    const size_t size = f->is64 ? 8 : 4;
    const uint32_t bits = (uint32_t)size * 8;
    const size_t at = (hash / bits & (h->bloom_words - 1)) * size;
    const struct exti_span word = {.p = bloom + at, .n = size};
    uint64_t v = exti__elf_word_of(f, word, 0, size);

    v |= (uint64_t)1 << hash % bits | (uint64_t)1 << (hash >> h->shift) % bits;
    exti__elf_put_addr(f, bloom + at, v);
}

/* Writes the new chain words into `chain` and a filter for all names into `bloom`. */
static void patch_gnu(const struct elf_edit *e, uint8_t *bloom, uint8_t *chain)
{
    const struct elf_gnu_hash *h = &e->f->gnu;

    memset(bloom, 0, h->bloom.n);
    for (size_t i = h->first; i < h->first + h->chain.n / 4; i++) {
        const char *name = (const char *)e->f->strtab.s.p + e->f->sym[i].st_name;
        const uint32_t last = exti__elf_word(e->f, h->chain, i - h->first) & 1;
        const uint32_t hash = exti__elf_gnu_hash(e->names[i] ? e->names[i] : name);

        if (e->names[i])
            exti__elf_put_word(e->f, chain + (i - h->first) * 4, (hash & ~1u) | last);
        add_to_bloom(e->f, bloom, hash);
    }
}

/* DT_GNU_HASH needs symbols sorted by bucket, but they keep their order.  A table with one bucket
 * is sorted in any order.  Look-ups then compare each chain word, unless the bloom filter, which
 * still excludes most absent names, ends them. */
static int build_one_bucket(struct elf_edit *e, struct exti_error *err)
{
    const struct elf_gnu_hash *h = &e->f->gnu;
    struct elf_move *m = &e->move[ELF_MOVE_GNU_HASH];
    const size_t chain = 16 + h->bloom.n + 4;
    const size_t count = h->chain.n / 4;

    m->size = chain + h->chain.n;
    m->moves = true;
    m->bytes = exti__calloc((size_t)m->size, 1);
    if (!m->bytes)
        return exti__fail_nomem(err);
    exti__elf_put_word(e->f, m->bytes, 1);
    exti__elf_put_word(e->f, m->bytes + 4, h->first);
    exti__elf_put_word(e->f, m->bytes + 8, h->bloom_words);
    exti__elf_put_word(e->f, m->bytes + 12, h->shift);
    memcpy(m->bytes + 16, h->bloom.p, h->bloom.n);
    exti__elf_put_word(e->f, m->bytes + 16 + h->bloom.n, h->first);
    memcpy(m->bytes + chain, h->chain.p, h->chain.n);
    patch_gnu(e, m->bytes + 16, m->bytes + chain);
    for (size_t i = 0; i < count; i++) {
        const struct exti_span word = {.p = m->bytes + chain + i * 4, .n = 4};
        uint32_t v = exti__elf_word(e->f, word, 0) & ~1u;

        exti__elf_put_word(e->f, m->bytes + chain + i * 4, v | (i == count - 1));
    }
    return 0;
}

static int edit_gnu(struct elf_edit *e, struct exti_error *err)
{
    struct elf_move *m = &e->move[ELF_MOVE_GNU_HASH];
    bool changes = false, moves = false;
    const struct elf_gnu_hash *h = &e->f->gnu;
    uint32_t old, new;

    m->room = m->size = 16 + h->bloom.n + h->bucket.n + h->chain.n;
    for (size_t i = h->first; e->names && i < h->first + h->chain.n / 4; i++) {
        if (!renamed_hashes(e, i, exti__elf_gnu_hash, &old, &new))
            continue;
        changes |= old != new;
        moves |= old % h->buckets != new % h->buckets;
    }
    if (moves)
        return build_one_bucket(e, err);
    if (!changes)
        return 0;
    m->bytes = exti__alloc((size_t)m->size);
    if (!m->bytes)
        return exti__fail_nomem(err);
    memcpy(m->bytes, e->f->gnu_hash.s.p, (size_t)m->size);
    patch_gnu(e, m->bytes + 16, m->bytes + 16 + h->bloom.n + h->bucket.n);
    return 0;
}

/* Rebuilding DT_HASH: chains keep their order, and renamed symbols go to their new buckets. */
struct rebuild {
    uint64_t *last; /* per bucket: the last symbol of its new chain */
    uint8_t *seen;  /* per symbol: whether a chain reached it; twice means a loop */
    uint8_t *bucket, *chain;
};

static void chain_up(const struct elf_file *f, struct rebuild *r, uint64_t bucket, uint64_t sym)
{
    uint8_t *at = r->last[bucket] ? r->chain + r->last[bucket] * f->hash_word
                                  : r->bucket + bucket * f->hash_word;

    if (f->hash_word == 8)
        exti__put_u64(at, sym, f->big_endian);
    else
        exti__elf_put_word(f, at, (uint32_t)sym);
    r->last[bucket] = sym;
}

static int rebuild_bucket(const struct elf_edit *e, struct rebuild *r, uint64_t bucket,
                          struct exti_error *err)
{
    const struct elf_file *f = e->f;
    const struct elf_sysv_hash *h = &f->sysv;
    uint64_t sym = exti__elf_word_of(f, h->bucket, (size_t)bucket, f->hash_word);

    while (sym) {
        uint64_t to = bucket;

        if (sym >= h->chains || sym >= f->sym_count || r->seen[sym])
            return exti__fail(err, EXTI_E_FORMAT, h->bucket.base + bucket * f->hash_word,
                              "DT_HASH: the chain of bucket %" PRIu64 " loops or leaves the table",
                              bucket);
        r->seen[sym] = 1;
        if (e->names[sym])
            to = exti__elf_sysv_hash(e->names[sym]) % h->buckets;
        chain_up(f, r, to, sym);
        sym = exti__elf_word_of(f, h->chain, (size_t)sym, f->hash_word);
    }
    return 0;
}

static bool sysv_changes(const struct elf_edit *e, uint64_t buckets)
{
    uint32_t old, new;

    for (size_t i = 1; e->names && i < e->f->sym_count; i++)
        if (renamed_hashes(e, i, exti__elf_sysv_hash, &old, &new) && old % buckets != new % buckets)
            return true;
    return false;
}

static int edit_sysv(struct elf_edit *e, struct exti_error *err)
{
    struct elf_move *m = &e->move[ELF_MOVE_HASH];
    const struct elf_sysv_hash *h = &e->f->sysv;
    struct rebuild r = {0};
    size_t head = 2 * e->f->hash_word;
    int rc = 0;

    m->room = m->size = head + h->bucket.n + h->chain.n;
    if (!sysv_changes(e, h->buckets))
        return 0;
    m->bytes = exti__calloc((size_t)m->size, 1);
    r.last = exti__calloc((size_t)h->buckets, sizeof *r.last);
    r.seen = exti__calloc((size_t)h->chains, 1);
    if (m->bytes && r.last && r.seen) {
        memcpy(m->bytes, e->f->hash.s.p, head);
        r.bucket = m->bytes + head;
        r.chain = r.bucket + h->bucket.n;
        for (uint64_t b = 0; !rc && b < h->buckets; b++)
            rc = rebuild_bucket(e, &r, b, err);
    } else {
        rc = exti__fail_nomem(err);
    }
    exti__free(r.last);
    exti__free(r.seen);
    return rc;
}

static bool renames_a_definition(const struct elf_edit *e)
{
    uint32_t old, new;

    for (size_t i = 1; e->names && i < e->f->sym_count; i++)
        if (e->f->sym[i].st_shndx != SHN_UNDEF &&
            renamed_hashes(e, i, exti__elf_gnu_hash, &old, &new) && old != new)
            return true;
    return false;
}

int exti__elf_edit_hashes(struct elf_edit *e, struct exti_error *err)
{
    int rc = 0;

    if (exti__elf_tag(e->f, DT_MIPS_XHASH) && e->f->ehdr.e_machine == EM_MIPS &&
        renames_a_definition(e))
        return exti__fail(
            err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
            "DT_MIPS_XHASH: cannot rename a defined symbol to a name of another hash");
    if (e->f->gnu_hash.present)
        rc = edit_gnu(e, err);
    if (!rc && e->f->hash.present)
        rc = edit_sysv(e, err);
    return rc;
}
