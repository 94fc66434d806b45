/* Option structs, which callers of other versions give by their size. */
#ifndef RUNTIME_EMBED_OPTIONS_H
#define RUNTIME_EMBED_OPTIONS_H

#include <stddef.h>

#include <extisolate.h>

/* Copies the caller's struct, which begins with its size, into `out` of `known` bytes, and fills up
 * with zeros.  EXTI_E_ARG: it has no size, or members that are not known here and not zero. */
int extipy__options_read(void *out, size_t known, const void *given, struct exti_error *err);

/* Copies as much of `filled`, of `known` bytes, into the caller's struct as its size says; leaves
 * the size itself. */
int extipy__options_write(void *given, const void *filled, size_t known);

struct extipy_opts;
struct pyrt_setting;

/* The settings among the options as runtime/ has them, for free; NULL: no memory. */
struct pyrt_setting *extipy__options_settings(const struct extipy_opts *opts);

#endif
