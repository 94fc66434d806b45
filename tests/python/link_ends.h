/* The ends of tables and contexts, and how others take their place. */
#ifndef TESTS_PYTHON_LINK_ENDS_H
#define TESTS_PYTHON_LINK_ENDS_H

#include "tests/python/link_steps.h"

#include <sched.h>

/* Beside its context, which the side has. */
static void table_open(struct side *s)
{
    struct heap *h = &s->m->heap;
    struct exti_links_opts o = heap_table_opts(h, s->number);

    if (h->toggles)
        heap_toggles(h, &o);
    if (s->m->host == TOGGLES_AND_MARKS)
        o.marking = (struct exti_marking){heap_survives, heap_keep};
    o.natives = s->natives;
    o.base = 1;
    o.light = 0;
    host_must(exti_links_open(&h->tables[s->number].links, &o, NULL));
}

static void table_close(struct side *s)
{
    exti_links_close(links_of(s));
    s->m->heap.tables[s->number].links = NULL;
}

/* Objects that were linked have no native any more, and the table is told of none. */
static void forget_table(struct side *s)
{
    struct machine *m = s->m;
    struct heap *h = &m->heap;

    pthread_mutex_lock(&m->telling);
    while (m->telling_now) {
        pthread_mutex_unlock(&m->telling);
        sched_yield();
        pthread_mutex_lock(&m->telling);
    }
    spread_news(m);
    forget_news(&m->to_tell, m->to_tell.count, s->number);
    forget_news(&m->told, m->told.count, s->number);
    pthread_mutex_unlock(&m->telling);
    for (size_t i = 0; i < h->count; i++) {
        free(h->objects[i]->in[s->number].repeated);
        h->objects[i]->in[s->number] = (struct object_link){0};
    }
    for (size_t i = 0; i < m->things.count; i++)
        if (m->things.all[i]->side == s) {
            m->things.all[i]->links = 0;
            m->things.all[i]->shell = false;
        }
}

static void drop_all_held(struct side *s)
{
    while (s->held.count)
        drop_held(s);
}

/* Natives whose only references are those of the table wait for the end of the context. */
static void end_table(struct side *s)
{
    table_close(s);
    forget_table(s);
    drop_all_held(s);
}

/* Somebody has a reference to each native while the table ends, and so each ends itself. */
static void end_table_and_natives(struct side *s)
{
    struct machine *m = s->m;
    size_t living = 0;

    for (size_t i = 0; i < m->things.count; i++)
        if (m->things.all[i]->side == s && !m->things.all[i]->ended)
            hold(m->things.all[i]);
    end_table(s);
    collect_garbage(s, 2);
    for (size_t i = 0; i < m->things.count; i++)
        living += m->things.all[i]->side == s && !m->things.all[i]->ended;
    expect(m, living == 0, "a native is left without its table");
}

static int print_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    print_message("held: %s: %s\n", finding->file, finding->message);
    return 0;
}

/* Destructors run in it. */
static void context_close(struct side *s)
{
    struct extipy_closed closed = {.size = sizeof closed};

    inside = s;
    host_must(extipy_close(s->c, print_finding, NULL, &closed, NULL));
    inside = NULL;
    expect(s->m, closed.mapped == 0, "a context stays mapped");
    for (size_t i = 0; i < s->m->things.count; i++)
        if (s->m->things.all[i]->side == s)
            s->m->things.all[i]->ended = true; /* with its memory, whatever Python has done */
    part_ruins(s->m);
}

static void side_close(struct side *s)
{
    enter(s);
    take_dead(s);
    take_revived(s);
    part_ruins(s->m);
    if (one_in(s->m, 2))
        end_table(s);
    else
        end_table_and_natives(s);
    drop_weak(s, &s->m->things);
    drop_weak(s, &s->m->ruins);
    side_drop(s);
    leave_for_good(s);
    context_close(s);
    s->m->closed++;
}

/* A context ends, and another one comes. */
static void renew(struct machine *m)
{
    struct side *s = &m->sides[random_below(m, TABLES)];

    check_nothing_ended_early(m);
    pthread_rwlock_wrlock(&s->lives);
    side_close(s);
    side_open(s);
    table_open(s);
    pthread_rwlock_unlock(&s->lives);
    check_what_natives_say(m, check_nothing_ended_early(m));
}

#endif
