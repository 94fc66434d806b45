/* Elsewhere than with ld.so contexts share what their files drag in. */
#include "loader/store_priv.h"

#include "loader/base/error.h"
#include "loader/base/mem.h"

void exti__store_forget(struct exti_store *s)
{
    (void)s;
}

int exti__store_needs(struct exti_store *s, const char *source, bool root, struct exti_entry *e,
                      struct exti_error *err)
{
    (void)s;
    (void)source;
    (void)root;
    (void)err;
    e->takes_api = true;
    return 0;
}

int exti__store_search_key(char **out, struct exti_error *err)
{
    *out = exti__strdup("");
    return *out ? 0 : exti__fail_nomem(err);
}

int exti__store_decide(struct exti_store *s, const char *path, bool *isolated,
                       struct exti_error *err)
{
    (void)s;
    (void)path;
    (void)err;
    *isolated = false;
    return 0;
}

int exti__store_find(struct exti_store *s, const char *source, const char *name, char **path,
                     struct exti_error *err)
{
    (void)s;
    (void)source;
    (void)name;
    (void)err;
    *path = NULL;
    return 0;
}
