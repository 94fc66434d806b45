/* Ad hoc signatures: a SHA-256 hash per page and no certificate, laid out as lld does, followed
 * by the blobs kept from the old signature (structures in xnu, osfmk/kern/cs_blobs.h). */
#include "macho/edit/macho_sign.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/os/sha256.h"
#include "macho/read/macho_signature.h"

enum {
    SUPER_BLOB_SIZE = 12,
    BLOB_INDEX_SIZE = 8,
    BLOB_HEADER_SIZE = 8,
    /* CodeDirectory version 0x20400 is the first with the executable segment. */
    CODE_DIRECTORY_SIZE = 88,
    CODE_DIRECTORY_VERSION = 0x20400,
    PAGE_SHIFT = 12,
    SIGNATURE_ALIGN = 16,
    MOST_KEPT = 3
};

/* A blob of the old signature that the copy keeps. */
struct kept {
    uint32_t slot;
    struct exti_span s;
    uint64_t at; /* offset in the new signature */
};

struct layout {
    const char *identifier;
    size_t identifier_size; /* including its NUL */
    struct kept kept[MOST_KEPT];
    size_t kept_count;
    uint32_t special; /* number of hashes before the pages' */
    uint64_t directory, hashes, pages, directory_size, blob_size, size;
};

static void keep_blob(struct layout *l, uint32_t slot, struct exti_span s)
{
    if (!s.n)
        return;
    l->kept[l->kept_count++] = (struct kept){.slot = slot, .s = s};
    l->special = slot;
}

/* False if a size does not fit.  A certificate's requirements name that certificate; a copy
 * cannot have it and would fail them under `codesign --verify`.  Info.plist and resources (slots
 * 1 and 3) belong to the bundle that the original is in. */
static bool lay_out_signature(const struct macho_signature *old, const char *identifier,
                              uint64_t code_limit, struct layout *l)
{
    uint64_t at, directory;

    *l = (struct layout){.identifier = identifier};
    if (old->present) {
        if (old->identifier && *old->identifier)
            l->identifier = old->identifier;
        if (!old->has_cms)
            keep_blob(l, CSSLOT_REQUIREMENTS, old->requirements);
        keep_blob(l, CSSLOT_ENTITLEMENTS, old->entitlements);
        keep_blob(l, CSSLOT_DER_ENTITLEMENTS, old->der_entitlements);
    }
    l->identifier_size = strlen(l->identifier) + 1;
    l->pages = code_limit / CS_PAGE_SIZE + (code_limit % CS_PAGE_SIZE != 0);
    directory = SUPER_BLOB_SIZE + (1 + l->kept_count) * BLOB_INDEX_SIZE;
    directory = (directory + 7) / 8 * 8;
    if (l->identifier_size > UINT32_MAX || l->pages > UINT32_MAX / EXTI_SHA256_SIZE)
        return false;
    at = directory + CODE_DIRECTORY_SIZE + l->identifier_size;
    at += (uint64_t)l->special * EXTI_SHA256_SIZE;
    at = (at + SIGNATURE_ALIGN - 1) / SIGNATURE_ALIGN * SIGNATURE_ALIGN;
    l->directory = directory;
    l->hashes = at - directory;
    at += l->pages * EXTI_SHA256_SIZE;
    l->directory_size = at - directory;
    for (size_t i = 0; i < l->kept_count; i++) {
        l->kept[i].at = at;
        at += (l->kept[i].s.n + 3) / 4 * 4;
    }
    l->blob_size = at;
    l->size = (at + SIGNATURE_ALIGN - 1) / SIGNATURE_ALIGN * SIGNATURE_ALIGN;
    return l->size <= UINT32_MAX;
}

uint64_t exti__macho_signature_size(const struct macho_signature *old, const char *identifier,
                                    uint64_t code_limit)
{
    struct layout l;

    return lay_out_signature(old, identifier, code_limit, &l) ? l.size : UINT64_MAX;
}

static void put_index(uint8_t *p, size_t i, uint32_t slot, uint64_t at)
{
    exti__put_u32(p + SUPER_BLOB_SIZE + i * BLOB_INDEX_SIZE, slot, true);
    exti__put_u32(p + SUPER_BLOB_SIZE + i * BLOB_INDEX_SIZE + 4, (uint32_t)at, true);
}

/* CS_LINKER_SIGNED tells Apple's tools that signing again may drop everything, so it is set only
 * if the CodeDirectory is the only blob. */
static void put_directory(uint8_t *p, const struct layout *l, uint64_t code_limit,
                          const struct macho_signable *slice)
{
    exti__put_u32(p, CSMAGIC_CODEDIRECTORY, true);
    exti__put_u32(p + 4, (uint32_t)l->directory_size, true);
    exti__put_u32(p + 8, CODE_DIRECTORY_VERSION, true);
    exti__put_u32(p + 12, l->kept_count ? CS_ADHOC : CS_ADHOC | CS_LINKER_SIGNED, true);
    exti__put_u32(p + 16, (uint32_t)l->hashes, true);
    exti__put_u32(p + 20, CODE_DIRECTORY_SIZE, true);
    exti__put_u32(p + 24, l->special, true);
    exti__put_u32(p + 28, (uint32_t)l->pages, true);
    exti__put_u32(p + 32, (uint32_t)code_limit, true);
    p[36] = EXTI_SHA256_SIZE;
    p[37] = CS_HASHTYPE_SHA256;
    p[39] = PAGE_SHIFT;
    exti__put_u64(p + 72, slice->exec_seg_limit, true);
    exti__put_u64(p + 80, slice->exec_seg_flags, true);
    memcpy(p + CODE_DIRECTORY_SIZE, l->identifier, l->identifier_size);
}

static int put_kept(uint8_t *p, const struct layout *l, struct exti_sha256 *h,
                    struct exti_error *err)
{
    uint8_t *hashes = p + l->directory + l->hashes;

    for (size_t i = 0; i < l->kept_count; i++) {
        const struct kept *k = &l->kept[i];
        int rc;

        put_index(p, 1 + i, k->slot, k->at);
        memcpy(p + k->at, k->s.p, k->s.n);
        exti__sha256_add(h, k->s.p, k->s.n);
        rc = exti__sha256_end(h, hashes - (size_t)k->slot * EXTI_SHA256_SIZE, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Hashes page by page; one page may span several parts. */
static int hash_pages(struct exti_sha256 *h, const struct exti_span *parts, size_t count,
                      uint8_t *out, struct exti_error *err)
{
    size_t room = CS_PAGE_SIZE;
    int rc = 0;

    for (size_t i = 0; !rc && i < count; i++) {
        size_t n;

        for (size_t at = 0; !rc && at < parts[i].n; at += n) {
            n = parts[i].n - at < room ? parts[i].n - at : room;
            exti__sha256_add(h, parts[i].p + at, n);
            room -= n;
            if (room)
                continue;
            rc = exti__sha256_end(h, out, err);
            out += EXTI_SHA256_SIZE;
            room = CS_PAGE_SIZE;
        }
    }
    if (!rc && room != CS_PAGE_SIZE)
        rc = exti__sha256_end(h, out, err);
    return rc;
}

static int fill_blob(uint8_t *p, const struct layout *l, const struct macho_signable *slice,
                     struct exti_error *err)
{
    struct exti_sha256 h;
    int rc = exti__sha256_init(&h, err);

    if (rc)
        return rc;
    exti__put_u32(p, CSMAGIC_EMBEDDED_SIGNATURE, true);
    exti__put_u32(p + 4, (uint32_t)l->blob_size, true);
    exti__put_u32(p + 8, (uint32_t)(1 + l->kept_count), true);
    put_index(p, 0, CSSLOT_CODEDIRECTORY, l->directory);
    rc = put_kept(p, l, &h, err);
    if (!rc)
        rc = hash_pages(&h, slice->parts, slice->count, p + l->directory + l->hashes, err);
    exti__sha256_free(&h);
    return rc;
}

/* slice->parts may point into `out`, so `out` grows last. */
int exti__macho_sign(const struct macho_signature *old, const char *identifier,
                     const struct macho_signable *slice, struct exti_buf *out,
                     struct exti_error *err)
{
    struct exti_buf blob = exti__buf(UINT32_MAX);
    struct layout l;
    uint64_t code_limit = 0;
    int rc;

    for (size_t i = 0; i < slice->count; i++)
        if (!exti__add(code_limit, slice->parts[i].n, &code_limit) || code_limit > UINT32_MAX)
            return exti__fail(err, EXTI_E_NOSPACE, EXTI_NO_OFFSET,
                              "LC_CODE_SIGNATURE: the file would exceed 4 GiB");
    if (!lay_out_signature(old, identifier, code_limit, &l))
        return exti__fail(err, EXTI_E_NOSPACE, EXTI_NO_OFFSET,
                          "LC_CODE_SIGNATURE: the signature would exceed 4 GiB");
    rc = exti__buf_zeros(&blob, (size_t)l.size, err);
    if (!rc) {
        put_directory(blob.p + l.directory, &l, code_limit, slice);
        rc = fill_blob(blob.p, &l, slice, err);
    }
    if (!rc)
        rc = exti__buf_append(out, blob.p, blob.n, err);
    exti__buf_free(&blob);
    return rc;
}
