/* Functions of copies that the C library keeps: those of streams made by fopencookie, and what
 * printf calls for conversions of its users.  It does so until the process ends, and a copy may be
 * unloaded before.  So the C library gets functions of this library, which call those of copies
 * while these are loaded.  ELF systems.  Any thread. */
#ifndef LOADER_TRACK_KEPT_FUNCTIONS_H
#define LOADER_TRACK_KEPT_FUNCTIONS_H

#include "loader/track/module.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include <stdio.h>
#include <sys/types.h>
#include <wchar.h>

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

#ifdef __GLIBC__
/* As register_printf_specifier(3), for a copy of the context.  printf calls the functions of the
 * context that was the last to register any for the conversion, and has not taken them back. */
int exti__printf_hook_set(const struct exti_ctx *ctx, int conversion, printf_function *print,
                          printf_arginfo_size_function *arguments);

/* As register_printf_modifier(3).  A process has 16 of them, and none can be given back: all
 * contexts have the same. */
int exti__printf_modifier(const wchar_t *text);
#endif

/* The module will be unloaded: has its streams write what they have buffered, and waits a second at
 * most for threads that run in such functions of the module.  From here on only its destructors
 * call them.  False if a thread still runs in one. */
bool exti__kept_functions_end(const struct exti_module *m);

#else

static inline int exti__kept_functions_survive_forks(void)
{
    return 0;
}
static inline bool exti__kept_functions_end(const struct exti_module *m)
{
    (void)m;
    return true;
}

#endif
#endif
