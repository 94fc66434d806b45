/* A context as loading sees it, and what any room from here upwards asks of one. */
#ifndef LOADER_TRACK_CONTEXT_H
#define LOADER_TRACK_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "loader/resolve/quirks.h"
#include "loader/store/store.h"

struct exti_module;
struct exti_signals;
struct exti_surroundings;

struct exti_ctx {
    struct exti_store store;
    struct exti_hooks hooks;
    void *user;
    struct exti_redirect *redirects; /* owned */
    size_t redirect_count;
    struct exti_quirks *quirks;             /* owned */
    _Atomic uint32_t flags;                 /* EXTI_CTX_*; exti_ctx_keep adds one */
    unsigned number;                        /* of the contexts of this process, from 0 on */
    _Atomic(struct exti_signals *) signals; /* signal_table.c's; NULL: none yet */
    pid_t process;                          /* that has opened it */
    unsigned forks;                         /* that process had behind it */

    /* context_end.c's: */
    _Atomic(pid_t) exiting; /* the thread that runs its exit handlers; 0: none */
    atomic_int ended_by;    /* the status with which it ends, and 1; 0: it does not */
    atomic_bool ended;      /* alone, and nothing of it is to run any more */
    atomic_bool cut_off;    /* without its exit handlers */
    atomic_uint leaving;    /* threads that have begun to end it, and have not gone on instead */
    atomic_bool closed;     /* and kept, for such threads */
    struct exti_ctx *older; /* of those that are kept */

    /* Guarded by calls.c: */
    unsigned calls;   /* in flight */
    unsigned busy;    /* of these, the ones that may hold locks of the context */
    bool torn;        /* in a child: a thread of the parent was changing it */
    unsigned counted; /* how many forks the process had behind it when `calls` was */
    bool closing;     /* in exti_ctx_close */
    pthread_t closer; /* while `closing`: the thread that closes */

    /* What references of copies to the system's `symbol` are bound to instead, or NULL.  The member
     * itself is NULL where nothing is interposed.  Set when the context is opened: load/ binds
     * references to functions of interpose/, which lies above it. */
    void *(*replacement)(struct exti_ctx *ctx, const char *symbol);

    /* Its own of what a process has one of; outlives it if copies stay mapped.  NULL where there is
     * none: surroundings.h. */
    struct exti_surroundings *surroundings;

    /* Held while the API library is being opened; taken with no other lock held. */
    pthread_mutex_t api_lock;
    struct exti_module *api; /* NULL until opened; also the oldest of modules */

    /* Guarded by address_map.c: */
    const char *claimed;         /* the copy of the API library, or NULL */
    struct exti_ctx *next_claim; /* of the process's contexts that have one */

    /* Guards all below, the modules' members that say so, and the protection of copies' read-only
     * parts while slots in them are written.  May be taken with api_lock or the store's lock held;
     * no lock of the library is taken under it.  Never held while the system's loader opens or
     * closes: initialisers call back while that holds its own lock. */
    pthread_mutex_t lock;
    struct exti_module *modules; /* newest first */
    pthread_cond_t changed;      /* `discarding` */
    unsigned openings;           /* how many threads are mapping and proving copies */
    struct exti_module *failed;  /* of openings that failed; closed once no opening is going on */
    bool discarding;             /* these are being closed: no opening begins */
    void *proven; /* names of shared libraries whose references were found sound: tsearch(3) */
};

const char *exti__ctx_dir(const struct exti_ctx *ctx);
const char *exti__ctx_name(const struct exti_ctx *ctx);

/* Passes a line to the context's log hook, if it has one. */
void exti__ctx_log(const struct exti_ctx *ctx, enum exti_log_level level, const char *fmt, ...)
    EXTI_PRINTF(3, 4);

/* The number of open contexts of this process that can load: those opened with EXTI_CTX_COPY_ONLY
 * do not count. */
size_t exti__ctx_count(void);

/* The number of those that have not ended alone.  Async-signal-safe, as the other one. */
size_t exti__ctx_living(void);
void exti__ctx_count_ended(const struct exti_ctx *ctx);

/* Whether the calling process has opened a context itself; a vfork child has not.
 * Async-signal-safe, as the next one. */
bool exti__ctx_process_is_ours(void);
/* Whether the calling process is the one that has opened this context. */
bool exti__ctx_is_ours(const struct exti_ctx *ctx);
/* To be called in a forked child, whose process id may be its parent's, in another namespace. */
void exti__ctx_begin_child(void);

/* Counts and numbers a context that is open from now on; counts one that is open no longer. */
void exti__ctx_count_in(struct exti_ctx *ctx);
void exti__ctx_count_out(const struct exti_ctx *ctx);

#endif
