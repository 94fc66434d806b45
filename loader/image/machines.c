#include "loader/image/machines.h"

#include <stdio.h>
#include <string.h>

void exti__machines_of(const struct exti_image *im, char *out)
{
    size_t n = 0;

    snprintf(out, EXTI_MACHINES_MAX, "%s", im->info.machine);
    for (size_t i = 0; i < im->info.slice_count && n < EXTI_MACHINES_MAX; i++)
        n += (size_t)snprintf(out + n, EXTI_MACHINES_MAX - n, "%s%s", i ? "," : "",
                              im->slices[i].info.machine);
}

bool exti__machines_meet(const char *a, const char *b)
{
    for (;; a++) {
        size_t n = strcspn(a, ",");

        for (const char *p = b;; p++) {
            size_t m = strcspn(p, ",");

            if (n == m && strncmp(a, p, n) == 0)
                return true;
            p += m;
            if (!*p)
                break;
        }
        a += n;
        if (!*a)
            return false;
    }
}
