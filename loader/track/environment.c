#include "loader/track/environment.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "loader/track/fork_lock.h"

extern char **environ;

struct exti_kept_list {
    struct exti_kept_list *next;
    char *entries[];
};

/* Guards what is written of all environments: a fork takes one lock, however many contexts there
 * are.  Taken with no lock of the library held; none is taken under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

static void lock_environments(void)
{
    exti__fork_lock(&lock);
}

static void unlock_environments(void)
{
    exti__fork_unlock(&lock);
}

/* Another thread may hold the lock at the moment of a fork, and does not exist in the child to
 * release it. */
static void install_environment_fork_handlers(void)
{
    fork_error = pthread_atfork(lock_environments, unlock_environments, unlock_environments);
}

int exti__environment_survive_forks(void)
{
    pthread_once(&fork_once, install_environment_fork_handlers);
    return fork_error;
}

/* Readers hold no lock, so entries are read and written whole. */
static char *entry_at(char **list, size_t i)
{
    return __atomic_load_n(&list[i], __ATOMIC_ACQUIRE);
}

static void set_entry(char **list, size_t i, char *entry)
{
    __atomic_store_n(&list[i], entry, __ATOMIC_RELEASE);
}

static char **list_of(struct exti_environment *e)
{
    return __atomic_load_n(&e->list, __ATOMIC_ACQUIRE);
}

static bool is_named(const char *entry, const char *name, size_t length)
{
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static size_t count_entries(char **list)
{
    size_t n = 0;

    while (list && entry_at(list, n))
        n++;
    return n;
}

/* ---- reading ---- */

/* Whether the entry may be of a name that begins so, or ends the list. */
static inline bool stops(const char *entry, char first, char second)
{
    return !entry || (entry[0] == first && entry[1] == second);
}

/* The first entry that may be of a name which begins so, with what follows it in *list; or NULL.
 * Four a turn, and a branch is taken for few: this is most of what a call costs, above all for a
 * name that is not there. */
static inline char *next_alike(char ***list, char first, char second)
{
    char **at = *list, *entry;

    while (!stops(entry = entry_at(at++, 0), first, second) &&
           !stops(entry = entry_at(at++, 0), first, second) &&
           !stops(entry = entry_at(at++, 0), first, second) &&
           !stops(entry = entry_at(at++, 0), first, second))
        ;
    *list = at;
    return entry;
}

/* The value of an entry that may be of that name, if it is. */
static char *value_of(char *entry, const char *name)
{
    size_t i = 2;

    if (!name[1])
        return entry + i;
    while (name[i] && entry[i] == name[i])
        i++;
    return !name[i] && entry[i] == '=' ? entry + i + 1 : NULL;
}

/* `name` is not empty. */
static char *find_value(char **list, const char *name)
{
    const char second = name[1] ? name[1] : '=';
    char *entry, *value;

    while (list && (entry = next_alike(&list, name[0], second)))
        if ((value = value_of(entry, name)))
            return value;
    return NULL;
}

/* Entries that move down while another is removed may be passed over.  Not inlined, so that other
 * calls save no registers. */
__attribute__((noinline)) static char *find_once_settled(struct exti_environment *e,
                                                         const char *name)
{
    unsigned before;
    char *value;

    do {
        before = atomic_load_explicit(&e->changes, memory_order_acquire);
        value = find_value(list_of(e), name);
        atomic_thread_fence(memory_order_acquire);
        /* A signal handler may have interrupted the thread that removes. */
    } while (!value && (before & 1 || before != atomic_load(&e->changes)) &&
             !exti__holds_fork_lock());
    return value;
}

char *exti__environment_get(struct exti_environment *e, const char *name)
{
    const unsigned before = atomic_load_explicit(&e->changes, memory_order_acquire);
    char *value;

    if (!*name)
        return NULL;
    value = find_value(list_of(e), name);
    if (value)
        return value;
    atomic_thread_fence(memory_order_acquire);
    return before & 1 || before != atomic_load(&e->changes) ? find_once_settled(e, name) : NULL;
}

/* ---- writing; the lock is held ---- */

/* Makes room for one more entry after `count`, in a list of this file's own. */
static bool reserve_entry(struct exti_environment *e, size_t count)
{
    struct exti_kept_list *kept;
    const size_t room = count * 2 + 16;

    if (e->list && e->list == e->own && count + 1 < e->room)
        return true;
    kept = exti__calloc(1, sizeof *kept + room * sizeof *kept->entries);
    if (!kept)
        return false;
    if (count)
        memcpy(kept->entries, e->list, count * sizeof *kept->entries);
    kept->next = e->lists;
    e->lists = kept;
    e->own = kept->entries;
    e->room = room;
    __atomic_store_n(&e->list, e->own, __ATOMIC_RELEASE);
    return true;
}

/* Puts `entry`, whose name has `length` bytes, into the list. */
static int place_entry(struct exti_environment *e, char *entry, size_t length, bool overwrite)
{
    size_t i = 0;

    for (; e->list && e->list[i]; i++)
        if (is_named(e->list[i], entry, length)) {
            if (overwrite)
                set_entry(e->list, i, entry);
            return 0;
        }
    if (!reserve_entry(e, i))
        return ENOMEM;
    /* The end moves first, for those who read meanwhile. */
    set_entry(e->list, i + 1, NULL);
    set_entry(e->list, i, entry);
    return 0;
}

/* The entry "name=value", made once however often a program sets it: it has to stay. */
static char *keep_text(struct exti_environment *e, const char *name, size_t length,
                       const char *value)
{
    const size_t size = strlen(value) + 1;
    char *text = exti__alloc(length + 1 + size), **node;

    if (!text)
        return NULL;
    memcpy(text, name, length);
    text[length] = '=';
    memcpy(text + length + 1, value, size);
    node = tsearch(text, &e->texts, exti__string_order);
    if (!node || *node != text)
        exti__free(text);
    return node ? *node : NULL;
}

static void remove_entries(struct exti_environment *e, const char *name, size_t length)
{
    char **list = e->list;
    size_t to = 0;

    atomic_fetch_add(&e->changes, 1);
    for (size_t from = 0; list && list[from]; from++)
        if (!is_named(list[from], name, length)) {
            if (to != from)
                set_entry(list, to, list[from]);
            to++;
        }
    if (list && list[to])
        set_entry(list, to, NULL);
    atomic_fetch_add(&e->changes, 1);
}

/* ---- the calls ---- */

/* The length of a variable's name, or 0 and errno. */
static size_t name_length(const char *name)
{
    const size_t length = name ? strcspn(name, "=") : 0;

    if (length && !name[length])
        return length;
    errno = EINVAL;
    return 0;
}

static int finish(int rc)
{
    exti__fork_unlock(&lock);
    if (!rc)
        return 0;
    errno = rc;
    return -1;
}

int exti__environment_set(struct exti_environment *e, const char *name, const char *value,
                          int overwrite)
{
    const size_t length = name_length(name);
    char *entry;

    if (!length)
        return -1;
    exti__fork_lock(&lock);
    if (!overwrite && find_value(e->list, name))
        return finish(0);
    entry = keep_text(e, name, length, value);
    return finish(entry ? place_entry(e, entry, length, true) : ENOMEM);
}

int exti__environment_put(struct exti_environment *e, char *entry)
{
    const size_t length = strcspn(entry, "=");

    if (!entry[length])
        return exti__environment_unset(e, entry);
    exti__fork_lock(&lock);
    return finish(place_entry(e, entry, length, true));
}

int exti__environment_unset(struct exti_environment *e, const char *name)
{
    const size_t length = name_length(name);

    if (!length)
        return -1;
    exti__fork_lock(&lock);
    remove_entries(e, name, length);
    return finish(0);
}

int exti__environment_clear(struct exti_environment *e)
{
    exti__fork_lock(&lock);
    __atomic_store_n(&e->list, NULL, __ATOMIC_RELEASE);
    return finish(0);
}

/* ---- beginning and end ---- */

static int copy_process(struct exti_environment *e)
{
    const size_t count = count_entries(environ);

    for (size_t i = 0; i < count && environ[i]; i++) {
        const char *entry = environ[i];
        const size_t length = strcspn(entry, "=");
        char *own;

        /* The system passes on whatever execve was given. */
        if (!entry[length])
            continue;
        own = keep_text(e, entry, length, entry + length + 1);
        if (!own || place_entry(e, own, length, false))
            return ENOMEM;
    }
    return 0;
}

int exti__environment_new(struct exti_environment **out, struct exti_error *err)
{
    struct exti_environment *e = exti__calloc(1, sizeof *e);
    int rc = ENOMEM;

    if (e) {
        exti__fork_lock(&lock);
        rc = copy_process(e);
        exti__fork_unlock(&lock);
    }
    if (rc) {
        exti__environment_free(e);
        return exti__fail_nomem(err);
    }
    *out = e;
    return 0;
}

void exti__environment_free(struct exti_environment *e)
{
    if (!e)
        return;
    exti__tree_free(&e->texts, exti__string_order, exti__free);
    while (e->lists) {
        struct exti_kept_list *next = e->lists->next;

        exti__free(e->lists);
        e->lists = next;
    }
    exti__free(e);
}
