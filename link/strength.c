/* Links by which a host that toggles keeps objects, and those by which it does not. */
#include "link/strength.h"

int exti__link_strengthen(struct exti_links *links, uint32_t i)
{
    struct link *l = &links->table.links[i];

    if (l->state & (LINK_STRONG | LINK_LOOSE))
        return 0;
    if (links->o.toggling.strengthen(links->o.user, l->host))
        return EXTI_E_HOOK;
    l->state |= LINK_STRONG;
    l->next = links->strong;
    links->strong = i;
    links->strong_count++;
    return 0;
}

void exti__link_weaken(struct exti_links *links, uint32_t i)
{
    struct link *l = &links->table.links[i];

    l->state &= ~LINK_STRONG;
    l->next = NOT_LISTED;
    links->strong_count--;
    links->o.toggling.weaken(links->o.user, l->host);
}

/* Moves the first strong link to the scanned ones, unless it can be weak. */
static bool scan_one(struct exti_links *links)
{
    const uint32_t i = links->strong;
    struct link *l = &links->table.links[i];

    links->strong = l->next;
    if (links->o.natives.count(links->o.user, l->native) == exti__link_base(links, l)) {
        exti__link_weaken(links, i);
        return true;
    }
    l->next = links->scanned;
    links->scanned = i;
    return false;
}

size_t exti_links_scan(struct exti_links *links, size_t most)
{
    size_t left = most && most < links->strong_count ? most : links->strong_count, weak = 0;

    for (; left > 0; left--) {
        if (links->strong == NO_LINK) {
            links->strong = links->scanned;
            links->scanned = NO_LINK;
        }
        weak += scan_one(links);
    }
    return weak;
}
