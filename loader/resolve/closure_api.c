#include "loader/resolve/closure_api.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int exti__api_exports_of(const struct exti_image *im, struct exti_api_exports *out,
                         struct exti_error *err)
{
    size_t text = 0, count = 0;

    for (size_t i = 0; i < im->info.symbol_count; i++)
        if (im->symbols[i].flags & EXTI_SYM_EXPORT) {
            text += strlen(im->symbols[i].name) + 1;
            count++;
        }
    out->text = exti__alloc(text + 1);
    out->names = exti__calloc(count + 1, sizeof *out->names);
    if (!out->text || !out->names)
        return exti__fail_nomem(err);
    text = 0;
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if (im->symbols[i].flags & EXTI_SYM_EXPORT) {
            const size_t n = strlen(im->symbols[i].name) + 1;

            memcpy(out->text + text, im->symbols[i].name, n);
            out->names[out->count++] = out->text + text;
            text += n;
        }
    if (out->count)
        qsort(out->names, out->count, sizeof *out->names, text_order);
    return 0;
}

void exti__api_exports_free(struct exti_api_exports *x)
{
    exti__free(x->names);
    exti__free(x->text);
    *x = (struct exti_api_exports){0};
}

/* Where a format binds each import to a library (Mach-O, PE), that must be the API library. */
static bool may_bind_to_api(const struct exti_image *im, const struct exti_image_symbol *x,
                            const struct exti_search_ops *ops, const struct exti_closure_node *api)
{
    if (x->library <= 0 || (size_t)x->library > im->info.needed_count)
        return true;
    return ops->is_api(im->needed[x->library - 1].name, api->real, api->soname);
}

static bool is_used_by_slice(const struct exti_api_exports *x, const struct exti_closure_node *api,
                             const struct exti_search_ops *ops, const struct exti_image *im)
{
    for (size_t i = 0; i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *s = &im->symbols[i];

        if (!(s->flags & EXTI_SYM_EXPORT) &&
            bsearch(&s->name, x->names, x->count, sizeof *x->names, text_order) &&
            may_bind_to_api(im, s, ops, api))
            return true;
    }
    return false;
}

bool exti__api_is_used_by(const struct exti_api_exports *x, const struct exti_closure_node *api,
                          const struct exti_search_ops *ops, const struct exti_image *im)
{
    const struct exti_image *p;

    for (size_t i = 0; x->count && (p = exti__image_part(im, i)); i++)
        if (is_used_by_slice(x, api, ops, p))
            return true;
    return false;
}
