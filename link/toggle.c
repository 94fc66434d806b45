/* The border of a host that offers weak references alone. */
#include "link/collection.h"
#include "link/records.h"
#include "link/repeat.h"
#include "link/strength.h"

int exti_link_hand_out(struct exti_links *links, const void *native)
{
    const uint32_t i = exti__link_find_native(&links->table, native);

    if (i == NO_LINK || !links->o.toggling.strengthen)
        return 0;
    exti__repeat_undo(links, i);
    return links->table.links[i].state & LINK_HOST_FIRST ? exti__link_strengthen(links, i) : 0;
}

/* ---- what has died --------------------------------------------------------------------------- */

uint32_t exti_link_number(const struct exti_links *links, const void *native)
{
    return exti__link_find_native(&links->table, native);
}

void exti_link_died(struct exti_links *links, uint32_t number)
{
    struct link *l;

    pthread_mutex_lock(&links->table.moving);
    l = &links->table.links[number];
    if (l->next == NOT_LISTED) {
        l->next = links->died;
        links->died = number;
    }
    pthread_mutex_unlock(&links->table.moving);
}

/* The list of those that have died, which is then nobody's but the caller's. */
static uint32_t take_died(struct exti_links *links)
{
    uint32_t first;

    pthread_mutex_lock(&links->table.moving);
    first = links->died;
    links->died = NO_LINK;
    pthread_mutex_unlock(&links->table.moving);
    return first;
}

static void give_back(struct exti_links *links, uint32_t first)
{
    struct link *all = links->table.links;
    uint32_t last = first;

    while (all[last].next != NO_LINK)
        last = all[last].next;
    pthread_mutex_lock(&links->table.moving);
    all[last].next = links->died;
    links->died = first;
    pthread_mutex_unlock(&links->table.moving);
}

/* Natives without a collector of their own may be in circles that nobody else would find.  False
 * without memory. */
static bool take_circles(struct exti_links *links, uint32_t first)
{
    const bool known = exti__collection_of_died(links, first);

    if (known)
        exti__circles_take(links);
    exti__collection_end(links);
    return known;
}

/* Code at the end of a native may revive it, and with it the shells that it refers to: so the table
 * keeps their objects again before that. */
static void undo_repeated(struct exti_links *links, uint32_t first)
{
    for (uint32_t i = first; i != NO_LINK; i = links->table.links[i].next)
        exti__repeat_undo(links, i);
}

size_t exti_links_settle(struct exti_links *links)
{
    const struct circles *circles = links->circles;
    const size_t dead = links->dead_count;
    const uint32_t first = take_died(links);
    size_t count;

    if (first == NO_LINK)
        return 0;
    undo_repeated(links, first);
    if (links->o.natives.clear && !take_circles(links, first)) {
        give_back(links, first);
        return 0;
    }
    count = exti__links_end(links, first); /* circles have taken those that are not live any more */
    if ((links->dead_count > dead || links->circles != circles) && links->o.some_dead)
        links->o.some_dead(links->o.user);
    return count;
}
