/* host.h - the host half: JNI, and the table of links of each context. */
#ifndef HOST_H
#define HOST_H

#include <jni.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <extisolate/python.h>

#include "bridge.h"

/* A link, as Java's side of it is seen from C.  A jweak is cleared together with the
 * PhantomReference `ref`, that is after finalisers: so an object that a finaliser has revived still
 * has its link. */
struct entry {
    struct entry *next, *prev; /* all of the context; under its lock */
    struct entry *next_dead;   /* those that have died, and are not settled; under its lock */
    jweak object;
    jobject strong; /* or NULL: the link is weak */
    jobject ref;    /* keeps the PhantomReference of a proxy; Links.java has the others */
    void *native;
    _Atomic uint32_t number; /* of the link; UINT32_MAX: it has not come to one */
    bool is_shell;
    int64_t weight;
};

struct host {
    struct java_half java;
    const struct python_half *python;
    struct extipy_ctx *ctx;
    struct exti_links *links;    /* with the GIL; NULL, also under the lock: closed */
    jobject context, java_links; /* PythonContext and Links; global references */
    pthread_mutex_t lock;        /* taken last: nobody waits for anything who has it */
    struct entry *entries, *dead;
    struct entry *hubs;  /* during weaken_circles */
    size_t circles_at;   /* with how many links it looks for circles next */
    atomic_bool soon;    /* the context was asked to settle */
    atomic_size_t users; /* Java's side, and threads that Python has let into Java */
    atomic_bool collect; /* natives have become heavy */
};

/* Java's classes, and what is used of them. */
struct java {
    JavaVM *vm;
    jclass object, string, throwable, boolean_, long_, integer, double_, float_, short_, byte_,
        context, proxy, ref, held, holder, exception, marker, reflection, janitor, illegal_state,
        no_memory, overflow;
    jmethodID boolean_value, number_long, number_double, value_of_boolean, value_of_long,
        value_of_double, new_proxy, new_ref, new_exception, entry_of, ordinal, invoke, collect,
        describe;
    jfieldID proxy_context, proxy_native, holder_held, held_object, held_next, exception_value;
    jobject end;
};
extern struct java java;

/* java.c */
JNIEnv *java_env(void); /* attaches the thread until it ends; NULL: it cannot be */
void java_throw(JNIEnv *env, jclass type, const char *message);
bool java_has_stack(void); /* for a call into the other language */

/* entry.c: with or without the GIL. */
struct entry *entry_new(struct host *host);
int entry_refer(JNIEnv *env, struct entry *entry, jobject object); /* -1: an exception is pending */
void entry_free(JNIEnv *env, struct host *host, struct entry *entry);
jobject entry_object(JNIEnv *env, const struct entry *entry);

/* host.c */
struct host *host_new(JNIEnv *env, jobject context, jobject links);
void host_keep(struct host *host);
void host_release(JNIEnv *env, struct host *host);

/* toggle.c: what the table asks of the host. */
extern const struct exti_toggling toggling;
void toggle_free_hubs(JNIEnv *env, struct host *host);

/* links.c: the table; with the GIL. */
int links_open(struct host *host, struct exti_error *err);
int links_to_java(struct host *host, void *native, void **object);
void *links_object_of(struct host *host, struct entry *entry);
int links_shell_of(struct host *host, struct entry *entry, void **shell);
int links_hand_out(struct host *host, void *native);
void links_border(struct host *host);  /* native code has returned */
void links_collect(struct host *host); /* looks at all links, and for circles */
void links_end(struct host *host);
void links_died(struct host *host, struct entry *entry); /* any thread, no GIL */

/* values.c: without the GIL. */
int value_of(JNIEnv *env, struct host *host, jobject object, struct value *out);
jobject value_box(JNIEnv *env, const struct value *value);
int value_is_throwable(void *object); /* with the GIL or without */
void value_free(struct value *value);
void value_thrown(JNIEnv *env, struct host *host, jthrowable thrown, struct outcome *out);

/* calls.c */
int calls_begin(struct host *host, size_t count);
void calls_end(struct host *host);
void calls_invoke(struct host *host, enum request request, void *object, const struct value *name,
                  struct value *args, size_t count, struct outcome *outcome);

#endif
