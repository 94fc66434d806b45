/* JSON objects and their text.  Functions that take a json_t * accept NULL, jansson's answer when
 * memory is out. */
#ifndef BASE_JSON_TEXT_H
#define BASE_JSON_TEXT_H

#include <jansson.h>

#include <extisolate.h>

/* Writes `json` as text; exti__free *out.  `flags` are those of json_dumps. */
int exti__json_text(const json_t *json, size_t flags, char **out, struct exti_error *err);

/* Adds a member to the object `o` and returns `o`.  Takes over the caller's references to `o` and
 * `value`.  If either is NULL or memory is out, it releases them and returns NULL. */
json_t *exti__json_set(json_t *o, const char *key, json_t *value);

/* Adds a string, or nothing if `text` is NULL.  json_pack's "s*" is no substitute: it would
 * silently leave the member out when memory is out. */
json_t *exti__json_set_text(json_t *o, const char *key, const char *text);

#endif
