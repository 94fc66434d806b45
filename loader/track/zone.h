/* Time zones by their files (RFC 8536) and by POSIX TZ strings: what a moment is in local time.
 * Pure but for zone_file.c, which reads files. */
#ifndef LOADER_TRACK_ZONE_H
#define LOADER_TRACK_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define EXTI_ZONE_NAME 64

/* Standard time, or daylight saving time. */
struct exti_zone_type {
    int32_t offset; /* seconds east of UTC */
    bool dst;
    char name[EXTI_ZONE_NAME];
};

/* A day on which the time changes, each year. */
struct exti_zone_day {
    enum { EXTI_ZONE_JULIAN, EXTI_ZONE_DAY, EXTI_ZONE_WEEKDAY } kind;
    int month, week, day;
    int32_t time; /* seconds from the day's beginning */
};

struct exti_zone_rule {
    struct exti_zone_type types[2]; /* standard; daylight saving, the same if there is none */
    bool has_dst;
    struct exti_zone_day begin, end; /* of daylight saving time */
};

struct exti_zone {
    int64_t *times; /* owned, as the next two are; ascending */
    uint8_t *kinds; /* of the time from each on: an index of types */
    struct exti_zone_type *types;
    size_t count, type_count;
    bool has_rule; /* for what comes after the last of `times` */
    struct exti_zone_rule rule;
};

/* ---- zone_rule.c ---- */

/* Parses a POSIX TZ string.  False if it is none; then *out is UTC, by the name that the string
 * begins with, and daylight saving time has none: as the GNU C library tells it. */
bool exti__zone_rule_parse(const char *text, struct exti_zone_rule *out);

const struct exti_zone_type *exti__zone_rule_at(const struct exti_zone_rule *r, int64_t at);

/* ---- zone_file.c ---- */

/* Reads the contents of a file.  EXTI_E_FORMAT, EXTI_E_UNSUPPORTED (leap seconds) or
 * EXTI_E_NOMEM; else exti__zone_clear *out. */
int exti__zone_parse(struct exti_span file, struct exti_zone *out, struct exti_error *err);
int exti__zone_read(const char *path, struct exti_zone *out, struct exti_error *err);
void exti__zone_clear(struct exti_zone *z);

/* ---- zone.c ---- */

const struct exti_zone_type *exti__zone_at(const struct exti_zone *z, int64_t at);

/* The last type of each kind that the zone changes to; the standard one also where it has no
 * daylight saving time. */
void exti__zone_last(const struct exti_zone *z, const struct exti_zone_type *last[2]);

/* The moment at which clocks show `local`, counted as if it were UTC: mktime(3).  `dst`: as
 * tm_isdst. */
int64_t exti__zone_moment(const struct exti_zone *z, int64_t local, int dst);

#endif
