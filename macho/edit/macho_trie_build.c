/* Writing an exports trie, with the layout of ld64.lld. */
#include "macho/edit/macho_trie_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_put_leb.h"
#include "macho/read/macho_trie.h"

/* Nodes refer to each other by index, because the array moves when it grows. */
#define NO_NODE ((size_t)-1)

struct build_node {
    const struct macho_export *e; /* NULL: no export ends here */
    const char *edge;             /* label of the edge from the parent; not NUL-terminated */
    size_t edge_size;
    size_t child, last_child, next; /* children in the order of the names that added them */
    uint64_t at;
};

struct builder {
    struct build_node *nodes;
    size_t count, cap;
};

static int add_node(struct builder *t, struct build_node n, size_t *out, struct exti_error *err)
{
    struct build_node *nodes = exti__array_room(t->nodes, t->count, &t->cap, sizeof *nodes);

    if (!nodes)
        return exti__fail_nomem(err);
    t->nodes = nodes;
    t->nodes[t->count] = n;
    *out = t->count++;
    return 0;
}

static int add_leaf(struct builder *t, size_t parent, const char *rest,
                    const struct macho_export *e, struct exti_error *err)
{
    size_t at = 0;
    int rc = add_node(t,
                      (struct build_node){.e = e,
                                          .edge = rest,
                                          .edge_size = strlen(rest),
                                          .child = NO_NODE,
                                          .last_child = NO_NODE,
                                          .next = NO_NODE},
                      &at, err);

    if (rc)
        return rc;
    if (t->nodes[parent].child == NO_NODE)
        t->nodes[parent].child = at;
    else
        t->nodes[t->nodes[parent].last_child].next = at;
    t->nodes[parent].last_child = at;
    return 0;
}

/* Splits the edge to `at` after `size` characters; `at` becomes the new middle node with one
 * child. */
static int split_edge(struct builder *t, size_t at, size_t size, struct exti_error *err)
{
    struct build_node lower = t->nodes[at];
    size_t below = 0;
    int rc;

    lower.edge += size;
    lower.edge_size -= size;
    lower.next = NO_NODE;
    rc = add_node(t, lower, &below, err);
    if (rc)
        return rc;
    t->nodes[at].e = NULL;
    t->nodes[at].edge_size = size;
    t->nodes[at].child = t->nodes[at].last_child = below;
    return 0;
}

static size_t common_length(const char *rest, const struct build_node *n)
{
    size_t i = 0;

    while (i < n->edge_size && rest[i] && rest[i] == n->edge[i])
        i++;
    return i;
}

static int add_to_trie(struct builder *t, const struct macho_export *e, struct exti_error *err)
{
    const char *rest = e->name;
    size_t at = 0;

    /* Linkers disagree on this flag's meaning and on the bytes that follow it. */
    if (e->flags & EXPORT_SYMBOL_FLAGS_FUNCTION_VARIANT)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "exports trie: %.100s is a function variant", e->name);
    while (*rest) {
        size_t to = t->nodes[at].child, same;

        while (to != NO_NODE && *t->nodes[to].edge != *rest)
            to = t->nodes[to].next;
        if (to == NO_NODE)
            return add_leaf(t, at, rest, e, err);
        same = common_length(rest, &t->nodes[to]);
        if (same < t->nodes[to].edge_size) {
            int rc = split_edge(t, to, same, err);

            if (rc)
                return rc;
        }
        rest += same;
        at = to;
    }
    if (t->nodes[at].e)
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "exports trie: %.100s occurs twice",
                          e->name);
    t->nodes[at].e = e;
    return 0;
}

/* The nodes in output order: each before its children. */
static size_t *preorder(const struct builder *t, struct exti_error *err)
{
    size_t *order = exti__realloc_array(NULL, t->count, sizeof *order);
    size_t *todo = exti__realloc_array(NULL, t->count, sizeof *todo);
    size_t n = 0, left = 0;

    if (order && todo) {
        todo[left++] = 0;
        while (left) {
            size_t at = todo[--left], first = left, kid;

            order[n++] = at;
            for (kid = t->nodes[at].child; kid != NO_NODE; kid = t->nodes[kid].next)
                todo[left++] = kid;
            for (size_t last = left; first + 1 < last; first++) {
                size_t swap = todo[first];

                todo[first] = todo[--last];
                todo[last] = swap;
            }
        }
    } else {
        exti__free(order);
        order = NULL;
        exti__fail_nomem(err);
    }
    exti__free(todo);
    return order;
}

static size_t uleb_size(uint64_t v)
{
    size_t n = 1;

    for (; v > 0x7f; v >>= 7)
        n++;
    return n;
}

static uint64_t info_size(const struct macho_export *e)
{
    uint64_t n;

    if (!e)
        return 0;
    n = uleb_size(e->flags);
    if (e->flags & EXPORT_SYMBOL_FLAGS_REEXPORT)
        return n + uleb_size(e->other) + strlen(e->import_name) + 1;
    n += uleb_size(e->address);
    return n + (e->flags & EXPORT_SYMBOL_FLAGS_STUB_AND_RESOLVER ? uleb_size(e->other) : 0);
}

/* A node's offset depends on the lengths of the numbers that encode other offsets, so this
 * repeats until no offset changes.  Offsets only grow, so it ends. */
static void place_nodes(struct builder *t, const size_t *order)
{
    bool moved = true;

    while (moved) {
        uint64_t at = 0;

        moved = false;
        for (size_t i = 0; i < t->count; i++) {
            struct build_node *n = &t->nodes[order[i]];
            uint64_t info = info_size(n->e);

            moved |= n->at != at;
            n->at = at;
            at += uleb_size(info) + info + 1;
            for (size_t kid = n->child; kid != NO_NODE; kid = t->nodes[kid].next)
                at += t->nodes[kid].edge_size + 1 + uleb_size(t->nodes[kid].at);
        }
    }
}

static int put_info(const struct macho_export *e, struct exti_buf *out, struct exti_error *err)
{
    int rc = exti__macho_put_uleb(out, info_size(e), err);

    if (rc || !e)
        return rc;
    rc = exti__macho_put_uleb(out, e->flags, err);
    if (!rc && e->flags & EXPORT_SYMBOL_FLAGS_REEXPORT) {
        rc = exti__macho_put_uleb(out, e->other, err);
        return rc ? rc : exti__buf_append(out, e->import_name, strlen(e->import_name) + 1, err);
    }
    if (!rc)
        rc = exti__macho_put_uleb(out, e->address, err);
    if (!rc && e->flags & EXPORT_SYMBOL_FLAGS_STUB_AND_RESOLVER)
        rc = exti__macho_put_uleb(out, e->other, err);
    return rc;
}

static int put_node(const struct builder *t, const struct build_node *n, struct exti_buf *out,
                    struct exti_error *err)
{
    uint8_t kids = 0;
    int rc = put_info(n->e, out, err);

    /* First characters are distinct and not NUL, so there are at most 255. */
    for (size_t kid = n->child; kid != NO_NODE; kid = t->nodes[kid].next)
        kids++;
    if (!rc)
        rc = exti__buf_append(out, &kids, 1, err);
    for (size_t kid = n->child; !rc && kid != NO_NODE; kid = t->nodes[kid].next) {
        rc = exti__buf_append(out, t->nodes[kid].edge, t->nodes[kid].edge_size, err);
        if (!rc)
            rc = exti__buf_zeros(out, 1, err);
        if (!rc)
            rc = exti__macho_put_uleb(out, t->nodes[kid].at, err);
    }
    return rc;
}

int exti__macho_trie_build(const struct macho_export *list, size_t count, struct exti_buf *out,
                           struct exti_error *err)
{
    struct builder t = {0};
    size_t *order = NULL, root;
    int rc = 0;

    if (!count)
        return 0;
    rc = add_node(&t, (struct build_node){.child = NO_NODE, .last_child = NO_NODE, .next = NO_NODE},
                  &root, err);
    for (size_t i = 0; !rc && i < count; i++)
        rc = add_to_trie(&t, &list[i], err);
    if (!rc) {
        order = preorder(&t, err);
        rc = order ? 0 : EXTI_E_NOMEM;
    }
    if (!rc)
        place_nodes(&t, order);
    for (size_t i = 0; !rc && i < t.count; i++)
        rc = put_node(&t, &t.nodes[order[i]], out, err);
    if (!rc)
        rc = exti__buf_align(out, 8, err);
    exti__free(order);
    exti__free(t.nodes);
    return rc;
}

/* Copies of a trie's exports: a walk's strings are valid only during the call. */
struct copied {
    struct macho_export *list; /* names are set when `text` is complete */
    size_t count, cap;
    struct exti_buf text;
    int (*edit)(void *user, struct macho_export *e, struct exti_error *err);
    void *user;
};

static int copy_export(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct copied *c = user;
    struct macho_export mine = *e;
    int rc = c->edit(c->user, &mine, err);
    struct macho_export *list;

    if (rc)
        return rc;
    list = exti__array_room(c->list, c->count, &c->cap, sizeof *list);
    if (!list)
        return exti__fail_nomem(err);
    c->list = list;
    c->list[c->count++] = mine;
    return exti__buf_append(&c->text, e->name, strlen(e->name) + 1, err);
}

int exti__macho_trie_map(struct exti_span trie,
                         int (*edit)(void *user, struct macho_export *e, struct exti_error *err),
                         void *user, struct exti_buf *out, struct exti_error *err)
{
    /* Names have a NUL that the limit does not count, and take at least a byte in the trie. */
    struct copied c = {.text = exti__buf((size_t)exti__macho_trie_names_limit(trie) + trie.n),
                       .edit = edit,
                       .user = user};
    int rc = exti__macho_trie_walk(trie, copy_export, &c, err);
    const char *name = (const char *)c.text.p;

    for (size_t i = 0; !rc && i < c.count; i++) {
        c.list[i].name = name;
        name += strlen(name) + 1;
    }
    if (!rc)
        rc = exti__macho_trie_build(c.list, c.count, out, err);
    exti__buf_free(&c.text);
    exti__free(c.list);
    return rc;
}
