/* Reads JSON.  Strings stay in one copy of the text: without its escapes, a string is never
 * longer. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

/* Ours have five levels.  Each takes room on the stack of a thread that is the host's. */
#define DEPTH_MAX 64

struct root {
    struct exti_json value; /* first: it is what callers have */
    char text[];
};

struct reader {
    const char *source; /* as given, for the place of an error */
    char *text;         /* its copy, in which strings lose their escapes */
    size_t n, at;
    struct exti_json *open; /* items of arrays and objects that have not ended yet */
    size_t open_count, open_cap;
    unsigned depth;
    const char *says;
    struct exti_error *err;
};

static void free_items(struct exti_json *v)
{
    for (size_t i = 0; v->items && i < v->count; i++)
        free_items(&v->items[i]);
    exti__free(v->items);
    exti__free(v->sorted);
}

void exti__json_free(struct exti_json *root)
{
    if (root)
        free_items(root);
    exti__free(root);
}

/* Columns count characters. */
static int fail_at(const struct reader *r, size_t at, const char *what)
{
    size_t line = 1, column = 1;

    for (size_t i = 0; i < at; i++) {
        if (r->source[i] == '\n') {
            line++;
            column = 1;
        } else {
            column += ((unsigned char)r->source[i] & 0xc0) != 0x80;
        }
    }
    return exti__fail(r->err, EXTI_E_FORMAT, at, "%sline %zu, column %zu: %s", r->says, line,
                      column, what);
}

/* The next character that is not blank, or 0 at the end. */
static char next_char(struct reader *r)
{
    while (r->at < r->n && r->text[r->at] && strchr(" \t\r\n", r->text[r->at]))
        r->at++;
    return r->at < r->n ? r->text[r->at] : 0;
}

/* ---- strings ---- */

/* The four digits of a \uXXXX at `at`. */
static bool read_unit(const struct reader *r, size_t at, uint32_t *out)
{
    uint32_t v = 0;

    if (r->n - at < 6 || r->text[at] != '\\' || r->text[at + 1] != 'u')
        return false;
    for (size_t i = at + 2; i < at + 6; i++) {
        const char c = r->text[i];

        if (c >= '0' && c <= '9')
            v = v << 4 | (uint32_t)(c - '0');
        else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            v = v << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
        else
            return false;
    }
    *out = v;
    return true;
}

static int read_code(struct reader *r, char **to)
{
    uint32_t code, low;
    size_t units = 1;

    if (!read_unit(r, r->at, &code))
        return fail_at(r, r->at, "\\u is not followed by four hexadecimal digits");
    if (!code)
        return fail_at(r, r->at, "\\u0000 is not allowed");
    if (code >= 0xd800 && code < 0xe000) {
        if (code >= 0xdc00 || !read_unit(r, r->at + 6, &low) || low < 0xdc00 || low >= 0xe000)
            return fail_at(r, r->at, "half a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        units = 2;
    }
    *to += exti__utf8_put(*to, code);
    r->at += 6 * units;
    return 0;
}

static int read_escape(struct reader *r, char **to)
{
    static const char escapes[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char c = r->n - r->at > 1 ? r->text[r->at + 1] : 0,
               *found = c ? strchr(escapes, c) : NULL;

    if (c == 'u')
        return read_code(r, to);
    if (!found)
        return fail_at(r, r->at, "unknown escape");
    *(*to)++ = means[found - escapes];
    r->at += 2;
    return 0;
}

static int read_string(struct reader *r, const char **text, size_t *count)
{
    const size_t start = r->at++;
    char *first = &r->text[r->at], *to = first;

    while (r->at < r->n && r->text[r->at] != '"') {
        const size_t n = exti__utf8_length(&r->text[r->at], r->n - r->at);
        int rc = 0;

        if (!n)
            return fail_at(r, r->at, "a string is not UTF-8");
        if ((unsigned char)r->text[r->at] < 0x20)
            return fail_at(r, r->at, "a string has a control character, or does not end");
        if (r->text[r->at] == '\\') {
            rc = read_escape(r, &to);
        } else {
            memmove(to, &r->text[r->at], n);
            to += n;
            r->at += n;
        }
        if (rc)
            return rc;
    }
    if (r->at == r->n)
        return fail_at(r, start, "a string does not end");
    *to = 0;
    r->at++;
    *text = first;
    *count = (size_t)(to - first);
    return 0;
}

/* ---- other values ---- */

static size_t skip_digits(struct reader *r)
{
    const size_t start = r->at;

    while (r->at < r->n && r->text[r->at] >= '0' && r->text[r->at] <= '9')
        r->at++;
    return r->at - start;
}

static bool skip_any(struct reader *r, const char *chars)
{
    const bool found = r->at < r->n && r->text[r->at] && strchr(chars, r->text[r->at]);

    r->at += found;
    return found;
}

/* `digits` of `n` bytes; counted below zero, where there is room for one more. */
static bool to_integer(const char *digits, size_t n, bool negative, int64_t *out)
{
    int64_t v = 0;

    for (size_t i = 0; i < n; i++) {
        const int64_t digit = digits[i] - '0';

        if (v < (INT64_MIN + digit) / 10)
            return false;
        v = v * 10 - digit;
    }
    if (!negative && v == INT64_MIN)
        return false;
    *out = negative ? v : -v;
    return true;
}

static int read_number(struct reader *r, struct exti_json *v)
{
    const size_t start = r->at;
    const bool negative = skip_any(r, "-");
    const size_t first = r->at, digits = skip_digits(r);
    bool sound = digits == 1 || (digits > 1 && r->text[first] != '0');

    v->type = EXTI_JSON_INTEGER;
    if (skip_any(r, ".")) {
        v->type = EXTI_JSON_REAL;
        sound = skip_digits(r) && sound;
    }
    if (skip_any(r, "eE")) {
        v->type = EXTI_JSON_REAL;
        skip_any(r, "+-");
        sound = skip_digits(r) && sound;
    }
    if (!sound)
        return fail_at(r, start, "not a number");
    if (v->type == EXTI_JSON_INTEGER)
        return to_integer(&r->text[first], digits, negative, &v->integer)
                   ? 0
                   : fail_at(r, start, "an integer is too large");
    v->text = &r->text[start];
    v->count = r->at - start;
    return 0;
}

static int read_word(struct reader *r, struct exti_json *v)
{
    static const struct {
        const char *text;
        enum exti_json_type type;
    } words[] = {{"null", EXTI_JSON_NULL}, {"false", EXTI_JSON_FALSE}, {"true", EXTI_JSON_TRUE}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i].text);

        if (r->n - r->at < n || memcmp(&r->text[r->at], words[i].text, n) != 0)
            continue;
        v->type = words[i].type;
        r->at += n;
        return 0;
    }
    return fail_at(r, r->at, r->at == r->n ? "the text ends before its value" : "not a value");
}

/* ---- arrays and objects ---- */

static int read_value(struct reader *r, struct exti_json *v);

static int read_name(struct reader *r, struct exti_json *v)
{
    size_t n;
    int rc;

    if (next_char(r) != '"')
        return fail_at(r, r->at, "a member has no name in quotes");
    rc = read_string(r, &v->name, &n);
    if (rc)
        return rc;
    if (next_char(r) != ':')
        return fail_at(r, r->at, "no ':' after a member's name");
    r->at++;
    return 0;
}

static int push_item(struct reader *r, struct exti_json *v)
{
    struct exti_json *open =
        exti__array_room(r->open, r->open_count, &r->open_cap, sizeof *r->open);

    if (!open) {
        free_items(v);
        return exti__fail_nomem(r->err);
    }
    r->open = open;
    r->open[r->open_count++] = *v;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct exti_json *const *)a)->name,
                  (*(const struct exti_json *const *)b)->name);
}

/* Of the names given twice, the one that comes first in the text. */
static int sort_members(const struct reader *r, const struct exti_json *v)
{
    const char *twice = NULL;

    for (size_t i = 0; i < v->count; i++)
        v->sorted[i] = &v->items[i];
    qsort(v->sorted, v->count, sizeof *v->sorted, by_name);
    for (size_t i = 1; i < v->count; i++) {
        const char *a = v->sorted[i - 1]->name, *b = v->sorted[i]->name;
        const char *later = a > b ? a : b;

        if (strcmp(a, b) == 0 && (!twice || later < twice))
            twice = later;
    }
    return twice ? fail_at(r, (size_t)(twice - r->text) - 1, "the object has this name already")
                 : 0;
}

/* Gives `v` the items from `first` on. */
static int take_items(struct reader *r, struct exti_json *v, size_t first)
{
    const size_t n = r->open_count - first;
    int rc = 0;

    if (!n)
        return 0;
    v->items = exti__realloc_array(NULL, n, sizeof *v->items);
    if (!v->items)
        return exti__fail_nomem(r->err);
    memcpy(v->items, &r->open[first], n * sizeof *v->items);
    v->count = n;
    r->open_count = first;
    if (v->type == EXTI_JSON_OBJECT) {
        v->sorted = exti__realloc_array(NULL, n, sizeof *v->sorted);
        rc = v->sorted ? sort_members(r, v) : exti__fail_nomem(r->err);
    }
    if (rc)
        free_items(v);
    return rc;
}

static int read_items(struct reader *r, struct exti_json *v, char end)
{
    const size_t first = r->open_count;
    int rc = 0;

    if (++r->depth > DEPTH_MAX)
        return fail_at(r, r->at, "too many values within each other");
    r->at++;
    while (!rc && (r->open_count > first || next_char(r) != end)) {
        struct exti_json item = {0};

        if (v->type == EXTI_JSON_OBJECT)
            rc = read_name(r, &item);
        if (!rc)
            rc = read_value(r, &item);
        if (!rc)
            rc = push_item(r, &item);
        if (rc || next_char(r) == end)
            break;
        if (r->text[r->at] != ',' || r->at == r->n)
            return fail_at(r, r->at, end == '}' ? "no ',' or '}' here" : "no ',' or ']' here");
        r->at++;
    }
    if (rc)
        return rc;
    r->at++;
    r->depth--;
    return take_items(r, v, first);
}

/* A failure leaves nothing to free in `v`. */
static int read_value(struct reader *r, struct exti_json *v)
{
    const char c = next_char(r);

    switch (c) {
    case '{':
        v->type = EXTI_JSON_OBJECT;
        return read_items(r, v, '}');
    case '[':
        v->type = EXTI_JSON_ARRAY;
        return read_items(r, v, ']');
    case '"':
        v->type = EXTI_JSON_STRING;
        return read_string(r, &v->text, &v->count);
    default:
        return c == '-' || (c >= '0' && c <= '9') ? read_number(r, v) : read_word(r, v);
    }
}

int exti__json_read(const char *text, size_t n, const char *says, struct exti_json **out,
                    struct exti_error *err)
{
    struct root *root = n < SIZE_MAX / 2 ? exti__alloc(sizeof *root + n + 1) : NULL;
    struct reader r = {.source = text, .n = n, .says = says, .err = err};
    int rc;

    if (!root)
        return exti__fail_nomem(err);
    root->value = (struct exti_json){0};
    r.text = memcpy(root->text, text, n);
    r.text[n] = 0;
    rc = read_value(&r, &root->value);
    if (!rc && (next_char(&r) || r.at < n)) {
        rc = fail_at(&r, r.at, "something follows the value");
        free_items(&root->value);
    }
    for (size_t i = 0; i < r.open_count; i++)
        free_items(&r.open[i]);
    exti__free(r.open);
    if (rc)
        exti__free(root);
    else
        *out = &root->value;
    return rc;
}
