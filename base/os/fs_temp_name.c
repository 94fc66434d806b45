#include "base/os/fs_temp_name.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"

#define TEMP_PREFIX ".exti-"

char *exti__fs_temp_path(const char *path, const uint8_t random[EXTI_TEMP_RANDOM])
{
    const char *slash = exti__path_last_slash(path);
    size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
    size_t size = dir + sizeof TEMP_PREFIX + EXTI_TEMP_RANDOM * 2;
    char *temp = exti__alloc(size), *hex;

    if (!temp)
        return NULL;
    memcpy(temp, path, dir);
    memcpy(temp + dir, TEMP_PREFIX, sizeof TEMP_PREFIX);
    hex = temp + dir + strlen(TEMP_PREFIX);
    for (size_t i = 0; i < EXTI_TEMP_RANDOM; i++)
        snprintf(hex + 2 * i, 3, "%02x", random[i]);
    return temp;
}

bool exti__fs_is_temporary(const char *name)
{
    size_t prefix = strlen(TEMP_PREFIX);

    return strncmp(name, TEMP_PREFIX, prefix) == 0 &&
           strlen(name) == prefix + EXTI_TEMP_RANDOM * 2 &&
           strspn(name + prefix, "0123456789abcdef") == EXTI_TEMP_RANDOM * 2;
}
