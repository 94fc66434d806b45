#include "loader/resolve/dll_name.h"

#include <string.h>
#include <strings.h>

static size_t stem_length(const char *name)
{
    const size_t n = strlen(name);

    return n > 4 && strcasecmp(name + n - 4, ".dll") == 0 ? n - 4 : n;
}

bool exti__same_dll(const char *a, const char *b)
{
    const size_t n = stem_length(a);

    return n == stem_length(b) && strncasecmp(a, b, n) == 0;
}
