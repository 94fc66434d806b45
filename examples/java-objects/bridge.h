/* bridge.h - what the two halves of this runtime know of each other.
 *
 * The host half (host/) is one library of the process: it speaks JNI, and owns the tables of links.
 * The Python half (module/) is an extension module, of which each context has a copy, as of any: it
 * alone speaks Python's API.  They meet through two structs of functions, so neither needs the
 * other's symbols. */
#ifndef BRIDGE_H
#define BRIDGE_H

#include <stddef.h>
#include <stdint.h>

#include <extisolate/link.h>

struct host;  /* one context, as the host half sees it */
struct entry; /* one link; its address is the host's word */

enum kind {
    KIND_NONE,
    KIND_BOOL,
    KIND_INT,
    KIND_FLOAT,
    KIND_STR,
    KIND_OBJECT, /* to Java: a local reference; to Python: the entry of a Java object */
    KIND_NATIVE, /* to Python: one of the context's own objects, which comes home */
    /* What is no value, in the order of Marker.java. */
    KIND_END,    /* of an iteration */
    KIND_METHOD, /* there is no such field, but there are such methods */
    KIND_ABSENT
};

/* A value between the two, which needs neither a GIL nor a JNIEnv. */
struct value {
    enum kind kind;
    int64_t integer;
    double real;
    uint16_t *text; /* UTF-16, by malloc; value_free */
    size_t length;
    struct entry *entry;
    void *native; /* borrowed: the proxy that the caller has in `object` keeps it */
    void *object; /* a JNI local reference */
};

enum raised {
    RAISED_NOTHING,
    RAISED_PYTHON, /* `value` is the exception: KIND_NATIVE to Python, KIND_OBJECT to Java */
    RAISED_JAVA    /* `value` is the Throwable */
};

/* What comes of a call in either direction. */
struct outcome {
    enum raised raised;
    struct value value;
    struct value type, message, traceback; /* of what was raised; text or nothing */
};

/* In the order of Operation.java. */
enum operation {
    OP_GET_ATTR,
    OP_SET_ATTR,
    OP_GET_ITEM,
    OP_SET_ITEM,
    OP_CALL,
    OP_STR,
    OP_ITERATE,
    OP_NEXT,
    OP_EQUALS,
    OP_HASH,
    OP_LENGTH,
    OP_EVAL,
    OP_EXEC
};

/* What Python asks of a Java object; in the order of Request.java. */
enum request { ASK_CALL, ASK_GET, ASK_SET, ASK_STR, ASK_EQUALS, ASK_HASH };

enum reason {
    REASON_CLOSED = -1,
    REASON_DEAD = -2,
    REASON_NOMEM = -3,
    REASON_STACK = -4,
    REASON_THREAD = -5
};

/* The Python half.  All with the context's GIL. */
struct python_half {
    struct exti_natives natives;
    void (*perform)(enum operation op, const struct value *args, size_t count,
                    struct outcome *outcome);
    /* With a count of 1; NULL: a Python exception is set. */
    void *(*new_shell)(struct entry *entry);
    void (*shell_ended)(void *shell); /* it has no object any more */
    /* While it is on, `natives.count` has one more for what weak references of Python refer to:
     * they give it to native code without a hand-out. */
    void (*count_weak)(int on);
    int64_t (*weight)(const void *native); /* about how many bytes it holds */
    void (*release)(void *native);         /* keeps a pending exception */
};

/* The host half.  All with the context's GIL, but `invoke`. */
struct java_half {
    struct host *host;
    /* A local reference to the Java object of a native: the proxy that there is, or a new one; or
     * what a shell stands for.  0, or a reason. */
    int (*to_java)(struct host *host, void *native, void **object);
    /* The Java object of a shell's entry; NULL: it has died. */
    void *(*object_of)(struct host *host, struct entry *entry);
    int (*is_throwable)(void *object);
    /* The shell of a Java object that the caller has a local reference to, handed out: a new
     * reference.  0, or a reason; with REASON_NOMEM a Python exception may be set. */
    int (*shell_of)(struct host *host, struct entry *entry, void **shell);
    /* A native goes home. */
    int (*hand_out)(struct host *host, void *native);
    /* Around a call of Java; `count`: of how many local references, about.  Attaches the thread.
     * 0, or a reason. */
    int (*begin)(struct host *host, size_t count);
    void (*end)(struct host *host);
    /* Calls Java, without the GIL. */
    void (*invoke)(struct host *host, enum request request, void *object, const struct value *name,
                   struct value *args, size_t count, struct outcome *outcome);
};

#endif
