#include "base/os/fs_boot.h"

#include <fcntl.h>
#include <string.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#include <unistd.h>

#include <extisolate.h>

#if defined(__APPLE__)
static void read_boot(char *id, size_t cap)
{
    if (sysctlbyname("kern.bootsessionuuid", id, &cap, NULL, 0))
        id[0] = 0;
}
#else
static void read_boot(char *id, size_t cap)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (read(fd, id, cap) < 0)
        id[0] = 0;
    close(fd);
}
#endif

int exti__fs_boot(char *out, size_t cap)
{
    char id[64] = {0};
    size_t n;

    read_boot(id, sizeof id - 1);
    n = strcspn(id, "\n");
    if (n >= cap)
        return EXTI_E_ARG;
    memcpy(out, id, n);
    out[n] = 0;
    return 0;
}
