/* The time zone of one context: what tzset does by the context's TZ.  A zone that was read stays as
 * long as the context, as programs keep pointers to its names.  Any thread. */
#ifndef LOADER_TRACK_CONTEXT_ZONE_H
#define LOADER_TRACK_CONTEXT_ZONE_H

#include <time.h>

#include "loader/track/environment.h"
#include "loader/track/zone.h"

struct exti_known_zone;

struct exti_times {
    /* What copies see as tzname, timezone and daylight. */
    char *names[2];
    long west;
    int has_dst;

    struct tm shown; /* by localtime */
    char text[64];   /* by ctime */

    _Atomic(struct exti_known_zone *) current; /* NULL: none yet */
    struct exti_known_zone *known;             /* owned; guarded by the lock of all */
};

/* Installs the fork handlers; 0 or an errno value. */
int exti__times_survive_forks(void);

int exti__times_new(struct exti_times **out, struct exti_error *err);
void exti__times_free(struct exti_times *t); /* NULL ok */

/* The context's zone: with `afresh`, by what TZ is now, as for localtime; else by what it was when
 * last asked so, as for localtime_r. */
const struct exti_zone *exti__times_zone(struct exti_times *t, struct exti_environment *e,
                                         bool afresh);

#endif
