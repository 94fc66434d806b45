#include "link/links.h"
#include "link/records.h"

/* The native has a count of 1 from now on, for who takes it.  Its record is kept to list it, so
 * that no memory is needed in a collection. */
static void let_wait(struct exti_links *links, uint32_t i, int64_t base)
{
    struct link *l = &links->table.links[i];

    if (base != 1)
        links->o.natives.add(links->o.user, l->native, 1 - base);
    l->state = LINK_DEAD;
    l->next = links->dead;
    links->dead = i;
    links->dead_count++;
}

/* `last`: nobody else refers to the native. */
static void let_go(struct exti_links *links, uint32_t i, int64_t base, bool last)
{
    const struct exti_natives *n = &links->o.natives;
    const bool is_light = links->table.links[i].state & LINK_IS_LIGHT;
    void *native = links->table.links[i].native;

    if (base)
        n->add(links->o.user, native, -base);
    exti__link_give_back(&links->table, i);
    if (last && is_light)
        n->free_light(links->o.user, native);
}

static inline void end_link(struct exti_links *links, uint32_t i)
{
    const struct link *l = &links->table.links[i];
    const int64_t count = links->o.natives.count(links->o.user, l->native);
    const int64_t base = exti__link_base(links, l);

    exti__link_unlist(&links->table, i);
    if (count == base && !(l->state & (LINK_IS_LIGHT | LINK_LOOSE)))
        let_wait(links, i, base);
    else
        let_go(links, i, base, count == base);
}

size_t exti__links_end(struct exti_links *links, uint32_t first)
{
    size_t count = 0;

    for (uint32_t i = first, next; i != NO_LINK; i = next, count++) {
        next = links->table.links[i].next;
        if (exti__link_is_live(&links->table.links[i]))
            end_link(links, i);
        else
            exti__link_give_back(&links->table, i);
    }
    return count;
}
