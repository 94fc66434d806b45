/* Copies that are no module of an open context any more but are still mapped: a thread lives in them, or
 * something holds them.  Later contexts are to take them for what they are, another's.  They are known as
 * long as they are mapped.  ELF systems. */
#ifndef LOADER_TRACK_LINGERING_H
#define LOADER_TRACK_LINGERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exti_ctx;
struct exti_layout;
struct exti_module;

#if !defined(__APPLE__) && !defined(_WIN32)

/* Before anything else; 0 or an errno value. */
int exti__lingering_survive_forks(void);

/* From here on the module is one, until exti__lingering_sweep finds it unmapped.  Without memory it is not
 * known. */
void exti__lingering_add(const struct exti_module *m);

/* A module lies there now. */
void exti__lingering_forget_range(const struct exti_layout *layout);

/* Forgets those that are not mapped any more.  No lock is held. */
void exti__lingering_sweep(void);

/* Whether what is mapped at `address` from `path` is one, and not of this context. */
bool exti__lingering_is_others(const struct exti_ctx *ctx, uintptr_t address, const char *path);

/* The original of the one that is mapped from this path, which need not be there any more.  What `out` holds
 * matters only where there is one. */
bool exti__lingering_original(const char *copy, char *out, size_t size);

/* The context is about to be freed: its ghosts are nobody's. */
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
static inline bool exti__lingering_original(const char *copy, char *out, size_t size)
{
    (void)copy, (void)out, (void)size;
    return false;
}
static inline void exti__lingering_forget_ctx(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
