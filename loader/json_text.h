/* JSON as text in memory of the library's own. */
#ifndef LOADER_JSON_TEXT_H
#define LOADER_JSON_TEXT_H

#include <jansson.h>

#include "loader/extisolate.h"

/* `json` may be NULL: what jansson gives when memory is out.  `flags` are json_dumps's.  Free *out
 * with exti__free. */
int exti__json_text(const json_t *json, size_t flags, char **out, struct exti_error *err);

#endif
