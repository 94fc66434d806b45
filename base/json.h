/* JSON (RFC 8259), as the library reads it: manifests and quirk files.  A text that is not JSON
 * and a lack of memory are told apart, and nothing here uses memory that a host has a hand
 * in.  Values do not change once read: any thread. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <extisolate.h>

enum exti_json_type {
    EXTI_JSON_NULL,
    EXTI_JSON_FALSE,
    EXTI_JSON_TRUE,
    EXTI_JSON_INTEGER,
    EXTI_JSON_REAL,
    EXTI_JSON_STRING,
    EXTI_JSON_ARRAY,
    EXTI_JSON_OBJECT
};

struct exti_json {
    enum exti_json_type type;
    const char *name; /* of an object's member */
    const char *text; /* of a string; of a real, as it was written and without an end */
    int64_t integer;
    struct exti_json *items;         /* of an array or object, in the text's order; owned */
    const struct exti_json **sorted; /* the members of an object by name; owned */
    size_t count;                    /* items, or bytes of `text` */
};

/* Reads a text of `n` bytes; exti__json_free *out.  A text that is not JSON, has a name twice in
 * one object, or \u0000 in a string is EXTI_E_FORMAT with the offset; `says`, line and column
 * begin the message. */
int exti__json_read(const char *text, size_t n, const char *says, struct exti_json **out,
                    struct exti_error *err);
void exti__json_free(struct exti_json *root); /* NULL ok */

/* ---- values; NULL stands for one that is not there ---- */

bool exti__json_is(const struct exti_json *v, enum exti_json_type type);

/* How many items `v` has; 0 unless it is of that type. */
size_t exti__json_count(const struct exti_json *v, enum exti_json_type type);

/* The member of that name; NULL: none, or `o` is not an object. */
const struct exti_json *exti__json_get(const struct exti_json *o, const char *name);

/* The text of a member that is a string, or NULL. */
const char *exti__json_string(const struct exti_json *o, const char *name);

/* Set *out to a member's value.  False, and *out is as it was: it is missing or of another type. */
bool exti__json_integer(const struct exti_json *o, const char *name, int64_t *out);
bool exti__json_boolean(const struct exti_json *o, const char *name, bool *out);

#endif
