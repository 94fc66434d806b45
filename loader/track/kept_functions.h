/* Functions of copies that the C library keeps: those of streams made by fopencookie, and what
 * printf calls for conversions of its users.  It does so until the process ends, and a copy may be
 * unloaded before.  ELF systems.  Any thread. */
#ifndef LOADER_TRACK_KEPT_FUNCTIONS_H
#define LOADER_TRACK_KEPT_FUNCTIONS_H

#include "loader/track/module.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include <stdio.h>
#include <sys/types.h>

#ifdef __GLIBC__
#include <printf.h>
#endif

/* Installs the fork handlers; 0 or an errno value.  To be called before any copy is loaded. */
int exti__kept_functions_survive_forks(void);

/* Those of fopencookie(3); each may be NULL. */
struct exti_stream_functions {
    ssize_t (*read)(void *cookie, char *out, size_t size);
    ssize_t (*write)(void *cookie, const char *bytes, size_t size);
    int (*seek)(void *cookie, off_t *offset, int whence);
    int (*close)(void *cookie);
};

/* As fopencookie(3).  When the functions have been unloaded, the stream is at its end, and what is
 * written to it is lost, with EBADF. */
FILE *exti__kept_stream_open(void *cookie, const char *mode, struct exti_stream_functions io);

/* The module will be unloaded: has its streams write what they have buffered. */
void exti__kept_streams_flush(const struct exti_module *m);
/* It is not mapped any more. */
void exti__kept_streams_end(const struct exti_module *m);

#ifdef __GLIBC__
/* As register_printf_specifier(3), for a copy of the context.  printf calls the functions of the
 * context that was the last to register any for the conversion, and has not taken them back. */
int exti__printf_hook_set(const struct exti_ctx *ctx, int conversion, printf_function *print,
                          printf_arginfo_size_function *arguments);
#endif

/* The module will be unloaded. */
void exti__printf_hooks_drop(const struct exti_module *m);

#else

static inline int exti__kept_functions_survive_forks(void)
{
    return 0;
}
static inline void exti__kept_streams_flush(const struct exti_module *m)
{
    (void)m;
}
static inline void exti__kept_streams_end(const struct exti_module *m)
{
    (void)m;
}
static inline void exti__printf_hooks_drop(const struct exti_module *m)
{
    (void)m;
}

#endif
#endif
