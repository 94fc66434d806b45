#include "base/json_text.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

/* Remembers a failed append: jansson 2.14 ignores a failure to write an object's key. */
struct text {
    struct exti_buf buf;
    bool failed;
};

static int append_piece(const char *p, size_t n, void *user)
{
    struct text *t = user;

    t->failed |= exti__buf_append(&t->buf, p, n, NULL) != 0;
    return t->failed ? -1 : 0;
}

/* Does not use json_dumps: the host may have given jansson an allocator whose free we do not
 * know. */
int exti__json_text(const json_t *json, size_t flags, char **out, struct exti_error *err)
{
    struct text t = {.buf = exti__buf(SIZE_MAX / 2)};

    if (!json || json_dump_callback(json, append_piece, &t, flags) || append_piece("", 1, &t)) {
        exti__buf_free(&t.buf);
        return exti__fail_nomem(err);
    }
    *out = (char *)t.buf.p;
    return 0;
}

json_t *exti__json_set(json_t *o, const char *key, json_t *value)
{
    if (!o) {
        json_decref(value);
        return NULL;
    }
    if (!json_object_set_new(o, key, value))
        return o;
    json_decref(o);
    return NULL;
}

json_t *exti__json_set_text(json_t *o, const char *key, const char *text)
{
    return o && text ? exti__json_set(o, key, json_string(text)) : o;
}
