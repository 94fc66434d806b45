/* The closure: all the files that the files of a context need, directly or not, and which of them
 * the context gets copies of.  It grows file by file while the context is open.  loader/store/
 * makes the copies by it; it reads files through loader/image/ and finds them through search.h.
 *
 * Whether a library is isolated depends only on the library and on what it needs.  So the order in
 * which files are added does not matter.
 *
 * One thread at a time. */
#ifndef LOADER_RESOLVE_CLOSURE_H
#define LOADER_RESOLVE_CLOSURE_H

#include "base/os/fs_id.h"
#include "loader/image/image_cache.h"
#include "loader/image/machines.h"
#include "loader/resolve/policy.h"
#include "loader/resolve/search.h"

#define EXTI_NO_NODE SIZE_MAX

/* One library that a file needs. */
struct exti_closure_need {
    char *name;    /* owned; as the file spells it */
    size_t node;   /* EXTI_NO_NODE: missing, unless `system` */
    bool optional; /* the file loads without it */
    bool system;   /* part of the system, which may have no file for it; shared */
    /* A copy of the file in any folder, with the original's search path, finds the node's file by
     * `name`, whatever LD_LIBRARY_PATH is.  Only set for nodes that are not isolated. */
    bool by_name;
    char *problem; /* owned; why it is missing, or NULL */
};

/* One file. */
struct exti_closure_node {
    /* The file. */
    char *path;             /* owned; as the loader first finds it, links not followed */
    char *real;             /* owned; links followed */
    struct exti_file_id id; /* other paths to the same file lead to this node */
    char *soname;           /* owned; NULL if it has none */
    char *rpath, *runpath;  /* owned; NULL if it has none */
    char **paths;           /* owned; Mach-O's search path, entry by entry */
    size_t path_count;
    struct exti_elf_kind kind;        /* ELF only */
    char machines[EXTI_MACHINES_MAX]; /* its machines that the API library has too */
    uint32_t flags;                   /* EXTI_IMAGE_* */
    bool uses_api;                    /* imports something that the API library exports */
    bool captured;                    /* would be shared, but the program exports its symbols */
    const char *quirk;                /* the id of the quirk that decides on it, or NULL */
    bool quirk_shares;                /* the quirk's decision */

    /* Its place in the graph. */
    size_t loader;  /* the node for which it was first found; EXTI_NO_NODE: none */
    char **aliases; /* owned; other names it is needed by, and other paths that lead to it */
    size_t alias_count;
    struct exti_closure_need *needs; /* owned; one per entry of the file, in its order */
    size_t need_count;
    bool root; /* was added as one: gets a copy in any case, whatever `isolated` says */
    bool api;  /* is the API library; a need by any of its names leads here */

    /* The decision, which never changes. */
    bool isolated;    /* files that need it get a copy */
    bool reaches_api; /* uses, needs or is the API library, directly or not; false in mode none */
    bool reaches_captured; /* is isolated for being captured, or for needing such a library */
    struct exti_decision decision; /* the policy's, before its needs count */
    bool
        overridden; /* isolated although the policy shares it for a reason other than the default */
    size_t because; /* the need that makes it isolated; EXTI_NO_NODE: it is by itself */
    /* If a rule shares it: an isolated library whose original it uses nevertheless; else
     * EXTI_NO_NODE. */
    size_t original_of;
};

struct exti_closure_opts {
    const struct exti_search *search; /* ELF's; outlives the graph; NULL: the running process's */
    const char *api_library;          /* absolute path; NULL: none */
    const struct exti_rule *rules;    /* outlive the graph */
    size_t rule_count;
    const struct exti_quirks *quirks; /* outlive the graph; NULL: none */
    struct exti_image_cache *images;  /* outlive the graph; NULL: each file is read anew */
    enum exti_closure mode;
    bool own_locks;  /* as in struct exti_policy */
    bool in_process; /* for copies that this process loads: what its program exports counts */
};

struct exti_closure_state; /* closure.c's own */

struct exti_closure_graph {
    struct exti_closure_node *nodes; /* owned, moved by exti__closure_add; in order of discovery */
    size_t count, cap;
    size_t api;                       /* its node, or EXTI_NO_NODE */
    size_t missing, missing_optional; /* needs without a node */
    struct exti_closure_state *state; /* owned */
};

/* Starts a graph with the API library and what it needs; fails if the API library cannot be read.
 * The first file sets the format of all: EXTI_E_UNSUPPORTED where the system cannot resolve the
 * needs of such files. */
int exti__closure_init(struct exti_closure_graph *g, const struct exti_closure_opts *opts,
                       struct exti_error *err);

/* Adds the file at `path`, absolute, with all that it needs, and decides on the new nodes.  `root`
 * false only asks about a library, such as one that dlopen would load; an existing root stays one.
 * Adding a file again costs a look-up.
 *
 * Fails if `path` cannot be read, and if the system did not let us look for a library that it
 * needs: absent.h.  A library that is missing or that cannot be loaded is no error but a need with
 * a problem.  After an error, EXTI_E_NOMEM included, the graph has the nodes that it had. */
int exti__closure_add(struct exti_closure_graph *g, const char *path, bool root, size_t *node,
                      struct exti_error *err);

/* Adds, not as a root, the file that the loader gives the node `from` for `name`, which may be a
 * need's or an argument of dlopen.  *node is EXTI_NO_NODE if there is none. */
int exti__closure_find(struct exti_closure_graph *g, size_t from, const char *name, size_t *node,
                       struct exti_error *err);

/* Whether the node's path still leads to the file that was read.  If not, close the graph and start
 * anew. */
bool exti__closure_is_current(const struct exti_closure_graph *g, size_t node);

void exti__closure_close(struct exti_closure_graph *g); /* a zero-filled one is fine */

/* Writes why the node is shared or isolated, for people: "it needs libmid.so, which is isolated: it
 * uses the API library".  Cut to `cap` bytes with the NUL. */
void exti__closure_reason(const struct exti_closure_graph *g, size_t node, char *out, size_t cap);

/* The same after the outcome: "isolated: it uses the API library". */
void exti__closure_describe(const struct exti_closure_graph *g, size_t node, char *out, size_t cap);

#endif
