/* Reads and edits arbitrary bytes as a Mach-O file.  The first byte selects the edits, from 128 on
 * random ones; the next three an offset to corrupt the result at; the file follows.  Aborts if a
 * promise is broken: those of fuzz_promise.h for any file, and for a sound one, the self-check
 * accepts the copy, and editing the copy once more changes nothing. */
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
#include "tests/fuzz/fuzz_promise.h"
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
    {EDIT, .flags = EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_UNIQUE | EXTI_RW_WITHHOLD},
    {EDIT, .needed = huge, .needed_count = 1, .flags = EXTI_RW_CLEAR_UNIQUE | EXTI_RW_WITHHOLD},
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

        if (fuzz_is_whole() && (rc || !is_found || found.address != e->address))
            fuzz_breaks("a look-up misses an export",
                        &(struct exti_error){.message = "exports trie"});
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
    if (fuzz_is_whole() && (rc || n != w->count))
        fuzz_breaks("a trie does not come back", &err);
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
        fuzz_breaks("a fixup is outside of the file", &(struct exti_error){.offset = x->offset});
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

/* ---- another reader, and mutation ------------------------------------------------------------ */

/* Decodes load commands with none of the library's code.  A universal file's slices with code for
 * a machine that is not handled are left out. */
static void read_slice(const struct fuzz_fields *b, uint64_t at, struct fuzz_facts *out)
{
    const uint64_t type = fuzz_get(b, at + 4, 4), count = fuzz_get(b, at + 16, 4);
    uint64_t cmd_at = at + 32;

    if (fuzz_get(b, at, 4) != MH_MAGIC_64 || (type != CPU_TYPE_X86_64 && type != CPU_TYPE_ARM64))
        return;
    for (uint64_t i = 0; i < count && cmd_at < b->n; i++) {
        const uint32_t cmd = (uint32_t)fuzz_get(b, cmd_at, 4);
        const uint64_t size = fuzz_get(b, cmd_at + 4, 4), name = fuzz_get(b, cmd_at + 8, 4);
        const bool library = cmd == LC_LOAD_DYLIB || cmd == LC_LOAD_WEAK_DYLIB ||
                             cmd == LC_REEXPORT_DYLIB || cmd == LC_LOAD_UPWARD_DYLIB;
        const char *text = (const char *)b->p + cmd_at + name;

        if (size < 8 || size > b->n - cmd_at)
            return;
        if ((library || cmd == LC_ID_DYLIB) && (name >= size || !memchr(text, 0, size - name)))
            out->why = "a name without end";
        else if (cmd == LC_ID_DYLIB)
            out->id = text;
        else if (library && out->count == FUZZ_NEEDED)
            out->why = "too many libraries";
        else if (library)
            out->needed[out->count++] = text;
        cmd_at += size;
    }
}

static void read_facts(struct exti_span file, struct fuzz_facts *out)
{
    struct fuzz_fields b = {.p = file.p, .n = file.n, .big_endian = true};
    const uint64_t magic = fuzz_get(&b, 0, 4), count = fuzz_get(&b, 4, 4);
    const bool fat = magic == FAT_MAGIC || magic == FAT_MAGIC_64;
    /* An arm64 slice may be hidden after a 32-bit table (macho_fat.c). */
    const uint64_t hidden =
        magic == FAT_MAGIC && count < 17 && fuzz_get(&b, 8 + 20 * count, 4) == CPU_TYPE_ARM64;
    const uint64_t slices = fat ? count + hidden : 1;
    uint64_t at[17] = {0};

    for (uint64_t i = 0; fat && i < slices && i < 17; i++)
        at[i] =
            magic == FAT_MAGIC ? fuzz_get(&b, 8 + 20 * i + 8, 4) : fuzz_get(&b, 8 + 32 * i + 8, 8);
    b.big_endian = false;
    for (uint64_t i = 0; i < slices && i < 17; i++)
        read_slice(&b, at[i], out);
}

/* The tables of __LINKEDIT that a linkedit_data_command, or one like it, locates. */
static void list_tables(struct fuzz_fields *f, uint64_t at, uint64_t cmd_at, uint32_t cmd)
{
    const bool info = cmd == LC_DYLD_INFO || cmd == LC_DYLD_INFO_ONLY;
    const bool words =
        cmd == LC_DYLD_CHAINED_FIXUPS || cmd == LC_SYMTAB || cmd == LC_CODE_SIGNATURE;

    for (uint64_t k = 8; k < (info ? 48 : 16); k += 8) {
        const uint64_t start = at + fuzz_get(f, cmd_at + k, 4),
                       size = fuzz_get(f, cmd_at + k + 4, 4);

        if (words)
            fuzz_words(f, start, size < 256 ? (size_t)size / 4 : 64, 4);
        else if (info || cmd == LC_DYLD_EXPORTS_TRIE)
            fuzz_words(f, start, size < 64 ? (size_t)size : 64, 1);
    }
}

static void list_slice(struct fuzz_fields *f, uint64_t at)
{
    const uint64_t count = fuzz_get(f, at + 16, 4);
    uint64_t cmd_at = at + 32;

    fuzz_words(f, at, 8, 4);
    for (uint64_t i = 0; i < count && i < 64 && cmd_at < f->n; i++) {
        const uint32_t cmd = (uint32_t)fuzz_get(f, cmd_at, 4);
        const uint64_t size = fuzz_get(f, cmd_at + 4, 4);

        fuzz_words(f, cmd_at, size < 80 ? (size_t)size / 4 : 20, 4);
        if (cmd == LC_SEGMENT_64)
            fuzz_words(f, cmd_at + 24, 4, 8);
        else
            list_tables(f, at, cmd_at, cmd);
        for (uint64_t k = 72; cmd == LC_SEGMENT_64 && k < size && k < 720; k += 80) {
            fuzz_words(f, cmd_at + k + 32, 2, 8);
            fuzz_words(f, cmd_at + k + 48, 7, 4);
        }
        if (size < 8)
            return;
        cmd_at += size;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    static struct fuzz_fields f;

    if (fuzz_fields_begin(&f, data, size, PREFIX, true)) {
        const uint64_t magic = fuzz_get(&f, 0, 4);

        if ((magic == FAT_MAGIC || magic == FAT_MAGIC_64) && seed % 8 == 0) {
            fuzz_words(&f, 4, 32, 4);
        } else {
            uint64_t at = magic == FAT_MAGIC ? fuzz_get(&f, 16 + 20 * (seed >> 8 & 1), 4) : 0;

            f.big_endian = false;
            list_slice(&f, at);
        }
    }
    if (size && seed % 4 == 1)
        data[0] = (uint8_t)(seed >> 8);
    return fuzz_mutate(&f, data, size, room, seed);
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

static bool is_sound(struct exti_span file)
{
    size_t findings = 0;

    return fuzz_is_whole() &&
           !exti__macho_format.check(file, file, NULL, NULL, count_finding, &findings, NULL) &&
           !findings;
}

/* References to a removed library become flat.  Verifying reports them, as they lead out of the
 * context unless somebody asked for that. */
static bool removes_library(const struct exti_rewrite_opts *o)
{
    for (size_t i = 0; i < o->needed_count; i++)
        if (!o->needed[i].to)
            return true;
    return false;
}

static void judge(struct exti_span before, struct exti_span after, const struct exti_request *req,
                  const struct exti_plan *plan)
{
    static char with[] = "the judge finds fault with a copy",
                without[] = "verifying finds fault with a copy";
    struct exti_error err = {.code = EXTI_OK};

    if (!is_sound(before)) {
        exti__macho_format.check(before, after, req, plan, fuzz_ignore, NULL, NULL);
        return;
    }
    if (exti__macho_format.check(before, after, req, plan, must_not_report, with, &err))
        fuzz_breaks("the judge cannot look at an accepted file", &err);
    if (!removes_library(req->opts) &&
        exti__macho_format.check(before, after, NULL, NULL, must_not_report, without, &err))
        fuzz_breaks("verifying cannot look at an accepted file", &err);
}

static void edit_again(struct exti_span copy, const struct exti_request *req)
{
    struct exti_error err = {.code = EXTI_OK};
    struct exti_plan plan;

    exti__plan_init(&plan, copy.n * 4 + ((size_t)1 << 20));
    if (exti__macho_format.plan(copy, req, &plan, &err) == 0 && (plan.count || plan.tail.n)) {
        snprintf(err.message, sizeof err.message, "%s",
                 plan.count ? plan.patches[0].what : "the end");
        fuzz_breaks("editing a copy once more changes it", &err);
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
    fuzz_check_accepted(&exti__macho_format, file, copy, req, plan, read_facts, removes_library(o));
    /* A removal cannot be repeated. */
    if ((!o->needed_count || o->needed[0].to) && is_sound(file))
        edit_again(copy, req);
    image[spoil_at % n] ^= (uint8_t)(spoil_at >> 16 | 1);
    exti__macho_format.check(file, copy, req, NULL, fuzz_ignore, NULL, NULL);
    exti__macho_format.check(file, copy, NULL, NULL, fuzz_ignore, NULL, NULL);
    free(image);
}

/* The edits that the first bytes select. */
static const struct exti_rewrite_opts *select_edits(const uint8_t *choice, struct exti_span file)
{
    static const char *const ids[] = {"/l1", "@rpath/libfuzz-of-context-7.dylib", "x"};
    static const char *const texts[] = {"/p1", "@rpath/libpystub.dylib", "@rpath/libw.dylib",
                                        "/usr/lib/libSystem.B.dylib",
                                        "@loader_path/libpython-of-context-7.dylib"};
    static const char *const paths[] = {"", "/a:/b", "@loader_path/x"};
    static const struct fuzz_names names = {.ids = ids,
                                            .libraries = texts,
                                            .paths = paths,
                                            .id_count = 3,
                                            .library_count = 5,
                                            .path_count = 3,
                                            .may_add = true};
    static struct fuzz_edit e;
    struct fuzz_facts own = {.count = 0};

    if (choice[0] < 128)
        return &edits[choice[0] % (sizeof edits / sizeof *edits)];
    read_facts(file, &own);
    fuzz_random_edit(&e, &names, &own,
                     choice[0] | (uint64_t)choice[1] << 8 | (uint64_t)choice[2] << 16);
    if (choice[3] & 1 && e.opts.needed_count < 4) {
        e.needed[e.opts.needed_count++] = api_last[0];
        e.opts.bind_file = "python";
        e.opts.bind_name = "/p1";
    }
    return &e.opts;
}

static void edit(struct exti_span file, const uint8_t *choice)
{
    const struct exti_rewrite_opts *opts = select_edits(choice, file);
    /* A file that is bound to itself stands for the context's libpython. */
    const struct exti_span bind = opts->bind_name ? python() : file;
    const struct exti_request req = {
        .opts = opts, .bind = &bind, .bind_count = opts->bind_file ? 1 : 0};
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
    exti__macho_format.check(file, file, NULL, NULL, fuzz_ignore, NULL, NULL);
    edit(file, data);
    return 0;
}
