/* Two-level namespaces (Mach-O) and imports by library (PE): a program captures nothing. */
#include "loader/process/program.h"

void exti__program_find(void)
{
}

bool exti__program_has_exports(void)
{
    return false;
}

bool exti__program_exports(const char *name)
{
    (void)name;
    return false;
}

bool exti__program_has_copied(const struct exti_loaded *lib, uintptr_t address)
{
    (void)lib;
    (void)address;
    return false;
}

bool exti__is_preloaded(const struct exti_loaded *lib)
{
    (void)lib;
    return false;
}

bool exti__is_loader(const char *file)
{
    (void)file;
    return false;
}
