/* A copy that a context has loaded. */
#ifndef LOADER_TRACK_MODULE_H
#define LOADER_TRACK_MODULE_H

#include "loader/process/linkmap.h"
#include "loader/track/context.h"

/* Where the constructors of a module stand: load/initialise.h. */
enum exti_initialisation_state {
    EXTI_INIT_PENDING, /* they wait for their turn */
    EXTI_INIT_RUNNING,
    EXTI_INIT_RAN,   /* but others of the same opening have not */
    EXTI_INIT_DONE,  /* all of the opening have */
    EXTI_INIT_BROKEN /* one that the module needs, or its own, has not returned */
};

struct exti_initialisation {
    enum exti_initialisation_state state;
    bool started;         /* the module's own constructors have been taken to be run */
    unsigned long thread; /* runs them */
    unsigned forks;       /* between the first process and the thread's */
    const void *opening;  /* whose turn it is; only compared */
};

/* A library that copies share, while they hold it. */
struct exti_shared {
    void *handle;     /* NULL ends a list of them */
    const char *file; /* the store's string, or NULL: found by name */
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
    struct exti_shared *shared;      /* owned, or NULL: what its opening shares with the process */
    struct exti_redirect *redirects; /* owned; for this module alone; the quirks own the symbols */
    size_t redirect_count;
    struct exti_initialisation init; /* guarded by load/initialise.c */
    struct exti_module *older; /* next in exti_ctx.modules, or in a list of modules to unload */
};

#endif
