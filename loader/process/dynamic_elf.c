#include "loader/process/dynamic_elf.h"

#include <sys/mman.h>
#include <unistd.h>

/* The pages that must be made writable for the dynamic section to be changed: empty if it is
 * writable.  Most linkers have it made read-only once it is relocated, some from the start. */
static struct exti_layout fixed_pages(const struct exti_loaded *lib,
                                      const struct exti_layout *layout)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)lib->dynamic;
    const ElfW(Dyn) *end = lib->dynamic;

    if (at >= layout->relro_lo && at < layout->relro_hi)
        return (struct exti_layout){.lo = layout->relro_lo, .hi = layout->relro_hi};
    if (!layout->fixed_dynamic)
        return (struct exti_layout){0};
    while (end->d_tag != DT_NULL)
        end++;
    return (struct exti_layout){.lo = at & ~(page - 1),
                                .hi = ((uintptr_t)(end + 1) + page - 1) & ~(page - 1)};
}

bool exti__dynamic_change(const struct exti_loaded *lib, const struct exti_layout *layout,
                          void (*change)(const struct exti_loaded *lib, ElfW(Dyn) * d))
{
    const struct exti_layout fixed = fixed_pages(lib, layout);
    void *const pages = (void *)fixed.lo;
    const size_t size = fixed.hi - fixed.lo;
    ElfW(Dyn) *d = (ElfW(Dyn) *)lib->dynamic;

    if (size && mprotect(pages, size, PROT_READ | PROT_WRITE))
        return false;
    do
        change(lib, d);
    while (d++->d_tag != DT_NULL);
    if (size)
        mprotect(pages, size, PROT_READ);
    return true;
}
