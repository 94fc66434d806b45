#include "cli/os/path.h"

#include <stdlib.h>
#include <string.h>

#include "cli/os/memory.h"
#include "cli/os/system.h"

const char *cli_base_name(const char *path)
{
    const char *name = path;

    for (; *path != '\0'; path++)
        if (strchr(CLI_SEPARATORS, *path) != NULL)
            name = path + 1;
    return name;
}

char *cli_folder_of(const char *path)
{
    size_t n = (size_t)(cli_base_name(path) - path);
    char *out = cli_alloc(n + 2);

    /* The root, "/" or "C:\", keeps its separator. */
    if (n > 1 && path[n - 2] != ':')
        n--;
    memcpy(out, n > 0 ? path : ".", n > 0 ? n : 1);
    out[n > 0 ? n : 1] = '\0';
    return out;
}

char *cli_join(const char *dir, const char *name)
{
    size_t n = strlen(dir), size = n + strlen(name) + 2;
    char *out = cli_alloc(size);
    bool ends = n > 0 && strchr(CLI_SEPARATORS, dir[n - 1]) != NULL;

    snprintf(out, size, "%s%.*s%s", dir, ends ? 0 : 1, CLI_SEPARATORS, name);
    return out;
}
