/* The graph.  Each file that is added is walked breadth first, as loaders do.  So a name that two
 * folders could answer leads to the file that a process with only that file and the API library
 * would load. */
#include "loader/resolve/closure.h"

#include <search.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/resolve/absent.h"
#include "loader/resolve/captured.h"
#include "loader/resolve/closure_api.h"
#include "loader/resolve/closure_decide.h"
#include "loader/resolve/closure_node.h"
#include "loader/resolve/quirks.h"

/* A node by its file. */
struct file_key {
    uint64_t device, inode;
    size_t node;
};

struct exti_closure_state {
    const struct exti_search_ops *ops; /* of the files' format; NULL until the first file */
    const struct exti_search *search;  /* the caller's or `own`; NULL where `ops` need none */
    struct exti_search *own;           /* owned; NULL if the caller gave one */
    struct exti_policy policy;
    const struct exti_quirks *quirks;
    struct exti_image_cache *images;
    struct exti_image_cache no_images;
    enum exti_closure mode;
    bool in_process;
    struct exti_api_exports api_exports;
    void *files; /* tree of struct file_key */

    /* A walk goes through the files that a loader would load, in its order. */
    size_t walk;     /* its number */
    size_t *visited; /* owned; by node: the last walk that loaded it */
    size_t visited_cap;
    size_t *loaded; /* owned; the nodes that this walk has loaded */
    size_t loaded_count, loaded_cap;
};

static int file_order(const void *a, const void *b)
{
    const struct file_key *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* ---- nodes ---- */

static const struct exti_closure_node *api_node(const struct exti_closure_graph *g)
{
    return g->api == EXTI_NO_NODE ? NULL : &g->nodes[g->api];
}

static int index_node(struct exti_closure_state *s, const struct exti_file_id *id, size_t node,
                      struct exti_error *err)
{
    struct file_key *key = exti__alloc(sizeof *key);

    if (!key)
        return exti__fail_nomem(err);
    *key = (struct file_key){id->device, id->inode, node};
    if (!tsearch(key, &s->files, file_order)) {
        exti__free(key);
        return exti__fail_nomem(err);
    }
    return 0;
}

static int apply_quirks(const struct exti_closure_state *s, struct exti_closure_node *n,
                        const struct exti_image *im, struct exti_error *err)
{
    struct exti_quirk_effect e;
    int rc = exti__quirks_apply(s->quirks, n->real, im, &e, err);

    if (rc)
        return rc;
    n->quirk = e.library_by;
    n->quirk_shares = e.library == EXTI_QUIRK_SHARE;
    exti__quirk_effect_free(&e);
    return 0;
}

/* The first file sets the format of all. */
static int choose_search(struct exti_closure_state *s, enum exti_file_format format,
                         struct exti_error *err)
{
    const struct exti_search_ops *ops = exti__search_ops(format);
    int rc = 0;

    if (!ops)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "is a %s file, whose dependencies cannot be resolved on this system",
                          exti__format_name(format));
    if (!s->search && ops->open_running)
        rc = ops->open_running(&s->own, err);
    if (rc)
        return rc;
    s->search = s->search ? s->search : s->own;
    s->ops = ops;
    s->policy.format = ops->format;
    return 0;
}

static int check_format(struct exti_closure_state *s, const struct exti_image *im,
                        struct exti_error *err)
{
    if (!s->ops)
        return choose_search(s, im->format, err);
    if (im->format == s->ops->format)
        return 0;
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "is a %s file, but the context holds %s files", im->info.format,
                      exti__format_name(s->ops->format));
}

/* Most libraries are isolated anyway, and need not be compared with what the program exports. */
static bool is_node_captured(const struct exti_closure_state *s, const struct exti_closure_node *n,
                             const struct exti_image *im)
{
    const struct exti_decision d = exti__closure_decision(&s->policy, n);

    return s->in_process && exti__policy_captured(d).why != d.why && exti__is_captured(im);
}

static int read_node(struct exti_closure_graph *g, struct exti_closure_node *n,
                     struct exti_error *err)
{
    struct exti_closure_state *s = g->state;
    struct exti_image *im = NULL;
    int rc = exti__image_cache_get(s->images, n->path, &n->id, &im, err);

    if (!rc)
        rc = check_format(s, im, err);
    if (!rc)
        rc = exti__closure_node_fill(n, im, s->ops, api_node(g), err);
    if (!rc && n->api)
        rc = exti__api_exports_of(im, &s->api_exports, err);
    else if (!rc)
        n->uses_api = g->api != EXTI_NO_NODE &&
                      exti__api_is_used_by(&s->api_exports, &g->nodes[g->api], s->ops, im);
    if (!rc)
        rc = apply_quirks(s, n, im, err);
    if (!rc)
        n->captured = is_node_captured(s, n, im);
    exti__image_cache_put(s->images, im);
    return rc;
}

/* Room for one more node and for the walk's mark on it. */
static int reserve_node(struct exti_closure_graph *g, struct exti_error *err)
{
    struct exti_closure_state *s = g->state;
    void *nodes = exti__array_room(g->nodes, g->count, &g->cap, sizeof *g->nodes), *marks;

    if (!nodes)
        return exti__fail_nomem(err);
    g->nodes = nodes;
    marks = exti__array_room(s->visited, g->count, &s->visited_cap, sizeof *s->visited);
    if (!marks)
        return exti__fail_nomem(err);
    s->visited = marks;
    return 0;
}

static int make_node(struct exti_closure_graph *g, const char *path, const struct exti_file_id *id,
                     size_t loader, bool api, struct exti_error *err)
{
    struct exti_closure_node n = {.id = *id,
                                  .loader = loader,
                                  .api = api,
                                  .because = EXTI_NO_NODE,
                                  .original_of = EXTI_NO_NODE};
    int rc = reserve_node(g, err);

    if (rc)
        return rc;
    rc = exti__fs_realpath(path, &n.real, err);
    if (!rc) /* a relative path would mean another file once the current folder changes */
        rc = exti__copy_text(&n.path, exti__path_is_absolute(path) ? path : n.real, err);
    if (!rc)
        rc = read_node(g, &n, err);
    if (!rc)
        rc = index_node(g->state, id, g->count, err);
    if (rc) {
        exti__error_file(err, path);
        exti__closure_node_clear(&n);
        return rc;
    }
    g->state->visited[g->count] = 0;
    g->nodes[g->count++] = n;
    return 0;
}

/* The node of the file `path`, new if the graph has none. */
static int node_of(struct exti_closure_graph *g, const char *path, size_t loader, bool api,
                   size_t *out, struct exti_error *err)
{
    struct exti_file_id id;
    struct file_key key = {0}, **found;
    int rc = exti__fs_id(path, &id, err);

    if (rc)
        return rc;
    key.device = id.device;
    key.inode = id.inode;
    found = tfind(&key, &g->state->files, file_order);
    if (found) {
        *out = (*found)->node;
        return exti__closure_node_add_alias(&g->nodes[*out], g->state->ops, path, err);
    }
    rc = make_node(g, path, &id, loader, api, err);
    if (!rc)
        *out = g->count - 1;
    return rc;
}

/* Undoes what a walk that failed has added. */
static void remove_nodes_from(struct exti_closure_graph *g, size_t from)
{
    while (g->count > from) {
        struct exti_closure_node *n = &g->nodes[--g->count];
        struct file_key key = {n->id.device, n->id.inode, g->count};
        struct file_key **found = tfind(&key, &g->state->files, file_order), *gone = *found;

        tdelete(&key, &g->state->files, file_order);
        exti__free(gone);
        exti__closure_node_clear(n);
    }
}

/* ---- the walk ---- */

/* Puts the node behind those that this walk has loaded, unless it is one of them. */
static int mark_loaded(struct exti_closure_graph *g, size_t node, struct exti_error *err)
{
    struct exti_closure_state *s = g->state;
    size_t *loaded;

    if (s->visited[node] == s->walk)
        return 0;
    loaded = exti__array_room(s->loaded, s->loaded_count, &s->loaded_cap, sizeof *s->loaded);
    if (!loaded)
        return exti__fail_nomem(err);
    s->loaded = loaded;
    s->visited[node] = s->walk;
    s->loaded[s->loaded_count++] = node;
    return 0;
}

static bool is_api(const struct exti_closure_graph *g, const char *name)
{
    return g->api != EXTI_NO_NODE &&
           g->state->ops->is_api(name, g->nodes[g->api].real, g->nodes[g->api].soname);
}

/* The loaded node of that name.  Any of the API library's names is the API library, whatever file a
 * folder has under it. */
static size_t find_loaded(const struct exti_closure_graph *g, const char *name)
{
    const struct exti_closure_state *s = g->state;

    if (is_api(g, name))
        return g->api;
    for (size_t i = 0; i < s->loaded_count; i++)
        if (exti__closure_node_has_name(&g->nodes[s->loaded[i]], s->ops, name))
            return s->loaded[i];
    return EXTI_NO_NODE;
}

/* Searches for a file on behalf of `node` and the nodes that it was loaded for. */
static int search_folders(const struct exti_closure_graph *g, size_t node, const char *name,
                          char **path, struct exti_error *err)
{
    struct exti_requester *chain;
    size_t n = 0, k = 0;
    int rc;

    for (size_t i = node; i != EXTI_NO_NODE; i = g->nodes[i].loader)
        n++;
    chain = exti__calloc(n, sizeof *chain);
    if (!chain)
        return exti__fail_nomem(err);
    for (size_t i = node; i != EXTI_NO_NODE; i = g->nodes[i].loader, k++) {
        chain[k] = exti__closure_node_requester(&g->nodes[i]);
        chain[k].api = g->api == EXTI_NO_NODE ? NULL : g->nodes[g->api].real;
        chain[k].loader = k + 1 < n ? &chain[k + 1] : NULL;
    }
    rc = g->state->ops->find(g->state->search, chain, name, path, err);
    exti__free(chain);
    return rc;
}

static bool is_system_library(const struct exti_closure_state *s, const char *name)
{
    return s->ops->is_system && s->ops->is_system(name);
}

/* The node of the file that the folders have for `name`, or EXTI_NO_NODE. */
static int find_in_folders(struct exti_closure_graph *g, size_t node, const char *name, size_t *out,
                           bool *system, struct exti_error *err)
{
    char *path = NULL;
    int rc = search_folders(g, node, name, &path, err);

    if (!rc && path && is_system_library(g->state, path))
        *system = true;
    else if (!rc && path)
        rc = node_of(g, path, node, false, out, err);
    exti__free(path);
    return rc;
}

/* The node that the loader gives `node` for `name`, or EXTI_NO_NODE; *system if it is part of the
 * system. */
static int find_library(struct exti_closure_graph *g, size_t node, const char *name, size_t *out,
                        bool *system, struct exti_error *err)
{
    const struct exti_closure_state *s = g->state;
    char *known = NULL;
    int rc = s->ops->loaded_name(s->search, g->nodes[node].path, name, &known, err);

    *system = false;
    *out = EXTI_NO_NODE;
    if (!rc && is_api(g, name))
        *out = g->api;
    else if (!rc && is_system_library(s, name))
        *system = true;
    else if (!rc && known)
        *out = find_loaded(g, known);
    if (!rc && *out == EXTI_NO_NODE && !*system) {
        rc = find_in_folders(g, node, name, out, system, err);
        if (!rc && *out != EXTI_NO_NODE && known && s->ops->remembers)
            rc = exti__closure_node_add_alias(&g->nodes[*out], s->ops, known, err);
    }
    exti__free(known);
    return rc;
}

/* The need is neither found nor missing.  Says so in the words of the system. */
static int fail_unseen(const struct exti_closure_node *n, const char *name,
                       const struct exti_error *why, struct exti_error *err)
{
    if (err) {
        const size_t at = strlen(why->message);

        *err = *why;
        snprintf(err->message + at, sizeof err->message - at,
                 "; %s needs %s, which may be there; make it readable, or try again",
                 exti__base_name(n->path), name);
    }
    return why->code;
}

/* An error that would stop the loader makes the need a problem, for the caller to report.  A
 * library that could not be looked for stops the walk. */
static int resolve_need(struct exti_closure_graph *g, size_t node, struct exti_closure_need *need,
                        struct exti_error *err)
{
    struct exti_error why = {0};
    int rc = find_library(g, node, need->name, &need->node, &need->system, &why);

    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    if (exti__is_unseen(rc, &why))
        return fail_unseen(&g->nodes[node], need->name, &why, err);
    if (need->system)
        return 0;
    if (need->node != EXTI_NO_NODE)
        return mark_loaded(g, need->node, err);
    need->problem = exti__strdup(rc ? why.message : "is in none of the folders searched");
    return need->problem ? 0 : exti__fail_nomem(err);
}

/* Loads what the loaded files need, breadth first.  Nodes from `fresh` on are new, so their needs
 * are resolved first. */
static int walk_on(struct exti_closure_graph *g, size_t fresh, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < g->state->loaded_count && !rc; i++) {
        const size_t node = g->state->loaded[i];
        struct exti_closure_need *needs = g->nodes[node].needs;

        for (size_t k = 0; k < g->nodes[node].need_count && !rc; k++) {
            if (node >= fresh)
                rc = resolve_need(g, node, &needs[k], err);
            else if (needs[k].node != EXTI_NO_NODE)
                rc = mark_loaded(g, needs[k].node, err);
        }
    }
    return rc;
}

/* ---- adding files ---- */

/* Finds out which shared libraries copies of the new files find by name. */
static int set_by_name(struct exti_closure_graph *g, size_t fresh, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = fresh; i < g->count && !rc; i++) {
        const struct exti_requester from = exti__closure_node_requester(&g->nodes[i]);

        for (size_t k = 0; k < g->nodes[i].need_count && !rc; k++) {
            struct exti_closure_need *need = &g->nodes[i].needs[k];

            if (need->node != EXTI_NO_NODE && !g->nodes[need->node].isolated)
                rc = g->state->ops->by_name(g->state->search, &from, need->name,
                                            &g->nodes[need->node].id, &need->by_name, err);
        }
    }
    return rc;
}

/* Called last, as a walk that fails must not count. */
static void count_missing(struct exti_closure_graph *g, size_t fresh)
{
    for (size_t i = fresh; i < g->count; i++)
        for (size_t k = 0; k < g->nodes[i].need_count; k++)
            if (g->nodes[i].needs[k].node == EXTI_NO_NODE && !g->nodes[i].needs[k].system) {
                g->missing += !g->nodes[i].needs[k].optional;
                g->missing_optional += g->nodes[i].needs[k].optional;
            }
}

/* In a process the API library and what it needs are loaded before any other file. */
static int start_walk(struct exti_closure_graph *g, struct exti_error *err)
{
    int rc;

    g->state->walk++;
    g->state->loaded_count = 0;
    if (g->api == EXTI_NO_NODE)
        return 0;
    rc = mark_loaded(g, g->api, err);
    return rc ? rc : walk_on(g, g->count, err);
}

/* Walks from the new node `node` and decides on all nodes from `fresh` on, which are new. */
static int walk_and_decide(struct exti_closure_graph *g, size_t node, size_t fresh,
                           struct exti_error *err)
{
    int rc = mark_loaded(g, node, err);

    if (!rc)
        rc = walk_on(g, fresh, err);
    if (rc)
        return rc;
    exti__closure_decide(g, fresh, g->state->mode, &g->state->policy);
    rc = set_by_name(g, fresh, err);
    if (!rc)
        count_missing(g, fresh);
    return rc;
}

static int add_to_graph(struct exti_closure_graph *g, const char *path, bool api, size_t *node,
                        struct exti_error *err)
{
    const size_t fresh = g->count;
    int rc;

    if (!exti__path_is_absolute(path))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "'%s' is not an absolute path", path);
    rc = start_walk(g, err);
    if (!rc)
        rc = node_of(g, path, EXTI_NO_NODE, api, node, err);
    if (!rc && api)
        g->api = *node;
    if (!rc && g->count > fresh)
        rc = walk_and_decide(g, *node, fresh, err);
    if (rc)
        remove_nodes_from(g, fresh);
    return rc;
}

int exti__closure_add(struct exti_closure_graph *g, const char *path, bool root, size_t *node,
                      struct exti_error *err)
{
    size_t found;
    int rc = add_to_graph(g, path, false, &found, err);

    if (rc)
        return rc;
    g->nodes[found].root = g->nodes[found].root || root;
    *node = found;
    return 0;
}

int exti__closure_find(struct exti_closure_graph *g, size_t from, const char *name, size_t *node,
                       struct exti_error *err)
{
    const size_t fresh = g->count;
    size_t found;
    bool system;
    int rc = start_walk(g, err);

    if (!rc)
        rc = mark_loaded(g, from, err);
    if (!rc)
        rc = walk_on(g, fresh, err);
    if (!rc)
        rc = find_library(g, from, name, &found, &system, err);
    if (!rc && g->count > fresh)
        rc = walk_and_decide(g, found, fresh, err);
    if (rc)
        remove_nodes_from(g, fresh);
    else
        *node = found;
    return rc;
}

bool exti__closure_is_current(const struct exti_closure_graph *g, size_t node)
{
    const struct exti_file_id *old = &g->nodes[node].id;
    struct exti_file_id now;

    return !exti__fs_id(g->nodes[node].path, &now, NULL) && now.device == old->device &&
           now.inode == old->inode && now.size == old->size && now.mtime_ns == old->mtime_ns;
}

/* ---- the graph's life ---- */

int exti__closure_init(struct exti_closure_graph *g, const struct exti_closure_opts *opts,
                       struct exti_error *err)
{
    struct exti_closure_state *s = exti__calloc(1, sizeof *s);
    size_t node;
    int rc = 0;

    if (!s)
        return exti__fail_nomem(err);
    *g = (struct exti_closure_graph){.api = EXTI_NO_NODE, .state = s};
    s->mode = opts->mode == EXTI_CLOSURE_DEFAULT ? EXTI_CLOSURE_ALL : opts->mode;
    s->quirks = opts->quirks;
    s->images = opts->images ? opts->images : &s->no_images;
    s->in_process = opts->in_process;
    s->policy = (struct exti_policy){.rules = opts->rules,
                                     .rule_count = opts->rule_count,
                                     .share_by_default = s->mode != EXTI_CLOSURE_ALL,
                                     .own_locks = opts->own_locks};
    s->search = opts->search;
    if (opts->api_library)
        rc = add_to_graph(g, opts->api_library, true, &node, err);
    if (rc)
        exti__closure_close(g);
    return rc;
}

void exti__closure_close(struct exti_closure_graph *g)
{
    struct exti_closure_state *s = g->state;

    for (size_t i = 0; i < g->count; i++)
        exti__closure_node_clear(&g->nodes[i]);
    exti__free(g->nodes);
    if (s) {
        exti__tree_free(&s->files, file_order, exti__free);
        if (s->own)
            s->ops->close(s->own);
        exti__api_exports_free(&s->api_exports);
        exti__free(s->visited);
        exti__free(s->loaded);
    }
    exti__free(s);
    *g = (struct exti_closure_graph){.api = EXTI_NO_NODE};
}
