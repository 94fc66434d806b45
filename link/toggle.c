/* The border of a host that offers weak references alone. */
#include "base/mem.h"
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

struct died {
    uint32_t *numbers;
    uint32_t count;
};

/* False without memory: they are not taken then. */
static bool take_died(struct exti_links *links, struct died *out)
{
    const struct link *all;

    *out = (struct died){0};
    pthread_mutex_lock(&links->table.moving);
    all = links->table.links;
    for (uint32_t i = links->died; i != NO_LINK; i = all[i].next)
        out->count++;
    out->numbers = exti__realloc_array(NULL, out->count, sizeof *out->numbers);
    for (uint32_t i = links->died, n = 0; out->numbers && i != NO_LINK; i = all[i].next)
        out->numbers[n++] = i;
    if (out->numbers)
        links->died = NO_LINK;
    pthread_mutex_unlock(&links->table.moving);
    return out->numbers != NULL;
}

static void give_back(struct exti_links *links, const struct died *d)
{
    pthread_mutex_lock(&links->table.moving);
    for (uint32_t k = 0; k < d->count; k++) {
        links->table.links[d->numbers[k]].next = links->died;
        links->died = d->numbers[k];
    }
    pthread_mutex_unlock(&links->table.moving);
}

/* Natives without a collector of their own may be in circles that nobody else would find.  False
 * without memory. */
static bool take_circles(struct exti_links *links, const struct died *d)
{
    const bool known = exti__collection_of_died(links, d->numbers, d->count);

    if (known)
        exti__circles_take(links);
    exti__collection_end(links);
    return known;
}

size_t exti_links_settle(struct exti_links *links)
{
    const struct circles *circles = links->circles;
    const size_t dead = links->dead_count;
    struct died d;

    if (!take_died(links, &d))
        return 0;
    if (links->o.natives.clear && !take_circles(links, &d)) {
        give_back(links, &d);
        d.count = 0;
    }
    for (uint32_t k = 0; k < d.count; k++)
        if (exti__link_is_live(&links->table.links[d.numbers[k]]))
            exti__link_end(links, d.numbers[k]);
    exti__free(d.numbers);
    if ((links->dead_count > dead || links->circles != circles) && links->o.some_dead)
        links->o.some_dead(links->o.user);
    return d.count;
}
