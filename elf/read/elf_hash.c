/* The two symbol hash tables: DT_HASH (gABI "Hash Table") and DT_GNU_HASH. */
#include "elf/read/elf_hash.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/error.h"

uint32_t exti__elf_gnu_hash(const char *name)
{
    uint32_t h = 5381;

    for (; *name; name++)
        h = h * 33 + (uint8_t)*name;
    return h;
}

uint32_t exti__elf_sysv_hash(const char *name)
{
    uint32_t h = 0;

    for (; *name; name++) {
        h = (h << 4) + (uint8_t)*name;
        h ^= h >> 24 & 0xf0;
        h &= 0x0fffffff;
    }
    return h;
}

/* Gives the chain words up to the end of the last chain, where the symbol table ends too. */
static int gnu_chains(const struct elf_file *f, struct elf_gnu_hash *h, uint64_t at,
                      struct exti_error *err)
{
    struct exti_span all = f->gnu_hash.s;
    uint32_t last = 0;
    int rc;

    for (uint32_t i = 0; i < h->buckets; i++) {
        uint32_t first = exti__elf_word(f, h->bucket, i);

        if (first && first < h->first)
            return exti__fail(err, EXTI_E_FORMAT, h->bucket.base + (uint64_t)i * 4,
                              "DT_GNU_HASH: bucket %" PRIu32 " starts at symbol %" PRIu32
                              ", before the first hashed symbol, %" PRIu32,
                              i, first, h->first);
        if (first > last)
            last = first;
    }
    if (!last)
        return exti__span_sub(all, at, 0, "DT_GNU_HASH chains", &h->chain, err);
    rc = exti__span_sub(all, at, all.n - at, "DT_GNU_HASH chains", &h->chain, err);
    for (uint64_t i = last - h->first; !rc && i < h->chain.n / 4; i++)
        if (exti__elf_word(f, h->chain, (size_t)i) & 1)
            return exti__span_sub(all, at, (i + 1) * 4, "DT_GNU_HASH chains", &h->chain, err);
    return rc ? rc
              : exti__fail(err, EXTI_E_FORMAT, h->chain.base,
                           "DT_GNU_HASH: the last chain is not terminated");
}

int exti__elf_gnu_table(struct elf_file *f, struct exti_error *err)
{
    struct exti_span all = f->gnu_hash.s;
    struct exti_cur c = exti__cur(all, f->big_endian);
    struct elf_gnu_hash h = {0};
    uint64_t at = 16;
    int rc;

    h.buckets = exti__cur_u32(&c);
    h.first = exti__cur_u32(&c);
    h.bloom_words = exti__cur_u32(&c);
    h.shift = exti__cur_u32(&c);
    rc = exti__cur_end(&c, "DT_GNU_HASH", err);
    if (rc)
        return rc;
    if (!h.buckets || !exti__is_power_of_2(h.bloom_words) || h.shift > 31)
        return exti__fail(err, EXTI_E_FORMAT, all.base,
                          "DT_GNU_HASH: %" PRIu32 " buckets, %" PRIu32
                          " bloom words, shift %" PRIu32
                          "; need at least 1, a power of 2, below 32",
                          h.buckets, h.bloom_words, h.shift);
    rc = exti__span_table(all, at, h.bloom_words, f->is64 ? 8 : 4, "DT_GNU_HASH bloom filter",
                          &h.bloom, err);
    if (rc)
        return rc;
    at += h.bloom.n;
    rc = exti__span_table(all, at, h.buckets, 4, "DT_GNU_HASH buckets", &h.bucket, err);
    if (!rc)
        rc = gnu_chains(f, &h, at + h.bucket.n, err);
    f->gnu = h;
    return rc;
}

int exti__elf_sysv_table(struct elf_file *f, struct exti_error *err)
{
    struct exti_span all = f->hash.s, head;
    struct elf_sysv_hash h = {0};
    int rc = exti__span_table(all, 0, 2, f->hash_word, "DT_HASH", &head, err);

    if (rc)
        return rc;
    h.buckets = exti__elf_word_of(f, head, 0, f->hash_word);
    h.chains = exti__elf_word_of(f, head, 1, f->hash_word);
    if (!h.buckets)
        return exti__fail(err, EXTI_E_FORMAT, all.base, "DT_HASH: no buckets");
    rc = exti__span_table(all, head.n, h.buckets, f->hash_word, "DT_HASH buckets", &h.bucket, err);
    if (!rc)
        rc = exti__span_table(all, head.n + h.bucket.n, h.chains, f->hash_word, "DT_HASH chains",
                              &h.chain, err);
    f->sysv = h;
    return rc;
}
