/* JSON as text in memory of the library's own. */
#ifndef LOADER_JSON_TEXT_H
#define LOADER_JSON_TEXT_H

#include <jansson.h>

#include "loader/extisolate.h"

/* `json` may be NULL: what jansson gives when memory is out.  `flags` are json_dumps's.  Free *out
 * with exti__free. */
int exti__json_text(const json_t *json, size_t flags, char **out, struct exti_error *err);

/* Gives the object `o`, which it takes over and returns, the member `key` unless `text` is NULL; NULL when
 * memory is out, or `o` is.  json_pack's "s*" would leave the member out instead. */
json_t *exti__json_set_text(json_t *o, const char *key, const char *text);

#endif
