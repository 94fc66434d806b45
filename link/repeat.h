/* References of natives, repeated in a host that toggles. */
#ifndef LINK_REPEAT_H
#define LINK_REPEAT_H

#include "link/links.h"

/* The native is to be handed out, or has lost its proxy: those of its group are as they were
 * before. */
void exti__repeat_undo(struct exti_links *links, uint32_t i);

/* Natives have lost their proxies: all are as they were before. */
void exti__repeat_undo_all(struct exti_links *links);
void exti__repeat_free(struct exti_links *links);

#endif
