#include "loader/image/exports.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"

typedef const struct exti_image_symbol *const *symbol_ref;

static int name_order(const void *a, const void *b)
{
    return strcmp((*(symbol_ref)a)->name, (*(symbol_ref)b)->name);
}

static int ordinal_order(const void *a, const void *b)
{
    const uint32_t x = (*(symbol_ref)a)->ordinal, y = (*(symbol_ref)b)->ordinal;

    return (x > y) - (x < y);
}

int exti__exports_of(const struct exti_image *im, struct exti_exports *out, struct exti_error *err)
{
    struct exti_exports x = {NULL, NULL, 0};
    const size_t n = im->info.symbol_count;

    x.by_name = exti__calloc(n + 1, sizeof(void *));
    x.by_ordinal = exti__calloc(n + 1, sizeof(void *));
    if (!x.by_name || !x.by_ordinal) {
        exti__exports_free(&x);
        return exti__fail_nomem(err);
    }
    for (size_t i = 0; i < n; i++)
        if (im->symbols[i].flags & EXTI_SYM_EXPORT) {
            x.by_name[x.count] = &im->symbols[i];
            x.by_ordinal[x.count++] = &im->symbols[i];
        }
    if (x.count) {
        qsort(x.by_name, x.count, sizeof *x.by_name, name_order);
        qsort(x.by_ordinal, x.count, sizeof *x.by_ordinal, ordinal_order);
    }
    *out = x;
    return 0;
}

void exti__exports_free(struct exti_exports *x)
{
    exti__free(x->by_name);
    exti__free(x->by_ordinal);
    *x = (struct exti_exports){NULL, NULL, 0};
}

const struct exti_image_symbol *exti__exports_find(const struct exti_exports *x, const char *name)
{
    const struct exti_image_symbol key = {.name = name}, *p = &key, *const * found;
    struct exti_image_symbol number = key;
    const size_t digits = name[0] == '#' ? strspn(name + 1, "0123456789") : 0;

    if (!x->count)
        return NULL;
    if (digits && digits <= 5 && !name[1 + digits]) { /* 0 is one, too */
        number.ordinal = (uint32_t)strtoul(name + 1, NULL, 10);
        p = &number;
        found = bsearch(&p, x->by_ordinal, x->count, sizeof *x->by_ordinal, ordinal_order);
    } else {
        found = bsearch(&p, x->by_name, x->count, sizeof *x->by_name, name_order);
    }
    return found ? *found : NULL;
}

const char *exti__forward_split(const char *forward, char *library)
{
    const char *mangled = strstr(forward, ".?"), *dot = mangled ? mangled : strrchr(forward, '.');
    const size_t n = dot ? (size_t)(dot - forward) : 0;

    if (!n || n > EXTI_FILE_NAME_MAX)
        return NULL;
    memcpy(library, forward, n);
    library[n] = 0;
    return dot + 1;
}

bool exti__is_forwarder(const struct exti_image_symbol *s, char *library)
{
    return s->flags & EXTI_SYM_EXPORT && s->forward && exti__forward_split(s->forward, library);
}
