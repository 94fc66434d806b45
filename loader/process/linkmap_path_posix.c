#define _GNU_SOURCE /* Dl_info */
#include "loader/process/linkmap_path.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void exti__loaded_path(const struct exti_loaded *lib, char *out, size_t cap)
{
    snprintf(out, cap, "%s", lib->path);
}

bool exti__loaded_is_file(const struct exti_loaded *lib, const char *path)
{
    return strcmp(lib->path, path) == 0;
}

void exti__address_file(uintptr_t address, char *out, size_t cap)
{
    Dl_info info;
    const bool found = dladdr((void *)address, &info) && info.dli_fname;

    snprintf(out, cap, "%s", found ? info.dli_fname : "");
}
