#define _GNU_SOURCE /* fopencookie */
#include "loader/interpose/kept_calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "base/mem.h"
#include "loader/track/address_map.h"
#include "loader/track/kept_functions.h"
#include "loader/track/redirects.h"

/* ---- buffers ---- */

/* Such buffers in place of those that would be unloaded with a copy; never freed, but used again
 * for the next stream at the same address. */
struct stream_buffer {
    const FILE *stream;
    char *bytes; /* owned */
    size_t size;
    struct stream_buffer *next;
};

static _Atomic(struct stream_buffer *) buffers;

/* Two threads do not set the buffer of one stream at once.  NULL without memory. */
static struct stream_buffer *buffer_of(const FILE *stream)
{
    struct stream_buffer *b = buffers;

    while (b && b->stream != stream)
        b = b->next;
    if (b)
        return b;
    b = exti__calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->stream = stream;
    b->next = buffers;
    while (!atomic_compare_exchange_weak(&buffers, &b->next, b))
        ;
    return b;
}

/* C11 7.21.5.6: the stream may use the array, or another. */
static int set_own_buffer(FILE *stream, int mode, size_t size)
{
    struct stream_buffer *b = buffer_of(stream);
    char *bytes = b && b->size < size ? exti__calloc(1, size) : NULL, *former;
    int rc;

    if (!b || (b->size < size && !bytes))
        return setvbuf(stream, NULL, mode, size);
    rc = setvbuf(stream, bytes ? bytes : b->bytes, mode, size);
    if (!bytes)
        return rc;
    former = rc ? bytes : b->bytes;
    if (!rc) {
        b->bytes = bytes;
        b->size = size;
    }
    exti__free(former);
    return rc;
}

static int interposed_setvbuf(FILE *stream, char *buffer, int mode, size_t size)
{
    struct exti_module m;

    if (!buffer || !size || mode == _IONBF || !exti__address_map_find((uintptr_t)buffer, &m))
        return setvbuf(stream, buffer, mode, size);
    return set_own_buffer(stream, mode, size);
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
        {"register_printf_modifier", EXTI_ADDRESS(exti__printf_modifier)},
#endif
    };

    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
