#include "link/links.h"

bool exti__link_is_live(const struct link *l)
{
    return (l->state & (LINK_USED | LINK_MARKER)) == LINK_USED;
}

bool exti__links_have_young(const struct exti_links *links)
{
    return links->o.marking.keep && !links->o.toggling.strengthen;
}

int64_t exti__link_base(const struct exti_links *links, const struct link *l)
{
    if (l->state & LINK_LOOSE)
        return 0;
    return l->state & LINK_IS_LIGHT ? links->o.light : links->o.base;
}

/* A dead native's record is kept to list it, so that no memory is needed in a collection. */
static void add_dead(struct exti_links *links, uint32_t i, void *native)
{
    links->table.links[i] =
        (struct link){.native = native, .state = LINK_DEAD, .next = links->dead};
    links->dead = i;
    links->dead_count++;
    links->o.natives.add(links->o.user, native, 1);
}

void exti__link_end(struct exti_links *links, uint32_t i)
{
    const struct exti_natives *n = &links->o.natives;
    const struct link l = links->table.links[i];
    const int64_t left = n->count(links->o.user, l.native) - exti__link_base(links, &l);

    exti__link_unlist(&links->table, i);
    n->add(links->o.user, l.native, -exti__link_base(links, &l));
    if (left == 0 && !(l.state & (LINK_IS_LIGHT | LINK_LOOSE))) {
        add_dead(links, i, l.native);
        return;
    }
    exti__link_give_back(&links->table, i);
    if (left == 0 && (l.state & LINK_IS_LIGHT))
        n->free_light(links->o.user, l.native);
}
