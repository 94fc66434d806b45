#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/sha256.h"
#include "macho/edit/macho_sign.h"
#include "tests/support/exti_test.h"
#include "tests/unit/macho/macho_link.h"

/* A file as the signer sees it. */
struct signed_file {
    struct macho_segment text;
    struct macho_file f;
};

static uint64_t get_value(const uint8_t *p, size_t n, bool big)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[big ? n - 1 - i : i] << 8 * i;
    return v;
}

static uint32_t be(const uint8_t *p)
{
    return (uint32_t)get_value(p, 4, true);
}

/* Decodes the file without the reader, so that these tests depend on the signer alone. */
static struct macho_file *open_file(struct test *t, struct exti_span s)
{
    struct signed_file *o = test_alloc(t, sizeof *o);
    uint32_t count = (uint32_t)get_value(s.p + 16, 4, false);
    const uint8_t *p = s.p + MACH_HEADER_64_SIZE;

    o->f.file = s;
    o->f.filetype = (uint32_t)get_value(s.p + 12, 4, false);
    for (uint32_t i = 0; i < count; i++, p += get_value(p + 4, 4, false)) {
        if (get_value(p, 4, false) == LC_SEGMENT_64 && strcmp((const char *)p + 8, "__TEXT") == 0)
            o->text.filesize = get_value(p + 48, 8, false);
        if (get_value(p, 4, false) != LC_CODE_SIGNATURE)
            continue;
        o->f.pieces[MACHO_SIGNATURE].present = true;
        assert_int_equal(exti__span_sub(s, get_value(p + 8, 4, false), get_value(p + 12, 4, false),
                                        "signature", &o->f.pieces[MACHO_SIGNATURE].s, NULL),
                         0);
    }
    o->f.text = &o->text;
    return &o->f;
}

static struct exti_span code(const struct macho_file *f)
{
    return exti__span(f->file.p, f->pieces[MACHO_SIGNATURE].s.base);
}

/* Signs the code of `f` into a buffer of the fixture. */
static struct macho_file *sign(struct test *t, const struct macho_file *f,
                               const struct macho_signature *old, const char *identifier)
{
    struct exti_buf b = exti__buf(SIZE_MAX);
    struct exti_span part = code(f), all;
    struct macho_file *made;
    const size_t size = (size_t)exti__macho_signature_size(old, identifier, part.n);
    uint8_t *p = test_alloc(t, part.n + size);

    assert_ok(exti__macho_sign(old, identifier,
                               &(struct macho_signable){&part, 1, f->text->filesize, 0}, &b,
                               &t->err),
              &t->err);
    assert_int_equal(b.n, size);
    memcpy(p, part.p, part.n);
    memcpy(p + part.n, b.p, size);
    exti__buf_free(&b);
    all = exti__span(p, part.n + size);
    made = test_alloc(t, sizeof *made);
    *made = *f;
    made->file = all;
    made->pieces[MACHO_SIGNATURE].s =
        (struct exti_span){.p = p + part.n, .n = size, .base = part.n};
    return made;
}

static void assert_whole(struct test *t, const struct macho_file *f)
{
    uint64_t bad = 0;

    assert_ok(exti__macho_signature_check(f, &bad, &t->err), &t->err);
    assert_true(bad == EXTI_NO_OFFSET);
}

static void signs_as_lld_does(void **state)
{
    static const char *const options[] = {
        MACHO_BUNDLE "-adhoc_codesign -fixup_chains", MACHO_BUNDLE "-adhoc_codesign",
        MACHO_DYLIB "-adhoc_codesign", MACHO_DYLIB "-adhoc_codesign -sectcreate __DATA __big %s"};
    static const char *const names[] = {"ext.so", "a", "ext.cpython-311-darwin.so",
                                        "exactly-15.char"};
    struct test *t = *state;
    char *big;

    macho_skip_without_tools();
    big = test_path(t, "big");
    test_write(big, test_alloc(t, 300001), 300001);
    for (size_t i = 0; i < ARRAY_SIZE(macho_archs) * ARRAY_SIZE(options); i++) {
        const char *name = names[i % ARRAY_SIZE(names)];
        const char *plain = options[i / ARRAY_SIZE(macho_archs)];
        const char *with = strstr(plain, "%s")
                               ? test_format(t, "%.*s %s", (int)(strlen(plain) - 2), plain, big)
                               : plain;
        struct macho_file *f =
            open_file(t, macho_link(t, macho_archs[i % ARRAY_SIZE(macho_archs)], name, with));
        const struct exti_span *s = &f->pieces[MACHO_SIGNATURE].s;
        struct macho_signature old, none = {0};
        struct macho_file *made;

        assert_ok(exti__macho_signature_read(f, &old, &t->err), &t->err);
        assert_true(old.present && old.linker_signed && !old.has_cms);
        if (strncmp(plain, MACHO_DYLIB, strlen(MACHO_DYLIB)) == 0 &&
            strcmp(old.identifier, name) != 0)
            name = MACHO_DYLIB_IDENTIFIER;
        assert_string_equal(old.identifier, name);
        assert_int_equal(old.code_dir_flags, CS_ADHOC | CS_LINKER_SIGNED);
        assert_int_equal(old.page_shift, 12);
        assert_int_equal(old.code_limit, s->base);
        assert_whole(t, f);

        made = sign(t, f, &old, "ignored");
        assert_int_equal(made->file.n, f->file.n);
        assert_memory_equal(made->file.p, f->file.p, f->file.n);
        made = sign(t, f, &none, name);
        assert_int_equal(made->file.n, f->file.n);
        assert_memory_equal(made->file.p, f->file.p, f->file.n);
    }
}

/* A signature as codesign makes it: more blobs than the CodeDirectory, and large pages. */
struct recipe {
    const char *identifier, *team;
    uint8_t page_shift, hash_type, hash_size;
    struct {
        uint32_t slot, magic;
        const char *payload;
    } blobs[5];
};

static const struct recipe by_codesign = {
    "org.example.ext",
    NULL,
    14,
    CS_HASHTYPE_SHA256,
    32,
    {{CSSLOT_REQUIREMENTS, CSMAGIC_REQUIREMENTS, "none"},
     {CSSLOT_ENTITLEMENTS, CSMAGIC_EMBEDDED_ENTITLEMENTS, "<plist/>"},
     {CSSLOT_DER_ENTITLEMENTS, CSMAGIC_EMBEDDED_DER_ENTITLEMENTS, "der"},
     {CSSLOT_SIGNATURESLOT, CSMAGIC_BLOBWRAPPER, ""}}};

enum { SPECIAL = 7, DIRECTORY = 88, HASHES = 512 };

static void put32(uint8_t *p, uint64_t v)
{
    exti__put_u32(p, (uint32_t)v, true);
}

static void hash_into(uint8_t *to, const void *p, size_t n, size_t keep)
{
    uint8_t hash[EXTI_SHA256_SIZE];
    struct exti_sha256 h;

    assert_int_equal(exti__sha256_init(&h, NULL), 0);
    exti__sha256_add(&h, p, n);
    assert_int_equal(exti__sha256_end(&h, hash, NULL), 0);
    exti__sha256_free(&h);
    memcpy(to, hash, keep);
}

/* A file of `n` bytes of code and a signature, whose CodeDirectory starts at n + DIRECTORY. */
static struct macho_file *make_signed(struct test *t, const struct recipe *r, size_t n)
{
    struct signed_file *o = test_alloc(t, sizeof *o);
    uint8_t *file = test_alloc(t, n + 65536), *p = file + n, *d = p + DIRECTORY;
    const size_t page = (size_t)1 << r->page_shift, pages = (n + page - 1) / page;
    size_t at = DIRECTORY + HASHES + pages * r->hash_size, count = 1;

    for (size_t i = 0; i < n; i++)
        file[i] = (uint8_t)(i * 31 + i / 4096);
    put32(p + 16, DIRECTORY);
    put32(d, CSMAGIC_CODEDIRECTORY);
    put32(d + 4, HASHES + pages * r->hash_size);
    put32(d + 8, 0x20400);
    put32(d + 12, CS_ADHOC);
    put32(d + 16, HASHES);
    put32(d + 20, 88);
    put32(d + 24, SPECIAL);
    put32(d + 28, pages);
    put32(d + 32, n);
    d[36] = r->hash_size;
    d[37] = r->hash_type;
    d[39] = r->page_shift;
    put32(d + 76, n);
    strcpy((char *)d + 88, r->identifier);
    if (r->team) {
        put32(d + 48, 150);
        strcpy((char *)d + 150, r->team);
    }
    for (size_t i = 0; i < pages; i++)
        hash_into(d + HASHES + i * r->hash_size, file + i * page,
                  n - i * page < page ? n - i * page : page, r->hash_size);
    for (; r->blobs[count - 1].slot; count++) {
        const char *payload = r->blobs[count - 1].payload;
        const uint32_t slot = r->blobs[count - 1].slot;
        const size_t size = 8 + strlen(payload);

        put32(p + 12 + 8 * count, slot);
        put32(p + 16 + 8 * count, at);
        put32(p + at, r->blobs[count - 1].magic);
        put32(p + at + 4, size);
        memcpy(p + at + 8, payload, size - 8);
        if (slot <= SPECIAL)
            hash_into(d + HASHES - slot * r->hash_size, p + at, size, r->hash_size);
        at += size;
    }
    put32(p, CSMAGIC_EMBEDDED_SIGNATURE);
    put32(p + 4, at);
    put32(p + 8, count);
    o->text.filesize = n;
    o->f = (struct macho_file){.text = &o->text, .filetype = MH_DYLIB};
    o->f.file = exti__span(file, n + at);
    o->f.pieces[MACHO_SIGNATURE].present = true;
    o->f.pieces[MACHO_SIGNATURE].s = (struct exti_span){.p = p, .n = at, .base = n};
    return &o->f;
}

static void keeps_entitlements_and_requirements(void **state)
{
    struct test *t = *state;
    struct macho_file *f = make_signed(t, &by_codesign, 40000), *made;
    struct macho_signature old, new;
    const uint8_t *p;

    assert_whole(t, f);
    assert_ok(exti__macho_signature_read(f, &old, &t->err), &t->err);
    assert_true(old.present && !old.linker_signed && !old.has_cms && !old.team);
    made = sign(t, f, &old, "other");
    assert_whole(t, made);
    assert_ok(exti__macho_signature_read(made, &new, &t->err), &t->err);
    assert_string_equal(new.identifier, "org.example.ext");
    assert_int_equal(new.code_dir_flags, CS_ADHOC);
    assert_int_equal(new.page_shift, 12);
    assert_int_equal(new.requirements.n, 12);
    assert_memory_equal(new.requirements.p, old.requirements.p, 12);
    assert_memory_equal(new.entitlements.p, old.entitlements.p, old.entitlements.n);
    assert_memory_equal(new.der_entitlements.p, old.der_entitlements.p, old.der_entitlements.n);
    assert_false(new.has_cms);
    p = made->pieces[MACHO_SIGNATURE].s.p;
    assert_int_equal(be(p + 8), 4);
    /* CodeDirectory: 7 special slots; 1, 3, 4 and 6 are empty. */
    p = new.code_directory.p;
    assert_int_equal(be(p + 24), 7);
    for (size_t i = 0; i < 32; i++)
        assert_int_equal(p[be(p + 16) - 32 * 3 + i], 0);
    /* Signing twice equals signing once. */
    assert_memory_equal(sign(t, made, &new, "other")->file.p, made->file.p, made->file.n);
}

static void drops_an_identity_and_its_requirements(void **state)
{
    struct recipe r = by_codesign;
    struct test *t = *state;
    struct macho_signature old, new;
    struct macho_file *f;

    r.team = "TEAM123456";
    r.blobs[3].payload = "a certificate";
    f = make_signed(t, &r, 5000);
    assert_ok(exti__macho_signature_read(f, &old, &t->err), &t->err);
    assert_true(old.has_cms);
    assert_string_equal(old.team, "TEAM123456");
    f = sign(t, f, &old, "other");
    assert_whole(t, f);
    assert_ok(exti__macho_signature_read(f, &new, &t->err), &t->err);
    assert_false(new.has_cms);
    assert_null(new.team);
    assert_int_equal(new.requirements.n, 0);
    assert_int_equal(new.entitlements.n, 16);
}

static void uses_the_given_identifier_if_there_was_none(void **state)
{
    struct recipe r = by_codesign;
    struct test *t = *state;
    struct macho_signature old;

    r.identifier = "";
    assert_ok(exti__macho_signature_read(make_signed(t, &r, 5000), &old, &t->err), &t->err);
    assert_ok(
        exti__macho_signature_read(sign(t, make_signed(t, &r, 5000), &old, "given"), &old, &t->err),
        &t->err);
    assert_string_equal(old.identifier, "given");
}

/* Pages across several parts, parts in the growing buffer, an empty part, a short last page. */
static void signs_parts_as_it_signs_the_whole(void **state)
{
    const size_t sizes[] = {1, 4095, 0, 2, 8192, 3, 4096, 17};
    struct macho_signature none = {0};
    struct exti_span parts[ARRAY_SIZE(sizes)], whole;
    struct exti_buf a = exti__buf(SIZE_MAX), b = exti__buf(SIZE_MAX);
    struct test *t = *state;
    size_t at = 0;

    for (size_t i = 0; i < 16406; i++)
        assert_ok(exti__buf_append(&a, &(uint8_t){(uint8_t)(i * 7 + i / 251)}, 1, &t->err),
                  &t->err);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); at += sizes[i++])
        parts[i] = exti__span(a.p + at, sizes[i]);
    assert_int_equal(at, 16406);
    whole = exti__span(test_alloc(t, at), at);
    memcpy((void *)(uintptr_t)whole.p, a.p, at);
    assert_ok(exti__macho_sign(&none, "x", &(struct macho_signable){&whole, 1, 99, 0}, &b, &t->err),
              &t->err);
    assert_ok(exti__macho_sign(&none, "x",
                               &(struct macho_signable){parts, ARRAY_SIZE(parts), 99, 0}, &a,
                               &t->err),
              &t->err);
    assert_int_equal(a.n, at + b.n);
    assert_memory_equal(a.p + at, b.p, b.n);
    exti__buf_free(&a);
    exti__buf_free(&b);
}

static void reports_the_first_page_that_changed(void **state)
{
    static const size_t at[] = {0, 4095, 4096, 30000, 39999};
    struct recipe r = by_codesign;
    struct test *t = *state;
    struct macho_file *f;
    uint64_t bad;

    for (size_t i = 0; i < ARRAY_SIZE(at) * 2; i++) {
        size_t where = at[i / 2], page = i % 2 ? 16384 : 4096;

        r.page_shift = i % 2 ? 14 : 12;
        f = make_signed(t, &r, 40000);
        ((uint8_t *)(uintptr_t)f->file.p)[where] ^= 1;
        ((uint8_t *)(uintptr_t)f->file.p)[39999] ^= 2;
        assert_ok(exti__macho_signature_check(f, &bad, &t->err), &t->err);
        assert_int_equal(bad, where / page * page);
    }
}

static void reads_truncated_and_alternate_hashes(void **state)
{
    struct recipe r = by_codesign;
    struct test *t = *state;
    struct macho_signature s;
    struct macho_file *f;
    uint8_t *p, *d;
    uint64_t bad;

    r.hash_type = 3;
    r.hash_size = 20;
    assert_whole(t, make_signed(t, &r, 40000));

    r.hash_type = 1; /* SHA-1, for old systems; the SHA-256 directory is in slot 0x1000 */
    f = make_signed(t, &r, 40000);
    assert_exti(exti__macho_signature_check(f, &bad, &t->err), EXTI_E_UNSUPPORTED, &t->err,
                40000 + DIRECTORY + 37);
    f = make_signed(t, &by_codesign, 40000);
    p = (uint8_t *)(uintptr_t)f->pieces[MACHO_SIGNATURE].s.p;
    d = p + 2000;
    memcpy(d, p + DIRECTORY, 700);
    f->pieces[MACHO_SIGNATURE].s.n = 2700;
    f->file.n = 42700;
    put32(p + 4, 2700);
    put32(p + 8, 6);
    put32(p + 52, 0x1000);
    put32(p + 56, 2000);
    assert_int_equal(be(p + DIRECTORY), CSMAGIC_CODEDIRECTORY);
    p[DIRECTORY + 37] = 1;
    p[DIRECTORY + 36] = 20;
    assert_ok(exti__macho_signature_read(f, &s, &t->err), &t->err);
    assert_int_equal(s.code_directory.base, 42000);
    assert_whole(t, f);
}

/* Versions before 0x20400 have no executable segment; codeLimit64 is for files of more than 4
 * GiB. */
static void reads_older_and_larger_directories(void **state)
{
    struct test *t = *state;
    struct macho_file *f = make_signed(t, &by_codesign, 40000);
    uint8_t *d = (uint8_t *)(uintptr_t)f->pieces[MACHO_SIGNATURE].s.p + DIRECTORY;
    uint64_t bad;

    put32(d + 32, 0);
    put32(d + 60, 40000);
    assert_whole(t, f);
    put32(d + 56, 1);
    assert_exti(exti__macho_signature_check(f, &bad, &t->err), EXTI_E_FORMAT, &t->err,
                40000 + DIRECTORY + 32);
    put32(d + 8, 0x20200);
    put32(d + 32, 40000);
    put32(d + 76, 1);
    assert_whole(t, f);
}

/* Offsets are from the signature's start. */
static const struct {
    const char *what;
    uint32_t at, value, told;
} malformed[] =
    {
        {"magic 0x", 0, 0xfade0cc1, 0},
        {"LC_CODE_SIGNATURE has", 4, 0x7fffffff, 4},
        {"index", 8, 0x10000000, 12},
        {"no CodeDirectory", 8, 0, 0},
        {"no CodeDirectory", DIRECTORY, CSMAGIC_REQUIREMENTS, 0},
        {"blob", 16, 0x7ffffff0, 0x7ffffff0},
        {"less than its header", DIRECTORY + 4, 7, DIRECTORY + 4},
        {"blob", DIRECTORY + 4, 0x7fffffff, DIRECTORY},
        {"CodeDirectory", DIRECTORY + 4, 40, DIRECTORY + 40},
        {"identifier", DIRECTORY + 20, 0x7fffffff, DIRECTORY + 0x7fffffffu},
        {"team", DIRECTORY + 48, 0x7fffffff, DIRECTORY + 0x7fffffffu},
},
  wrong[] = {
      {"codeLimit is", DIRECTORY + 32, 39999, DIRECTORY + 32},
      {"hash type 2 of 20", DIRECTORY + 36, 0x1402000e, DIRECTORY + 37},
      {"pages of 2^9", DIRECTORY + 36, 0x20020009, DIRECTORY + 39},
      {"pages of 2^32", DIRECTORY + 36, 0x20020020, DIRECTORY + 39},
      {"hashes of 2 pages, the file has 3", DIRECTORY + 28, 2, DIRECTORY + 28},
      {"executable segment at 1 of 40000", DIRECTORY + 68, 1, DIRECTORY + 64},
      {"executable segment at 0 of 39999", DIRECTORY + 76, 39999, DIRECTORY + 64},
      {"flags 0x1", DIRECTORY + 84, 1, DIRECTORY + 80},
      {"17 special slots do not fit", DIRECTORY + 24, 17, DIRECTORY + 24},
      {"no hash of blob 7", DIRECTORY + 24, 6, DIRECTORY + HASHES + 3 * 32 + 12 + 16},
      {"no hash of blob 2", DIRECTORY + 24, 0, DIRECTORY + HASHES + 3 * 32},
      {"hash of blob 5", DIRECTORY + HASHES - 5 * 32, 0, DIRECTORY + HASHES - 5 * 32},
      {"special slots", DIRECTORY + 16, 0x7fffffff, DIRECTORY + 0x7fffffffu - 7 * 32},
      {"hashes", DIRECTORY + 4, HASHES + 3 * 32 - 1, DIRECTORY + HASHES},
};

static void refuses_malformed_signatures(void **state)
{
    struct test *t = *state;
    struct macho_signature s;
    uint64_t bad;

    {
        struct macho_file *f = make_signed(t, &by_codesign, 40000);

        f->pieces[MACHO_SIGNATURE].s.n = 11;
        assert_exti(exti__macho_signature_read(f, &s, &t->err), EXTI_E_FORMAT, &t->err, 40008);
    }
    for (size_t i = 0; i < ARRAY_SIZE(malformed) + ARRAY_SIZE(wrong); i++) {
        const bool is_wrong = i >= ARRAY_SIZE(malformed);
        const size_t k = is_wrong ? i - ARRAY_SIZE(malformed) : i;
        const uint32_t at = is_wrong ? wrong[k].at : malformed[k].at;
        struct macho_file *f = make_signed(t, &by_codesign, 40000);

        put32((uint8_t *)(uintptr_t)f->pieces[MACHO_SIGNATURE].s.p + at,
              is_wrong ? wrong[k].value : malformed[k].value);
        if (is_wrong) {
            assert_ok(exti__macho_signature_read(f, &s, &t->err), &t->err);
            assert_exti(exti__macho_signature_check(f, &bad, &t->err),
                        k == 1 ? EXTI_E_UNSUPPORTED : EXTI_E_FORMAT, &t->err,
                        40000 + wrong[k].told);
            assert_says(&t->err, wrong[k].what);
        } else {
            assert_exti(exti__macho_signature_read(f, &s, &t->err), EXTI_E_FORMAT, &t->err,
                        40000 + malformed[k].told);
            assert_says(&t->err, malformed[k].what);
        }
    }
}

static void refuses_to_check_an_unsigned_file(void **state)
{
    struct test *t = *state;
    struct macho_file *f = make_signed(t, &by_codesign, 5000);
    struct macho_signature s;
    uint64_t bad;

    f->pieces[MACHO_SIGNATURE].s.n = 0;
    assert_ok(exti__macho_signature_read(f, &s, &t->err), &t->err);
    assert_false(s.present);
    assert_exti(exti__macho_signature_check(f, &bad, &t->err), EXTI_E_FORMAT, &t->err, 0);
}

/* A CodeDirectory that all systems read cannot describe more than 4 GiB.  The part's bytes are
 * not read. */
static void refuses_what_passes_4_gib(void **state)
{
    struct test *t = *state;
    struct exti_span parts[2] = {exti__span("", UINT32_MAX), exti__span("", 1)};
    struct macho_signature none = {0}, old = {.present = true};
    struct exti_buf out = exti__buf(SIZE_MAX);

    assert_exti(
        exti__macho_sign(&none, "x", &(struct macho_signable){parts, 2, 0, 0}, &out, &t->err),
        EXTI_E_NOSPACE, &t->err, ANY_OFFSET);
    old.entitlements = exti__span("", UINT32_MAX);
    assert_true(exti__macho_signature_size(&old, "x", 4096) == UINT64_MAX);
    assert_exti(
        exti__macho_sign(&old, "x", &(struct macho_signable){parts + 1, 1, 0, 0}, &out, &t->err),
        EXTI_E_NOSPACE, &t->err, ANY_OFFSET);
    assert_true(exti__macho_signature_size(&none, "x", UINT64_MAX) == UINT64_MAX);
    assert_int_equal(out.n, 0);
}

static void leaves_the_buffer_alone_without_memory(void **state)
{
    struct test *t = *state;
    struct exti_span part = exti__span(test_alloc(t, 10000), 10000);
    struct macho_signature none = {0};
    struct exti_buf out = exti__buf(SIZE_MAX);
    int rc = EXTI_E_NOMEM;
    long n = 0;

    for (; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__macho_sign(&none, "x", &(struct macho_signable){&part, 1, 0, 0}, &out, &t->err);
        exti__mem_fail_after(-1);
        if (rc) {
            assert_exti(rc, EXTI_E_NOMEM, &t->err, ANY_OFFSET);
            assert_int_equal(out.n, 0);
        }
    }
    assert_true(n > 1);
    exti__buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(signs_as_lld_does),
        exti_test(keeps_entitlements_and_requirements),
        exti_test(drops_an_identity_and_its_requirements),
        exti_test(uses_the_given_identifier_if_there_was_none),
        exti_test(signs_parts_as_it_signs_the_whole),
        exti_test(reports_the_first_page_that_changed),
        exti_test(reads_truncated_and_alternate_hashes),
        exti_test(reads_older_and_larger_directories),
        exti_test(refuses_malformed_signatures),
        exti_test(refuses_to_check_an_unsigned_file),
        exti_test(refuses_what_passes_4_gib),
        exti_test(leaves_the_buffer_alone_without_memory),
    };

    return cmocka_run_group_tests_name("macho/macho_sign", tests, NULL, NULL);
}
