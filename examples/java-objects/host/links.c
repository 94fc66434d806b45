/* The table of a context: links are made, handed out, scanned, settled and ended here. */
#include <stdlib.h>

#include "host.h"

#define SCAN_AT_A_BORDER 32
#define FIRST_CIRCLES 4096
#define PRESSURE (64 << 20)

/* ---- from Python to Java --------------------------------------------------------------------- */

/* Runs constructors of ours with the GIL, which wait for nothing. */
static jobject make_objects(JNIEnv *env, struct host *host, struct entry *e, void *native)
{
    jobject proxy =
        (*env)->NewObject(env, java.proxy, java.new_proxy, host->context, (jlong)(intptr_t)native);
    jobject ref = NULL;

    if (proxy)
        ref = (*env)->NewObject(env, java.ref, java.new_ref, proxy, host->java_links,
                                (jlong)(intptr_t)e);
    if (ref)
        e->ref = (*env)->NewGlobalRef(env, ref);
    if (e->ref && entry_refer(env, e, proxy) == 0) {
        (*env)->DeleteLocalRef(env, ref);
        return proxy;
    }
    (*env)->ExceptionClear(env);
    return NULL;
}

/* A type's own code may say how heavy its objects are, and meanwhile others close the context. */
static void weigh(struct host *host, struct entry *e)
{
    const int64_t weight = host->python->weight(e->native);

    if (!host->links)
        return;
    e->weight = weight;
    exti_links_weigh(host->links, weight);
}

static int make_proxy(JNIEnv *env, struct host *host, void *native, void **object)
{
    const struct exti_natives *natives = &host->python->natives;
    struct entry *e = entry_new(host);
    jobject proxy = e ? make_objects(env, host, e, native) : NULL;

    if (!proxy)
        goto failed;
    natives->add(host, native, 1);
    if (exti_link_native(host->links, (exti_host_word)e, native)) {
        natives->add(host, native, -1);
        goto failed;
    }
    e->native = native;
    atomic_store(&e->number, exti_link_number(host->links, native));
    *object = proxy;
    weigh(host, e);
    return 0;
failed:
    if (e)
        entry_free(env, host, e);
    return REASON_NOMEM;
}

int links_to_java(struct host *host, void *native, void **object)
{
    JNIEnv *env = java_env();
    struct entry *e;

    if (!host->links)
        return REASON_CLOSED;
    e = (struct entry *)exti_link_to_host(host->links, native);
    *object = e ? entry_object(env, e) : NULL;
    if (*object)
        return 0;
    return e && e->is_shell ? REASON_DEAD : make_proxy(env, host, native, object);
}

void *links_object_of(struct host *host, struct entry *e)
{
    return host->links ? entry_object(java_env(), e) : NULL;
}

/* ---- from Java to Python --------------------------------------------------------------------- */

int links_hand_out(struct host *host, void *native)
{
    if (!host->links)
        return REASON_CLOSED;
    return exti_link_hand_out(host->links, native) ? REASON_NOMEM : 0;
}

/* Making a shell may run Python's collector, and so any code, and let others link the object. */
static int link_shell(struct host *host, struct entry *e, void **shell)
{
    void *made = host->python->new_shell(e);

    if (!made)
        return REASON_NOMEM;
    *shell = host->links ? exti_link_from_host(host->links, (exti_host_word)e) : NULL;
    if (host->links && !*shell && exti_link_host(host->links, (exti_host_word)e, made, 0) == 0) {
        e->native = *shell = made;
        e->is_shell = true;
        atomic_store(&e->number, exti_link_number(host->links, made));
        return 0;
    }
    host->python->shell_ended(made);
    host->python->release(made);
    if (*shell)
        return 0;
    return host->links ? REASON_NOMEM : REASON_CLOSED;
}

/* The tests' negative control: the n-th shell is not handed out. */
static bool is_left_out(void)
{
#ifdef LEAVE_OUT
    static atomic_int shells;

    return atomic_fetch_add(&shells, 1) + 1 == LEAVE_OUT;
#else
    return false;
#endif
}

int links_shell_of(struct host *host, struct entry *e, void **shell)
{
    int rc = 0;

    if (!host->links)
        return REASON_CLOSED;
    *shell = exti_link_from_host(host->links, (exti_host_word)e);
    if (!*shell)
        rc = link_shell(host, e, shell);
    if (rc == 0 && !is_left_out())
        rc = links_hand_out(host, *shell);
    if (rc == 0)
        host->python->natives.add(host, *shell, 1);
    return rc;
}

/* ---- settling -------------------------------------------------------------------------------- */

/* What has died and is settled; nothing dies meanwhile, so that the two go together. */
static struct entry *take_settled(struct host *host)
{
    struct entry *dead = NULL;

    pthread_mutex_lock(&host->lock);
    if (exti_links_settle(host->links) > 0) { /* else none has died, or there is no memory */
        dead = host->dead;
        host->dead = NULL;
    }
    exti_links_poll(host->links);
    pthread_mutex_unlock(&host->lock);
    return dead;
}

static void settle(struct host *host)
{
    struct entry *dead = take_settled(host), *next;
    JNIEnv *env = java_env();
    void *native;

    for (; dead; dead = next) {
        next = dead->next_dead;
        if (dead->is_shell)
            host->python->shell_ended(dead->native);
        exti_links_weigh(host->links, -dead->weight);
        entry_free(env, host, dead);
    }
    /* Ending natives runs any code, which may let others close the context. */
    while (host->links && (native = exti_links_next_dead(host->links)))
        host->python->release(native);
}

static void please_collect(void *user)
{
    atomic_store(&((struct host *)user)->collect, true);
}

/* What has been made weak is Java's to collect, which does not see how much there is. */
static void weaken_circles(struct host *host)
{
    host->python->count_weak(1);
    if (exti_links_weaken_circles(host->links) > 0)
        please_collect(host);
    host->python->count_weak(0);
    toggle_free_hubs(java_env(), host);
    host->circles_at = SIZE_MAX; /* until there has been a collection */
}

/* When there are twice as many links as collections have left. */
static void look_for_circles(struct host *host)
{
    struct exti_links_info info = {.size = sizeof info};
    size_t at;

    exti_links_info(host->links, &info);
    at = info.links < FIRST_CIRCLES / 2 ? FIRST_CIRCLES : 2 * info.links;
    if (at < host->circles_at)
        host->circles_at = at;
    if (info.links >= host->circles_at)
        weaken_circles(host);
}

void links_border(struct host *host)
{
    if (!host->links || !java_env())
        return;
    exti_links_scan(host->links, SCAN_AT_A_BORDER);
    look_for_circles(host);
    settle(host);
}

void links_collect(struct host *host)
{
    if (!host->links)
        return;
    settle(host);
    if (!host->links)
        return;
    exti_links_scan(host->links, 0);
    weaken_circles(host);
}

/* ---- what has died --------------------------------------------------------------------------- */

static void settle_soon(void *user)
{
    struct host *host = user;

    atomic_store(&host->soon, false);
    links_border(host);
}

/* After the end nobody settles, and all entries are freed together. */
void links_died(struct host *host, struct entry *e)
{
    const uint32_t number = atomic_load(&e->number);

    pthread_mutex_lock(&host->lock);
    if (host->links) {
        if (number != UINT32_MAX)
            exti_link_died(host->links, number);
        e->next_dead = host->dead;
        host->dead = e;
        if (!atomic_exchange(&host->soon, true) &&
            extipy_call_soon(host->ctx, settle_soon, host) < 0)
            atomic_store(&host->soon, false); /* the next border does it */
    }
    pthread_mutex_unlock(&host->lock);
}

/* ---- tables ---------------------------------------------------------------------------------- */

int links_open(struct host *host, struct exti_error *err)
{
    const struct exti_links_opts opts = {.size = sizeof opts,
                                         .natives = host->python->natives,
                                         .toggling = toggling,
                                         .please_collect = please_collect,
                                         .user = host,
                                         .pressure = PRESSURE};

    host->circles_at = FIRST_CIRCLES;
    return exti_links_open(&host->links, &opts, err);
}

/* Natives that only their links kept end as any others, once the table is closed. */
void links_end(struct host *host)
{
    struct exti_links *links = host->links;

    settle(host);
    pthread_mutex_lock(&host->lock);
    for (struct entry *e = host->entries; e; e = e->next)
        if (atomic_load(&e->number) != UINT32_MAX) {
            host->python->natives.add(host, e->native, 1);
            if (e->is_shell)
                host->python->shell_ended(e->native);
        }
    host->links = NULL;
    host->dead = NULL;
    pthread_mutex_unlock(&host->lock);
    exti_links_close(links);
    for (struct entry *e = host->entries; e; e = e->next)
        if (atomic_load(&e->number) != UINT32_MAX)
            host->python->release(e->native);
}
