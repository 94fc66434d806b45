#include "loader/store/store_walk.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"

bool exti__steps_push(struct exti_steps *p, const char *source, const char *user)
{
    struct exti_step *steps = exti__array_room(p->steps, p->count, &p->cap, sizeof *steps);

    if (!steps)
        return false;
    p->steps = steps;
    p->steps[p->count++] = (struct exti_step){source, user};
    return true;
}

bool exti__steps_push_needs(struct exti_steps *p, const struct exti_entry *e)
{
    bool good = true;

    for (size_t i = e->need_count; i-- > 0 && good;)
        if (e->needs[i].isolated)
            good = exti__steps_push(p, e->needs[i].file, e->source);
    return good;
}

void exti__error_add_requester(const struct exti_step *at, struct exti_error *err)
{
    const size_t n = err ? strlen(err->message) : 0;

    if (!n || !at->user)
        return;
    exti__error_file(err, at->source);
    snprintf(err->message + n, sizeof err->message - n,
             "; needed by %s (use --share to share it instead)", exti__base_name(at->user));
}
