/* extisolate/python.h - CPython contexts inside a program: start, enter, call, stop.
 *
 * The public interface of libextisolate-python, which stands on <extisolate.h>, and names a struct
 * of <extisolate/link.h>.  All names start with extipy_ or EXTIPY_.  A context is an interpreter of
 * its own, with its own copies of libpython and of every extension module, its own GIL and its own
 * memory.
 *
 * Errors, option structs and strings are as in <extisolate.h>: calls that can fail return 0 or a
 * negative code, of enum exti_code or enum extipy_code, and describe the failure in a struct
 * exti_error that the caller owns or leaves out by NULL.  On failure they write no output.
 *
 * Locks.  A thread waits for a GIL, for another thread or for the end of a context only after it
 * has let go of the GIL of the context that it is in.  So contexts may call each other in circles,
 * on any number of threads.
 *
 * After a fork, the child must not use the contexts of its parent. */
#ifndef EXTISOLATE_PYTHON_H
#define EXTISOLATE_PYTHON_H

#include <extisolate.h>
#include <extisolate/link.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------------------------- */

/* Beside those of enum exti_code.  The values are ABI: append only, never renumber. */
enum extipy_code {
    EXTIPY_E_CLOSED = -100, /* the context is closed, or about to be */
    EXTIPY_E_PLACE = -101,  /* wrong place: the thread must be in the context, or outside of it */
    EXTIPY_E_RAISED = -102, /* Python raised an exception, and the message has its text */
    EXTIPY_E_CANCELLED = -103, /* the job was cancelled before it began */
    EXTIPY_E_TIMEOUT = -104,   /* the time is over */
    EXTIPY_E_STATE = -105,     /* the job has not ended, or has begun, or has not */
    EXTIPY_E_EXITED = -106     /* code in the context has ended it by exit, _exit or exec */
};

/* Gives the name of a code of either enum.  A static string, never NULL.  Any thread. */
EXTI_API const char *extipy_code_name(int code);

/* ---- installations --------------------------------------------------------------------------- */

struct extipy_python; /* an installation of CPython; any thread may use it */

struct extipy_python_info {
    size_t size;            /* set by the caller; members past it are not written */
    int minor;              /* of CPython 3 */
    int free_threaded;      /* built without the GIL */
    int debug;              /* built with Py_DEBUG */
    const char *version;    /* "3.11.2" */
    const char *executable; /* sys.executable; in a virtual environment that one's */
    const char *libpython;  /* the shared library of which each context has a copy; absolute */
};

/* Runs the interpreter `executable` (looked up on PATH if it has no slash; NULL: python3) to ask
 * what it is, and finds its shared libpython.  EXTI_E_ARG: contexts cannot be made of it; the
 * message says what would do.  EXTI_E_IO: it cannot be run.  extipy_python_free *out.  Any
 * thread. */
EXTI_API int extipy_find(struct extipy_python **out, const char *executable,
                         struct exti_error *err);
/* The strings live as long as `python`. */
EXTI_API int extipy_python_info(const struct extipy_python *python, struct extipy_python_info *out);
EXTI_API void extipy_python_free(struct extipy_python *python); /* NULL ok */

/* ---- contexts -------------------------------------------------------------------------------- */

struct extipy_ctx; /* one context; any threads may call it at the same time */

enum extipy_setting_kind { EXTIPY_SET_INT = 0, EXTIPY_SET_TEXT = 1, EXTIPY_SET_LIST = 2 };

/* An option of the interpreter by the name of a member of PyConfig, as in PEP 741: "isolated",
 * "optimization_level", "hash_seed", "module_search_paths"; or "utf8_mode" or "allocator" of
 * PyPreConfig. */
struct extipy_setting {
    const char *name;
    enum extipy_setting_kind kind;
    long number;             /* SET_INT; not negative */
    const char *text;        /* SET_TEXT; in the locale's encoding, as those of the list */
    const char *const *list; /* SET_LIST */
    size_t count;
};

enum extipy_stream { EXTIPY_STDOUT = 1, EXTIPY_STDERR = 2 };

/* Gets what Python code writes to sys.stdout or sys.stderr: one line with its newline, or what a
 * thread has written since its last line, when that thread flushes the stream or the context ends.
 * `text` has no NUL after it, is valid only during the call, and is UTF-8, unless the code writes
 * other bytes to sys.stdout.buffer.
 *
 * It is called on the thread that writes, whichever that is, and maybe on several at once.  The
 * thread is inside the context, but has no GIL, and holds no lock of the library; so other threads
 * run meanwhile.  It may call anything but extipy_close and extipy_detach of this context, which
 * say EXTIPY_E_PLACE.  extipy_close waits for it, so it must not wait for who closes. */
typedef void (*extipy_output_fn)(void *user, enum extipy_stream stream, const char *text,
                                 size_t length);

struct extipy_opts {
    size_t size;
    /* What is not here is as in the interpreter itself, with its environment variables. */
    const struct extipy_setting *settings;
    size_t setting_count;
    const char *const *argv; /* sys.argv; NULL: [""] */
    size_t argc;
    /* As in struct exti_ctx_opts.  Of the flags EXTI_CTX_COPY_ONLY and EXTI_CTX_FOR_LOADING are
     * refused, and with EXTI_CTX_KEEP the interpreter's memory is kept as well. */
    const char *dir, *name;
    uint32_t flags;
    enum exti_closure closure;
    const struct exti_rule *rules;
    size_t rule_count;
    const char *const *quirk_files;
    size_t quirk_file_count;
    /* Where sys.stdout and sys.stderr go: to the descriptor if that is not 0, or to `output` if
     * that is not NULL, else where the interpreter itself has them.  Both are text streams of
     * UTF-8, in which what cannot be encoded has backslashes.  They deliver by lines, those of
     * several threads and contexts one after the other; a line that its thread has begun waits for
     * its newline, for a flush by that thread, or for the context's end.  To a descriptor each is
     * one write(2), and more if the system writes less than all; no other context gets between
     * these.  Who writes while the system does not take it waits, without the GIL.  Descriptors
     * stay the program's, and are used until extipy_close has returned, as `output` is.  What
     * native code writes to the descriptors 1 and 2 goes there as ever. */
    extipy_output_fn output;
    void *output_user; /* for `output` */
    int stdout_fd, stderr_fd;
    /* Non-zero: Python's main thread is the one that calls extipy_open, with the stack that it has.
     * It initialises and finalises, and enters and leaves as any other; extipy_detach does nothing
     * for it.  It must live until it has closed the context, which no other thread can.  The
     * context still has a thread of its own, for what is to be done while nobody is inside. */
    int on_caller;
    /* What the module `extisolate` of the context has beside its `name`: the context's number, and
     * how many there are.  `count` 0: 1. */
    int index, count;
};

/* Starts an interpreter on a thread of the context's own, Python's main thread, with as large a
 * stack as a process's first thread has; or on the caller's, by `on_caller`.  It sets no signal
 * handler, so ^C is the program's; what code in it sets is its own.  `opts` may be NULL.  Both are
 * only needed during the call.  EXTI_E_LOAD: CPython did not start, and the message has its reason.
 * extipy_close *out.  Any thread; the caller is not in the new context. */
EXTI_API int extipy_open(struct extipy_ctx **out, const struct extipy_python *python,
                         const struct extipy_opts *opts, struct exti_error *err);

/* Gives the loader's context, for exti_ctx_name, exti_ctx_dir, exti_load, exti_symbol and the like.
 * The caller of exti_ctx_prove enters first, so that no thread of the context loads meanwhile.  It
 * belongs to `c`, and ends when that is closed. */
EXTI_API struct exti_ctx *extipy_loader(const struct extipy_ctx *c);

/* Whether the context's own threads, those that run its jobs and what these start, have a current
 * directory, root and umask of their own, which begin as those of the thread that opens the
 * context.  Other threads keep theirs inside, unless the flag EXTI_CTX_ENTER_DIRECTORY takes them
 * to the context's; with it and `on_caller` the thread that opens is the context's own.  Returns 0
 * if they have; EXTI_E_IO: the system refuses it, as containers do, and os_error says why;
 * EXTI_E_BUSY: with `on_caller` the thread was another context's own; EXTI_E_UNSUPPORTED: the
 * system has no such thing, or EXTI_CTX_PROCESS_DIRECTORY was set. */
EXTI_API int extipy_directory(const struct extipy_ctx *c, struct exti_error *err);

/* ---- threads --------------------------------------------------------------------------------- */

/* Takes the calling thread into the context: it gets the context's GIL, and may call that
 * libpython's API and make objects.  The first time it also gets a thread state, which it keeps
 * until extipy_detach.  Any thread may enter, any number of contexts, and again those that it is
 * in; each extipy_enter needs one extipy_leave.
 *
 * If the thread has the GIL of the context that it entered last, or that started it, it lets go of
 * that first, and extipy_leave takes it again.  So a thread has one GIL at a time, the one of the
 * context that it entered last, and none while it waits.  Python threads of the context left
 * behind run meanwhile.  A thread that has taken a GIL by PyGILState_Ensure and not by this call
 * lets go of it itself.
 *
 * To Python the thread is one that it did not start.  So threads that it starts by threading.Thread
 * are daemons unless daemon=False says otherwise.  A pending exception stays with the thread in its
 * context.  EXTIPY_E_CLOSED: the context is being
 * closed, and the thread is not inside.  On failure the thread is where it was. */
EXTI_API int extipy_enter(struct extipy_ctx *c, struct exti_error *err);

/* Ends the last extipy_enter, which must have been of `c`: lets go of the GIL if that call took it,
 * and takes the one that the call let go of.  EXTIPY_E_PLACE: it was not of `c`, or the thread no
 * longer has the GIL that the call gave it. */
EXTI_API int extipy_leave(struct extipy_ctx *c, struct exti_error *err);

/* Ends the calling thread's state in the context, and so its threading.local objects; does nothing
 * if it has none.  Waits for the context's GIL.  A thread that ends is detached by itself.  C++
 * objects of copies that are local to the thread (thread_local) live on, as it may enter again:
 * until the thread ends, or until extipy_close, which destroys them.  EXTIPY_E_PLACE: the thread is
 * inside, or belongs to the context. */
EXTI_API int extipy_detach(struct extipy_ctx *c, struct exti_error *err);

struct extipy_exception; /* below */

/* ---- objects that stay where they are -------------------------------------------------------- */

/* A handle of an object in its context.  It has a count of references, which any thread may change,
 * wherever it is.  While an object has a handle, whoever asks for one gets the same: so handles are
 * equal exactly if their objects are the same. */
struct extipy_object;

/* Adds a reference; returns `object`. */
EXTI_API struct extipy_object *extipy_object_keep(struct extipy_object *object); /* NULL ok */
/* Ends a reference.  Never waits: after the last one the context itself releases its object, on the
 * next thread that enters or leaves, or on its own one if nobody is inside.  Whatever the object's
 * destructor does is done there.  Right after the context's end, too. */
EXTI_API void extipy_object_release(struct extipy_object *object); /* NULL ok */
/* Gives the context that the object is in. */
EXTI_API struct extipy_ctx *extipy_object_ctx(const struct extipy_object *object);

/* Has the context call the function soon, once, in the way and at the place where it releases
 * objects: on a thread that has its GIL, which may call Python's API, and leaves no exception.  Any
 * thread, wherever it is; never waits.  If the context ends before, it is called right before that.
 * EXTI_E_NOMEM: it is not called. */
EXTI_API int extipy_call_soon(struct extipy_ctx *c, void (*function)(void *user), void *user);

/* For a host that has a heap of its own, whose objects are to be Python's and the other way round:
 * how a table of links (<extisolate/link.h>, exti_links_opts.natives) reaches a context's objects
 * (PyObject *).  Each context has a table of its own, whose lock is its GIL; `user` may be
 * anything.  References are followed as Python's collector does it, which itself ends dead circles
 * once their links have ended; there are no light shells.  The thread has the context's GIL;
 * EXTIPY_E_PLACE: it has not.  EXTI_E_UNSUPPORTED: it is a free-threaded build, whose counts no
 * lock guards, or its objects are not laid out as in any version that is known. */
EXTI_API int extipy_natives(struct exti_natives *out, struct extipy_ctx *c, struct exti_error *err);

/* ---- buffers --------------------------------------------------------------------------------- */

/* Memory that the program and contexts share, without a copy, described as in PEP 3118.  Nothing
 * guards it: what one side writes the others see.  A buffer has a count of references, which any
 * thread may change; each memoryview that a context was given counts as one. */
struct extipy_buffer;

struct extipy_buffer_info {
    size_t size; /* set by the caller; members past it are not written, and taken for 0 */
    void *data;  /* the first item */
    size_t length, item_size; /* in bytes; `length` is that of all items */
    int readonly;
    int dimensions;           /* 0 to 64 */
    const char *format;       /* as of the module struct; NULL: "B" */
    const ptrdiff_t *shape;   /* `dimensions` each; NULL: one dimension of all items */
    const ptrdiff_t *strides; /* in bytes, may be negative; NULL: items lie in C's order */
};

/* Describes memory of the program as a buffer with one reference; copies all but the data.
 * `release` (or NULL) is called when nobody uses the memory any more: once, on any thread, maybe
 * one that is in a context, so it must neither wait nor call this library.  EXTI_E_ARG: the members
 * of `info` do not go together. */
EXTI_API int extipy_buffer_new(struct extipy_buffer **out, const struct extipy_buffer_info *info,
                               void (*release)(void *user), void *user, struct exti_error *err);

/* Gives the memory of an array or of another object that has the buffer protocol, which stays alive
 * as long as the buffer.  Enters and leaves.  `writable` non-zero: an object that cannot be written
 * to is refused.  Errors as of extipy_call.  extipy_buffer_release *out. */
EXTI_API int extipy_buffer_of(struct extipy_buffer **out, struct extipy_object *object,
                              int writable, struct extipy_exception **raised,
                              struct exti_error *err);

/* Both ways for C code that calls Python's API in the context: a buffer of an object (PyObject *),
 * and an object with the buffer protocol of a buffer, to which *out is a new reference.  The thread
 * has the context's GIL; EXTIPY_E_PLACE: it has not. */
EXTI_API int extipy_buffer_from(struct extipy_buffer **out, struct extipy_ctx *c, void *object,
                                struct exti_error *err);
EXTI_API int extipy_buffer_object(void **out, struct extipy_ctx *c, struct extipy_buffer *buffer,
                                  struct exti_error *err);

/* Describes it; the pointers live as long as the buffer. */
EXTI_API int extipy_buffer_info(const struct extipy_buffer *buffer, struct extipy_buffer_info *out);
EXTI_API struct extipy_buffer *extipy_buffer_keep(struct extipy_buffer *buffer); /* NULL ok */
/* Never waits, as extipy_object_release. */
EXTI_API void extipy_buffer_release(struct extipy_buffer *buffer); /* NULL ok */

/* ---- values ---------------------------------------------------------------------------------- */

/* A set of values is what goes into and comes out of calls, apart from any interpreter.  Its values
 * have numbers, from 1 on, by which its containers name their items: so sharing and cycles are
 * kept.  The set owns all that is in it: strings and items given are copied, objects and buffers
 * get a reference, and extipy_values_free ends it all.  A set is used by one thread at a time. */
struct extipy_values;

enum extipy_kind {
    EXTIPY_NONE = 0,
    EXTIPY_BOOL = 1,
    EXTIPY_INT = 2, /* of any size */
    EXTIPY_FLOAT = 3,
    EXTIPY_STR = 4,
    EXTIPY_BYTES = 5,
    EXTIPY_TUPLE = 6,
    EXTIPY_LIST = 7,
    EXTIPY_SET = 8,
    EXTIPY_DICT = 9,
    EXTIPY_OBJECT = 10, /* anything else stays in its context, and has a handle */
    EXTIPY_BUFFER = 11  /* memory of others; only in what is given to a call */
};

struct extipy_value {
    size_t size; /* set by the caller; members past it are not written */
    enum extipy_kind kind;
    int64_t integer; /* BOOL: 0 or 1; INT, if `length` is at most 8 */
    double real;     /* FLOAT */
    /* STR: UTF-8, in which a lone surrogate has the three bytes that the scheme gives it; BYTES;
     * both with a NUL after them.  INT: two's complement, the lowest byte first, as few as hold
     * it. */
    const char *bytes;
    size_t length;
    const size_t *items; /* TUPLE, LIST, SET: their numbers; DICT: each key's, then its value's */
    size_t count;
    struct extipy_object *object; /* OBJECT; the reference is the set's */
    struct extipy_buffer *buffer; /* BUFFER; the reference is the set's */
};

EXTI_API int extipy_values_new(struct extipy_values **out, struct exti_error *err);
EXTI_API void extipy_values_free(struct extipy_values *values); /* NULL ok */

/* Add a value and return its number.  0: no memory, or an argument is wrong; the set then remembers
 * it, and a call that is given the set fails.  So only calls need to be checked. */
EXTI_API size_t extipy_none(struct extipy_values *values);
EXTI_API size_t extipy_bool(struct extipy_values *values, int truth);
EXTI_API size_t extipy_int(struct extipy_values *values, int64_t integer);
/* `bytes` as in struct extipy_value; none are 0. */
EXTI_API size_t extipy_big_int(struct extipy_values *values, const void *bytes, size_t length);
EXTI_API size_t extipy_float(struct extipy_values *values, double real);
EXTI_API size_t extipy_str(struct extipy_values *values, const char *utf8, size_t length);
EXTI_API size_t extipy_bytes(struct extipy_values *values, const void *bytes, size_t length);
/* `object` is one of the context that will be called. */
EXTI_API size_t extipy_object(struct extipy_values *values, struct extipy_object *object);
/* Arrives as a memoryview of the memory itself.  BufferError is raised if its items are objects
 * ("O" in the format) and it is not this context's own. */
EXTI_API size_t extipy_buffer(struct extipy_values *values, struct extipy_buffer *buffer);
/* A TUPLE, LIST, SET or DICT with these items, as in struct extipy_value; `items` may be NULL if
 * `count` is 0. */
EXTI_API size_t extipy_container(struct extipy_values *values, enum extipy_kind kind,
                                 const size_t *items, size_t count);
/* Add an item to a LIST or SET, and a pair to a DICT, which may be, or have in it, that container
 * itself.  Return its number, or 0. */
EXTI_API size_t extipy_add(struct extipy_values *values, size_t container, size_t item);
EXTI_API size_t extipy_add_pair(struct extipy_values *values, size_t dict, size_t key,
                                size_t value);

/* Describes a value; what *out points to lives until the set is changed or freed.  EXTI_E_ARG:
 * there is none of that number. */
EXTI_API int extipy_value(const struct extipy_values *values, size_t number,
                          struct extipy_value *out);

/* ---- calls ----------------------------------------------------------------------------------- */

/* An exception that ended a call.  extipy_exception_free frees it, with those that it leads to; any
 * thread may do so. */
struct extipy_exception {
    const char *type;                 /* "ValueError", "json.decoder.JSONDecodeError" */
    const char *message;              /* str() of it; "" if that fails */
    const char *traceback;            /* what Python would print, all lines, the chain included */
    struct extipy_exception *cause;   /* raise ... from; or NULL */
    struct extipy_exception *context; /* the one that was being handled; or NULL */
    struct extipy_object *object;     /* the exception itself; NULL: no memory */
};
EXTI_API void extipy_exception_free(struct extipy_exception *exception); /* NULL ok */

struct extipy_call {
    size_t size;
    const char *function;         /* "module:qualname", which is imported; NULL: `callee` */
    struct extipy_object *callee; /* one of this context */
    const struct extipy_values *values;
    size_t args, kwargs; /* in `values`: a TUPLE or LIST, and a DICT whose keys are STR; 0: none */
    int stay;            /* non-zero: the result is an OBJECT, whatever its type */
};

/* Enters, calls, and leaves, on the calling thread.  *result is a set in which number 1 is the
 * result; `result` NULL: it is dropped.  Values of exactly the built-in types of enum extipy_kind
 * are copied; any other object, of a subclass too, becomes an OBJECT.  extipy_values_free *result.
 *
 * EXTIPY_E_RAISED: *raised, unless `raised` is NULL, gets the exception, whatever it is: SystemExit
 * and KeyboardInterrupt too.  It has nothing in it that needs `c` to be open. */
EXTI_API int extipy_call(struct extipy_ctx *c, const struct extipy_call *call,
                         struct extipy_values **result, struct extipy_exception **raised,
                         struct exti_error *err);

/* Enters, has `function` called on the calling thread, leaves, and gives what that returned: for
 * calls of Python's API that may end the context (below).  Any frame of `function` may be left by
 * longjmp then, so it must not hold what nobody else releases. */
EXTI_API int extipy_visit(struct extipy_ctx *c, int (*function)(void *user, struct exti_error *err),
                          void *user, struct exti_error *err);

/* Enters, runs source text (UTF-8) in the module __main__, and leaves.  Errors are those of
 * extipy_call. */
EXTI_API int extipy_exec(struct extipy_ctx *c, const char *source, struct extipy_exception **raised,
                         struct exti_error *err);

/* ---- jobs ------------------------------------------------------------------------------------ */

/* A call that a thread of the context's makes.  The thread is started by the first extipy_submit,
 * runs one job after another in the order of their submission, and ends when the context is closed.
 * To Python it is one that it did not start, as any that enters.  Neither jobs nor what they call
 * may end it.
 *
 * A job has a count of references, which any thread may change.  It is run, and told of, even if
 * nobody has a reference any more.  What follows about jobs may be called on any thread, inside or
 * outside of any context, also after the context is closed, and waits for no GIL. */
struct extipy_job;

/* Where jobs go that have ended, of any number of contexts, for programs with an event loop.  One
 * thread at a time takes them out. */
struct extipy_queue;

struct extipy_job_opts {
    size_t size;
    /* Called once when the job has ended, on a thread of the context's own that has no GIL: that
     * which runs the jobs, and for a job that has not run maybe another one.  Its next job waits
     * meanwhile.  `job` is there until it returns; extipy_job_keep keeps it.  It may call anything
     * but extipy_close and extipy_detach of this context, which say EXTIPY_E_PLACE; closing another
     * one, or waiting for a job there, it must not do in circles. */
    void (*done)(struct extipy_job *job, void *user);
    void *user;                 /* for `done`, and for extipy_job_user */
    struct extipy_queue *queue; /* where the job goes when it has ended, after `done`; or NULL */
    /* The deadline, in nanoseconds from the submission on; 0: none.  A job that has not begun then
     * ends with EXTIPY_E_TIMEOUT, and does not run.  In one that runs TimeoutError is raised once,
     * as KeyboardInterrupt by extipy_job_interrupt.  The context's own thread sees to it, which is
     * late where native code does not let go of the GIL, or `done` takes long. */
    uint64_t timeout;
};

/* Has the context make a call, as extipy_call, and does not wait for it.  The job keeps all that
 * `call` names until it ends: the program may free its set of values at once, and give it to other
 * calls and jobs, but must not add to it until they all have ended.  `opts` may be NULL.  Neither
 * is needed after the call.  `out` may be NULL; extipy_job_release *out.  The job may end before
 * this call returns.  EXTI_E_ARG: as of extipy_call.  EXTIPY_E_CLOSED: the context is being
 * closed.  After an error nothing is kept, and `done` is not called.  A job that finds no thread,
 * as the system refuses one to its context, ends with EXTI_E_IO. */
EXTI_API int extipy_submit(struct extipy_job **out, struct extipy_ctx *c,
                           const struct extipy_call *call, const struct extipy_job_opts *opts,
                           struct exti_error *err);

/* Adds a reference; returns `job`. */
EXTI_API struct extipy_job *extipy_job_keep(struct extipy_job *job); /* NULL ok */
/* Ends a reference.  An outcome that nobody has taken is dropped after the last one. */
EXTI_API void extipy_job_release(struct extipy_job *job); /* NULL ok */
/* Gives `user` of the job's options. */
EXTI_API void *extipy_job_user(const struct extipy_job *job);

/* Waits until the job has ended, `done` has returned and the job is in its queue; any number of
 * threads may.  `timeout`: in nanoseconds; negative: none.  EXTIPY_E_TIMEOUT: that is over.
 * EXTIPY_E_PLACE: it has not, and this is a thread of the context's own, which it waits for.  The
 * thread has no GIL while it waits. */
EXTI_API int extipy_job_wait(struct extipy_job *job, int64_t timeout, struct exti_error *err);

/* Gives the outcome of a job that has ended: what extipy_call would have given, and its *result or
 * *raised to whoever asks first, who frees it; then that is NULL.  One that is not asked for, by
 * `result` or `raised` NULL, stays.  EXTIPY_E_CANCELLED, EXTIPY_E_TIMEOUT and EXTIPY_E_CLOSED: it
 * did not run.  EXTIPY_E_STATE: it has not ended. */
EXTI_API int extipy_job_result(struct extipy_job *job, struct extipy_values **result,
                               struct extipy_exception **raised, struct exti_error *err);

/* Cancels a job that has not begun: it ends with EXTIPY_E_CANCELLED.  EXTIPY_E_STATE: it has begun,
 * or ended, or was cancelled before. */
EXTI_API int extipy_job_cancel(struct extipy_job *job, struct exti_error *err);

/* Raises KeyboardInterrupt in a job that has begun, as soon as it executes bytecode of its context,
 * and does not wait for that.  Native code goes on until it returns, and what it waits for is
 * waited for.  Python code may catch the exception; each further call raises another one.  It
 * reaches no other job: if the job ends before, or its call has already returned, nothing happens.
 * EXTIPY_E_STATE: it has not begun, or has ended. */
EXTI_API int extipy_job_interrupt(struct extipy_job *job, struct exti_error *err);

/* Makes a queue.  EXTI_E_IO: there is no file descriptor for it.  extipy_queue_free *out. */
EXTI_API int extipy_queue_new(struct extipy_queue **out, struct exti_error *err);
/* A file descriptor that is readable as long as the queue has jobs: for poll, epoll, kqueue, libuv
 * and asyncio.  It is the queue's, and nobody else reads, writes or closes it. */
EXTI_API int extipy_queue_fd(const struct extipy_queue *queue);
/* Takes out the job that ended first, with a reference that extipy_job_release ends; NULL: there is
 * none.  Never waits. */
EXTI_API struct extipy_job *extipy_queue_next(struct extipy_queue *queue);
/* Jobs that are in it, or were to get in, lose no more than that.  No thread may use it any more,
 * nor submit with it. */
EXTI_API void extipy_queue_free(struct extipy_queue *queue); /* NULL ok */

/* ---- the end --------------------------------------------------------------------------------- */

/* ELF systems.  Code of a context that calls exit, _exit (os._exit), quick_exit or a function of
 * the exec family ends the context alone, without finalising it: exit runs its exit handlers
 * before, and exec runs the program in a child and waits for its end.
 *
 * Then extipy_call, extipy_exec, extipy_visit or the job in which that happened ends with
 * EXTIPY_E_EXITED, whose message has the status.  In other threads that are inside SystemExit is
 * raised, and their calls end so as well; jobs that wait or run end at once, and nobody enters any
 * more: EXTIPY_E_EXITED.  When all have left no thread runs Python code there any more; the call
 * waits for that, two seconds at most.  The context is to be closed, which does not wait for a
 * thread that never lets go of its GIL.  It is not unloaded then, as threads may be in its code,
 * and counts as `mapped`; a pool replaces it when it is given back.
 *
 * The process ends or executes instead where the thread has no such call of the context that it
 * could leave: after extipy_enter alone, also within extipy_visit; in a call that another one of
 * the same context has led to; in a signal handler; in a library's own thread of another context;
 * before Python 3.12 in a subinterpreter; while the context starts; and with the flag
 * EXTI_CTX_PROCESS_ENDS.
 *
 * Code that calls abort ends the process, after a line on standard error that names the context,
 * and the native call stack. */

/* The status with which code of the context has ended it; -1: it has not. */
EXTI_API int extipy_exit_status(const struct extipy_ctx *c);

/* Until extipy_unpin the context is not finalised, and if its code ends it, whoever wants its GIL
 * gets it: for threads that take it by PyGILState_Ensure of the context's libpython, and may have
 * other GILs meanwhile, where extipy_enter lets go of these.  Waits for nothing and enters nothing.
 * EXTIPY_E_CLOSED, EXTIPY_E_EXITED. */
EXTI_API int extipy_pin(struct extipy_ctx *c, struct exti_error *err);
/* Once for each pin, on any thread, after it has let go of the GIL. */
EXTI_API void extipy_unpin(struct extipy_ctx *c);

struct extipy_closed {
    size_t size;
    size_t attached; /* living threads that were in the context and had not detached */
    size_t mapped;   /* files of the context that stay mapped; `report` said why */
    size_t buffers;  /* of its memory, that are in use; it is unloaded after the last */
};

/* Closes the context: waits until no thread is inside, joins Python's threads that are not daemons,
 * runs the functions of atexit, finalises the interpreter on the thread that initialised it,
 * unloads the copies and gives back the interpreter's memory.  Calls that want to enter fail with
 * EXTIPY_E_CLOSED from its beginning on.  The calling thread is detached first.
 *
 * Jobs that have not begun end with EXTIPY_E_CLOSED at once.  One that runs is waited for, and can
 * still be interrupted.  When this call returns all callbacks have returned, and all jobs are in
 * their queues; so a callback must not wait for who closes.
 *
 * Threads that have not detached are detached: their thread states end with the interpreter, and
 * their C++ thread-local objects of copies are destroyed on the calling thread.  As long as a
 * thread lives that a copy has started, nothing is unloaded, and the memory stays.  `report` gets a
 * finding for each such thread, and for each file that stays mapped, as by exti_ctx_close_report;
 * the calling thread has no GIL then.  `report` and `out` may be NULL.
 *
 * Buffers of its memory remain valid.  As long as there are any, Python has only stopped: its
 * threads are joined and the functions of atexit have run.  The interpreter is finalised and
 * unloaded after the last has been released, on threads of the library, without a report.
 *
 * A context opened with `on_caller` is closed by the thread that opened it: EXTIPY_E_PLACE on any
 * other.  EXTI_E_BUSY: buffers of its memory are in use; its jobs have ended, and it is open.
 *
 * EXTIPY_E_PLACE: the calling thread is inside, or belongs to the context.  EXTIPY_E_CLOSED:
 * another thread has closed it.  After these two, EXTI_E_ARG and EXTI_E_NOMEM the context is as it
 * was; after any other error but EXTI_E_BUSY it is closed.
 *
 * Once it is closed, no call may name it but those of threads that were waiting to enter, and
 * extipy_detach of threads that entered before, until they have detached or ended.  Handles of its
 * objects only remain to be released.  c NULL: does nothing. */
EXTI_API int extipy_close(struct extipy_ctx *c, exti_report_fn report, void *user,
                          struct extipy_closed *out, struct exti_error *err);

/* The number of contexts that are closed and, because of buffers, not yet unloaded.  Any thread. */
EXTI_API size_t extipy_lingering(void);

/* ---- pools ----------------------------------------------------------------------------------- */

/* Contexts that are all alike, for threads that take turns; any thread may use it.  A thread of the
 * pool's own opens them, and opens others for those that are replaced. */
struct extipy_pool;

struct extipy_pool_opts {
    size_t size;
    size_t count; /* of contexts, 1 or more */
    /* Of each context, without `dir` and `name`; NULL: none.  `index` is its place in the pool,
     * from 0, which whatever replaces it gets, and `count` the pool's.  What it leads to is needed
     * until extipy_pool_close returns, as are the members that follow. */
    const struct extipy_opts *each;
    /* What a context does before it is given to anybody: it imports the modules, and runs the
     * source (or NULL) as by extipy_exec. */
    const char *const *imports;
    size_t import_count;
    const char *source;
    int lazy; /* non-zero: contexts are opened when somebody wants one and none is free */
    /* A context is replaced, once it is given back, after so many calls: of extipy_call,
     * extipy_exec and jobs; or if its interpreter has so many bytes of memory more than when it was
     * new.  What extensions take from the system's malloc is not counted.  0: never. */
    uint64_t most_calls, most_growth;
};

/* Makes a pool, and unless it is lazy opens all contexts.  EXTIPY_E_RAISED: an import or the source
 * raised an exception, and the message has its text.  Other errors as of extipy_open.  After an
 * error no context is left.  `python` is needed until the pool is closed.  extipy_pool_close *out,
 * then extipy_pool_free.
 * Any thread; if it is in a context, it lets go of that one's GIL meanwhile. */
EXTI_API int extipy_pool_open(struct extipy_pool **out, const struct extipy_python *python,
                              const struct extipy_pool_opts *opts, struct exti_error *err);

/* Gives a context that nobody else has, and waits for one: `timeout` nanoseconds; negative: without
 * an end.  The thread has no GIL meanwhile.  Any thread may use the context then, and give it back.
 * EXTIPY_E_TIMEOUT: none was free in time.  EXTIPY_E_CLOSED: the pool is being closed.  Any other
 * error is one of a context that could not be opened meanwhile: all that wait get it, and the next
 * one that waits has it tried again. */
EXTI_API int extipy_pool_acquire(struct extipy_ctx **out, struct extipy_pool *pool, int64_t timeout,
                                 struct exti_error *err);

/* Gives a context back, and detaches the calling thread from it, as extipy_detach.  It is replaced
 * if `broken` is non-zero, if it has had its calls or growth, or if somebody has closed it.  Does
 * not wait for that: it is closed on a thread of the library, and without a report.  The callback
 * of a job may give its context back, and is not detached.  EXTI_E_ARG: it is not one that was
 * acquired.  EXTIPY_E_PLACE: the thread is inside, or belongs to the context. */
EXTI_API int extipy_pool_give_back(struct extipy_pool *pool, struct extipy_ctx *c, int broken,
                                   struct exti_error *err);

/* Closes the pool: threads that wait for a context get EXTIPY_E_CLOSED at once; then it waits until
 * all have been given back, and closes each as extipy_close with `report` and `user`.  `out`, or
 * NULL, gets the sums over all contexts, replaced ones too.  EXTIPY_E_PLACE: the calling thread is
 * inside a context of the pool, or belongs to one; the pool is as it was.  EXTIPY_E_CLOSED: it is
 * closed, or another thread closes it.  From its beginning on extipy_pool_acquire fails with
 * EXTIPY_E_CLOSED.  extipy_pool_free frees what is left.  pool NULL: does nothing. */
EXTI_API int extipy_pool_close(struct extipy_pool *pool, exti_report_fn report, void *user,
                               struct extipy_closed *out, struct exti_error *err);
/* After extipy_pool_close has returned.  No thread may use it any more. */
EXTI_API void extipy_pool_free(struct extipy_pool *pool); /* NULL ok */

#ifdef __cplusplus
}
#endif
#endif
