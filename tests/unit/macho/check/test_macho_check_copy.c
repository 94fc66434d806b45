/* The Mach-O self-check over real rewrites: accepts them, and finds each change made to them
 * afterwards. */
#include "tests/unit/macho/macho_findings.h"

#include "macho/macho_format.h"
#include "macho/read/macho_signature.h"
#include "tests/unit/macho/macho_link.h"

#define LONG_NAME                                                                                  \
    "/a-name-so-long-that-the-load-commands-have-no-room-for-it-before-the-first-section/"         \
    "and-so-the-contents-of-the-file-have-to-move/libpython3.11.dylib"

static const char provider_source[] = "char *Py_GetVersion(void) { return 0; }\n"
                                      "int Py_Flag;\n";
static const char copy_source[] =
    "extern char *Py_GetVersion(void);\n"
    "extern void *malloc(unsigned long);\n"
    "extern int Py_Flag, Py_Other;\n"
    "static int one, two;\n"
    "void *began;\n"
    "int *table[] = {&one, &two, &Py_Flag, &Py_Other};\n"
    "int ext_state(void) { return *table[0] += 1; }\n"
    "__attribute__((constructor)) static void start(void) { began = malloc(1); }\n"
    "int self(void) { return ext_state() + 1; }\n"
    "void *PyInit_ext(void) { return Py_GetVersion() ? malloc(8) : (void *)table; }\n";

struct copy {
    struct fixture f;
    struct exti_span before, provider;
    struct exti_needed needed;
    struct exti_rewrite_opts opts;
    struct exti_request req;
    uint8_t *after;
    size_t n;
    struct macho_file file; /* of `after`; closed at the test's end */
};

static struct exti_span link_text(struct test *t, const char *source, const char *name,
                                  const char *options)
{
    const char *out = test_path(t, name), *tbd = test_path(t, "libSystem.tbd");
    const char *c = test_path(t, "x.c"), *o = test_path(t, "x.o");
    char *argv[32] = {MACHO_LD, "-arch", "x86_64", "-undefined", "dynamic_lookup"}, *text;
    size_t n = 5, size;

    test_write(c, source, strlen(source));
    test_write(tbd, macho_tbd, sizeof macho_tbd - 1);
    test_must_run(t, MACHO_CC, "-target", "x86_64-apple-macos11", "-O1", "-fPIC",
                  "-fno-stack-protector", "-c", c, "-o", o, (char *)NULL);
    for (char *p = strtok(test_format(t, "%s", options), " "); p; p = strtok(NULL, " "))
        argv[n++] = p;
    argv[n++] = (char *)o;
    argv[n++] = (char *)tbd;
    argv[n++] = "-o";
    argv[n++] = (char *)out;
    argv[n] = NULL;
    if (test_runv(t, &text, argv))
        fail_msg("%s: %s", MACHO_LD, text);
    text = test_read(t, out, &size);
    return exti__span(text, size);
}

static struct copy *copy_of(struct test *t, struct exti_span before, const char *bind_name)
{
    struct copy *k = test_alloc(t, sizeof *k);
    struct exti_plan plan;

    k->provider = link_text(t, provider_source, "p.dylib", MACHO_DYLIB);
    k->before = before;
    k->needed = (struct exti_needed){NULL, bind_name, EXTI_NEEDED_LAST};
    k->opts = (struct exti_rewrite_opts){.size = sizeof k->opts,
                                         .id = "/p2",
                                         .needed = &k->needed,
                                         .needed_count = 1,
                                         .path_prepend = "$ORIGIN",
                                         .flags = EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_UNIQUE,
                                         .bind_file = "p.dylib",
                                         .bind_name = bind_name};
    k->req = (struct exti_request){.opts = &k->opts, .bind = &k->provider, .bind_count = 1};
    exti__plan_init(&plan, k->before.n * 8 + 0x100000);
    assert_ok(exti__macho_format.plan(k->before, &k->req, &plan, &k->f.err), &k->f.err);
    k->n = (size_t)exti__plan_size(&plan, k->before.n);
    k->after = test_alloc(t, k->n > k->before.n ? k->n : k->before.n);
    memcpy(k->after, k->before.p, k->before.n);
    exti__plan_apply(&plan, k->after, k->before.n);
    k->f.findings = 0;
    assert_ok(exti__macho_check(k->before, exti__span(k->after, k->n), &k->req, &plan, note_finding,
                                &k->f, &k->f.err),
              &k->f.err);
    exti__plan_free(&plan);
    if (k->f.findings)
        fail_msg("finding: %s", k->f.first.message);
    return k;
}

static struct copy *make_copy(struct test *t, const char *options, const char *bind_name)
{
    return copy_of(t, link_text(t, copy_source, "c.dylib", options), bind_name);
}

static void check_copy(struct copy *k, const struct exti_request *req)
{
    assert_ok(check_spans(&k->f, k->before, exti__span(k->after, k->n), req), &k->f.err);
}

static void assert_copy_clean(struct copy *k, const struct exti_request *req)
{
    check_copy(k, req);
    if (k->f.findings)
        fail_msg("finding: %s", k->f.first.message);
}

static void assert_found(struct copy *k, const struct exti_request *req, const char *says)
{
    check_copy(k, req);
    assert_true(k->f.findings > 0);
    assert_says(&k->f.first, says);
}

static const char *const shapes[] = {MACHO_DYLIB "-fixup_chains", MACHO_DYLIB "-no_fixup_chains",
                                     MACHO_DYLIB "-fixup_chains -init_offsets",
                                     MACHO_DYLIB "-no_fixup_chains -adhoc_codesign",
                                     MACHO_DYLIB "-no_fixup_chains -headerpad_max_install_names"};

static void copies_pass_with_the_edits_that_made_them(void **state)
{
    struct test *t = *state;

    macho_skip_without_tools();
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
        for (int is_long = 0; is_long < 2; is_long++) {
            struct copy *k = make_copy(t, shapes[i], is_long ? LONG_NAME : "/p1");

            assert_copy_clean(k, &k->req);
            assert_copy_clean(k, NULL);
        }
}

static void a_copy_with_other_edits_is_reported(void **state)
{
    struct exti_needed needed[2] = {{NULL, "/p9", EXTI_NEEDED_LAST},
                                    {NULL, "/p1", EXTI_NEEDED_LAST}};
    struct test *t = *state;
    struct exti_rewrite_opts o;
    struct exti_request req;
    struct copy *k;

    macho_skip_without_tools();
    for (size_t i = 0; i < 2; i++) {
        k = make_copy(t, shapes[i], "/p1");
        req = (struct exti_request){.opts = &o, .bind = &k->provider, .bind_count = 1};

        o = k->opts;
        o.id = "/p3";
        assert_found(k, &req, "id: /p2, not /p3");
        o = k->opts;
        o.needed = needed;
        o.needed_count = 2;
        assert_found(k, &req, "needed library 2: /p1, not /p9");
        needed[0].to = "/p1";
        needed[0].where = EXTI_NEEDED_FIRST;
        o.needed_count = 1;
        assert_found(k, &req, "needed library 1: /usr/lib/libSystem.B.dylib, not /p1");
        needed[0] = (struct exti_needed){NULL, "/p9", EXTI_NEEDED_LAST};
        o = k->opts;
        o.path_prepend = "$ORIGIN/../x";
        assert_found(k, &req, "search path 1: @loader_path, not @loader_path/../x");
        o.path_prepend = "$ORIGIN:/y";
        assert_found(k, &req, "search path /y is missing");
        o = k->opts;
        o.bind_name = NULL;
        assert_found(k, &req, "bound to /p1 (2)");
        o = k->opts;
        req.bind_count = 0;
        assert_found(k, &req, "in the original, to a flat look-up (-2)");
        req.bind = &k->before;
        req.bind_count = 1;
        assert_found(k, &req, "in the original, to a flat look-up (-2)");
    }
}

/* ---- tampering ------------------------------------------------------------------------------- */

static size_t section_at(const struct copy *k, const struct macho_file *f, const char *name)
{
    for (size_t i = 0; i < f->section_count; i++)
        if (strcmp(f->sections[i].name, name) == 0)
            return f->sections[i].offset;
    (void)k;
    fail_msg("no section %s", name);
    return 0;
}

static uint32_t get32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* Undoes the shift of one number, as if the rewriter had missed it. */
static void forget(struct copy *k, size_t at, const char *says)
{
    uint32_t was = get32(k->after + at);

    if (was < 0x4000)
        fail_msg("%s: 0x%x at 0x%zx", says, was, at);
    put32(k->after + at, was - 0x4000);
    assert_found(k, &k->req, says);
    assert_found(k, NULL, says);
    put32(k->after + at, was);
}

static void numbers_that_did_not_move_are_found(void **state)
{
    struct test *t = *state;

    macho_skip_without_tools();
    for (size_t i = 0; i < 3; i++) {
        struct copy *k = make_copy(t, shapes[i], LONG_NAME);
        struct macho_file m;
        size_t unwind, index, data, symbols, second = 0x4000;

        assert_ok(exti__macho_open(exti__span(k->after, k->n), &m, &k->f.err), &k->f.err);
        unwind = section_at(k, &m, "__unwind_info");
        data = section_at(k, &m, "__data");
        symbols = m.pieces[MACHO_SYMBOLS].s.base;
        /* The first rebased pointer; bound ones hold no address. */
        while (get32(k->after + data) < 0x4000)
            data += 8;
        index = unwind + get32(k->after + unwind + 20);
        if (i == 2)
            forget(k, section_at(k, &m, "__init_offsets"), "__init_offsets: address 0x");
        exti__macho_close(&m);

        forget(k, index, "__unwind_info: address 0x");
        forget(k, data, "__data: address 0x");
        forget(k, symbols + 8, "value 0x");
        forget(k, second + MACH_HEADER_64_SIZE + 24, "second header");
        k->after[second + 16] ^= 1;
        assert_found(k, &k->req, "second header");
        k->after[second + 16] ^= 1;
        k->after[second - 1] = 1;
        assert_found(k, &k->req, "after the load commands");
        k->after[second - 1] = 0;
        assert_copy_clean(k, &k->req);
    }
}

/* Changes each byte of [at, end) by every bit pattern of `mask`; counts the changes that are not
 * found. */
static size_t not_found(struct copy *k, size_t at, size_t end, uint8_t mask)
{
    size_t missed = 0;

    for (; at < end; at++) {
        k->after[at] ^= mask;
        check_copy(k, &k->req);
        missed += k->f.findings == 0;
        k->after[at] ^= mask;
    }
    return missed;
}

static void every_changed_byte_of_content_is_found(void **state)
{
    struct test *t = *state;

    macho_skip_without_tools();
    for (size_t i = 0; i < 2; i++)
        for (int is_long = 0; is_long < 2; is_long++) {
            struct copy *k = make_copy(t, shapes[i], is_long ? LONG_NAME : "/p1");
            struct macho_file m;
            struct exti_span trie;
            uint64_t begin, end;
            size_t at;

            assert_ok(exti__macho_open(exti__span(k->after, k->n), &m, &k->f.err), &k->f.err);
            begin = m.room_end;
            end = m.linkedit->fileoff;
            trie = m.pieces[i ? MACHO_EXPORT : MACHO_EXPORTS_TRIE].s;
            exti__macho_close(&m);
            assert_int_equal(not_found(k, (size_t)begin, (size_t)begin + 0x400, 0x10), 0);
            assert_int_equal(not_found(k, (size_t)end - 0x400, (size_t)end, 1), 0);
            at = (size_t)trie.base;
            /* The trie's last node is a leaf; padding follows. */
            assert_int_equal(not_found(k, at, at + trie.n - 8, 1), 0);
        }
}

/* An edit is not repeated if the copy has the library under its short name. */
static void short_name_counts_as_the_long_one(void **state)
{
    static const struct exti_needed add = {NULL, LONG_NAME, EXTI_NEEDED_FIRST};
    struct test *t = *state;

    macho_skip_without_tools();
    for (size_t i = 0; i < 2; i++) {
        struct copy *k = make_copy(t, shapes[i], "/p1");
        struct exti_plan plan;

        k->before = exti__span(k->after, k->n);
        k->opts.needed = &add;
        k->opts.bind_name = LONG_NAME;
        k->opts.bind_short = "/p1";
        exti__plan_init(&plan, k->n);
        assert_ok(exti__macho_format.plan(k->before, &k->req, &plan, &k->f.err), &k->f.err);
        assert_int_equal(plan.count + plan.tail.n, 0);
        exti__plan_free(&plan);
        assert_copy_clean(k, &k->req);
    }
}

/* Verifying does not know the edits.  The merged library has a command that only one of the two
 * had, which may be the one without the versions that it keeps. */
static void merged_libraries_pass_without_the_edits_too(void **state)
{
    static const struct exti_needed ops[][2] = {
        {{MTOY_REEXPORT, "/y", EXTI_NEEDED_LAST}, {MTOY_WEAK_LIB, "/y", EXTI_NEEDED_LAST}},
        {{MTOY_WEAK_LIB, "/y", EXTI_NEEDED_LAST}, {NULL, "/y", EXTI_NEEDED_LAST}},
        {{NULL, "/y", EXTI_NEEDED_FIRST}, {MTOY_WEAK_LIB, "/y", EXTI_NEEDED_LAST}},
        {{NULL, "/y", EXTI_NEEDED_FIRST}, {MTOY_REEXPORT, "/y", EXTI_NEEDED_LAST}},
        {{MTOY_REEXPORT, MTOY_WEAK_LIB, EXTI_NEEDED_LAST}, {NULL, "/y", EXTI_NEEDED_LAST}},
        {{MTOY_WEAK_LIB, MTOY_REEXPORT, EXTI_NEEDED_LAST}, {NULL, "/y", EXTI_NEEDED_LAST}}};
    static struct macho_toy toy;
    struct test *t = *state;

    macho_toy_make(&toy, (struct macho_toy_opts){0});
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        struct copy *k = test_alloc(t, sizeof *k);
        struct exti_plan plan;

        k->before = exti__span(toy.b, toy.n);
        k->opts =
            (struct exti_rewrite_opts){.size = sizeof k->opts, .needed = ops[i], .needed_count = 2};
        k->req = (struct exti_request){.opts = &k->opts};
        exti__plan_init(&plan, toy.n * 4 + 0x100000);
        assert_ok(exti__macho_format.plan(k->before, &k->req, &plan, &k->f.err), &k->f.err);
        k->n = (size_t)exti__plan_size(&plan, toy.n);
        k->after = test_alloc(t, k->n > toy.n ? k->n : toy.n);
        memcpy(k->after, toy.b, toy.n);
        exti__plan_apply(&plan, k->after, toy.n);
        exti__plan_free(&plan);
        assert_copy_clean(k, &k->req);
        assert_copy_clean(k, NULL);
    }
}

/* A file without libraries has libSystem as library 1, and keeps it there. */
static void the_implied_library_keeps_its_number(void **state)
{
    struct test *t = *state;

    macho_skip_without_tools();
    for (size_t i = 0; i < 2; i++) {
        struct exti_span before = link_text(t, copy_source, "c.dylib", shapes[i]);
        struct exti_error err = {0};
        struct macho_file m;
        struct copy *k;

        assert_ok(exti__macho_open(before, &m, &err), &err);
        assert_int_equal(m.dylib_count, 1);
        exti__put_u32((uint8_t *)(uintptr_t)m.commands[m.dylibs[0].command].s.p, LC_SUB_CLIENT,
                      false);
        exti__macho_close(&m);
        k = copy_of(t, before, "/p1");
        assert_ok(exti__macho_open(exti__span(k->after, k->n), &m, &err), &err);
        assert_int_equal(m.dylib_count, 2);
        assert_string_equal(m.dylibs[0].name, "/usr/lib/libSystem.B.dylib");
        exti__macho_close(&m);
    }
}

/* dyld and codesign require a signature, so the copy of a signed file must have one. */
static void an_empty_identifier_is_filled(void **state)
{
    struct test *t = *state;
    struct exti_span before;
    struct macho_signature signature;
    struct macho_file m;
    struct copy *k;

    macho_skip_without_tools();
    before = link_text(t, copy_source, "c.dylib", MACHO_DYLIB "-adhoc_codesign");
    k = test_alloc(t, sizeof *k);
    assert_ok(exti__macho_open(before, &m, &k->f.err), &k->f.err);
    assert_ok(exti__macho_signature_read(&m, &signature, &k->f.err), &k->f.err);
    exti__macho_close(&m);
    assert_true(*signature.identifier);
    *(char *)(uintptr_t)signature.identifier = 0;
    k = copy_of(t, before, "/p1");
    assert_ok(exti__macho_open(exti__span(k->after, k->n), &m, &k->f.err), &k->f.err);
    assert_ok(exti__macho_signature_read(&m, &signature, &k->f.err), &k->f.err);
    exti__macho_close(&m);
    assert_string_equal(signature.identifier, "p2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(copies_pass_with_the_edits_that_made_them),
        exti_test(a_copy_with_other_edits_is_reported),
        exti_test(numbers_that_did_not_move_are_found),
        exti_test(every_changed_byte_of_content_is_found),
        exti_test(short_name_counts_as_the_long_one),
        exti_test(merged_libraries_pass_without_the_edits_too),
        exti_test(the_implied_library_keeps_its_number),
        exti_test(an_empty_identifier_is_filled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
