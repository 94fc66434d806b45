#include "loader/store/store_dependencies.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"

/* exti__store_intern of a copy of `string`. */
static const char *intern_copy(struct exti_store *s, const char *string)
{
    return exti__store_intern(s, exti__strdup(string));
}

static int add_shared(struct exti_store *s, const char *file, struct exti_dependency_set *set,
                      struct exti_error *err)
{
    const char *name = intern_copy(s, file), **shared;

    for (size_t i = 0; i < set->shared_count; i++)
        if (set->shared[i] == name)
            return name ? 0 : exti__fail_nomem(err);
    shared =
        name ? exti__array_room(set->shared, set->shared_count, &set->shared_cap, sizeof *shared)
             : NULL;
    if (!shared)
        return exti__fail_nomem(err);
    set->shared = shared;
    set->shared[set->shared_count++] = name;
    return 0;
}

/* Sets *index to the copy's place in the set; adds it if it is not there. */
static int add_dependency(struct exti_store *s, struct exti_entry *e,
                          struct exti_dependency_set *set, size_t *index, struct exti_error *err)
{
    struct exti_dependency *d;

    if (e->marks.walk == s->walk) {
        *index = e->marks.index;
        return 0;
    }
    d = exti__array_room(set->copies, set->count, &set->cap, sizeof *d);
    if (!d)
        return exti__fail_nomem(err);
    set->copies = d;
    d += set->count;
    *d = (struct exti_dependency){.source = intern_copy(s, e->source),
                                  .copy = exti__store_intern(s, exti__path_join(s->dir, e->copy)),
                                  .symbolic = e->symbolic,
                                  .id = e->id,
                                  .left_out = e->left_out,
                                  .needs = exti__calloc(e->need_count + 1, sizeof *d->needs),
                                  .optional = set->count > 0};
    exti__parts_drop(&d->left_out, &e->unloaded);
    e->marks.walk = s->walk;
    e->marks.index = *index = set->count++;
    return d->source && d->copy && d->needs ? 0 : exti__fail_nomem(err);
}

static int add_needs(struct exti_store *s, size_t at, bool optional,
                     struct exti_dependency_set *set, struct exti_error *err)
{
    const struct exti_entry *e = exti__manifest_find(&s->manifest, set->copies[at].source);
    int rc = 0;

    for (size_t i = 0; i < e->need_count && !rc; i++) {
        const struct exti_need *n = &e->needs[i];
        struct exti_entry *needed = n->isolated ? exti__manifest_find(&s->manifest, n->file) : NULL;
        size_t index;

        if (n->optional != optional)
            continue;
        if (needed) {
            rc = add_dependency(s, needed, set, &index, err);
            if (!rc && index != at)
                set->copies[at].needs[set->copies[at].need_count++] = index;
        } else if (n->file) {
            rc = add_shared(s, n->file, set, err);
        }
    }
    return rc;
}

/* Clears `optional` for each copy that the first one does not load without. */
static void clear_optional(struct exti_dependency_set *set)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = 0; i < set->count; i++)
            for (size_t k = 0; k < set->copies[i].firm_count && !set->copies[i].optional; k++) {
                bool *optional = &set->copies[set->copies[i].needs[k]].optional;

                changed = changed || *optional;
                *optional = false;
            }
    }
}

int exti__store_dependencies(struct exti_store *s, const char *source,
                             struct exti_dependency_set *out, struct exti_error *err)
{
    struct exti_entry *e;
    size_t index;
    int rc;

    *out = (struct exti_dependency_set){0};
    pthread_mutex_lock(&s->lock);
    s->walk++;
    e = exti__manifest_find(&s->manifest, source);
    rc = e ? add_dependency(s, e, out, &index, err)
           : exti__fail(err, EXTI_E_CHECK, EXTI_NO_OFFSET,
                        "the context no longer has a copy of it; copy it again");
    for (size_t i = 0; i < out->count && !rc; i++) {
        rc = add_needs(s, i, false, out, err);
        out->copies[i].firm_count = out->copies[i].need_count;
        if (!rc)
            rc = add_needs(s, i, true, out, err);
    }
    pthread_mutex_unlock(&s->lock);
    if (rc)
        exti__dependencies_free(out);
    else
        clear_optional(out);
    return rc;
}

void exti__dependencies_free(struct exti_dependency_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        exti__free(set->copies[i].needs);
    exti__free(set->copies);
    exti__free(set->shared);
    *set = (struct exti_dependency_set){0};
}
