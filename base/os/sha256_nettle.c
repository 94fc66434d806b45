#include <nettle/sha2.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/sha256.h"

int exti__sha256_init(struct exti_sha256 *h, struct exti_error *err)
{
    struct sha256_ctx *ctx = exti__alloc(sizeof *ctx);

    if (!ctx)
        return exti__fail_nomem(err);
    sha256_init(ctx);
    *h = (struct exti_sha256){.state = ctx};
    return 0;
}

void exti__sha256_free(struct exti_sha256 *h)
{
    exti__free(h->state);
    *h = (struct exti_sha256){0};
}

void exti__sha256_add(struct exti_sha256 *h, const void *p, size_t n)
{
    sha256_update(h->state, n, p);
}

int exti__sha256_end(struct exti_sha256 *h, uint8_t out[EXTI_SHA256_SIZE], struct exti_error *err)
{
    (void)err;
    sha256_digest(h->state, EXTI_SHA256_SIZE, out); /* also resets it */
    return 0;
}
