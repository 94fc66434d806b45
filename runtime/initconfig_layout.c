#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/fail.h"
#include "runtime/initconfig_ops.h"

static void *field(struct pyrt_initconfig *c, enum pyrt_kind kind, const char *name)
{
    return pyrt_field(&c->config, c->py->build, kind, name);
}

static int layout_init(struct pyrt_initconfig *c, struct exti_error *err)
{
    return pyrt_config_init(&c->config, c->py->build, c->py->PyConfig_InitPythonConfig, err);
}

static int outcome(const struct pyrt_initconfig *c, struct pyrt_status s, struct exti_error *err)
{
    return s.type ? pyrt_initconfig_failed(c, s.func, s.err_msg, err) : 0;
}

static int layout_set_int(struct pyrt_initconfig *c, const struct pyrt_setting *s,
                          struct exti_error *err)
{
    int *number = field(c, PYRT_INT, s->name);
    unsigned long *seed = field(c, PYRT_ULONG, s->name);

    if ((number || seed) && (s->number < 0 || (number && s->number > INT_MAX)))
        return pyrt_initconfig_failed(c, s->name, "the value is out of range", err);
    if (number)
        *number = (int)s->number;
    else if (seed)
        *seed = (unsigned long)s->number;
    else
        return pyrt_initconfig_unknown(c, s->name, err);
    return 0;
}

static int layout_set_text(struct pyrt_initconfig *c, const struct pyrt_setting *s,
                           struct exti_error *err)
{
    wchar_t **text = field(c, PYRT_WSTR, s->name);

    if (!text)
        return pyrt_initconfig_unknown(c, s->name, err);
    return outcome(c, c->py->PyConfig_SetBytesString(&c->config, text, s->text), err);
}

/* Returns how many items were decoded; the caller frees them. */
static size_t decode_items(const struct pyrt_api *py, wchar_t **items, const struct pyrt_setting *s)
{
    size_t n = 0;

    while (n < s->count && (items[n] = py->Py_DecodeLocale(s->list[n], NULL)))
        n++;
    return n;
}

static int layout_set_list(struct pyrt_initconfig *c, const struct pyrt_setting *s,
                           struct exti_error *err)
{
    struct pyrt_wlist *list = field(c, PYRT_WLIST, s->name);
    wchar_t **items;
    size_t n;
    int rc;

    if (!list)
        return pyrt_initconfig_unknown(c, s->name, err);
    items = calloc(s->count + 1, sizeof *items);
    n = items ? decode_items(c->py, items, s) : 0;
    if (!items || n < s->count)
        rc = pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    else
        rc = outcome(c, c->py->PyConfig_SetWideStringList(&c->config, list, (ptrdiff_t)n, items),
                     err);
    while (n > 0)
        c->py->PyMem_RawFree(items[--n]);
    free(items);
    if (rc == 0 && strcmp(s->name, "module_search_paths") == 0)
        *(int *)field(c, PYRT_INT, "module_search_paths_set") = 1;
    return rc;
}

static int layout_start(struct pyrt_initconfig *c, struct exti_error *err)
{
    return outcome(c, c->py->Py_InitializeFromConfig(&c->config), err);
}

static void layout_clear(struct pyrt_initconfig *c)
{
    c->py->PyConfig_Clear(&c->config);
}

const struct pyrt_initconfig_ops pyrt_initconfig_layout = {
    .init = layout_init,
    .set = {[PYRT_SET_INT] = layout_set_int,
            [PYRT_SET_TEXT] = layout_set_text,
            [PYRT_SET_LIST] = layout_set_list},
    .start = layout_start,
    .clear = layout_clear,
};
