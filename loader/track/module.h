/* Contexts and their loaded modules, as the files of loader/ share them. */
#ifndef LOADER_TRACK_MODULE_H
#define LOADER_TRACK_MODULE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "loader/process/linkmap.h"
#include "loader/resolve/quirks.h"
#include "loader/store/store.h"
#include "loader/store/store_dependencies.h"

struct exti_module {
    struct exti_ctx *ctx;
    void *handle;
    const char *original, *copy; /* the store's strings */
    struct exti_loaded lib;
    struct exti_layout layout;
    bool enrolled; /* in the registry */
    bool stays;    /* until the context is closed: a copy has opened it with RTLD_NODELETE */
    unsigned refs;
    struct exti_module *
        *needed; /* owned; each with a reference of ours.  Those of a circle last until
                                  * the context is closed */
    size_t needed_count;
    struct exti_redirect *redirects; /* owned; this module's alone, the symbols the quirks' */
    size_t redirect_count;
    struct exti_module *older; /* in exti_ctx.modules, or among those that end together */
};

struct exti_ctx {
    struct exti_store store;
    struct exti_hooks hooks;
    void *user;
    struct exti_redirect *redirects; /* owned */
    size_t redirect_count;
    struct exti_quirks *quirks; /* owned */
    uint32_t flags;
    bool closing; /* in exti_ctx_close */

    pthread_mutex_t api_lock; /* held while the API library is being opened */
    struct exti_module *api;  /* NULL until opened; also the oldest of modules */

    pthread_mutex_t lock;        /* guards all below; never held while the system's loader runs, as
                                  * initialisers call back while that holds its own lock */
    struct exti_module *modules; /* newest first */
    void *proven; /* names of shared libraries whose references were found sound: tsearch(3) */
};

void exti__ctx_log(const struct exti_ctx *ctx, enum exti_log_level level, const char *fmt, ...)
    EXTI_PRINTF(3, 4);

/* ---- ctx.c ---- */

/* How many contexts this process has open to load into. */
size_t exti__ctx_count(void);

/* ---- module.c ---- */

/* Ends modules, users before what they need, that are no longer on their context's list.  What they need
 * keeps its references. */
int exti__modules_dispose(struct exti_module *list, bool keep_mapped, struct exti_error *err);

/* The same of modules that are not in the registry either, and that no hook is to hear of. */
int exti__modules_unload(struct exti_module *list, bool keep_mapped, struct exti_error *err);

/* Gives back one reference.  Without any left, the module and those that only it needed move from the
 * context's list to where `end`, the end of a list that is to be disposed of, points: together, as the
 * finalisers of any may call the others.  Returns the new end. */
struct exti_module **exti__module_release(struct exti_module *m, struct exti_module **end);

int exti__hook_failed(struct exti_error *err, const char *hook, const char *original);

/* ---- open.c ---- */

/* The place of one copy in an opening. */
struct exti_place {
    struct exti_module *m; /* with a reference of the opening's */
    bool fresh;            /* it is new to the context */
    bool visited;          /* by the walk that makes the order, */
    size_t next;           /* which has this need to look at next */
};

/* A copy and those that it drags in. */
struct exti_opening {
    struct exti_dependency_set set;
    struct exti_place *places; /* of the set's copies */
    size_t *order;             /* indices of these, each after what it needs; `ordered` of them */
    size_t ordered;
};

/* Another reference to a module of the context that is loaded already, or NULL. */
struct exti_module *exti__module_find(struct exti_ctx *ctx, const char *source);

/* Opens the copy of `source`, which `im` describes, and makes it and what it drags in modules of the
 * context.  Its own is that of the first place, until exti__opening_end; the hooks have yet to hear of
 * the new ones. */
int exti__open_with_dependencies(struct exti_ctx *ctx, const char *source,
                                 const struct exti_image *im, struct exti_opening *o,
                                 struct exti_error *err);
void exti__opening_end(struct exti_opening *o);

/* ---- registry.c: which module of which context an address lies in ---- */

/* Before any copy is loaded: a child's fork handlers run in the order in which they were registered, and
 * those of a copy's initialiser may ask for addresses. */
int exti__address_map_survive_forks(struct exti_error *err);

int exti__address_map_add(struct exti_module *m, struct exti_error *err);
/* The module is a ghost from then on: exti__lingering_sweep is to be called once it is closed. */
void exti__address_map_remove(struct exti_module *m);

/* From here on the calling thread alone finds `list`, which has been removed: for as long as the system's
 * loader is closing it.  Returns what to put back afterwards, as closing one may close another. */
const struct exti_module *exti__address_map_unloading(const struct exti_module *list);

/* The module at `address`, if there is one: its ctx, handle, original, lib and layout.  By value, as a
 * thread that has loaded a file at the same time as another may be about to free its module.  What it
 * points at stays valid as long as the code at that address is running. */
bool exti__address_map_find(uintptr_t address, struct exti_module *out);

/* The context's module that is a copy of `source`, likewise. */
bool exti__address_map_find_copy(const struct exti_ctx *ctx, const char *source,
                                 struct exti_module *out);

/* The original of the copy that some context has loaded from that path, if there is one, a closed context
 * too as long as the copy is mapped.  What `out` holds matters only then. */
bool exti__address_map_original(const char *copy, char *out, size_t size);

/* Whether a module of another context has a copy of the same file name. */
bool exti__address_map_has_namesake(const struct exti_module *m);

/* ---- quirks_apply.c ---- */

/* Finds out what quirks redirect in the module alone. */
int exti__module_quirk_redirects(struct exti_module *m, struct exti_error *err);

/* ---- redirect.c ---- */

/* Re-points the module's references to the loader's entry points, and those that the context's
 * options name. */
int exti__patch_references(struct exti_module *m, struct exti_error *err);

/* A place in a module that holds an address, and the one it is to hold. */
struct exti_slot {
    uintptr_t *at, value;
};

/* Writes them, into what is read-only by now too.  ctx->lock is held: of two threads that have opened
 * one file at once, one would make its table read-only while the other still writes. */
int exti__write_slots(const struct exti_module *m, const struct exti_slot *slots, size_t count,
                      struct exti_error *err);

/* ---- run_open.c ---- */

/* dlopen for a module: a handle, or NULL and either the library's error or dlerror's. */
void *exti__copy_dlopen(const struct exti_module *caller, const char *file, int mode,
                        struct exti_error *err);

/* ---- prove.c ---- */

/* Proves the references of one module that has just been registered, as all copies that it needs have,
 * and of the shared libraries it drags in; EXTI_E_INTERPOSED for the first that leaves the context.
 * References to originals, which the program may have globally, are re-pointed to the context's copies
 * of those if they are loaded.  `api` is the API library's copy: while that is opened it is not yet the
 * context's. */
int exti__prove_module(struct exti_module *m, const struct exti_loaded *api,
                       struct exti_error *err);

#endif
