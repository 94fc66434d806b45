/* JSON as text in memory of the library's own. */
#ifndef BASE_JSON_TEXT_H
#define BASE_JSON_TEXT_H

#include <jansson.h>

#include <extisolate.h>

/* `json` may be NULL: what jansson gives when memory is out.  `flags` are json_dumps's.  Free *out
 * with exti__free. */
int exti__json_text(const json_t *json, size_t flags, char **out, struct exti_error *err);

/* Gives the object `o`, which it takes over and returns, the member `key`; NULL when memory is out, or `o`
 * or `value` is, which is taken over too. */
json_t *exti__json_set(json_t *o, const char *key, json_t *value);

/* The same, unless `text` is NULL.  json_pack's "s*" would leave the member out when memory is out. */
json_t *exti__json_set_text(json_t *o, const char *key, const char *text);

#endif
