/* Where dyld finds a library. */
#ifndef LOADER_RESOLVE_SEARCH_MACHO_H
#define LOADER_RESOLVE_SEARCH_MACHO_H

#include "loader/resolve/search.h"

const struct exti_search_ops *exti__search_macho(void);

#endif
