/* The exports trie, decoded a second time, and dyld's rules for it (mach_o/ExportsTrie.cpp:
 * valid). */
#include "macho/check/macho_check_exports.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/check/macho_check_report.h"
#include "macho/read/macho_word.h"

#define KNOWN_FLAGS 0x3fu

/* A node whose children are being visited. */
struct level {
    size_t next;        /* trie offset of the next edge */
    size_t name_length; /* of the name up to the node */
    uint8_t left;       /* edges left */
};

struct walk {
    struct macho_check *c;
    const struct macho_file *f;
    struct macho_exports *out;
    struct exti_span s;
    struct exti_buf path;
    struct level *levels; /* owned */
    size_t depth, cap, visited;
    bool bad;
};

static void report_trie_fault(struct walk *w, size_t at, const char *what)
{
    if (w->bad)
        return;
    w->bad = true;
    exti__macho_broken(w->c, w->f, w->s.base - w->f->file.base + at, what,
                       "dyld ExportsTrie::valid: exports trie + 0x%zx: %s", at, what);
}

static uint64_t read_uleb(struct walk *w, size_t *at)
{
    uint64_t v = 0;

    for (unsigned shift = 0; *at < w->s.n && shift < 64; shift += 7) {
        const uint8_t byte = w->s.p[(*at)++];

        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    report_trie_fault(w, *at, "a number runs past the end or 64 bits");
    return 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

static int append_export(struct macho_exports *list, struct macho_exported e, const uint8_t *name,
                         size_t n, struct exti_error *err)
{
    int rc;
    struct macho_exported *v = exti__array_room(list->v, list->n, &list->cap, sizeof *v);

    if (!v)
        return exti__fail_nomem(err);
    list->v = v;
    e.name = list->names.n;
    rc = exti__buf_append(&list->names, name, n, err);
    if (!rc)
        rc = exti__buf_append(&list->names, "", 1, err);
    if (!rc)
        list->v[list->n++] = e;
    return rc;
}

static int by_export_name(const void *a, const void *b)
{
    const struct macho_exported *x = a, *y = b;

    return strcmp(x->text, y->text);
}

void exti__macho_exports_sort(struct macho_exports *list)
{
    for (size_t i = 0; i < list->n; i++)
        list->v[i].text = (const char *)list->names.p + list->v[i].name;
    if (list->n)
        qsort(list->v, list->n, sizeof *list->v, by_export_name);
}

const struct macho_exported *exti__macho_exports_find(const struct macho_exports *list,
                                                      const char *name)
{
    const struct macho_exported key = {.text = name};

    return list->n ? bsearch(&key, list->v, list->n, sizeof *list->v, by_export_name) : NULL;
}

void exti__macho_exports_free(struct macho_exports *list)
{
    exti__free(list->v);
    exti__buf_free(&list->names);
    *list = (struct macho_exports){.n = 0};
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static uint64_t image_size(const struct macho_file *f)
{
    uint64_t end = 0;

    for (size_t i = 0; i < f->segment_count; i++)
        if (f->segments[i].vmaddr + f->segments[i].vmsize > end)
            end = f->segments[i].vmaddr + f->segments[i].vmsize;
    return end - f->text->vmaddr;
}

static int read_export(struct walk *w, size_t at, size_t end, struct exti_error *err)
{
    struct macho_exported e = {.import_name = ""};

    e.flags = read_uleb(w, &at);
    if (e.flags & ~(uint64_t)KNOWN_FLAGS ||
        (e.flags & EXPORT_SYMBOL_FLAGS_KIND_MASK) > EXPORT_SYMBOL_FLAGS_KIND_ABSOLUTE)
        report_trie_fault(w, at, "unknown flags");
    if (e.flags & EXPORT_SYMBOL_FLAGS_REEXPORT) {
        e.other = read_uleb(w, &at);
        if (at >= w->s.n || !memchr(w->s.p + at, 0, w->s.n - at))
            report_trie_fault(w, at, "a re-export's name has no NUL");
        else
            e.import_name = (const char *)w->s.p + at;
        if (e.other > w->f->dylib_count)
            report_trie_fault(w, at, "the library ordinal of a re-export is out of range");
        at += strlen(w->bad ? "" : e.import_name) + 1;
    } else {
        e.address = read_uleb(w, &at);
        if (e.flags & (EXPORT_SYMBOL_FLAGS_STUB_AND_RESOLVER | EXPORT_SYMBOL_FLAGS_STATIC_RESOLVER))
            e.other = read_uleb(w, &at);
        if ((e.flags & EXPORT_SYMBOL_FLAGS_KIND_MASK) != EXPORT_SYMBOL_FLAGS_KIND_ABSOLUTE &&
            e.address >= image_size(w->f))
            report_trie_fault(w, at, "an address is outside the image");
    }
    if (at != end)
        report_trie_fault(w, at, "an export's size does not match its fields");
    if (w->path.n + 1 > w->out->names.max - w->out->names.n)
        report_trie_fault(w, at, "the names are too long in total");
    return w->bad ? 0 : append_export(w->out, e, w->path.p, w->path.n, err);
}

static int push_node(struct walk *w, uint64_t node, struct exti_error *err)
{
    size_t at = (size_t)node;
    uint64_t size;
    int rc = 0;
    struct level *p;

    if (node >= w->s.n) {
        report_trie_fault(w, at, "a node is outside the trie");
        return 0;
    }
    /* A node has at least two bytes, so a trie without cycles has at most half as many nodes as
     * bytes. */
    if (w->visited++ > w->s.n / 2) {
        report_trie_fault(w, at, "a node is reached twice");
        return 0;
    }
    size = read_uleb(w, &at);
    if (w->bad || size >= w->s.n - at) {
        report_trie_fault(w, at, "a node's export is outside the trie");
        return 0;
    }
    if (size)
        rc = read_export(w, at, at + (size_t)size, err);
    if (rc || w->bad)
        return rc;
    p = exti__array_room(w->levels, w->depth, &w->cap, sizeof *p);
    if (!p)
        return exti__fail_nomem(err);
    w->levels = p;
    at += (size_t)size;
    w->levels[w->depth++] = (struct level){at + 1, w->path.n, w->s.p[at]};
    return 0;
}

/* Follows the next edge of the innermost node, or leaves the node. */
static int next_edge(struct walk *w, struct exti_error *err)
{
    struct level *l = &w->levels[w->depth - 1];
    const uint8_t *label = w->s.p + l->next;
    const void *nul;
    uint64_t child;
    int rc;

    w->path.n = l->name_length;
    if (!l->left) {
        w->depth--;
        return 0;
    }
    l->left--;
    nul = l->next < w->s.n ? memchr(label, 0, w->s.n - l->next) : NULL;
    if (!nul) {
        report_trie_fault(w, l->next, "an edge's label has no NUL");
        return 0;
    }
    /* Without cycles no name is longer than the trie. */
    if ((size_t)((const uint8_t *)nul - label) > w->path.max - w->path.n) {
        report_trie_fault(w, l->next, "a node is reached twice");
        return 0;
    }
    rc = exti__buf_append(&w->path, label, (size_t)((const uint8_t *)nul - label), err);
    if (rc)
        return rc;
    l->next += (size_t)((const uint8_t *)nul - label) + 1;
    child = read_uleb(w, &l->next);
    if (!w->bad && !child)
        report_trie_fault(w, l->next, "an edge leads to the root");
    return w->bad ? 0 : push_node(w, child, err);
}

static int walk_trie(struct macho_check *c, const struct macho_file *f, struct exti_span s,
                     struct macho_exports *out, struct exti_error *err)
{
    struct walk w = {.c = c, .f = f, .out = out, .s = s, .path = exti__buf(s.n)};
    int rc;

    if (!s.n)
        return 0;
    rc = push_node(&w, 0, err);
    while (!rc && !w.bad && w.depth)
        rc = next_edge(&w, err);
    exti__buf_free(&w.path);
    exti__free(w.levels);
    return rc;
}

/* Files without a trie export their external defined symbols. */
static int walk_symbols(const struct macho_file *f, struct macho_exports *out,
                        struct exti_error *err)
{
    const struct exti_span s = f->pieces[MACHO_SYMBOLS].s, names = f->pieces[MACHO_STRINGS].s;
    int rc = 0;

    for (size_t i = 0; !rc && i < s.n / NLIST_64_SIZE; i++) {
        const uint8_t *p = s.p + i * NLIST_64_SIZE;
        const uint32_t name = exti__macho_u32(p);
        struct macho_exported e = {.import_name = ""};
        const uint8_t *nul;

        if (p[4] & (N_STAB | N_PEXT) || !(p[4] & N_EXT) || (p[4] & N_TYPE) == N_UNDF ||
            name >= names.n)
            continue;
        nul = memchr(names.p + name, 0, names.n - name);
        e.address = exti__macho_u64(p + 8) - f->text->vmaddr;
        if (nul)
            rc = append_export(out, e, names.p + name, (size_t)(nul - (names.p + name)), err);
    }
    return rc;
}

int exti__macho_exports(struct macho_check *c, const struct macho_file *f,
                        struct macho_exports *out, struct exti_error *err)
{
    const struct macho_piece *info = &f->pieces[MACHO_EXPORT],
                             *own = &f->pieces[MACHO_EXPORTS_TRIE];
    const bool has_trie = info->present || own->present;

    /* Names share prefixes in the trie; real ones expand to a few times its size.  One list may
     * hold the exports of several files. */
    out->names.max +=
        ((size_t)1 << 20) + 17 * (own->s.n + info->s.n + f->pieces[MACHO_STRINGS].s.n);
    return has_trie ? walk_trie(c, f, own->s.n ? own->s : info->s, out, err)
                    : walk_symbols(f, out, err);
}
