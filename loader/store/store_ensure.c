/* A copy and the copies of all dependencies of its source. */
#include "loader/store/store_ensure.h"

#include "base/error.h"
#include "base/mem.h"
#include "loader/store/store_fresh.h"
#include "loader/store/store_interposed.h"
#include "loader/store/store_make.h"
#include "loader/store/store_walk.h"

/* The next file of this walk, and its entry or NULL; false at the end. */
static bool next_step(struct exti_store *s, struct exti_steps *p, struct exti_step *at,
                      struct exti_entry **e)
{
    while (p->count) {
        *at = p->steps[--p->count];
        *e = exti__manifest_find(&s->manifest, at->source);
        if (!*e || (*e)->marks.walk != s->walk)
            return true;
    }
    return false;
}

bool exti__store_is_whole(struct exti_store *s, const char *source, bool symbolic)
{
    struct exti_steps p = {0};
    struct exti_step at;
    struct exti_entry *e;
    bool whole = exti__steps_push(&p, source, NULL);

    s->walk++;
    while (whole && next_step(s, &p, &at, &e)) {
        whole = exti__store_is_fresh(s, source, e, symbolic && !at.user) &&
                exti__steps_push_needs(&p, e);
        if (whole)
            e->marks.walk = s->walk;
    }
    exti__free(p.steps);
    return whole;
}

static int make_step(struct exti_store *s, const char *first, const struct exti_step *at,
                     bool symbolic, struct exti_error *err)
{
    const struct exti_copy_request r = {.source = at->source,
                                        .first = first,
                                        .root = !at->user,
                                        .symbolic = (symbolic && !at->user) ||
                                                    exti__store_noted_interposed(s, at->source)};

    return exti__store_make(s, &r, err);
}

int exti__store_ensure(struct exti_store *s, const char *source, bool symbolic,
                       struct exti_error *err)
{
    struct exti_steps p = {0};
    struct exti_step at;
    struct exti_entry *e;
    int rc = exti__steps_push(&p, source, NULL) ? 0 : exti__fail_nomem(err);

    s->walk++;
    exti__image_cache_begin(&s->images);
    while (!rc && next_step(s, &p, &at, &e)) {
        if (e != &s->manifest.api && !exti__store_is_fresh(s, source, e, symbolic && !at.user))
            rc = make_step(s, source, &at, symbolic, err);
        if (rc) {
            exti__error_add_requester(&at, err);
            break;
        }
        e = exti__manifest_find(&s->manifest, at.source);
        e->marks.walk = s->walk;
        if (!exti__steps_push_needs(&p, e))
            rc = exti__fail_nomem(err);
    }
    exti__image_cache_end(&s->images);
    exti__free(p.steps);
    return rc;
}
