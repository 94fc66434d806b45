/* A machine that makes, links, stores, drops and collects at random, over a host of either kind and
 * natives that count, and a model that knows what can be reached. */
#ifndef TESTS_UNIT_LINK_MACHINE_H
#define TESTS_UNIT_LINK_MACHINE_H

#include "tests/unit/link/heap.h"

#include <inttypes.h>
#include <pthread.h>

#define MOST 400 /* rooted objects, and references of native code */

/* ---- natives --------------------------------------------------------------------------------- */

struct thing {
    struct native n; /* first */
    bool light, weak_cleared, finalised, cleared, ended;
    bool shell;   /* has its object as long as it can be reached */
    bool revives; /* its end is not its end, once */
    unsigned seen;
    size_t at; /* in machine.things */
};

struct machine {
    struct heap heap; /* first */
    struct thing **things;
    size_t thing_count, thing_capacity;
    struct thing *held[MOST]; /* references of native code */
    size_t held_count;
    uint64_t random;
    unsigned round; /* of marks */
    size_t budget;
    bool tells_later;
    int fault; /* one that the machine is to find */
    const char *wrong;
    long ended, cleared, revived; /* how many */
};

/* Faults of a host, for the control. */
enum { NOT_COUNTED = 1, NOT_TRACED, COUNTED_TWICE, NOT_HANDED_OUT };

static uint32_t random_below(struct machine *m, size_t n)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (uint32_t)((m->random >> 11) % n);
}

static void expect(struct machine *m, bool ok, const char *what)
{
    if (!ok && !m->wrong)
        m->wrong = what;
}

static struct thing *thing_new(struct machine *m)
{
    struct thing *t = calloc(1, sizeof *t);

    assert_non_null(t);
    if (m->thing_count == m->thing_capacity) {
        m->thing_capacity = m->thing_capacity * 2 + 64;
        m->things = realloc(m->things, m->thing_capacity * sizeof *m->things);
        assert_non_null(m->things);
    }
    t->at = m->thing_count;
    m->things[m->thing_count++] = t;
    return t;
}

/* What was freed stays as a ruin while a fault is looked for, so that the model finds it. */
static void thing_free(struct machine *m, struct thing *t)
{
    expect(m, !t->ended, "a native has ended twice");
    t->ended = true;
    m->ended++;
    if (m->fault)
        return;
    m->things[t->at] = m->things[--m->thing_count];
    m->things[t->at]->at = t->at;
    free(t);
}

static void hold(struct machine *m, struct thing *t)
{
    t->n.count++;
    m->held[m->held_count++] = t;
}

static bool revive(struct machine *m, struct thing *t)
{
    if (!t->revives || m->held_count == MOST)
        return false;
    t->revives = false;
    m->revived++;
    hold(m, t);
    return true;
}

static void thing_end(struct machine *m, struct thing *t);

static void thing_drop(struct machine *m, struct thing *t)
{
    expect(m, t->n.count > 0, "a count is below 0");
    if (--t->n.count == 0)
        thing_end(m, t);
}

static void drop_fields(struct machine *m, struct thing *t)
{
    for (int i = 0; i < FIELDS; i++) {
        struct native *of = t->n.fields[i];

        t->n.fields[i] = NULL;
        if (of)
            thing_drop(m, (struct thing *)of);
    }
}

static void thing_end(struct machine *m, struct thing *t)
{
    if (revive(m, t))
        return;
    expect(m, !exti_link_to_host(m->heap.links, t), "a native has ended that has a link");
    t->n.count++; /* while its fields go */
    drop_fields(m, t);
    if (--t->n.count == 0)
        thing_free(m, t);
}

static void thing_free_light(void *user, void *native)
{
    thing_free(user, native);
}

static void thing_clear_weak(void *user, void *native)
{
    struct thing *t = native;

    expect(user, !t->ended, "a native is taken apart that has ended");
    t->weak_cleared = true;
}

static void thing_finalise(void *user, void *native)
{
    struct thing *t = native;
    struct machine *m = user;

    if (t->finalised)
        return;
    t->finalised = true;
    expect(m, t->weak_cleared, "a finaliser comes before weak references are cleared");
    for (int i = 0; i < FIELDS; i++)
        if (t->n.fields[i])
            expect(m, !((struct thing *)t->n.fields[i])->cleared,
                   "a finaliser sees what is cleared");
    revive(m, t);
}

static void thing_clear(void *user, void *native)
{
    struct thing *t = native;

    expect(user, t->finalised, "a native is cleared before its finaliser");
    t->cleared = true;
    ((struct machine *)user)->cleared++;
    drop_fields(user, t);
}

static void thing_release(void *user, void *native)
{
    thing_drop(user, native);
}

/* ---- the model ------------------------------------------------------------------------------- */

/* What the host has of the native by now: its weak references to what is gone give nothing. */
static struct object *object_of(const struct machine *m, const struct thing *t)
{
    struct object *o = (struct object *)exti_link_to_host(m->heap.links, t);

    return o && o->gone ? NULL : o;
}

static struct thing *thing_of(const struct machine *m, const struct object *o)
{
    return o->in[0].native ? o->in[0].native
                           : exti_link_from_host(m->heap.links, (exti_host_word)o);
}

struct walk {
    struct machine *m;
    struct object **objects;
    size_t objects_left, object_capacity;
    struct thing **things;
    size_t things_left, thing_capacity;
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
    if (w->things_left == w->thing_capacity) {
        w->thing_capacity = w->thing_capacity * 2 + 64;
        w->things = realloc(w->things, w->thing_capacity * sizeof *w->things);
        assert_non_null(w->things);
    }
    w->things[w->things_left++] = t;
}

static void walk_on(struct walk *w)
{
    while (w->objects_left || w->things_left) {
        if (w->objects_left) {
            struct object *o = w->objects[--w->objects_left];

            for (int i = 0; i < FIELDS; i++)
                reach_object(w, o->fields[i]);
            reach_thing(w, thing_of(w->m, o));
        } else {
            struct thing *t = w->things[--w->things_left];
            struct object *o;

            if (t->ended)
                continue;
            o = object_of(w->m, t);
            for (int i = 0; i < FIELDS; i++)
                reach_thing(w, (struct thing *)t->n.fields[i]);
            /* A shell is its object; a native does not hold its proxy. */
            expect(w->m, o || !t->shell, "a shell has lost its object");
            if (o && !o->in[0].native)
                reach_object(w, o);
        }
    }
}

/* Marks what can be reached, and counts it. */
static struct walk walk_from_roots(struct machine *m)
{
    struct walk w = {.m = m};

    m->round++;
    for (size_t i = 0; i < m->heap.root_count; i++)
        reach_object(&w, m->heap.roots[i]);
    for (size_t i = 0; i < m->held_count; i++)
        reach_thing(&w, m->held[i]);
    walk_on(&w);
    return w;
}

static void walk_end(struct walk *w)
{
    for (size_t i = 0; i < w->m->heap.count; i++)
        w->m->heap.objects[i]->marked = false;
    free(w->objects);
    free(w->things);
}

/* Returns the mark of what can be reached. */
static unsigned check_nothing_ended_early(struct machine *m)
{
    struct walk w = walk_from_roots(m);

    walk_end(&w);
    return m->round;
}

/* Natives of which no link leads to any are their own collector's: it is this. */
static bool collect_natives(struct machine *m)
{
    struct walk w = walk_from_roots(m);
    const long ended = m->ended;
    bool any = false;

    for (size_t i = 0; i < m->heap.count; i++)
        reach_thing(&w, thing_of(m, m->heap.objects[i]));
    walk_on(&w);
    for (size_t i = 0; i < m->thing_count; i++)
        if (m->things[i]->seen != m->round && !m->things[i]->ended) {
            m->things[i]->n.count++;
            any = true;
        }
    for (size_t i = 0, n = m->thing_count; any && i < n; i++)
        if (m->things[i]->seen != m->round && !m->things[i]->ended)
            drop_fields(m, m->things[i]);
    for (size_t i = m->thing_count; any && i-- > 0;)
        if (i < m->thing_count && m->things[i]->seen != m->round && !m->things[i]->ended)
            thing_drop(m, m->things[i]);
    walk_end(&w);
    return m->ended > ended;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Returns whether the table was told of any. */
static bool take_dead(struct machine *m)
{
    const bool told = m->heap.toggles && !m->tells_later && heap_tell(&m->heap) > 0;
    struct thing *t;

    while ((t = exti_links_next_dead(m->heap.links))) {
        expect(m, t->n.count == 1, "a dead native has not a count of 1");
        thing_drop(m, t);
    }
    exti_links_clear_circles(m->heap.links);
    return told;
}

/* The host gives the native to native code, which keeps a reference. */
static void hand_out(struct machine *m, struct thing *t)
{
    if (!t || m->held_count == MOST)
        return;
    if (m->heap.toggles && m->fault != NOT_HANDED_OUT)
        expect(m, exti_link_hand_out(m->heap.links, t) == 0, "a native could not be handed out");
    hold(m, t);
}

/* What could not be reached when its link ended is no shell any more, even if it is revived. */
static void forget_shells(struct machine *m, unsigned round)
{
    for (size_t i = 0; i < m->thing_count; i++)
        if (m->things[i]->seen != round && !object_of(m, m->things[i]))
            m->things[i]->shell = false;
}

static void collect(struct machine *m, enum exti_links_part part)
{
    struct heap *h = &m->heap;
    const unsigned before = check_nothing_ended_early(m);

    if (m->fault != NOT_TRACED) {
        heap_collect(h, part);
    } else {
        h->part = part;
        heap_mark_roots(h);
        exti_links_sweep(h->links, part);
        heap_finish(h);
    }
    forget_shells(m, before);
    check_nothing_ended_early(m);
}

/* Hubs come and go with each look at circles. */
static size_t count_objects(const struct machine *m)
{
    size_t count = m->heap.count;

    for (size_t i = 0; i < m->heap.count; i++)
        count -= m->heap.objects[i]->hub;
    return count;
}

/* Until nothing changes any more. */
static void collect_all(struct machine *m)
{
    size_t objects, things;
    bool changed;

    do {
        objects = count_objects(m);
        things = m->thing_count;
        if (m->heap.toggles)
            exti_links_weaken_circles(m->heap.links);
        collect(m, EXTI_LINKS_ALL);
        changed = take_dead(m);
        changed |= collect_natives(m);
        changed |= objects != count_objects(m) || things != m->thing_count;
    } while (!m->wrong && changed);
}

/* References of natives that are repeated in the host keep proxies, too. */
static void reach_proxies(struct walk *w)
{
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < w->m->heap.count; i++) {
            struct object *o = w->m->heap.objects[i];

            if (o->marked || !o->in[0].native ||
                ((struct thing *)o->in[0].native)->seen != w->m->round)
                continue;
            reach_object(w, o);
            any = true;
        }
        walk_on(w);
    }
}

static void check_nothing_is_left(struct machine *m)
{
    struct walk w = walk_from_roots(m);
    size_t living = 0;

    for (size_t i = 0; i < m->thing_count; i++)
        living += !m->things[i]->ended;
    if (m->heap.toggles)
        reach_proxies(&w);
    /* Circles of more natives than a collection looks at are not found. */
    const bool finds_all = !m->budget && !m->tells_later;

    expect(m, !finds_all || w.object_count >= count_objects(m),
           "an object is left that cannot be reached");
    expect(m, !finds_all || w.thing_count == living, "a native is left that cannot be reached");
    walk_end(&w);
}

static struct object *some_object(struct machine *m)
{
    return m->heap.root_count ? m->heap.roots[random_below(m, m->heap.root_count)] : NULL;
}

static struct thing *some_thing(struct machine *m)
{
    return m->held_count ? m->held[random_below(m, m->held_count)] : NULL;
}

static void root(struct machine *m, struct object *o)
{
    if (o && m->heap.root_count < MOST)
        heap_root(&m->heap, o);
}

static void hold_some(struct machine *m, struct thing *t)
{
    if (t && m->held_count < MOST)
        hold(m, t);
}

static void link_object(struct machine *m)
{
    struct object *o = some_object(m);
    const bool light = random_below(m, 3) == 0;
    struct thing *t;

    if (!o || o->in[0].native || thing_of(m, o))
        return;
    t = thing_new(m);
    t->light = light;
    t->shell = true;
    t->n.count = (light ? LIGHT : BASE) - (m->fault == NOT_COUNTED);
    expect(m, exti_link_host(m->heap.links, (exti_host_word)o, t, light ? EXTI_LINK_LIGHT : 0) == 0,
           "a shell could not be linked");
    heap_linked(&m->heap.tables[0], o, t);
    if (random_below(m, 2))
        hand_out(m, t);
}

static void link_thing(struct machine *m)
{
    struct thing *t = some_thing(m);
    struct object *o;

    if (!t || object_of(m, t) || t->shell || m->heap.root_count == MOST)
        return;
    o = heap_new(&m->heap);
    o->in[0].native = t;
    o->stays = random_below(m, 4) == 0;
    t->n.count += BASE + (m->fault == COUNTED_TWICE);
    expect(m, exti_link_native(m->heap.links, (exti_host_word)o, t) == 0,
           "a native could not be linked");
    heap_linked(&m->heap.tables[0], o, t);
    root(m, o);
}

static void drop_root(struct machine *m)
{
    const uint32_t i = m->heap.root_count ? random_below(m, m->heap.root_count) : 0;

    if (m->heap.root_count)
        m->heap.roots[i] = m->heap.roots[--m->heap.root_count];
}

static void drop_held(struct machine *m)
{
    const uint32_t i = m->held_count ? random_below(m, m->held_count) : 0;
    struct thing *t;

    if (!m->held_count)
        return;
    t = m->held[i];
    m->held[i] = m->held[--m->held_count];
    thing_drop(m, t);
}

static void store_in_thing(struct machine *m)
{
    struct thing *t = some_thing(m), *to = some_thing(m), *old;
    const uint32_t field = random_below(m, FIELDS);

    if (!t || t->light)
        return;
    old = (struct thing *)t->n.fields[field];
    to = random_below(m, 4) ? to : NULL;
    if (to)
        to->n.count++;
    t->n.fields[field] = (struct native *)to;
    if (old)
        thing_drop(m, old);
}

static void store_in_object(struct machine *m)
{
    struct object *o = some_object(m);

    if (o)
        o->fields[random_below(m, FIELDS)] = random_below(m, 4) ? some_object(m) : NULL;
}

/* Both sides of each link lead to each other. */
static void look_up(struct machine *m)
{
    struct object *o = some_object(m);
    struct thing *t = some_thing(m);

    if (o && thing_of(m, o))
        expect(m, exti_link_to_host(m->heap.links, thing_of(m, o)) == (exti_host_word)o,
               "a native does not lead to its object");
    if (o && o->in[0].native)
        expect(m, !exti_link_from_host(m->heap.links, (exti_host_word)o),
               "a proxy leads to a native by the table");
    if (t && object_of(m, t))
        expect(m, thing_of(m, object_of(m, t)) == t, "an object does not lead to its native");
}

static void step(struct machine *m)
{
    const bool grows = m->heap.root_count + m->held_count < MOST;
    struct object *o;
    struct thing *t;

    switch (random_below(m, 40)) {
    case 0:
    case 1:
        root(m, grows ? heap_new(&m->heap) : NULL);
        break;
    case 2:
    case 3:
        t = grows && m->held_count < MOST ? thing_new(m) : NULL;
        if (t)
            t->revives = random_below(m, 50) == 0;
        hold_some(m, t);
        break;
    case 4:
    case 5:
    case 6:
        link_object(m);
        break;
    case 7:
    case 8:
    case 9:
        link_thing(m);
        break;
    case 10:
    case 11:
        o = some_object(m); /* the host calls native code with it */
        hand_out(m, o ? thing_of(m, o) : NULL);
        break;
    case 12:
    case 13:
        t = some_thing(m); /* native code calls the host with it */
        root(m, t ? object_of(m, t) : NULL);
        break;
    case 14:
    case 15:
        o = some_object(m);
        root(m, o ? o->fields[random_below(m, FIELDS)] : NULL);
        break;
    case 16:
    case 17:
        t = some_thing(m);
        hold_some(m, t ? (struct thing *)t->n.fields[random_below(m, FIELDS)] : NULL);
        break;
    case 18:
        if (random_below(m, 5) == 0)
            collect(m, random_below(m, 8) ? EXTI_LINKS_YOUNG : EXTI_LINKS_ALL);
        break;
    case 19:
        take_dead(m);
        break;
    case 20:
        if (random_below(m, 50) == 0) {
            collect_all(m);
            check_nothing_is_left(m);
        }
        break;
    case 21:
        look_up(m);
        if (m->heap.toggles && random_below(m, 20) == 0)
            exti_links_scan(m->heap.links, random_below(m, 50));
        if (m->heap.toggles && random_below(m, 100) == 0)
            exti_links_weaken_circles(m->heap.links);
        break;
    case 22:
    case 23:
    case 24:
    case 25:
    case 26:
        drop_root(m);
        break;
    case 27:
    case 28:
    case 29:
    case 30:
        drop_held(m);
        break;
    case 31:
    case 32:
    case 33:
    case 34:
        store_in_object(m);
        break;
    default:
        store_in_thing(m);
    }
}

#endif
