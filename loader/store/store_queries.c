#include "loader/store/store_queries.h"

#include <string.h>

#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/store/manifest_api.h"
#include "loader/store/store.h"

const char *exti__store_dir(const struct exti_store *s)
{
    return s->dir;
}

const char *exti__store_context_name(const struct exti_store *s)
{
    return s->manifest.name;
}

enum exti_file_format exti__store_format(const struct exti_store *s)
{
    return s->manifest.target.format;
}

bool exti__store_is_renamed(const struct exti_store *s)
{
    return s->manifest.renamed;
}

bool exti__store_shares_all(const struct exti_store *s)
{
    return s->manifest.policy.closure == EXTI_CLOSURE_NONE;
}

bool exti__store_is_api_name(const struct exti_store *s, const char *name)
{
    return exti__manifest_is_api(&s->manifest, name);
}

bool exti__store_is_api_copy(const struct exti_store *s, const char *path)
{
    return strcmp(exti__base_name(path), s->manifest.api.copy) == 0;
}

const char *exti__store_private_symbol(const struct exti_store *s, const char *name)
{
    return exti__private_symbol_find(&s->renames, name);
}

const char *exti__store_original_symbol(const struct exti_store *s, const char *name)
{
    return exti__private_symbol_original(&s->renames, name);
}

/* ---- by a library's name ---- */

static bool entry_is_named(const struct exti_entry *e, const char *name,
                           bool (*each)(void *user, const char *source), void *user)
{
    if (e->source_name && strcmp(e->source_name, name) == 0 && each(user, e->source))
        return true;
    for (size_t i = 0; i < e->need_count; i++)
        if (e->needs[i].isolated && strcmp(e->needs[i].name, name) == 0 &&
            each(user, e->needs[i].file))
            return true;
    return false;
}

bool exti__store_each_named(struct exti_store *s, const char *name,
                            bool (*each)(void *user, const char *source), void *user)
{
    bool done = false;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->manifest.count && !done; i++)
        done = entry_is_named(&s->manifest.entries[i], name, each, user);
    pthread_mutex_unlock(&s->lock);
    return done;
}

/* ---- by a loaded file ---- */

static bool is_same_version(const struct exti_file_id *a, const struct exti_file_id *b)
{
    return a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns;
}

/* `id` is NULL if the file is gone: then only its path tells it. */
static enum exti_source_relation relation_to(const struct exti_entry *e, const char *path,
                                             const struct exti_file_id *id, const char *soname)
{
    if (!e->source)
        return EXTI_SOURCE_NONE;
    if (id ? is_same_version(&e->id, id) : strcmp(e->source, path) == 0)
        return EXTI_SOURCE_SAME;
    return soname && e->source_name && strcmp(e->source_name, soname) == 0 ? EXTI_SOURCE_NAMESAKE
                                                                           : EXTI_SOURCE_NONE;
}

enum exti_source_relation exti__store_relation(struct exti_store *s, const char *path,
                                               const char *soname,
                                               void (*found)(void *user, const char *source),
                                               void *user)
{
    const struct exti_manifest *m = &s->manifest;
    enum exti_source_relation best = EXTI_SOURCE_NONE;
    const struct exti_entry *nearest = NULL;
    struct exti_file_id id;
    const bool exists = !exti__fs_id(path, &id, NULL);

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i <= m->count && best != EXTI_SOURCE_SAME; i++) {
        const struct exti_entry *e = i < m->count ? &m->entries[i] : &m->api;
        const enum exti_source_relation r = relation_to(e, path, exists ? &id : NULL, soname);

        if (r == EXTI_SOURCE_NONE)
            continue;
        best = r;
        nearest = e;
    }
    if (nearest)
        found(user, nearest->source);
    pthread_mutex_unlock(&s->lock);
    return best;
}
