#define _GNU_SOURCE /* fopencookie */
#include "loader/track/kept_functions.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "loader/track/fork_lock.h"
#include "loader/track/streams.h"

struct kept_stream {
    void *cookie;
    struct exti_stream_functions io;
    atomic_bool ended; /* the functions are unloaded */
    struct kept_stream *next;
};

/* Guards both lists.  The C library's lock for conversions is taken under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;
static struct kept_stream *streams;

static void lock_lists(void)
{
    exti__fork_lock(&lock);
}

static void unlock_lists(void)
{
    exti__fork_unlock(&lock);
}

static void install_fork_handlers(void)
{
    fork_error = pthread_atfork(lock_lists, unlock_lists, unlock_lists);
}

int exti__kept_functions_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handlers);
    return fork_error;
}

static bool is_in(const struct exti_module *m, uintptr_t address)
{
    return address >= m->layout.lo && address < m->layout.hi;
}

/* ---- streams ---- */

static ssize_t read_stream(void *stream, char *out, size_t size)
{
    const struct kept_stream *s = stream;

    return s->ended ? 0 : s->io.read(s->cookie, out, size);
}

/* fopencookie(3): 0 says that it has failed. */
static ssize_t write_stream(void *stream, const char *bytes, size_t size)
{
    const struct kept_stream *s = stream;

    if (!s->ended)
        return s->io.write(s->cookie, bytes, size);
    errno = EBADF;
    return 0;
}

static int seek_stream(void *stream, off_t *offset, int whence)
{
    const struct kept_stream *s = stream;

    if (!s->ended)
        return s->io.seek(s->cookie, offset, whence);
    errno = EBADF;
    return -1;
}

static int close_stream(void *stream)
{
    struct kept_stream *s = stream, **link = &streams;
    const int rc = s->ended || !s->io.close ? 0 : s->io.close(s->cookie);

    lock_lists();
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    unlock_lists();
    exti__free(s);
    return rc;
}

FILE *exti__kept_stream_open(void *cookie, const char *mode, struct exti_stream_functions io)
{
    const cookie_io_functions_t ours = {.read = io.read ? read_stream : NULL,
                                        .write = io.write ? write_stream : NULL,
                                        .seek = io.seek ? seek_stream : NULL,
                                        .close = close_stream};
    struct kept_stream *s = exti__calloc(1, sizeof *s);
    FILE *f = NULL;

    if (!s) {
        errno = ENOMEM;
        return NULL;
    }
    s->cookie = cookie;
    s->io = io;
    f = fopencookie(s, mode, ours);
    if (!f) {
        exti__free(s);
        return NULL;
    }
    lock_lists();
    s->next = streams;
    streams = s;
    unlock_lists();
    return f;
}

static bool has_stream(const struct exti_module *m, const struct kept_stream *s)
{
    return is_in(m, (uintptr_t)s->io.read) || is_in(m, (uintptr_t)s->io.write) ||
           is_in(m, (uintptr_t)s->io.seek) || is_in(m, (uintptr_t)s->io.close);
}

void exti__kept_streams_flush(const struct exti_module *m)
{
    const struct kept_stream *s;

    lock_lists();
    for (s = streams; s && !has_stream(m, s);)
        s = s->next;
    unlock_lists();
    if (s)
        exti__streams_flush();
}

void exti__kept_streams_end(const struct exti_module *m)
{
    lock_lists();
    for (struct kept_stream *s = streams; s; s = s->next)
        if (has_stream(m, s))
            s->ended = true;
    unlock_lists();
}

/* ---- conversions of printf ---- */

#ifdef __GLIBC__

struct printf_hook {
    const struct exti_ctx *ctx; /* only compared */
    int conversion;
    printf_function *print;
    printf_arginfo_size_function *arguments;
    struct printf_hook *next;
};

static struct printf_hook *hooks; /* the newest is first; the lock guards them, too */

/* Has the C library call the newest of the conversion, or none. */
static int install_newest(int conversion)
{
    const struct printf_hook *h = hooks;

    while (h && h->conversion != conversion)
        h = h->next;
    return register_printf_specifier(conversion, h ? h->print : NULL, h ? h->arguments : NULL);
}

static void remove_hook(struct printf_hook **link)
{
    struct printf_hook *h = *link;

    *link = h->next;
    exti__free(h);
}

static void remove_former(const struct exti_ctx *ctx, int conversion)
{
    struct printf_hook **link = &hooks;

    while (*link && ((*link)->ctx != ctx || (*link)->conversion != conversion))
        link = &(*link)->next;
    if (*link)
        remove_hook(link);
}

int exti__printf_hook_set(const struct exti_ctx *ctx, int conversion, printf_function *print,
                          printf_arginfo_size_function *arguments)
{
    struct printf_hook *h = exti__calloc(1, sizeof *h);
    int rc;

    if (!h) {
        errno = ENOMEM;
        return -1;
    }
    *h = (struct printf_hook){ctx, conversion, print, arguments, NULL};
    lock_lists();
    remove_former(ctx, conversion);
    h->next = hooks;
    hooks = h;
    if (!print)
        remove_hook(&hooks);
    rc = install_newest(conversion);
    if (rc && print)
        remove_hook(&hooks);
    unlock_lists();
    return rc;
}

void exti__printf_hooks_drop(const struct exti_module *m)
{
    struct printf_hook **link = &hooks;

    lock_lists();
    while (*link) {
        const int conversion = (*link)->conversion;

        if (!is_in(m, (uintptr_t)(*link)->print) && !is_in(m, (uintptr_t)(*link)->arguments)) {
            link = &(*link)->next;
            continue;
        }
        remove_hook(link);
        install_newest(conversion);
    }
    unlock_lists();
}

#else

void exti__printf_hooks_drop(const struct exti_module *m)
{
    (void)m;
}

#endif
