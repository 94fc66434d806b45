#define _GNU_SOURCE /* syscall */
#include "loader/track/thread_objects.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/process/guarded_dl.h"
#include "loader/track/fork_lock.h"
#include "loader/track/module.h"

struct thread_object {
    void (*destroy)(void *object); /* NULL: it is not to be destroyed */
    void *object;
    const struct exti_ctx *ctx; /* NULL once that is freed */
    const void *module;         /* its handle; only compared */
    void *pin;     /* keeps the file mapped; the thread's oldest of the module has it */
    bool detached; /* the thread has left the context since */
    struct thread_object *older;
};

/* Threads of the parent, which do not exist in a forked child. */
#define NOBODY 0

/* A thread that has objects, or had. */
struct thread_owner {
    uint64_t thread;
    struct thread_object *newest;
    const struct exti_ctx *destroying; /* whose object the thread itself is destroying */
    struct thread_owner *next;
};

/* Guards the list and what it leads to.  Taken with no lock of the library held; none is taken
 * under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct thread_owner *owners;
static _Thread_local struct thread_owner *own;

/* In glibc; musl lacks it, and copies there find none either. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library)
    __attribute__((weak));
extern void *__dso_handle;

static uint64_t this_thread(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

/* ---- forks ---- */

static void lock_objects(void)
{
    exti__fork_lock(&lock);
}

static void unlock_objects(void)
{
    exti__fork_unlock(&lock);
}

/* Other threads do not exist in the child, nor does what their destructors would give back. */
static void unlock_in_child(void)
{
    for (struct thread_owner *o = owners; o; o = o->next)
        if (o != own) {
            o->thread = NOBODY;
            o->destroying = NULL;
        }
    exti__fork_unlock(&lock);
}

static void install_object_fork_handlers(void)
{
    pthread_atfork(lock_objects, unlock_objects, unlock_in_child);
}

void exti__thread_objects_survive_forks(void)
{
    pthread_once(&fork_once, install_object_fork_handlers);
}

/* ---- the calling thread's objects ---- */

/* Takes the newest out of the list: of the context, or of any if that is NULL. */
static struct thread_object *take_newest(const struct exti_ctx *ctx)
{
    struct thread_object **link, *taken;

    exti__fork_lock(&lock);
    link = &own->newest;
    while (*link && ctx && (*link)->ctx != ctx)
        link = &(*link)->older;
    taken = *link;
    if (taken)
        *link = taken->older;
    own->destroying = taken ? taken->ctx : NULL;
    exti__fork_unlock(&lock);
    return taken;
}

static void free_object(struct thread_object *object)
{
    if (object->pin)
        exti__dlclose(object->pin);
    exti__free(object);
}

/* Destructors may make objects, which come first then. */
static void destroy_own(const struct exti_ctx *ctx)
{
    struct thread_object *object;

    while ((object = take_newest(ctx))) {
        if (object->destroy)
            object->destroy(object->object);
        free_object(object);
    }
}

static void remove_owner(struct thread_owner *o)
{
    struct thread_owner **link = &owners;

    exti__fork_lock(&lock);
    while (*link != o)
        link = &(*link)->next;
    *link = o->next;
    exti__fork_unlock(&lock);
    exti__free(o);
}

/* What the C library calls when the thread ends. */
static void end_thread(void *owner)
{
    destroy_own(NULL);
    own = NULL;
    remove_owner(owner);
}

static struct thread_owner *own_list(void)
{
    struct thread_owner *o = own;

    if (o)
        return o;
    o = exti__calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->thread = this_thread();
    exti__fork_lock(&lock);
    o->next = owners;
    owners = o;
    exti__fork_unlock(&lock);
    own = o;
    __cxa_thread_atexit_impl(end_thread, o, &__dso_handle);
    return o;
}

static bool is_pinned(const struct thread_owner *o, const void *module)
{
    const struct thread_object *object;

    exti__fork_lock(&lock);
    object = o->newest;
    while (object && object->module != module)
        object = object->older;
    exti__fork_unlock(&lock);
    return object != NULL;
}

bool exti__thread_object_add(const struct exti_module *m, void (*destroy)(void *), void *object)
{
    struct thread_owner *o = own_list();
    struct thread_object *added = o ? exti__calloc(1, sizeof *added) : NULL;
    const bool pinned = added && is_pinned(o, m->handle);

    if (!added)
        return false;
    *added = (struct thread_object){
        .destroy = destroy, .object = object, .ctx = m->ctx, .module = m->handle};
    if (!pinned)
        added->pin = exti__dlopen(m->lib.path, RTLD_LAZY | RTLD_NOLOAD);
    if (!pinned && !added->pin) {
        exti__free(added);
        return false;
    }
    exti__fork_lock(&lock);
    if (m->ctx->ended)
        added->destroy = NULL;
    added->older = o->newest;
    o->newest = added;
    exti__fork_unlock(&lock);
    return true;
}

/* ---- all threads' objects ---- */

void exti__thread_objects_detach(const struct exti_ctx *ctx, uint64_t thread)
{
    const uint64_t number = thread ? thread : this_thread();

    exti__fork_lock(&lock);
    for (struct thread_owner *o = owners; o; o = o->next)
        for (struct thread_object *object = o->newest; object && o->thread == number;
             object = object->older)
            object->detached = object->detached || object->ctx == ctx;
    exti__fork_unlock(&lock);
}

/* Takes the context's objects of threads that have left it, or do not exist, in their order. */
static struct thread_object *take_left(const struct exti_ctx *ctx)
{
    struct thread_object *list = NULL, **end = &list;

    for (struct thread_owner *o = owners; o; o = o->next)
        for (struct thread_object **link = &o->newest; *link;) {
            struct thread_object *object = *link;

            if (object->ctx != ctx || (!object->detached && o->thread != NOBODY)) {
                link = &object->older;
                continue;
            }
            if (o->thread == NOBODY)
                object->destroy = NULL;
            *link = object->older;
            object->older = NULL;
            *end = object;
            end = &object->older;
        }
    return list;
}

static bool others_destroy(const struct exti_ctx *ctx)
{
    const struct thread_owner *o = owners;

    while (o && (o == own || o->destroying != ctx))
        o = o->next;
    return o != NULL;
}

#define PATIENCE_MS 10000

/* Threads that are ending. */
static void wait_for_others(const struct exti_ctx *ctx)
{
    const struct timespec moment = {0, 1000000};

    for (int ms = 0; ms < PATIENCE_MS && others_destroy(ctx); ms++) {
        exti__fork_unlock(&lock);
        nanosleep(&moment, NULL);
        exti__fork_lock(&lock);
    }
}

void exti__thread_objects_end(const struct exti_ctx *ctx)
{
    struct thread_object *list;

    exti__fork_lock(&lock);
    list = take_left(ctx);
    wait_for_others(ctx);
    exti__fork_unlock(&lock);
    while (list) {
        struct thread_object *object = list;

        list = object->older;
        if (object->destroy)
            object->destroy(object->object);
        free_object(object);
    }
    /* Those of others may have made some on this thread. */
    if (own)
        destroy_own(ctx);
}

void exti__thread_objects_exit(const struct exti_ctx *ctx)
{
    if (own)
        destroy_own(ctx);
}

void exti__thread_objects_drop(const struct exti_ctx *ctx)
{
    exti__fork_lock(&lock);
    for (struct thread_owner *o = owners; o; o = o->next)
        for (struct thread_object *object = o->newest; object; object = object->older)
            if (object->ctx == ctx)
                object->destroy = NULL;
    exti__fork_unlock(&lock);
}

bool exti__thread_objects_remain(const struct exti_ctx *ctx)
{
    bool found = false;

    exti__fork_lock(&lock);
    for (const struct thread_owner *o = owners; o && !found; o = o->next)
        for (const struct thread_object *object = o->newest; object && !found;
             object = object->older)
            found = object->ctx == ctx;
    exti__fork_unlock(&lock);
    return found;
}

void exti__thread_objects_forget(const struct exti_ctx *ctx)
{
    exti__fork_lock(&lock);
    for (struct thread_owner *o = owners; o; o = o->next)
        for (struct thread_object *object = o->newest; object; object = object->older)
            if (object->ctx == ctx)
                object->ctx = NULL;
    exti__fork_unlock(&lock);
}
