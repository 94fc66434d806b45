#include "loader/track/context_keys.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/track/context_threads.h"
#include "loader/track/fork_lock.h"

/* Both tables have two levels, so that they grow while others read them, and a thread has room for
 * the keys of the contexts that it is in, and not for those of all. */
#define KEYS_IN_CHUNK 256
#define CHUNKS 256
#define VALUES_IN_BLOCK 32

struct key {
    /* Odd: it exists.  Counts its creations and deletions, by which the value of a thread is known
     * to be of an earlier key of the same number. */
    _Atomic uintptr_t use;
    void (*_Atomic destroy)(void *value);
    const struct exti_ctx *_Atomic ctx; /* compared only; NULL once that is freed */
    unsigned destroying;                /* threads that run the destructor */
};

struct value {
    uintptr_t use; /* of the key, when it was set */
    void *data;
    unsigned long detachings; /* until then */
};

/* A thread's values. */
struct values {
    struct value **blocks; /* owned, as they are; each may be NULL */
    size_t count;
    struct values *next, **at; /* in a list; what points to it there */
};

/* Guards the keys and the lists; who only reads a key needs no lock.  Taken with no lock of the
 * library held; none is taken under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct key *_Atomic chunks[CHUNKS];
static size_t first_free; /* no key before it is free */
static struct values *all;
static struct values *left_behind; /* by a fork: those of threads that this process does not have */

static struct values none;
static _Thread_local struct values *own = &none; /* owned, but for that */
static _Thread_local bool armed;      /* the system calls end_thread when the thread ends */
static _Thread_local unsigned rounds; /* so often it has called it */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t end_key; /* of the system's */
static int end_key_error;

/* ---- keys ---- */

static struct key *key_at(size_t i)
{
    struct key *chunk =
        i < (size_t)CHUNKS * KEYS_IN_CHUNK ? atomic_load(&chunks[i / KEYS_IN_CHUNK]) : NULL;

    return chunk ? &chunk[i % KEYS_IN_CHUNK] : NULL;
}

static bool exists(const struct key *k)
{
    return k && atomic_load(&k->use) % 2;
}

static struct key *key_of(pthread_key_t key)
{
    struct key *k = exti__ctx_key_is_own(key) ? key_at(key - PTHREAD_KEYS_MAX) : NULL;

    return exists(k) ? k : NULL;
}

/* Makes room for the key; the lock is held. */
static int make_chunk(size_t i)
{
    struct key *_Atomic *chunk = &chunks[i / KEYS_IN_CHUNK];

    if (i >= (size_t)CHUNKS * KEYS_IN_CHUNK)
        return EAGAIN;
    if (!atomic_load(chunk))
        atomic_store(chunk, exti__calloc(KEYS_IN_CHUNK, sizeof(struct key)));
    return atomic_load(chunk) ? 0 : ENOMEM;
}

int exti__ctx_key_create(const struct exti_ctx *ctx, pthread_key_t *out, void (*destroy)(void *))
{
    size_t i;
    int rc;

    exti__fork_lock(&lock);
    for (i = first_free; exists(key_at(i)); i++)
        continue;
    rc = make_chunk(i);
    if (rc == 0) {
        struct key *k = key_at(i);

        atomic_store(&k->destroy, destroy);
        atomic_store(&k->ctx, ctx);
        atomic_fetch_add(&k->use, 1);
        first_free = i + 1;
        *out = (pthread_key_t)(i + PTHREAD_KEYS_MAX);
    }
    exti__fork_unlock(&lock);
    return rc;
}

/* The lock is held. */
static void delete_key(struct key *k, size_t i)
{
    atomic_fetch_add(&k->use, 1);
    atomic_store(&k->destroy, NULL);
    atomic_store(&k->ctx, NULL);
    if (i < first_free)
        first_free = i;
}

int exti__ctx_key_delete(pthread_key_t key)
{
    const struct exti_ctx *ctx = NULL;
    struct key *k;

    exti__fork_lock(&lock);
    k = key_of(key);
    if (k) {
        ctx = atomic_load(&k->ctx);
        delete_key(k, key - PTHREAD_KEYS_MAX);
    }
    exti__fork_unlock(&lock);
    if (ctx)
        exti__ctx_thread_values_dropped(ctx, key);
    return k ? 0 : EINVAL;
}

/* ---- values of the calling thread ---- */

static struct value *own_value(size_t i)
{
    struct value *block =
        i / VALUES_IN_BLOCK < own->count ? own->blocks[i / VALUES_IN_BLOCK] : NULL;

    return block ? &block[i % VALUES_IN_BLOCK] : NULL;
}

/* Of these lists; the lock is held. */
static void put_in(struct values **list, struct values *v)
{
    v->next = *list;
    v->at = list;
    if (v->next)
        v->next->at = &v->next;
    *list = v;
}

static void take_out(struct values *v)
{
    *v->at = v->next;
    if (v->next)
        v->next->at = v->at;
}

/* It stays in its list until the blocks are freed: the thread may be one whose stack a leak checker
 * looks at no more. */
static void free_values(struct values *v)
{
    for (size_t i = 0; i < v->count; i++)
        exti__free(v->blocks[i]);
    exti__free(v->blocks);
    take_out(v);
    exti__free(v);
}

static void free_left_behind(void)
{
    while (left_behind)
        free_values(left_behind);
}

/* The lock is held. */
static bool make_own_values(void)
{
    struct values *v = own != &none ? own : exti__calloc(1, sizeof *v);

    if (!v)
        return false;
    if (v == own)
        return true;
    free_left_behind();
    put_in(&all, v);
    own = v;
    return true;
}

/* A signal handler may read the table meanwhile. */
static bool grow_blocks(size_t count)
{
    struct value **grown = exti__calloc(count, sizeof *grown), **old = own->blocks;

    if (!grown)
        return false;
    for (size_t i = 0; i < own->count; i++)
        grown[i] = old[i];
    own->blocks = grown;
    atomic_signal_fence(memory_order_seq_cst);
    own->count = count;
    exti__free(old);
    return true;
}

/* All under the lock, so that no fork finds a block that nothing refers to yet. */
static struct value *make_own_value(size_t i)
{
    const size_t block = i / VALUES_IN_BLOCK;

    exti__fork_lock(&lock);
    if (make_own_values() && (block < own->count || grow_blocks(block + 1)) && !own->blocks[block])
        own->blocks[block] = exti__calloc(VALUES_IN_BLOCK, sizeof(struct value));
    exti__fork_unlock(&lock);
    return own_value(i);
}

static void free_own_values(void)
{
    struct values *v = own;

    own = &none;
    if (v == &none)
        return;
    exti__fork_lock(&lock);
    free_values(v);
    exti__fork_unlock(&lock);
}

/* While the process exits, and the key is deleted, threads go on. */
static int arm(void)
{
    int rc = armed ? 0 : pthread_setspecific(end_key, own);

    armed = rc != ENOMEM;
    return armed ? 0 : rc;
}

static void *data_of(const struct value *v, const struct key *k)
{
    return v && v->use == atomic_load(&k->use) ? v->data : NULL;
}

void *exti__ctx_key_get(pthread_key_t key)
{
    const struct key *k = key_of(key);

    return k ? data_of(own_value(key - PTHREAD_KEYS_MAX), k) : NULL;
}

/* The context knows the threads that have a value, but for those that are detached from it. */
static bool note_value(const struct key *k, pthread_key_t key, bool set)
{
    const struct exti_ctx *ctx = atomic_load(&k->ctx);

    return !ctx || exti__ctx_thread_set_value(ctx, key, set);
}

int exti__ctx_key_set(pthread_key_t key, const void *value)
{
    const size_t i = key - PTHREAD_KEYS_MAX;
    const struct key *k = key_of(key);
    const unsigned long detachings = exti__ctx_threads_detachings();
    struct value *v = k ? own_value(i) : NULL;
    int rc;

    if (!k)
        return EINVAL;
    if (!(value && data_of(v, k) && v->detachings == detachings) &&
        !note_value(k, key, value != NULL))
        return ENOMEM;
    if (!v && !value)
        return 0;
    if (!v)
        v = make_own_value(i);
    rc = v ? arm() : ENOMEM;
    if (rc == 0)
        *v = (struct value){atomic_load(&k->use), (void *)(uintptr_t)value, detachings};
    return rc;
}

/* ---- the end of a thread ---- */

/* While it runs, the context is not unloaded. */
static void destroy_value(size_t i, struct value *v)
{
    struct key *k = key_at(i);
    void (*destroy)(void *) = NULL;
    void *data;

    exti__fork_lock(&lock);
    data = data_of(v, k);
    if (data)
        destroy = atomic_load(&k->destroy);
    k->destroying += destroy != NULL;
    exti__fork_unlock(&lock);
    if (!destroy)
        return;
    v->data = NULL;
    destroy(data);
    exti__fork_lock(&lock);
    k->destroying -= k->destroying > 0; /* not in a child that it has forked */
    exti__fork_unlock(&lock);
}

/* The thread sanitizer leaves the thread in the last round, and code that it checks must not run
 * after that. */
#ifdef __SANITIZE_THREAD__
#define ROUNDS (PTHREAD_DESTRUCTOR_ITERATIONS - 1)
#else
#define ROUNDS PTHREAD_DESTRUCTOR_ITERATIONS
#endif

/* In the rounds that POSIX has, as others' destructors may set a value again, and find in the last
 * round what has no destructor. */
static void end_thread(void *values)
{
    (void)values;
    armed = false;
    for (size_t i = 0; i < own->count * VALUES_IN_BLOCK; i++) {
        struct value *v = own_value(i);

        if (v && v->data)
            destroy_value(i, v);
    }
    if (++rounds < ROUNDS)
        arm();
    else
        free_own_values();
}

/* ---- the end of a context ---- */

void exti__ctx_keys_leave(const struct exti_ctx *ctx)
{
    for (size_t i = 0; i < own->count * VALUES_IN_BLOCK; i++) {
        struct value *v = own_value(i);

        if (v && v->data && atomic_load(&key_at(i)->ctx) == ctx && atomic_load(&key_at(i)->destroy))
            v->data = NULL;
    }
}

/* Calls `act` with each key of the context; the lock is held. */
static void each_key(const struct exti_ctx *ctx, void (*act)(struct key *k, size_t i))
{
    struct key *k;

    for (size_t i = 0; (k = key_at(i)); i++)
        if (exists(k) && atomic_load(&k->ctx) == ctx)
            act(k, i);
}

/* Its values are of an earlier use from now on. */
static void disarm_key(struct key *k, size_t i)
{
    (void)i;
    atomic_fetch_add(&k->use, 2);
    atomic_store(&k->destroy, NULL);
}

static void forget_key(struct key *k, size_t i)
{
    (void)i;
    atomic_store(&k->ctx, NULL);
}

static bool destructors_run(const struct exti_ctx *ctx)
{
    const struct key *k;

    for (size_t i = 0; (k = key_at(i)); i++)
        if (atomic_load(&k->ctx) == ctx && k->destroying)
            return true;
    return false;
}

/* A busy machine may take as long to let a destructor end. */
#define PATIENCE_MS 10000

bool exti__ctx_keys_disarm(const struct exti_ctx *ctx, struct exti_error *finding)
{
    const struct timespec moment = {0, 1000000};
    bool run;

    exti__fork_lock(&lock);
    free_left_behind();
    each_key(ctx, disarm_key);
    for (int ms = 0; (run = destructors_run(ctx)) && ms < PATIENCE_MS; ms++) {
        exti__fork_unlock(&lock);
        nanosleep(&moment, NULL);
        exti__fork_lock(&lock);
    }
    exti__fork_unlock(&lock);
    if (run)
        exti__fail(finding, EXTI_E_BUSY, EXTI_NO_OFFSET,
                   "a thread that ends runs a destructor of its thread-specific values, which may "
                   "be code of the context");
    return !run;
}

void exti__ctx_keys_delete(const struct exti_ctx *ctx)
{
    exti__fork_lock(&lock);
    each_key(ctx, delete_key);
    exti__fork_unlock(&lock);
}

void exti__ctx_keys_forget(const struct exti_ctx *ctx)
{
    exti__fork_lock(&lock);
    each_key(ctx, forget_key);
    exti__fork_unlock(&lock);
}

/* ---- the process ---- */

/* Another thread may hold the lock at the moment of a fork, and does not exist in the child to
 * release it. */
static void lock_keys(void)
{
    exti__fork_lock(&lock);
}

static void unlock_keys(void)
{
    exti__fork_unlock(&lock);
}

/* Those threads do not exist there, to run destructors or free their values; this frees none, as
 * malloc may not work yet. */
static void unlock_in_child(void)
{
    struct values *v, *next;
    struct key *k;

    for (size_t i = 0; (k = key_at(i)); i++)
        k->destroying = 0;
    for (v = all; v; v = next) {
        next = v->next;
        if (v != own) {
            take_out(v);
            put_in(&left_behind, v);
        }
    }
    exti__fork_unlock(&lock);
}

static void prepare(void)
{
    pthread_atfork(lock_keys, unlock_keys, unlock_in_child);
    end_key_error = pthread_key_create(&end_key, end_thread);
}

int exti__ctx_keys_prepare(struct exti_error *err)
{
    pthread_once(&once, prepare);
    if (end_key_error == 0)
        return 0;
    return exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                      "all %d thread-specific data keys of the process are in use, and contexts "
                      "need one: start them before what uses the keys",
                      (int)PTHREAD_KEYS_MAX);
}

/* The library may be unloaded while threads have values. */
__attribute__((destructor)) static void give_back_key(void)
{
    if (atomic_load(&chunks[0]))
        pthread_key_delete(end_key);
}
