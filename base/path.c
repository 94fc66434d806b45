#include "base/path.h"

#include <string.h>

#include "base/mem.h"

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

char *exti__path_last_slash(const char *path)
{
    const char *last = NULL;

    for (const char *p = path; *p; p++)
        if (is_separator(*p))
            last = p;
    return (char *)last;
}

bool exti__path_is_absolute(const char *path)
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

bool exti__path_is_plain_name(const char *name)
{
#ifdef _WIN32 /* "x:y" is a file's second stream */
    return *name && !strpbrk(name, "/\\:");
#else
    return *name && !strchr(name, SEPARATOR);
#endif
}

char *exti__path_join(const char *dir, const char *name)
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

const char *exti__base_name(const char *path)
{
    const char *slash = exti__path_last_slash(path);

    return slash ? slash + 1 : path;
}

bool exti__path_is_below(const char *path, const char *dir)
{
    const size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && is_separator(path[n]);
}
