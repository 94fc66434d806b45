/* What quirks change in a file that is copied. */
#include "base/error.h"
#include "base/json_text.h"
#include "loader/resolve/quirks.h"
#include "loader/store/store_entry.h"

static int renames_text(const struct exti_quirk_effect *effect, char **out, struct exti_error *err)
{
    json_t *o = json_object();
    int rc = 0;

    if (!effect->rename_count) {
        json_decref(o);
        return 0;
    }
    for (size_t i = 0; i < effect->rename_count && !rc; i++)
        rc = json_object_set_new(o, effect->renames[i].from, json_string(effect->renames[i].to));
    rc = rc ? exti__fail_nomem(err) : exti__json_text(o, JSON_COMPACT, out, err);
    json_decref(o);
    return rc;
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
