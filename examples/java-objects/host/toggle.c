/* What the table asks of a host that toggles.
 *
 * All of this is called with the GIL.  It runs no code of Java, and so waits for no lock of Java's,
 * whose owner might wait for the GIL; JNI itself waits for the garbage collector at most, and that
 * one waits for nobody who is in native code. */
#include <stdlib.h>

#include "host.h"

static struct entry *entry_at(exti_host_word word)
{
    return (struct entry *)word;
}

static int strengthen(void *user, exti_host_word word)
{
    struct entry *e = entry_at(word);
    JNIEnv *env = java_env();

    (void)user;
    if (env && !e->strong)
        e->strong = (*env)->NewGlobalRef(env, e->object); /* NULL: it has died */
    return env && e->strong ? 0 : -1;
}

static void weaken(void *user, exti_host_word word)
{
    struct entry *e = entry_at(word);
    JNIEnv *env = java_env();

    (void)user;
    if (!env || !e->strong)
        return;
    (*env)->DeleteGlobalRef(env, e->strong);
    e->strong = NULL;
}

/* ---- circles --------------------------------------------------------------------------------- */

/* Makes `from`, a Holder, keep `to`. */
static int hold(JNIEnv *env, jobject from, jobject to)
{
    jobject held = (*env)->AllocObject(env, java.held);
    jobject next;

    if (!held) {
        (*env)->ExceptionClear(env);
        return -1;
    }
    next = (*env)->GetObjectField(env, from, java.holder_held);
    (*env)->SetObjectField(env, held, java.held_object, to);
    (*env)->SetObjectField(env, held, java.held_next, next);
    (*env)->SetObjectField(env, from, java.holder_held, held);
    (*env)->DeleteLocalRef(env, next);
    (*env)->DeleteLocalRef(env, held);
    return 0;
}

/* Only proxies and hubs are holders; a shell refers to nothing that the table would repeat.  The
 * object of a shell may be a proxy of another context, whose table has it hold what it likes. */
static int refer(void *user, exti_host_word from, exti_host_word to)
{
    JNIEnv *env = java_env();
    jobject holder, object;
    int rc = -1;

    (void)user;
    if (!env || entry_at(from)->is_shell)
        return -1;
    holder = entry_object(env, entry_at(from));
    object = entry_object(env, entry_at(to));
    if (holder && object)
        rc = hold(env, holder, object);
    (*env)->DeleteLocalRef(env, holder);
    (*env)->DeleteLocalRef(env, object);
    return rc;
}

/* The table uses the words of hubs until exti_links_weaken_circles returns. */
static exti_host_word hub(void *user, exti_host_word from)
{
    struct host *host = user;
    JNIEnv *env = java_env();
    struct entry *e = calloc(1, sizeof *e);
    jobject object = env && e ? (*env)->AllocObject(env, java.holder) : NULL;

    if (env && e && !object)
        (*env)->ExceptionClear(env);
    if (object)
        e->object = (*env)->NewGlobalRef(env, object);
    if (!object || !e->object) {
        free(e);
        return 0;
    }
    (*env)->DeleteLocalRef(env, object);
    e->next = host->hubs;
    host->hubs = e;
    return refer(user, from, (exti_host_word)e) ? 0 : (exti_host_word)e;
}

void toggle_free_hubs(JNIEnv *env, struct host *host)
{
    while (host->hubs) {
        struct entry *e = host->hubs;

        host->hubs = e->next;
        (*env)->DeleteGlobalRef(env, e->object);
        free(e);
    }
}

static void forget(void *user, exti_host_word from)
{
    JNIEnv *env = java_env();
    jobject holder = env && !entry_at(from)->is_shell ? entry_object(env, entry_at(from)) : NULL;

    (void)user;
    if (!holder)
        return;
    (*env)->SetObjectField(env, holder, java.holder_held, NULL);
    (*env)->DeleteLocalRef(env, holder);
}

const struct exti_toggling toggling = {strengthen, weaken, refer, hub, forget};
