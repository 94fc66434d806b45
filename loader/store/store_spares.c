#include "loader/store/store_spares.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/os/fs_replace.h"
#include "base/path.h"
#include "loader/process/fork_guard.h"
#include "loader/store/store_remove.h"

/* How many folders' files are kept, which is room on the disk: as many contexts may end before the
 * next ones begin. */
#define MOST_FOLDERS 16

/* The folder of a context that has ended.  What was taken from it has no pattern any more. */
struct folder {
    struct folder *newer;
    char *dir;
    struct exti_manifest manifest;
    bool remove;  /* its store would have removed it */
    size_t left;  /* spare files in it */
    size_t begin; /* where the next search begins: contexts ask for files in about one order */
    size_t users; /* who moves a file out of it just now */
};

/* Guarded by the lock, which is never held while files are moved. */
static struct {
    pthread_mutex_t lock;
    struct folder *oldest;
    atomic_size_t count;
    bool over; /* the process ends, or is a child */
} spares = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- folders ---- */

static void free_folder(struct folder *f)
{
    if (f->remove)
        exti__store_remove(f->dir, &f->manifest, true, NULL);
    exti__manifest_clear(&f->manifest);
    exti__free(f->dir);
    exti__free(f);
}

static void free_folders(struct folder *list)
{
    while (list) {
        struct folder *f = list;

        list = f->newer;
        free_folder(f);
    }
}

/* Takes the folder that *at leads to off the list.  The lock is held. */
static struct folder *unlink_folder(struct folder **at)
{
    struct folder *f = *at;

    *at = f->newer;
    f->newer = NULL;
    spares.count--;
    return f;
}

/* Takes the oldest off the list until `most` are left, but for those in use.  The lock is held. */
static struct folder *take_oldest(size_t most)
{
    struct folder *list = NULL, **end = &list, **at = &spares.oldest;

    while (*at && spares.count > most) {
        if ((*at)->users) {
            at = &(*at)->newer;
        } else {
            *end = unlink_folder(at);
            end = &(*end)->newer;
        }
    }
    return list;
}

void exti__spares_trim(size_t most)
{
    struct folder *list;

    if (!spares.count)
        return;
    pthread_mutex_lock(&spares.lock);
    list = take_oldest(most < MOST_FOLDERS ? most : MOST_FOLDERS);
    pthread_mutex_unlock(&spares.lock);
    free_folders(list);
}

/* ---- forks and the end ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_error;

/* What is in the folders is the parent's. */
static void forget_in_child(void)
{
    pthread_mutex_init(&spares.lock, NULL);
    spares.oldest = NULL;
    spares.count = 0;
    spares.over = true;
}

static void drop_at_end(void)
{
    pthread_mutex_lock(&spares.lock);
    spares.over = true;
    pthread_mutex_unlock(&spares.lock);
    exti__spares_trim(0);
}

static void install(void)
{
    install_error = pthread_atfork(NULL, NULL, forget_in_child);
    if (!install_error && atexit(drop_at_end))
        install_error = ENOMEM;
}

int exti__spares_prepare(void)
{
    pthread_once(&once, install);
    return install_error;
}

/* ---- giving ---- */

static size_t count_spare(const struct exti_manifest *m)
{
    size_t n = m->api.marks.pattern != 0;

    for (size_t i = 0; i < m->count; i++)
        n += m->entries[i].marks.pattern != 0;
    return n;
}

/* False: there are to be no more.  The lock is held. */
static bool add_newest(struct folder *f)
{
    struct folder **end = &spares.oldest;

    if (spares.over)
        return false;
    while (*end)
        end = &(*end)->newer;
    *end = f;
    spares.count++;
    return true;
}

bool exti__spares_give(struct exti_store *s)
{
    const size_t left = count_spare(&s->manifest);
    struct folder *f;
    bool added;

    if (!s->one_shot || !left || s->forks != exti__forks_begun())
        return false;
    f = exti__calloc(1, sizeof *f);
    if (!f)
        return false;
    *f = (struct folder){.dir = s->dir, .manifest = s->manifest, .remove = !s->stays, .left = left};
    pthread_mutex_lock(&spares.lock);
    added = add_newest(f);
    pthread_mutex_unlock(&spares.lock);
    if (!added) {
        exti__free(f);
        return false;
    }
    s->dir = NULL;
    s->manifest = (struct exti_manifest){.count = 0};
    return true;
}

/* ---- using ---- */

static struct exti_entry *entry_at(struct folder *f, size_t i)
{
    return i < f->manifest.count ? &f->manifest.entries[i] : &f->manifest.api;
}

/* The folder's file by that pattern, which is no longer spare then; NULL if it has none.  The lock
 * is held. */
static const struct exti_entry *take_file(struct folder *f, const struct exti_pattern *p)
{
    const size_t count = f->manifest.count + 1;

    for (size_t n = 0; f->left && n < count; n++) {
        const size_t i = (f->begin + n) % count;
        struct exti_entry *e = entry_at(f, i);

        if (e->marks.pattern == p->number) {
            e->marks.pattern = 0;
            f->begin = i + 1;
            f->left--;
            f->users++;
            return e;
        }
    }
    return NULL;
}

static const struct exti_entry *find_file(const struct exti_pattern *p, struct folder **in)
{
    const struct exti_entry *e = NULL;

    pthread_mutex_lock(&spares.lock);
    for (*in = spares.oldest; *in && !(e = take_file(*in, p));)
        *in = (*in)->newer;
    pthread_mutex_unlock(&spares.lock);
    return e;
}

/* The last one who uses a folder without spare files drops it. */
static void release_folder(struct folder *f)
{
    struct folder **at = &spares.oldest, *dropped = NULL;

    pthread_mutex_lock(&spares.lock);
    while (*at && *at != f)
        at = &(*at)->newer;
    if (!--f->users && !f->left && *at)
        dropped = unlink_folder(at);
    pthread_mutex_unlock(&spares.lock);
    free_folders(dropped);
}

bool exti__spares_use(const struct exti_pattern *p, const char *path, const uint8_t *bytes)
{
    struct folder *f;
    const struct exti_entry *e = find_file(p, &f);
    bool used = false;
    char *from;
    int cancel;

    if (!e)
        return false;
    /* The folder is the process's. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    from = exti__path_join(f->dir, e->copy);
    if (from)
        used = !exti__fs_clone_again(from, &e->copy_id, path, p->kept, p->size, p->changed,
                                     p->changed_count, bytes, NULL);
    exti__free(from);
    release_folder(f);
    pthread_setcancelstate(cancel, NULL);
    return used;
}
