#include <openssl/evp.h>

#include "loader/base/error.h"
#include "loader/base/sha256.h"

/* A digest that the context has already is not looked up again. */
static bool start(EVP_MD_CTX *ctx, const EVP_MD *md)
{
    return EVP_DigestInit_ex(ctx, md, NULL) == 1;
}

int exti__sha256_init(struct exti_sha256 *h, struct exti_error *err)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    if (!ctx)
        return exti__fail_nomem(err);
    if (!start(ctx, EVP_sha256())) {
        EVP_MD_CTX_free(ctx);
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "libcrypto offers no SHA-256 (see its openssl.cnf)");
    }
    *h = (struct exti_sha256){.state = ctx};
    return 0;
}

void exti__sha256_free(struct exti_sha256 *h)
{
    EVP_MD_CTX_free(h->state);
    *h = (struct exti_sha256){0};
}

void exti__sha256_add(struct exti_sha256 *h, const void *p, size_t n)
{
    if (EVP_DigestUpdate(h->state, p, n) != 1)
        h->failed = true;
}

int exti__sha256_end(struct exti_sha256 *h, uint8_t out[EXTI_SHA256_SIZE], struct exti_error *err)
{
    uint8_t hash[EXTI_SHA256_SIZE];
    bool good = EVP_DigestFinal_ex(h->state, hash, NULL) == 1 && start(h->state, NULL);

    if (!good || h->failed) {
        h->failed = false;
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "libcrypto's SHA-256 failed");
    }
    for (size_t i = 0; i < sizeof hash; i++)
        out[i] = hash[i];
    return 0;
}
