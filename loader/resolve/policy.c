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
                      enum exti_base_kind *of, struct exti_decision *out)
{
    const char *glob, *reason;
    enum exti_base_kind kind;

    for (size_t i = 0; (glob = exti__policy_base(p->format, i, &reason, &kind)); i++)
        if (rule_names(p, glob, soname, path) && !(kind == EXTI_BASE_LOCKS && p->own_locks)) {
            *out = (struct exti_decision){
                .share = true,
                .why = kind == EXTI_BASE_FIXED ? EXTI_WHY_FIXED : EXTI_WHY_BASE,
                .glob = glob,
                .reason = reason,
                .single = kind != EXTI_BASE_SHARED && kind != EXTI_BASE_LOCKS};
            *of = kind;
            return true;
        }
    return false;
}

static struct exti_decision by_flags(const struct exti_policy *p, uint32_t flags)
{
    struct exti_decision d = {.share = true, .why = EXTI_WHY_FLAGS};

    if (flags & EXTI_IMAGE_CLASSES)
        d.reason = "it has Objective-C classes or Swift types, whose names are process-wide";
    else if (flags & EXTI_IMAGE_NODELETE && p->format == EXTI_FORMAT_ELF)
        d.reason = "it asks never to be unloaded (DF_1_NODELETE)";
    else if (flags & EXTI_IMAGE_STATIC_TLS)
        d.reason = "it has static TLS, of which a process has room for few copies";
    else
        d = (struct exti_decision){.share = p->share_by_default,
                                   .why = EXTI_WHY_DEFAULT,
                                   .reason = p->share_by_default
                                                 ? "libraries are shared by default"
                                                 : "libraries are isolated by default"};
    d.single = d.why == EXTI_WHY_FLAGS && (flags & EXTI_IMAGE_STATIC_TLS);
    return d;
}

struct exti_decision exti__policy_decide(const struct exti_policy *p, const char *soname,
                                         const char *path, uint32_t flags)
{
    struct exti_decision base;
    enum exti_base_kind kind;
    const bool found = find_base(p, soname, path, &kind, &base);

    if (found && base.why == EXTI_WHY_FIXED)
        return base;
    for (size_t i = p->rule_count; i-- > 0;)
        if (rule_names(p, p->rules[i].glob, soname, path))
            return (struct exti_decision){.share = p->rules[i].share,
                                          .why = EXTI_WHY_RULE,
                                          .glob = p->rules[i].glob,
                                          .reason = "the user says so"};
    if (!found)
        return by_flags(p, flags);
    base.single = base.single || (flags & EXTI_IMAGE_STATIC_TLS);
    return base;
}

struct exti_decision exti__policy_captured(struct exti_decision d)
{
    if (!d.share || d.single || d.why < EXTI_WHY_CAPTURED)
        return d;
    return (struct exti_decision){.why = EXTI_WHY_CAPTURED,
                                  .reason = "the program exports its symbols"};
}

bool exti__policy_is_single(enum exti_file_format format, const char *soname, const char *path)
{
    const struct exti_policy p = {.format = format};
    struct exti_decision d;
    enum exti_base_kind kind;

    return find_base(&p, soname, path, &kind, &d) && d.single;
}

bool exti__policy_is_runtime(enum exti_file_format format, const char *soname, const char *path)
{
    const struct exti_policy p = {.format = format};
    struct exti_decision d;
    enum exti_base_kind kind;

    return find_base(&p, soname, path, &kind, &d) &&
           (kind == EXTI_BASE_FIXED || kind == EXTI_BASE_RUNTIME);
}
