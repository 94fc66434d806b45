/* The code signature, by XNU's <kern/cs_blobs.h>; the digests are OpenSSL's. */
#include "tests/macho_inputs/loader/load.h"

#include <string.h>

#include <openssl/sha.h>

struct signature {
    const struct macho *m;
    uint64_t at, end;   /* in the slice */
    uint64_t directory; /* the CodeDirectory */
};

static uint32_t be32(const struct macho *m, uint64_t off)
{
    return __builtin_bswap32(get32(m, off));
}

static uint64_t be64(const struct macho *m, uint64_t off)
{
    return __builtin_bswap64(get64(m, off));
}

static void check_hash(const struct signature *s, uint64_t hash, uint64_t from, uint64_t len,
                       const char *what)
{
    const struct macho *m = s->m;
    uint8_t digest[SHA256_DIGEST_LENGTH];

    if (hash < s->directory || hash + sizeof digest > s->end)
        die("%s: signature: a digest is outside of it", m->path);
    SHA256(bytes_at(m, from, len), len, digest);
    if (memcmp(digest, bytes_at(m, hash, sizeof digest), sizeof digest) != 0)
        die("%s: signature: the digest of the %s at 0x%llx is wrong", m->path, what,
            (unsigned long long)from);
}

static void check_pages(const struct signature *s)
{
    const struct macho *m = s->m;
    uint64_t hashes = s->directory + be32(m, s->directory + 16);
    uint64_t count = be32(m, s->directory + 28), limit = be32(m, s->directory + 32);
    uint64_t page = (uint64_t)1 << *bytes_at(m, s->directory + 39, 1);

    if (limit != m->signature.off)
        die("%s: the signature covers 0x%llx bytes, not all", m->path, (unsigned long long)limit);
    if (count != (limit + page - 1) / page)
        die("%s: the signature has %llu digests", m->path, (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = i * page;

        check_hash(s, hashes + i * SHA256_DIGEST_LENGTH, from,
                   limit - from < page ? limit - from : page, "page");
    }
}

/* Blobs beside the directory have digests before those of the pages. */
static void check_special(const struct signature *s, uint32_t slot, uint64_t blob)
{
    uint64_t hashes = s->directory + be32(s->m, s->directory + 16);

    if (slot == 0 || slot >= 0x1000)
        return;
    if (slot > be32(s->m, s->directory + 24))
        die("%s: signature: slot %u has no digest", s->m->path, slot);
    check_hash(s, hashes - (uint64_t)slot * SHA256_DIGEST_LENGTH, blob, be32(s->m, blob + 4),
               "blob");
}

static void check_directory(const struct signature *s)
{
    const struct macho *m = s->m;
    uint64_t at = s->directory, text = 0;

    for (size_t i = 0; i < m->segment_count; i++)
        if (strcmp(m->segments[i].name, "__TEXT") == 0)
            text = m->segments[i].filesize;
    if (be32(m, at) != 0xfade0c02 || at + be32(m, at + 4) > s->end)
        die("%s: signature: no CodeDirectory where it should be", m->path);
    if (be32(m, at + 8) < 0x20400 || *bytes_at(m, at + 36, 1) != 32 ||
        *bytes_at(m, at + 37, 1) != 2)
        die("%s: signature: its version is 0x%x, or it is not SHA-256", m->path, be32(m, at + 8));
    if (!(be32(m, at + 12) & 2))
        die("%s: signature: is not marked as ad hoc", m->path);
    string_at(m, at + be32(m, at + 20), s->end);
    if (be64(m, at + 64) != 0 || be64(m, at + 72) != text)
        die("%s: signature: the executable segment is not __TEXT", m->path);
}

void check_signature(const struct macho *m)
{
    struct signature s = {m, m->signature.off, (uint64_t)m->signature.off + m->signature.size, 0};
    uint32_t count;

    if (!m->signature.size) {
        if (m->cputype == ARM64)
            die("%s: has no signature, which arm64 demands", m->path);
        return;
    }
    if (s.at % 16 || s.end != m->n)
        die("%s: the signature is not the file's aligned end", m->path);
    if (be32(m, s.at) != 0xfade0cc0 || be32(m, s.at + 4) > m->signature.size)
        die("%s: signature: no SuperBlob", m->path);
    count = be32(m, s.at + 8);
    for (uint32_t i = 0; i < count; i++)
        if (be32(m, s.at + 12 + 8 * (uint64_t)i) == 0)
            s.directory = s.at + be32(m, s.at + 16 + 8 * (uint64_t)i);
    if (!s.directory)
        die("%s: signature: no CodeDirectory", m->path);
    check_directory(&s);
    check_pages(&s);
    for (uint32_t i = 0; i < count; i++)
        check_special(&s, be32(m, s.at + 12 + 8 * (uint64_t)i),
                      s.at + be32(m, s.at + 16 + 8 * (uint64_t)i));
}
