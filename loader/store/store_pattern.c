#include "loader/store/store_pattern.h"

#include <search.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/os/fs_owner.h"
#include "base/path.h"
#include "loader/store/manifest_api.h"
#include "loader/store/pattern.h"
#include "loader/store/store_fresh.h"
#include "loader/store/store_spares.h"

/* How many plans tell whether there is a pattern. */
#define PLANS 2

/* What is known outlives the stores, for those that come after them, if it has at most so many
 * bytes: a program may go on for long, and load files that it has just made. */
#define MOST_KEPT ((size_t)16 << 20)

/* What is known of one file's copies in contexts of one kind. */
struct known {
    struct exti_buf key;
    struct exti_pattern pattern; /* nobody changes it once it is proven */
    enum { UNPLANNED, PLANNED_ONCE, PROVEN, NO_PATTERN } state;
    size_t planners; /* who plan it now */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_size_t holders;
    atomic_size_t takers;   /* holders to whom spare files may go */
    uint64_t numbers;       /* given to patterns so far */
    void *tree;             /* of tsearch(3): struct known, by key */
    size_t bytes;           /* of keys and patterns in it */
    _Atomic(pid_t) process; /* that has had the lock last */
} patterns = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* In a forked child a thread that it does not have may hold the lock for ever: then the child does
 * without patterns.  And glibc waits for such threads in pthread_cond_broadcast, if they have
 * waited. */
static bool lock_patterns(void)
{
    const pid_t self = getpid();

    if (patterns.process == self)
        return pthread_mutex_lock(&patterns.lock) == 0;
    if (pthread_mutex_trylock(&patterns.lock) != 0)
        return false;
    if (patterns.process && patterns.process != self)
        pthread_cond_init(&patterns.changed, NULL);
    patterns.process = self;
    return true;
}

static void free_known(void *known)
{
    struct known *k = known;

    exti__buf_free(&k->key);
    exti__pattern_free(&k->pattern);
    exti__free(k);
}

static int by_key(const void *a, const void *b)
{
    const struct exti_buf *x = &((const struct known *)a)->key,
                          *y = &((const struct known *)b)->key;

    return x->n == y->n ? memcmp(x->p, y->p, x->n) : (x->n > y->n) - (x->n < y->n);
}

/* Whether copies follow from what the key has, the files themselves, and what is the same for the
 * whole process. */
static bool may_have_patterns(const struct exti_store *s)
{
    return s->lean && !s->copy_only && !s->copy_name && !s->sync;
}

static bool takes_spares(const struct exti_store *s)
{
    return s->one_shot && may_have_patterns(s);
}

void exti__patterns_hold(const struct exti_store *s)
{
    patterns.holders++;
    patterns.takers += takes_spares(s);
}

/* Spare files are for contexts that are open, and have patterns as long as these. */
void exti__patterns_release(const struct exti_store *s)
{
    exti__spares_trim(patterns.takers -= takes_spares(s));
    if (--patterns.holders || !lock_patterns())
        return;
    /* Unless somebody has come since. */
    if (!patterns.holders && patterns.bytes > MOST_KEPT) {
        exti__tree_free(&patterns.tree, by_key, free_known);
        patterns.bytes = 0;
    }
    pthread_mutex_unlock(&patterns.lock);
}

int exti__patterns_prepare(void)
{
    return exti__spares_prepare();
}

bool exti__patterns_give_files(struct exti_store *s)
{
    return patterns.takers > takes_spares(s) && exti__spares_give(s);
}

/* ---- keys ---- */

/* Nobody has made copies in the folder before. */
static bool has_patterns(const struct exti_store *s)
{
    return may_have_patterns(s) && (s->created || s->one_shot) &&
           s->manifest.target.format == EXTI_FORMAT_ELF;
}

static int add_text(struct exti_buf *key, const char *text)
{
    text = text ? text : "";
    return exti__buf_append(key, text, strlen(text) + 1, NULL);
}

static int add_numbers(struct exti_buf *key, const uint64_t *numbers, size_t count)
{
    return exti__buf_append(key, numbers, count * sizeof *numbers, NULL);
}

static int add_version(struct exti_buf *key, const struct exti_file_id *id)
{
    const uint64_t numbers[] = {id->device, id->inode, id->size, (uint64_t)id->mtime_ns,
                                (uint64_t)id->ctime_ns};

    return add_numbers(key, numbers, sizeof numbers / sizeof *numbers);
}

/* The manifest's `search` stands for the quirks too.  False without memory: then the key is
 * empty. */
static bool make_key(const struct exti_store *s, const struct exti_copy_request *r,
                     const struct exti_file_id *id, struct exti_buf *key)
{
    const struct exti_manifest *m = &s->manifest;
    const uint64_t numbers[] = {strlen(m->name), r->root,
                                r->symbolic,     s->one_shot || s->adapts,
                                s->trust_dir,    m->renamed,
                                m->names,        m->generation,
                                m->resolution,   (uint64_t)m->policy.closure};
    int rc;

    *key = exti__buf((size_t)1 << 20);
    rc = add_numbers(key, numbers, sizeof numbers / sizeof *numbers);
    rc = rc ? rc : add_version(key, id);
    rc = rc ? rc : add_version(key, &m->api.id);
    rc = rc ? rc : add_text(key, r->source);
    rc = rc ? rc : add_text(key, r->first);
    rc = rc ? rc : add_text(key, m->api.source);
    rc = rc ? rc : add_text(key, m->search);
    for (size_t i = 0; i < m->policy.rule_count && !rc; i++) {
        rc = add_text(key, m->policy.rules[i].share ? "share" : "isolate");
        rc = rc ? rc : add_text(key, m->policy.rules[i].glob);
    }
    if (rc)
        exti__buf_free(key);
    return !rc;
}

/* Takes over the key, which is emptied, if it is a new one.  NULL without memory.  The lock is
 * held. */
static struct known *get_known(struct exti_buf *key)
{
    const struct known wanted = {.key = *key};
    struct known *const *node = tfind(&wanted, &patterns.tree, by_key);
    struct known *k = node ? *node : exti__calloc(1, sizeof *k);

    if (node || !k)
        return k;
    k->key = *key;
    if (!tsearch(k, &patterns.tree, by_key)) {
        exti__free(k);
        return NULL;
    }
    patterns.bytes += sizeof *k + key->n;
    *key = (struct exti_buf){.n = 0};
    return k;
}

/* ---- use ---- */

/* Longer than a plan takes.  In a forked child nobody may be left who plans. */
#define PATIENCE_NS 300000000L

static struct timespec patience_end(void)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += PATIENCE_NS;
    end.tv_sec += end.tv_nsec / 1000000000L;
    end.tv_nsec %= 1000000000L;
    return end;
}

/* Waits while as many plan the file as are needed, and tells whether its pattern is proven.  If it
 * is not, the caller is counted as one more planner.  The lock is held. */
static bool wait_for_plans(struct known *k)
{
    const struct timespec end = patience_end();
    int rc = 0, cancel;

    /* The lock is the process's. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    while (k->state < PROVEN && k->planners && k->planners + k->state >= PLANS && !rc)
        rc = pthread_cond_timedwait(&patterns.changed, &patterns.lock, &end);
    pthread_setcancelstate(cancel, NULL);
    k->planners += k->state != PROVEN;
    return k->state == PROVEN;
}

/* Sets *turn to the caller's if there is none. */
static const struct exti_pattern *find_proven(const struct exti_store *s,
                                              const struct exti_copy_request *r,
                                              const struct exti_file_id *id,
                                              struct exti_pattern_turn *turn)
{
    struct known *k = NULL;
    struct exti_buf key;
    bool proven = false;

    if (!make_key(s, r, id, &key))
        return NULL;
    if (lock_patterns()) {
        k = get_known(&key);
        proven = k && wait_for_plans(k);
        pthread_mutex_unlock(&patterns.lock);
    }
    exti__buf_free(&key);
    turn->known = proven ? NULL : k;
    return proven ? &k->pattern : NULL;
}

void exti__pattern_planned(const struct exti_pattern_turn *turn)
{
    struct known *k = turn->known;

    if (!k || !lock_patterns())
        return;
    k->planners--;
    pthread_cond_broadcast(&patterns.changed);
    pthread_mutex_unlock(&patterns.lock);
}

static bool write_copy(const struct exti_store *s, const struct exti_pattern *p,
                       struct exti_entry *e)
{
    const struct exti_fs_source from = {e->source, &e->id, NULL, p->kept, &e->left_out};
    /* A one-shot directory that a kill leaves behind is nobody's, whole or not. */
    const uint32_t flags = EXTI_FS_EXECUTABLE | (e->id.mode & 077 ? 0 : EXTI_FS_PRIVATE) |
                           (s->one_shot ? EXTI_FS_FIRST : 0);
    char *path = exti__path_join(s->dir, e->copy);
    uint8_t *bytes = exti__pattern_bytes(p, s->manifest.name);
    struct exti_file_id there;
    bool trusted;
    int rc = EXTI_E_NOMEM;

    /* A file that is there may be one that another process has loaded. */
    if (path && bytes && exti__fs_id(path, &there, NULL))
        rc = s->one_shot && exti__spares_use(p, path, bytes)
                 ? 0
                 : exti__fs_clone_edited(path, &from, p->size, p->changed, p->changed_count, bytes,
                                         flags, NULL);
    if (!rc)
        rc = exti__fs_own_id(path, &e->copy_id, &trusted, NULL);
    exti__free(bytes);
    exti__free(path);
    return !rc;
}

/* The same that makes a copy of an earlier process good enough: store_fresh.c. */
static bool is_right(struct exti_store *s, const struct exti_copy_request *r,
                     const struct exti_entry *e)
{
    return !exti__manifest_find_copy(&s->manifest, e->copy) &&
           exti__store_has_needs(s, r->first, e);
}

bool exti__pattern_use(struct exti_store *s, const struct exti_copy_request *r,
                       struct exti_entry *out, struct exti_pattern_turn *turn)
{
    const struct exti_pattern *p;
    struct exti_file_id id;
    struct exti_entry e;

    turn->known = NULL;
    if (!has_patterns(s) || exti__manifest_find(&s->manifest, r->source) ||
        exti__fs_id(r->source, &id, NULL))
        return false;
    p = find_proven(s, r, &id, turn);
    if (!p || !exti__pattern_entry(p, s->manifest.name, &e))
        return false;
    e.id = id;
    if (!is_right(s, r, &e) || !write_copy(s, p, &e)) {
        exti__entry_clear(&e);
        return false;
    }
    e.marks = (struct exti_entry_marks){.made = true, .pattern = p->number};
    memcpy(e.boot, s->boot, sizeof e.boot);
    *out = e;
    return true;
}

/* ---- learning ---- */

/* The second one decides.  The first pattern is taken over, and *p emptied.  The lock is held. */
static void compare(struct known *k, struct exti_pattern *p)
{
    if (k->state == UNPLANNED) {
        patterns.bytes += p->byte_count;
        k->pattern = *p;
        *p = (struct exti_pattern){.size = 0};
        k->state = PLANNED_ONCE;
    } else if (k->state == PLANNED_ONCE && exti__pattern_differs(&k->pattern, p)) {
        k->state = exti__pattern_matches(&k->pattern, p) ? PROVEN : NO_PATTERN;
        k->pattern.number = ++patterns.numbers;
    }
}

void exti__pattern_learn(const struct exti_store *s, const struct exti_copy_request *r,
                         const char *id, const struct exti_entry *e,
                         const struct exti_rewritten *copy)
{
    struct exti_pattern p;
    struct exti_buf key;
    struct known *k;

    if (!has_patterns(s) || !make_key(s, r, &copy->id, &key))
        return;
    if (!exti__pattern_take(s->manifest.name, id, e, copy, &p)) {
        exti__buf_free(&key);
        return;
    }
    if (lock_patterns()) {
        k = get_known(&key);
        if (k)
            compare(k, &p);
        pthread_cond_broadcast(&patterns.changed);
        pthread_mutex_unlock(&patterns.lock);
    }
    exti__buf_free(&key);
    exti__pattern_free(&p);
}
