/* References of Mach-O and PE files name their library. */
#include "loader/process/provenance.h"

void *exti__reference_meant(const struct exti_loaded *lib, const struct exti_reference *ref)
{
    (void)lib;
    (void)ref;
    return NULL;
}

int exti__loaded_reaches(const struct exti_loaded *lib, const struct exti_loaded *other, bool *out,
                         struct exti_error *err)
{
    (void)lib;
    (void)other;
    (void)err;
    *out = false;
    return 0;
}
