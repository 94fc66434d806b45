/* Reading the exports trie as dyld does. */
#include "macho/read/macho_trie.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "macho/read/macho_leb.h"

/* Longer than any real symbol; together with the names limit it bounds a hostile trie's memory. */
#define MAX_NAME ((size_t)1 << 20)
#define NAMES_PER_BYTE 16u /* real tries have 2 */
#define NAMES_ANYWAY ((uint64_t)1 << 20)

struct exti_span exti__macho_trie(const struct macho_file *f)
{
    return f->pieces[f->pieces[MACHO_EXPORTS_TRIE].s.n ? MACHO_EXPORTS_TRIE : MACHO_EXPORT].s;
}

uint64_t exti__macho_trie_names_limit(struct exti_span trie)
{
    return trie.n * (uint64_t)NAMES_PER_BYTE + NAMES_ANYWAY;
}

/* A node that was entered. */
struct node {
    struct exti_span info; /* n 0: the node exports nothing */
    struct exti_cur children;
    uint8_t left;
};

static int node_at(struct exti_span trie, uint64_t at, struct node *out, struct exti_error *err)
{
    struct exti_span s, rest;
    struct exti_cur c;
    uint64_t size;
    int rc;

    rc = exti__span_sub(trie, at, trie.n > at ? trie.n - at : 1, "exports trie: node", &s, err);
    if (rc)
        return rc;
    c = exti__cur(s, false);
    size = exti__macho_uleb(&c);
    rc = exti__cur_end(&c, "exports trie: node", err);
    if (!rc)
        rc = exti__span_sub(s, c.at, size, "exports trie: export", &out->info, err);
    if (!rc)
        rc = exti__span_sub(s, c.at + size, s.n - c.at - size, "exports trie: node", &rest, err);
    if (rc)
        return rc;
    out->children = exti__cur(rest, false);
    out->left = exti__cur_u8(&out->children);
    return exti__cur_end(&out->children, "exports trie: node", err);
}

/* An edge with an empty label always matches; Apple's linkers write some.  `left` is how many
 * bytes of edges may still be read: overlapping nodes could otherwise make every step read the
 * whole trie. */
static int next_child(struct node *n, const char **edge, uint64_t *to, size_t *left,
                      struct exti_error *err)
{
    size_t before = n->children.at;
    uint64_t at = n->children.s.base + before;
    int rc;

    n->left--;
    *edge = exti__macho_cur_cstr(&n->children);
    *to = exti__macho_uleb(&n->children);
    rc = exti__cur_end(&n->children, "exports trie: edge", err);
    if (rc)
        return rc;
    if (!*to)
        return exti__fail(err, EXTI_E_FORMAT, at, "exports trie: an edge leads to the root");
    if (n->children.at - before > *left)
        return exti__fail(err, EXTI_E_FORMAT, at, "exports trie: nodes overlap");
    *left -= n->children.at - before;
    return 0;
}

static int read_export(struct exti_span info, const char *name, struct macho_export *out,
                       struct exti_error *err)
{
    struct exti_cur c = exti__cur(info, false);
    struct macho_export e = {.name = name, .import_name = ""};

    e.flags = exti__macho_uleb(&c);
    if (e.flags & EXPORT_SYMBOL_FLAGS_REEXPORT) {
        e.other = exti__macho_uleb(&c);
        e.import_name = exti__macho_cur_cstr(&c);
    } else {
        e.address = exti__macho_uleb(&c);
        /* Older linkers set this flag for static resolvers, without a number after the address. */
        if (e.flags & EXPORT_SYMBOL_FLAGS_STUB_AND_RESOLVER ||
            (e.flags & EXPORT_SYMBOL_FLAGS_FUNCTION_VARIANT && c.at < info.n))
            e.other = exti__macho_uleb(&c);
    }
    *out = e;
    return exti__cur_end(&c, "exports trie: export", err);
}

int exti__macho_trie_find(struct exti_span trie, const char *name, bool *found,
                          struct macho_export *out, struct exti_error *err)
{
    size_t left = trie.n;
    uint64_t at = 0;
    const char *rest = name;
    struct macho_export e;

    if (!trie.n) {
        *found = false;
        return 0;
    }
    for (;;) {
        struct node n;
        bool went = false;
        int rc = node_at(trie, at, &n, err);

        if (rc)
            return rc;
        if (!*rest && n.info.n) {
            rc = read_export(n.info, name, out ? out : &e, err);
            *found = true;
            return rc;
        }
        while (n.left && !went) {
            const char *edge;

            rc = next_child(&n, &edge, &at, &left, err);
            if (rc)
                return rc;
            went = !strncmp(rest, edge, strlen(edge));
            rest += went ? strlen(edge) : 0;
        }
        if (!went) {
            *found = false;
            return 0;
        }
    }
}

/* A walk in progress: the nodes from the root to the current one, and the name so far. */
struct walk {
    struct exti_span trie;
    struct step {
        struct node n;
        size_t name_size; /* length of the name up to this node */
        bool told;
    } *steps;
    size_t depth, cap;
    struct exti_buf name;
    uint8_t *seen; /* one bit per byte: a node starts there */
    size_t left;   /* as in next_child */
    uint64_t names, max_names;
};

static int enter_node(struct walk *w, uint64_t at, struct exti_error *err)
{
    struct step *s;
    int rc;

    s = exti__array_room(w->steps, w->depth, &w->cap, sizeof *s);
    if (!s)
        return exti__fail_nomem(err);
    w->steps = s;
    s = &w->steps[w->depth];
    *s = (struct step){.name_size = w->name.n};
    rc = node_at(w->trie, at, &s->n, err);
    if (rc)
        return rc;
    if (w->seen[at / 8] >> at % 8 & 1)
        return exti__fail(err, EXTI_E_FORMAT, w->trie.base + at,
                          "exports trie: two edges lead to one node");
    w->seen[at / 8] |= (uint8_t)(1u << at % 8);
    w->depth++;
    return 0;
}

/* Enters the next child of the current node, or returns to its parent. */
static int next_node(struct walk *w, struct exti_error *err)
{
    struct step *s = &w->steps[w->depth - 1];
    const char *edge;
    uint64_t to;
    int rc;

    w->name.n = s->name_size;
    if (!s->n.left) {
        w->depth--;
        return 0;
    }
    rc = next_child(&s->n, &edge, &to, &w->left, err);
    if (!rc && strlen(edge) > MAX_NAME - w->name.n)
        rc = exti__fail(err, EXTI_E_FORMAT, s->n.children.s.base,
                        "exports trie: a name is longer than %zu", MAX_NAME);
    if (!rc)
        rc = exti__buf_append(&w->name, edge, strlen(edge), err);
    return rc ? rc : enter_node(w, to, err);
}

static int report_export(struct walk *w,
                         int (*each)(void *user, const struct macho_export *e,
                                     struct exti_error *err),
                         void *user, struct exti_error *err)
{
    struct step *s = &w->steps[w->depth - 1];
    struct node *n = &s->n;
    struct macho_export e;
    int rc;

    if (s->told || !n->info.n)
        return 0;
    s->told = true;
    w->names += w->name.n;
    if (w->names > w->max_names)
        return exti__fail(err, EXTI_E_FORMAT, n->info.base,
                          "exports trie: its names add up to more than %llu bytes",
                          (unsigned long long)w->max_names);
    rc = exti__buf_append(&w->name, "", 1, err);
    if (rc)
        return rc;
    w->name.n--;
    rc = read_export(n->info, (const char *)w->name.p, &e, err);
    return rc ? rc : each(user, &e, err);
}

int exti__macho_trie_walk(struct exti_span trie,
                          int (*each)(void *user, const struct macho_export *e,
                                      struct exti_error *err),
                          void *user, struct exti_error *err)
{
    struct walk w = {.trie = trie,
                     .name = exti__buf(MAX_NAME + 1),
                     .left = trie.n,
                     .max_names = exti__macho_trie_names_limit(trie)};
    int rc;

    if (!trie.n)
        return 0;
    w.seen = exti__calloc(trie.n / 8 + 1, 1);
    rc = w.seen ? enter_node(&w, 0, err) : exti__fail_nomem(err);
    while (!rc && w.depth) {
        rc = report_export(&w, each, user, err);
        if (!rc)
            rc = next_node(&w, err);
    }
    exti__free(w.seen);
    exti__free(w.steps);
    exti__buf_free(&w.name);
    return rc;
}
