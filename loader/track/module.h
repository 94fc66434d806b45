/* A copy that a context has loaded. */
#ifndef LOADER_TRACK_MODULE_H
#define LOADER_TRACK_MODULE_H

#include "loader/process/linkmap.h"
#include "loader/track/context.h"

/* One opening's turn at the constructors of what it has loaded: load/initialise.h. */
struct exti_initialisation {
    pthread_t thread; /* runs them */
};

struct exti_module {
    struct exti_ctx *ctx;
    void *handle;
    const char *original, *copy; /* the store's strings */
    struct exti_loaded lib;
    struct exti_layout layout;
    bool enrolled; /* in the address map */
    bool stays;    /* until the context closes: a copy has opened it with RTLD_NODELETE */
    unsigned refs; /* guarded by ctx->lock, as are `stays`, `needed` and `older` */

    /* Owned; the opening took a reference to each.  Modules that need each other stay loaded until
     * the context closes. */
    struct exti_module **needed;
    size_t needed_count;
    struct exti_redirect *redirects; /* owned; for this module alone; the quirks own the symbols */
    size_t redirect_count;
    /* Guarded by ctx->lock: whose constructors wait for their turn, or run; NULL: they have run. */
    const struct exti_initialisation *pending;
    bool started;              /* guarded by ctx->lock: the constructors run or have run */
    struct exti_module *older; /* next in exti_ctx.modules, or in a list of modules to unload */
};

#endif
