#define _GNU_SOURCE /* strchrnul */
#include "loader/track/context_locale.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loader/track/fork_lock.h"

/* Guards what is below, and what the locales of contexts hold.  Taken with no lock of the library
 * held; none is taken under it.  Contexts' locales are made under it: the C library has a lock for
 * that, which a forked child would find taken for ever, and wait for where it translates a message.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

static void lock_locales(void)
{
    exti__fork_lock(&lock);
}

static void unlock_locales(void)
{
    exti__fork_unlock(&lock);
}

static void install_locale_fork_handlers(void)
{
    fork_error = pthread_atfork(lock_locales, unlock_locales, unlock_locales);
}

int exti__locale_survive_forks(void)
{
    pthread_once(&fork_once, install_locale_fork_handlers);
    return fork_error;
}

#ifdef __GLIBC__

/* In the order in which setlocale(3) names them. */
static const struct {
    int number;
    const char *name;
} categories[] = {
    {LC_CTYPE, "LC_CTYPE"},
    {LC_NUMERIC, "LC_NUMERIC"},
    {LC_TIME, "LC_TIME"},
    {LC_COLLATE, "LC_COLLATE"},
    {LC_MONETARY, "LC_MONETARY"},
    {LC_MESSAGES, "LC_MESSAGES"},
    {LC_PAPER, "LC_PAPER"},
    {LC_NAME, "LC_NAME"},
    {LC_ADDRESS, "LC_ADDRESS"},
    {LC_TELEPHONE, "LC_TELEPHONE"},
    {LC_MEASUREMENT, "LC_MEASUREMENT"},
    {LC_IDENTIFICATION, "LC_IDENTIFICATION"},
};
#define CATEGORIES (sizeof categories / sizeof *categories)

/* What all categories are called.  The C library takes names up to 255 bytes. */
struct names {
    char of[CATEGORIES][256];
};

/* A locale that was made once.  It stays, as threads point into it, and a program uses few. */
struct made_locale {
    char *name; /* the key; what setlocale(LC_ALL, NULL) tells */
    locale_t locale;
};
static void *made; /* tsearch(3) */

struct exti_locale {
    /* Threads use this one, so that it changes for all of them at once.  The contents are those of
     * a made locale: glibc's locale_t points at a struct of its headers. */
    struct __locale_struct current;
    const struct made_locale *is;
    struct lconv conventions;
    struct exti_locale *next; /* of those that no context has */
};
static struct exti_locale *unused;

/* ---- names ---- */

static bool put_name(struct names *n, size_t i, const char *name, size_t length)
{
    if (length >= sizeof n->of[i] || memchr(name, ';', length))
        return false;
    if (length == strlen("POSIX") && memcmp(name, "POSIX", length) == 0)
        return put_name(n, i, "C", 1);
    memcpy(n->of[i], name, length);
    n->of[i][length] = 0;
    return true;
}

static void read_names(struct names *out, locale_t from)
{
    for (size_t i = 0; i < CATEGORIES; i++)
        snprintf(out->of[i], sizeof out->of[i], "%s", from->__names[categories[i].number]);
}

static const char *variable(struct exti_environment *e, const char *name)
{
    const char *value = e ? exti__environment_get(e, name) : getenv(name);

    return value && *value ? value : NULL;
}

/* POSIX Environment Variables: what "" stands for. */
static const char *default_name(struct exti_environment *e, size_t i)
{
    const char *name = variable(e, "LC_ALL");

    if (!name)
        name = variable(e, categories[i].name);
    if (!name)
        name = variable(e, "LANG");
    return name ? name : "C";
}

static bool take_name(struct names *n, size_t i, const char *name, size_t length,
                      struct exti_environment *e)
{
    if (length)
        return put_name(n, i, name, length);
    name = default_name(e, i);
    return put_name(n, i, name, strlen(name));
}

/* "LC_CTYPE=...;LC_NUMERIC=...", which has to name all. */
static bool take_composite(struct names *n, const char *text, struct exti_environment *e)
{
    bool seen[CATEGORIES] = {false};
    size_t count = 0;

    for (const char *end; *text; text = *end ? end + 1 : end) {
        const size_t key = strcspn(text, "=;");
        size_t i = 0;

        end = strchrnul(text, ';');
        while (i < CATEGORIES &&
               (strncmp(categories[i].name, text, key) != 0 || categories[i].name[key] != 0))
            i++;
        if (text[key] != '=' || i == CATEGORIES ||
            !take_name(n, i, text + key + 1, (size_t)(end - text) - key - 1, e))
            return false;
        count += !seen[i];
        seen[i] = true;
    }
    return count == CATEGORIES;
}

/* Exchanges those that setlocale(category, name) does. */
static bool take_names(struct names *n, int category, const char *name, struct exti_environment *e)
{
    bool known = category == LC_ALL;

    if (category == LC_ALL && strchr(name, ';'))
        return take_composite(n, name, e);
    for (size_t i = 0; i < CATEGORIES; i++) {
        if (category != LC_ALL && category != categories[i].number)
            continue;
        known = true;
        if (!take_name(n, i, name, strlen(name), e))
            return false;
    }
    return known;
}

/* What setlocale(LC_ALL, NULL) tells; exti__free it. */
static char *join_names(const struct names *n)
{
    size_t size = 1, at = 0, same = 1;
    char *text;

    for (size_t i = 0; i < CATEGORIES; i++)
        size += strlen(categories[i].name) + strlen(n->of[i]) + 2;
    while (same < CATEGORIES && strcmp(n->of[same], n->of[0]) == 0)
        same++;
    if (same == CATEGORIES)
        return exti__strdup(n->of[0]);
    text = exti__alloc(size);
    for (size_t i = 0; text && i < CATEGORIES; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s=%s", i ? ";" : "", categories[i].name,
                               n->of[i]);
    return text;
}

/* ---- locales that were made; the lock is held ---- */

/* One category after the other, on a locale that this function owns. */
static locale_t change_locale(locale_t l, int mask, const struct names *n)
{
    for (size_t i = 0; l && i < CATEGORIES; i++) {
        locale_t changed = l;

        if (mask & 1 << categories[i].number)
            changed = newlocale(1 << categories[i].number, n->of[i], l);
        if (!changed)
            freelocale(l);
        l = changed;
    }
    return l;
}

static int compare_made(const void *a, const void *b)
{
    return strcmp(((const struct made_locale *)a)->name, ((const struct made_locale *)b)->name);
}

/* Owns the arguments; NULL without memory. */
static const struct made_locale *keep_locale(char *name, locale_t locale)
{
    struct made_locale *m = exti__alloc(sizeof *m), **node = NULL;

    if (m) {
        *m = (struct made_locale){name, locale};
        node = tsearch(m, &made, compare_made);
    }
    if (!node || *node != m) {
        exti__free(m);
        exti__free(name);
        freelocale(locale);
    }
    return node ? *node : NULL;
}

static const struct made_locale *find_locale(const struct names *n)
{
    struct made_locale key = {.name = join_names(n)}, **node;
    locale_t locale;

    if (!key.name)
        return NULL;
    node = tfind(&key, &made, compare_made);
    if (node) {
        exti__free(key.name);
        return *node;
    }
    locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale = change_locale(locale, LC_ALL_MASK, n);
    if (locale)
        return keep_locale(key.name, locale);
    exti__free(key.name);
    return NULL;
}

static void assume(struct exti_locale *l, const struct made_locale *m)
{
    l->is = m;
    l->current = *m->locale;
}

/* ---- beginning and end ---- */

static struct exti_locale *take_unused(void)
{
    struct exti_locale *l = unused;

    if (l)
        unused = l->next;
    else
        l = exti__calloc(1, sizeof *l);
    return l;
}

int exti__locale_new(struct exti_locale **out, struct exti_error *err)
{
    const struct made_locale *m = NULL;
    struct exti_locale *l = NULL;
    struct names names;
    locale_t process;

    exti__fork_lock(&lock);
    process = duplocale(LC_GLOBAL_LOCALE);
    if (process) {
        read_names(&names, process);
        freelocale(process);
        m = find_locale(&names);
    }
    if (m)
        l = take_unused();
    if (l)
        assume(l, m);
    exti__fork_unlock(&lock);
    *out = l;
    return l ? 0 : exti__fail_nomem(err);
}

void exti__locale_release(struct exti_locale *l)
{
    if (!l)
        return;
    exti__fork_lock(&lock);
    l->next = unused;
    unused = l;
    exti__fork_unlock(&lock);
}

/* ---- the calls ---- */

locale_t exti__locale_handle(struct exti_locale *l)
{
    return &l->current;
}

static char *told_name(const struct exti_locale *l, int category)
{
    if (category == LC_ALL)
        return l->is->name;
    for (size_t i = 0; i < CATEGORIES; i++)
        if (categories[i].number == category)
            return (char *)l->is->locale->__names[category];
    return NULL;
}

char *exti__locale_set(struct exti_locale *l, int category, const char *name,
                       struct exti_environment *e)
{
    const struct made_locale *m;
    struct names names;
    char *told;

    exti__fork_lock(&lock);
    m = l->is;
    if (name) {
        read_names(&names, m->locale);
        m = take_names(&names, category, name, e) ? find_locale(&names) : NULL;
    }
    if (m && m != l->is)
        assume(l, m);
    told = m ? told_name(l, category) : NULL;
    exti__fork_unlock(&lock);
    return told;
}

locale_t exti__locale_make(int mask, const char *name, locale_t base, struct exti_environment *e)
{
    locale_t changed;
    struct names n;

    if (!name || *name || !e || (mask & ~LC_ALL_MASK))
        return newlocale(mask, name, base);
    for (size_t i = 0; i < CATEGORIES; i++)
        if (!take_name(&n, i, "", 0, e)) {
            errno = ENOENT;
            return (locale_t)0;
        }
    changed = base ? duplocale(base) : newlocale(LC_ALL_MASK, "C", (locale_t)0);
    changed = change_locale(changed, mask, &n);
    if (changed && base)
        freelocale(base);
    return changed;
}

/* The C library has one struct for the process, and fills it by the thread's locale. */
struct lconv *exti__locale_conventions(struct exti_locale *l)
{
    exti__fork_lock(&lock);
    l->conventions = *localeconv();
    exti__fork_unlock(&lock);
    return &l->conventions;
}

#else

/* Locales of other C libraries cannot be changed for all threads that use them. */
int exti__locale_new(struct exti_locale **out, struct exti_error *err)
{
    (void)err;
    *out = NULL;
    return 0;
}

void exti__locale_release(struct exti_locale *l)
{
    (void)l;
}

char *exti__locale_set(struct exti_locale *l, int category, const char *name,
                       struct exti_environment *e)
{
    (void)l, (void)e;
    return setlocale(category, name);
}

locale_t exti__locale_make(int mask, const char *name, locale_t base, struct exti_environment *e)
{
    (void)e;
    return newlocale(mask, name, base);
}

struct lconv *exti__locale_conventions(struct exti_locale *l)
{
    (void)l;
    return localeconv();
}

locale_t exti__locale_handle(struct exti_locale *l)
{
    (void)l;
    return LC_GLOBAL_LOCALE;
}

#endif
