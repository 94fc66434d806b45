/* A machine that makes, links, stores, calls, drops and collects at random, over a host of either
 * kind and the Python objects of two contexts, and a model that knows what can be reached. */
#ifndef TESTS_PYTHON_LINK_MACHINE_H
#define TESTS_PYTHON_LINK_MACHINE_H

#include "tests/python/link_side.h"

#define MOST 200 /* rooted objects, and references of native code in a context */

/* Objects that have died, and the table that is to be told or has been told. */
struct news {
    struct {
        struct object *object;
        size_t table;
    } *all;
    size_t count, capacity;
};

enum host { MARKS, TOGGLES, TOGGLES_AND_MARKS };

struct machine {
    struct heap heap;
    enum host host;
    struct side sides[TABLES];
    struct things things, ruins; /* ruins: those that have ended */
    uint64_t random;
    unsigned round; /* of marks */
    bool tells_later;
    int fault; /* one that the machine is to find */
    const char *wrong;
    long ended, revived, raised, closed; /* how many */
    pthread_mutex_t telling;             /* guards what follows */
    struct news to_tell, told;
    size_t telling_now;
};

/* Faults of a host, for the control. */
enum { NOT_COUNTED = 1, NOT_HANDED_OUT, WEAK_NOT_HANDED_OUT };

static uint32_t random_below(struct machine *m, size_t n)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (uint32_t)((m->random >> 11) % n);
}

static bool one_in(struct machine *m, uint32_t n)
{
    return random_below(m, n) == 0;
}

static void expect(struct machine *m, bool ok, const char *what)
{
    if (!ok && !m->wrong)
        m->wrong = what;
}

static struct exti_links *links_of(const struct side *s)
{
    return s->m->heap.tables[s->number].links;
}

static bool has_link(const struct thing *t)
{
    return links_of(t->side) && exti_link_to_host(links_of(t->side), t->object);
}

/* ---- things -------------------------------------------------------------------------------- */

static struct thing *thing_new(struct side *s)
{
    struct thing *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->side = s;
    t->object = node_new(s, t);
    push(&s->m->things, t);
    return t;
}

static void add_held(struct thing *t)
{
    t->held++;
    push(&t->side->held, t);
}

static void hold(struct thing *t)
{
    t->side->py.incref(t->object);
    add_held(t);
}

static void drop_held_at(struct side *s, size_t i)
{
    struct thing *t = take_out(&s->held, i);

    t->held--;
    s->py.decref(t->object);
}

/* What it refers to, Python drops after this. */
static void thing_ended(struct machine *m, struct thing *t)
{
    expect(m, !t->ended, "a native has ended twice");
    expect(m, !has_link(t), "a native has ended that has a link");
    expect(m, !t->held, "a native has ended to which native code refers");
    t->ended = true;
    m->ended++;
}

static void link_to_proxy(struct thing *t)
{
    struct machine *m = t->side->m;
    struct object *proxy = heap_new(&m->heap);
    struct heap_table *table = &m->heap.tables[t->side->number];

    proxy->stays = one_in(m, 4);
    proxy->in[table->number].native = t;
    if (m->fault != NOT_COUNTED)
        t->side->py.incref(t->object);
    t->links++;
    expect(m, exti_link_native(table->links, (exti_host_word)proxy, t->object) == 0,
           "a native could not be linked");
    heap_linked(table, proxy, t->object);
    heap_root(&m->heap, proxy);
}

/* By __del__.  Whether it puts itself into a list. */
static bool thing_finalised(struct machine *m, struct thing *t)
{
    const enum revives how = t->revives;

    expect(m, !t->finalised, "a finaliser is called twice");
    expect(m, !has_link(t), "a finaliser is called for what has a link");
    expect(m, !t->ended, "a finaliser is called for what has ended");
    t->finalised = t->unsure = true;
    t->waits = false;
    m->revived += how != NEVER;
    if (how == BY_PROXY && links_of(t->side))
        link_to_proxy(t);
    return how == BY_LIST && links_of(t->side);
}

/* Those that have ended are ruins. */
static void part_ruins(struct machine *m)
{
    for (size_t i = m->things.count; i-- > 0;)
        if (m->things.all[i]->ended)
            push(&m->ruins, take_out(&m->things, i));
}

/* ---- the model ----------------------------------------------------------------------------- */

struct walk {
    struct machine *m;
    struct object **objects;
    size_t objects_left, object_capacity;
    struct things things;
    size_t object_count, thing_count; /* reached */
};

static void reach_object(struct walk *w, struct object *o)
{
    if (!o || o->marked)
        return;
    o->marked = true;
    w->object_count++;
    heap_push(&w->objects, &w->objects_left, &w->object_capacity, o);
}

static void reach_thing(struct walk *w, struct thing *t)
{
    if (!t || t->seen == w->m->round)
        return;
    t->seen = w->m->round;
    expect(w->m, !t->ended, "a native has ended that can be reached");
    w->thing_count++;
    if (!t->ended)
        push(&w->things, t);
}

static void walk_on(struct walk *w)
{
    while (w->objects_left || w->things.count) {
        if (w->objects_left) {
            struct object *o = w->objects[--w->objects_left];

            for (int i = 0; i < FIELDS; i++)
                reach_object(w, o->fields[i]);
            for (int k = 0; k < TABLES; k++)
                reach_thing(w, o->in[k].native);
        } else {
            struct thing *t = w->things.all[--w->things.count];

            for (int i = 0; i < FIELDS; i++)
                reach_thing(w, t->fields[i]);
            /* A shell is its object; a native does not hold its proxy. */
            expect(w->m, t->at || !t->shell, "a shell has lost its object");
            if (t->shell)
                reach_object(w, t->at);
        }
    }
}

/* Which object each thing has. */
static void find_objects(struct machine *m)
{
    part_ruins(m);
    for (size_t i = 0; i < m->things.count; i++)
        m->things.all[i]->at = NULL;
    for (size_t i = 0; i < m->heap.count; i++)
        for (int k = 0; k < TABLES; k++) {
            struct thing *t = m->heap.objects[i]->in[k].native;

            if (!t)
                continue;
            expect(m, !t->at, "a native has two objects");
            t->at = m->heap.objects[i];
        }
}

/* Marks what can be reached, and counts it. */
static struct walk walk_from_roots(struct machine *m)
{
    struct walk w = {.m = m};

    find_objects(m);
    m->round++;
    for (size_t i = 0; i < m->heap.root_count; i++)
        reach_object(&w, m->heap.roots[i]);
    for (int k = 0; k < TABLES; k++)
        for (size_t i = 0; i < m->sides[k].held.count; i++)
            reach_thing(&w, m->sides[k].held.all[i]);
    walk_on(&w);
    return w;
}

static void walk_end(struct walk *w)
{
    for (size_t i = 0; i < w->m->heap.count; i++)
        w->m->heap.objects[i]->marked = false;
    free(w->objects);
    free(w->things.all);
}

/* Returns the mark of what can be reached. */
static unsigned check_nothing_ended_early(struct machine *m)
{
    struct walk w = walk_from_roots(m);

    walk_end(&w);
    return m->round;
}

/* References of natives that are repeated in the host keep proxies, too. */
static void reach_proxies(struct walk *w)
{
    const struct heap *h = &w->m->heap;

    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < h->count; i++)
            for (int k = 0; k < TABLES; k++) {
                const struct thing *t = h->objects[i]->in[k].native;

                if (h->objects[i]->marked || !t || t->seen != w->m->round)
                    continue;
                reach_object(w, h->objects[i]);
                any = true;
            }
        walk_on(w);
    }
}

/* Hubs come and go with each look at circles. */
static size_t count_objects(const struct machine *m)
{
    size_t count = m->heap.count;

    for (size_t i = 0; i < m->heap.count; i++)
        count -= m->heap.objects[i]->hub;
    return count;
}

static void check_nothing_is_left(struct machine *m)
{
    struct walk w = walk_from_roots(m);

    if (m->heap.toggles)
        reach_proxies(&w);
    expect(m, w.object_count >= count_objects(m), "an object is left that cannot be reached");
    expect(m, w.thing_count == m->things.count, "a native is left that cannot be reached");
    walk_end(&w);
}

/* ---- what both sides say -------------------------------------------------------------------- */

static size_t references(const struct thing *t)
{
    return t->links + t->held + t->referred;
}

/* A native that waits for its end has a reference of the table's. */
static void check_count(struct machine *m, const struct thing *t)
{
    const size_t count = (size_t)node_count(t->side, t), known = references(t);

    expect(m, count + t->gone >= known && count <= known + t->litter + t->waits,
           "a native's count is not how often it is referred to");
}

static void check_link(struct machine *m, const struct thing *t)
{
    struct exti_links *links = links_of(t->side);

    if (!t->at)
        return;
    expect(m, exti_link_to_host(links, t->object) == (exti_host_word)t->at,
           "a native does not lead to its object");
    expect(m, exti_link_from_host(links, (exti_host_word)t->at) == (t->shell ? t->object : NULL),
           "an object does not lead to its shell");
}

static void check_weak(struct machine *m, const struct thing *t)
{
    void *object = t->weak && !t->unsure ? node_weak(t->side, t) : NULL;

    expect(m, object == (t->weak && !t->unsure ? t->object : NULL),
           "a weak reference does not give what can be reached");
    t->side->py.decref(object);
}

static void count_references(struct machine *m)
{
    part_ruins(m);
    for (size_t i = 0; i < m->things.count; i++)
        m->things.all[i]->referred = 0;
    for (size_t i = 0; i < m->things.count; i++)
        for (int k = 0; k < FIELDS; k++)
            if (m->things.all[i]->fields[k])
                m->things.all[i]->fields[k]->referred++;
}

/* After the walk of which this is the mark. */
static void check_what_natives_say(struct machine *m, unsigned round)
{
    count_references(m);
    for (int k = 0; k < TABLES; k++) {
        enter(&m->sides[k]);
        for (size_t i = 0; i < m->things.count && !m->wrong; i++) {
            struct thing *t = m->things.all[i];

            if (t->side != &m->sides[k])
                continue;
            check_count(m, t);
            check_link(m, t);
            if (t->seen == round)
                check_weak(m, t);
        }
        leave(&m->sides[k]);
    }
}

#endif
