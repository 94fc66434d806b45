#include "loader/resolve/api_name.h"

#include <string.h>

#include "base/path.h"
#include "base/text.h"

bool exti__is_api_name(const char *name, const char *file, const char *id)
{
    const char *base = exti__base_name(name), *api = exti__base_name(file);

    return strcmp(base, api) == 0 || (id && strcmp(base, exti__base_name(id)) == 0) ||
           (strcmp(base, "libpython3.so") == 0 && exti__starts_with(api, "libpython3."));
}
