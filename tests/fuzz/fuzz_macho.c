/* Reads and edits whatever the bytes are, as a Mach-O file.  The first byte chooses the edits, the next
 * three a place to spoil the result at; the file follows.  Ends the process where a promise is broken. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/plan.h"
#include "macho/macho_format.h"
#include "macho/macho_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFIX 4

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

/* The corpus is made of whole files, so replaying it sets this; a fuzzer's files contradict themselves
 * in ways that only the judge can tell. */
static bool is_whole(void)
{
    return getenv("EXTI_FUZZ_WHOLE") != NULL;
}

/* ---- everything that can be walked ------------------------------------------------------------------ */

#define MAX_EXPORTS 256

struct walked {
    const struct macho_file *f;
    struct exti_span trie;
    struct macho_export list[MAX_EXPORTS]; /* the first of them, with names of their own */
    size_t count, seen;
    uint64_t sum; /* so that nothing read can be left out as unused */
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

/* What was walked goes into a new trie, which has as many exports. */
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
    return 0;
}
