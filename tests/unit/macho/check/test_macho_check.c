/* The Mach-O self-check: each step finds the fault that it is there to find; signatures,
 * and files that cannot be compared. */
#include "macho/read/macho_withheld.h"
#include "tests/unit/macho/macho_findings.h"
#include "tests/unit/macho/macho_runs.h"

#include "tests/unit/macho/macho_link.h"

static void run_steps(struct fixture *f, const struct exti_rewrite_opts *opts, char *names,
                      size_t cap, struct exti_error *says)
{
    struct macho_check c = {.opts = opts,
                            .judge = {.report = note_finding, .user = f, .quiet = true}};
    bool sound;

    *names = 0;
    f->findings = 0;
    assert_ok(
        exti__macho_check_open(&c, bytes_of(&f->before), bytes_of(&f->after), &sound, &f->err),
        &f->err);
    assert_true(sound);
    for (size_t i = 0; i < exti__macho_step_count; i++) {
        assert_ok(exti__macho_steps[i].run(&c, &f->err), &f->err);
        note_name(f, names, cap, exti__macho_steps[i].name, says);
    }
    exti__macho_check_close(&c);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void edit_flags(struct macho_toy *t)
{
    mtoy_put(t, 24, 4, mtoy_get(t, 24, 4) | 0x200000);
}

static void edit_uuid(struct macho_toy *t)
{
    set_field(t, LC_UUID, 0, 9, 1, 0x77);
}

static void edit_segment_prot(struct macho_toy *t)
{
    set_field(t, LC_SEGMENT_64, 1, 56, 4, 1);
}

static void edit_section_flags(struct macho_toy *t)
{
    set_field(t, LC_SEGMENT_64, 1, 72 + 64, 4, 0);
}

static void edit_id_version(struct macho_toy *t)
{
    set_field(t, LC_ID_DYLIB, 0, 16, 4, 1);
}

static void edit_bound_elsewhere(struct macho_toy *t)
{
    t->b[t->bind + 14] = 0x12;
}

static void edit_bound_flat(struct macho_toy *t)
{
    t->b[t->bind + 14] = 0x3e;
}

static void edit_bound_to_self(struct macho_toy *t)
{
    t->b[t->bind] = 0x10;
}

static void edit_bound_symbol(struct macho_toy *t)
{
    t->b[t->bind + 16] = 'x';
}

static void edit_binding_lost(struct macho_toy *t)
{
    t->b[t->bind + 14] = 0;
}

static void edit_binding_moved(struct macho_toy *t)
{
    t->b[t->bind + 12] = 0x10;
    t->b[t->lazy + 1] = 0;
}

static void edit_lazy_moved(struct macho_toy *t)
{
    set_stream(t, t->lazy, t->lazy_n, "\x51\x71\x10\x3e\x41_PyOptional\0\x90", 18);
}

static void edit_rebase_lost(struct macho_toy *t)
{
    t->b[t->rebase + 3] = 0x53;
}

static void edit_weak_lost(struct macho_toy *t)
{
    memset(t->b + t->weak, 0, t->weak_n);
}

static void edit_weak_lost_elsewhere(struct macho_toy *t)
{
    edit_weak_lost(t);
    t->b[t->weak] = 0x40;
    memcpy(t->b + t->weak + 1, "_toy_weak\0\x51\x71\x20\x90", 15);
}

static void edit_weak_flag(struct macho_toy *t)
{
    mtoy_put(t, 24, 4, mtoy_get(t, 24, 4) & ~(uint64_t)MH_BINDS_TO_WEAK);
}

static void edit_import_library(struct macho_toy *t)
{
    t->b[t->chained + 84] = 2;
}

static void edit_import_weak(struct macho_toy *t)
{
    t->b[t->chained + 85] |= 1;
}

static void edit_import_text(struct macho_toy *t)
{
    mtoy_put(t, t->chained + 85, 3, 1 << 1);
}

static void edit_start_page(struct macho_toy *t)
{
    mtoy_put(t, t->chained + 70, 2, 8);
}

static void edit_export_address(struct macho_toy *t)
{
    t->b[t->trie + 32] ^= 8;
}

static void edit_export_name(struct macho_toy *t)
{
    t->b[t->trie + 11] = 'g';
}

static void edit_symbol_value(struct macho_toy *t)
{
    t->b[t->symbols + 8] ^= 4;
}

static void edit_symbol_type(struct macho_toy *t)
{
    t->b[t->symbols + 4] ^= N_PEXT;
}

static void edit_symbol_text(struct macho_toy *t)
{
    t->b[t->strings + 3] = 'X';
}

static void edit_symbol_library(struct macho_toy *t)
{
    t->b[t->symbols + 5 * NLIST_64_SIZE + 7] = 2;
}

static void edit_function_start(struct macho_toy *t)
{
    t->b[t->starts] ^= 4;
}

static void edit_indirect(struct macho_toy *t)
{
    t->b[t->indirect] = 4;
}

static void edit_room(struct macho_toy *t)
{
    t->b[t->text - 1] = 1;
}

static void edit_text(struct macho_toy *t)
{
    t->b[t->text + 5] ^= 1;
}

static void edit_data(struct macho_toy *t)
{
    t->b[t->data + 50] ^= 1;
}

static const struct {
    void (*edit)(struct macho_toy *t);
    const struct macho_toy_opts *of;
    const char *steps, *says;
} step_faults[] = {
    {edit_flags, &opcodes, "header,", "header: flags"},
    {edit_uuid, &opcodes, "commands,", "command 0x1b"},
    {edit_segment_prot, &opcodes, "commands,", "segment __DATA: differs from the original's"},
    {edit_section_flags, &opcodes, "commands,", "section __got: flags 0x"},
    {edit_id_version, &opcodes, "id,", "more than its name"},
    {edit_bound_elsewhere, &opcodes, "bindings,", "_malloc: bound to " MTOY_WEAK_LIB " (2)"},
    {edit_bound_flat, &opcodes, "bindings,", "_malloc: bound to a flat look-up (-2)"},
    {edit_bound_to_self, &opcodes, "bindings,", "_PyFlat: bound to the file itself (0)"},
    {edit_bound_symbol, &opcodes, "bindings,", "xmalloc + 0"},
    {edit_binding_lost, &opcodes, "bindings,", "binding of _malloc at 0x1008 is lost"},
    {edit_binding_moved, &opcodes, "bindings,", "_PyOptional"},
    {edit_lazy_moved, &opcodes, "bindings,", "_PyOptional: its lazy opcodes are at 0x1"},
    {edit_rebase_lost, &opcodes, "bindings,", "from number 3 of 4 on"},
    {edit_weak_lost_elsewhere, &opcodes, "weak bindings,", "weak binding of _toy_weak is new"},
    {edit_weak_flag, &opcodes, "weak bindings,", "MH_BINDS_TO_WEAK is cleared"},
    {edit_weak_flag, &chained, "imports,", "MH_BINDS_TO_WEAK is cleared"},
    {edit_import_library, &chained, "imports,", "_malloc: bound to " MTOY_WEAK_LIB},
    {edit_import_weak, &chained, "imports,", "_malloc + 0, weak, not _malloc + 0"},
    {edit_import_text, &chained, "imports,", "_PyFlat + 0, not _malloc + 0"},
    {edit_start_page, &chained, "imports,", "chain starts of __DATA differ"},
    {edit_export_address, &opcodes, "exports,", "export _toy_func: address"},
    {edit_export_name, &opcodes, "exports,", "export _toy_func is lost"},
    {edit_symbol_value, &opcodes, "symbols,", "symbol _toy_func: type"},
    {edit_symbol_type, &opcodes, "symbols,", "symbol _toy_func: type"},
    {edit_symbol_text, &opcodes, "symbols,", "symbol 0: _Xoy_func, not _toy_func"},
    {edit_symbol_library, &opcodes, "symbols,", "symbol _malloc: n_desc 0x200"},
    {edit_function_start, &opcodes, "function starts,", "function starts: 0x"},
    {edit_indirect, &opcodes, "linkedit pieces,", "indirect symbol table: differs"},
    {edit_room, &opcodes, "header room,", "after the load commands"},
    {edit_text, &opcodes, "content,", "__text: byte 0x"},
    {edit_data, &opcodes, "content,", "__data: byte 0x"},
};

static void each_step_finds_its_fault_alone(void **state)
{
    struct fixture *f = *state;
    char names[256];

    for (size_t i = 0; i < ARRAY_SIZE(step_faults); i++) {
        struct exti_error says = {.code = EXTI_OK};

        make_pair(f, step_faults[i].of);
        step_faults[i].edit(&f->after);
        run_steps(f, NULL, names, sizeof names, &says);
        if (strcmp(names, step_faults[i].steps) != 0)
            fail_msg("%zu: %s (%s), not %s", i, names, says.message, step_faults[i].steps);
        assert_says(&says, step_faults[i].says);
        assert_ok(run_checks(f, NULL), &f->err);
        assert_true(f->findings > 0);
    }
}

/* ---- withheld constructors ------------------------------------------------------------------- */

/* Asserts that the check finds `says`, or nothing if that is NULL. */
static void assert_judged(struct fixture *f, const struct exti_rewrite_opts *opts, const char *says)
{
    if (!says) {
        assert_clean(f, opts);
        return;
    }
    assert_ok(run_checks(f, opts), &f->err);
    assert_true(f->findings > 0);
    assert_says(&f->first, says);
}

static void constructors_are_withheld_if_asked_for(void **state)
{
    static const struct exti_rewrite_opts withhold = {.size = sizeof withhold,
                                                      .flags = EXTI_RW_WITHHOLD},
                                          plain = {.size = sizeof plain};
    struct fixture *f = *state;
    static const char *const missing[] = {"section __la_symbol_ptr: flags 0x16, not 0x960000",
                                          "section __data: flags 0xa, not 0x8a0000",
                                          "command 0x1a of the original is missing", NULL};

    runs_make(&f->before, opcodes);
    f->after = f->before;
    assert_judged(f, NULL, NULL);
    assert_judged(f, &plain, NULL);
    assert_judged(f, &withhold, "section __got: flags 0x9, not 0x890000");
    for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
        const size_t at = i < 3 ? runs_flags(&f->after, i) : runs_routines(&f->after);
        const uint32_t was = (uint32_t)mtoy_get(&f->after, at, 4);

        /* One that waits while others do not. */
        mtoy_put(&f->after, at, 4,
                 i < 3 ? exti__macho_withheld_flags(was) : exti__macho_withheld_command(was));
        assert_judged(f, NULL, missing[i]);
        assert_judged(f, &withhold, missing[i]);
        assert_judged(f, &plain, "section __got: flags 0x890000, not 0x9");
    }
    /* A withheld section keeps its type. */
    mtoy_put(&f->after, runs_flags(&f->after, 2), 4,
             exti__macho_withheld_flags(S_MOD_INIT_FUNC_POINTERS));
    assert_judged(f, &withhold, "section __data: flags 0x890000, not 0x8a0000");
    assert_judged(f, NULL, "section __data: flags 0x890000, not 0x8a0000");
}

/* ---- weak definitions ------------------------------------------------------------------------ */

/* The toy defines _toy_weak, and a rebase leaves its address in the slot. */
static void weak_bindings_go_only_where_the_own_definition_is(void **state)
{
    static const struct exti_rewrite_opts keep = {.size = sizeof keep},
                                          own = {.size = sizeof own, .flags = EXTI_RW_CLEAR_UNIQUE};
    const uint32_t cleared = 0x4 | MH_TWOLEVEL;
    struct fixture *f = *state;
    char names[256];
    struct exti_error says;

    make_pair(f, &opcodes);
    assert_clean(f, &keep);
    run_steps(f, &own, names, sizeof names, &says);
    assert_string_equal(names, "header,weak bindings,");
    edit_weak_lost(&f->after);
    assert_clean(f, NULL);
    run_steps(f, &keep, names, sizeof names, &says);
    assert_string_equal(names, "weak bindings,");
    assert_says(&says, "weak binding of _toy_weak is lost");
    mtoy_put(&f->after, 24, 4, cleared);
    assert_clean(f, NULL);
    assert_clean(f, &own);

    f->before.b[f->before.data + 24] ^= 8;
    f->after.b[f->after.data + 24] ^= 8;
    run_steps(f, &own, names, sizeof names, &says);
    assert_string_equal(names, "weak bindings,");
    assert_says(&says, "lost its weak binding, but is not bound to the file's own");

    make_pair(f, &chained);
    mtoy_put(&f->after, 24, 4, cleared);
    run_steps(f, &own, names, sizeof names, &says);
    assert_string_equal(names, "imports,");
    f->after.b[f->after.chained + 92] = 0;
    assert_clean(f, NULL);
    assert_clean(f, &own);
    run_steps(f, &keep, names, sizeof names, &says);
    assert_string_equal(names, "header,imports,");
}

/* ---- signatures ------------------------------------------------------------------------------ */

enum { DIRECTORY = 24 }; /* where ld64.lld puts it */

static const struct {
    size_t at, width; /* offset in the signature; big-endian */
    uint64_t value;
    const char *says;
} signature_faults[] = {
    {0, 4, 1, "it does not have the magic of an embedded signature"},
    {4, 4, 0x1000000, "its length or count reaches past the end"},
    {8, 4, 0x1000000, "its length or count reaches past the end"},
    {12, 4, 9, "no CodeDirectory with SHA-256"},
    {16, 4, 0x1000000, "a blob is outside"},
    {DIRECTORY, 4, 1, "the wrong magic"},
    {DIRECTORY + 4, 4, 40, "a CodeDirectory is cut short"},
    {DIRECTORY + 8, 4, 0x20100, "version 0x20100 does not have the executable segment"},
    {DIRECTORY + 12, 4, 0x20000, "flags 0x20000 lack CS_ADHOC"},
    {DIRECTORY + 16, 4, 0x1000000, "hashes are outside"},
    {DIRECTORY + 20, 4, 0x1000000, "identifier has no NUL"},
    {DIRECTORY + 24, 4, 0x1000, "hashes are outside"},
    {DIRECTORY + 28, 4, 1, "1 page hashes for"},
    {DIRECTORY + 32, 4, 0x1000, "covers 0x1000 bytes, not the 0x"},
    {DIRECTORY + 36, 1, 20, "hashes of other than 32 bytes"},
    {DIRECTORY + 37, 1, 1, "no CodeDirectory with SHA-256"},
    {DIRECTORY + 39, 1, 3, "pages of other than 4 to 64 KiB"},
    {DIRECTORY + 64, 8, 8, "executable segment 0x8+"},
    {DIRECTORY + 88, 1, 0, "the identifier is empty"},
    {DIRECTORY + 88, 1, 'z', "identifier z"},
};

static void put_be(uint8_t *p, size_t width, uint64_t v)
{
    for (size_t i = 0; i < width; i++)
        p[i] = (uint8_t)(v >> 8 * (width - 1 - i));
}

static void faults_of_a_signature_are_found(void **state)
{
    struct test *t = *state;
    struct fixture *f;
    struct exti_span file;
    struct macho_file m;
    uint8_t *copy;
    size_t at;

    macho_skip_without_tools();
    f = test_alloc(t, sizeof *f);
    file = macho_link(t, "arm64", "x", MACHO_BUNDLE "-fixup_chains");
    copy = test_alloc(t, file.n);
    assert_ok(exti__macho_open(file, &m, &f->err), &f->err);
    at = (size_t)(m.pieces[MACHO_SIGNATURE].s.p - file.p);
    exti__macho_close(&m);
    for (size_t i = 0; i < ARRAY_SIZE(signature_faults); i++) {
        memcpy(copy, file.p, file.n);
        put_be(copy + at + signature_faults[i].at, signature_faults[i].width,
               signature_faults[i].value);
        assert_ok(check_spans(f, file, exti__span(copy, file.n), NULL), &f->err);
        assert_true(f->findings > 0);
        assert_says(&f->first, signature_faults[i].says);
    }
    memcpy(copy, file.p, file.n);
    copy[file.n - 1] ^= 1;
    assert_ok(check_spans(f, file, exti__span(copy, file.n), NULL), &f->err);
    assert_says(&f->first, "the hash of the page at");
}

/* The original's signature says nothing about the copy, which inherits it here. */
static void a_stale_signature_is_found(void **state)
{
    struct test *t = *state;
    struct fixture *f;
    struct exti_span file;
    uint8_t *copy;

    macho_skip_without_tools();
    f = test_alloc(t, sizeof *f);
    file = macho_link(t, "arm64", "x", MACHO_DYLIB "-fixup_chains");
    copy = test_alloc(t, file.n);
    memcpy(copy, file.p, file.n);
    for (size_t i = 0; i + 6 < 0x1000; i++)
        if (memcmp(copy + i, "@rpath", 6) == 0)
            copy[i + 8] = 'z';
    assert_ok(check_spans(f, file, exti__span(copy, file.n), NULL), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "the hash of the page at 0x0 does not");
}

/* LC_CODE_SIGNATURE is the toy's last command. */
static void unsign(struct macho_toy *t)
{
    const size_t end = t->strings + t->strings_n;

    memset(t->b + mtoy_find(t, LC_CODE_SIGNATURE, 0), 0, 16);
    mtoy_put(t, 16, 4, mtoy_get(t, 16, 4) - 1);
    mtoy_put(t, 20, 4, mtoy_get(t, 20, 4) - 16);
    t->ncmds--;
    set_field(t, LC_SEGMENT_64, 2, 48, 8, end - t->linkedit);
    t->n = end;
}

static void an_unsigned_copy_is_found(void **state)
{
    struct fixture *f = *state;
    struct macho_toy_opts o = {.arm = true, .chained = true, .naked = true};
    char names[256];
    struct exti_error says;

    make_pair(f, &o);
    run_rules(f, bytes_of(&f->after), names, sizeof names, &says);
    assert_string_equal(names, "code signature,");
    assert_says(&says, "missing; arm64 systems load no unsigned code");
    o = (struct macho_toy_opts){.naked = false};
    make_pair(f, &o);
    unsign(&f->after);
    assert_ok(run_checks(f, NULL), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "code signature: lost");
}

/* ---- what cannot be judged ------------------------------------------------------------------- */

static void copies_that_cannot_be_compared_are_reported(void **state)
{
    struct fixture *f = *state;

    make_pair(f, &opcodes);
    f->after.n -= 8;
    assert_ok(run_checks(f, NULL), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "not a sound Mach-O library");
    assert_ok(check_spans(f, bytes_of(&f->before), exti__span("no", 2), NULL), &f->err);
    assert_int_equal(f->findings, 1);
    assert_int_equal(check_spans(f, exti__span("no", 2), bytes_of(&f->before), NULL),
                     EXTI_E_FORMAT);

    make_pair(f, &opcodes);
    macho_toy_make(&f->after, (struct macho_toy_opts){.naked = true, .bundle = true});
    assert_ok(run_checks(f, NULL), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "file type 8, not");
    macho_toy_make(&f->after, (struct macho_toy_opts){.naked = true, .room = 128});
    assert_ok(run_checks(f, NULL), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "the first section starts at 0x");
}

static int stop_at_once(void *user, const struct exti_error *finding)
{
    (void)finding;
    ++*(size_t *)user;
    return 1;
}

static void a_report_can_stop_the_check(void **state)
{
    struct fixture *f = *state;
    size_t count = 0;

    make_pair(f, &opcodes);
    edit_flags(&f->after);
    edit_text(&f->after);
    edit_uuid(&f->after);
    assert_ok(exti__macho_check(bytes_of(&f->before), bytes_of(&f->after), NULL, NULL, stop_at_once,
                                &count, &f->err),
              &f->err);
    assert_int_equal(count, 1);
}

static void out_of_memory_is_reported(void **state)
{
    static const struct exti_needed needed[] = {{NULL, "/a", EXTI_NEEDED_LAST},
                                                {MTOY_WEAK_LIB, "/b", EXTI_NEEDED_LAST}};
    static const struct exti_rewrite_opts opts = {.size = sizeof opts,
                                                  .id = "x",
                                                  .needed = needed,
                                                  .needed_count = 2,
                                                  .origin = "/o",
                                                  .path_prepend = "$ORIGIN",
                                                  .flags = EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_UNIQUE};
    struct fixture *f = *state;

    for (int kind = 0; kind < 4; kind++) {
        struct exti_span bind;
        int rc = EXTI_E_NOMEM;

        make_pair(f, kind & 1 ? &chained : &opcodes);
        bind = bytes_of(&f->before);
        mtoy_put(&f->before, f->before.symbols, 4, f->before.strings_n);
        f->after.b[f->after.trie + 31] = 3;
        for (long n = 0; rc; n++) {
            const struct exti_request req = {.opts = &opts, .bind = &bind, .bind_count = 1};

            exti__mem_fail_after(n);
            rc = check_spans(f, bytes_of(&f->before), bytes_of(&f->after), kind & 2 ? &req : NULL);
            exti__mem_fail_after(-1);
            if (rc && rc != EXTI_E_NOMEM)
                fail_msg("%d: %s", rc, f->err.message);
            assert_int_equal(f->err.code, rc);
            assert_true(n < 1000);
        }
        assert_true(f->findings > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(each_step_finds_its_fault_alone),
        check_test(constructors_are_withheld_if_asked_for),
        check_test(weak_bindings_go_only_where_the_own_definition_is),
        exti_test(faults_of_a_signature_are_found),
        exti_test(a_stale_signature_is_found),
        check_test(an_unsigned_copy_is_found),
        check_test(copies_that_cannot_be_compared_are_reported),
        check_test(a_report_can_stop_the_check),
        check_test(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
