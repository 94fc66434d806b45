/* What there is of each context. */
#include <stdlib.h>

#include "host.h"

struct host *host_new(JNIEnv *env, jobject context, jobject links)
{
    struct host *host = calloc(1, sizeof *host);

    if (!host)
        return NULL;
    pthread_mutex_init(&host->lock, NULL);
    host->context = (*env)->NewGlobalRef(env, context);
    host->java_links = (*env)->NewGlobalRef(env, links);
    atomic_init(&host->users, 1);
    return host;
}

void host_keep(struct host *host)
{
    atomic_fetch_add(&host->users, 1);
}

/* The last one may be a daemon thread of Python's that has been in Java since before the end. */
void host_release(JNIEnv *env, struct host *host)
{
    if (atomic_fetch_sub(&host->users, 1) > 1)
        return;
    while (host->entries)
        entry_free(env, host, host->entries);
    (*env)->DeleteGlobalRef(env, host->context);
    (*env)->DeleteGlobalRef(env, host->java_links);
    pthread_mutex_destroy(&host->lock);
    free(host);
}
