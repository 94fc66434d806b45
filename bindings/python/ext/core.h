/* What the whole process has once: interpreters by number, and queues.  The copy of this module in
 * the main interpreter has it, and those in contexts are given its table of functions.
 *
 * Nothing here knows Python's API, and the caller of what waits has let go of its GIL. */
#ifndef BINDINGS_PYTHON_EXT_CORE_H
#define BINDINGS_PYTHON_EXT_CORE_H

#include <extisolate/python.h>

/* The main interpreter's number. */
#define PKG_MAIN 0

enum pkg_code { PKG_E_UNKNOWN = -200 }; /* no interpreter, or no queue, has that number */

/* One interpreter that is called: until pkg_core.release it is not closed. */
struct pkg_entry {
    uint64_t id;
    struct extipy_ctx *ctx;         /* NULL: the main interpreter */
    struct extipy_object *dispatch; /* what calls are for; NULL: it is being started */
    size_t users;
    int closing;
    struct pkg_entry *next;
};

/* What is given to an interpreter, or comes from one: a tuple. */
struct pkg_message {
    struct extipy_values *values;
    size_t number; /* the tuple's */
};

/* Calls the main interpreter's dispatcher, on a thread that has no GIL of it. */
typedef int (*pkg_main_call)(const struct pkg_message *message, struct pkg_message *answer,
                             struct exti_error *err);

struct pkg_visit;

struct pkg_core {
    int (*open)(uint64_t *id, struct exti_error *err);
    /* Runs source text in the new interpreter, then asks it for its dispatcher. */
    int (*start)(uint64_t id, const char *source, struct exti_error *err);
    /* `wait` 0: EXTIPY_E_STATE if calls are in it; else waits for them, and lets none begin. */
    int (*close)(uint64_t id, int wait, struct extipy_closed *out, struct exti_error *err);
    int (*acquire)(struct pkg_entry **out, uint64_t id, struct exti_error *err);
    void (*release)(struct pkg_entry *entry);
    /* Returns how many there are, and writes as many as fit. */
    size_t (*list)(uint64_t *ids, size_t room);
    pkg_main_call call_main;
    /* Round a call of a context. */
    void (*begin_visit)(struct pkg_visit *visit, struct extipy_ctx *ctx);
    void (*end_visit)(struct pkg_visit *visit);

    int (*queue_new)(uint64_t *id, size_t most);
    int (*queue_free)(uint64_t id);
    /* The message is the queue's, or the caller's, if they return 0.  EXTIPY_E_TIMEOUT: the queue
     * is still full, or empty. */
    int (*queue_put)(uint64_t id, const struct pkg_message *message, int64_t nanoseconds);
    int (*queue_get)(uint64_t id, struct pkg_message *message, int64_t nanoseconds);
    int (*queue_count)(uint64_t id, size_t *count, size_t *most);
};

/* What the main interpreter's table has of interpreters. */
int pkg_core_open(uint64_t *id, struct exti_error *err);
int pkg_core_start(uint64_t id, const char *source, struct exti_error *err);
int pkg_core_close(uint64_t id, int wait, struct extipy_closed *out, struct exti_error *err);
int pkg_core_acquire(struct pkg_entry **out, uint64_t id, struct exti_error *err);
void pkg_core_release(struct pkg_entry *entry);
size_t pkg_core_list(uint64_t *ids, size_t room);

/* First of all: asks the interpreter what it is, and finds its libpython. */
int pkg_core_find(const char *executable, const struct extipy_python **out, struct exti_error *err);
/* From here on nothing is opened or called. */
void pkg_core_stop(void);
/* Forgets all interpreters and queues, which are the parent's. */
void pkg_core_forked(void);

#endif
