#include <windows.h>

#include <bcrypt.h> /* after windows.h */

#include "base/error.h"
#include "base/mem.h"
#include "base/os/sha256.h"

struct state {
    BCRYPT_ALG_HANDLE algorithm;
    BCRYPT_HASH_HANDLE hash;
    NTSTATUS status; /* of the first failure; reported at the end */
};

static int fail_status(struct exti_error *err, NTSTATUS status)
{
    return exti__fail(err, EXTI_E_IO, EXTI_NO_OFFSET, "the system cannot hash: status 0x%lx",
                      (unsigned long)status);
}

static NTSTATUS new_hash(struct state *s)
{
    return BCryptCreateHash(s->algorithm, &s->hash, NULL, 0, NULL, 0, 0);
}

int exti__sha256_init(struct exti_sha256 *h, struct exti_error *err)
{
    struct state *s = exti__calloc(1, sizeof *s);
    NTSTATUS status;

    if (!s)
        return exti__fail_nomem(err);
    h->state = s;
    status = BCryptOpenAlgorithmProvider(&s->algorithm, BCRYPT_SHA256_ALGORITHM, NULL, 0);
    if (status >= 0)
        status = new_hash(s);
    if (status >= 0)
        return 0;
    exti__sha256_free(h);
    return fail_status(err, status);
}

void exti__sha256_free(struct exti_sha256 *h)
{
    struct state *s = h->state;

    if (s && s->hash)
        BCryptDestroyHash(s->hash);
    if (s && s->algorithm)
        BCryptCloseAlgorithmProvider(s->algorithm, 0);
    exti__free(s);
    *h = (struct exti_sha256){0};
}

void exti__sha256_add(struct exti_sha256 *h, const void *p, size_t n)
{
    struct state *s = h->state;
    const UCHAR *at = p;
    const ULONG most = 1ul << 30;

    while (n && s->status >= 0) {
        ULONG chunk = n < most ? (ULONG)n : most;

        s->status = BCryptHashData(s->hash, (UCHAR *)at, chunk, 0);
        at += chunk;
        n -= chunk;
    }
}

/* Makes a new hash object, which costs little: only Windows 8.1 and later have reusable ones. */
int exti__sha256_end(struct exti_sha256 *h, uint8_t out[EXTI_SHA256_SIZE], struct exti_error *err)
{
    struct state *s = h->state;
    NTSTATUS status = s->status;

    if (status >= 0)
        status = BCryptFinishHash(s->hash, out, EXTI_SHA256_SIZE, 0);
    if (s->hash)
        BCryptDestroyHash(s->hash);
    s->hash = NULL;
    s->status = new_hash(s);
    return status < 0 ? fail_status(err, status) : 0;
}
