#include "base/os/fs_random.h"

#include <windows.h>

#include <bcrypt.h> /* after windows.h */

#include "base/error.h"

int exti__fs_random(void *p, size_t n, const char *use, struct exti_error *err)
{
    NTSTATUS status = BCryptGenRandom(NULL, p, (ULONG)n, BCRYPT_USE_SYSTEM_PREFERRED_RNG);

    if (status >= 0)
        return 0;
    return exti__fail(err, EXTI_E_IO, EXTI_NO_OFFSET,
                      "cannot get random bytes for %s: status 0x%lx", use, (unsigned long)status);
}
