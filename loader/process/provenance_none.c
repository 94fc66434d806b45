/* References of Mach-O and PE files name their library. */
#include "loader/process/provenance.h"

int exti__reference_meant(const struct exti_loaded *lib, const struct exti_reference *ref,
                          struct exti_loaded *owner, uintptr_t *address, struct exti_error *err)
{
    (void)lib;
    (void)ref;
    (void)owner;
    (void)err;
    *address = 0;
    return 0;
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
