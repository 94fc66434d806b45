/* What a file does, or lets happen, that matters when a process has several copies of it. */
#ifndef LOADER_HAZARDS_H
#define LOADER_HAZARDS_H

#include "loader/base/format.h"

/* Looks for all kinds of hazard in a description that is otherwise whole. */
void exti__hazards_find(struct exti_image *im);

/* How much of the static TLS block one copy takes; 0: nothing. */
uint64_t exti__static_tls(const struct exti_image *im);

#endif
