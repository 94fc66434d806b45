/* Which libraries the contexts of a process share and which are isolated, by the name and flags of
 * one library alone; the closure adds what follows from its needs.  Pure; any thread. */
#ifndef LOADER_RESOLVE_POLICY_H
#define LOADER_RESOLVE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/format.h"

/* What decides on a library, the strongest first. */
enum exti_why {
    EXTI_WHY_FIXED,    /* a process cannot have two: shared whatever the user says */
    EXTI_WHY_RULE,     /* a rule of the user's, or a quirk */
    EXTI_WHY_CAPTURED, /* the program exports its symbols */
    EXTI_WHY_BASE,     /* the base set */
    EXTI_WHY_FLAGS,    /* its own flags: nodelete, static TLS, Objective-C classes */
    EXTI_WHY_DEFAULT   /* none of these */
};

/* What the base set says of a library. */
enum exti_base_kind {
    EXTI_BASE_SHARED, /* shared unless a rule says otherwise */
    EXTI_BASE_FIXED,  /* shared whatever rules say */
    EXTI_BASE_LOCKS,  /* as SHARED, where the locks of copies belong to the process */
    /* As SHARED, and what the program defines of it is meant for the whole process. */
    EXTI_BASE_RUNTIME,
    /* As SHARED, although the program exports its symbols: a context could not have another. */
    EXTI_BASE_SINGLE
};

struct exti_policy {
    const struct exti_rule *rules; /* the last that matches counts */
    size_t rule_count;
    bool share_by_default;
    enum exti_file_format format; /* of the files; chooses the base set */
    bool own_locks; /* the record locks of copies are their context's: track/record_locks.h */
};

struct exti_decision {
    bool share;
    enum exti_why why;
    const char *glob;   /* of the rule, quirk or base entry; NULL for flags and default */
    const char *reason; /* static; completes "it is shared because" */
    bool single;        /* shared even if the program exports its symbols */
};

/* `soname` may be NULL; `flags` are EXTI_IMAGE_*. */
struct exti_decision exti__policy_decide(const struct exti_policy *p, const char *soname,
                                         const char *path, uint32_t flags);

/* The decision on a library of which the program exports symbols, if the policy's is `d`.  What
 * would be shared is isolated, so that copies do not use the program's in its place. */
struct exti_decision exti__policy_captured(struct exti_decision d);

/* Whether the base set has the library as one that is shared even if the program exports its
 * symbols. */
bool exti__policy_is_single(enum exti_file_format format, const char *soname, const char *path);

/* Whether the library is the C library, the C++ runtime or the like: a program that defines their
 * symbols means the whole process. */
bool exti__policy_is_runtime(enum exti_file_format format, const char *soname, const char *path);

/* The glob of the i-th entry of a format's base set, with its reason; NULL past the end. */
const char *exti__policy_base(enum exti_file_format format, size_t i, const char **reason,
                              enum exti_base_kind *kind);

#endif
