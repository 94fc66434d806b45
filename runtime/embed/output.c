/* A line that a thread has begun is kept until that thread ends it: print writes a line in two
 * parts, and another thread may run between them. */
#include "runtime/embed/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/embed/carrier.h"
#include "runtime/embed/sink.h"
#include "runtime/embed/source.h"
#include "runtime/fail.h"

#if defined(EXTI_ANALYZE) && !defined(__clang__) /* gcc 12 takes the text of a line for lost */
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

struct extipy_line {
    struct extipy_line *next;
    unsigned long thread;
    size_t length, room;
    char *text;
};

/* Of a thread, for as long as the process runs.  The system gives the ids of threads that have
 * ended to others. */
static unsigned long thread_number(void)
{
    static atomic_ulong last;
    static _Thread_local unsigned long mine;

    if (!mine)
        mine = atomic_fetch_add(&last, 1) + 1;
    return mine;
}

/* ---- lines ---- */

static void free_line(struct extipy_line *line)
{
    if (line)
        free(line->text);
    free(line);
}

/* Returns 0 or an errno. */
static int append_text(struct extipy_line *line, const char *text, size_t length)
{
    size_t room = (line->length + length) * 2;
    char *grown;

    if (!line->text || line->room - line->length < length) {
        grown = realloc(line->text, room);
        if (!grown)
            return ENOMEM;
        line->text = grown;
        line->room = room;
    }
    memcpy(line->text + line->length, text, length);
    line->length += length;
    return 0;
}

/* The context's lock is held. */
static struct extipy_line *take_line(struct extipy_output *o, unsigned long thread)
{
    struct extipy_line **link = &o->lines, *line;

    while (*link && (*link)->thread != thread)
        link = &(*link)->next;
    line = *link;
    if (line)
        *link = line->next;
    return line;
}

/* ---- delivery, without the GIL ---- */

static int deliver(const struct extipy_output *o, const char *text, size_t length)
{
    if (o->sink)
        return extipy__sink_write(o->sink, text, length);
    o->callback(o->user, o->stream, text, length);
    return 0;
}

/* Leaves the line empty. */
static int deliver_line(const struct extipy_output *o, struct extipy_line *line)
{
    size_t length = line->length;

    line->length = 0;
    return length ? deliver(o, line->text, length) : 0;
}

/* Between these two extipy__output_end waits.  0: it has been called. */
static int begin_delivery(struct extipy_output *o, struct extipy_line **begun)
{
    struct extipy_ctx *c = o->ctx;
    int open;

    pthread_mutex_lock(&c->lock);
    open = !c->output.ended;
    if (open) {
        c->output.delivering++;
        *begun = take_line(o, thread_number());
    }
    pthread_mutex_unlock(&c->lock);
    return open;
}

/* Consumes `begun`. */
static void end_delivery(struct extipy_output *o, struct extipy_line *begun)
{
    struct extipy_ctx *c = o->ctx;
    int keep = begun && begun->length;

    pthread_mutex_lock(&c->lock);
    if (keep) {
        begun->thread = thread_number();
        begun->next = o->lines;
        o->lines = begun;
    }
    c->output.delivering--;
    if (c->output.ended && !c->output.delivering)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (!keep)
        free_line(begun);
}

/* `begun` may have the beginning of the line, or be NULL. */
static int deliver_rest(const struct extipy_output *o, struct extipy_line *begun, const char *rest,
                        size_t length)
{
    int rc;

    if (!begun || !begun->length)
        return deliver(o, rest, length);
    rc = append_text(begun, rest, length);
    return rc ? rc : deliver_line(o, begun);
}

static int put_text(struct extipy_output *o, const char *text, size_t length)
{
    struct extipy_line *begun;
    const char *end;
    int rc = 0;

    if (!begin_delivery(o, &begun))
        return 0;
    while (rc == 0 && length && (end = memchr(text, '\n', length))) {
        rc = deliver_rest(o, begun, text, (size_t)(end + 1 - text));
        length -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    if (rc == 0 && length) {
        begun = begun ? begun : calloc(1, sizeof *begun);
        rc = begun ? append_text(begun, text, length) : ENOMEM;
    }
    end_delivery(o, begun);
    return rc;
}

/* What the thread has begun. */
static int put_begun(struct extipy_output *o)
{
    struct extipy_line *begun;
    int rc = 0;

    if (!begin_delivery(o, &begun))
        return 0;
    if (begun)
        rc = deliver_line(o, begun);
    end_delivery(o, begun);
    return rc;
}

/* ---- methods of the object below a stream, called by Python ---- */

static struct pyobj *set_error(const struct extipy_ctx *c, int error)
{
    if (error == ENOMEM)
        return c->py.PyErr_NoMemory();
    errno = error;
    return c->calls.PyErr_SetFromErrno(*c->calls.PyExc_OSError);
}

static struct pyobj *write_text(struct pyobj *self, struct pyobj *data)
{
    struct extipy_output *o = extipy__carried(self);
    const struct extipy_ctx *c;
    struct extipy_view view;
    void *state;
    int rc;

    if (!o)
        return NULL;
    c = o->ctx;
    if (c->calls.PyObject_GetBuffer(data, &view, 0) < 0)
        return NULL;
    state = c->py.PyEval_SaveThread();
    rc = put_text(o, view.buf, (size_t)view.len);
    c->py.PyEval_RestoreThread(state);
    data = rc ? set_error(c, rc) : c->calls.PyLong_FromLongLong(view.len);
    c->calls.PyBuffer_Release(&view);
    return data;
}

static struct pyobj *flush_text(struct pyobj *self, struct pyobj *none)
{
    struct extipy_output *o = extipy__carried(self);
    const struct extipy_ctx *c;
    void *state;
    int rc;

    (void)none;
    if (!o)
        return NULL;
    c = o->ctx;
    state = c->py.PyEval_SaveThread();
    rc = put_begun(o);
    c->py.PyEval_RestoreThread(state);
    if (rc)
        return set_error(c, rc);
    c->py.Py_IncRef(c->py.none);
    return c->py.none;
}

/* ---- the streams ---- */

static const char make_streams[] =
    "import io, os, sys\n"
    "\n"
    "class Lines(io.BufferedIOBase):\n"
    "    mode = 'wb'\n"
    "\n"
    "    def __init__(self, name, below, fd):\n"
    "        self.name, self._below, self._fd = '<%s>' % name, below, fd\n"
    "\n"
    "    def writable(self):\n"
    "        return True\n"
    "\n"
    "    def write(self, data):\n"
    "        if self.closed:\n"
    "            raise ValueError('write to closed file')\n"
    "        return self._below.write(data)\n"
    "\n"
    "    def flush(self):\n"
    "        super().flush()\n"
    "        self._below.flush()\n"
    "\n"
    "    def fileno(self):\n"
    "        return self._fd or super().fileno()\n"
    "\n"
    "    def isatty(self):\n"
    "        return self._fd > 0 and os.isatty(self._fd)\n"
    "\n"
    "def make(name, below, fd):\n"
    "    stream = io.TextIOWrapper(Lines(name, below, fd), 'utf-8', 'backslashreplace', '\\n',\n"
    "                              write_through=True)\n"
    "    stream.mode = 'w'\n"
    "    setattr(sys, name, stream)\n"
    "    setattr(sys, '__%s__' % name, stream)\n";

static struct pyobj *line_type(const struct extipy_ctx *c)
{
    static const struct extipy_method methods[] = {
        {"write", write_text, EXTIPY_METHOD_ONE, NULL},
        {"flush", flush_text, EXTIPY_METHOD_NONE, NULL},
        {NULL, NULL, 0, NULL},
    };
    struct extipy_type_slot slots[] = {{EXTIPY_SLOT_METHODS, (void *)methods}, {0, NULL}};
    struct extipy_type_spec spec = {.name = "extisolate.Lines", .slots = slots};

    return extipy__carrier_type(c, &spec);
}

static int make_stream(const struct extipy_ctx *c, struct extipy_output *o, struct pyobj *names,
                       struct pyobj *type)
{
    struct pyobj *below = extipy__carrier_new(c, type, o), *done = NULL;
    struct pyobj *make = c->py.PyDict_GetItemString(names, "make");

    if (below)
        done = c->py.PyObject_CallFunction(
            make, "sOi", o->stream == EXTIPY_STDOUT ? "stdout" : "stderr", below, o->fd);
    c->py.Py_DecRef(done);
    c->py.Py_DecRef(below);
    return done ? 0 : -1;
}

/* Sets where the stream goes.  Returns whether that is anywhere, or EXTI_E_NOMEM. */
static int aim(struct extipy_ctx *c, struct extipy_output *o, const struct extipy_opts *opts)
{
    o->ctx = c;
    o->stream = o == &c->output.streams[0] ? EXTIPY_STDOUT : EXTIPY_STDERR;
    o->fd = o->stream == EXTIPY_STDOUT ? opts->stdout_fd : opts->stderr_fd;
    o->callback = opts->output;
    o->user = opts->output_user;
    if (!o->fd)
        return o->callback != NULL;
    o->sink = extipy__sink_open(o->fd);
    return o->sink ? 1 : EXTI_E_NOMEM;
}

static int make_all(struct extipy_ctx *c, const int *wanted)
{
    struct pyobj *names = extipy__source_run(&c->py, make_streams),
                 *type = names ? line_type(c) : NULL;
    int rc = type ? 0 : -1;

    for (int i = 0; i < 2 && rc == 0; i++)
        if (wanted[i])
            rc = make_stream(c, &c->output.streams[i], names, type);
    c->py.Py_DecRef(type);
    c->py.Py_DecRef(names);
    return rc;
}

int extipy__output_begin(struct extipy_ctx *c, const struct extipy_opts *opts,
                         struct exti_error *err)
{
    int wanted[2], rc = 0;

    for (int i = 0; i < 2; i++)
        wanted[i] = aim(c, &c->output.streams[i], opts);
    if (wanted[0] < 0 || wanted[1] < 0)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    if (wanted[0] || wanted[1])
        rc = make_all(c, wanted);
    if (rc == 0)
        return 0;
    c->py.PyErr_Clear();
    return pyrt_fail(err, EXTI_E_LOAD, "CPython did not start: cannot make its output streams");
}

static void end_stream(struct extipy_output *o, struct extipy_line *lines)
{
    struct extipy_line *next;

    for (; lines; lines = next) {
        next = lines->next;
        deliver_line(o, lines);
        free_line(lines);
    }
    extipy__sink_close(o->sink);
    o->sink = NULL;
}

void extipy__output_end(struct extipy_ctx *c)
{
    struct extipy_line *lines[2];

    pthread_mutex_lock(&c->lock);
    c->output.ended = 1;
    while (c->output.delivering)
        pthread_cond_wait(&c->changed, &c->lock);
    for (int i = 0; i < 2; i++) {
        lines[i] = c->output.streams[i].lines;
        c->output.streams[i].lines = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < 2; i++)
        end_stream(&c->output.streams[i], lines[i]);
}
