#define _GNU_SOURCE /* fopencookie */
#include "loader/interpose/kept_calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <wchar.h>

#include "base/mem.h"
#include "loader/track/address_map.h"
#include "loader/track/kept_functions.h"
#include "loader/track/redirects.h"

/* ---- buffers ---- */

/* C11 7.21.5.6: the stream may use the array.  One that is unloaded with its copy is not used, and
 * the stream has a buffer of its own. */
static int interposed_setvbuf(FILE *stream, char *buffer, int mode, size_t size)
{
    struct exti_module m;
    const bool is_copys = buffer && exti__address_map_find((uintptr_t)buffer, &m);

    return setvbuf(stream, is_copys ? NULL : buffer, mode, size);
}

static void interposed_setbuffer(FILE *stream, char *buffer, size_t size)
{
    interposed_setvbuf(stream, buffer, buffer ? _IOFBF : _IONBF, size);
}

static void interposed_setbuf(FILE *stream, char *buffer)
{
    interposed_setbuffer(stream, buffer, BUFSIZ);
}

/* ---- the system's log ---- */

/* Names that contexts have given themselves; never freed, as syslog may be using any. */
struct log_name {
    struct log_name *next;
    char text[];
};

static _Atomic(struct log_name *) log_names;

/* The same text, which stays; NULL without memory. */
static const char *keep_name(const char *name)
{
    const size_t size = strlen(name) + 1;
    struct log_name *n;

    for (n = log_names; n; n = n->next)
        if (strcmp(n->text, name) == 0)
            return n->text;
    n = exti__calloc(1, sizeof *n + size);
    if (!n)
        return NULL;
    memcpy(n->text, name, size);
    n->next = log_names;
    while (!atomic_compare_exchange_weak(&log_names, &n->next, n))
        ;
    return n->text;
}

static void interposed_openlog(const char *name, int options, int facility)
{
    openlog(name ? keep_name(name) : NULL, options, facility);
}

/* ---- functions ---- */

static FILE *interposed_fopencookie(void *cookie, const char *mode, cookie_io_functions_t io)
{
    const struct exti_stream_functions functions = {io.read, io.write, io.seek, io.close};

    return exti__kept_stream_open(cookie, mode, functions);
}

#ifdef __GLIBC__

static int interposed_register_printf_specifier(int conversion, printf_function *print,
                                                printf_arginfo_size_function *arguments)
{
    struct exti_ctx *ctx = exti__address_map_ctx((uintptr_t)__builtin_return_address(0));

    return ctx ? exti__printf_hook_set(ctx, conversion, print, arguments)
               : register_printf_specifier(conversion, print, arguments);
}

/* A process has 16 of them, and none can be given back: the same for all contexts. */
struct modifier {
    const wchar_t *text; /* owned */
    int bit;
    struct modifier *next;
};

static _Atomic(struct modifier *) modifiers;

static void keep_modifier(const wchar_t *text, int bit)
{
    const size_t size = (wcslen(text) + 1) * sizeof *text;
    struct modifier *m = exti__calloc(1, sizeof *m);
    wchar_t *kept = m ? exti__calloc(1, size) : NULL;

    if (!kept) {
        exti__free(m);
        return;
    }
    memcpy(kept, text, size);
    m->text = kept;
    m->bit = bit;
    m->next = modifiers;
    while (!atomic_compare_exchange_weak(&modifiers, &m->next, m))
        ;
}

static int interposed_register_printf_modifier(const wchar_t *text)
{
    int bit;

    for (const struct modifier *m = modifiers; m; m = m->next)
        if (wcscmp(m->text, text) == 0)
            return m->bit;
    bit = register_printf_modifier(text);
    if (bit >= 0)
        keep_modifier(text, bit);
    return bit;
}

#endif

/* ---- looking them up ---- */

void *exti__kept_call(const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"setvbuf", EXTI_ADDRESS(interposed_setvbuf)},
        {"_IO_setvbuf", EXTI_ADDRESS(interposed_setvbuf)},
        {"setbuffer", EXTI_ADDRESS(interposed_setbuffer)},
        {"_IO_setbuffer", EXTI_ADDRESS(interposed_setbuffer)},
        {"setbuf", EXTI_ADDRESS(interposed_setbuf)},
        {"openlog", EXTI_ADDRESS(interposed_openlog)},
        {"fopencookie", EXTI_ADDRESS(interposed_fopencookie)},
#ifdef __GLIBC__
        {"register_printf_specifier", EXTI_ADDRESS(interposed_register_printf_specifier)},
        {"register_printf_function", EXTI_ADDRESS(interposed_register_printf_specifier)},
        {"register_printf_modifier", EXTI_ADDRESS(interposed_register_printf_modifier)},
#endif
    };

    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
