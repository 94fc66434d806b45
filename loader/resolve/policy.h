/* Which libraries the contexts of a process share, and which each gets copies of; of one library,
 * by its name and flags alone.  What others need of it is the closure's matter.  Pure; any
 * thread. */
#ifndef LOADER_RESOLVE_POLICY_H
#define LOADER_RESOLVE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/format.h"

/* Why a library is shared or isolated, weakest last. */
enum exti_why {
    EXTI_WHY_FIXED,  /* no process can have two: shared whatever the user says */
    EXTI_WHY_RULE,   /* a rule of the user's */
    EXTI_WHY_BASE,   /* of the base set */
    EXTI_WHY_FLAGS,  /* its own flags: nodelete, static TLS */
    EXTI_WHY_DEFAULT /* none of these */
};

struct exti_policy {
    const struct exti_rule *rules; /* of those that match, the last counts */
    size_t rule_count;
    bool share_by_default;
    enum exti_file_format format; /* of the files: whose base set counts */
};

struct exti_decision {
    bool share;
    enum exti_why why;
    const char *glob;   /* of the rule or entry that matched; NULL for the other two */
    const char *reason; /* static text; completes "it is shared because" */
};

/* `soname` may be NULL; `flags` are EXTI_IMAGE_*. */
struct exti_decision exti__policy_decide(const struct exti_policy *p, const char *soname,
                                         const char *path, uint32_t flags);

/* The base set of a format, entry by entry, each with its reason; NULL past the end.  *fixed tells
 * EXTI_WHY_FIXED. */
const char *exti__policy_base(enum exti_file_format format, size_t i, const char **reason,
                              bool *fixed);

#endif
