/* Reads and edits arbitrary bytes as a PE file.  The first byte chooses the edits, from 128 on
 * random ones; the next three where to corrupt the result; the file follows.  Aborts when a promise
 * is broken: those of fuzz_promise.h for any file, and for a sound one, the check finds no fault
 * with the copy, and editing the copy once more changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plan.h"
#include "pe/check/pe_check.h"
#include "pe/edit/pe_checksum.h"
#include "pe/pe_format.h"
#include "pe/read/pe_address.h"
#include "pe/read/pe_export.h"
#include "pe/read/pe_import.h"
#include "tests/fuzz/fuzz_promise.h"
#include "tests/unit/pe/pe_toy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFIX 4

static const struct exti_needed same_length[] = {{"python311.dll", "pyth0n311.dll", 0}};
static const struct exti_needed longer[] = {{"python311.dll", "python311-of-context-7.dll", 0}};
static const struct exti_needed flattened[] = {{"python3.dll", "python311-c7.dll", 0}};
static const struct exti_needed several[] = {{"KERNEL32", "kernel-of-context-7.dll", 0},
                                             {"ws2_32.dll", "sockets-of-context-7.dll", 0},
                                             {"python311", "p7.dll", 0}};
static const struct exti_needed added[] = {{NULL, "p7.dll", 0}};

#define EDIT .size = sizeof(struct exti_rewrite_opts)
static const struct exti_rewrite_opts edits[] = {
    {EDIT, .id = "t0y.pyd"},
    {EDIT, .needed = same_length, .needed_count = 1},
    {EDIT, .id = "toy-of-context-7.pyd", .needed = longer, .needed_count = 1},
    {EDIT, .needed = flattened, .needed_count = 1, .bind_file = "python"},
    {EDIT, .id = "a", .needed = several, .needed_count = 3},
    {EDIT, .needed = longer, .needed_count = 1},
    {EDIT, .needed = added, .needed_count = 1},
    {EDIT},
};

static struct exti_span python(void)
{
    static const char *const names[] = {"PyLong_Type", "PyModule_Create2", "Py_BuildValue", NULL};
    static struct pe_toy toy;

    if (!toy.n)
        pe_toy_make(&toy, (struct pe_toy_opts){.exports = names, .id = "python311.dll"});
    return exti__span(toy.b, toy.n);
}

/* ---- another reader, and mutation ------------------------------------------------------------ */

/* Decodes headers and import directories with none of the library's code. */
struct view {
    struct fuzz_fields b;
    uint64_t nt, directories, sections, section_count, directory_count;
};

static void view_open(struct view *v, struct exti_span file)
{
    uint64_t optional;

    *v = (struct view){.b = {.p = file.p, .n = file.n}};
    v->nt = fuzz_get(&v->b, 60, 4);
    v->section_count = fuzz_get(&v->b, v->nt + 6, 2);
    v->sections = v->nt + 24 + fuzz_get(&v->b, v->nt + 20, 2);
    optional = fuzz_get(&v->b, v->nt + 24, 2) == 0x20b ? 112 : 96;
    v->directories = v->nt + 24 + optional;
    v->directory_count = fuzz_get(&v->b, v->directories - 4, 4);
}

/* The file offset of an address, or all ones. */
/* A section without PointerToRawData has no bytes in the file, whatever its SizeOfRawData. */
static uint64_t offset_of(const struct view *v, uint64_t rva)
{
    for (uint64_t i = 0; i < v->section_count && i < 96; i++) {
        const uint64_t at = v->sections + 40 * i, start = fuzz_get(&v->b, at + 12, 4);
        const uint64_t raw = fuzz_get(&v->b, at + 20, 4);

        if (raw && rva >= start && rva - start < fuzz_get(&v->b, at + 16, 4))
            return raw + (rva - start);
    }
    return UINT64_MAX;
}

static uint64_t directory_at(const struct view *v, size_t i)
{
    const uint64_t rva = i < v->directory_count ? fuzz_get(&v->b, v->directories + 8 * i, 4) : 0;

    return rva ? offset_of(v, rva) : UINT64_MAX;
}

static const char *name_at(const struct view *v, uint64_t rva)
{
    const uint64_t at = offset_of(v, rva);

    return at < v->b.n && memchr(v->b.p + at, 0, v->b.n - at) ? (const char *)v->b.p + at : NULL;
}

/* Adds the names of the descriptors at `at`, which have the name's RVA at `field`.  The loader ends
 * the list where that or the field at `other` is 0. */
static void add_names(const struct view *v, uint64_t at, uint64_t size, uint64_t field,
                      uint64_t other, struct fuzz_facts *out)
{
    for (uint64_t rva; at < v->b.n && (rva = fuzz_get(&v->b, at + field, 4)) != 0 &&
                       fuzz_get(&v->b, at + other, 4) != 0;
         at += size) {
        const char *name = name_at(v, rva);

        if (!name || out->count == FUZZ_NEEDED) {
            out->why = "an unreadable import";
            return;
        }
        out->needed[out->count++] = name;
    }
}

static void read_facts(struct exti_span file, struct fuzz_facts *out)
{
    struct view v;
    uint64_t exports;

    view_open(&v, file);
    exports = directory_at(&v, 0);
    if (exports != UINT64_MAX && fuzz_get(&v.b, exports + 12, 4))
        out->id = name_at(&v, fuzz_get(&v.b, exports + 12, 4));
    add_names(&v, directory_at(&v, 1), 20, 12, 16, out);
    add_names(&v, directory_at(&v, 13), 32, 4, 4, out);
}

static void list_fields(struct fuzz_fields *f, const struct view *v)
{
    fuzz_field(f, 60, 4);
    fuzz_words(f, v->nt + 4, 10, 2);
    fuzz_words(f, v->nt + 24, 56, 2);
    fuzz_words(f, v->nt + 24 + 16, 20, 4);
    fuzz_words(f, v->directories - 4, 33, 4);
    for (uint64_t i = 0; i < v->section_count && i < 16; i++)
        fuzz_words(f, v->sections + 40 * i + 8, 8, 4);
    for (size_t i = 0; i < 16; i++)
        if (directory_at(v, i) != UINT64_MAX)
            fuzz_words(f, directory_at(v, i), 40, 4);
    for (size_t k = 28; k <= 36 && directory_at(v, 0) != UINT64_MAX; k += 4)
        fuzz_words(f, offset_of(v, fuzz_get(&v->b, directory_at(v, 0) + k, 4)), 16,
                   k == 36 ? 2 : 4);
    for (size_t k = 0; k <= 16 && directory_at(v, 1) != UINT64_MAX; k += 16)
        fuzz_words(f, offset_of(v, fuzz_get(&v->b, directory_at(v, 1) + k, 4)), 16, 4);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    static struct fuzz_fields fields;
    struct view v;

    if (fuzz_fields_begin(&fields, data, size, PREFIX, false)) {
        view_open(&v, exti__span(fields.p, fields.n));
        list_fields(&fields, &v);
    }
    if (size && seed % 4 == 1)
        data[0] = (uint8_t)(seed >> 8);
    return fuzz_mutate(&fields, data, size, room, seed);
}

/* ---- reading everything ----------------------------------------------------------- */

struct walked {
    const struct pe_file *f;
    uint64_t sum; /* keeps the compiler from dropping unused reads */
};

static int see_symbol(void *user, const char *name, uint16_t ordinal, struct exti_error *err)
{
    struct walked *w = user;

    (void)err;
    w->sum += ordinal + (name ? strlen(name) : 0);
    return 0;
}

static int see_import(void *user, const struct pe_import *im, struct exti_error *err)
{
    struct walked *w = user;

    (void)err;
    if (strlen(im->name) > PE_LONGEST_NAME || im->name_at > w->f->file.n - 4)
        fuzz_breaks("an import is outside of the file",
                    &(struct exti_error){.offset = im->name_at});
    exti__pe_import_symbols(w->f, im, see_symbol, w, NULL);
    w->sum += im->lookup_rva + im->iat_rva + im->timestamp;
    return 0;
}

static int see_export(void *user, const struct pe_export *e, struct exti_error *err)
{
    struct walked *w = user;

    (void)err;
    if (e->slot_at > w->f->file.n - 4)
        fuzz_breaks("an export is outside of the file", &(struct exti_error){.offset = e->slot_at});
    w->sum += e->ordinal + e->rva + (e->name ? strlen(e->name) : 0) +
              (e->forwarder ? strlen(e->forwarder) : 0);
    return 0;
}

/* Every address of the image, and one per page beyond it, leads into the file or nowhere. */
static void walk_addresses(struct walked *w)
{
    struct exti_span s;

    for (uint64_t rva = 0; rva <= w->f->size_of_image && rva < 0x100000; rva += 0x3ff)
        if (!exti__pe_from(w->f, (uint32_t)rva, "address", &s, NULL))
            w->sum += s.p[0] + s.p[s.n - 1];
}

static void read_everything(struct exti_span file)
{
    struct pe_exports x;
    struct pe_file f;
    struct walked w = {.f = &f};

    if (exti__pe_open(file, &f, NULL))
        return;
    exti__pe_imports(&f, see_import, &w, NULL);
    if (!exti__pe_exports_open(&f, &x, NULL))
        exti__pe_exports(&f, &x, see_export, &w, NULL);
    walk_addresses(&w);
    w.sum += exti__pe_checksum(&file, 1, f.optional_at + 64);
    if (f.raw_end > file.n || f.overlay_end > file.n)
        fuzz_breaks("the overlay is outside of the file",
                    &(struct exti_error){.offset = f.raw_end});
    exti__pe_close(&f);
    if (w.sum == UINT64_MAX)
        printf(" ");
}

/* ---- the promises ---------------------------------------------------------------------------- */

static int must_not_report(void *user, const struct exti_error *finding)
{
    fuzz_breaks(user, finding);
    return 1;
}

static int count_finding(void *user, const struct exti_error *finding)
{
    (void)finding;
    ++*(size_t *)user;
    return 1;
}

/* By the check's own rules, with no excuse from the original. */
static bool is_sound(struct exti_span file)
{
    size_t findings = 0;
    struct pe_check c = {.findings = {.report = count_finding, .user = &findings, .strict = true}};
    bool sound;

    if (!fuzz_is_whole() || exti__pe_check_open(&c, file, file, &sound, NULL))
        return false;
    if (sound && exti__pe_check_rules(&c, NULL))
        sound = false;
    exti__pe_check_close(&c);
    return sound && !findings;
}

static void check_copy(struct exti_span before, struct exti_span after,
                       const struct exti_request *req, const struct exti_plan *plan)
{
    static char with[] = "the check finds fault with a copy",
                without[] = "verifying finds fault with a copy";
    struct exti_error err = {.code = EXTI_OK};

    if (!is_sound(before)) {
        exti__pe_format.check(before, after, req, plan, fuzz_ignore, NULL, NULL);
        return;
    }
    if (exti__pe_format.check(before, after, req, plan, must_not_report, with, &err))
        fuzz_breaks("the check cannot read an accepted file", &err);
    if (exti__pe_format.check(before, after, NULL, NULL, must_not_report, without, &err))
        fuzz_breaks("verifying cannot look at an accepted file", &err);
}

static void edit_again(struct exti_span copy, const struct exti_request *req)
{
    struct exti_error err = {.code = EXTI_OK};
    struct exti_plan plan;

    exti__plan_init(&plan, copy.n * 4 + ((size_t)1 << 20));
    if (exti__pe_format.plan(copy, req, &plan, &err) == 0 && (plan.count || plan.tail.n)) {
        snprintf(err.message, sizeof err.message, "%s",
                 plan.count ? plan.patches[0].what : "the end");
        fuzz_breaks("editing a copy once more changes it", &err);
    }
    exti__plan_free(&plan);
}

static void use_plan(const struct exti_plan *plan, struct exti_span file,
                     const struct exti_request *req, size_t spoil_at)
{
    size_t n = (size_t)exti__plan_size(plan, file.n), cap = n > file.n ? n : file.n;
    uint8_t *image = malloc(cap);
    struct exti_span copy = exti__span(image, n);
    struct exti_image described;

    if (!image)
        return;
    memcpy(image, file.p, file.n);
    exti__plan_apply(plan, image, file.n);
    memset(&described, 0, sizeof described);
    exti__pe_format.read(copy, &described, NULL);
    exti__image_clear(&described);
    check_copy(file, copy, req, plan);
    fuzz_check_accepted(&exti__pe_format, file, copy, req, plan, read_facts, false);
    if (is_sound(file))
        edit_again(copy, req);
    image[spoil_at % n] ^= (uint8_t)(spoil_at >> 16 | 1);
    exti__pe_format.check(file, copy, req, NULL, fuzz_ignore, NULL, NULL);
    exti__pe_format.check(file, copy, NULL, NULL, fuzz_ignore, NULL, NULL);
    free(image);
}

static void edit(struct exti_span file, const struct exti_rewrite_opts *opts, size_t spoil_at)
{
    const struct exti_span bind = python();
    const struct exti_request req = {
        .opts = opts, .bind = &bind, .bind_count = opts->bind_file ? 1 : 0};
    struct exti_plan plan;

    exti__plan_init(&plan, file.n * 4 + ((size_t)1 << 20));
    if (exti__pe_format.plan(file, &req, &plan, NULL) == 0)
        use_plan(&plan, file, &req, spoil_at);
    exti__plan_free(&plan);
}

/* Edits for a first byte from 128 on. */
static const struct exti_rewrite_opts *random_edits(const uint8_t *data, struct exti_span file)
{
    static const char *const ids[] = {"t0y.pyd", "toy-of-context-7.pyd", "a"};
    static const char *const texts[] = {"python311.dll", "pyth0n311.dll",
                                        "KERNEL32.dll",  "python311-of-context-7.dll",
                                        "python3.dll",   "p7.dll"};
    static const struct fuzz_names names = {
        .ids = ids, .libraries = texts, .id_count = 3, .library_count = 6};
    static struct fuzz_edit e;
    struct fuzz_facts own = {.count = 0};

    read_facts(file, &own);
    fuzz_random_edit(&e, &names, &own, data[0] | (uint64_t)data[1] << 8 | (uint64_t)data[2] << 16);
    e.opts.bind_file = data[3] & 1 ? "python" : NULL;
    return &e.opts;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t count = sizeof edits / sizeof *edits;
    struct exti_image image;
    struct exti_span file;
    size_t spoil_at;

    if (size < PREFIX)
        return 0;
    file = exti__span(data + PREFIX, size - PREFIX);
    if (!exti__pe_format.probe(file))
        return 0;
    memset(&image, 0, sizeof image);
    exti__pe_format.read(file, &image, NULL);
    exti__image_clear(&image);
    read_everything(file);
    exti__pe_format.check(file, file, NULL, NULL, fuzz_ignore, NULL, NULL);
    spoil_at = data[1] | (size_t)data[2] << 8 | (size_t)data[3] << 16;
    edit(file, data[0] < 128 ? &edits[data[0] % count] : random_edits(data, file), spoil_at);
    for (size_t i = 0; fuzz_is_whole() && i < count; i++)
        edit(file, &edits[i], spoil_at);
    return 0;
}
