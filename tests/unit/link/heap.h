/* A host whose collector marks and copies: each object that a collection looks at is somewhere else
 * afterwards, and its former place is overwritten.  Or one that collects by itself and offers weak
 * references and a list of the dead.  And natives that count. */
#ifndef TESTS_UNIT_LINK_HEAP_H
#define TESTS_UNIT_LINK_HEAP_H

#include <stdlib.h>
#include <string.h>

#include <extisolate/link.h>

#include "tests/support/exti_test.h"

#define FIELDS 4
#define TABLES 2 /* that a heap may have */
#define BASE ((int64_t)1 << 40)
#define LIGHT ((int64_t)1 << 50)

/* ---- natives --------------------------------------------------------------------------------- */

struct native {
    int64_t count;
    struct native *fields[FIELDS]; /* counted */
    bool freed;                    /* by free_light */
};

static inline int64_t native_count(void *user, const void *native)
{
    (void)user;
    return ((const struct native *)native)->count;
}

static inline void native_add(void *user, void *native, int64_t n)
{
    (void)user;
    ((struct native *)native)->count += n;
}

static inline void native_free_light(void *user, void *native)
{
    (void)user;
    ((struct native *)native)->freed = true;
}

static inline int native_traverse(void *user, void *native, exti_native_visit visit, void *arg)
{
    const struct native *n = native;
    int rc = 0;

    (void)user;
    for (int i = 0; i < FIELDS && !rc; i++)
        if (n->fields[i])
            rc = visit(n->fields[i], arg);
    return rc;
}

/* ---- the host -------------------------------------------------------------------------------- */

/* What an object is to a table. */
struct object_link {
    void *native; /* a proxy's, which the table does not give */
    /* Of a host that toggles. */
    bool linked, strong;
    uint32_t number;          /* of its link */
    struct object **repeated; /* references of natives */
    size_t repeated_count, repeated_capacity;
};

struct object {
    struct object *to; /* its copy, during a collection */
    bool old;
    bool stays; /* large ones are not moved */
    bool immortal;
    bool marked;
    bool hub;
    bool gone; /* tables have not been told yet */
    struct object *fields[FIELDS];
    struct object_link in[TABLES];
};

/* The host as one of its tables knows it. */
struct heap_table {
    struct exti_links *links;
    size_t number;
};

struct heap {
    union {                       /* first */
        struct exti_links *links; /* of the first table, which mostly is the only one */
        struct heap_table tables[TABLES];
    };
    struct object **objects; /* all that there are */
    size_t count, capacity;
    struct object **roots; /* slots, which are rewritten */
    size_t root_count, root_capacity;
    struct object **work; /* copies whose fields are still those of before */
    size_t work_count, work_capacity;
    enum exti_links_part part;
    int told; /* of dead natives */
    bool toggles;
    struct object **gone;
    size_t gone_count, gone_capacity;
};

static inline void heap_push(struct object ***list, size_t *count, size_t *capacity,
                             struct object *o)
{
    if (*count == *capacity) {
        *capacity = *capacity * 2 + 64;
        *list = realloc(*list, *capacity * sizeof **list);
        assert_non_null(*list);
    }
    (*list)[(*count)++] = o;
}

static inline struct object *heap_new(struct heap *h)
{
    struct object *o = calloc(1, sizeof *o);

    assert_non_null(o);
    heap_push(&h->objects, &h->count, &h->capacity, o);
    return o;
}

/* The number of a slot, which holds the object from now on. */
static inline size_t heap_root(struct heap *h, struct object *o)
{
    heap_push(&h->roots, &h->root_count, &h->root_capacity, o);
    return h->root_count - 1;
}

static inline bool is_collected(const struct heap *h, const struct object *o)
{
    return !o->immortal && (h->part == EXTI_LINKS_ALL || !o->old);
}

static inline struct object *heap_copy(struct heap *h, struct object *o)
{
    if (!o || o->to)
        return o ? o->to : NULL;
    if (!is_collected(h, o) && (h->part == EXTI_LINKS_YOUNG || o->marked))
        return o;
    o->marked = true;
    if (o->stays || o->immortal || h->toggles) {
        o->to = o;
    } else {
        o->to = malloc(sizeof *o);
        assert_non_null(o->to);
        *o->to = *o;
    }
    heap_push(&h->work, &h->work_count, &h->work_capacity, o->to);
    return o->to;
}

static inline void heap_drain(struct heap *h)
{
    while (h->work_count) {
        struct object *o = h->work[--h->work_count];

        for (int i = 0; i < FIELDS; i++)
            o->fields[i] = heap_copy(h, o->fields[i]);
        for (int k = 0; k < TABLES; k++)
            for (size_t i = 0; i < o->in[k].repeated_count; i++)
                heap_copy(h, o->in[k].repeated[i]);
    }
}

static inline struct heap *heap_of(void *user)
{
    struct heap_table *t = user;

    return (struct heap *)(t - t->number);
}

static inline int heap_survives(void *user, exti_host_word *word)
{
    const struct heap *h = heap_of(user);
    struct object *o = (struct object *)*word;

    if (!o->to && is_collected(h, o))
        return 0;
    *word = (exti_host_word)(o->to ? o->to : o);
    return 1;
}

static inline void heap_keep(void *user, exti_host_word word)
{
    struct heap *h = heap_of(user);

    heap_copy(h, (struct object *)word);
    heap_drain(h);
}

static inline void heap_some_dead(void *user)
{
    heap_of(user)->told++;
}

static inline bool heap_is_strong(const struct object *o)
{
    return o->in[0].strong || o->in[1].strong;
}

static inline bool heap_is_linked(const struct object *o)
{
    return o->in[0].linked || o->in[1].linked;
}

static inline void heap_mark_roots(struct heap *h)
{
    for (size_t i = 0; i < h->root_count; i++)
        h->roots[i] = heap_copy(h, h->roots[i]);
    /* What a write barrier would have remembered. */
    for (size_t i = 0; i < h->count; i++)
        if (heap_is_strong(h->objects[i]) || (h->part == EXTI_LINKS_ALL && h->objects[i]->immortal))
            heap_copy(h, h->objects[i]);
        else if (!is_collected(h, h->objects[i]))
            for (int k = 0; k < FIELDS; k++)
                h->objects[i]->fields[k] = heap_copy(h, h->objects[i]->fields[k]);
    heap_drain(h);
}

/* Overwrites what is no object any more. */
static inline void heap_leave(struct object *o)
{
    for (int k = 0; k < TABLES; k++)
        free(o->in[k].repeated);
    memset(o, 0xdd, sizeof *o);
    free(o);
}

static inline void heap_finish(struct heap *h)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->count; i++) {
        struct object *o = h->objects[i], *to = o->to ? o->to : is_collected(h, o) ? NULL : o;

        if (to)
            h->objects[kept++] = to;
        if (!to && heap_is_linked(o)) {
            o->gone = true; /* a weak reference to it gives nothing */
            heap_push(&h->gone, &h->gone_count, &h->gone_capacity, o);
        } else if (to != o) {
            heap_leave(o);
        }
        if (to) {
            to->to = NULL;
            to->marked = false;
            to->old = true;
        }
    }
    h->count = kept;
}

static inline void heap_collect(struct heap *h, enum exti_links_part part)
{
    h->part = h->toggles ? EXTI_LINKS_ALL : part;
    heap_mark_roots(h);
    if (!h->toggles) {
        while (exti_links_trace(h->links, part))
            ;
        exti_links_sweep(h->links, part);
    }
    heap_finish(h);
}

/* ---- the host that toggles ------------------------------------------------------------------- */

static inline struct object_link *heap_link(void *user, exti_host_word word)
{
    return &((struct object *)word)->in[((const struct heap_table *)user)->number];
}

static inline int heap_strengthen(void *user, exti_host_word word)
{
    const struct object *o = (struct object *)word;

    if (!o->gone)
        heap_link(user, word)->strong = true;
    return o->gone;
}

static inline void heap_weaken(void *user, exti_host_word word)
{
    heap_link(user, word)->strong = false;
}

static inline int heap_refer(void *user, exti_host_word from, exti_host_word to)
{
    struct object_link *l = heap_link(user, from);

    if (((struct object *)from)->gone || ((struct object *)to)->gone)
        return 1;
    heap_push(&l->repeated, &l->repeated_count, &l->repeated_capacity, (struct object *)to);
    return 0;
}

static inline exti_host_word heap_hub(void *user, exti_host_word from)
{
    struct object *hub;

    if (((struct object *)from)->gone)
        return 0;
    hub = heap_new(heap_of(user));
    hub->hub = true;
    heap_refer(user, from, (exti_host_word)hub);
    return (exti_host_word)hub;
}

static inline void heap_forget(void *user, exti_host_word from)
{
    heap_link(user, from)->repeated_count = 0;
}

/* After the object was linked to the native. */
static inline void heap_linked(struct heap_table *t, struct object *o, const void *native)
{
    o->in[t->number].linked = heap_of(t)->toggles;
    if (o->in[t->number].linked)
        o->in[t->number].number = exti_link_number(t->links, native);
}

/* Tells the only table of the dead; returns how many. */
static inline size_t heap_tell(struct heap *h)
{
    const size_t count = h->gone_count;

    for (size_t i = 0; i < count; i++)
        exti_link_died(h->links, h->gone[i]->in[0].number);
    assert_int_equal(exti_links_settle(h->links), count);
    while (h->gone_count)
        heap_leave(h->gone[--h->gone_count]);
    return count;
}

static inline struct exti_links_opts heap_opts(struct heap *h)
{
    return (struct exti_links_opts){
        .size = sizeof(struct exti_links_opts),
        .natives = {.count = native_count, .add = native_add, .free_light = native_free_light},
        .marking = {.survives = heap_survives, .keep = heap_keep},
        .some_dead = heap_some_dead,
        .user = h,
        .base = BASE,
        .light = LIGHT,
    };
}

/* Of another table than the first. */
static inline struct exti_links_opts heap_table_opts(struct heap *h, size_t number)
{
    struct exti_links_opts o = heap_opts(h);

    h->tables[number].number = number;
    o.user = &h->tables[number];
    return o;
}

static inline void heap_toggles(struct heap *h, struct exti_links_opts *o)
{
    h->toggles = true;
    o->marking = (struct exti_marking){0};
    o->toggling = (struct exti_toggling){.strengthen = heap_strengthen,
                                         .weaken = heap_weaken,
                                         .refer = heap_refer,
                                         .hub = heap_hub,
                                         .forget = heap_forget};
}

static inline void heap_open(struct heap *h)
{
    const struct exti_links_opts o = heap_opts(h);

    *h = (struct heap){0};
    assert_int_equal(exti_links_open(&h->links, &o, NULL), 0);
}

static inline void heap_close(struct heap *h)
{
    exti_links_close(h->links);
    for (size_t i = 0; i < h->count; i++)
        heap_leave(h->objects[i]);
    while (h->gone_count)
        heap_leave(h->gone[--h->gone_count]);
    free(h->gone);
    free(h->objects);
    free(h->roots);
    free(h->work);
}

#endif
