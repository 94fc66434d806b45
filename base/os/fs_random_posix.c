#include "base/os/fs_random.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"

int exti__fs_random(void *p, size_t n, const char *use, struct exti_error *err)
{
    return getentropy(p, n) ? exti__fail_io(err, errno, "", "cannot get random bytes for %s", use)
                            : 0;
}
