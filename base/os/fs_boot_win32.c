#include "base/os/fs_boot.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include <winternl.h> /* after windows.h */

#include <extisolate.h>

/* The start of the system by the clock of that time.  Adjusting the clock moves both numbers. */
int exti__fs_boot(char *out, size_t cap)
{
    struct {
        LARGE_INTEGER boot_time, current_time, time_zone_bias;
        ULONG time_zone_id, reserved;
        ULONGLONG boot_time_bias, sleep_time_bias;
    } t = {0};
    char id[32] = "";

    if (NtQuerySystemInformation(SystemTimeOfDayInformation, &t, sizeof t, NULL) == 0 &&
        t.boot_time.QuadPart)
        snprintf(id, sizeof id, "%" PRIx64, (uint64_t)t.boot_time.QuadPart - t.boot_time_bias);
    if (strlen(id) >= cap)
        return EXTI_E_ARG;
    memcpy(out, id, strlen(id) + 1);
    return 0;
}
