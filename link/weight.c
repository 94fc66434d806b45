/* Memory that the host does not see. */
#include "link/links.h"

void exti_links_weigh(struct exti_links *links, int64_t bytes)
{
    links->weight += bytes;
}

/* Once for each time that so much has come, and from a lower level once natives have ended. */
static void ask(struct exti_links *links)
{
    const int64_t pressure = links->o.pressure;

    if (links->weight + pressure < links->ask_at)
        links->ask_at = links->weight + pressure;
    if (links->weight < links->ask_at)
        return;
    links->ask_at = links->weight + pressure;
    links->o.please_collect(links->o.user);
}

void exti_links_poll(struct exti_links *links)
{
    if (atomic_load_explicit(&links->died, memory_order_relaxed) != NO_LINK)
        exti_links_settle(links);
    if (links->o.pressure && links->o.please_collect)
        ask(links);
}
