/* Objects of an interpreter that others have: handles of them, which any thread may release, and
 * the table of links that says which object has a handle, and which handle a proxy.  Knows no
 * Python. */
#ifndef BINDINGS_PYTHON_EXT_OBJECT_H
#define BINDINGS_PYTHON_EXT_OBJECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <extisolate/link.h>

/* Circles are first looked for when so many objects have handles. */
#define PKG_COLLECT_FROM 10000

/* What is of all interpreters of the process. */
struct pkg_heaps {
    pthread_mutex_t lock;       /* of the list; is taken before that of a heap */
    pthread_mutex_t collecting; /* one collection at a time; taken without a GIL */
    struct pkg_heap *first;     /* in the order of their interpreters' numbers */
    atomic_size_t count;        /* objects that have a handle */
    atomic_size_t most;         /* how many there may be until circles are looked for */
};

/* What one interpreter has.  Lives as long as the interpreter or a handle. */
struct pkg_heap {
    struct pkg_heaps *heaps;
    struct pkg_heap *next;
    uint64_t id; /* the interpreter's */
    atomic_size_t refs;
    /* By the interpreter's copy of the module: it takes the GIL on a thread that has none there,
     * and lets go of it. */
    int (*enter)(void);
    void (*leave)(int state);
    void (*ring)(struct pkg_heap *heap); /* has it call pkg_heap_settle soon; never waits */
    /* Its handles' words are linked to its objects; and loosely those of others' handles to its
     * proxies, and its own to what stands for its objects at home.  With the GIL. */
    struct exti_links *links;
    pthread_mutex_t lock; /* of what follows */
    struct pkg_object *alive, *released;
    atomic_bool due;  /* there is something to settle */
    atomic_bool rung; /* and it was asked to */
    bool ended;
};

/* An object of the heap. */
struct pkg_object {
    struct pkg_heap *heap;
    atomic_size_t refs;
    atomic_size_t proxies; /* of `refs`, those of proxies and of what stands for it at home */
    void *native;          /* with the heap's GIL; NULL: it has ended */
    uint32_t number;       /* of its link */
    uint32_t kind;         /* the number of its type */
    bool copies;           /* pickle may copy it */
    bool marked;           /* by a collection */
    struct pkg_object *next, *prev;
};

/* ---- handles --------------------------------------------------------------------------------- */

/* Any thread; NULL ok. */
struct pkg_object *pkg_object_keep(struct pkg_object *object);
void pkg_object_release(struct pkg_object *object);

/* The handle of an object of the heap, with a reference; NULL: it has none. */
struct pkg_object *pkg_object_find(struct pkg_heap *heap, const void *native);
/* Makes one for an object without.  NULL: no memory, or the interpreter is ending. */
struct pkg_object *pkg_object_new(struct pkg_heap *heap, void *native);

/* ---- heaps ----------------------------------------------------------------------------------- */

/* Lists a heap; its members up to `links` are set. */
void pkg_heap_begin(struct pkg_heap *heap, struct pkg_heaps *heaps);
/* Ends the links of what was released.  Dead objects wait then (exti_links_next_dead).  With the
 * GIL, as what follows. */
void pkg_heap_settle(struct pkg_heap *heap);
/* Has the interpreter settle soon; with the heap's lock. */
void pkg_heap_ring(struct pkg_heap *heap);
/* For who has the heap's lock. */
void pkg_heap_settle_locked(struct pkg_heap *heap);
void pkg_object_end(struct pkg_object *object); /* its link has ended otherwise */
/* The interpreter ends: no object has a handle any more, and all that handles kept waits. */
void pkg_heap_end(struct pkg_heap *heap);
/* Afterwards: nothing of the interpreter refers to the heap any more. */
void pkg_heap_close(struct pkg_heap *heap);
/* The same for an interpreter that has ended by itself, and left all where it was. */
void pkg_heap_abandon(struct pkg_heaps *heaps, uint64_t id);

#endif
