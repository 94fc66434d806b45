#include <CommonCrypto/CommonDigest.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/sha256.h"

/* CommonCrypto's calls cannot fail. */

int exti__sha256_init(struct exti_sha256 *h, struct exti_error *err)
{
    CC_SHA256_CTX *ctx = exti__alloc(sizeof *ctx);

    if (!ctx)
        return exti__fail_nomem(err);
    CC_SHA256_Init(ctx);
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
    const uint8_t *at = p;
    const CC_LONG most = (CC_LONG)1 << 30;

    while (n > most) {
        CC_SHA256_Update(h->state, at, most);
        at += most;
        n -= most;
    }
    CC_SHA256_Update(h->state, at, (CC_LONG)n);
}

int exti__sha256_end(struct exti_sha256 *h, uint8_t out[EXTI_SHA256_SIZE], struct exti_error *err)
{
    (void)err;
    CC_SHA256_Final(out, h->state);
    CC_SHA256_Init(h->state);
    return 0;
}
