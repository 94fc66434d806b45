#include "runtime/embed/sink.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct extipy_sink {
    int fd;
    size_t refs;
    pthread_mutex_t writing; /* the system may write a long line in parts */
    struct extipy_sink *next;
};

static struct extipy_sink *sinks;
static pthread_mutex_t sinks_lock = PTHREAD_MUTEX_INITIALIZER;

static struct extipy_sink *new_sink(int fd)
{
    struct extipy_sink *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->fd = fd;
    pthread_mutex_init(&s->writing, NULL);
    s->next = sinks;
    sinks = s;
    return s;
}

struct extipy_sink *extipy__sink_open(int fd)
{
    struct extipy_sink *s;

    pthread_mutex_lock(&sinks_lock);
    for (s = sinks; s && s->fd != fd; s = s->next)
        continue;
    if (!s)
        s = new_sink(fd);
    if (s)
        s->refs++;
    pthread_mutex_unlock(&sinks_lock);
    return s;
}

void extipy__sink_close(struct extipy_sink *s)
{
    struct extipy_sink **link = &sinks;
    int last;

    if (!s)
        return;
    pthread_mutex_lock(&sinks_lock);
    last = --s->refs == 0;
    if (last) {
        while (*link != s)
            link = &(*link)->next;
        *link = s->next;
    }
    pthread_mutex_unlock(&sinks_lock);
    if (!last)
        return;
    pthread_mutex_destroy(&s->writing);
    free(s);
}

/* Returns 0 when the system would take more, or an errno. */
static int await_room(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    return poll(&p, 1, -1) >= 0 || errno == EINTR ? 0 : errno;
}

static int write_all(int fd, const char *bytes, size_t length)
{
    ssize_t n;
    int rc = 0;

    while (length && rc == 0) {
        n = write(fd, bytes, length);
        if (n >= 0) {
            bytes += n;
            length -= (size_t)n;
        } else if (errno == EAGAIN) {
            rc = await_room(fd);
        } else if (errno != EINTR) {
            rc = errno;
        }
    }
    return rc;
}

int extipy__sink_write(struct extipy_sink *s, const char *bytes, size_t length)
{
    int rc;

    pthread_mutex_lock(&s->writing);
    rc = write_all(s->fd, bytes, length);
    pthread_mutex_unlock(&s->writing);
    return rc;
}
