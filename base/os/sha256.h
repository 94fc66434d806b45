/* SHA-256 by a library that uses the processor's own instructions: nettle, which adds little to a
 * program's start time, or the system's library on macOS and Windows. */
#ifndef BASE_OS_SHA256_H
#define BASE_OS_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include <extisolate.h>

enum { EXTI_SHA256_SIZE = 32 };

/* One hasher for any number of messages, so that a hash costs no allocation. */
struct exti_sha256 {
    void *state;
};

int exti__sha256_init(struct exti_sha256 *h, struct exti_error *err);
void exti__sha256_free(struct exti_sha256 *h); /* accepts a zeroed struct */

void exti__sha256_add(struct exti_sha256 *h, const void *p, size_t n);

/* Gives the hash of all bytes added since init or the last end. */
int exti__sha256_end(struct exti_sha256 *h, uint8_t out[EXTI_SHA256_SIZE], struct exti_error *err);

#endif
