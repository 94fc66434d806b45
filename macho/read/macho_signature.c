/* Reading a signature, and checking it as the kernel and `codesign --verify` do (xnu,
 * osfmk/kern/cs_blobs.h and bsd/kern/ubc_subr.c). */
#include "macho/read/macho_signature.h"

#include <string.h>

#include "base/error.h"
#include "base/os/sha256.h"

enum {
    /* Slots of CodeDirectories with other hash types than the one in slot 0. */
    ALTERNATE_FIRST = 0x1000,
    ALTERNATE_LAST = 0x1005,
    EMPTY_BLOB_SIZE = 8,
    /* SHA-256 truncated to 20 bytes. */
    HASHTYPE_SHA256_TRUNCATED = 3,
    TRUNCATED_SIZE = 20,
    HAS_TEAM = 0x20200,
    HAS_CODE_LIMIT_64 = 0x20300,
    HAS_EXEC_SEG = 0x20400
};

struct blob {
    uint32_t slot, magic;
    struct exti_span s;
};

struct directory {
    struct exti_span s;
    uint32_t version, flags, hash_offset, identifier_offset, special, pages, team_offset;
    uint64_t code_limit, exec_seg_base, exec_seg_limit, exec_seg_flags;
    uint8_t hash_size, hash_type, page_shift;
};

static int blob_count(struct exti_span sig, uint32_t *count, struct exti_error *err)
{
    struct exti_cur c = exti__cur(sig, true);
    const uint32_t magic = exti__cur_u32(&c), length = exti__cur_u32(&c);
    struct exti_span index;

    *count = exti__cur_u32(&c);
    if (exti__cur_end(&c, "code signature", err))
        return EXTI_E_FORMAT;
    if (magic != CSMAGIC_EMBEDDED_SIGNATURE)
        return exti__fail(err, EXTI_E_FORMAT, sig.base, "code signature: magic 0x%08x, not 0x%08x",
                          magic, CSMAGIC_EMBEDDED_SIGNATURE);
    if (length > sig.n)
        return exti__fail(err, EXTI_E_FORMAT, sig.base + 4,
                          "code signature: %u bytes, LC_CODE_SIGNATURE has %zu", length, sig.n);
    return exti__span_table(sig, 12, *count, 8, "code signature index", &index, err);
}

static int blob_at(struct exti_span sig, uint32_t i, struct blob *out, struct exti_error *err)
{
    struct exti_cur c = exti__cur(sig, true);
    struct exti_span header;
    uint32_t at, length;
    int rc;

    exti__cur_skip(&c, 12 + (uint64_t)i * 8);
    out->slot = exti__cur_u32(&c);
    at = exti__cur_u32(&c);
    rc = exti__span_sub(sig, at, 8, "code signature blob", &header, err);
    if (rc)
        return rc;
    c = exti__cur(header, true);
    out->magic = exti__cur_u32(&c);
    length = exti__cur_u32(&c);
    if (length < EMPTY_BLOB_SIZE)
        return exti__fail(err, EXTI_E_FORMAT, header.base + 4,
                          "code signature blob: %u bytes are less than its header", length);
    return exti__span_sub(sig, at, length, "code signature blob", &out->s, err);
}

static int read_directory(struct exti_span s, struct directory *d, struct exti_error *err)
{
    struct exti_cur c = exti__cur(s, true);
    uint64_t limit64 = 0;

    *d = (struct directory){.s = s};
    exti__cur_skip(&c, 8);
    d->version = exti__cur_u32(&c);
    d->flags = exti__cur_u32(&c);
    d->hash_offset = exti__cur_u32(&c);
    d->identifier_offset = exti__cur_u32(&c);
    d->special = exti__cur_u32(&c);
    d->pages = exti__cur_u32(&c);
    d->code_limit = exti__cur_u32(&c);
    d->hash_size = exti__cur_u8(&c);
    d->hash_type = exti__cur_u8(&c);
    exti__cur_skip(&c, 1);
    d->page_shift = exti__cur_u8(&c);
    exti__cur_skip(&c, 8);
    if (d->version >= HAS_TEAM)
        d->team_offset = exti__cur_u32(&c);
    if (d->version >= HAS_CODE_LIMIT_64) {
        exti__cur_skip(&c, 4);
        limit64 = exti__cur_u64(&c);
    }
    if (d->version >= HAS_EXEC_SEG) {
        d->exec_seg_base = exti__cur_u64(&c);
        d->exec_seg_limit = exti__cur_u64(&c);
        d->exec_seg_flags = exti__cur_u64(&c);
    }
    if (limit64)
        d->code_limit = limit64;
    return exti__cur_end(&c, "CodeDirectory", err);
}

static bool is_directory(const struct blob *b)
{
    return b->magic == CSMAGIC_CODEDIRECTORY &&
           (b->slot == CSSLOT_CODEDIRECTORY ||
            (b->slot >= ALTERNATE_FIRST && b->slot <= ALTERNATE_LAST));
}

/* The kernel takes the strongest hash type; this takes the one that it can compute. */
static bool is_better(const struct directory *d, const struct directory *than)
{
    return !than->s.n ||
           (d->hash_type == CS_HASHTYPE_SHA256 && than->hash_type != CS_HASHTYPE_SHA256);
}

static int read_blobs(struct exti_span sig, struct macho_signature *out, struct directory *best,
                      struct exti_error *err)
{
    struct directory d;
    struct blob b;
    uint32_t count;
    int rc = blob_count(sig, &count, err);

    for (uint32_t i = 0; !rc && i < count; i++) {
        rc = blob_at(sig, i, &b, err);
        if (rc)
            break;
        if (is_directory(&b)) {
            rc = read_directory(b.s, &d, err);
            if (!rc && is_better(&d, best))
                *best = d;
        } else if (b.slot == CSSLOT_REQUIREMENTS) {
            out->requirements = b.s;
        } else if (b.slot == CSSLOT_ENTITLEMENTS) {
            out->entitlements = b.s;
        } else if (b.slot == CSSLOT_DER_ENTITLEMENTS) {
            out->der_entitlements = b.s;
        } else if (b.slot == CSSLOT_SIGNATURESLOT) {
            out->has_cms = b.s.n > EMPTY_BLOB_SIZE;
        }
    }
    if (!rc && !best->s.n)
        rc = exti__fail(err, EXTI_E_FORMAT, sig.base, "code signature: no CodeDirectory");
    return rc;
}

static int read_signature(const struct macho_file *f, struct macho_signature *out,
                          struct directory *d, struct exti_error *err)
{
    const struct exti_span sig = f->pieces[MACHO_SIGNATURE].s;
    int rc;

    *out = (struct macho_signature){0};
    *d = (struct directory){0};
    /* Some tools reserve the command and leave the signature empty. */
    if (!sig.n)
        return 0;
    rc = read_blobs(sig, out, d, err);
    if (!rc)
        rc = exti__span_cstr(d->s, d->identifier_offset, "CodeDirectory identifier",
                             &out->identifier, err);
    if (!rc && d->team_offset)
        rc = exti__span_cstr(d->s, d->team_offset, "CodeDirectory team", &out->team, err);
    if (rc)
        return rc;
    out->present = true;
    out->code_directory = d->s;
    out->code_dir_flags = d->flags;
    out->linker_signed = d->flags & CS_LINKER_SIGNED;
    out->page_shift = d->page_shift;
    out->code_limit = d->code_limit;
    return 0;
}

int exti__macho_signature_read(const struct macho_file *f, struct macho_signature *out,
                               struct exti_error *err)
{
    struct macho_signature signature;
    struct directory d;
    int rc = read_signature(f, &signature, &d, err);

    if (!rc)
        *out = signature;
    return rc;
}

static int check_directory_fields(const struct macho_file *f, const struct directory *d,
                                  struct exti_error *err)
{
    const struct exti_span sig = f->pieces[MACHO_SIGNATURE].s;
    const uint64_t at = d->s.base, page = (uint64_t)1 << (d->page_shift & 63);
    const uint64_t dataoff = sig.base - f->file.base;

    if (!(d->hash_type == CS_HASHTYPE_SHA256 && d->hash_size == EXTI_SHA256_SIZE) &&
        !(d->hash_type == HASHTYPE_SHA256_TRUNCATED && d->hash_size == TRUNCATED_SIZE))
        return exti__fail(err, EXTI_E_UNSUPPORTED, at + 37,
                          "CodeDirectory: hash type %u of %u bytes, not SHA-256", d->hash_type,
                          d->hash_size);
    if (d->code_limit != dataoff)
        return exti__fail(err, EXTI_E_FORMAT, at + 32,
                          "CodeDirectory: codeLimit is %llu, the signature starts at %llu",
                          (unsigned long long)d->code_limit, (unsigned long long)dataoff);
    if (d->page_shift < 10 || d->page_shift > 31)
        return exti__fail(err, EXTI_E_FORMAT, at + 39, "CodeDirectory: pages of 2^%u bytes",
                          d->page_shift);
    if (d->pages != (dataoff + page - 1) / page)
        return exti__fail(err, EXTI_E_FORMAT, at + 28,
                          "CodeDirectory: hashes of %u pages, the file has %llu", d->pages,
                          (unsigned long long)((dataoff + page - 1) / page));
    if (d->version < HAS_EXEC_SEG)
        return 0;
    if (d->exec_seg_base != f->text->fileoff || d->exec_seg_limit != f->text->filesize)
        return exti__fail(
            err, EXTI_E_FORMAT, at + 64,
            "CodeDirectory: executable segment at %llu of %llu bytes, __TEXT is at %llu of %llu",
            (unsigned long long)d->exec_seg_base, (unsigned long long)d->exec_seg_limit,
            (unsigned long long)f->text->fileoff, (unsigned long long)f->text->filesize);
    if (!(d->exec_seg_flags & CS_EXECSEG_MAIN_BINARY) != (f->filetype != MH_EXECUTE))
        return exti__fail(err, EXTI_E_FORMAT, at + 80,
                          "CodeDirectory: executable segment flags 0x%llx, file type %u",
                          (unsigned long long)d->exec_seg_flags, f->filetype);
    return 0;
}

/* A special slot holds the hash of the blob with its number.  Slots of Info.plist and the
 * bundle's resources hash other files. */
static int check_blob(const struct directory *d, struct exti_span special, const struct blob *b,
                      struct exti_sha256 *h, struct exti_error *err)
{
    uint8_t hash[EXTI_SHA256_SIZE];
    struct exti_span slot;
    int rc;

    if (b->slot == CSSLOT_CODEDIRECTORY || b->slot >= ALTERNATE_FIRST)
        return 0;
    if (b->slot > d->special)
        return exti__fail(err, EXTI_E_FORMAT, b->s.base,
                          "code signature: the CodeDirectory has no hash of blob %u", b->slot);
    rc = exti__span_sub(special, (uint64_t)(d->special - b->slot) * d->hash_size, d->hash_size,
                        "special slots", &slot, err);
    if (rc)
        return rc;
    exti__sha256_add(h, b->s.p, b->s.n);
    rc = exti__sha256_end(h, hash, err);
    if (!rc && memcmp(hash, slot.p, d->hash_size) != 0)
        rc = exti__fail(err, EXTI_E_FORMAT, slot.base,
                        "CodeDirectory: the hash of blob %u does not match it", b->slot);
    return rc;
}

static int check_blobs(struct exti_span sig, const struct directory *d, struct exti_sha256 *h,
                       struct exti_error *err)
{
    const uint64_t size = (uint64_t)d->special * d->hash_size;
    struct exti_span special;
    struct blob b;
    uint32_t count;
    int rc;

    if (size > d->hash_offset)
        return exti__fail(err, EXTI_E_FORMAT, d->s.base + 24,
                          "CodeDirectory: %u special slots do not fit before its hashes at %u",
                          d->special, d->hash_offset);
    rc = exti__span_sub(d->s, d->hash_offset - size, size, "CodeDirectory special slots", &special,
                        err);
    if (!rc)
        rc = blob_count(sig, &count, err);
    for (uint32_t i = 0; !rc && i < count; i++) {
        rc = blob_at(sig, i, &b, err);
        if (!rc)
            rc = check_blob(d, special, &b, h, err);
    }
    return rc;
}

static int check_pages(struct exti_span file, const struct directory *d, struct exti_sha256 *h,
                       uint64_t *bad, struct exti_error *err)
{
    const uint64_t page = (uint64_t)1 << d->page_shift;
    uint8_t hash[EXTI_SHA256_SIZE];
    struct exti_span hashes, s;
    int rc = exti__span_table(d->s, d->hash_offset, d->pages, d->hash_size, "CodeDirectory hashes",
                              &hashes, err);

    *bad = EXTI_NO_OFFSET;
    for (uint64_t i = 0; !rc && i < d->pages; i++) {
        uint64_t left = d->code_limit - i * page;

        rc = exti__span_sub(file, i * page, left < page ? left : page, "signed page", &s, err);
        if (rc)
            break;
        exti__sha256_add(h, s.p, s.n);
        rc = exti__sha256_end(h, hash, err);
        if (!rc && memcmp(hash, hashes.p + i * d->hash_size, d->hash_size) != 0) {
            *bad = i * page;
            break;
        }
    }
    return rc;
}

int exti__macho_signature_check(const struct macho_file *f, uint64_t *bad, struct exti_error *err)
{
    const struct exti_span sig = f->pieces[MACHO_SIGNATURE].s;
    struct macho_signature signature;
    struct exti_sha256 h;
    struct directory d;
    uint64_t at;
    int rc = read_signature(f, &signature, &d, err);

    if (!rc && !signature.present)
        rc = exti__fail(err, EXTI_E_FORMAT, f->file.base, "LC_CODE_SIGNATURE: missing");
    if (!rc)
        rc = check_directory_fields(f, &d, err);
    if (!rc)
        rc = exti__sha256_init(&h, err);
    if (rc)
        return rc;
    rc = check_blobs(sig, &d, &h, err);
    if (!rc)
        rc = check_pages(f->file, &d, &h, &at, err);
    exti__sha256_free(&h);
    if (!rc)
        *bad = at;
    return rc;
}
