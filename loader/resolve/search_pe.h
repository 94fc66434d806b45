/* Where Windows finds a library. */
#ifndef LOADER_RESOLVE_SEARCH_PE_H
#define LOADER_RESOLVE_SEARCH_PE_H

#include "loader/resolve/search.h"

const struct exti_search_ops *exti__search_pe(void);

#endif
