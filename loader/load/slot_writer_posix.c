/* Both ld.so and dyld make one range of a module read-only once it is relocated; it becomes
 * writable for as long as slots are written. */
#include "loader/load/slot_writer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"

static bool protect_relro(struct exti_slot_writer *w, int prot)
{
    const struct exti_layout *l = &w->m->layout;

    if (!mprotect((void *)l->relro_lo, l->relro_hi - l->relro_lo, prot))
        return true;
    w->code = (uint32_t)errno;
    return false;
}

bool exti__slot_write(struct exti_slot_writer *w, uintptr_t *slot, uintptr_t value)
{
    const struct exti_layout *l = &w->m->layout;
    uintptr_t at = (uintptr_t)slot;

    if (at >= l->relro_lo && at < l->relro_hi && !w->unprotected) {
        if (!protect_relro(w, PROT_READ | PROT_WRITE))
            return false;
        w->unprotected = true;
    }
    memcpy(slot, &value, sizeof value); /* it may lie at any address */
    return true;
}

int exti__slots_end(struct exti_slot_writer *w, const char *what, struct exti_error *err)
{
    if (w->unprotected)
        protect_relro(w, PROT_READ);
    return w->code ? exti__fail_io(err, (int)w->code, w->m->copy, "%s", what) : 0;
}
