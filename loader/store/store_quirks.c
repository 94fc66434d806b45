/* What quirks change in a file that is copied. */
#include "base/error.h"
#include "base/json_write.h"
#include "loader/resolve/quirks.h"
#include "loader/store/store_entry.h"

static int renames_text(const struct exti_quirk_effect *effect, char **out, struct exti_error *err)
{
    struct exti_json_writer w = exti__json_writer(EXTI_JSON_COMPACT);

    if (!effect->rename_count)
        return 0;
    exti__json_open(&w, NULL, '{');
    for (size_t i = 0; i < effect->rename_count; i++)
        exti__json_put_string(&w, effect->renames[i].from, effect->renames[i].to);
    exti__json_close(&w, '{');
    return exti__json_end(&w, out, err);
}

int exti__store_quirks(const struct exti_store *s, const char *source, const struct exti_image *im,
                       struct exti_entry *e, struct exti_error *err)
{
    struct exti_quirk_effect effect;
    int rc = exti__quirks_apply(s->quirks, source, im, &effect, err);

    if (rc)
        return rc;
    if (effect.refuse)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                        "cannot be isolated: %s (quirk %s)", effect.refuse, effect.refused_by);
    else
        rc = renames_text(&effect, &e->renames, err);
    exti__quirk_effect_free(&effect);
    return rc;
}
