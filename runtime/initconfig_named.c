#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/fail.h"
#include "runtime/initconfig_ops.h"

static int named_failed(const struct pyrt_initconfig *c, const char *name, struct exti_error *err)
{
    const char *message = NULL;

    c->py->PyInitConfig_GetError(c->named, &message);
    return pyrt_initconfig_failed(c, name, message, err);
}

/* ---- text ---- */

static size_t put_utf8(char *to, unsigned long ch)
{
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t n = ch < 0x80 ? 1 : ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;

    for (size_t i = n - 1; i > 0; i--, ch >>= 6)
        to[i] = (char)(0x80 | (ch & 0x3F));
    to[0] = (char)(lead[n == 1 ? 0 : n] | ch);
    return n;
}

/* PyInitConfig takes valid UTF-8 only.  CPython decodes a byte that means nothing in the locale to
 * a surrogate; it becomes a question mark here, and clears `exact`.  NULL without memory. */
static char *utf8_of(const struct pyrt_api *py, const char *text, int *exact)
{
    wchar_t *wide = py->Py_DecodeLocale(text, NULL);
    char *out = wide ? malloc(4 * wcslen(wide) + 1) : NULL;
    size_t n = 0;

    for (const wchar_t *w = wide; out && *w; w++) {
        if (*w >= 0xD800 && *w <= 0xDFFF) {
            *exact = 0;
            out[n++] = '?';
        } else {
            n += put_utf8(out + n, (unsigned long)*w);
        }
    }
    if (out)
        out[n] = '\0';
    if (wide)
        py->PyMem_RawFree(wide);
    return out;
}

static int not_decodable(const struct pyrt_initconfig *c, const char *name, struct exti_error *err)
{
    return pyrt_initconfig_failed(c, name, "not in the encoding of the locale", err);
}

/* ---- what the environment says ---- */

/* PyInitConfig begins with isolated values, and -1, by which a PyConfig leaves an option to the
 * environment, is none that it takes.  So CPython does not look at these variables itself. */
enum rule { ANY_VALUE, NOT_ZERO, NUMBER };

static const struct variable {
    const char *name, *option;
    enum rule rule;
    unsigned long value;  /* of NUMBER the most, else what the option is set to */
    unsigned long least;  /* of NUMBER, but for 0 */
    const char *together; /* another option, to be set to 1 */
    const char *as_unset; /* a word that means the same as no variable */
} variables[] = {
    {"PYTHONDEVMODE", "dev_mode", ANY_VALUE, 1, 0, NULL, NULL},
    {"PYTHONHASHSEED", "hash_seed", NUMBER, 4294967295, 0, "use_hash_seed", "random"},
    {"PYTHONINTMAXSTRDIGITS", "int_max_str_digits", NUMBER, INT_MAX, 640, NULL, NULL},
    {"PYTHONPERFSUPPORT", "perf_profiling", NOT_ZERO, 1, 0, NULL, NULL},
    {"PYTHON_PERF_JIT_SUPPORT", "perf_profiling", NOT_ZERO, 2, 0, NULL, NULL},
    {"PYTHONTRACEMALLOC", "tracemalloc", NUMBER, INT_MAX, 0, NULL, NULL},
};
#define VARIABLES (sizeof variables / sizeof *variables)

static int set_number(struct pyrt_initconfig *c, const char *name, int64_t number,
                      struct exti_error *err)
{
    const struct pyrt_api *py = c->py;

    if (!py->PyInitConfig_HasOption(c->named, name))
        return pyrt_initconfig_unknown(c, name, err);
    return py->PyInitConfig_SetInt(c->named, name, number) ? named_failed(c, name, err) : 0;
}

static int not_a_number(const struct pyrt_initconfig *c, const struct variable *v,
                        struct exti_error *err)
{
    return pyrt_fail(err, EXTI_E_LOAD,
                     "CPython %s did not start: %s must be %s%san integer from %lu to %lu%s",
                     c->version, v->name, v->as_unset ? v->as_unset : "", v->as_unset ? " or " : "",
                     v->least, v->value, v->least ? ", or 0" : "");
}

static int is_number(const struct variable *v, const char *text, unsigned long *number)
{
    char *end;

    errno = 0;
    *number = strtoul(text, &end, 10);
    return !errno && end != text && !*end && *number <= v->value &&
           (*number == 0 || *number >= v->least);
}

static int take_variable(struct pyrt_initconfig *c, const struct variable *v,
                         struct exti_error *err)
{
    const char *text = getenv(v->name);
    int rc = 0, valid;
    unsigned long number;

    if (!text || !*text || !c->py->PyInitConfig_HasOption(c->named, v->option) ||
        (v->as_unset && strcmp(text, v->as_unset) == 0))
        return 0;
    valid = is_number(v, text, &number);
    if (v->rule == NUMBER && !valid)
        return not_a_number(c, v, err);
    if (v->rule == NOT_ZERO && number == 0)
        return 0;
    if (v->together)
        rc = set_number(c, v->together, 1, err);
    return rc < 0 ? rc
                  : set_number(c, v->option, (int64_t)(v->rule == NUMBER ? number : v->value), err);
}

static int reads_environment(struct pyrt_initconfig *c)
{
    int64_t use = 0, isolated = 0;

    c->py->PyInitConfig_GetInt(c->named, "use_environment", &use);
    c->py->PyInitConfig_GetInt(c->named, "isolated", &isolated);
    return use && !isolated;
}

static int take_environment(struct pyrt_initconfig *c, struct exti_error *err)
{
    int rc = 0;

    if (!reads_environment(c))
        return 0;
    for (size_t i = 0; i < VARIABLES && rc == 0; i++)
        if (!(c->given & 1u << i))
            rc = take_variable(c, &variables[i], err);
    return rc;
}

/* ---- the operations ---- */

static int named_init(struct pyrt_initconfig *c, struct exti_error *err)
{
    /* What the stock program has, where isolated values differ. */
    static const struct {
        const char *name;
        int value;
    } stock[] = {
        {"isolated", 0},  {"use_environment", 1},     {"user_site_directory", 1},
        {"safe_path", 0}, {"pathconfig_warnings", 1},
    };
    int rc = 0;

    c->named = c->py->PyInitConfig_Create();
    if (!c->named)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    for (size_t i = 0; i < sizeof stock / sizeof *stock && rc == 0; i++)
        rc = set_number(c, stock[i].name, stock[i].value, err);
    if (rc < 0)
        c->py->PyInitConfig_Free(c->named);
    return rc;
}

static int named_set_int(struct pyrt_initconfig *c, const struct pyrt_setting *s,
                         struct exti_error *err)
{
    for (size_t i = 0; i < VARIABLES; i++)
        if (strcmp(s->name, variables[i].option) == 0 ||
            (variables[i].together && strcmp(s->name, variables[i].together) == 0))
            c->given |= 1u << i;
    return set_number(c, s->name, s->number, err);
}

static int named_set_text(struct pyrt_initconfig *c, const struct pyrt_setting *s,
                          struct exti_error *err)
{
    int exact = 1, rc = 0;
    char *text;

    if (!c->py->PyInitConfig_HasOption(c->named, s->name))
        return pyrt_initconfig_unknown(c, s->name, err);
    text = utf8_of(c->py, s->text, &exact);
    if (!text)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    if (!exact)
        rc = not_decodable(c, s->name, err);
    else if (c->py->PyInitConfig_SetStr(c->named, s->name, text))
        rc = named_failed(c, s->name, err);
    free(text);
    return rc;
}

static int named_set_list(struct pyrt_initconfig *c, const struct pyrt_setting *s,
                          struct exti_error *err)
{
    char **items = calloc(s->count + 1, sizeof *items);
    int exact = 1, rc = 0;
    size_t n = 0;

    while (items && n < s->count && (items[n] = utf8_of(c->py, s->list[n], &exact)))
        n++;
    if (!items || n < s->count)
        rc = pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    else if (!c->py->PyInitConfig_HasOption(c->named, s->name))
        rc = pyrt_initconfig_unknown(c, s->name, err);
    else if (!exact && strcmp(s->name, "argv") != 0 && strcmp(s->name, "orig_argv") != 0)
        rc = not_decodable(c, s->name, err);
    else if (c->py->PyInitConfig_SetStrList(c->named, s->name, n, items))
        rc = named_failed(c, s->name, err);
    else if (!exact && c->late_count < PYRT_LATE_LISTS)
        c->late[c->late_count++] = *s;
    while (n > 0)
        free(items[--n]);
    free(items);
    return rc;
}

static int set_late(const struct pyrt_api *py, const struct pyrt_setting *s, struct exti_error *err)
{
    struct pyobj *list = py->PyList_New(0);
    int good = list != NULL;

    for (size_t i = 0; i < s->count && good; i++) {
        struct pyobj *item = py->PyUnicode_DecodeFSDefault(s->list[i]);
        good = item && py->PyList_Append(list, item) == 0;
        py->Py_DecRef(item);
    }
    if (good)
        good = py->PySys_SetObject(s->name, list) == 0;
    py->Py_DecRef(list);
    if (good)
        return 0;
    py->PyErr_Clear();
    return pyrt_fail(err, EXTI_E_NOMEM, "cannot set sys.%s", s->name);
}

static int named_start(struct pyrt_initconfig *c, struct exti_error *err)
{
    int rc = take_environment(c, err);

    if (rc == 0 && c->py->Py_InitializeFromInitConfig(c->named))
        rc = named_failed(c, NULL, err);
    for (size_t i = 0; i < c->late_count && rc == 0; i++)
        rc = set_late(c->py, &c->late[i], err);
    return rc;
}

static void named_clear(struct pyrt_initconfig *c)
{
    c->py->PyInitConfig_Free(c->named);
}

const struct pyrt_initconfig_ops pyrt_initconfig_named = {
    .init = named_init,
    .set = {[PYRT_SET_INT] = named_set_int,
            [PYRT_SET_TEXT] = named_set_text,
            [PYRT_SET_LIST] = named_set_list},
    .start = named_start,
    .clear = named_clear,
};
