#include "loader/resolve/install_name.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs.h"

#define LOADER_PATH "@loader_path/"
#define RPATH "@rpath/"

static bool begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

size_t exti__install_name_tries(const struct exti_image *im, const char *name)
{
    return begins(name, RPATH) ? im->path_count : 1;
}

static int resolve(const char *from, const char *name, char **out, struct exti_error *err)
{
    const char *slash = exti__path_last_slash(from);
    size_t folder = slash ? (size_t)(slash - from) + 1 : 0, rest;

    *out = NULL;
    if (name[0] != '/' && !begins(name, LOADER_PATH))
        return 0;
    if (name[0] == '/')
        folder = 0;
    else
        name += strlen(LOADER_PATH);
    rest = strlen(name) + 1;
    *out = exti__alloc(folder + rest);
    if (!*out)
        return exti__fail_nomem(err);
    memcpy(*out, from, folder);
    memcpy(*out + folder, name, rest);
    return 0;
}

int exti__install_name_file(const char *from, const struct exti_image *im, const char *name,
                            size_t i, char **out, struct exti_error *err)
{
    char *joined;
    int rc;

    if (!begins(name, RPATH))
        return resolve(from, name, out, err);
    joined = exti__path_join(im->paths[i], name + strlen(RPATH));
    rc = joined ? resolve(from, joined, out, err) : exti__fail_nomem(err);
    exti__free(joined);
    return rc;
}
