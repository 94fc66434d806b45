/* The check operation passes the planner's copies, and each of its checks alone finds the fault
 * that it is for. */
#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "elf/check/elf_check.h"
#include "elf/check/elf_check_hash.h"
#include "elf/elf_format.h"
#include "elf/read/elf_open.h"
#include "tests/unit/elf/elf_toy.h"

enum { ROOM = 16384, SYMTAB_SECTION = 3 };

static const struct exti_needed needed[] = {{NULL, "libcontext.so", EXTI_NEEDED_FIRST}};
static const struct exti_rewrite_opts edits = {.size = sizeof edits,
                                               .id = "libtoy-of-context.so",
                                               .needed = needed,
                                               .needed_count = 1,
                                               .origin = "/opt/lib",
                                               .path_prepend = "/ctx",
                                               .flags =
                                                   EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE};

struct fixture {
    struct elf_toy toy;
    struct exti_plan plan;
    uint8_t before[ROOM], after[ROOM];
    size_t before_n, after_n;
    struct elf_file copy; /* `after` before it is spoilt */
    struct exti_error err, first;
    size_t findings;
};

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    exti__mem_fail_after(-1);
    exti__plan_free(&f->plan);
    exti__elf_close(&f->copy);
    return 0;
}

#define check_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- the files ------------------------------------------------------------------------------- */

/* Adds a .symtab with one symbol; the toy's .dynsym section becomes its header. */
static void add_symtab(struct elf_toy *t)
{
    const size_t word = t->wide ? 8 : 4, shdr = t->shdr + SYMTAB_SECTION * (t->wide ? 64u : 40u);
    const size_t size = t->wide ? 24 : 16, at = t->n;

    toy_put(t, shdr + 4, 4, SHT_SYMTAB);
    toy_put(t, shdr + 8, word, 0);
    toy_put(t, shdr + 8 + word, word, 0);
    toy_put(t, shdr + 8 + 2 * word, word, at);
    toy_put(t, shdr + 8 + 3 * word, word, 2 * size);
    toy_put(t, shdr + 16 + 5 * word, word, size);
    toy_sym(t, 0, 0, 0, 0, 0);
    toy_sym(t, 1, STB_LOCAL, STT_FUNC, SHN_ABS, 0x400);
    memset(t->b + at, 0, size);
}

static void make_before(struct fixture *f, bool wide, bool big)
{
    elf_toy_make(&f->toy, wide, big);
    add_symtab(&f->toy);
    memcpy(f->before, f->toy.b, f->toy.n);
    f->before_n = f->toy.n;
}

static void make_after(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    struct exti_span file = exti__span(f->before, f->before_n);

    exti__plan_free(&f->plan);
    exti__elf_close(&f->copy);
    exti__plan_init(&f->plan, ROOM);
    assert_ok(exti__elf_format.plan(file, &(struct exti_request){.opts = opts}, &f->plan, &f->err),
              &f->err);
    f->after_n = (size_t)exti__plan_size(&f->plan, file.n);
    assert_true(f->after_n < ROOM - 16);
    memset(f->after, 0, ROOM);
    memcpy(f->after, f->before, f->before_n);
    exti__plan_apply(&f->plan, f->after, f->before_n);
    assert_ok(exti__elf_open(exti__span(f->after, f->after_n), &f->copy, &f->err), &f->err);
}

static int record_finding(void *user, const struct exti_error *finding)
{
    struct fixture *f = user;

    if (!f->findings++)
        f->first = *finding;
    assert_int_equal(finding->code, EXTI_E_CHECK);
    assert_true(finding->message[0] != 0);
    return 0;
}

static int run_checks(struct fixture *f, const struct exti_rewrite_opts *opts,
                      const struct exti_plan *plan)
{
    f->findings = 0;
    f->first = (struct exti_error){.code = EXTI_OK};
    return exti__elf_format.check(
        exti__span(f->before, f->before_n), exti__span(f->after, f->after_n),
        opts ? &(struct exti_request){.opts = opts} : NULL, plan, record_finding, f, &f->err);
}

static void assert_clean(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    assert_ok(run_checks(f, opts, NULL), &f->err);
    if (f->findings)
        fail_msg("finding: %s", f->first.message);
}

/* Only the check called `name` may report something, and it must. */
static void assert_only(struct fixture *f, const struct exti_rewrite_opts *opts, const char *name)
{
    struct elf_check c = {.opts = opts, .findings = {.report = record_finding, .user = f}};
    bool sound, fired = false;

    assert_ok(exti__elf_check_open(&c, exti__span(f->before, f->before_n),
                                   exti__span(f->after, f->after_n), &sound, &f->err),
              &f->err);
    assert_true(sound);
    for (size_t i = 0; i < exti__elf_check_count; i++) {
        f->findings = 0;
        assert_ok(exti__elf_checks[i].run(&c, &f->err), &f->err);
        if (strcmp(exti__elf_checks[i].name, name) == 0)
            fired = f->findings != 0;
        else if (f->findings)
            fail_msg("%s: the check of %s fires too: %s", name, exti__elf_checks[i].name,
                     f->first.message);
    }
    exti__elf_check_close(&c);
    if (!fired)
        fail_msg("the check of %s does not fire", name);
}

/* ---- spoiling a copy ------------------------------------------------------------------------- */

static void flip(struct fixture *f, uint64_t at)
{
    assert_true(at < f->after_n);
    f->after[at] ^= 0x10;
}

/* File offset of the field at `field` in the first header of that type. */
static uint64_t header(struct fixture *f, uint32_t type, uint64_t field)
{
    size_t i = 0;

    while (i < f->copy.phnum && f->copy.phdr[i].p_type != type)
        i++;
    assert_true(i < f->copy.phnum);
    return f->copy.ehdr.e_phoff + i * sizeof(Elf64_Phdr) + field;
}

static uint64_t last_load(struct fixture *f, uint64_t field)
{
    uint64_t at = 0;

    for (size_t i = 0; i < f->copy.phnum; i++)
        if (f->copy.phdr[i].p_type == PT_LOAD)
            at = f->copy.ehdr.e_phoff + i * sizeof(Elf64_Phdr) + field;
    return at;
}

static uint64_t tag_slot(struct fixture *f, int64_t tag)
{
    const GElf_Dyn *d = exti__elf_tag(&f->copy, tag);

    assert_non_null(d);
    return exti__elf_dyn_offset(&f->copy, (size_t)(d - f->copy.dyn));
}

static uint64_t section(struct fixture *f, size_t i, uint64_t field)
{
    return f->copy.ehdr.e_shoff + i * sizeof(Elf64_Shdr) + field;
}

static void set_tag(struct fixture *f, int64_t tag, uint64_t value)
{
    exti__put_u64(f->after + tag_slot(f, tag) + 8, value, false);
}

static void spoil_header(struct fixture *f)
{
    flip(f, offsetof(Elf64_Ehdr, e_flags));
}

/* Gives the copy two unused entries more than the original. */
static void spoil_header_count(struct fixture *f)
{
    const size_t table = f->toy.phdr;

    memset(f->before + table + 3 * sizeof(Elf64_Phdr), 0, 2 * sizeof(Elf64_Phdr));
    memcpy(f->after, f->before, f->before_n);
    f->after_n = f->before_n;
    f->before[offsetof(Elf64_Ehdr, e_phnum)] = 3;
}

static void spoil_program_headers(struct fixture *f)
{
    flip(f, header(f, PT_NOTE, offsetof(Elf64_Phdr, p_align)));
}

static void spoil_stack(struct fixture *f)
{
    f->after[header(f, PT_GNU_STACK, offsetof(Elf64_Phdr, p_flags))] |= PF_X;
}

static void spoil_segments(struct fixture *f)
{
    f->after[last_load(f, offsetof(Elf64_Phdr, p_flags))] |= PF_X;
}

static void spoil_containment(struct fixture *f)
{
    flip(f, header(f, PT_NOTE, offsetof(Elf64_Phdr, p_vaddr)) + 4);
}

static void spoil_notes(struct fixture *f)
{
    for (size_t i = 0; i < f->copy.phnum; i++)
        if (f->copy.phdr[i].p_type == PT_NOTE)
            flip(f, f->copy.phdr[i].p_offset + 16);
}

/* Gives the copy one more, unused entry, over the note. */
static void spoil_table_growth(struct fixture *f)
{
    memcpy(f->after, f->before, f->before_n);
    f->after_n = f->before_n;
    f->after[offsetof(Elf64_Ehdr, e_phnum)] = TOY_PHDRS + 1;
    memset(f->after + f->toy.phdr + TOY_PHDRS * sizeof(Elf64_Phdr), 0, 4);
}

static void spoil_segment_growth(struct fixture *f)
{
    f->after[header(f, PT_LOAD, offsetof(Elf64_Phdr, p_memsz))] += 8;
}

static void spoil_tail(struct fixture *f)
{
    f->after[f->after_n++] = 1;
}

static void spoil_tags(struct fixture *f)
{
    set_tag(f, DT_VERNEEDNUM, 9);
}

static void spoil_end(struct fixture *f)
{
    assert_true(f->copy.dyn_count + 1 < f->copy.dyn_slots);
    flip(f, exti__elf_dyn_offset(&f->copy, f->copy.dyn_count + 1));
}

static void spoil_id(struct fixture *f)
{
    set_tag(f, DT_SONAME, TOY_IMPORT);
}

static void spoil_needed(struct fixture *f)
{
    uint64_t first = 0, other = 0;
    uint8_t value[8];

    for (size_t i = f->copy.dyn_count; i-- > 0;)
        if (f->copy.dyn[i].d_tag == DT_NEEDED) {
            other = first ? first : exti__elf_dyn_offset(&f->copy, i) + 8;
            first = exti__elf_dyn_offset(&f->copy, i) + 8;
        }
    assert_int_not_equal(first, other);
    memcpy(value, f->after + first, 8);
    memcpy(f->after + first, f->after + other, 8);
    memcpy(f->after + other, value, 8);
}

static void spoil_path(struct fixture *f)
{
    set_tag(f, DT_RUNPATH, TOY_IMPORT);
}

static void spoil_flags(struct fixture *f)
{
    set_tag(f, DT_FLAGS_1, DF_1_NOW | DF_1_NODELETE);
}

static void spoil_symbols(struct fixture *f)
{
    flip(f, f->toy.sym + 2 * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_size));
}

static void spoil_versions(struct fixture *f)
{
    exti__put_u32(f->after + f->toy.verneed + 16 + 8, TOY_V2, false);
}

static void spoil_gnu_hash(struct fixture *f)
{
    flip(f, f->copy.gnu_hash.s.base + exti__elf_gnu_hash_size(&f->copy) - 9);
}

static void spoil_sysv_hash(struct fixture *f)
{
    memset(f->after + f->copy.hash.s.base + 8, 0, 4);
}

static void spoil_sections(struct fixture *f)
{
    flip(f, section(f, 2, offsetof(Elf64_Shdr, sh_addr)));
}

static void spoil_static_symbols(struct fixture *f)
{
    flip(f, f->toy.n - 8);
}

static void spoil_strings(struct fixture *f)
{
    flip(f, f->toy.str + TOY_IMPORT);
}

static void spoil_bytes(struct fixture *f)
{
    flip(f, f->toy.versym + 2);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void check_passes_planned_copies(void **state)
{
    struct fixture *f = *state;

    for (int kind = 0; kind < 4; kind++) {
        make_before(f, kind & 1, kind & 2);
        make_after(f, &edits);
        assert_clean(f, &edits);
        assert_clean(f, NULL);
        assert_ok(run_checks(f, &edits, &f->plan), &f->err);
        assert_int_equal(f->findings, 0);
    }
}

static void each_check_alone_finds_its_fault(void **state)
{
    static const struct {
        const char *name;
        void (*spoil)(struct fixture *f);
        bool with_opts;
    } faults[] = {
        {"ELF header", spoil_header, true},
        {"header count", spoil_header_count, false},
        {"program headers", spoil_program_headers, true},
        {"stack", spoil_stack, true},
        {"segments", spoil_segments, true},
        {"containment", spoil_containment, true},
        {"notes", spoil_notes, true},
        {"table growth", spoil_table_growth, false},
        {"segment growth", spoil_segment_growth, true},
        {"tail", spoil_tail, true},
        {"dynamic tags", spoil_tags, true},
        {"dynamic end", spoil_end, true},
        {"id", spoil_id, true},
        {"needed", spoil_needed, true},
        {"search path", spoil_path, true},
        {"flags", spoil_flags, true},
        {"symbols", spoil_symbols, true},
        {"versions", spoil_versions, true},
        {"GNU hash", spoil_gnu_hash, true},
        {"SysV hash", spoil_sysv_hash, true},
        {"sections", spoil_sections, true},
        {"static symbols", spoil_static_symbols, true},
        {"strings", spoil_strings, true},
        {"bytes", spoil_bytes, true},
    };
    struct fixture *f = *state;

    assert_int_equal(ARRAY_SIZE(faults), exti__elf_check_count);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        make_before(f, true, false);
        make_after(f, &edits);
        faults[i].spoil(f);
        assert_only(f, faults[i].with_opts ? &edits : NULL, faults[i].name);
    }
}

/* Checks copies that lack an edit. */
static void check_finds_missing_edits(void **state)
{
    static const struct exti_rename renames[] = {{"export", "exqpsu"}};
    static const struct exti_rewrite_opts id = {.size = sizeof id, .id = "libother.so"};
    static const struct exti_rewrite_opts add = {
        .size = sizeof add, .needed = needed, .needed_count = 1};
    static const struct exti_rewrite_opts path = {.size = sizeof path, .path_set = "/a"};
    static const struct exti_rewrite_opts no_path = {.size = sizeof path, .path_set = ""};
    static const struct exti_rewrite_opts flags = {.size = sizeof flags, .flags = EXTI_RW_SYMBOLIC};
    static const struct exti_rewrite_opts unique = {.size = sizeof unique,
                                                    .flags = EXTI_RW_CLEAR_UNIQUE};
    static const struct exti_rewrite_opts names = {
        .size = sizeof names, .renames = renames, .rename_count = 1};
    static const struct exti_rewrite_opts none = {.size = sizeof none};
    const struct {
        const struct exti_rewrite_opts *opts;
        const char *name;
    } cases[] = {
        {&id, "id"},       {&add, "needed"},     {&path, "search path"}, {&no_path, "search path"},
        {&flags, "flags"}, {&unique, "symbols"}, {&names, "symbols"}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        make_before(f, true, false);
        make_after(f, cases[i].opts);
        assert_clean(f, cases[i].opts);
        assert_clean(f, NULL);
        make_after(f, &none);
        assert_only(f, cases[i].opts, cases[i].name);
    }
}

static void check_wants_every_entry_of_a_library_replaced(void **state)
{
    static const struct exti_needed other[] = {{"libc.so.6", "libother.so", EXTI_NEEDED_LAST}};
    static const struct exti_rewrite_opts opts = {
        .size = sizeof opts, .needed = other, .needed_count = 1};
    struct fixture *f = *state;
    size_t end;

    make_before(f, true, false);
    end = f->toy.dyn + (f->toy.dyn_slots - 3) * sizeof(Elf64_Dyn);
    exti__put_u64(f->before + end, DT_NEEDED, false);
    exti__put_u64(f->before + end + 8, TOY_LIBC, false);
    make_after(f, &opts);
    assert_clean(f, &opts);
    exti__put_u64(f->after + end + 8, TOY_LIBC, false);
    assert_only(f, &opts, "needed");
}

static void check_reports_a_copy_that_is_not_a_shared_object(void **state)
{
    struct fixture *f = *state;

    make_before(f, true, false);
    make_after(f, &edits);
    f->after[offsetof(Elf64_Ehdr, e_type)] = ET_EXEC;
    assert_ok(run_checks(f, &edits, NULL), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "shared object");
    assert_int_equal(f->first.offset, offsetof(Elf64_Ehdr, e_type));

    make_before(f, false, false);
    memcpy(f->after, f->toy.b, f->toy.n);
    f->after_n = f->toy.n;
    make_before(f, true, false);
    assert_ok(run_checks(f, &edits, NULL), &f->err);
    assert_int_equal(f->findings, 1);
    assert_says(&f->first, "class");
}

static void check_fails_on_an_original_that_is_not_a_shared_object(void **state)
{
    struct fixture *f = *state;

    make_before(f, true, false);
    make_after(f, &edits);
    f->before[0] = 0;
    assert_exti(run_checks(f, &edits, NULL), EXTI_E_FORMAT, &f->err, 0);
    assert_int_equal(f->findings, 0);
}

static int stop_at_once(void *user, const struct exti_error *finding)
{
    (void)finding;
    ++*(int *)user;
    return 1;
}

static void check_stops_when_the_report_function_asks(void **state)
{
    struct fixture *f = *state;
    int calls = 0;

    make_before(f, true, false);
    make_after(f, &edits);
    spoil_header(f);
    spoil_symbols(f);
    spoil_bytes(f);
    assert_ok(exti__elf_format.check(
                  exti__span(f->before, f->before_n), exti__span(f->after, f->after_n),
                  &(struct exti_request){.opts = &edits}, NULL, stop_at_once, &calls, &f->err),
              &f->err);
    assert_int_equal(calls, 1);
}

static void check_survives_running_out_of_memory(void **state)
{
    static const struct exti_rename renames[] = {{"export", "exqpsu"}};
    struct exti_rewrite_opts opts = edits;
    struct fixture *f = *state;
    int rc = EXTI_E_NOMEM;

    opts.renames = renames;
    opts.rename_count = 1;
    make_before(f, true, false);
    make_after(f, &opts);
    spoil_strings(f);
    spoil_gnu_hash(f);
    for (long n = 0; rc; n++) {
        assert_true(n < 200);
        exti__mem_fail_after(n);
        rc = run_checks(f, &opts, NULL);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &f->err, ANY_OFFSET);
    }
    assert_int_not_equal(f->findings, 0);
}

/* For each wrong byte of a copy the check ends, whether or not it reports something. */
static void check_survives_any_corrupt_byte(void **state)
{
    struct fixture *f = *state;
    size_t unseen = 0;

    make_before(f, true, false);
    make_after(f, &edits);
    for (size_t i = 0; i < f->after_n; i++) {
        f->after[i] ^= 0x81;
        assert_ok(run_checks(f, &edits, NULL), &f->err);
        unseen += f->findings == 0;
        f->after[i] ^= 0x81;
    }
    /* It may miss changes to appended strings, bloom bits and padding. */
    assert_in_range(unseen, 0, f->after_n - f->before_n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        check_test(check_passes_planned_copies),
        check_test(each_check_alone_finds_its_fault),
        check_test(check_finds_missing_edits),
        check_test(check_wants_every_entry_of_a_library_replaced),
        check_test(check_reports_a_copy_that_is_not_a_shared_object),
        check_test(check_fails_on_an_original_that_is_not_a_shared_object),
        check_test(check_stops_when_the_report_function_asks),
        check_test(check_survives_running_out_of_memory),
        check_test(check_survives_any_corrupt_byte),
    };

    return cmocka_run_group_tests_name("elf/elf_check", tests, NULL, NULL);
}
