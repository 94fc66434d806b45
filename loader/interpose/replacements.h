/* The functions that copies call in place of the system's, by symbol. */
#ifndef LOADER_INTERPOSE_REPLACEMENTS_H
#define LOADER_INTERPOSE_REPLACEMENTS_H

#ifndef _WIN32

/* The function that a copy's reference to `symbol` is bound to, or NULL to leave it as it is. */
void *exti__replacement(const char *symbol);

#endif
#endif
