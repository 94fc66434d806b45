#include "base/json.h"

#include <string.h>

bool exti__json_is(const struct exti_json *v, enum exti_json_type type)
{
    return v && v->type == type;
}

size_t exti__json_count(const struct exti_json *v, enum exti_json_type type)
{
    return exti__json_is(v, type) ? v->count : 0;
}

const struct exti_json *exti__json_get(const struct exti_json *o, const char *name)
{
    size_t lo = 0, hi = exti__json_count(o, EXTI_JSON_OBJECT);

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int order = strcmp(name, o->sorted[mid]->name);

        if (order == 0)
            return o->sorted[mid];
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const char *exti__json_string(const struct exti_json *o, const char *name)
{
    const struct exti_json *v = exti__json_get(o, name);

    return exti__json_is(v, EXTI_JSON_STRING) ? v->text : NULL;
}

bool exti__json_integer(const struct exti_json *o, const char *name, int64_t *out)
{
    const struct exti_json *v = exti__json_get(o, name);

    if (!exti__json_is(v, EXTI_JSON_INTEGER))
        return false;
    *out = v->integer;
    return true;
}

bool exti__json_boolean(const struct exti_json *o, const char *name, bool *out)
{
    const struct exti_json *v = exti__json_get(o, name);

    if (!exti__json_is(v, EXTI_JSON_TRUE) && !exti__json_is(v, EXTI_JSON_FALSE))
        return false;
    *out = v->type == EXTI_JSON_TRUE;
    return true;
}
