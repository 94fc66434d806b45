/* Edits the bytes as an ELF file.  The first byte selects the edits, from 128 on random ones; the
 * next three select a place in the copy to corrupt.  The file follows.  Aborts when a promise is
 * broken: those of fuzz_promise.h for any file, and for a sound file that the planner accepts, the
 * check finds nothing in the copy, editing the copy again changes nothing, another edit of the copy
 * is as sound, and so is a lean one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plan.h"
#include "elf/check/elf_check_hash.h"
#include "elf/elf_format.h"
#include "elf/read/elf_open.h"
#include "elf/read/elf_version.h"
#include "tests/fuzz/fuzz_promise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFIX 4

static const struct exti_needed add_first[] = {{NULL, "libcontext.so.1", EXTI_NEEDED_FIRST}};
static const struct exti_needed add_last[] = {{NULL, "libcontext.so.1", EXTI_NEEDED_LAST}};
static const struct exti_needed exchange[] = {{"libc.so.6", "libother.so", EXTI_NEEDED_LAST},
                                              {NULL, "c.so.6", EXTI_NEEDED_FIRST}};
static const struct exti_needed removal[] = {{"libm.so.6", NULL, EXTI_NEEDED_LAST}};
static const struct exti_rename same_hash[] = {{"Py_one", "QX_one"}, {"Py_two", "QX_two"}};
static const struct exti_rename other_hash[] = {{"Py_one", "one"},
                                                {"Py_two", "a_longer_name_than_before"}};

#define EDIT .size = sizeof(struct exti_rewrite_opts)
static const struct exti_rewrite_opts edits[] = {
    {EDIT, .id = "libf.so.c"},
    {EDIT, .id = "libfuzz-of-context-7.so", .needed = add_first, .needed_count = 1},
    {EDIT, .id = "a.so", .needed = add_last, .needed_count = 1, .path_prepend = "/ctx/dir",
     .origin = "/opt/lib"},
    {EDIT, .needed = exchange, .needed_count = 2, .path_set = "/a:/b"},
    {EDIT, .needed = removal, .needed_count = 1, .path_set = ""},
    {EDIT, .flags = EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE},
    {EDIT, .renames = same_hash, .rename_count = 2},
    {EDIT, .id = "libfuzz-of-context-7.so", .renames = other_hash, .rename_count = 2},
    {EDIT, .id = "libfuzz-of-context-7.so", .needed = add_first, .needed_count = 1,
     .renames = same_hash, .rename_count = 2, .flags = EXTI_RW_CLEAR_UNIQUE},
    {EDIT},
};

static int must_not_report(void *user, const struct exti_error *finding)
{
    fuzz_breaks(user, finding);
    return 1;
}

/* ---- another reader -------------------------------------------------------------------------- */

/* Decodes the few structures that a loader needs, with none of the library's code. */
struct view {
    struct fuzz_fields b;
    bool wide;
    uint64_t phoff, shoff, dyn_at, dyn_end;
    size_t phnum, shnum;
};

static uint64_t word(const struct view *v, uint64_t at)
{
    return fuzz_get(&v->b, at, v->wide ? 8 : 4);
}

/* Where header `i` has a field: p_offset, p_vaddr, p_filesz by their place among the words. */
static uint64_t phdr_word(const struct view *v, size_t i, size_t k)
{
    return word(v, v->phoff + i * (v->wide ? 56 : 32) + (v->wide ? 8 + 8 * k : 4 + 4 * k));
}

static uint32_t phdr_type(const struct view *v, size_t i)
{
    return (uint32_t)fuzz_get(&v->b, v->phoff + i * (v->wide ? 56 : 32), 4);
}

/* The file offset of an address, or all ones. */
static uint64_t offset_of(const struct view *v, uint64_t vaddr)
{
    for (size_t i = 0; i < v->phnum; i++)
        if (phdr_type(v, i) == PT_LOAD && vaddr >= phdr_word(v, i, 1) &&
            vaddr - phdr_word(v, i, 1) < phdr_word(v, i, 3))
            return phdr_word(v, i, 0) + (vaddr - phdr_word(v, i, 1));
    return UINT64_MAX;
}

static bool view_open(struct view *v, struct exti_span file)
{
    *v = (struct view){.b = {.p = file.p, .n = file.n}};
    if (file.n < 64 || memcmp(file.p, ELFMAG, SELFMAG) != 0)
        return false;
    v->wide = file.p[EI_CLASS] == ELFCLASS64;
    v->b.big_endian = file.p[EI_DATA] == ELFDATA2MSB;
    v->phoff = word(v, v->wide ? 32 : 28);
    v->shoff = word(v, v->wide ? 40 : 32);
    v->phnum = (size_t)fuzz_get(&v->b, v->wide ? 56 : 44, 2);
    v->shnum = (size_t)fuzz_get(&v->b, v->wide ? 60 : 48, 2);
    if (v->phoff > file.n || v->phnum > (file.n - v->phoff) / (v->wide ? 56 : 32))
        v->phnum = 0;
    for (size_t i = 0; i < v->phnum; i++)
        if (phdr_type(v, i) == PT_DYNAMIC) {
            v->dyn_at = offset_of(v, phdr_word(v, i, 1));
            v->dyn_end = v->dyn_at + phdr_word(v, i, 3);
        }
    return v->dyn_at && v->dyn_at < file.n && v->dyn_end <= file.n;
}

/* The last entry with the tag counts, as for ld.so's l_info. */
static uint64_t tag_value(const struct view *v, uint64_t tag, uint64_t otherwise)
{
    const size_t size = v->wide ? 8 : 4;

    for (uint64_t at = v->dyn_at; at + 2 * size <= v->dyn_end && word(v, at); at += 2 * size)
        if (word(v, at) == tag)
            otherwise = word(v, at + size);
    return otherwise;
}

static const char *string_at(const struct view *v, uint64_t strtab, uint64_t size, uint64_t off)
{
    if (strtab > v->b.n || size > v->b.n - strtab || off >= size ||
        !memchr(v->b.p + strtab + off, 0, size - off))
        return NULL;
    return (const char *)v->b.p + strtab + off;
}

static void read_facts(struct exti_span file, struct fuzz_facts *out)
{
    struct view v;
    uint64_t strtab, strsz;
    const size_t none = SIZE_MAX;

    out->why = "no dynamic section";
    if (!view_open(&v, file))
        return;
    strtab = offset_of(&v, tag_value(&v, DT_STRTAB, 0));
    strsz = tag_value(&v, DT_STRSZ, 0);
    if (tag_value(&v, DT_SONAME, none) != none)
        out->id = string_at(&v, strtab, strsz, tag_value(&v, DT_SONAME, 0));
    out->why = NULL;
    for (uint64_t at = v.dyn_at, size = v.wide ? 8 : 4; at + 2 * size <= v.dyn_end && word(&v, at);
         at += 2 * size) {
        const char *text = string_at(&v, strtab, strsz, word(&v, at + size));

        if (word(&v, at) != DT_NEEDED)
            continue;
        if (!text || out->count == FUZZ_NEEDED)
            out->why = "an unreadable DT_NEEDED";
        else
            out->needed[out->count++] = text;
    }
}

/* ---- mutation -------------------------------------------------------------------------------- */

static void list_tables(struct fuzz_fields *f, const struct view *v)
{
    static const uint64_t tables[] = {DT_HASH,   DT_GNU_HASH, DT_VERNEED, DT_VERDEF,
                                      DT_SYMTAB, DT_VERSYM,   DT_RELA,    DT_JMPREL};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        uint64_t at = offset_of(v, tag_value(v, tables[i], UINT64_MAX));

        if (at != UINT64_MAX)
            fuzz_words(f, at, 24, i == 5 ? 2 : 4);
    }
}

/* Headers, dynamic entries, notes, and the heads of the tables. */
static void list_fields(struct fuzz_fields *f, const struct view *v)
{
    const size_t word_size = v->wide ? 8 : 4, ph = v->wide ? 56 : 32, sh = v->wide ? 64 : 40;

    fuzz_words(f, 16, 2, 2);
    fuzz_words(f, 24, 3, word_size);
    fuzz_words(f, v->wide ? 52 : 40, 6, 2);
    for (size_t i = 0; i < v->phnum && i < 64; i++) {
        fuzz_field(f, v->phoff + i * ph, 4);
        fuzz_words(f, v->phoff + i * ph + word_size, v->wide ? 6 : 7, word_size);
        if (phdr_type(v, i) == PT_NOTE)
            fuzz_words(f, phdr_word(v, i, 0), 3, 4);
    }
    for (size_t i = 0; i < v->shnum && i < 64; i++) {
        fuzz_words(f, v->shoff + i * sh, 2, 4);
        fuzz_words(f, v->shoff + i * sh + 8, 4, word_size);
        fuzz_words(f, v->shoff + i * sh + 8 + 4 * word_size, 2, 4);
        fuzz_words(f, v->shoff + i * sh + 16 + 4 * word_size, 2, word_size);
    }
    if (v->dyn_end > v->dyn_at && v->dyn_end - v->dyn_at < 4096)
        fuzz_words(f, v->dyn_at, (size_t)(v->dyn_end - v->dyn_at) / word_size, word_size);
    list_tables(f, v);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    static struct fuzz_fields fields;
    struct view v;

    if (fuzz_fields_begin(&fields, data, size, PREFIX, false)) {
        view_open(&v, exti__span(fields.p, fields.n));
        fields.big_endian = v.b.big_endian;
        list_fields(&fields, &v);
    }
    if (size && seed % 4 == 1)
        data[0] = (uint8_t)(seed >> 8);
    return fuzz_mutate(&fields, data, size, room, seed);
}

/* ---- files whose copies the check must pass -------------------------------------------------- */

#define MAX_RANGES 512

struct ranges {
    struct elf_range r[MAX_RANGES];
    size_t n;
};

static void add_range(struct ranges *s, uint64_t at, uint64_t size)
{
    if (size && s->n < MAX_RANGES)
        s->r[s->n++] = (struct elf_range){at, at + size < at ? UINT64_MAX : at + size};
}

static void add_part(struct ranges *s, const struct elf_part *part, uint64_t size)
{
    if (part->present)
        add_range(s, part->s.base, size);
}

static int add_word(void *user, const struct elf_version_ref *ref, struct exti_error *err)
{
    (void)err;
    add_range(user, ref->name_at, 4);
    return 0;
}

static bool disjoint(const struct ranges *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < i; k++)
            if (s->r[i].at < s->r[k].end && s->r[k].at < s->r[i].end)
                return false;
    return s->n < MAX_RANGES;
}

static void add_structures(const struct elf_file *f, struct ranges *s)
{
    add_range(s, 0, f->is64 ? 64 : 52);
    add_range(s, f->ehdr.e_phoff, f->phnum * exti__elf_phdr_size(f));
    add_range(s, f->ehdr.e_shoff, f->shnum * exti__elf_shdr_size(f));
    add_range(s, f->phdr[f->dynamic_phdr].p_offset, f->phdr[f->dynamic_phdr].p_filesz);
    add_part(s, &f->strtab, f->strtab.s.n);
    add_part(s, &f->symtab, f->symtab.s.n);
    add_part(s, &f->versym, f->versym.s.n);
    add_part(s, &f->hash, exti__elf_sysv_hash_size(f));
    add_part(s, &f->gnu_hash, exti__elf_gnu_hash_size(f));
    add_part(s, &f->verdef, 8);
    add_part(s, &f->verneed, 8);
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_NOTE)
            add_range(s, f->phdr[i].p_offset, f->phdr[i].p_filesz);
    for (size_t i = 0; i < f->shnum; i++)
        if (f->shdr[i].sh_type == SHT_SYMTAB)
            add_range(s, f->shdr[i].sh_offset, f->shdr[i].sh_size);
}

static int count_finding(void *user, const struct exti_error *finding)
{
    (void)finding;
    ++*(size_t *)user;
    return 1;
}

/* Whether the check must pass the planned copy of the file.  The corpus has whole files, so its
 * replay sets EXTI_FUZZ_WHOLE.  A fuzzer's files contradict themselves in more ways than this
 * function can test; for those the check may report findings. */
static bool is_sound(struct exti_span file)
{
    struct ranges s = {.n = 0};
    struct elf_file f;
    size_t findings = 0;
    bool sound;

    if (!getenv("EXTI_FUZZ_WHOLE"))
        return false;
    if (exti__elf_format.check(file, file, NULL, NULL, count_finding, &findings, NULL) || findings)
        return false;
    if (exti__elf_open(file, &f, NULL))
        return false;
    add_structures(&f, &s);
    sound = exti__elf_versions(&f, add_word, &s, NULL) == 0 && disjoint(&s);
    exti__elf_close(&f);
    return sound;
}

/* ---- the promises ---------------------------------------------------------------------------- */

static char *promise(const char *text)
{
    static char said[64];

    snprintf(said, sizeof said, "%s", text);
    return said;
}

static void check_copy(struct exti_span before, struct exti_span after,
                       const struct exti_rewrite_opts *opts, const struct exti_plan *plan)
{
    struct exti_error err = {.code = EXTI_OK};

    if (!is_sound(before)) {
        exti__elf_format.check(before, after, &(struct exti_request){.opts = opts}, plan,
                               fuzz_ignore, NULL, NULL);
        return;
    }
    if (exti__elf_format.check(before, after, &(struct exti_request){.opts = opts}, plan,
                               must_not_report, promise("the check finds fault with a copy"), &err))
        fuzz_breaks("the check cannot read an accepted file", &err);
    if (exti__elf_format.check(before, after, NULL, NULL, must_not_report,
                               promise("verifying finds fault with a copy"), &err))
        fuzz_breaks("verifying cannot read an accepted file", &err);
}

static void edit_again(struct exti_span copy, const struct exti_rewrite_opts *opts)
{
    struct exti_error err = {.code = EXTI_OK};
    struct exti_plan plan;

    exti__plan_init(&plan, copy.n * 4 + ((size_t)1 << 20));
    if (exti__elf_format.plan(copy, &(struct exti_request){.opts = opts}, &plan, &err) == 0 &&
        (plan.count || plan.tail.n)) {
        snprintf(err.message, sizeof err.message, "%s",
                 plan.count ? plan.patches[0].what : "something is appended");
        fuzz_breaks("editing a copy again changes it", &err);
    }
    exti__plan_free(&plan);
}

/* Another edit of the copy lays out what this one has appended, and keeps the same promises. */
static void edit_further(struct exti_span copy)
{
    static const struct exti_rewrite_opts later = {EDIT, .id = "libfuzz-of-a-later-edit.so",
                                                   .needed = add_last, .needed_count = 1};
    const struct exti_request req = {.opts = &later};
    struct exti_plan plan;
    uint8_t *image = NULL;
    size_t n;

    exti__plan_init(&plan, copy.n * 4 + ((size_t)1 << 20));
    if (exti__elf_format.plan(copy, &req, &plan, NULL) == 0) {
        n = (size_t)exti__plan_size(&plan, copy.n);
        image = malloc(n);
        if (image) {
            memcpy(image, copy.p, copy.n < n ? copy.n : n);
            exti__plan_apply(&plan, image, copy.n);
            check_copy(copy, exti__span(image, n), &later, &plan);
            fuzz_check_accepted(&exti__elf_format, copy, exti__span(image, n), &req, &plan,
                                read_facts, false);
        }
    }
    free(image);
    exti__plan_free(&plan);
}

static void make_cut(const struct exti_plan *plan, const struct exti_cut *cut,
                     struct exti_span file, struct exti_span copy, uint8_t *image)
{
    struct exti_error err = {.code = EXTI_OK};

    if (cut->left.at > file.n || cut->left.n > file.n - cut->left.at || cut->at > copy.n ||
        cut->n > copy.n - cut->at || exti__plan_edits(plan, cut->left.at, cut->left.n) ||
        (cut->at < cut->left.at + cut->left.n && cut->left.at < cut->at + cut->n))
        fuzz_breaks("the cut is not of the file", &err);
    memcpy(image + cut->at, cut->bytes, cut->n);
    memset(image + cut->left.at, 0, cut->left.n);
}

/* A lean copy lacks bytes of the file that no edit writes, says so in its headers, and opens as
 * before. */
static void make_cuts(const struct exti_plan *plan, struct exti_span file, struct exti_span copy,
                      uint8_t *image)
{
    struct exti_error err = {.code = EXTI_OK};

    for (size_t i = 0; i < plan->cut_count; i++)
        make_cut(plan, &plan->cuts[i], file, copy, image);
    if (is_sound(file) && !is_sound(copy))
        fuzz_breaks("a copy with its cuts is not sound", &err);
}

static void use_plan(const struct exti_plan *plan, struct exti_span file,
                     const struct exti_rewrite_opts *opts, size_t spoil_at)
{
    const struct exti_request req = {.opts = opts};
    size_t n = (size_t)exti__plan_size(plan, file.n);
    uint8_t *image = malloc(n);
    struct exti_span copy = exti__span(image, n);

    if (!image)
        return;
    memcpy(image, file.p, file.n);
    exti__plan_apply(plan, image, file.n);
    check_copy(file, copy, opts, plan);
    fuzz_check_accepted(&exti__elf_format, file, copy, &req, plan, read_facts, false);
    /* A removal cannot be repeated. */
    if ((!opts->needed_count || opts->needed[0].to) && is_sound(file))
        edit_again(copy, opts);
    edit_further(copy);
    make_cuts(plan, file, copy, image);
    image[spoil_at % n] ^= (uint8_t)(spoil_at >> 16 | 1);
    exti__elf_format.check(file, copy, &(struct exti_request){.opts = opts}, NULL, fuzz_ignore,
                           NULL, NULL);
    exti__elf_format.check(file, copy, NULL, NULL, fuzz_ignore, NULL, NULL);
    free(image);
}

/* The edits that the first bytes select. */
static const struct exti_rewrite_opts *select_edits(const uint8_t *data, struct exti_span file)
{
    static const char *const texts[] = {
        "libf.so.c", "a.so", "x", "libc.so.6", "libm.so.6", "libpython3.11.so.1.0-of-context-7",
        "c.so.6",    "V_1"};
    static const char *const paths[] = {"", "/a:/b", "$ORIGIN/lib", "/a/long/path/that/is/new"};
    static const char *const symbols[] = {"Py_one", "QX_one", "Py_two",
                                          "one",    "V_1",    "a_longer_name_than_before"};
    static const struct fuzz_names names = {texts, texts, paths, symbols, 8, 8, 4, 6, true};
    static struct fuzz_edit edit;
    struct fuzz_facts own = {.count = 0};

    if (data[0] < 128)
        return &edits[data[0] % (sizeof edits / sizeof *edits)];
    read_facts(file, &own);
    fuzz_random_edit(&edit, &names, &own,
                     data[0] | (uint64_t)data[1] << 8 | (uint64_t)data[2] << 16);
    return &edit.opts;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct exti_rewrite_opts *opts;
    struct exti_image image;
    struct exti_span file;
    struct exti_plan plan;

    if (size < PREFIX)
        return 0;
    file = exti__span(data + PREFIX, size - PREFIX);
    if (!exti__elf_format.probe(file))
        return 0;
    opts = select_edits(data, file);
    memset(&image, 0, sizeof image);
    exti__elf_format.read(file, &image, NULL);
    exti__image_clear(&image);
    exti__plan_init(&plan, file.n * 4 + ((size_t)1 << 20));
    if (exti__elf_format.plan(
            file, &(struct exti_request){.opts = opts, .lean = true, .undebugged = true}, &plan,
            NULL) == 0)
        use_plan(&plan, file, opts, data[1] | (size_t)data[2] << 8 | (size_t)data[3] << 16);
    exti__plan_free(&plan);
    return 0;
}
