#include "loader/json_text.h"

#include "loader/base/buf.h"
#include "loader/base/error.h"

static int append(const char *p, size_t n, void *user)
{
    return exti__buf_append(user, p, n, NULL) ? -1 : 0;
}

/* Not json_dumps: a host may have given jansson an allocator whose free we do not know. */
int exti__json_text(const json_t *json, size_t flags, char **out, struct exti_error *err)
{
    struct exti_buf b = exti__buf(SIZE_MAX / 2);

    if (!json || json_dump_callback(json, append, &b, flags) || exti__buf_append(&b, "", 1, NULL)) {
        exti__buf_free(&b);
        return exti__fail_nomem(err);
    }
    *out = (char *)b.p;
    return 0;
}
