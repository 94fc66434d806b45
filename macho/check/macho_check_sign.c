/* The code signature, in the structure that the kernel reads (xnu, osfmk/kern/cs_blobs.h), and
 * its hashes. */
#include "macho/check/macho_check_sign.h"

#include <inttypes.h>
#include <string.h>

#include "base/os/sha256.h"
#include "macho/check/macho_check_report.h"

#define DIRECTORY_SIZE 44u      /* up to and including spare2, which all versions have */
#define EXEC_SEG_SIZE 88u       /* with the executable segment, from version 0x20400 on */
#define ALTERNATE_FIRST 0x1000u /* CodeDirectories with other hash types */
#define ALTERNATE_LAST 0x1004u

/* The self-check hashes one in SAMPLE of the pages that the plan made or that have no hash in
 * the original to compare with: a wrong signer is wrong for more than one page. */
#define SAMPLE 16

struct directory {
    struct exti_span s; /* n 0: there is none with SHA-256 */
    uint32_t flags, hashes, special, pages, identifier;
    uint64_t limit;
    unsigned page_shift;
};

struct signature {
    struct exti_span s, kept[8]; /* kept: the blobs that a copy keeps, by slot */
    struct directory dir;
    bool has_cms;
};

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t be64(const uint8_t *p)
{
    return (uint64_t)be32(p) << 32 | be32(p + 4);
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *read_directory(struct exti_span s, struct directory *d)
{
    if (s.n < DIRECTORY_SIZE)
        return "a CodeDirectory is cut short";
    if (s.p[37] != CS_HASHTYPE_SHA256)
        return NULL;
    *d = (struct directory){.s = s,
                            .flags = be32(s.p + 12),
                            .hashes = be32(s.p + 16),
                            .identifier = be32(s.p + 20),
                            .special = be32(s.p + 24),
                            .pages = be32(s.p + 28),
                            .limit = be32(s.p + 32),
                            .page_shift = s.p[39]};
    if (be32(s.p + 8) >= 0x20300 && s.n >= 64 && be64(s.p + 56))
        d->limit = be64(s.p + 56);
    if (s.p[36] != EXTI_SHA256_SIZE)
        return "a SHA-256 CodeDirectory has hashes of other than 32 bytes";
    if (d->page_shift < 12 || d->page_shift > 16)
        return "a CodeDirectory has pages of other than 4 to 64 KiB";
    if (d->identifier >= s.n || !memchr(s.p + d->identifier, 0, s.n - d->identifier))
        return "a CodeDirectory's identifier has no NUL";
    if (d->hashes > s.n || (uint64_t)d->special * EXTI_SHA256_SIZE > d->hashes ||
        (uint64_t)d->pages * EXTI_SHA256_SIZE > s.n - d->hashes)
        return "a CodeDirectory's hashes are outside it";
    return NULL;
}

static const char *read_blob(struct signature *sig, uint32_t slot, struct exti_span s)
{
    const uint32_t magic = be32(s.p);

    if (slot == CSSLOT_CODEDIRECTORY || (slot >= ALTERNATE_FIRST && slot <= ALTERNATE_LAST)) {
        if (magic != CSMAGIC_CODEDIRECTORY)
            return "a CodeDirectory has the wrong magic";
        return read_directory(s, &sig->dir);
    }
    if (slot == CSSLOT_SIGNATURESLOT)
        sig->has_cms = s.n > 8;
    if (slot == CSSLOT_REQUIREMENTS || slot == CSSLOT_ENTITLEMENTS ||
        slot == CSSLOT_DER_ENTITLEMENTS)
        sig->kept[slot] = s;
    return NULL;
}

/* Returns what is wrong, or NULL. */
static const char *read_signature(const struct macho_file *f, struct signature *sig)
{
    const struct exti_span s = f->pieces[MACHO_SIGNATURE].s;
    const char *fault = NULL;
    uint32_t count;

    *sig = (struct signature){.s = s};
    if (s.n < 12 || be32(s.p) != CSMAGIC_EMBEDDED_SIGNATURE)
        return "it does not have the magic of an embedded signature";
    count = be32(s.p + 8);
    if (be32(s.p + 4) > s.n || count > (s.n - 12) / 8)
        return "its length or count reaches past the end";
    for (uint32_t i = 0; !fault && i < count; i++) {
        struct exti_span blob = s;
        const uint32_t slot = be32(s.p + 12 + (size_t)i * 8), at = be32(s.p + 16 + (size_t)i * 8);

        if (at > s.n || s.n - at < 8 || be32(s.p + at + 4) > s.n - at || be32(s.p + at + 4) < 8)
            return "a blob is outside the signature";
        blob.p += at;
        blob.base += at;
        blob.n = be32(blob.p + 4);
        fault = read_blob(sig, slot, blob);
    }
    return fault || sig->dir.s.n ? fault : "no CodeDirectory with SHA-256";
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static const uint8_t *page_hash(const struct directory *d, uint64_t page)
{
    return d->s.p + d->hashes + page * EXTI_SHA256_SIZE;
}

static bool is_patched(const struct exti_plan *plan, uint64_t at, uint64_t end, size_t *next)
{
    while (*next < plan->count && plan->patches[*next].offset + plan->patches[*next].size <= at)
        ++*next;
    return *next < plan->count && plan->patches[*next].offset < end;
}

/* Whether to compute this page's hash.  A page that no patch or tail touches is the original's,
 * and the original's signature has its hash if it uses the same kind. */
static bool must_hash(const struct macho_check *c, const struct directory *old,
                      const struct directory *d, uint64_t page, size_t *next)
{
    const uint64_t at = page << d->page_shift, end = at + ((uint64_t)1 << d->page_shift);
    const uint64_t kept = c->plan && c->plan->tail.n ? c->plan->tail_offset : UINT64_MAX;

    if (!c->plan || c->judge.strict || is_patched(c->plan, at, end, next) || page + 1 == d->pages)
        return true;
    if (end <= kept && old->s.n && old->page_shift == d->page_shift && page + 1 < old->pages)
        return memcmp(page_hash(old, page), page_hash(d, page), EXTI_SHA256_SIZE) != 0;
    return page % SAMPLE == 0 || (at < kept && end > kept);
}

static int check_hashes(struct macho_check *c, const struct macho_file *f,
                        const struct directory *d, struct exti_error *err)
{
    const struct exti_span file = f->file;
    struct signature old;
    struct exti_sha256 h;
    size_t next = 0;
    int rc = exti__sha256_init(&h, err);

    if (rc)
        return rc;
    if (c->judge.strict || read_signature(&c->before, &old))
        old.dir.s.n = 0;
    for (uint64_t page = 0; !rc && page < d->pages; page++) {
        const uint64_t at = page << d->page_shift;
        uint64_t n = (uint64_t)1 << d->page_shift;
        uint8_t hash[EXTI_SHA256_SIZE];

        if (!must_hash(c, &old.dir, d, page, &next))
            continue;
        if (n > d->limit - at)
            n = d->limit - at;
        exti__sha256_add(&h, file.p + at, (size_t)n);
        rc = exti__sha256_end(&h, hash, err);
        if (!rc && memcmp(hash, page_hash(d, page), sizeof hash) != 0) {
            exti__macho_broken(c, f, at, "",
                               "code signature: the hash of the page at 0x%" PRIx64
                               " does not match its bytes",
                               at);
            break;
        }
    }
    exti__sha256_free(&h);
    return rc;
}

static int check_special(struct macho_check *c, const struct macho_file *f,
                         const struct signature *sig, struct exti_error *err)
{
    struct exti_sha256 h;
    int rc = exti__sha256_init(&h, err);

    if (rc)
        return rc;
    for (size_t slot = 0; !rc && slot < sizeof sig->kept / sizeof *sig->kept; slot++) {
        const struct exti_span blob = sig->kept[slot];
        uint8_t hash[EXTI_SHA256_SIZE];

        if (!blob.n)
            continue;
        exti__sha256_add(&h, blob.p, blob.n);
        rc = exti__sha256_end(&h, hash, err);
        if (!rc && (slot > sig->dir.special ||
                    memcmp(hash, sig->dir.s.p + sig->dir.hashes - slot * EXTI_SHA256_SIZE,
                           sizeof hash) != 0))
            exti__macho_broken(c, f, blob.base - f->file.base, "",
                               "code signature: the hash of slot %zu does not match its blob",
                               slot);
    }
    exti__sha256_free(&h);
    return rc;
}

/* ---- the rule and the step ------------------------------------------------------------------- */

static bool is_unchanged(const struct macho_check *c)
{
    const struct exti_span b = c->before.file, a = c->after.file;

    return !c->judge.strict && a.n == b.n &&
           (c->plan ? !c->plan->count && !c->plan->tail.n : memcmp(a.p, b.p, a.n) == 0);
}

static void check_code_directory(struct macho_check *c, const struct macho_file *f,
                                 const struct signature *sig)
{
    const struct directory *d = &sig->dir;
    const uint64_t at = sig->s.base - f->file.base,
                   pages = (d->limit + ((uint64_t)1 << d->page_shift) - 1) >> d->page_shift;

    if (d->limit != at)
        exti__macho_broken(c, f, at, "limit",
                           "dyld (F_ADDFILESIGS_RETURN): the signature covers 0x%" PRIx64
                           " bytes, not the 0x%" PRIx64 " before it",
                           d->limit, at);
    if (d->pages != pages)
        exti__macho_broken(c, f, at, "pages",
                           "code signature: %u page hashes for 0x%" PRIx64 " bytes, not %" PRIu64,
                           d->pages, d->limit, pages);
    if (!d->s.p[d->identifier])
        exti__macho_broken(c, f, at, "identifier", "code signature: the identifier is empty");
}

int exti__macho_rule_signature(struct macho_check *c, const struct macho_file *f,
                               struct exti_error *err)
{
    struct signature sig;
    const char *fault;
    int rc;

    /* The copy's signature is new, so faults in the original's do not excuse it. */
    if (c->judge.collecting || is_unchanged(c))
        return 0;
    if (!f->pieces[MACHO_SIGNATURE].present) {
        if (f->cputype == CPU_TYPE_ARM64)
            exti__macho_broken(c, f, EXTI_NO_OFFSET, "",
                               "code signature: missing; arm64 systems load no unsigned code");
        return 0;
    }
    fault = read_signature(f, &sig);
    if (fault) {
        exti__macho_broken(c, f, sig.s.base - f->file.base, "", "code signature: %s", fault);
        return 0;
    }
    check_code_directory(c, f, &sig);
    rc = check_special(c, f, &sig, err);
    if (!rc && sig.dir.limit <= f->file.n &&
        sig.dir.pages ==
            (sig.dir.limit + ((uint64_t)1 << sig.dir.page_shift) - 1) >> sig.dir.page_shift)
        rc = check_hashes(c, f, &sig.dir, err);
    return rc;
}

static bool same_blob(struct exti_span a, struct exti_span b)
{
    return a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0);
}

static void check_exec_segment(struct macho_check *c, const struct signature *sig)
{
    const struct exti_span s = sig->dir.s;
    const struct macho_file *a = &c->after;

    if (be32(s.p + 8) < 0x20400 || s.n < EXEC_SEG_SIZE)
        exti__macho_finding(
            c, sig->s.base - a->file.base,
            "code signature: CodeDirectory version 0x%x does not have the executable segment",
            be32(s.p + 8));
    else if (be64(s.p + 64) != a->text->fileoff || be64(s.p + 72) != a->text->filesize)
        exti__macho_finding(c, sig->s.base - a->file.base,
                            "code signature: executable segment 0x%" PRIx64 "+0x%" PRIx64
                            ", not 0x%" PRIx64 "+0x%" PRIx64,
                            be64(s.p + 64), be64(s.p + 72), a->text->fileoff, a->text->filesize);
}

/* A copy that differs has a new ad hoc signature, which keeps the original's entitlements and
 * requirements. */
int exti__macho_step_signature(struct macho_check *c, struct exti_error *err)
{
    struct signature was, now;

    (void)err;
    if (is_unchanged(c))
        return 0;
    if (!c->after.pieces[MACHO_SIGNATURE].present) {
        if (c->before.pieces[MACHO_SIGNATURE].present)
            exti__macho_finding(c, EXTI_NO_OFFSET, "code signature: lost");
        return 0;
    }
    if (read_signature(&c->after, &now))
        return 0;
    if (now.has_cms)
        exti__macho_finding(
            c, now.s.base - c->after.file.base,
            "code signature: made with a certificate, so it cannot be valid for a copy");
    if (!(now.dir.flags & CS_ADHOC))
        exti__macho_finding(c, now.s.base - c->after.file.base,
                            "code signature: flags 0x%x lack CS_ADHOC", now.dir.flags);
    check_exec_segment(c, &now);
    if (!c->before.pieces[MACHO_SIGNATURE].present || read_signature(&c->before, &was))
        return 0;
    for (uint32_t slot = 0; slot < sizeof now.kept / sizeof *now.kept; slot++)
        /* Requirements in a certificate's signature are about that certificate and are dropped. */
        if (!same_blob(was.kept[slot], now.kept[slot]) &&
            !(slot == CSSLOT_REQUIREMENTS && was.has_cms && !now.kept[slot].n))
            exti__macho_finding(c, now.s.base - c->after.file.base,
                                "code signature: slot %u differs from the original's", slot);
    if (was.dir.s.p[was.dir.identifier] &&
        strcmp((const char *)was.dir.s.p + was.dir.identifier,
               (const char *)now.dir.s.p + now.dir.identifier) != 0)
        exti__macho_finding(c, now.s.base - c->after.file.base,
                            "code signature: identifier %s, not %s",
                            (const char *)now.dir.s.p + now.dir.identifier,
                            (const char *)was.dir.s.p + was.dir.identifier);
    return 0;
}
