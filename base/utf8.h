/* UTF-8, as RFC 3629 has it: no surrogates, nothing longer than needed. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of bytes of the character at `p`, of which `n` bytes are left; 0: it is not UTF-8. */
size_t exti__utf8_length(const char *p, size_t n);

bool exti__utf8_is(const char *text);

/* Writes the character `code` at `out`, which has room for 4 bytes, and returns how many it
 * took. */
size_t exti__utf8_put(char *out, uint32_t code);

#endif
