/* NULL-ended arrays of strings. */
#ifndef LOADER_RESOLVE_STRING_LIST_H
#define LOADER_RESOLVE_STRING_LIST_H

#include <extisolate.h>

int exti__strings_copy(const char *const *from, char ***out, struct exti_error *err);
void exti__strings_free(char **strings); /* NULL ok */

#endif
