#include "loader/store/store_pattern.h"

void exti__patterns_hold(void)
{
}

void exti__patterns_release(void)
{
}

bool exti__pattern_use(struct exti_store *s, const struct exti_copy_request *r,
                       struct exti_entry *out, struct exti_pattern_turn *turn)
{
    (void)s;
    (void)r;
    (void)out;
    (void)turn;
    return false;
}

void exti__pattern_planned(const struct exti_pattern_turn *turn)
{
    (void)turn;
}

void exti__pattern_learn(const struct exti_store *s, const struct exti_copy_request *r,
                         const char *id, const struct exti_entry *e,
                         const struct exti_rewritten *copy)
{
    (void)s;
    (void)r;
    (void)id;
    (void)e;
    (void)copy;
}
