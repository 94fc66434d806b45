/* Paths as text. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/os/fs_priv.h"

#define TEMP_PREFIX ".exti-"

#ifdef _WIN32
#define SEPARATOR '\\'
static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}
#else
#define SEPARATOR '/'
static bool is_separator(char c)
{
    return c == '/';
}
#endif

char *exti__fs_last_slash(const char *path)
{
    const char *last = NULL;

    for (const char *p = path; *p; p++)
        if (is_separator(*p))
            last = p;
    return (char *)last;
}

bool exti__fs_is_absolute(const char *path)
{
#ifdef _WIN32
    char drive = path[0] | 0x20;

    if (drive >= 'a' && drive <= 'z' && path[1] == ':')
        return is_separator(path[2]);
    return is_separator(path[0]) && is_separator(path[1]);
#else
    return is_separator(path[0]);
#endif
}

bool exti__fs_is_plain_name(const char *name)
{
#ifdef _WIN32 /* "x:y" is a file's second stream */
    return *name && !strpbrk(name, "/\\:");
#else
    return *name && !strchr(name, SEPARATOR);
#endif
}

char *exti__fs_join(const char *dir, const char *name)
{
    size_t d = strlen(dir), n = strlen(name);
    bool slash = d && !is_separator(dir[d - 1]);
    char *path = exti__alloc(d + slash + n + 1);

    if (!path)
        return NULL;
    memcpy(path, dir, d);
    if (slash)
        path[d] = SEPARATOR;
    memcpy(path + d + slash, name, n + 1);
    return path;
}

char *exti__fs_temp_path(const char *path, const uint8_t random[EXTI_TEMP_RANDOM])
{
    const char *slash = exti__fs_last_slash(path);
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
