#include "loader/image/install_name.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/text.h"

int exti__install_name_expand(const char *from, const char *name, char **out,
                              struct exti_error *err)
{
    const char *slash = exti__path_last_slash(from);
    size_t folder = slash ? (size_t)(slash - from) + 1 : 0, rest;

    *out = NULL;
    if (name[0] == '/')
        folder = 0;
    else if (exti__starts_with(name, EXTI_LOADER_PATH))
        name += strlen(EXTI_LOADER_PATH);
    else
        return 0;
    rest = strlen(name) + 1;
    *out = exti__alloc(folder + rest);
    if (!*out)
        return exti__fail_nomem(err);
    memcpy(*out, from, folder);
    memcpy(*out + folder, name, rest);
    return 0;
}

size_t exti__install_name_tries(const struct exti_image *im, const char *name)
{
    return exti__starts_with(name, EXTI_RPATH) ? im->path_count : 1;
}

int exti__install_name_file(const char *from, const struct exti_image *im, const char *name,
                            size_t i, char **out, struct exti_error *err)
{
    char *joined;
    int rc;

    if (!exti__starts_with(name, EXTI_RPATH))
        return exti__install_name_expand(from, name, out, err);
    joined = exti__path_join(im->paths[i], name + strlen(EXTI_RPATH));
    rc = joined ? exti__install_name_expand(from, joined, out, err) : exti__fail_nomem(err);
    exti__free(joined);
    return rc;
}
