#include "loader/track/context_keys.h"

#include <limits.h>
#include <stdatomic.h>

#include "loader/track/context_threads.h"
#include "loader/track/fork_lock.h"

/* Keeps keys' numbers from changing hands while contexts that close take destructors from theirs.
 * Taken with no lock of the library held; none is taken under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* The context of each key, or NULL. */
static const struct exti_ctx *_Atomic key_ctx[PTHREAD_KEYS_MAX];
static atomic_bool key_destroys[PTHREAD_KEYS_MAX];

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

static void install_key_fork_handlers(void)
{
    pthread_atfork(lock_keys, unlock_keys, unlock_keys);
}

void exti__ctx_keys_survive_forks(void)
{
    pthread_once(&fork_once, install_key_fork_handlers);
}

/* ---- calls of copies ---- */

void exti__ctx_key_created(const struct exti_ctx *ctx, pthread_key_t key, bool destroys)
{
    atomic_store(&key_destroys[key], destroys);
    atomic_store(&key_ctx[key], ctx);
}

void exti__ctx_key_deleted(pthread_key_t key)
{
    const struct exti_ctx *ctx;

    exti__fork_lock(&lock);
    ctx = key < PTHREAD_KEYS_MAX ? atomic_exchange(&key_ctx[key], NULL) : NULL;
    exti__fork_unlock(&lock);
    if (ctx)
        exti__ctx_thread_values_dropped(ctx, key);
}

bool exti__ctx_key_value(pthread_key_t key, const void *value)
{
    const struct exti_ctx *ctx = key < PTHREAD_KEYS_MAX ? atomic_load(&key_ctx[key]) : NULL;

    return !ctx || exti__ctx_thread_set_value(ctx, key, value != NULL);
}

/* ---- the end of a context ---- */

void exti__ctx_keys_leave(const struct exti_ctx *ctx)
{
    for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++)
        if (atomic_load(&key_ctx[key]) == ctx && atomic_load(&key_destroys[key]))
            pthread_setspecific(key, NULL);
}

/* Creates the key of this number again, which was just deleted, without a destructor.  Both C
 * libraries give the lowest number that is free. */
static bool create_again(pthread_key_t key)
{
    pthread_key_t taken[PTHREAD_KEYS_MAX];
    size_t n = 0;
    bool created = false;

    while (!created && n < PTHREAD_KEYS_MAX && !pthread_key_create(&taken[n], NULL))
        created = taken[n++] == key;
    for (size_t i = 0; i + created < n; i++)
        pthread_key_delete(taken[i]);
    return created;
}

void exti__ctx_keys_disarm(const struct exti_ctx *ctx)
{
    exti__fork_lock(&lock);
    for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
        if (atomic_load(&key_ctx[key]) != ctx)
            continue;
        pthread_key_delete(key);
        if (!create_again(key))
            atomic_store(&key_ctx[key], NULL);
    }
    exti__fork_unlock(&lock);
}

void exti__ctx_keys_delete(const struct exti_ctx *ctx)
{
    exti__fork_lock(&lock);
    for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
        if (atomic_load(&key_ctx[key]) != ctx)
            continue;
        atomic_store(&key_ctx[key], NULL);
        pthread_key_delete(key);
    }
    exti__fork_unlock(&lock);
}

void exti__ctx_keys_forget(const struct exti_ctx *ctx)
{
    exti__fork_lock(&lock);
    for (size_t key = 0; key < PTHREAD_KEYS_MAX; key++)
        if (atomic_load(&key_ctx[key]) == ctx)
            atomic_store(&key_ctx[key], NULL);
    exti__fork_unlock(&lock);
}
