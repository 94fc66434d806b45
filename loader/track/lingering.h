/* Copies that belong to no module of an open context any more but are still mapped, because a
 * thread runs in them or something holds a handle.  Later contexts must take them for another
 * context's.  Each is known for as long as it is mapped.  ELF systems.  Any thread. */
#ifndef LOADER_TRACK_LINGERING_H
#define LOADER_TRACK_LINGERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exti_ctx;
struct exti_layout;
struct exti_module;

#if !defined(__APPLE__) && !defined(_WIN32)

/* Installs the fork handlers; 0 or an errno value. */
int exti__lingering_survive_forks(void);

/* The module lingers from here on, until exti__lingering_sweep finds it unmapped.  Without memory
 * it is not recorded. */
void exti__lingering_add(const struct exti_module *m);

/* Forgets lingering modules in this range: a new module occupies it. */
void exti__lingering_forget_range(const struct exti_layout *layout);

/* Forgets modules that are not mapped any more.  To be called with no lock of the library held. */
void exti__lingering_sweep(void);

/* The same, if any is another context's or nobody's. */
void exti__lingering_sweep_others(const struct exti_ctx *ctx);

/* Whether the file `path`, mapped at `address`, is a lingering module of another context. */
bool exti__lingering_is_others(const struct exti_ctx *ctx, uintptr_t address, const char *path);

/* Writes the original of the lingering copy `copy` into `out`; the file itself may be gone.  If
 * there is none the contents of `out` are unspecified. */
bool exti__lingering_original(const char *copy, char *out, size_t size);

/* To be called before the context is freed: its lingering modules become nobody's. */
void exti__lingering_forget_ctx(const struct exti_ctx *ctx);

#else

static inline int exti__lingering_survive_forks(void)
{
    return 0;
}
static inline void exti__lingering_add(const struct exti_module *m)
{
    (void)m;
}
static inline void exti__lingering_forget_range(const struct exti_layout *layout)
{
    (void)layout;
}
static inline void exti__lingering_sweep(void)
{
}
static inline void exti__lingering_sweep_others(const struct exti_ctx *ctx)
{
    (void)ctx;
}
static inline bool exti__lingering_original(const char *copy, char *out, size_t size)
{
    (void)copy, (void)out, (void)size;
    return false;
}
static inline bool exti__lingering_is_others(const struct exti_ctx *ctx, uintptr_t address,
                                             const char *path)
{
    (void)ctx, (void)address, (void)path;
    return false;
}
static inline void exti__lingering_forget_ctx(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
