/* The end of links whose objects a collection of the host does not keep. */
#include "link/collection.h"
#include "link/repeat.h"

static void sweep_young(struct exti_links *links)
{
    struct link_table *t = &links->table;
    uint32_t first, *last = &first;
    exti_host_word object;

    for (uint32_t i = links->young; i != NO_LINK; i = t->links[i].next) {
        object = t->links[i].host;
        if (links->o.marking.survives(links->o.user, &object)) {
            exti__link_moved(t, i, object);
            t->links[i].state &= ~LINK_YOUNG;
        } else {
            *last = i;
            last = &t->links[i].next;
        }
    }
    *last = NO_LINK;
    exti__links_end(links, first);
}

/* Lists the links that end, and returns how many. */
static uint32_t ask_all(struct exti_links *links, uint32_t *first)
{
    const struct link *const end = links->table.links + links->table.end;
    uint32_t ending = 0, *last = first;

    for (struct link *l = links->table.links; l != end; l++) {
        if (!exti__link_is_live(l))
            continue;
        if ((l->state & LINK_STRONG) || links->o.marking.survives(links->o.user, &l->host)) {
            l->state &= ~LINK_YOUNG;
        } else {
            *last = (uint32_t)(l - links->table.links);
            last = &l->next;
            ending++;
        }
    }
    *last = NO_LINK;
    return ending;
}

static void sweep_all(struct exti_links *links)
{
    struct link_table *t = &links->table;
    uint32_t first;

    exti__circles_take(links);
    exti__link_moves_begin(t, ask_all(links, &first));
    exti__links_end(links, first);
    exti__link_moves_end(t);
    exti__collection_end(links);
    exti__repeat_undo_all(links); /* as natives that have lost their proxies may be revived */
}

void exti_links_sweep(struct exti_links *links, enum exti_links_part part)
{
    const struct circles *circles = links->circles;
    const size_t dead = links->dead_count;

    if (!links->o.marking.survives)
        return;
    if (part == EXTI_LINKS_YOUNG)
        sweep_young(links);
    else
        sweep_all(links);
    links->young = NO_LINK;
    links->young_count = 0;
    if ((links->dead_count > dead || links->circles != circles) && links->o.some_dead)
        links->o.some_dead(links->o.user);
}
