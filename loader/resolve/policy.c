#include "loader/resolve/policy.h"

#include <string.h>

#include "base/glob.h"
#include "base/path.h"

static bool rule_names(const struct exti_policy *p, const char *glob, const char *soname,
                       const char *path)
{
    const bool fold = p->format == EXTI_FORMAT_PE;

    if (strpbrk(glob, fold ? "/\\" : "/"))
        return exti__glob_matches(glob, path, fold);
    return (soname && exti__glob_matches(glob, soname, fold)) ||
           exti__glob_matches(glob, exti__base_name(path), fold);
}

/* The base set's decision, if it has an entry for the library. */
static bool find_base(const struct exti_policy *p, const char *soname, const char *path,
                      struct exti_decision *out)
{
    const char *glob, *reason;
    enum exti_base_kind kind;

    for (size_t i = 0; (glob = exti__policy_base(p->format, i, &reason, &kind)); i++)
        if (rule_names(p, glob, soname, path) && !(kind == EXTI_BASE_LOCKS && p->own_locks)) {
            *out = (struct exti_decision){
                true, kind == EXTI_BASE_FIXED ? EXTI_WHY_FIXED : EXTI_WHY_BASE, glob, reason};
            return true;
        }
    return false;
}

struct exti_decision exti__policy_decide(const struct exti_policy *p, const char *soname,
                                         const char *path, uint32_t flags)
{
    struct exti_decision base;
    const bool found = find_base(p, soname, path, &base);

    if (found && base.why == EXTI_WHY_FIXED)
        return base;
    for (size_t i = p->rule_count; i-- > 0;)
        if (rule_names(p, p->rules[i].glob, soname, path))
            return (struct exti_decision){p->rules[i].share, EXTI_WHY_RULE, p->rules[i].glob,
                                          "the user says so"};
    if (found)
        return base;
    if (flags & EXTI_IMAGE_CLASSES)
        return (struct exti_decision){true, EXTI_WHY_FLAGS, NULL,
                                      "it has Objective-C classes or Swift types, whose names are "
                                      "process-wide"};
    if (flags & EXTI_IMAGE_NODELETE && p->format == EXTI_FORMAT_ELF)
        return (struct exti_decision){true, EXTI_WHY_FLAGS, NULL,
                                      "it asks never to be unloaded (DF_1_NODELETE)"};
    if (flags & EXTI_IMAGE_STATIC_TLS)
        return (struct exti_decision){
            true, EXTI_WHY_FLAGS, NULL,
            "it has static TLS, of which a process has room for few copies"};
    return (struct exti_decision){p->share_by_default, EXTI_WHY_DEFAULT, NULL,
                                  p->share_by_default ? "libraries are shared by default"
                                                      : "libraries are isolated by default"};
}
