#include "base/mem.h"
#include "loader/load/opening.h"

void exti__opening_free(struct exti_opening *o)
{
    exti__free(o->places);
    exti__free(o->order);
    exti__dependencies_free(&o->set);
    *o = (struct exti_opening){0};
}
