/* All that a context's files drag in, and which of it the context gets copies of.  The graph grows file by
 * file, for as long as the context is open.
 *
 * Whether a library is isolated follows from itself and from what it needs, never from what else is there,
 * so that the answer does not depend on the order in which files come. */
#ifndef LOADER_RESOLVE_CLOSURE_H
#define LOADER_RESOLVE_CLOSURE_H

#include "loader/image/image_cache.h"
#include "loader/image/machines.h"
#include "loader/resolve/policy.h"
#include "loader/resolve/search.h"

#define EXTI_NO_NODE SIZE_MAX

/* One needed library of a file. */
struct exti_closure_need {
    char *name;    /* owned; as the file tells it */
    size_t node;   /* EXTI_NO_NODE: missing, unless it is the system's */
    bool optional; /* the file loads without it */
    bool system;   /* part of the system, which may have no file for it; shared */
    bool by_name; /* a copy in any folder, with the original's search path, finds the node's file by
                    * `name`, whatever LD_LIBRARY_PATH is; told of nodes that are not isolated */
    char *problem; /* owned; why it is missing, or NULL */
};

struct exti_closure_node {
    char *path;             /* owned; as the loader finds it first, links not followed */
    char *real;             /* owned; without links */
    struct exti_file_id id; /* the file's, by which other paths to it are known */
    char *soname;           /* owned; NULL if it has none */
    char **aliases;         /* owned; other names it is needed by and paths it is found by */
    size_t alias_count;
    char *rpath, *runpath; /* owned; NULL if it has none */
    char **paths;          /* owned; Mach-O's search path, entry by entry */
    size_t path_count;
    struct exti_elf_kind kind;        /* of ELF */
    char machines[EXTI_MACHINES_MAX]; /* its own, of those that the API library has */
    uint32_t flags;                   /* EXTI_IMAGE_* */
    size_t loader;                    /* the node it was first found for; EXTI_NO_NODE: none */
    struct exti_closure_need *needs;  /* owned; one per entry of the file, in its order */
    size_t need_count;

    bool root;     /* was added as one: has a copy in any case, whatever `isolated` says */
    bool api;      /* is the API library; any need by one of its names leads to it */
    bool uses_api; /* imports something that the API library exports */
    bool
        reaches_api; /* that, or needs what does, or is or needs the API library; not in the mode none */
    bool isolated;                 /* others that need it get a copy; never changes */
    const char *quirk;             /* the id of the quirk that decides on it, or NULL */
    bool quirk_shares;             /* what that says */
    struct exti_decision decision; /* the policy's, before what follows from what it needs */
    bool overridden;               /* the policy's decision, not a mere default, does not hold */
    size_t because; /* the need for whose sake it is isolated; EXTI_NO_NODE: its own */
    size_t
        original_of; /* if a rule has it shared: a library it needs that is isolated, of which it has
                         * the original nevertheless; else EXTI_NO_NODE */

    size_t walk; /* the last one of closure.c that came by */
};

struct exti_closure_opts {
    const struct exti_search *search; /* ELF's; outlives the graph; NULL: the running process's */
    const char *api_library;          /* absolute path; NULL: none */
    const struct exti_rule *rules;    /* outlive the graph */
    size_t rule_count;
    const struct exti_quirks *quirks; /* outlive the graph; NULL: none */
    struct exti_image_cache *images;  /* likewise */
    enum exti_closure mode;
};

struct exti_closure_state; /* private */

struct exti_closure_graph {
    struct exti_closure_node
        *nodes; /* owned, moved by exti__closure_add; in the order of discovery */
    size_t count, cap;
    size_t api;                       /* its node, or EXTI_NO_NODE */
    size_t missing, missing_optional; /* needs without a node */
    struct exti_closure_state *state; /* owned */
};

/* Starts a graph with the API library and what that needs.  One that cannot be read is an error.  The first
 * file's format is that of all; EXTI_E_UNSUPPORTED where its needs cannot be followed. */
int exti__closure_init(struct exti_closure_graph *g, const struct exti_closure_opts *opts,
                       struct exti_error *err);

/* Adds the file `path`, absolute, and all that it needs, and decides on what is new.  As a root, or as a
 * library that is only asked about (what dlopen would give, say): then `root` does not change.  A file that
 * is there already costs a look-up.  A library that is missing, or cannot be read, is no error but a
 * need with a problem; a `path` that cannot be read is one.  After an error, memory's included, the graph
 * has the nodes that it had before. */
int exti__closure_add(struct exti_closure_graph *g, const char *path, bool root, size_t *node,
                      struct exti_error *err);

/* As exti__closure_add, not as a root, of the file that the loader gives `from`, a node, for the name
 * `name` (a need's or dlopen's).  *node is EXTI_NO_NODE if it finds none. */
int exti__closure_find(struct exti_closure_graph *g, size_t from, const char *name, size_t *node,
                       struct exti_error *err);

/* Whether the node's path still leads to the file that was read.  What is not: close the graph, start a
 * new one. */
bool exti__closure_is_current(const struct exti_closure_graph *g, size_t node);

void exti__closure_close(struct exti_closure_graph *g); /* zero-filled ok */

/* Writes why the node is shared or isolated, for people: "it needs libmid.so, which is isolated: it uses the
 * API library".  Cut to `cap` bytes with the NUL. */
void exti__closure_reason(const struct exti_closure_graph *g, size_t node, char *out, size_t cap);

/* The same behind the word that tells which of the two it is: "isolated: it uses the API library". */
void exti__closure_describe(const struct exti_closure_graph *g, size_t node, char *out, size_t cap);

#endif
