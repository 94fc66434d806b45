/* The code signature, from XNU's <kern/cs_blobs.h>; OpenSSL computes the digests. */
#include "tests/macho_inputs/loader/load.h"

#include <string.h>

#include <openssl/sha.h>

/* One CodeDirectory; a file may have several, for kernels that know other digests. */
struct directory {
    const struct macho *m;
    uint64_t at, end; /* offset in the slice; `end` is the whole signature's */
    uint64_t hashes;
    uint32_t hash_size;
};

static uint32_t be32(const struct macho *m, uint64_t off)
{
    return __builtin_bswap32(get32(m, off));
}

static uint64_t be64(const struct macho *m, uint64_t off)
{
    return __builtin_bswap64(get64(m, off));
}

static void check_hash(const struct directory *d, uint64_t hash, uint64_t from, uint64_t len,
                       const char *what)
{
    const struct macho *m = d->m;
    const uint8_t *bytes = bytes_at(m, from, len);
    uint8_t digest[SHA256_DIGEST_LENGTH];

    if (hash < d->at || hash + d->hash_size > d->end)
        die("%s: signature: a digest is outside of it", m->path);
    if (d->hash_size == SHA256_DIGEST_LENGTH)
        SHA256(bytes, len, digest);
    else
        SHA1(bytes, len, digest);
    if (memcmp(digest, bytes_at(m, hash, d->hash_size), d->hash_size) != 0)
        die("%s: signature: the digest of the %s at 0x%llx is wrong", m->path, what,
            (unsigned long long)from);
}

static void check_pages(const struct directory *d)
{
    const struct macho *m = d->m;
    uint64_t count = be32(m, d->at + 28), limit = be32(m, d->at + 32);
    uint64_t page = (uint64_t)1 << *bytes_at(m, d->at + 39, 1);

    if (limit != m->signature.off)
        die("%s: the signature covers 0x%llx bytes, not all", m->path, (unsigned long long)limit);
    if (count != (limit + page - 1) / page)
        die("%s: the signature has %llu digests", m->path, (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = i * page;

        check_hash(d, d->hashes + i * d->hash_size, from, limit - from < page ? limit - from : page,
                   "page");
    }
}

static void check_fields(const struct directory *d)
{
    const struct macho *m = d->m;
    uint64_t at = d->at, text = 0, limit;

    for (size_t i = 0; i < m->segment_count; i++)
        if (strcmp(m->segments[i].name, "__TEXT") == 0)
            text = m->segments[i].filesize;
    if (be32(m, at + 8) < 0x20400)
        die("%s: signature: its version is 0x%x", m->path, be32(m, at + 8));
    if (!(be32(m, at + 12) & 2))
        die("%s: signature: is not marked as ad hoc", m->path);
    string_at(m, at + be32(m, at + 20), d->end);
    limit = be64(m, at + 72);
    /* Newer linkers end it with the last section. */
    if (be64(m, at + 64) != 0 || limit == 0 || limit > text)
        die("%s: signature: the executable segment is not __TEXT", m->path);
}

static bool is_directory(uint32_t slot)
{
    return slot == 0 || (slot >= 0x1000 && slot < 0x1005);
}

/* An entry of the SuperBlob's index: a slot, and its blob's offset. */
static uint32_t slot_at(const struct macho *m, uint32_t i, uint64_t *blob)
{
    uint64_t entry = (uint64_t)m->signature.off + 12 + 8 * (uint64_t)i;

    *blob = m->signature.off + be32(m, entry + 4);
    if (*blob + 8 > m->n || *blob + be32(m, *blob + 4) > m->n)
        die("%s: signature: a blob reaches past its end", m->path);
    return be32(m, entry);
}

/* The digests of other blobs precede those of the pages. */
static void check_others(const struct directory *d, uint32_t count)
{
    const struct macho *m = d->m;
    uint64_t blob;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = slot_at(m, i, &blob);

        if (slot == 0 || slot >= 0x1000)
            continue;
        if (slot > be32(m, d->at + 24))
            die("%s: signature: slot %u has no digest", m->path, slot);
        check_hash(d, d->hashes - (uint64_t)slot * d->hash_size, blob, be32(m, blob + 4), "blob");
    }
}

static void check_directory(const struct macho *m, uint64_t at, uint32_t count)
{
    struct directory d = {m, at, m->n, at + be32(m, at + 16), *bytes_at(m, at + 36, 1)};
    uint8_t type = *bytes_at(m, at + 37, 1);

    if (be32(m, at) != 0xfade0c02)
        die("%s: signature: no CodeDirectory where it should be", m->path);
    if (!(type == 2 && d.hash_size == 32) && !(type == 1 && d.hash_size == 20))
        die("%s: signature: digests of type %u and size %u", m->path, type, d.hash_size);
    check_fields(&d);
    check_pages(&d);
    check_others(&d, count);
}

void check_signature(const struct macho *m)
{
    uint64_t at = m->signature.off, blob;
    uint32_t count, directories = 0;

    if (!m->signature.size) {
        if (m->cputype == ARM64)
            die("%s: has no signature, which arm64 demands", m->path);
        return;
    }
    if (at % 16 || at + m->signature.size != m->n)
        die("%s: the signature is not the file's aligned end", m->path);
    if (be32(m, at) != 0xfade0cc0 || be32(m, at + 4) > m->signature.size)
        die("%s: signature: no SuperBlob", m->path);
    count = be32(m, at + 8);
    for (uint32_t i = 0; i < count; i++) {
        if (is_directory(slot_at(m, i, &blob))) {
            check_directory(m, blob, count);
            directories++;
        }
    }
    if (!directories)
        die("%s: signature: no CodeDirectory", m->path);
}
