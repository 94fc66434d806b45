#include "link/links.h"
#include "link/records.h"

/* A dead native's record is kept to list it, so that no memory is needed in a collection. */
static void add_dead(struct exti_links *links, uint32_t i)
{
    struct link *l = &links->table.links[i];

    l->state = LINK_DEAD;
    l->next = links->dead;
    links->dead = i;
    links->dead_count++;
}

void exti__link_end(struct exti_links *links, uint32_t i)
{
    const struct exti_natives *n = &links->o.natives;
    const struct link *l = &links->table.links[i];
    void *native = l->native;
    const uint32_t state = l->state;
    const int64_t base = exti__link_base(links, l);
    const bool last = n->count(links->o.user, native) == base,
               waits = last && !(state & (LINK_IS_LIGHT | LINK_LOOSE));

    exti__link_unlist(&links->table, i);
    if (base != waits) /* one that waits has a count of 1 */
        n->add(links->o.user, native, waits - base);
    if (waits) {
        add_dead(links, i);
        return;
    }
    exti__link_give_back(&links->table, i);
    if (last && (state & LINK_IS_LIGHT))
        n->free_light(links->o.user, native);
}
