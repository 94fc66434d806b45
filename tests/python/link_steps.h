/* What the machine does: one step after the other, each with the GIL of the context that it is in,
 * and of one at a time. */
#ifndef TESTS_PYTHON_LINK_STEPS_H
#define TESTS_PYTHON_LINK_STEPS_H

#include "tests/python/link_news.h"

/* ---- the host ------------------------------------------------------------------------------- */

static struct object *some_object(struct machine *m)
{
    return m->heap.root_count ? m->heap.roots[random_below(m, m->heap.root_count)] : NULL;
}

static void root(struct machine *m, struct object *o)
{
    if (o && m->heap.root_count < MOST)
        heap_root(&m->heap, o);
}

static void root_new(struct machine *m)
{
    if (m->heap.root_count < MOST)
        heap_root(&m->heap, heap_new(&m->heap));
}

static void root_field(struct machine *m)
{
    const struct object *o = some_object(m);

    root(m, o ? o->fields[random_below(m, FIELDS)] : NULL);
}

static void drop_root(struct machine *m)
{
    const uint32_t i = m->heap.root_count ? random_below(m, m->heap.root_count) : 0;

    if (m->heap.root_count)
        m->heap.roots[i] = m->heap.roots[--m->heap.root_count];
}

static void drop_roots(struct machine *m)
{
    for (uint32_t n = random_below(m, MOST); n > 0; n--)
        drop_root(m);
}

static void store_in_object(struct machine *m)
{
    struct object *o = some_object(m);

    if (o)
        o->fields[random_below(m, FIELDS)] = one_in(m, 4) ? NULL : some_object(m);
}

/* The sweep has ended them, and nobody tells of these. */
static void drop_links_of_dead(struct machine *m)
{
    count_references(m);
    for (size_t i = 0; i < m->heap.count; i++) {
        struct object *o = m->heap.objects[i];

        for (int k = 0; k < TABLES; k++) {
            if (!o->in[k].native || o->to || !is_collected(&m->heap, o))
                continue;
            drop_link(o->in[k].native);
            o->in[k].linked = false;
        }
    }
}

/* All of the machine is stopped meanwhile, yet each table has its GIL. */
static void trace_and_sweep(struct machine *m)
{
    const enum exti_links_part part = m->heap.part;
    size_t kept;

    do {
        kept = 0;
        for (int k = 0; k < TABLES; k++) {
            enter(&m->sides[k]);
            kept += exti_links_trace(links_of(&m->sides[k]), part);
            leave(&m->sides[k]);
        }
    } while (kept);
    for (int k = 0; k < TABLES; k++) {
        enter(&m->sides[k]);
        exti_links_sweep(links_of(&m->sides[k]), part);
        leave(&m->sides[k]);
    }
    drop_links_of_dead(m);
}

/* What could not be reached when its object died is no shell any more, even if it is revived. */
static void forget_shells(struct machine *m, unsigned round)
{
    find_objects(m);
    for (size_t i = 0; i < m->things.count; i++)
        if (m->things.all[i]->seen != round && !m->things.all[i]->at)
            m->things.all[i]->shell = false;
}

static void settle_all(struct machine *m)
{
    for (int k = 0; k < TABLES; k++) {
        enter(&m->sides[k]);
        settle(&m->sides[k]);
        leave(&m->sides[k]);
    }
}

static void collect(struct machine *m, enum exti_links_part part)
{
    const bool marks = m->host == MARKS || (m->host == TOGGLES_AND_MARKS && one_in(m, 2));
    const unsigned before = check_nothing_ended_early(m);
    const long ended = m->ended;

    if (m->wrong)
        return;
    if (marks)
        settle_all(m);
    m->heap.part = m->heap.toggles ? EXTI_LINKS_ALL : part;
    heap_mark_roots(&m->heap);
    if (marks)
        trace_and_sweep(m);
    heap_finish(&m->heap);
    expect(m, m->ended == ended, "a native has ended in a collection");
    forget_shells(m, before);
    check_what_natives_say(m, check_nothing_ended_early(m));
}

static void collect_some(struct machine *m)
{
    collect(m, one_in(m, 8) ? EXTI_LINKS_ALL : EXTI_LINKS_YOUNG);
}

/* ---- a context ------------------------------------------------------------------------------ */

static struct thing *some_thing(struct side *s)
{
    return s->held.count ? s->held.all[random_below(s->m, s->held.count)] : NULL;
}

/* What the host has of the native: its weak references to what is gone give nothing. */
static struct object *object_of(const struct thing *t)
{
    struct object *o = (struct object *)exti_link_to_host(links_of(t->side), t->object);

    return o && o->gone ? NULL : o;
}

static void hold_some(struct thing *t)
{
    if (t && t->side->held.count < MOST)
        hold(t);
}

/* The host gives the native to native code, which keeps a reference. */
static void hand_out(struct thing *t)
{
    struct machine *m;

    if (!t || t->side->held.count >= MOST)
        return;
    m = t->side->m;
    if (m->fault != NOT_HANDED_OUT)
        expect(m, exti_link_hand_out(links_of(t->side), t->object) == 0,
               "a native could not be handed out");
    hold(t);
}

static void hold_new(struct side *s)
{
    struct thing *t;

    if (s->held.count >= MOST)
        return;
    t = thing_new(s);
    t->revives = one_in(s->m, 20) ? BY_LIST : one_in(s->m, 20) ? BY_PROXY : NEVER;
    add_held(t);
}

/* The host calls native code with an object. */
static void link_object(struct side *s)
{
    struct object *o = some_object(s->m);
    struct heap_table *table = &s->m->heap.tables[s->number];
    struct thing *t;

    if (!o || o->in[s->number].native)
        return;
    t = thing_new(s);
    t->shell = true;
    t->links = 1;
    o->in[s->number].native = t;
    expect(s->m, exti_link_host(table->links, (exti_host_word)o, t->object, 0) == 0,
           "a shell could not be linked");
    heap_linked(table, o, t->object);
    if (s->m->fault == NOT_COUNTED) {
        exti_link_hand_out(table->links, t->object);
        add_held(t);
    } else if (one_in(s->m, 2)) {
        hand_out(t);
    }
}

/* Native code calls the host with a native that it does not know, or whose proxy is gone. */
static void link_thing(struct side *s)
{
    struct thing *t = some_thing(s);
    exti_host_word word = t ? exti_link_to_host(links_of(s), t->object) : 0;

    if (!t || t->shell || object_of(t) || exti_link_from_host(links_of(s), word) ||
        s->m->heap.root_count >= MOST)
        return;
    link_to_proxy(t);
}

static void hand_out_some(struct side *s)
{
    const struct object *o = some_object(s->m);

    hand_out(o ? o->in[s->number].native : NULL);
}

static void root_thing(struct side *s)
{
    const struct thing *t = some_thing(s);

    root(s->m, t ? object_of(t) : NULL);
}

static void hold_field(struct side *s)
{
    const struct thing *t = some_thing(s);

    hold_some(t ? t->fields[random_below(s->m, FIELDS)] : NULL);
}

static void drop_held(struct side *s)
{
    if (s->held.count)
        drop_held_at(s, random_below(s->m, s->held.count));
}

static void drop_many_held(struct side *s)
{
    for (uint32_t n = random_below(s->m, MOST); n > 0; n--)
        drop_held(s);
}

static void store_in_thing(struct side *s)
{
    struct thing *t = some_thing(s), *to = one_in(s->m, 4) ? NULL : some_thing(s);
    const uint32_t field = random_below(s->m, FIELDS);

    if (!t)
        return;
    t->fields[field] = to;
    node_store(s, t, field, to);
}

/* Python code gets what native code holds. */
static void use_thing(struct side *s)
{
    struct machine *m = s->m;
    struct thing *t = some_thing(s), *to = one_in(m, 4) ? NULL : some_thing(s), *first;
    const uint32_t field = random_below(m, FIELDS);
    const enum use how = random_below(m, USES);
    void *result;

    if (!t)
        return;
    first = t->fields[0];
    if (how == STORES || how == STORES_AND_RAISES) {
        t->fields[field] = to;
    } else if (how == SWAPS) {
        t->fields[0] = t->fields[field];
        t->fields[field] = first;
    } else if (how == LITTERS) {
        t->litter += 2;
        if (to)
            to->litter += 2;
    }
    result = node_use(s, how, t, to, field);
    m->raised += !result;
    expect(m, result == (how == STORES_AND_RAISES ? NULL : t->object),
           "Python gives another object than it was given");
    if (result && one_in(m, 4))
        hold_some(t);
    s->py.decref(result);
}

/* ---- weak references and garbage ------------------------------------------------------------- */

static void make_weak(struct side *s)
{
    struct thing *t = some_thing(s);

    if (!t || (t->weak && !t->unsure))
        return;
    s->py.decref(t->weak);
    t->weak = s->py.weak(t->object, NULL);
    t->unsure = false;
    host_must(t->weak ? 0 : EXTI_E_NOMEM);
}

/* By its weak reference native code gets at a native without the host.  One that toggles is to know
 * of it; if the native has no link, the table looks at circles anew, as it may be in one. */
static void hold_weak(struct side *s, struct thing *t, void *object)
{
    struct machine *m = s->m;

    expect(m, !t->ended && object == t->object, "a weak reference gives another object");
    if (s->held.count >= MOST)
        return;
    hold(t);
    if (!m->heap.toggles || m->fault == WEAK_NOT_HANDED_OUT)
        return;
    if (has_link(t))
        expect(m, exti_link_hand_out(links_of(s), object) == 0 || !object_of(t),
               "a native of a weak reference could not be handed out");
    else
        exti_links_weaken_circles(links_of(s));
}

static void read_weak_of(struct side *s, struct thing *t)
{
    void *object = node_weak(s, t);

    if (object)
        hold_weak(s, t, object);
    else
        expect(s->m, !t->held || t->unsure, "a weak reference has lost what native code holds");
    s->py.decref(object);
}

static void read_weak(struct side *s)
{
    struct machine *m = s->m;
    const struct things *from = one_in(m, 4) ? &m->ruins : &m->things;

    for (int tries = 0; tries < 10 && from->count; tries++) {
        struct thing *t = from->all[random_below(m, from->count)];

        if (t->side != s || !t->weak)
            continue;
        read_weak_of(s, t);
        break;
    }
}

static void drop_weak(struct side *s, struct things *of)
{
    for (size_t i = 0; i < of->count; i++)
        if (of->all[i]->side == s) {
            s->py.decref(of->all[i]->weak);
            of->all[i]->weak = NULL;
        }
}

/* Python's collector. */
static void collect_things(struct side *s, uint32_t generation)
{
    struct machine *m = s->m;
    const unsigned round = check_nothing_ended_early(m);

    collect_garbage(s, generation);
    for (size_t i = 0; i < m->things.count; i++) {
        struct thing *t = m->things.all[i];

        if (t->side != s)
            continue;
        t->unsure = t->unsure || t->seen != round;
        if (generation == 2)
            t->litter = 0;
    }
}

static void collect_some_things(struct side *s)
{
    collect_things(s, one_in(s->m, 3) ? 2 : random_below(s->m, 2));
}

static void take_dead(struct side *s)
{
    void *native;

    settle(s);
    while ((native = exti_links_next_dead(links_of(s)))) {
        struct thing *t = thing_in(s, native);

        expect(s->m, t->waits || t->gone, "a native is given as dead that can be reached");
        t->waits = false;
        s->py.decref(native);
    }
}

static void scan(struct side *s)
{
    if (s->m->heap.toggles)
        exti_links_scan(links_of(s), random_below(s->m, 50));
}

static void weaken_circles(struct side *s)
{
    if (s->m->heap.toggles)
        exti_links_weaken_circles(links_of(s));
}

/* ---- the whole ------------------------------------------------------------------------------- */

static size_t strong_links(const struct side *s)
{
    struct exti_links_info info = {.size = sizeof info};

    exti_links_info(links_of(s), &info);
    return info.strong;
}

/* Until nothing changes any more. */
static void collect_all(struct machine *m)
{
    size_t before = 0, now = SIZE_MAX;

    while (!m->wrong && now != before) {
        before = now;
        for (int k = 0; k < TABLES; k++) {
            enter(&m->sides[k]);
            weaken_circles(&m->sides[k]);
            leave(&m->sides[k]);
        }
        collect(m, EXTI_LINKS_ALL);
        now = 0;
        for (int k = 0; k < TABLES && !m->wrong; k++) {
            enter(&m->sides[k]);
            take_dead(&m->sides[k]);
            collect_things(&m->sides[k], 2);
            now += strong_links(&m->sides[k]);
            leave(&m->sides[k]);
        }
        part_ruins(m);
        now += count_objects(m) + m->things.count;
    }
}

static void collect_and_check(struct machine *m)
{
    if (m->tells_later)
        return;
    collect_all(m);
    if (!m->wrong)
        check_nothing_is_left(m);
}

#endif
