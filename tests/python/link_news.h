/* How tables get to know which objects have died: any thread tells them, and whoever has the GIL of
 * their context settles it. */
#ifndef TESTS_PYTHON_LINK_NEWS_H
#define TESTS_PYTHON_LINK_NEWS_H

#include "tests/python/link_machine.h"

static void add_news(struct news *n, struct object *o, size_t table)
{
    if (n->count == n->capacity) {
        n->capacity = n->capacity * 2 + 64;
        n->all = realloc(n->all, n->capacity * sizeof *n->all);
        assert_non_null(n->all);
    }
    n->all[n->count].object = o;
    n->all[n->count++].table = table;
}

/* Any thread, without a lock or GIL.  False: there was nothing to tell. */
static bool tell_one(struct machine *m)
{
    struct object *o;
    size_t table;

    pthread_mutex_lock(&m->telling);
    if (!m->to_tell.count) {
        pthread_mutex_unlock(&m->telling);
        return false;
    }
    o = m->to_tell.all[--m->to_tell.count].object;
    table = m->to_tell.all[m->to_tell.count].table;
    m->telling_now++;
    pthread_mutex_unlock(&m->telling);
    exti_link_died(m->heap.tables[table].links, o->in[table].number);
    pthread_mutex_lock(&m->telling);
    m->telling_now--;
    add_news(&m->told, o, table);
    pthread_mutex_unlock(&m->telling);
    return true;
}

/* Its references have been counted.  If others have told, it may have lost its link before. */
static void drop_link(struct thing *t)
{
    t->links--;
    t->waits = t->waits || references(t) == 0 || t->side->m->tells_later;
}

/* The link of what is gone has ended; the last one's end is that of its ruin. */
static void forget_gone(struct object *o, size_t table)
{
    struct thing *t = o->in[table].native;

    t->gone--;
    drop_link(t);
    o->in[table].linked = false;
    if (!heap_is_linked(o))
        heap_leave(o);
}

/* The first ones, or all, if they are of the table. */
static void forget_news(struct news *n, size_t first, size_t table)
{
    size_t kept = 0;

    for (size_t i = 0; i < n->count; i++)
        if (i < first && n->all[i].table == table)
            forget_gone(n->all[i].object, table);
        else
            n->all[kept++] = n->all[i];
    n->count = kept;
}

static void spread_news(struct machine *m)
{
    struct heap *h = &m->heap;

    for (; h->gone_count; h->gone_count--)
        for (size_t k = 0; k < TABLES; k++)
            if (h->gone[h->gone_count - 1]->in[k].linked) {
                ((struct thing *)h->gone[h->gone_count - 1]->in[k].native)->gone++;
                add_news(&m->to_tell, h->gone[h->gone_count - 1], k);
            }
}

/* What has been told of by now has no link any more. */
static void settle(struct side *s)
{
    struct machine *m = s->m;
    size_t told;

    if (!m->heap.toggles)
        return;
    pthread_mutex_lock(&m->telling);
    spread_news(m);
    pthread_mutex_unlock(&m->telling);
    while (!m->tells_later && tell_one(m))
        continue;
    pthread_mutex_lock(&m->telling);
    told = m->told.count;
    pthread_mutex_unlock(&m->telling);
    if (one_in(m, 2))
        exti_links_poll(links_of(s));
    else
        exti_links_settle(links_of(s));
    count_references(m);
    pthread_mutex_lock(&m->telling);
    forget_news(&m->told, told, s->number);
    pthread_mutex_unlock(&m->telling);
}

#endif
