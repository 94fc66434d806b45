#include "loader/store/store_pattern.h"

void exti__patterns_hold(const struct exti_store *s)
{
    (void)s;
}

void exti__patterns_release(const struct exti_store *s)
{
    (void)s;
}

int exti__patterns_prepare(void)
{
    return 0;
}

bool exti__patterns_give_files(struct exti_store *s)
{
    (void)s;
    return false;
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
