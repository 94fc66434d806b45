/* Reads and edits arbitrary bytes as a Mach-O file.  The first byte selects the edits, the next
 * three an offset to corrupt the result at; the file follows.  Aborts if a promise is broken:
 * the self-check accepts the copy of a sound file, and editing the copy once more changes
 * nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plan.h"
#include "macho/edit/macho_trie_build.h"
#include "macho/macho_format.h"
#include "macho/read/macho_bind.h"
#include "macho/read/macho_fat.h"
#include "macho/read/macho_fixups.h"
#include "macho/read/macho_rebase.h"
#include "macho/read/macho_references.h"
#include "macho/read/macho_signature.h"
#include "macho/read/macho_symbols.h"
#include "tests/unit/macho/macho_toy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFIX 4

static const struct exti_needed api_last[] = {{NULL, "/p1", EXTI_NEEDED_LAST}};
static const struct exti_needed long_last[] = {
    {NULL, "@loader_path/libpython-of-context-7.dylib", EXTI_NEEDED_LAST}};
static const struct exti_needed exchange[] = {
    {"/usr/lib/libSystem.B.dylib", "/usr/lib/libOther.dylib", EXTI_NEEDED_LAST},
    {NULL, "/opt/first.dylib", EXTI_NEEDED_FIRST}};
static const struct exti_needed replaced[] = {{"@rpath/libpystub.dylib", "/p1", EXTI_NEEDED_LAST}};
static const struct exti_needed removal[] = {{"@rpath/libw.dylib", NULL, EXTI_NEEDED_LAST}};
static const struct exti_needed huge[] = {
    {NULL,
     "/a/name/for/which/no/linker/leaves/room/because/it/goes/on/and/on/through/folder/after/"
     "folder/"
     "until/at/last/it/ends/in/something/that/somebody/once/took/for/a/library.dylib",
     EXTI_NEEDED_LAST}};

#define EDIT .size = sizeof(struct exti_rewrite_opts)
static const struct exti_rewrite_opts edits[] = {
    {EDIT, .id = "/l1"},
    {EDIT, .needed = api_last, .needed_count = 1, .bind_file = "python", .bind_name = "/p1"},
    {EDIT, .id = "@rpath/libfuzz-of-context-7.dylib", .needed = long_last, .needed_count = 1,
     .path_prepend = "/ctx/dir", .origin = "/opt/lib", .bind_file = "python",
     .bind_name = "@loader_path/libpython-of-context-7.dylib", .bind_short = "/p1"},
    {EDIT, .needed = exchange, .needed_count = 2, .path_set = "/a:/b"},
    {EDIT, .needed = removal, .needed_count = 1, .path_set = ""},
    {EDIT, .flags = EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_UNIQUE},
    {EDIT, .needed = huge, .needed_count = 1, .flags = EXTI_RW_CLEAR_UNIQUE},
    {EDIT, .id = "/l1", .bind_file = "itself"},
    {EDIT, .needed = replaced, .needed_count = 1, .bind_file = "python", .bind_name = "/p1",
     .flags = EXTI_RW_CLEAR_UNIQUE},
    {EDIT},
};

/* Stands for libpython on either architecture. */
static struct exti_span python(void)
{
    static const char *const names[] = {"_PyFlat",      "_PyOptional", "_PyModule_Create",
                                        "_PyType_Type", "_Py_Address", "_Py_Modules",
                                        "_Py_Twice",    "__Py_Table",  NULL};
    static struct macho_toy slice;
    static struct macho_toy_fat fat;

    if (!fat.n) {
        mtoy_fat_start(&fat, false);
        for (int arm = 0; arm < 2; arm++) {
            macho_toy_make(&slice, (struct macho_toy_opts){.arm = arm, .exports = names});
            mtoy_fat_add_toy(&fat, &slice);
        }
    }
    return exti__span(fat.b, fat.n);
}

static void broken(const char *promise, const struct exti_error *err)
{
    fprintf(stderr, "%s: %s (at 0x%" PRIx64 ")\n", promise, err->message, err->offset);
    abort();
}

static int ignore(void *user, const struct exti_error *finding)
{
    (void)user;
    (void)finding;
    return 0;
}

/* Set when the corpus is replayed, which consists of sound files.  A fuzzer's files have
 * contradictions that only the self-check finds. */
static bool is_whole(void)
{
    return getenv("EXTI_FUZZ_WHOLE") != NULL;
}

/* ---- everything that can be walked ----------------------------------------------------------- */

#define MAX_EXPORTS 256

struct walked {
    const struct macho_file *f;
    struct exti_span trie;
    struct macho_export list[MAX_EXPORTS]; /* the first of them, with names of their own */
    size_t count, seen;
    uint64_t sum; /* so that the compiler keeps every read */
};

static int see_export(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct walked *w = user;
    struct macho_export found;
    bool is_found = false;

    w->sum += e->address + e->other + e->flags + strlen(e->name) + strlen(e->import_name);
    if (w->seen++ < 64) {
        int rc = exti__macho_trie_find(w->trie, e->name, &is_found, &found, err);

        if (is_whole() && (rc || !is_found || found.address != e->address))
            broken("a look-up misses an export", &(struct exti_error){.message = "exports trie"});
    }
    if (w->count < MAX_EXPORTS && e->import_name) {
        w->list[w->count] = *e;
        w->list[w->count].name = strdup(e->name);
        w->list[w->count].import_name = strdup(e->import_name);
        w->count++;
    }
    return 0;
}

static int count_export(void *user, const struct macho_export *e, struct exti_error *err)
{
    (void)e;
    (void)err;
    ++*(size_t *)user;
    return 0;
}

/* A trie built from a walk's exports has as many exports. */
static void rebuild(struct walked *w)
{
    struct exti_buf out = exti__buf((size_t)1 << 26);
    struct exti_error err = {.code = EXTI_OK};
    size_t n = 0;
    int rc = exti__macho_trie_build(w->list, w->count, &out, &err);

    if (!rc)
        rc = exti__macho_trie_walk(exti__span(out.p, out.n), count_export, &n, &err);
    if (is_whole() && (rc || n != w->count))
        broken("a trie does not come back", &err);
    exti__buf_free(&out);
}

static int see_bind(void *user, const struct macho_bind *b, struct exti_error *err)
{
    struct walked *w = user;

    (void)err;
    w->sum += strlen(b->symbol) + b->offset + b->segment + (uint64_t)b->addend + b->at;
    return 0;
}

static int see_rebase(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                      struct exti_error *err)
{
    (void)err;
    ((struct walked *)user)->sum += segment + offset + type;
    return 0;
}

static int see_fixup(void *user, const struct macho_fixup *x, struct exti_error *err)
{
    struct walked *w = user;

    (void)err;
    if (x->offset > w->f->file.n - 8)
        broken("a fixup is outside of the file", &(struct exti_error){.offset = x->offset});
    w->sum += x->raw + x->target + x->import;
    return 0;
}

static int see_reference(void *user, const struct macho_reference *r, struct exti_error *err)
{
    struct walked *w = user;

    (void)err;
    w->sum += strlen(r->name) + r->at + (uint64_t)r->ordinal;
    return 0;
}

static void walk_chains(struct walked *w)
{
    struct macho_chained c;
    struct macho_import im;

    if (!w->f->pieces[MACHO_CHAINED_FIXUPS].s.n || exti__macho_chained_open(w->f, &c, NULL))
        return;
    for (uint32_t i = 0; i < c.imports_count; i++)
        if (!exti__macho_chained_import(&c, i, &im, NULL))
            w->sum += strlen(im.name) + (uint64_t)im.addend;
    exti__macho_fixups(w->f, &c, see_fixup, w, NULL);
}

static void walk_symbols(struct walked *w)
{
    struct macho_nlist n;

    for (size_t i = 0; i < exti__macho_symbol_count(w->f); i++)
        if (!exti__macho_symbol(w->f, i, &n, NULL))
            w->sum += n.value + (uint8_t)*n.name;
}

static void walk(const struct macho_file *f)
{
    static const enum macho_piece_kind streams[] = {MACHO_BIND, MACHO_WEAK_BIND, MACHO_LAZY_BIND};
    struct walked w = {.f = f, .trie = exti__macho_trie(f)};
    struct macho_signature signature;
    uint64_t bad;

    if (!exti__macho_trie_walk(w.trie, see_export, &w, NULL))
        rebuild(&w);
    for (size_t i = 0; i < w.count; i++) {
        free((char *)(uintptr_t)w.list[i].name);
        free((char *)(uintptr_t)w.list[i].import_name);
    }
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        exti__macho_binds(f, streams[i], see_bind, &w, NULL);
    exti__macho_rebases(f, see_rebase, &w, NULL);
    walk_chains(&w);
    walk_symbols(&w);
    exti__macho_references(f, see_reference, &w, NULL);
    if (!exti__macho_signature_read(f, &signature, NULL) && signature.identifier)
        w.sum += strlen(signature.identifier);
    exti__macho_signature_check(f, &bad, NULL);
    if (w.sum == UINT64_MAX)
        printf(" ");
}

static void walk_slices(struct exti_span file)
{
    struct macho_fat fat;

    if (exti__macho_fat_open(file, &fat, NULL))
        return;
    for (size_t i = 0; i < fat.count; i++) {
        struct macho_file f;

        if (exti__macho_open(fat.slices[i].s, &f, NULL))
            continue;
        walk(&f);
        exti__macho_close(&f);
    }
    exti__macho_fat_close(&fat);
}

/* ---- the promises ---------------------------------------------------------------------------- */

static int must_not_report(void *user, const struct exti_error *finding)
{
    broken(user, finding);
    return 1;
}

static int count_finding(void *user, const struct exti_error *finding)
{
    (void)finding;
    ++*(size_t *)user;
    return 1;
}

static bool is_sound(struct exti_span file)
{
    size_t findings = 0;

    return is_whole() &&
           !exti__macho_format.check(file, file, NULL, NULL, count_finding, &findings, NULL) &&
           !findings;
}

static void judge(struct exti_span before, struct exti_span after, const struct exti_request *req,
                  const struct exti_plan *plan)
{
    static char with[] = "the judge finds fault with a copy",
                without[] = "verifying finds fault with a copy";
    struct exti_error err = {.code = EXTI_OK};

    if (!is_sound(before)) {
        exti__macho_format.check(before, after, req, plan, ignore, NULL, NULL);
        return;
    }
    if (exti__macho_format.check(before, after, req, plan, must_not_report, with, &err))
        broken("the judge cannot look at an accepted file", &err);
    if (exti__macho_format.check(before, after, NULL, NULL, must_not_report, without, &err))
        broken("verifying cannot look at an accepted file", &err);
}

static void edit_again(struct exti_span copy, const struct exti_request *req)
{
    struct exti_error err = {.code = EXTI_OK};
    struct exti_plan plan;

    exti__plan_init(&plan, copy.n * 4 + ((size_t)1 << 20));
    if (exti__macho_format.plan(copy, req, &plan, &err) == 0 && (plan.count || plan.tail.n)) {
        snprintf(err.message, sizeof err.message, "%s",
                 plan.count ? plan.patches[0].what : "the end");
        broken("editing a copy once more changes it", &err);
    }
    exti__plan_free(&plan);
}

static void use_plan(const struct exti_plan *plan, struct exti_span file,
                     const struct exti_request *req, size_t spoil_at)
{
    const struct exti_rewrite_opts *o = req->opts;
    size_t n = (size_t)exti__plan_size(plan, file.n), cap = n > file.n ? n : file.n;
    uint8_t *image = malloc(cap);
    struct exti_span copy = exti__span(image, n);

    if (!image)
        return;
    memcpy(image, file.p, file.n);
    exti__plan_apply(plan, image, file.n);
    judge(file, copy, req, plan);
    /* A removal cannot be repeated. */
    if ((!o->needed_count || o->needed[0].to) && is_sound(file))
        edit_again(copy, req);
    image[spoil_at % n] ^= (uint8_t)(spoil_at >> 16 | 1);
    exti__macho_format.check(file, copy, req, NULL, ignore, NULL, NULL);
    exti__macho_format.check(file, copy, NULL, NULL, ignore, NULL, NULL);
    free(image);
}

static void edit(struct exti_span file, const uint8_t *choice)
{
    const struct exti_rewrite_opts *opts = &edits[choice[0] % (sizeof edits / sizeof *edits)];
    /* A file that is bound to itself stands for the context's libpython. */
    const struct exti_span bind = opts->bind_name ? python() : file;
    const struct exti_request req = {opts, &bind, opts->bind_file ? 1 : 0};
    struct exti_plan plan;

    exti__plan_init(&plan, file.n * 4 + ((size_t)1 << 20));
    if (exti__macho_format.plan(file, &req, &plan, NULL) == 0)
        use_plan(&plan, file, &req, choice[1] | (size_t)choice[2] << 8 | (size_t)choice[3] << 16);
    exti__plan_free(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exti_image image;
    struct exti_span file;

    if (size < PREFIX)
        return 0;
    file = exti__span(data + PREFIX, size - PREFIX);
    if (!exti__macho_format.probe(file))
        return 0;
    memset(&image, 0, sizeof image);
    exti__macho_format.read(file, &image, NULL);
    exti__image_clear(&image);
    walk_slices(file);
    exti__macho_format.check(file, file, NULL, NULL, ignore, NULL, NULL);
    edit(file, data);
    return 0;
}
