/* What a process has of things that every context takes. */
#ifndef RUNTIME_ROOM_H
#define RUNTIME_ROOM_H

#include <extisolate.h>

/* Whether so many contexts can be there at once, as far as that can be known before they are
 * started: 0, or EXTI_E_UNSUPPORTED and an error that names what there is too little of, and what
 * makes room.  Contexts that import packages take more.  Linux; elsewhere always 0.  Any thread. */
int pyrt_room_check(int contexts, struct exti_error *err);

/* How many mappings the process is to be allowed, so that each of the contexts may import packages
 * like numpy; 0: it is allowed as many.  Linux; elsewhere always 0.  Any thread. */
long pyrt_room_for_packages(int contexts);

#endif
