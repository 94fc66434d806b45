/* What the whole process has once: interpreters by number, and queues.  The copy of this module in
 * the main interpreter has it, and those in contexts are given its table of functions.
 *
 * Nothing here knows Python's API, and the caller of what waits has let go of its GIL. */
#ifndef BINDINGS_PYTHON_EXT_CORE_H
#define BINDINGS_PYTHON_EXT_CORE_H

#include "bindings/python/ext/message.h"

#include "bindings/python/ext/object.h"
#include "bindings/python/ext/report.h"

/* The main interpreter's number. */
#define PKG_MAIN 0
/* That of none. */
#define PKG_NOBODY UINT64_MAX

enum pkg_code { PKG_E_UNKNOWN = -200 }; /* no interpreter, or no queue, has that number */

/* What an interpreter is opened with. */
struct pkg_opening {
    const struct extipy_setting *settings;
    size_t setting_count;
    int on_caller;    /* as in struct extipy_opts; the thread leaves the process's directory */
    unsigned streams; /* bits of enum extipy_stream: those whose lines `owner` is called with */
    uint64_t owner;
};

/* What is to be done with an object of the interpreter that is called. */
enum pkg_op {
    PKG_OP_NONE,
    PKG_OP_GET,     /* an attribute, by its name */
    PKG_OP_INVOKE,  /* call it with the arguments */
    PKG_OP_NAMED,   /* the same: names, or None, and arguments of which the last have these */
    PKG_OP_SPECIAL, /* call the package's function of that name (_proxies.py), with the same */
    PKG_OP_MEMORY,  /* its memory, in a tuple */
    PKG_OP_TAKE     /* a copy of it; the answer is that of a dispatcher */
};

/* One call of an interpreter by another. */
struct pkg_call {
    enum pkg_op op;            /* 0: `target`, else something with `object` */
    struct pkg_object *object; /* the caller's */
    const char *target; /* "module:qualname"; NULL: what the package's dispatcher is called with */
    size_t hash;        /* of the target, or the name */
    const char *name;   /* of the attribute: UTF-8, with surrogates */
    size_t name_length;
    int policy;      /* how memory in the answer is given */
    int unread;      /* nobody looks at the answer */
    int direct;      /* the answer is what the target returned; 0: it is the dispatcher's */
    int lost;        /* KeyboardInterrupt was raised, of which nobody is told */
    int exit_status; /* of an interpreter that its code has ended; -1: it has not */
    struct pkg_message given, answer;
};

/* How an interpreter answers: on a thread that has its GIL.  `call` is a struct pkg_call; the rest
 * is as extipy_visit has it. */
typedef int (*pkg_answerer)(void *call, struct exti_error *err);

/* Whether calls may begin, or at least end. */
enum pkg_closing { PKG_OPEN, PKG_CLOSING, PKG_CLOSED };

/* One interpreter that is called: until pkg_core.release it is not closed. */
struct pkg_entry {
    _Atomic(uint64_t) id; /* by which it is found */
    uint64_t number;      /* the same, from the beginning; 0: no interpreter but the main one */
    unsigned streams;     /* as of struct pkg_opening */
    uint64_t owner;
    struct extipy_ctx *ctx; /* NULL: the main interpreter */
    pkg_answerer answer;    /* of its copy of the module */
    size_t users;           /* beside visits; with the entries' lock */
    atomic_int ready;       /* 0: it is being started */
    atomic_int closing;     /* enum pkg_closing */
    struct pkg_entry *next;
};

struct pkg_thread;

/* A call of an interpreter that a thread is in; lies on its stack. */
struct pkg_visit {
    struct pkg_entry *entry; /* is not closed meanwhile */
    uint64_t id;             /* the interpreter's */
    struct pkg_thread *thread;
    int busy, sent;         /* an exception is being sent to it; was sent */
    unsigned long round;    /* how many SIGINTs came before it, or were sent to it */
    struct pkg_visit *next; /* the one outside it */
};

struct pkg_core {
    int (*open)(uint64_t *id, const struct pkg_opening *how, struct exti_error *err);
    /* Runs source text in the new interpreter, which sets how it answers. */
    int (*start)(uint64_t id, const char *source, struct exti_error *err);
    /* `wait` 0: EXTIPY_E_STATE if calls are in it; else waits for them, and lets none begin.
     * EXTI_E_BUSY: as of extipy_close; it is open. */
    int (*close)(uint64_t id, int wait, struct pkg_report *report, struct extipy_closed *out,
                 struct exti_error *err);
    int (*acquire)(struct pkg_entry **out, uint64_t id, struct exti_error *err);
    void (*release)(struct pkg_entry *entry);
    /* How many have acquired it: calls, and who looks. */
    size_t (*count_users)(const struct pkg_entry *entry);
    /* The same round a call, which SIGINT interrupts. */
    int (*begin_visit)(struct pkg_visit *visit, uint64_t id, struct exti_error *err);
    void (*end_visit)(struct pkg_visit *visit);
    /* Returns how many there are, and writes as many as fit. */
    size_t (*list)(uint64_t *ids, size_t room);
    pkg_answerer call_main; /* on a thread that has no GIL of the main interpreter */
    unsigned long (*interrupts)(void);

    int (*queue_new)(uint64_t *id, size_t most);
    int (*queue_free)(uint64_t id);
    /* The message is the queue's, or the caller's, if they return 0.  EXTIPY_E_TIMEOUT: the queue
     * is still full, or empty. */
    int (*queue_put)(uint64_t id, const struct pkg_message *message, int64_t nanoseconds);
    int (*queue_get)(uint64_t id, struct pkg_message *message, int64_t nanoseconds);
    int (*queue_count)(uint64_t id, size_t *count, size_t *most);

    struct pkg_heaps *heaps; /* objects of each interpreter that others have */
};

/* What the main interpreter's table has of interpreters.
 * `output` gets the lines, and as `user` the interpreter's struct pkg_entry. */
int pkg_core_open(uint64_t *id, const struct pkg_opening *how, extipy_output_fn output,
                  struct exti_error *err);
int pkg_core_start(uint64_t id, const char *source, struct exti_error *err);
int pkg_core_close(uint64_t id, int wait, struct pkg_report *report, struct extipy_closed *out,
                   struct exti_error *err);
size_t pkg_core_list(uint64_t *ids, size_t room);

extern struct pkg_heaps pkg_core_heaps;

/* First of all: asks the interpreter what it is, and finds its libpython. */
int pkg_core_find(const char *executable, const struct extipy_python **out, struct exti_error *err);
/* From here on nothing is opened or called. */
void pkg_core_stop(void);
/* Forgets all interpreters and queues, which are the parent's. */
void pkg_core_forked(void);

#endif
