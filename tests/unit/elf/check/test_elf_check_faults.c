/* Faults of copies, each with the check that finds it, and odd originals that have no fault. */
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/check/elf_check.h"
#include "elf/elf_format.h"
#include "tests/unit/elf/elf_toy.h"

#define OPTS .size = sizeof(struct exti_rewrite_opts)

enum { ROOM = 16384, PHDR = 56, SHDR = 64, MOST = 16 };

static const struct exti_rewrite_opts none = {OPTS};

struct fixture {
    struct elf_toy before, after;
    uint8_t out[ROOM]; /* the planner's copy of `before` */
    struct exti_plan plan;
    struct exti_error err, findings[MOST];
    size_t count;
};

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof f);
    elf_toy_make(&f.before, true, false);
    f.after = f.before;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    exti__mem_fail_after(-1);
    exti__plan_free(&f->plan);
    return 0;
}

#define fault_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int record_finding(void *user, const struct exti_error *finding)
{
    struct fixture *f = user;

    assert_int_equal(finding->code, EXTI_E_CHECK);
    if (f->count < MOST)
        f->findings[f->count] = *finding;
    f->count++;
    return 0;
}

/* Runs the check called `name` on `after`. */
static void run_check(struct fixture *f, const struct exti_rewrite_opts *opts, const char *name)
{
    struct elf_check c = {.opts = opts, .findings = {.report = record_finding, .user = f}};
    bool sound, found = false;

    f->count = 0;
    assert_ok(exti__elf_check_open(&c, exti__span(f->before.b, f->before.n),
                                   exti__span(f->after.b, f->after.n), &sound, &f->err),
              &f->err);
    if (!sound)
        fail_msg("%s", f->findings[0].message);
    for (size_t i = 0; i < exti__elf_check_count; i++) {
        if (strcmp(exti__elf_checks[i].name, name) != 0)
            continue;
        assert_ok(exti__elf_checks[i].run(&c, &f->err), &f->err);
        found = true;
    }
    exti__elf_check_close(&c);
    assert_true(found);
}

static void assert_finds(struct fixture *f, const struct exti_rewrite_opts *opts, const char *name,
                         uint64_t offset, const char *says)
{
    run_check(f, opts, name);
    for (size_t i = 0; i < f->count && i < MOST; i++)
        if (f->findings[i].offset == offset && strstr(f->findings[i].message, says))
            return;
    for (size_t i = 0; i < f->count && i < MOST; i++)
        print_message("%s at %llu\n", f->findings[i].message,
                      (unsigned long long)f->findings[i].offset);
    fail_msg("the check of %s does not say \"%s\" of offset %llu", name, says,
             (unsigned long long)offset);
}

static void assert_silent(struct fixture *f, const struct exti_rewrite_opts *opts, const char *name)
{
    run_check(f, opts, name);
    if (f->count)
        fail_msg("the check of %s says: %s", name, f->findings[0].message);
}

/* The planner's copy of `before` passes every check. */
static void assert_planned_passes(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    const struct exti_request req = {.opts = opts};
    struct exti_span before = exti__span(f->before.b, f->before.n), after;

    exti__plan_free(&f->plan);
    exti__plan_init(&f->plan, ROOM);
    assert_ok(exti__elf_format.plan(before, &req, &f->plan, &f->err), &f->err);
    after = exti__span(f->out, (size_t)exti__plan_size(&f->plan, before.n));
    memcpy(f->out, f->before.b, before.n);
    exti__plan_apply(&f->plan, f->out, before.n);
    f->count = 0;
    assert_ok(exti__elf_format.check(before, after, &req, &f->plan, record_finding, f, &f->err),
              &f->err);
    if (f->count)
        fail_msg("finding: %s", f->findings[0].message);
}

static size_t header(size_t i, size_t field)
{
    return 64 + i * PHDR + field;
}

static size_t slot(const struct elf_toy *t, uint64_t tag)
{
    for (size_t i = 0; i < t->dyn_slots; i++)
        if (toy_get(t, t->dyn + i * 16, 8) == tag)
            return t->dyn + i * 16;
    fail_msg("no tag 0x%llx", (unsigned long long)tag);
    return 0;
}

static void add_tag(struct elf_toy *t, uint64_t tag, uint64_t value)
{
    size_t at = slot(t, DT_NULL);

    toy_put(t, at, 8, tag);
    toy_put(t, at + 8, 8, value);
}

/* Writes `value` in both files. */
static void put_both(struct fixture *f, size_t at, size_t width, uint64_t value)
{
    toy_put(&f->before, at, width, value);
    toy_put(&f->after, at, width, value);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void stray_byte_is_reported_with_its_section(void **state)
{
    struct fixture *f = *state;
    const size_t shdr = f->before.shdr + 4 * SHDR, at = f->before.versym + 2;

    f->after.b[at] ^= 1;
    assert_finds(f, &none, "bytes", at, "PT_LOAD: byte 0x");
    put_both(f, shdr + 24, 8, f->before.versym);
    put_both(f, shdr + 32, 8, 10);
    assert_finds(f, &none, "bytes", at, "an unnamed section: byte 0x");
    put_both(f, 62, 2, 99); /* e_shstrndx */
    assert_finds(f, &none, "bytes", at, "an unnamed section: byte 0x");
    put_both(f, 62, 2, 2);
    assert_finds(f, &none, "bytes", at, "an unnamed section: byte 0x");
    put_both(f, shdr, 4, TOY_IMPORT);
    assert_finds(f, &none, "bytes", at, "import: byte 0x");
}

/* Both files have the fault, so that it is no difference. */
static void sections_that_contradict_the_dynamic_section_are_reported(void **state)
{
    struct fixture *f = *state;
    const size_t dynamic = f->before.shdr + SHDR, strings = dynamic + SHDR;

    put_both(f, dynamic + 40, 4, 2); /* sh_link */
    assert_silent(f, NULL, "sections");
    put_both(f, strings + 16, 8, f->before.str + 0x10);
    assert_finds(f, NULL, "sections", strings, "the dynamic section's strings at 0x");
    put_both(f, strings + 16, 8, f->before.str);
    put_both(f, strings + 24, 8, f->before.str + 0x10);
    assert_finds(f, NULL, "sections", strings, "the dynamic section's strings at 0x");
    put_both(f, strings + 24, 8, f->before.str);
    put_both(f, dynamic + 16, 8, TOY_DATA_VADDR + 0x10);
    assert_finds(f, NULL, "sections", dynamic, "the dynamic section at 0x2610, not at");
}

static void long_tail_behind_many_headers_is_checked_in_linear_time(void **state)
{
    enum { COUNT = 60000, ZEROS = 4 << 20, LENGTH = ZEROS + COUNT * PHDR + 8192 };
    static const uint8_t unused[PHDR];
    struct fixture *f = *state;
    uint8_t *file = calloc(LENGTH, 1);
    size_t n;

    assert_non_null(file);
    n = elf_toy_crowd(&f->before, COUNT, unused, file);
    file[LENGTH - 1] = 1;
    test_time_limit(30);
    assert_ok(exti__elf_format.check(exti__span(file, n), exti__span(file, LENGTH), NULL, NULL,
                                     record_finding, f, &f->err),
              &f->err);
    test_time_limit(0);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->findings[0].offset, LENGTH - 1);
    assert_says(&f->findings[0], "end of file: byte 0x01 in no PT_LOAD");
    free(file);
}

static void truncated_copy_is_reported(void **state)
{
    struct fixture *f = *state;

    f->after.n = f->after.shdr + SHDR;
    assert_finds(f, &none, "tail", f->after.n, "end of file: ");
    assert_silent(f, &none, "bytes"); /* which compares the bytes that both files have */
}

/* ---- the dynamic section --------------------------------------------------------------------- */

static void constructors_are_withheld_if_asked_for(void **state)
{
    static const struct exti_rewrite_opts withhold = {.size = sizeof withhold,
                                                      .flags = EXTI_RW_WITHHOLD};
    struct fixture *f = *state;

    add_tag(&f->before, DT_INIT, 0x400);
    add_tag(&f->after, DT_INIT, 0x400);
    assert_silent(f, &none, "dynamic tags");
    assert_silent(f, NULL, "dynamic tags");
    assert_finds(f, &withhold, "dynamic tags", TOY_DATA, "is gone");
    toy_put(&f->after, slot(&f->after, DT_INIT), 8, EXTI_DT_INIT);
    assert_silent(f, &withhold, "dynamic tags");
    assert_silent(f, NULL, "dynamic tags");
    assert_finds(f, &none, "dynamic tags", TOY_DATA, "is gone");
    toy_put(&f->after, slot(&f->after, EXTI_DT_INIT) + 8, 8, 0x408);
    assert_finds(f, &withhold, "dynamic tags", TOY_DATA, "is gone");
    assert_finds(f, NULL, "dynamic tags", TOY_DATA, "is gone");
}

static void changed_string_tags_are_reported(void **state)
{
    struct fixture *f = *state;
    const size_t at = slot(&f->before, DT_NULL);

    add_tag(&f->before, DT_AUXILIARY, TOY_V1);
    assert_finds(f, &none, "dynamic tags", TOY_DATA,
                 "string tag 0x0 \"(none)\", not 0x7ffffffd \"V1\"");
    add_tag(&f->after, DT_AUXILIARY, TOY_V1);
    assert_silent(f, &none, "dynamic tags");
    toy_put(&f->after, at + 8, 8, TOY_V2);
    assert_finds(f, &none, "dynamic tags", at,
                 "string tag 0x7ffffffd \"V2\", not 0x7ffffffd \"V1\"");
    toy_put(&f->before, at, 8, DT_NULL);
    assert_finds(f, &none, "dynamic tags", at, "string tag 0x7ffffffd \"V2\", not 0x0 \"(none)\"");
}

static void dynamic_section_without_end_is_reported(void **state)
{
    struct fixture *f = *state;

    while (toy_get(&f->after, f->after.dyn + (f->after.dyn_slots - 1) * 16, 8) == DT_NULL)
        add_tag(&f->after, DT_DEBUG, 0);
    assert_finds(f, &none, "dynamic end", TOY_DATA, "PT_DYNAMIC: no DT_NULL among its 18 entries");

    f->after = f->before;
    toy_put(&f->after, header(2, 40), 8, 8);
    assert_finds(f, &none, "dynamic end", TOY_DATA, "p_memsz 0x8 is less than p_filesz 0x120");
}

static void second_or_unreadable_id_is_reported(void **state)
{
    struct fixture *f = *state;

    add_tag(&f->after, DT_SONAME, TOY_SONAME);
    assert_finds(f, &none, "id", TOY_DATA, "DT_SONAME: 2 entries, not 1");
    toy_put(&f->after, slot(&f->after, DT_NULL) - 8, 8, 0x1000);
    assert_finds(f, NULL, "id", TOY_DATA, "DT_SONAME: string 0x1000 lies outside DT_STRTAB");
    toy_put(&f->after, slot(&f->after, DT_RUNPATH) + 8, 8, 0x1000);
    assert_finds(f, NULL, "search path", TOY_DATA, "DT_RUNPATH: string 0x1000 lies outside");
}

/* ---- expected strings ------------------------------------------------------------------------ */

static void origin_is_followed_through_every_string(void **state)
{
    static const struct exti_needed needed[] = {{NULL, "$ORIGIN/own.so", EXTI_NEEDED_LAST}};
    static const struct exti_rewrite_opts opts = {OPTS, .origin = "/usr/lib/of/it",
                                                  .needed = needed, .needed_count = 1};
    static const struct exti_rewrite_opts again = {
        OPTS, .origin = "/usr/lib/of/it", .path_prepend = "$ORIGIN/lib", .id = "libtoy.so"};
    struct fixture *f = *state;
    const size_t path = f->before.str + TOY_PATH;
    long n = 0;
    int rc;

    toy_put(&f->before, slot(&f->before, DT_NEEDED) + 8, 8, TOY_PATH);
    toy_put(&f->before, f->before.verneed + 4, 4, TOY_PATH);
    assert_planned_passes(f, &opts);
    do {
        exti__mem_fail_after(n++);
        rc = exti__elf_format.check(
            exti__span(f->before.b, f->before.n),
            exti__span(f->out, (size_t)exti__plan_size(&f->plan, f->before.n)),
            &(struct exti_request){.opts = &opts}, NULL, record_finding, f, &f->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &f->err, EXTI_NO_OFFSET);
    } while (rc);
    assert_true(n > 10);
    assert_int_equal(f->count, 0);

    memcpy(f->before.b + path, "${ORIGIN}/l", 11);
    assert_planned_passes(f, &opts);
    memcpy(f->before.b + path, "$ORIGIN/lib", 11);
    f->before = f->after; /* the path has the entries already, and the file has the new id */
    assert_planned_passes(f, &again);
    assert_int_equal(f->plan.count, 0);
}

static void unreadable_library_name_of_the_original_is_reported(void **state)
{
    struct fixture *f = *state;
    const size_t at = slot(&f->before, DT_NEEDED);

    toy_put(&f->before, at + 8, 8, 0x1000);
    assert_exti(exti__elf_format.check(
                    exti__span(f->before.b, f->before.n), exti__span(f->after.b, f->after.n),
                    &(struct exti_request){.opts = &none}, NULL, record_finding, f, &f->err),
                EXTI_E_FORMAT, &f->err, at);
    assert_says(&f->err, "DT_NEEDED: its name lies outside DT_STRTAB");
}

/* ---- program headers ------------------------------------------------------------------------- */

static void put_header(struct elf_toy *t, size_t i, uint32_t type, uint32_t flags, uint64_t offset,
                       uint64_t vaddr, uint64_t size)
{
    size_t n = t->n;

    t->n = header(i, 0);
    toy_phdr(t, type, flags, offset, vaddr, size, type == PT_LOAD ? 0x1000 : 8);
    t->n = n;
}

/* Gives the copy a new PT_LOAD of 512 bytes in entry 2 and moves PT_DYNAMIC to entry 3.  Returns
 * the offset of the new segment. */
static uint64_t add_load(struct fixture *f, uint32_t flags)
{
    struct elf_toy *t = &f->after;
    const uint64_t at = (f->before.n + 15) / 16 * 16;

    memmove(t->b + header(3, 0), t->b + header(2, 0), PHDR);
    put_header(t, 2, PT_LOAD, flags, at, 0x5000 + at % 0x1000, 512);
    t->n = at + 512;
    return at;
}

static void pt_phdr_of_a_program_keeps_its_slot(void **state)
{
    struct fixture *f = *state;

    put_header(&f->before, 3, PT_PHDR, PF_R, 64, 64, TOY_PHDRS * PHDR);
    put_header(&f->before, 4, PT_NOTE, PF_R, f->before.note, f->before.note, 24);
    f->after = f->before;
    add_load(f, PF_R);
    assert_silent(f, &none, "program headers");

    put_header(&f->before, 4, PT_INTERP, PF_R, f->before.note, f->before.note, 24);
    f->after = f->before;
    add_load(f, PF_R);
    assert_finds(f, &none, "program headers", header(3, 0),
                 "program header 3 of the original, type 0x6 at 0x40, is missing");
}

/* The first of two notes gave its slot away; the check must not mistake the second for it. */
static void first_of_two_notes_gives_its_slot(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .id = "a-name-that-is-not-there.so"};
    struct fixture *f = *state;

    /* With this alignment no room suffices for moving the notes up. */
    toy_put(&f->before, header(3, 48), 8, (uint64_t)1 << 63);
    put_header(&f->before, 4, PT_NOTE, PF_R, f->before.note, f->before.note, 24);
    assert_planned_passes(f, &opts);
    assert_int_equal(f->out[56], TOY_PHDRS);
}

static void moved_dynamic_section_must_be_writable_and_listed_behind(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->after;
    uint64_t at = add_load(f, PF_R);
    uint8_t entry[PHDR];

    memcpy(t->b + at, t->b + TOY_DATA, t->dyn_slots * 16);
    put_header(t, 3, PT_DYNAMIC, PF_R | PF_W, at, 0x5000 + at % 0x1000, t->dyn_slots * 16);
    assert_finds(f, &none, "segments", header(2, 0),
                 "PT_LOAD: flags 4, not writable like the PT_DYNAMIC in it, 6");

    toy_put(t, header(2, 4), 4, PF_R | PF_W);
    assert_silent(f, &none, "segments");
    memcpy(entry, t->b + header(2, 0), PHDR);
    memcpy(t->b + header(2, 0), t->b + header(3, 0), PHDR);
    memcpy(t->b + header(3, 0), entry, PHDR);
    assert_finds(f, &none, "segments", header(2, 0),
                 "program header 2, type 0x2, comes before its new PT_LOAD 3");
}

static void new_segment_within_the_original_is_reported(void **state)
{
    struct fixture *f = *state;

    add_load(f, PF_R);
    toy_put(&f->after, header(2, 8), 8, 0x800);
    toy_put(&f->after, header(2, 16), 8, 0x5800);
    assert_finds(f, &none, "tail", header(2, 0),
                 "new PT_LOAD: offset 0x800 is before the original");
}

static void notes_outside_the_file_are_ignored(void **state)
{
    struct fixture *f = *state;

    toy_put(&f->before, header(3, 8), 8, 0x10000);
    toy_put(&f->after, header(3, 8), 8, 0x10008);
    assert_silent(f, &none, "notes");
}

/* ---- room ------------------------------------------------------------------------------------ */

static void growth_into_used_bytes_is_reported(void **state)
{
    struct fixture *f = *state;
    const size_t end = header(TOY_PHDRS, 0);

    /* Without sections nothing proves that mapped bytes are padding. */
    put_both(f, 40, 8, 0);
    put_both(f, 60, 2, 0);
    memset(f->before.b + f->before.note, 0, PHDR);
    put_header(&f->before, 3, PT_NULL, 0, 0, 0, 0);
    for (uint64_t tag = DT_HASH; tag; tag = tag == DT_HASH ? DT_GNU_HASH : 0)
        toy_put(&f->before, slot(&f->before, tag), 8, DT_DEBUG);
    memcpy(f->after.b, f->before.b, f->before.n);
    toy_put(&f->after, 56, 2, TOY_PHDRS + 1);
    assert_finds(f, &none, "table growth", end, "the original uses");
}

static void growth_over_unknown_bytes_is_reported(void **state)
{
    struct fixture *f = *state;
    const uint64_t end = toy_get(&f->before, header(0, 32), 8);

    toy_put(&f->after, header(0, 32), 8, end + 16);
    toy_put(&f->after, header(0, 40), 8, end + 16);
    assert_silent(f, &none, "segment growth");
    put_both(f, end + 4, 1, 7);
    assert_finds(f, &none, "segment growth", end + 4, "PT_LOAD: new part at ");
}

static void segment_that_runs_into_the_next_is_reported(void **state)
{
    struct fixture *f = *state;
    const uint64_t size = toy_get(&f->before, header(0, 32), 8);

    toy_put(&f->after, header(0, 32), 8, TOY_DATA + 8);
    toy_put(&f->after, header(0, 40), 8, TOY_DATA + 8);
    assert_finds(f, &none, "segment growth", header(0, 0),
                 "its new end 0x608 runs into the PT_LOAD at 0x2600");
    assert_true(size < TOY_DATA);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static void symbol_that_stands_for_a_version_keeps_its_name(void **state)
{
    static const struct exti_rename renames[] = {{"V2", "W2"}, {"export", "exqpsu"}};
    static const struct exti_rewrite_opts opts = {OPTS, .renames = renames, .rename_count = 2};
    struct fixture *f = *state;

    assert_planned_passes(f, &opts);
    /* A symbol that only shares its name with a version may not. */
    put_both(f, f->before.sym + 2 * 24, 4, TOY_V1);
    assert_finds(f,
                 &(struct exti_rewrite_opts){OPTS, .renames = &(struct exti_rename){"V1", "W1"},
                                             .rename_count = 1},
                 "symbols", f->before.sym + 2 * 24, "DT_SYMTAB 2: name \"V1\", not \"W1\"");
}

static void version_without_name_is_ignored(void **state)
{
    struct fixture *f = *state;

    put_both(f, f->before.verneed + 16 + 8, 4, 0x1000);
    assert_silent(f, &none, "versions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fault_test(stray_byte_is_reported_with_its_section),
        fault_test(constructors_are_withheld_if_asked_for),
        fault_test(sections_that_contradict_the_dynamic_section_are_reported),
        fault_test(long_tail_behind_many_headers_is_checked_in_linear_time),
        fault_test(truncated_copy_is_reported),
        fault_test(changed_string_tags_are_reported),
        fault_test(dynamic_section_without_end_is_reported),
        fault_test(second_or_unreadable_id_is_reported),
        fault_test(origin_is_followed_through_every_string),
        fault_test(unreadable_library_name_of_the_original_is_reported),
        fault_test(pt_phdr_of_a_program_keeps_its_slot),
        fault_test(first_of_two_notes_gives_its_slot),
        fault_test(moved_dynamic_section_must_be_writable_and_listed_behind),
        fault_test(new_segment_within_the_original_is_reported),
        fault_test(notes_outside_the_file_are_ignored),
        fault_test(growth_into_used_bytes_is_reported),
        fault_test(growth_over_unknown_bytes_is_reported),
        fault_test(segment_that_runs_into_the_next_is_reported),
        fault_test(symbol_that_stands_for_a_version_keeps_its_name),
        fault_test(version_without_name_is_ignored),
    };

    return cmocka_run_group_tests_name("elf/elf_check_faults", tests, NULL, NULL);
}
