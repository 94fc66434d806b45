#include "loader/resolve/string_list.h"

#include "base/error.h"
#include "base/mem.h"

void exti__strings_free(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        exti__free(strings[i]);
    exti__free(strings);
}

int exti__strings_copy(const char *const *from, char ***out, struct exti_error *err)
{
    size_t n = 0;
    char **to;

    while (from[n])
        n++;
    to = exti__calloc(n + 1, sizeof *to);
    for (size_t i = 0; to && i < n; i++) {
        to[i] = exti__strdup(from[i]);
        if (!to[i]) {
            exti__strings_free(to);
            to = NULL;
        }
    }
    if (!to)
        return exti__fail_nomem(err);
    *out = to;
    return 0;
}
