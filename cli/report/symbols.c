#include "cli/report/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/output/message.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_api_name(const struct cli_api *api, const char *name)
{
    if (api->path == NULL)
        return strncmp(name + strspn(name, "_"), "Py", 2) == 0;
    return api->count > 0 &&
           bsearch(&name, api->names, api->count, sizeof *api->names, compare_names) != NULL;
}

/* The sorted exports of `im`, or its imports: those of the API or, for NULL, all. */
static struct cli_names pick_symbols(const struct exti_image *im, const struct cli_api *api,
                                     bool exports)
{
    struct exti_image_info info = {.size = sizeof info};
    struct cli_names n = {NULL, 0};

    exti_image_info(im, &info);
    n.items = cli_alloc((info.symbol_count + 1) * sizeof *n.items);
    for (size_t i = 0; i < info.symbol_count; i++) {
        struct exti_symbol_info s = {.size = sizeof s};
        if (exti_image_symbol(im, i, &s) == 0 && ((s.flags & EXTI_SYM_EXPORT) != 0) == exports &&
            (api == NULL || is_api_name(api, s.name)))
            n.items[n.count++] = s.name;
    }
    if (n.count > 0)
        qsort(n.items, n.count, sizeof *n.items, compare_names);
    return n;
}

struct cli_names cli_api_symbols(const struct exti_image *im, const struct cli_api *api,
                                 bool exports)
{
    return pick_symbols(im, api, exports);
}

size_t cli_count_bound(const struct exti_image *im, const struct cli_api *api, int32_t library)
{
    struct exti_symbol_info s = {.size = sizeof s};
    size_t n = 0;

    for (size_t i = 0; exti_image_symbol(im, i, &s) == 0; i++)
        if ((s.flags & EXTI_SYM_EXPORT) == 0 && s.library == library && is_api_name(api, s.name))
            n++;
    return n;
}

size_t cli_count_unique(const struct exti_image *im)
{
    struct exti_symbol_info s = {.size = sizeof s};
    size_t n = 0;

    for (size_t i = 0; exti_image_symbol(im, i, &s) == 0; i++)
        n += (s.flags & EXTI_SYM_UNIQUE) != 0;
    return n;
}

int cli_api_load(struct cli_api *api)
{
    struct exti_error err;

    if (api->path == NULL)
        return CLI_OK;
    if (exti_inspect(api->path, &api->im, &err) != 0)
        return cli_error(&err, api->path);
    struct exti_image_info info = {.size = sizeof info};
    struct cli_names n = pick_symbols(api->im, NULL, true);
    exti_image_info(api->im, &info);
    api->libraries[0] = cli_base_name(api->path);
    api->libraries[1] = info.id;
    api->names = n.items;
    api->count = n.count;
    return CLI_OK;
}

void cli_api_free(struct cli_api *api)
{
    free(api->names);
    exti_image_free(api->im);
}

const char *const *cli_api_libraries(const struct cli_api *api)
{
    return api->path != NULL ? api->libraries : NULL;
}
