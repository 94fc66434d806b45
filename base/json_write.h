/* Writes JSON (RFC 8259).  The first failure is kept, and exti__json_end reports it, so that what
 * comes between needs no checks. */
#ifndef BASE_JSON_WRITE_H
#define BASE_JSON_WRITE_H

#include "base/buf.h"
#include "base/json.h"

enum exti_json_style {
    EXTI_JSON_COMPACT,
    EXTI_JSON_SORTED, /* compact, each object's members by name */
    EXTI_JSON_INDENTED
};

struct exti_json_writer {
    struct exti_buf buf;
    enum exti_json_style style;
    unsigned depth;
    bool any; /* in the array or object that is open */
    int rc;
};

struct exti_json_writer exti__json_writer(enum exti_json_style style);

/* `kind` is '{' or '['; `name` is NULL in an array and at the top.  The writer does not sort
 * what it is given one by one. */
void exti__json_open(struct exti_json_writer *w, const char *name, char kind);
void exti__json_close(struct exti_json_writer *w, char kind);

void exti__json_put_string(struct exti_json_writer *w, const char *name, const char *text);
void exti__json_put_integer(struct exti_json_writer *w, const char *name, int64_t v);
void exti__json_put_boolean(struct exti_json_writer *w, const char *name, bool v);
void exti__json_put_value(struct exti_json_writer *w, const char *name, const struct exti_json *v);
/* A value as this writes it with EXTI_JSON_COMPACT or EXTI_JSON_SORTED. */
void exti__json_put_compact(struct exti_json_writer *w, const char *name, const char *json);

/* The text; exti__free it.  EXTI_E_UNSUPPORTED: some text was not UTF-8, which JSON has to be. */
int exti__json_end(struct exti_json_writer *w, char **out, struct exti_error *err);

/* One value as a text; exti__free it. */
int exti__json_text(const struct exti_json *v, enum exti_json_style style, char **out,
                    struct exti_error *err);

#endif
