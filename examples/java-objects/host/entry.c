/* Entries: what a host's word is the address of. */
#include <stdlib.h>

#include "host.h"

struct entry *entry_new(struct host *host)
{
    struct entry *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    atomic_init(&e->number, UINT32_MAX);
    pthread_mutex_lock(&host->lock);
    e->next = host->entries;
    if (e->next)
        e->next->prev = e;
    host->entries = e;
    pthread_mutex_unlock(&host->lock);
    return e;
}

int entry_refer(JNIEnv *env, struct entry *e, jobject object)
{
    e->object = (*env)->NewWeakGlobalRef(env, object);
    return e->object ? 0 : -1;
}

void entry_free(JNIEnv *env, struct host *host, struct entry *e)
{
    pthread_mutex_lock(&host->lock);
    if (e->next)
        e->next->prev = e->prev;
    if (e->prev)
        e->prev->next = e->next;
    else
        host->entries = e->next;
    pthread_mutex_unlock(&host->lock);
    if (e->object)
        (*env)->DeleteWeakGlobalRef(env, e->object);
    if (e->strong)
        (*env)->DeleteGlobalRef(env, e->strong);
    if (e->ref)
        (*env)->DeleteGlobalRef(env, e->ref);
    free(e);
}

jobject entry_object(JNIEnv *env, const struct entry *e)
{
    return (*env)->NewLocalRef(env, e->object);
}
