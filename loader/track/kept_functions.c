#define _GNU_SOURCE /* fopencookie */
#include "loader/track/kept_functions.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "base/mem.h"
#include "loader/process/dl.h"
#include "loader/track/address_map.h"

/* Guards the lists.  No lock of the C library is taken under it, but that of its conversions: a
 * thread that has its streams locked may come here. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

/* The lists are whole at any moment, so that the child of another thread needs no more. */
static void renew_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void install_fork_handlers(void)
{
    fork_error = pthread_atfork(NULL, NULL, renew_in_child);
}

int exti__kept_functions_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handlers);
    return fork_error;
}

/* The C library has functions of this library from here on. */
static void stay_loaded(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, exti__stay_loaded);
}

static bool is_in(const struct exti_module *m, uintptr_t address)
{
    return address >= m->layout.lo && address < m->layout.hi;
}

/* False after a second. */
static bool wait_for_none(const atomic_uint *inside)
{
    const struct timespec moment = {0, 1000000};

    for (int ms = 0; ms < 1000 && *inside; ms++)
        nanosleep(&moment, NULL);
    return *inside == 0;
}

/* ---- streams ---- */

struct kept_stream {
    FILE *file;
    void *cookie;
    struct exti_stream_functions io;
    uintptr_t function;  /* one of them, or 0 */
    atomic_bool ended;   /* only destructors call them */
    atomic_uint inside;  /* threads in the functions */
    atomic_uint holders; /* threads that end the stream, which must not be freed meanwhile */
    bool flushed;
    struct kept_stream *next;
};

static struct kept_stream *streams;

static bool enter_stream(struct kept_stream *s)
{
    s->inside++;
    if (!s->ended || exti__address_map_is_unloading(s->function))
        return true;
    s->inside--;
    errno = EBADF;
    return false;
}

static ssize_t read_stream(void *stream, char *out, size_t size)
{
    struct kept_stream *s = stream;
    ssize_t n;

    if (!enter_stream(s))
        return 0;
    n = s->io.read(s->cookie, out, size);
    s->inside--;
    return n;
}

/* fopencookie(3): 0 says that it has failed. */
static ssize_t write_stream(void *stream, const char *bytes, size_t size)
{
    struct kept_stream *s = stream;
    ssize_t n;

    if (!enter_stream(s))
        return 0;
    n = s->io.write(s->cookie, bytes, size);
    s->inside--;
    return n;
}

static int seek_stream(void *stream, off_t *offset, int whence)
{
    struct kept_stream *s = stream;
    int rc;

    if (!enter_stream(s))
        return -1;
    rc = s->io.seek(s->cookie, offset, whence);
    s->inside--;
    return rc;
}

static int close_stream(void *stream)
{
    struct kept_stream *s = stream, **link = &streams;
    int rc = 0;

    if (s->io.close && enter_stream(s)) {
        rc = s->io.close(s->cookie);
        s->inside--;
    }
    pthread_mutex_lock(&lock);
    while (*link && *link != s)
        link = &(*link)->next;
    if (*link)
        *link = s->next;
    pthread_mutex_unlock(&lock);
    /* In a forked child they may be threads of the parent's. */
    if (wait_for_none(&s->holders))
        exti__free(s);
    return rc;
}

static uintptr_t any_function(const struct exti_stream_functions *io)
{
    return io->write   ? (uintptr_t)io->write
           : io->read  ? (uintptr_t)io->read
           : io->close ? (uintptr_t)io->close
                       : (uintptr_t)io->seek;
}

FILE *exti__kept_stream_open(void *cookie, const char *mode, struct exti_stream_functions io)
{
    const cookie_io_functions_t ours = {.read = io.read ? read_stream : NULL,
                                        .write = io.write ? write_stream : NULL,
                                        .seek = io.seek ? seek_stream : NULL,
                                        .close = close_stream};
    struct kept_stream *s = exti__calloc(1, sizeof *s);

    if (!s) {
        errno = ENOMEM;
        return NULL;
    }
    stay_loaded();
    s->cookie = cookie;
    s->io = io;
    s->function = any_function(&io);
    s->ended = exti__address_map_is_unloading(s->function);
    s->file = fopencookie(s, mode, ours);
    if (!s->file) {
        exti__free(s);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    return s->file;
}

/* A stream of the module that is to be flushed or, with `end`, that has not ended; it has then. */
static struct kept_stream *take_stream(const struct exti_module *m, bool end)
{
    struct kept_stream *s;

    pthread_mutex_lock(&lock);
    for (s = streams; s && (s->ended || (!end && s->flushed) || !is_in(m, s->function));)
        s = s->next;
    if (s) {
        s->flushed = true;
        s->ended = end;
        s->holders++;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

/* A stream that another thread uses is left alone. */
static void flush_streams(const struct exti_module *m)
{
    struct kept_stream *s;

    while ((s = take_stream(m, false))) {
        if (!ftrylockfile(s->file)) {
            if (__fpending(s->file))
                fflush_unlocked(s->file);
            funlockfile(s->file);
        }
        s->holders--;
    }
}

static bool end_streams(const struct exti_module *m)
{
    struct kept_stream *s;
    bool left = true;

    while ((s = take_stream(m, true))) {
        left = wait_for_none(&s->inside) && left;
        s->holders--;
    }
    return left;
}

/* ---- conversions of printf ---- */

#ifdef __GLIBC__

/* Never freed, but used again, so that a thread may look at one that is being taken back. */
struct printf_hook {
    const struct exti_ctx *ctx; /* only compared */
    atomic_int conversion;
    printf_function *print;
    printf_arginfo_size_function *arguments;
    atomic_uint inside;       /* threads in the functions */
    struct printf_hook *next; /* of those in use the newest is first */
};

#define NO_CONVERSION (-1) /* of one that was taken back while a thread was inside */

static struct printf_hook *hooks, *free_hooks;
static _Atomic(struct printf_hook *) newest[UCHAR_MAX + 1]; /* for each conversion */

/* For some conversions the hook that the thread's printf has found the arguments by, and prints
 * with, even if there is a newer one by then. */
#define ASKED 64
static _Thread_local struct printf_hook *asked[ASKED];

/* False if the hook has been taken back. */
static bool enter_hook(struct printf_hook *h, int conversion)
{
    if (!h)
        return false;
    h->inside++;
    if (h->conversion == conversion)
        return true;
    h->inside--;
    return false;
}

/* What the C library takes for "as it is without". */
#define NO_ARGUMENTS (-1)
#define NOT_PRINTED (-2)

static int find_arguments(const struct printf_info *info, size_t n, int *types, int *sizes)
{
    const int conversion = (int)((unsigned)info->spec & UCHAR_MAX);
    struct printf_hook *h = newest[conversion];
    int count = NO_ARGUMENTS;

    asked[conversion % ASKED] = h;
    if (!enter_hook(h, conversion))
        return count;
    if (h->arguments)
        count = h->arguments(info, n, types, sizes);
    h->inside--;
    return count;
}

static int print(FILE *stream, const struct printf_info *info, const void *const *arguments)
{
    const int conversion = (int)((unsigned)info->spec & UCHAR_MAX);
    struct printf_hook *h = asked[conversion % ASKED];
    int count = NOT_PRINTED;

    if (!enter_hook(h, conversion))
        return count;
    if (h->print)
        count = h->print(stream, info, arguments);
    h->inside--;
    return count;
}

static void find_newest(int conversion)
{
    struct printf_hook *h = hooks;

    while (h && h->conversion != conversion)
        h = h->next;
    newest[conversion] = h;
}

/* No thread enters it any more. */
static void retire_hook(struct printf_hook *h)
{
    const int conversion = h->conversion;

    h->ctx = NULL;
    h->conversion = NO_CONVERSION;
    if (conversion != NO_CONVERSION)
        find_newest(conversion);
}

static void free_hook(struct printf_hook *h)
{
    h->next = free_hooks;
    free_hooks = h;
}

/* A hook that a thread is in stays on the list until its module ends. */
static void remove_former(const struct exti_ctx *ctx, int conversion)
{
    struct printf_hook **link = &hooks, *h;

    while ((h = *link) && (h->ctx != ctx || h->conversion != conversion))
        link = &h->next;
    if (!h)
        return;
    retire_hook(h);
    if (h->inside)
        return;
    *link = h->next;
    free_hook(h);
}

static struct printf_hook *new_hook(void)
{
    struct printf_hook *h = free_hooks;

    if (!h)
        return exti__calloc(1, sizeof *h);
    free_hooks = h->next;
    return h;
}

static int add_hook(const struct exti_ctx *ctx, int conversion, printf_function *printer,
                    printf_arginfo_size_function *arguments)
{
    struct printf_hook *h = new_hook();

    if (!h) {
        errno = ENOMEM;
        return -1;
    }
    h->ctx = ctx;
    h->print = printer;
    h->arguments = arguments;
    h->conversion = conversion;
    h->next = hooks;
    hooks = h;
    newest[conversion] = h;
    /* Never taken back: printf looks at its table twice, without a lock. */
    return register_printf_specifier(conversion, print, find_arguments);
}

int exti__printf_hook_set(const struct exti_ctx *ctx, int conversion, printf_function *printer,
                          printf_arginfo_size_function *arguments)
{
    const bool unloading = exti__address_map_is_unloading((uintptr_t)printer) ||
                           exti__address_map_is_unloading((uintptr_t)arguments);
    int rc = 0;

    if (conversion < 0 || conversion > UCHAR_MAX) {
        errno = EINVAL;
        return -1;
    }
    stay_loaded();
    pthread_mutex_lock(&lock);
    remove_former(ctx, conversion);
    if (!unloading && (printer || arguments))
        rc = add_hook(ctx, conversion, printer, arguments);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Takes the module's hooks off the list, into one of their own. */
static struct printf_hook *take_hooks(const struct exti_module *m)
{
    struct printf_hook **link = &hooks, *taken = NULL;

    pthread_mutex_lock(&lock);
    while (*link) {
        struct printf_hook *h = *link;

        if (!is_in(m, (uintptr_t)h->print) && !is_in(m, (uintptr_t)h->arguments)) {
            link = &h->next;
            continue;
        }
        *link = h->next;
        retire_hook(h);
        h->next = taken;
        taken = h;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

/* Those that a thread is in are not used again. */
static bool end_hooks(const struct exti_module *m)
{
    struct printf_hook *h, *next;
    bool left = true;

    for (h = take_hooks(m); h; h = next) {
        next = h->next;
        if (!wait_for_none(&h->inside)) {
            left = false;
            continue;
        }
        pthread_mutex_lock(&lock);
        free_hook(h);
        pthread_mutex_unlock(&lock);
    }
    return left;
}

/* ---- modifiers of printf ---- */

struct modifier {
    const wchar_t *text; /* owned */
    int bit;
    struct modifier *next;
};

static struct modifier *modifiers;

/* Without memory it will be registered again. */
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
    modifiers = m;
}

int exti__printf_modifier(const wchar_t *text)
{
    const struct modifier *m;
    int bit;

    pthread_mutex_lock(&lock);
    for (m = modifiers; m && wcscmp(m->text, text) != 0;)
        m = m->next;
    bit = m ? m->bit : register_printf_modifier(text);
    if (!m && bit >= 0)
        keep_modifier(text, bit);
    pthread_mutex_unlock(&lock);
    return bit;
}

#else

static bool end_hooks(const struct exti_module *m)
{
    (void)m;
    return true;
}

#endif

bool exti__kept_functions_end(const struct exti_module *m)
{
    bool hooks_left, streams_left;

    flush_streams(m);
    hooks_left = end_hooks(m);
    streams_left = end_streams(m);
    return hooks_left && streams_left;
}
