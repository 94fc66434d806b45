/* Runs another program in the place of a copy's.  ELF systems. */
#ifndef LOADER_INTERPOSE_EXEC_CHILD_H
#define LOADER_INTERPOSE_EXEC_CHILD_H

#include <stdint.h>

/* Calls `run`, which executes the program or returns -1 with errno set: in this process or, if the
 * context of the caller can end alone, in a child, with whose end the context ends.  Returns -1
 * with errno set.  A vfork child may call it. */
int exti__exec_for(uintptr_t call, int (*run)(const void *what), const void *what);

#endif
