/* Which libraries a file needs, where they are, and which of them the context copies.  The mutex
 * is held unless said otherwise. */
#ifndef LOADER_STORE_STORE_GRAPH_H
#define LOADER_STORE_STORE_GRAPH_H

#include "base/format.h"
#include "loader/store/store.h"

/* The file's node in the store's graph.  A graph whose files have changed on disk is begun
 * anew.  `first` is the file that needs `source`, or `source` itself: its search path has a
 * say in where libraries are found, so it goes into the graph before.  `root`: `source` was
 * asked for, not only needed. */
int exti__store_node(struct exti_store *s, const char *first, const char *source, bool root,
                     size_t *node, struct exti_error *err);

void exti__store_drop_graph(struct exti_store *s);

/* The file that needs `source`, directly or through others: the first one in the manifest;
 * `source` itself if nothing does. */
const char *exti__store_first_user(const struct exti_store *s, const char *source);

/* Whether the loader finds a library for the need `name` of the entry's file now, or might: it
 * could not be looked for.  `first` as exti__store_node. */
bool exti__store_finds_need(struct exti_store *s, const char *first, const struct exti_entry *e,
                            const char *name);

/* What look-ups for files of a format depend on that may differ between processes; exti__free
 * it. */
int exti__store_search_key(enum exti_file_format format, char **out, struct exti_error *err);

/* Whether copies that need the library `path` get a copy of it; if not, `why` tells the reason. */
int exti__store_classify(struct exti_store *s, const char *path, bool *isolated, char *why,
                         size_t cap, struct exti_error *err);

/* Whether a running copy that opens the file `path` gets a copy of it.  Takes the mutex. */
int exti__store_is_isolated(struct exti_store *s, const char *path, bool *isolated,
                            struct exti_error *err);

/* The path, for exti__free, of the file that the system's loader gives the original `source` for
 * the name `name`; *path is NULL if there is none.  Takes the mutex. */
int exti__store_find_library(struct exti_store *s, const char *source, const char *name,
                             char **path, struct exti_error *err);

#endif
