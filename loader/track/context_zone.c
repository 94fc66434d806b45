#include "loader/track/context_zone.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "loader/track/fork_lock.h"

struct exti_known_zone {
    struct exti_known_zone *next;
    struct exti_zone zone;
    bool by_default; /* TZ was not set */
    char tz[];
};

/* Guards the zones that contexts know.  Taken with no lock of the library held; none is taken under
 * it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int fork_error;

static void lock_zones(void)
{
    exti__fork_lock(&lock);
}

static void unlock_zones(void)
{
    exti__fork_unlock(&lock);
}

static void install_zone_fork_handlers(void)
{
    fork_error = pthread_atfork(lock_zones, unlock_zones, unlock_zones);
}

int exti__times_survive_forks(void)
{
    pthread_once(&fork_once, install_zone_fork_handlers);
    return fork_error;
}

/* ---- reading a zone ---- */

/* As the GNU C library: a file's name, or else a POSIX string.  Empty, it is the name of a file,
 * which Debian 12 has in tzdata and Debian 13 in a package of its own. */
static int read_zone(const char *tz, struct exti_environment *e, struct exti_zone *out)
{
    static const char by_default[] = "/etc/localtime";
    const char *name = tz ? tz : by_default, *folder = exti__environment_get(e, "TZDIR");
    struct exti_error err = {0};
    char path[EXTI_PATH_MAX];
    int n;

    if (!*name)
        name = "Universal";
    name += *name == ':';
    if (*name == '/')
        n = snprintf(path, sizeof path, "%s", name);
    else
        n = snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : "/usr/share/zoneinfo",
                     name);
    if (*name && n > 0 && (size_t)n < sizeof path && !exti__zone_read(path, out, &err))
        return 0;
    if (err.code == EXTI_E_NOMEM)
        return err.code;
    *out = (struct exti_zone){.has_rule = true};
    exti__zone_rule_parse(*name && strcmp(name, by_default) != 0 ? name : "UTC0", &out->rule);
    return 0;
}

static struct exti_known_zone *add_zone(struct exti_times *t, const char *tz,
                                        struct exti_environment *e)
{
    const char *text = tz ? tz : "";
    const size_t n = strlen(text) + 1;
    struct exti_known_zone *k = exti__calloc(1, sizeof *k + n);

    if (!k)
        return NULL;
    memcpy(k->tz, text, n);
    k->by_default = !tz;
    if (read_zone(tz, e, &k->zone)) {
        exti__free(k);
        return NULL;
    }
    k->next = t->known;
    t->known = k;
    return k;
}

/* ---- the context's ---- */

static bool is_zone(const struct exti_known_zone *k, const char *tz)
{
    return tz ? !k->by_default && strcmp(k->tz, tz) == 0 : k->by_default;
}

/* The lock is held. */
static struct exti_known_zone *find_zone(struct exti_times *t, const char *tz,
                                         struct exti_environment *e)
{
    struct exti_known_zone *k = t->known;

    while (k && !is_zone(k, tz))
        k = k->next;
    return k ? k : add_zone(t, tz, e);
}

static void show_names(struct exti_times *t, const struct exti_zone *z)
{
    const struct exti_zone_type *last[2];

    exti__zone_last(z, last);
    for (int i = 0; i < 2; i++)
        t->names[i] = (char *)last[i]->name;
    t->west = -last[0]->offset;
    t->has_dst = last[1]->dst;
}

const struct exti_zone *exti__times_zone(struct exti_times *t, struct exti_environment *e,
                                         bool afresh)
{
    static const struct exti_zone utc = {.has_rule = true, .rule = {.types = {{.name = "UTC"}}}};
    struct exti_known_zone *k = atomic_load(&t->current);
    const char *tz;

    if (k && !afresh)
        return &k->zone;
    tz = exti__environment_get(e, "TZ");
    if (k && is_zone(k, tz))
        return &k->zone;
    exti__fork_lock(&lock);
    k = find_zone(t, tz, e);
    if (k) {
        atomic_store(&t->current, k);
        show_names(t, &k->zone);
    }
    exti__fork_unlock(&lock);
    return k ? &k->zone : &utc;
}

int exti__times_new(struct exti_times **out, struct exti_error *err)
{
    static char none[2][4] = {"GMT", "GMT"};
    struct exti_times *t = exti__calloc(1, sizeof *t);

    if (!t)
        return exti__fail_nomem(err);
    for (int i = 0; i < 2; i++)
        t->names[i] = none[i];
    *out = t;
    return 0;
}

void exti__times_free(struct exti_times *t)
{
    while (t && t->known) {
        struct exti_known_zone *next = t->known->next;

        exti__zone_clear(&t->known->zone);
        exti__free(t->known);
        t->known = next;
    }
    exti__free(t);
}
