/* Most linkers put import slots into a section that the loader makes read-only. */
#include "loader/load/slot_writer.h"

#include <windows.h>

#include "base/os/win32.h"

bool exti__slot_write(struct exti_slot_writer *w, uintptr_t *slot, uintptr_t value)
{
    DWORD old;

    if (!VirtualProtect(slot, sizeof *slot, PAGE_READWRITE, &old)) {
        w->code = GetLastError();
        return false;
    }
    *slot = value;
    VirtualProtect(slot, sizeof *slot, old, &old);
    return true;
}

int exti__slots_end(struct exti_slot_writer *w, const char *what, struct exti_error *err)
{
    return w->code ? exti__fail_system(err, w->code, w->m->copy, "%s", what) : 0;
}
