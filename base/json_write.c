#include "base/json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

struct exti_json_writer exti__json_writer(enum exti_json_style style)
{
    return (struct exti_json_writer){.buf = exti__buf(SIZE_MAX / 2), .style = style};
}

static void append_bytes(struct exti_json_writer *w, const char *p, size_t n)
{
    if (!w->rc)
        w->rc = exti__buf_append(&w->buf, p, n, NULL);
}

static void append_text(struct exti_json_writer *w, const char *text)
{
    append_bytes(w, text, strlen(text));
}

static void break_line(struct exti_json_writer *w)
{
    if (w->style != EXTI_JSON_INDENTED)
        return;
    append_text(w, "\n");
    for (unsigned i = 0; i < w->depth; i++)
        append_text(w, "  ");
}

/* ---- strings ---- */

static void append_escape(struct exti_json_writer *w, char c)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char *found = strchr(escaped, c);
    char text[8];

    if (found)
        snprintf(text, sizeof text, "\\%c", names[found - escaped]);
    else
        snprintf(text, sizeof text, "\\u%04X", (unsigned)(unsigned char)c);
    append_text(w, text);
}

static void append_string(struct exti_json_writer *w, const char *text)
{
    const char *p = text;

    if (!w->rc && !exti__utf8_is(text))
        w->rc = EXTI_E_UNSUPPORTED;
    append_text(w, "\"");
    for (; *p; p++) {
        if ((unsigned char)*p >= 0x20 && *p != '"' && *p != '\\')
            continue;
        append_bytes(w, text, (size_t)(p - text));
        append_escape(w, *p);
        text = p + 1;
    }
    append_bytes(w, text, (size_t)(p - text));
    append_text(w, "\"");
}

/* ---- values ---- */

static void begin_item(struct exti_json_writer *w, const char *name)
{
    if (w->any)
        append_text(w, ",");
    if (w->depth)
        break_line(w);
    w->any = true;
    if (!name)
        return;
    append_string(w, name);
    append_text(w, w->style == EXTI_JSON_INDENTED ? ": " : ":");
}

void exti__json_open(struct exti_json_writer *w, const char *name, char kind)
{
    begin_item(w, name);
    append_bytes(w, &kind, 1);
    w->depth++;
    w->any = false;
}

void exti__json_close(struct exti_json_writer *w, char kind)
{
    w->depth--;
    if (w->any)
        break_line(w);
    append_text(w, kind == '{' ? "}" : "]");
    w->any = true;
}

void exti__json_put_string(struct exti_json_writer *w, const char *name, const char *text)
{
    begin_item(w, name);
    append_string(w, text);
}

void exti__json_put_integer(struct exti_json_writer *w, const char *name, int64_t v)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, v);
    begin_item(w, name);
    append_text(w, text);
}

void exti__json_put_boolean(struct exti_json_writer *w, const char *name, bool v)
{
    begin_item(w, name);
    append_text(w, v ? "true" : "false");
}

void exti__json_put_value(struct exti_json_writer *w, const char *name, const struct exti_json *v)
{
    const char kind = v->type == EXTI_JSON_OBJECT ? '{' : '[';

    switch (v->type) {
    case EXTI_JSON_OBJECT:
    case EXTI_JSON_ARRAY:
        exti__json_open(w, name, kind);
        for (size_t i = 0; i < v->count; i++) {
            const struct exti_json *item =
                w->style == EXTI_JSON_SORTED && v->sorted ? v->sorted[i] : &v->items[i];

            exti__json_put_value(w, item->name, item);
        }
        exti__json_close(w, kind);
        break;
    case EXTI_JSON_STRING:
        exti__json_put_string(w, name, v->text);
        break;
    case EXTI_JSON_INTEGER:
        exti__json_put_integer(w, name, v->integer);
        break;
    case EXTI_JSON_REAL:
        begin_item(w, name);
        append_bytes(w, v->text, v->count);
        break;
    case EXTI_JSON_NULL:
        begin_item(w, name);
        append_text(w, "null");
        break;
    default:
        exti__json_put_boolean(w, name, v->type == EXTI_JSON_TRUE);
    }
}

/* The length of the string at `p`, with its quotes. */
static size_t string_length(const char *p)
{
    size_t n = 1;

    while (p[n] && p[n] != '"')
        n += p[n] == '\\' && p[n + 1] ? 2 : 1;
    return n + (p[n] == '"');
}

void exti__json_put_compact(struct exti_json_writer *w, const char *name, const char *json)
{
    begin_item(w, name);
    while (*json) {
        const size_t n = *json == '"'                                       ? string_length(json)
                         : strncmp(json, "{}", 2) && strncmp(json, "[]", 2) ? 1
                                                                            : 2;

        if (n == 1 && strchr("}]", *json)) {
            w->depth--;
            break_line(w);
        }
        append_bytes(w, json, n);
        if (n == 1 && *json == ':' && w->style == EXTI_JSON_INDENTED)
            append_text(w, " ");
        w->depth += n == 1 && strchr("{[", *json);
        if (n == 1 && strchr("{[,", *json))
            break_line(w);
        json += n;
    }
}

int exti__json_end(struct exti_json_writer *w, char **out, struct exti_error *err)
{
    append_bytes(w, "", 1);
    if (!w->rc) {
        *out = (char *)w->buf.p;
        return 0;
    }
    exti__buf_free(&w->buf);
    if (w->rc == EXTI_E_UNSUPPORTED)
        return exti__fail(err, w->rc, EXTI_NO_OFFSET, "a name is not UTF-8, which JSON has to be");
    return exti__fail_nomem(err);
}

int exti__json_text(const struct exti_json *v, enum exti_json_style style, char **out,
                    struct exti_error *err)
{
    struct exti_json_writer w = exti__json_writer(style);

    exti__json_put_value(&w, NULL, v);
    return exti__json_end(&w, out, err);
}
