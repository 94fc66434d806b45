/* Plans for hand-made files: each layout that determines where structures go, and each fault that
 * makes an edit fail.  The check operation examines every copy. */
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/edit/elf_strings.h"
#include "elf/elf_format.h"
#include "tests/unit/elf/elf_toy.h"

#define OPTS .size = sizeof(struct exti_rewrite_opts)

enum { ROOM = 1 << 17, PHDR = 56, SHDR = 64, APART = 0x1600 };

static const struct exti_needed one_more[] = {{NULL, "libcontext.so", EXTI_NEEDED_FIRST}};
/* Text that fits only behind the old string table. */
static const struct exti_rewrite_opts longer = {OPTS, .id = "a-name-that-is-not-there.so"};

struct fixture {
    struct elf_toy toy;
    struct exti_plan plan;
    uint8_t in[ROOM], out[ROOM];
    size_t in_n, out_n;
    struct exti_error err, finding;
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
    return 0;
}

#define plan_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int record_finding(void *user, const struct exti_error *finding)
{
    *(struct exti_error *)user = *finding;
    return 1;
}

static int plan(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    if (!f->in_n) {
        memcpy(f->in, f->toy.b, f->toy.n);
        f->in_n = f->toy.n;
    }
    exti__plan_free(&f->plan);
    exti__plan_init(&f->plan, ROOM);
    f->err = (struct exti_error){0};
    return exti__elf_format.plan(exti__span(f->in, f->in_n), &(struct exti_request){.opts = opts},
                                 &f->plan, &f->err);
}

/* Makes the edit; the check operation must find nothing in the copy. */
static void make(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    assert_ok(plan(f, opts), &f->err);
    f->out_n = (size_t)exti__plan_size(&f->plan, f->in_n);
    assert_true(f->out_n <= ROOM);
    memcpy(f->out, f->in, f->in_n);
    exti__plan_apply(&f->plan, f->out, f->in_n);
    f->finding = (struct exti_error){0};
    assert_ok(exti__elf_format.check(exti__span(f->in, f->in_n), exti__span(f->out, f->out_n),
                                     &(struct exti_request){.opts = opts}, NULL, record_finding,
                                     &f->finding, &f->err),
              &f->err);
    if (f->finding.message[0])
        fail_msg("finding: %s", f->finding.message);
}

static void assert_refused(struct fixture *f, const struct exti_rewrite_opts *opts, int code,
                           uint64_t offset, const char *says)
{
    assert_exti(plan(f, opts), code, &f->err, offset);
    assert_says(&f->err, says);
}

static void new_toy(struct fixture *f)
{
    f->in_n = 0;
    elf_toy_make(&f->toy, true, false);
}

static size_t header(const struct elf_toy *t, size_t i, size_t field)
{
    return t->phdr + i * PHDR + field;
}

static size_t tag_at(const struct elf_toy *t, uint64_t tag)
{
    for (size_t i = 0; i < t->dyn_slots; i++)
        if (toy_get(t, t->dyn + i * 16, 8) == tag)
            return t->dyn + i * 16;
    fail_msg("no tag 0x%llx", (unsigned long long)tag);
    return 0;
}

/* Puts a tag into the first free slot. */
static void add_tag(struct elf_toy *t, uint64_t tag, uint64_t value)
{
    size_t at = tag_at(t, DT_NULL);

    toy_put(t, at, 8, tag);
    toy_put(t, at + 8, 8, value);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void strings_outside_the_table_are_reported(void **state)
{
    static const struct exti_rewrite_opts path = {OPTS, .path_prepend = "/ctx"};
    static const struct {
        uint64_t tag;
        const struct exti_rewrite_opts *opts;
        const char *says;
    } cases[] = {
        {DT_NEEDED, &longer, "DT_NEEDED"},        {DT_SONAME, &longer, "PT_DYNAMIC: string"},
        {DT_SONAME, &path, "PT_DYNAMIC: string"}, {DT_RUNPATH, &path, "DT_RUNPATH"},
        {DT_RUNPATH, &longer, "DT_RUNPATH"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        new_toy(f);
        toy_put(&f->toy, tag_at(&f->toy, cases[i].tag) + 8, 8, 0x1000);
        assert_refused(f, cases[i].opts, EXTI_E_FORMAT, f->toy.str + 0x1000, cases[i].says);
    }
    new_toy(f);
    toy_put(&f->toy, tag_at(&f->toy, DT_RUNPATH), 8, DT_RPATH);
    toy_put(&f->toy, tag_at(&f->toy, DT_RPATH) + 8, 8, 0x1000);
    assert_refused(f, &longer, EXTI_E_FORMAT, f->toy.str + 0x1000, "DT_RPATH");
    new_toy(f);
    add_tag(&f->toy, DT_AUXILIARY, 0x1000);
    assert_refused(f, &longer, EXTI_E_FORMAT, f->toy.str + 0x1000, "PT_DYNAMIC: string");
}

static void origin_with_a_dollar_is_refused(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .origin = "/a$b"};
    struct fixture *f = *state;

    new_toy(f);
    toy_put(&f->toy, tag_at(&f->toy, DT_NEEDED) + 8, 8, TOY_PATH);
    assert_refused(f, &opts, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "/a$b");
}

static void programs_are_recognised_by_their_tags(void **state)
{
    static const struct exti_rewrite_opts unpin = {OPTS, .flags = EXTI_RW_CLEAR_NODELETE};
    struct fixture *f = *state;

    new_toy(f); /* like libc.so.6, a library that also runs */
    toy_put(&f->toy, header(&f->toy, 3, 0), 4, PT_INTERP);
    make(f, &unpin);
    new_toy(f);
    toy_put(&f->toy, header(&f->toy, 3, 0), 4, PT_INTERP);
    toy_put(&f->toy, tag_at(&f->toy, DT_SONAME), 8, DT_DEBUG);
    assert_refused(f, &longer, EXTI_E_UNSUPPORTED, f->toy.note,
                   "a program: it has PT_INTERP, DT_DEBUG and no DT_SONAME");
}

static void too_many_headers_are_refused(void **state)
{
    enum { MANY = 1025 };
    struct fixture *f = *state;

    new_toy(f);
    toy_put(&f->toy, 32, 8, f->toy.n);
    toy_put(&f->toy, 56, 2, MANY);
    memcpy(f->in, f->toy.b, f->toy.n);
    memcpy(f->in + f->toy.n, f->toy.b + f->toy.phdr, TOY_PHDRS * PHDR);
    f->in_n = f->toy.n + MANY * PHDR;
    assert_refused(f, &longer, EXTI_E_UNSUPPORTED, f->toy.n, "1025 entries, at most 1024");
}

static void new_names_in_a_mips_hash_table_are_refused(void **state)
{
    static const struct exti_rename renames[] = {{"export", "exqpsu"}, {"import", "imqpsu"}};
    static const struct exti_rewrite_opts both = {OPTS, .renames = renames, .rename_count = 2};
    static const struct exti_rewrite_opts import = {OPTS, .renames = renames + 1,
                                                    .rename_count = 1};
    struct fixture *f = *state;

    new_toy(f);
    toy_put(&f->toy, 18, 2, EM_MIPS);
    toy_put(&f->toy, tag_at(&f->toy, DT_GNU_HASH), 8, DT_MIPS_XHASH);
    assert_refused(f, &both, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "DT_MIPS_XHASH");
    make(f, &import);
}

static void no_address_space_left_is_reported(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    elf_toy_make(t, false, false);
    toy_put(t, t->phdr + 32 + 20, 4, 0xffffff00 - TOY_DATA_VADDR);
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, "no address space left");
}

static void string_table_stays_below_4_gib(void **state)
{
    struct fixture *f = *state;
    struct elf_file file = {.strtab.s.n = UINT32_MAX - 2};
    struct elf_strings s = {.f = &file, .added = exti__buf(64)};
    uint64_t off = 0;
    int rc;

    assert_ok(exti__elf_strings_put(&s, EXTI_NO_OFFSET, "ab", false, &off, &f->err), &f->err);
    assert_true(off == UINT32_MAX - 2);
    rc = exti__elf_strings_put(&s, EXTI_NO_OFFSET, "cd", false, &off, &f->err);
    exti__elf_strings_free(&s);
    assert_exti(rc, EXTI_E_NOSPACE, &f->err, EXTI_NO_OFFSET);
    assert_says(&f->err, "DT_STRTAB: would grow past 4 GiB");
}

/* ---- the dynamic section --------------------------------------------------------------------- */

static void both_relocation_counts_make_room(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .needed = one_more, .needed_count = 1,
                                                  .flags = EXTI_RW_SYMBOLIC};
    struct fixture *f = *state;
    struct exti_image image = {0};

    new_toy(f);
    add_tag(&f->toy, DT_RELACOUNT, 1);
    add_tag(&f->toy, DT_RELCOUNT, 1);
    make(f, &opts);
    assert_ok(exti__elf_format.read(exti__span(f->out, f->out_n), &image, &f->err), &f->err);
    assert_int_equal(image.info.needed_count, 2);
    assert_true(image.info.flags & EXTI_IMAGE_SYMBOLIC);
    exti__image_clear(&image);
    /* The section has not moved: its header is unchanged, behind the new segment for the
     * strings. */
    assert_memory_equal(f->out + header(&f->toy, 3, 0), f->in + header(&f->toy, 2, 0), PHDR);
}

/* Its value is relative to its own slot, and the entry moves to another slot. */
static void mips_debug_pointer_keeps_its_target(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .path_set = ""};
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    uint64_t was, slot = 0;

    new_toy(f);
    toy_put(t, 18, 2, EM_MIPS);
    add_tag(t, DT_MIPS_RLD_MAP_REL, 0x40);
    was = tag_at(t, DT_MIPS_RLD_MAP_REL);
    make(f, &opts);
    memcpy(t->b, f->out, sizeof t->b);
    slot = tag_at(t, DT_MIPS_RLD_MAP_REL);
    assert_int_equal(was - slot, 16);
    assert_int_equal(slot + toy_get(t, slot + 8, 8), was + 0x40);
}

/* llvm-strip needs the header of a segment before those of the segments inside it. */
static void moved_dynamic_section_goes_behind_its_segment(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .id = "x", .needed = one_more,
                                                  .needed_count = 1};
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    uint8_t first[PHDR];

    new_toy(f);
    while (toy_get(t, t->dyn + (t->dyn_slots - 2) * 16, 8) == DT_NULL)
        add_tag(t, DT_DEBUG, 0);
    memcpy(first, t->b + header(t, 2, 0), PHDR);
    memmove(t->b + header(t, 1, 0), t->b + header(t, 0, 0), 2 * PHDR);
    memcpy(t->b + header(t, 0, 0), first, PHDR);
    make(f, &opts);
    memcpy(t->b, f->out, sizeof t->b);
    assert_int_equal(toy_get(t, header(t, 0, 0), 4), PT_LOAD);
    assert_int_equal(toy_get(t, header(t, 1, 0), 4), PT_LOAD);
    assert_int_equal(toy_get(t, header(t, 2, 0), 4), PT_LOAD);
    assert_int_equal(toy_get(t, header(t, 3, 0), 4), PT_DYNAMIC);
    assert_true(toy_get(t, header(t, 2, 4), 4) & PF_W);
}

/* ---- the unused end of a segment ------------------------------------------------------------- */

/* The same toy with its data a page further in the file, so that there is room behind its text.
 * Returns the end of the text. */
static size_t new_roomy_toy(struct fixture *f)
{
    struct elf_toy *t = &f->toy;
    const size_t by = APART - TOY_DATA;

    new_toy(f);
    memmove(t->b + APART, t->b + TOY_DATA, t->n - TOY_DATA);
    memset(t->b + TOY_DATA, 0, APART - TOY_DATA < t->n - TOY_DATA ? by : t->n - TOY_DATA);
    t->n += by;
    t->dyn += by;
    t->shdr += by;
    toy_put(t, 40, 8, t->shdr);
    toy_put(t, header(t, 1, 8), 8, APART);
    toy_put(t, header(t, 2, 8), 8, APART);
    toy_put(t, t->shdr + SHDR + 24, 8, APART);
    return t->verdef + 28;
}

static void make_and_assert_grown(struct fixture *f, bool grown)
{
    make(f, &longer);
    assert_int_equal(f->plan.tail.n != 0, grown);
}

/* The strings need no new segment as long as the bytes behind the text are unused. */
static void strings_go_only_into_unused_bytes(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    size_t end = new_roomy_toy(f);

    make_and_assert_grown(f, false);

    new_roomy_toy(f);
    t->b[end + 8] = 1; /* something unknown */
    make_and_assert_grown(f, true);

    new_roomy_toy(f);
    toy_put(t, t->shdr + 4 * SHDR + 24, 8, end); /* a section */
    make_and_assert_grown(f, true);

    new_roomy_toy(f);
    toy_put(t, header(t, 3, 0), 4, 0x6fffff00); /* a segment of some kind */
    toy_put(t, header(t, 3, 8), 8, end);
    toy_put(t, header(t, 4, 0), 4, PT_NULL);
    make_and_assert_grown(f, true);

    new_roomy_toy(f);
    memcpy(t->b + end, t->b + t->shdr, SHDR); /* the section headers */
    toy_put(t, 40, 8, end);
    toy_put(t, 60, 2, 1);
    make_and_assert_grown(f, true);
}

/* Addresses and offsets of the segment are not congruent, so aligned structures cannot go there. */
static void segment_with_incongruent_offset_does_not_grow(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    new_toy(f);
    toy_put(t, header(t, 3, 0), 4, PT_NULL);
    toy_put(t, header(t, 4, 0), 4, PT_LOAD);
    toy_put(t, header(t, 4, 4), 4, PF_R);
    toy_put(t, header(t, 4, 8), 8, 0x1000);
    toy_put(t, header(t, 4, 16), 8, 0x5008);
    toy_put(t, header(t, 4, 24), 8, 0x5008);
    toy_put(t, header(t, 4, 32), 8, 16);
    toy_put(t, header(t, 4, 40), 8, 16);
    toy_put(t, header(t, 4, 48), 8, 8);
    t->n = 0x1800;
    make_and_assert_grown(f, true);
}

/* ---- room for one more header ---------------------------------------------------------------- */

static const char no_room[] =
    "program header table: no entry can be spared and no room is left behind it";

/* Without a note and an empty entry, a new header can only go behind the table. */
static void new_toy_without_spare(struct fixture *f)
{
    struct elf_toy *t = &f->toy;

    new_toy(f);
    toy_put(t, header(t, 3, 0), 4, 0x6fffff00);
    toy_put(t, header(t, 3, 32), 8, 0);
    toy_put(t, header(t, 3, 40), 8, 0);
}

/* Zeroes the note and everything behind it up to the symbols; there are no hash tables. */
static void new_toy_with_gap(struct fixture *f)
{
    struct elf_toy *t = &f->toy;

    new_toy_without_spare(f);
    memset(t->b + t->note, 0, t->sym - t->note);
    toy_put(t, tag_at(t, DT_HASH), 8, DT_DEBUG);
    toy_put(t, tag_at(t, DT_GNU_HASH), 8, DT_DEBUG);
    toy_put(t, t->shdr + 4 * SHDR + 4, 4, SHT_NULL);
}

static void table_grows_into_an_unused_gap_only(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    size_t gap;

    new_toy_with_gap(f);
    gap = header(t, TOY_PHDRS, 0);
    make(f, &longer);
    assert_int_equal(f->out[56], TOY_PHDRS + 1);

    new_toy_with_gap(f);
    t->b[gap] = 1; /* something unknown */
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);

    new_toy_with_gap(f);
    memset(t->b + gap, 'Z', PHDR); /* patchelf's filler */
    make(f, &longer);
    assert_int_equal(f->out[56], TOY_PHDRS + 1);

    new_toy_with_gap(f);
    add_tag(t, DT_INIT, gap + 8); /* an address for the loader */
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);

    new_toy_with_gap(f);
    toy_put(t, t->sym + 2 * 24 + 8, 8, gap + 8); /* a symbol */
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);

    new_toy_with_gap(f);
    toy_put(t, header(t, 3, 8), 8, gap); /* another segment's part */
    toy_put(t, header(t, 3, 16), 8, gap);
    toy_put(t, header(t, 3, 32), 8, 8);
    toy_put(t, header(t, 3, 40), 8, 8);
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);

    new_toy_with_gap(f);
    toy_put(t, header(t, 1, 8), 8, gap); /* the data's pages start there too */
    toy_put(t, header(t, 1, 16), 8, 0x2000 + gap);
    toy_put(t, header(t, 1, 24), 8, 0x2000 + gap);
    toy_put(t, header(t, 1, 32), 8, TOY_DATA - gap + t->dyn_slots * 16);
    toy_put(t, header(t, 1, 40), 8, TOY_DATA - gap + t->dyn_slots * 16);
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);
}

/* Only its tag refers to the hash table, which is too far behind for the table to push it away. */
static void table_does_not_grow_over_a_hash_table_alone(void **state)
{
    struct fixture *f = *state;

    new_toy_without_spare(f);
    memset(f->toy.b + f->toy.note, 0, f->toy.hash - f->toy.note);
    assert_refused(f, &longer, EXTI_E_NOSPACE, f->toy.phdr, no_room);
}

static void pushed_notes_keep_their_alignment(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    uint64_t to;

    new_toy(f);
    toy_put(t, header(t, 3, 48), 8, 16);
    make(f, &longer);
    memcpy(t->b, f->out, sizeof t->b);
    assert_int_equal(toy_get(t, 56, 2), TOY_PHDRS + 1);
    for (size_t i = 0; i < TOY_PHDRS + 1; i++)
        if (toy_get(t, header(t, i, 0), 4) == PT_NOTE) {
            to = toy_get(t, header(t, i, 8), 8);
            assert_int_equal((to - f->toy.note) % 16, 0);
            assert_memory_equal(f->out + to, f->in + f->toy.note, 24);
        }

    new_toy(f); /* with an impossible alignment the note gives up its entry */
    toy_put(t, header(t, 3, 48), 8, (uint64_t)1 << 63);
    make(f, &longer);
    assert_int_equal(f->out[56], TOY_PHDRS);
}

/* ---- .symtab --------------------------------------------------------------------------------- */

/* Turns the toy's .dynsym section into a .symtab of three symbols: entry 0, an absolute _DYNAMIC as
 * some linkers make it, and an absolute object 8 bytes behind it. */
static size_t add_symtab(struct elf_toy *t)
{
    const size_t shdr = t->shdr + 3 * SHDR, at = t->n;

    toy_put(t, shdr + 4, 4, SHT_SYMTAB);
    toy_put(t, shdr + 8, 8, 0);
    toy_put(t, shdr + 16, 8, 0);
    toy_put(t, shdr + 24, 8, at);
    toy_put(t, shdr + 32, 8, 3 * 24);
    toy_put(t, shdr + 56, 8, 24);
    t->n += 24;
    toy_sym(t, 0, STB_LOCAL, STT_OBJECT, SHN_ABS, TOY_DATA_VADDR);
    toy_sym(t, 0, STB_LOCAL, STT_OBJECT, SHN_ABS, TOY_DATA_VADDR + 8);
    return at;
}

static void absolute_dynamic_symbol_follows_the_section(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .id = "x", .needed = one_more,
                                                  .needed_count = 1};
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    size_t symtab;

    new_toy(f);
    while (toy_get(t, t->dyn + (t->dyn_slots - 2) * 16, 8) == DT_NULL)
        add_tag(t, DT_DEBUG, 0);
    symtab = add_symtab(t);
    make(f, &opts);
    memcpy(t->b, f->out, sizeof t->b);
    for (size_t i = 0; i < TOY_PHDRS + 1; i++)
        if (toy_get(t, header(t, i, 0), 4) == PT_DYNAMIC)
            assert_int_equal(toy_get(t, symtab + 24 + 8, 8), toy_get(t, header(t, i, 16), 8));
    assert_int_not_equal(toy_get(t, symtab + 24 + 8, 8), TOY_DATA_VADDR);
    assert_int_equal(toy_get(t, symtab + 48 + 8, 8), TOY_DATA_VADDR + 8);
}

/* The section header of type SHT_SYMTAB covers bytes that the loader maps, so it is wrong. */
static void mapped_symtab_is_left_alone(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .flags = EXTI_RW_CLEAR_UNIQUE};
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    new_toy(f);
    toy_put(t, t->shdr + 3 * SHDR + 4, 4, SHT_SYMTAB);
    make(f, &opts);
    assert_int_equal(f->plan.count, 1); /* the one in DT_SYMTAB */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(strings_outside_the_table_are_reported),
        plan_test(origin_with_a_dollar_is_refused),
        plan_test(programs_are_recognised_by_their_tags),
        plan_test(too_many_headers_are_refused),
        plan_test(new_names_in_a_mips_hash_table_are_refused),
        plan_test(no_address_space_left_is_reported),
        plan_test(string_table_stays_below_4_gib),
        plan_test(both_relocation_counts_make_room),
        plan_test(mips_debug_pointer_keeps_its_target),
        plan_test(moved_dynamic_section_goes_behind_its_segment),
        plan_test(strings_go_only_into_unused_bytes),
        plan_test(segment_with_incongruent_offset_does_not_grow),
        plan_test(table_grows_into_an_unused_gap_only),
        plan_test(table_does_not_grow_over_a_hash_table_alone),
        plan_test(pushed_notes_keep_their_alignment),
        plan_test(absolute_dynamic_symbol_follows_the_section),
        plan_test(mapped_symtab_is_left_alone),
    };

    return cmocka_run_group_tests_name("elf/elf_plan_toy", tests, NULL, NULL);
}
