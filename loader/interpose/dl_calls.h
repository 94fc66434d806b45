/* The dlopen family for copies.  POSIX systems. */
#ifndef LOADER_INTERPOSE_DL_CALLS_H
#define LOADER_INTERPOSE_DL_CALLS_H

/* The function for `symbol`, or NULL if the family does not have it.  dl_iterate_phdr belongs to
 * it. */
void *exti__dl_call(const char *symbol);

#endif
