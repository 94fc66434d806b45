/* Links by which a host that toggles keeps objects. */
#ifndef LINK_STRENGTH_H
#define LINK_STRENGTH_H

#include "link/links.h"

/* The host keeps the object from now on, if it does not do so already.  EXTI_E_HOOK: it cannot. */
int exti__link_strengthen(struct exti_links *links, uint32_t i);

/* It does not.  The link is on no list of strong ones any more. */
void exti__link_weaken(struct exti_links *links, uint32_t i);

#endif
