/* One opening: a copy, and its dependencies' copies, become modules of a context together. */
#ifndef LOADER_LOAD_OPENING_H
#define LOADER_LOAD_OPENING_H

#include "base/format.h"
#include "loader/store/store_dependencies.h"
#include "loader/track/module.h"

/* The place of one copy in an opening. */
struct exti_place {
    struct exti_module *m; /* with a reference of the opening's; NULL: not open */
    bool fresh;            /* new to the context */

    /* For the walk that puts copies in order: */
    bool visited;
    size_t next; /* the next of its needs to look at */
};

struct exti_opening {
    struct exti_dependency_set set;
    struct exti_place *places; /* owned; of the set's copies */
    size_t *order;             /* owned; indices of places, in the order of constructors */
    size_t ordered;            /* how many are in `order` */
};

/* Another reference to the context's module of `source` if it is loaded, or NULL. */
struct exti_module *exti__module_find(struct exti_ctx *ctx, const char *source);

/* Opens the copy of `source` and its dependencies', and puts them on the context's list.  Their
 * constructors have not run.  Tells the before_load hook, but not after_load.  The copy's own
 * module is that of the first place.  On success `o`, which must stay where it is, is for
 * exti__opening_finish. */
int exti__open_with_dependencies(struct exti_ctx *ctx, const char *source, struct exti_opening *o,
                                 struct exti_error *err);

/* Runs the constructors of the new modules, tells the after_load hook of them and ends the
 * opening.  *out keeps a reference to the first place's module; when the hook refuses or a
 * constructor has not returned, all modules of the opening are released.  No lock is held:
 * constructors call back. */
int exti__opening_finish(struct exti_ctx *ctx, struct exti_opening *o, struct exti_module **out,
                         struct exti_error *err);

/* Frees what the opening owns, but gives back no reference. */
void exti__opening_free(struct exti_opening *o);

#endif
