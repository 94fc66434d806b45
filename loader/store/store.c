#include "loader/store/store_priv.h"

#include <errno.h>
#include <jansson.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/path.h"
#include "loader/image/machines.h"
#include "loader/process/dl.h"
#include "loader/resolve/search.h"
#include "loader/rewrite/rewrite.h"
#include "loader/store/stable_abi.h"

/* Saving a manifest costs time in proportion to its entries, so it happens at most so often that it
 * takes this fraction of the time; what is lost by a kill in between is only done again. */
#define SAVE_FRACTION 30

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

const char *exti__store_intern(struct exti_store *s, char *string)
{
    char **node = string ? tsearch(string, &s->strings, exti__string_order) : NULL;

    if (!node || *node != string)
        exti__free(string);
    return node ? *node : NULL;
}

/* ---- state of one copy ---- */

bool exti__same_version(const struct exti_file_id *a, const struct exti_file_id *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->inode == b->inode;
}

enum exti_copy_state exti__entry_state(const char *dir, const struct exti_manifest *m,
                                       const struct exti_entry *e)
{
    struct exti_file_id id;
    char *copy;
    int rc;

    if (exti__fs_id(e->source, &id, NULL))
        return EXTI_COPY_ORPHAN;
    if (!exti__same_version(&id, &e->id) || e->generation != m->generation)
        return EXTI_COPY_STALE;
    copy = exti__path_join(dir, e->copy);
    rc = copy ? exti__fs_id(copy, &id, NULL) : EXTI_E_NOMEM;
    exti__free(copy);
    return rc || id.size != e->copy_size || id.mtime_ns != e->copy_mtime_ns ? EXTI_COPY_MISSING
                                                                            : EXTI_COPY_FRESH;
}

bool exti__store_may_be_torn(const struct exti_store *s, const struct exti_entry *e)
{
    return !e->synced && (!s->boot[0] || strcmp(e->boot, s->boot) != 0);
}

/* Whether `source` has a file of that name beside it now, where that is always looked for first. */
static bool is_beside(const struct exti_store *s, const char *source, const char *name)
{
    const struct exti_search_ops *ops = exti__search_ops(s->manifest.target.format);
    struct exti_file_id id;
    char *path;
    bool is;

    if (!ops || !ops->by_file || !exti__path_is_plain_name(name))
        return false;
    path = exti__alloc(strlen(source) + strlen(name) + 1);
    if (!path)
        return false;
    memcpy(path, source, strlen(source) + 1);
    strcpy(path + (exti__base_name(path) - path), name);
    is = !exti__fs_id(path, &id, NULL);
    exti__free(path);
    return is;
}

/* A library that is gone has to be looked for again, and one that has come. */
static bool has_needs(struct exti_store *s, const char *first, const struct exti_entry *e)
{
    struct exti_file_id id;

    for (size_t i = 0; i < e->need_count; i++) {
        const struct exti_need *n = &e->needs[i];

        if (n->file
                ? exti__fs_id(n->file, &id, NULL) != 0
                : is_beside(s, e->source, n->name) || exti__store_finds_need(s, first, e, n->name))
            return false;
    }
    return true;
}

static bool is_fresh(struct exti_store *s, const char *first, const struct exti_entry *e,
                     bool symbolic)
{
    return e && (e->symbolic || !symbolic) && e->resolution == s->manifest.resolution &&
           !exti__store_may_be_torn(s, e) &&
           exti__entry_state(s->dir, &s->manifest, e) == EXTI_COPY_FRESH && has_needs(s, first, e);
}

/* ---- making one copy ---- */

struct exti_target exti__target_of(const struct exti_image *im)
{
    struct exti_target t = {
        .format = im->format, .bits = im->info.bits, .big_endian = im->info.big_endian != 0};

    exti__machines_of(im, t.machine);
    return t;
}

static int check_target(const struct exti_store *s, const struct exti_image *im,
                        struct exti_error *err)
{
    const struct exti_target t = exti__target_of(im), *wanted = &s->manifest.target;

    if (t.format != wanted->format)
        return exti__fail(err, EXTI_E_UNSUPPORTED, 0,
                          "is %s; the context's API library is %s, for %s", im->info.format,
                          exti__format_name(wanted->format), wanted->machine);
    if (exti__machines_meet(t.machine, wanted->machine) && t.bits == wanted->bits &&
        t.big_endian == wanted->big_endian)
        return 0;
    return exti__fail(
        err, EXTI_E_UNSUPPORTED, 0,
        "is for %d-bit %s, %s-endian; the context's API library is for %d-bit %s, %s-endian",
        t.bits, t.machine, t.big_endian ? "big" : "little", wanted->bits, wanted->machine,
        wanted->big_endian ? "big" : "little");
}

/* Whether the file `path` holds exactly these bytes. */
static bool holds(const char *path, const uint8_t *p, size_t n)
{
    struct exti_mapping m;
    bool same;

    if (exti__fs_map(path, &m, NULL, NULL))
        return false;
    same = m.n == n && memcmp(m.p, p, n) == 0;
    exti__fs_unmap(&m);
    return same;
}

int exti__store_write(const struct exti_store *s, const struct exti_image *im,
                      const struct exti_edits *edits, struct exti_entry *e, struct exti_error *err)
{
    char *path = exti__path_join(s->dir, e->copy);
    struct exti_rewritten r;
    struct exti_file_id id;
    int rc =
        path ? exti__rewrite_image(e->source, im, &edits->opts, &r, err) : exti__fail_nomem(err);

    if (rc) {
        exti__free(path);
        return rc;
    }
    if (!exti__same_version(&r.id, &e->id))
        rc = exti__fail_io(err, ESTALE, e->source, "changed while it was copied");
    else if (s->sync || !holds(path, r.image.p, r.size))
        rc = exti__rewritten_write(&r, path, s->sync, err);
    if (!rc)
        rc = exti__fs_id(path, &id, err);
    if (!rc)
        e->copy_mtime_ns = id.mtime_ns;
    e->copy_size = r.size;
    e->synced = s->sync;
    memcpy(e->boot, s->boot, sizeof e->boot);
    exti__rewritten_free(&r);
    exti__free(path);
    return rc;
}

static int dup_into(char **out, const char *s, struct exti_error *err)
{
    *out = s ? exti__strdup(s) : NULL;
    return *out || !s ? 0 : exti__fail_nomem(err);
}

/* Windows does not tell case apart. */
static const struct exti_entry *same_copy(const struct exti_manifest *m, const char *name)
{
    const struct exti_entry *e = exti__manifest_find_copy(m, name);

    if (e || m->target.format != EXTI_FORMAT_PE)
        return e;
    if (m->api.copy && strcasecmp(m->api.copy, name) == 0)
        return &m->api;
    for (size_t i = 0; i < m->count; i++)
        if (strcasecmp(m->entries[i].copy, name) == 0)
            return &m->entries[i];
    return NULL;
}

/* Whether imports of the context's other copies may name it. */
static bool is_library(const struct exti_manifest *m, const char *source)
{
    const size_t n = strlen(source);

    return m->policy.closure != EXTI_CLOSURE_NONE && m->target.format == EXTI_FORMAT_PE && n > 4 &&
           strcasecmp(source + n - 4, ".dll") == 0;
}

void exti__store_propose_name(const struct exti_store *s, const char *source, char *name)
{
    const struct exti_manifest *m = &s->manifest;

    if (exti__stable_abi_is(m, exti__base_name(source)))
        exti__copy_name_pe_stable_abi(m->name, name);
    else if (is_library(m, source))
        exti__copy_name_pe(source, m->name, name);
    else
        exti__copy_name(source, m->name, name);
}

int exti__store_check_name(const struct exti_store *s, const char *source, char *name,
                           struct exti_error *err)
{
    const struct exti_entry *other;

    if (s->copy_name && s->copy_name(s->user, source, name, EXTI_FILE_NAME_MAX + 1) < 0)
        return exti__fail(err, EXTI_E_HOOK, EXTI_NO_OFFSET, "copy_name refused");
    name[EXTI_FILE_NAME_MAX] = 0;
    if (!exti__path_is_plain_name(name) || name[0] == '.' || strcmp(name, EXTI_MANIFEST_FILE) == 0)
        return exti__fail(err, EXTI_E_HOOK, EXTI_NO_OFFSET,
                          "copy_name gave '%s', which is not a plain file name", name);
    other = same_copy(&s->manifest, name);
    if (other && strcmp(other->source, source) != 0)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "its copy's name '%s' is that of %s",
                          name, other->source);
    return 0;
}

int exti__store_check_utf8(const char *text, const char *what, struct exti_error *err)
{
    json_error_t why = {0};
    json_t *s = json_pack_ex(&why, 0, "s", text ? text : "");

    json_decref(s);
    if (s)
        return 0;
    if (json_error_code(&why) != json_error_invalid_utf8)
        return exti__fail_nomem(err);
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "its %s is not UTF-8, which the manifest cannot name", what);
}

int exti__store_entry(struct exti_store *s, const char *source, const char *name,
                      const struct exti_image *im, const char *first, bool root,
                      struct exti_entry *e, struct exti_error *err)
{
    int rc;

    e->generation = s->manifest.generation;
    e->resolution = s->manifest.resolution;
    rc = exti__store_check_utf8(source, "path", err);
    if (!rc)
        rc = exti__store_check_utf8(name, "copy's name", err);
    if (!rc)
        rc = exti__store_check_utf8(im->info.id, "SONAME", err);
    if (!rc)
        rc = dup_into(&e->source, source, err);
    if (!rc)
        rc = dup_into(&e->copy, name, err);
    if (!rc)
        rc = dup_into(&e->build_id, im->info.build_id, err);
    if (!rc)
        rc = dup_into(&e->source_name, im->info.id, err);
    if (!rc)
        rc = exti__store_quirks(s, source, im, e, err);
    if (!rc)
        rc = exti__store_needs(s, first, source, root, e, err);
    for (size_t i = 0; i < e->need_count && !rc; i++) {
        rc = exti__store_check_utf8(e->needs[i].name, "needed library's name", err);
        if (!rc)
            rc = exti__store_check_utf8(e->needs[i].file, "needed library's path", err);
    }
    return rc;
}

int exti__store_edits(const struct exti_edits *edits, struct exti_entry *e, struct exti_error *err)
{
    e->symbolic = (edits->opts.flags & EXTI_RW_SYMBOLIC) != 0;
    return exti__edits_json(edits, &e->edits, err);
}

bool exti__store_is_interposed(const struct exti_store *s, const struct exti_image *im)
{
    if (s->copy_only || im->format != EXTI_FORMAT_ELF)
        return false;
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if ((im->symbols[i].flags & EXTI_SYM_EXPORT) && exti__dl_global(im->symbols[i].name))
            return true;
    return false;
}

static int ensure_stable_abi(struct exti_store *s, const char *source, const struct exti_image *im,
                             struct exti_error *err);

void exti__making_clear(struct exti_making *m)
{
    exti__edits_free(&m->edits);
    exti_image_free(m->im);
    m->edits = (struct exti_edits){0};
    m->im = NULL;
}

int exti__store_plan(struct exti_store *s, const char *first, const char *source, bool root,
                     bool symbolic, struct exti_making *out, struct exti_error *err)
{
    const struct exti_entry *old = exti__manifest_find(&s->manifest, source);
    struct exti_entry *e = &out->e;
    char name[EXTI_FILE_NAME_MAX + 1];
    int rc = exti__fs_id(source, &e->id, err);

    e->made = true;
    e->symbolic = symbolic || (old && old->symbolic);
    if (old && !has_needs(s, first, old))
        exti__store_drop_graph(s);
    if (!rc)
        rc = exti__image_cache_get(&s->images, source, &e->id, &out->im, err);
    if (rc)
        return rc;
    exti__store_propose_name(s, source, name);
    rc = check_target(s, out->im, err);
    if (!rc)
        rc = ensure_stable_abi(s, source, out->im, err);
    if (!rc)
        rc = exti__store_check_name(s, source, name, err);
    if (!rc)
        rc = exti__store_entry(s, source, name, out->im, first, root, e, err);
    if (!rc)
        rc = exti__edits_copy(&s->manifest, e, out->im, &s->renames, &out->edits, err);
    if (!rc)
        rc = exti__store_edits(&out->edits, e, err);
    exti__image_cache_take(&s->images, out->im);
    if (rc) {
        exti__entry_clear(e);
        exti__making_clear(out);
        exti__error_file(err, source);
    }
    return rc;
}

static int make_copy(struct exti_store *s, const char *first, const char *source, bool root,
                     bool symbolic, struct exti_error *err)
{
    struct exti_making m = {0};
    int rc = exti__store_plan(s, first, source, root, symbolic, &m, err);

    if (rc)
        return rc;
    rc = exti__store_write(s, m.im, &m.edits, &m.e, err);
    if (!rc)
        rc = exti__manifest_put(&s->manifest, &m.e, err);
    if (!rc)
        s->dirty = true;
    else
        exti__error_file(err, source);
    /* At once, so that no other process chooses another. */
    if (!rc && exti__stable_abi_is(&s->manifest, exti__base_name(source)) && !s->one_shot)
        rc = exti__store_save(s, err);
    exti__entry_clear(&m.e);
    exti__making_clear(&m);
    return rc;
}

/* Copies python3.dll first, if the file `im` needs that.  A context has one: what its importers name is
 * the same whatever was copied before. */
static int ensure_stable_abi(struct exti_store *s, const char *source, const struct exti_image *im,
                             struct exti_error *err)
{
    const struct exti_manifest *m = &s->manifest;
    const struct exti_entry *e = exti__stable_abi_entry(m);
    const char *wanted = NULL;
    char *path;
    int rc;

    if (exti__stable_abi_is(m, exti__base_name(source))) {
        if (!e || strcmp(e->source, source) == 0)
            return 0;
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "the context has a copy of %s already, and can have but one", e->source);
    }
    rc = exti__stable_abi_wanted(m, im, &wanted, err);
    if (rc || !wanted)
        return rc;
    rc = exti__stable_abi_source(m, wanted, &path, err);
    if (rc)
        return rc;
    if (!is_fresh(s, path, e, false))
        rc = make_copy(s, path, path, true, false, err);
    exti__free(path);
    return rc;
}

/* Whether the copy of python3.dll that the entry imports from is up to date, if it does. */
static bool has_stable(struct exti_store *s, const struct exti_entry *e)
{
    const struct exti_entry *stable = exti__stable_abi_entry(&s->manifest);
    char by[EXTI_FILE_NAME_MAX + 16];

    if (!stable || stable == e)
        return true;
    snprintf(by, sizeof by, "\"by\":\"%s\"", stable->copy);
    return !strstr(e->edits, by) || is_fresh(s, stable->source, stable, false);
}

bool exti__store_is_fresh(struct exti_store *s, const char *first, const struct exti_entry *e,
                          bool symbolic)
{
    return is_fresh(s, first, e, symbolic) && has_stable(s, e);
}

bool exti__steps_push(struct exti_steps *p, const char *source, const char *user)
{
    if (p->count == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 32;
        struct exti_step *steps = exti__realloc_array(p->steps, cap, sizeof *steps);

        if (!steps)
            return false;
        p->steps = steps;
        p->cap = cap;
    }
    p->steps[p->count++] = (struct exti_step){source, user};
    return true;
}

bool exti__steps_push_needs(struct exti_steps *p, const struct exti_entry *e)
{
    bool good = true;

    for (size_t i = e->need_count; i-- > 0 && good;)
        if (e->needs[i].isolated)
            good = exti__steps_push(p, e->needs[i].file, e->source);
    return good;
}

/* Whether the copy of `source` is up to date, and all that it drags in. */
static bool is_whole(struct exti_store *s, const char *source, bool symbolic)
{
    struct exti_steps p = {0};
    bool whole = exti__steps_push(&p, source, NULL);

    s->walk++;
    while (whole && p.count) {
        const struct exti_step at = p.steps[--p.count];
        struct exti_entry *e = exti__manifest_find(&s->manifest, at.source);

        if (e && e->seen == s->walk)
            continue;
        whole = exti__store_is_fresh(s, source, e, symbolic && !at.user) &&
                exti__steps_push_needs(&p, e);
        if (whole)
            e->seen = s->walk;
    }
    exti__free(p.steps);
    return whole;
}

void exti__error_add_requester(const struct exti_step *at, struct exti_error *err)
{
    const size_t n = err ? strlen(err->message) : 0;

    if (!n || !at->user)
        return;
    exti__error_file(err, at->source);
    snprintf(err->message + n, sizeof err->message - n,
             "; needed by %s, and shared if a rule says so", exti__base_name(at->user));
}

int exti__store_ensure(struct exti_store *s, const char *source, bool symbolic,
                       struct exti_error *err)
{
    struct exti_steps p = {0};
    int rc = exti__steps_push(&p, source, NULL) ? 0 : exti__fail_nomem(err);

    s->walk++;
    s->images.keeps = true;
    while (!rc && p.count) {
        const struct exti_step at = p.steps[--p.count];
        struct exti_entry *e = exti__manifest_find(&s->manifest, at.source);

        if (e && e->seen == s->walk)
            continue;
        if (e != &s->manifest.api && !exti__store_is_fresh(s, source, e, symbolic && !at.user))
            rc = make_copy(s, source, at.source, !at.user, symbolic && !at.user, err);
        if (rc) {
            exti__error_add_requester(&at, err);
            break;
        }
        e = exti__manifest_find(&s->manifest, at.source);
        e->seen = s->walk;
        if (!exti__steps_push_needs(&p, e))
            rc = exti__fail_nomem(err);
    }
    exti__image_cache_end(&s->images);
    exti__free(p.steps);
    return rc;
}

/* ---- the manifest on disk ---- */

static int manifest_file_id(const struct exti_store *s, struct exti_file_id *id)
{
    char *path = exti__path_join(s->dir, EXTI_MANIFEST_FILE);
    int rc = path ? exti__fs_id(path, id, NULL) : EXTI_E_NOMEM;

    exti__free(path);
    return rc;
}

int exti__store_save(struct exti_store *s, struct exti_error *err)
{
    struct exti_error e = {0};
    int64_t start = now_ns();
    int rc = exti__manifest_write(s->dir, &s->manifest, s->sync, &e);

    /* No copy can have been written there either: the entries that changed are those of copies found
     * to be right still, after a restart of the system. */
    if (rc && e.os_error != EROFS && e.os_error != EACCES) {
        if (err)
            *err = e;
        return rc;
    }
    s->dirty = false;
    s->saved_at_ns = now_ns();
    s->save_cost_ns = s->saved_at_ns - start;
    manifest_file_id(s, &s->manifest_id);
    return 0;
}

int exti__store_save_if_due(struct exti_store *s, struct exti_error *err)
{
    if (!s->dirty || s->one_shot ||
        (!s->sync && now_ns() - s->saved_at_ns < SAVE_FRACTION * s->save_cost_ns))
        return 0;
    return exti__store_save(s, err);
}

static void exchange_entries(struct exti_manifest *a, struct exti_manifest *b)
{
    struct exti_manifest was = *a;

    a->entries = b->entries;
    a->count = b->count;
    a->cap = b->cap;
    b->entries = was.entries;
    b->count = was.count;
    b->cap = was.cap;
}

/* Takes over by what needs are looked up now. */
static void take_search(struct exti_store *s, struct exti_manifest *fresh)
{
    exti__free(s->manifest.search);
    s->manifest.search = fresh->search;
    s->manifest.resolution = fresh->resolution;
    fresh->search = NULL;
    exti__store_drop_graph(s);
}

/* What was opened is no more. */
static int fail_gone(const struct exti_store *s, const char *why, struct exti_error *err)
{
    int rc =
        exti__fail(err, EXTI_E_CHECK, EXTI_NO_OFFSET, "%s has been %s; open it again", s->dir, why);

    if (err)
        err->os_error = ENOENT;
    return rc;
}

int exti__store_reload(struct exti_store *s, struct exti_error *err)
{
    struct exti_error e = {0};
    struct exti_manifest fresh;
    struct exti_file_id id = {0};
    int rc = 0;

    if (s->one_shot || (!manifest_file_id(s, &id) && exti__same_version(&id, &s->manifest_id)))
        return 0;
    rc = exti__manifest_read(s->dir, &fresh, &e);
    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    if (rc == EXTI_E_IO && e.os_error == ENOENT)
        return fail_gone(s, "cleaned meanwhile", err);
    if (rc)
        return exti__fail(err, EXTI_E_CHECK, EXTI_NO_OFFSET,
                          "%s has been damaged meanwhile; open it again", s->dir);
    if (fresh.generation != s->manifest.generation || strcmp(fresh.name, s->manifest.name) != 0) {
        exti__manifest_clear(&fresh);
        return fail_gone(s, "given a new API library by another process", err);
    }
    rc = exti__manifest_reserve(&fresh, s->manifest.count, err);
    if (rc) {
        exti__manifest_clear(&fresh);
        return rc;
    }
    for (size_t i = 0; i < s->manifest.count; i++) {
        struct exti_entry *mine = &s->manifest.entries[i];

        if (!exti__manifest_find(&fresh, mine->source))
            exti__manifest_put(&fresh, mine, NULL);
    }
    /* The API's entry is the same, and others read it without the lock: it stays where it is. */
    exchange_entries(&s->manifest, &fresh);
    if (fresh.resolution != s->manifest.resolution)
        take_search(s, &fresh);
    exti__manifest_clear(&fresh);
    s->manifest_id = id;
    return 0;
}

int exti__store_lock(const struct exti_store *s, struct exti_lock *lock, struct exti_error *err)
{
    struct exti_error e = {0};
    char *path = exti__path_join(s->dir, EXTI_LOCK_FILE);
    int rc = path ? exti__fs_lock(path, lock, &e) : exti__fail_nomem(&e);

    exti__free(path);
    if (rc && e.os_error == ENOENT)
        return fail_gone(s, "cleaned meanwhile", err);
    if (rc && err)
        *err = e;
    return rc;
}

int exti__store_flush(struct exti_store *s, struct exti_error *err)
{
    struct exti_lock lock;
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (s->dirty && !s->one_shot) {
        rc = exti__store_lock(s, &lock, err);
        if (!rc) {
            rc = exti__store_reload(s, err);
            if (!rc)
                rc = exti__store_save(s, err);
            exti__fs_unlock(&lock);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* ---- copying ---- */

static int copy_locked(struct exti_store *s, const char *source, bool symbolic,
                       struct exti_error *err)
{
    struct exti_lock lock;
    int rc;

    if (is_whole(s, source, symbolic))
        return 0;
    rc = exti__store_lock(s, &lock, err);
    if (rc)
        return rc;
    rc = exti__store_reload(s, err);
    if (!rc && !is_whole(s, source, symbolic)) {
        rc = exti__store_ensure(s, source, symbolic, err);
        if (!rc)
            rc = exti__store_save_if_due(s, err);
    }
    exti__fs_unlock(&lock);
    return rc;
}

int exti__store_make_symbolic(struct exti_store *s, const char *source, struct exti_error *err)
{
    const struct exti_entry *e;
    struct exti_lock lock;
    int rc;

    pthread_mutex_lock(&s->lock);
    rc = exti__store_lock(s, &lock, err);
    if (!rc) {
        rc = exti__store_reload(s, err);
        e = rc ? NULL : exti__manifest_find(&s->manifest, source);
        if (e && !e->symbolic) {
            rc = make_copy(s, exti__store_first_user(s, source), source, e->takes_api, true, err);
            if (!rc)
                rc = exti__store_save_if_due(s, err);
        }
        exti__fs_unlock(&lock);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int exti__store_export_paths(struct exti_store *s, const struct exti_entry *e, const char **copy,
                             const char **source, struct exti_error *err)
{
    *copy = exti__store_intern(s, exti__path_join(s->dir, e->copy));
    *source = exti__store_intern(s, exti__strdup(e->source));
    return *copy && *source ? 0 : exti__fail_nomem(err);
}

void exti__error_name_original(const char *original, const char *real, struct exti_error *err)
{
    if (err && strcmp(err->file, real) == 0)
        err->file[0] = 0;
    exti__error_file(err, original);
}

int exti__store_copy(struct exti_store *s, const char *original, bool symbolic, const char **copy,
                     const char **source, struct exti_error *err)
{
    char *real = NULL;
    int rc = exti__store_trace(s, original, &real, err);

    if (rc) {
        exti__error_file(err, original);
        return rc;
    }
    pthread_mutex_lock(&s->lock);
    if (strcmp(real, s->manifest.api.source) != 0)
        rc = copy_locked(s, real, symbolic, err);
    if (!rc)
        rc =
            exti__store_export_paths(s, exti__manifest_find(&s->manifest, real), copy, source, err);
    pthread_mutex_unlock(&s->lock);
    if (rc)
        exti__error_name_original(original, real, err);
    exti__free(real);
    return rc;
}

int exti__store_api(struct exti_store *s, const char **copy, const char **source,
                    struct exti_error *err)
{
    int rc;

    pthread_mutex_lock(&s->lock);
    rc = exti__store_export_paths(s, &s->manifest.api, copy, source, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}
