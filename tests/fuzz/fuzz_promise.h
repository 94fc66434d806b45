/* What every format promises of the files that it accepts, and random edits. */
#ifndef TESTS_FUZZ_PROMISE_H
#define TESTS_FUZZ_PROMISE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/plan.h"
#include "tests/fuzz/fuzz_mutate.h"

/* ---- what a reader of the target's own sees -------------------------------------------------- */

enum { FUZZ_NEEDED = 256 };

/* The texts are in the file. */
struct fuzz_facts {
    const char *id; /* or NULL */
    const char *needed[FUZZ_NEEDED];
    size_t count;
    const char *why; /* not NULL: this reader cannot follow the file */
};

typedef void (*fuzz_reader)(struct exti_span file, struct fuzz_facts *out);

/* Whether two names of a library may be the same to a loader: PE ignores case and the ending. */
static inline bool fuzz_same_library(const char *name, const char *other)
{
    while (*name && (*name | 32) == (*other | 32)) {
        name++;
        other++;
    }
    return (!*name && !*other) || (!*name && *other == '.') || (!*other && *name == '.');
}

static inline bool fuzz_is_needed(const struct fuzz_facts *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->needed[i], name) == 0)
            return true;
    return false;
}

/* A name that `origin` spells out. */
static inline bool fuzz_is_relative(const char *name)
{
    return strchr(name, '$') || strstr(name, "@loader_path");
}

static inline void fuzz_broken(const char *promise, const char *detail, uint64_t at)
{
    fprintf(stderr, "%s: %s (at 0x%" PRIx64 ")\n", promise, detail, at);
    abort();
}

static inline void fuzz_breaks(const char *promise, const struct exti_error *err)
{
    fuzz_broken(promise, err->message, err->offset);
}

static inline int fuzz_ignore(void *user, const struct exti_error *finding)
{
    (void)user;
    (void)finding;
    return 0;
}

/* Replaying the corpus sets this, since its files are whole.  A fuzzer's files contradict
 * themselves in ways that only the check finds. */
static inline bool fuzz_is_whole(void)
{
    return getenv("EXTI_FUZZ_WHOLE") != NULL;
}

/* The copy needs what the original needed and what the edits say, and nothing else. */
static inline void fuzz_check_facts(const struct fuzz_facts *b, const struct fuzz_facts *a,
                                    const struct exti_rewrite_opts *o)
{
    const char *id = o->id && b->id ? o->id : b->id;

    if (b->why)
        return;
    if (a->why)
        fuzz_broken("another reader cannot follow a copy", a->why, 0);
    if (id && (!a->id || strcmp(id, a->id) != 0))
        fuzz_broken("another reader finds the wrong id", a->id ? a->id : "none", 0);
    for (size_t i = 0; i < b->count; i++) {
        bool edited =
            fuzz_is_needed(a, b->needed[i]) || (o->origin && fuzz_is_relative(b->needed[i]));

        for (size_t k = 0; !edited && k < o->needed_count; k++)
            edited = o->needed[k].from && fuzz_same_library(o->needed[k].from, b->needed[i]);
        if (!edited)
            fuzz_broken("another reader misses a library", b->needed[i], 0);
    }
    for (size_t i = 0; i < a->count; i++) {
        bool known = fuzz_is_needed(b, a->needed[i]) || o->origin ||
                     (o->bind_short && strcmp(o->bind_short, a->needed[i]) == 0) ||
                     strcmp(a->needed[i], "/usr/lib/libSystem.B.dylib") == 0;

        for (size_t k = 0; !known && k < o->needed_count; k++)
            known = o->needed[k].to && strcmp(o->needed[k].to, a->needed[i]) == 0;
        if (!known)
            fuzz_broken("another reader finds a library that nobody asked for", a->needed[i], 0);
    }
}

/* ---- promises of accepted files -------------------------------------------------------------- */

static inline int fuzz_count_finding(void *user, const struct exti_error *finding)
{
    (void)finding;
    ++*(size_t *)user;
    return 1;
}

static inline int fuzz_no_finding(void *user, const struct exti_error *finding)
{
    fuzz_broken(user, finding->message, finding->offset);
    return 1;
}

static inline bool fuzz_same_plan(const struct exti_plan *a, const struct exti_plan *b)
{
    bool same = a->count == b->count && a->tail.n == b->tail.n &&
                (!a->tail.n || (a->tail_offset == b->tail_offset &&
                                memcmp(a->tail.p, b->tail.p, a->tail.n) == 0));

    for (size_t i = 0; same && i < a->count; i++)
        same = a->patches[i].offset == b->patches[i].offset &&
               a->patches[i].size == b->patches[i].size;
    return same;
}

/* Whether an edit gives a library the name of another one of the original.  Verifying does not know
 * the edits, so it takes the two for each other; a context's names are new to every file. */
static inline bool fuzz_exchanges_names(const struct fuzz_facts *b,
                                        const struct exti_rewrite_opts *o)
{
    for (size_t i = 0; i < o->needed_count; i++) {
        const struct exti_needed *n = &o->needed[i];

        if (!n->to || !fuzz_is_needed(b, n->to))
            continue;
        for (size_t k = 0; k < o->needed_count; k++)
            if (n->from || (o->needed[k].from && strcmp(o->needed[k].from, n->to) == 0))
                return true;
    }
    return false;
}

/* exti_rewrite accepts a file if it can plan the edits and the check finds nothing in the copy.  Of
 * such a copy: verifying finds nothing either, a second run gives the same bytes, and another
 * reader sees the edits and nothing else.  `removes` says that the edits remove what
 * verifying misses.  Returns whether the file was accepted. */
static inline bool fuzz_check_accepted(const struct exti_format_ops *ops, struct exti_span before,
                                       struct exti_span after, const struct exti_request *req,
                                       const struct exti_plan *plan, fuzz_reader reader,
                                       bool removes)
{
    static char verified[] = "verifying finds fault with an accepted copy";
    struct exti_error err = {.code = EXTI_OK};
    struct fuzz_facts b = {.count = 0}, a = {.count = 0};
    struct exti_plan again;
    uint8_t *image;
    size_t findings = 0;

    if (ops->check(before, after, req, plan, fuzz_count_finding, &findings, NULL) || findings)
        return false;
    reader(before, &b);
    reader(after, &a);
    if (!removes && !fuzz_exchanges_names(&b, req->opts) &&
        ops->check(before, after, NULL, NULL, fuzz_no_finding, verified, &err))
        fuzz_broken("verifying cannot read an accepted copy", err.message, err.offset);
    exti__plan_init(&again, before.n * 4 + ((size_t)1 << 20));
    image = malloc(after.n > before.n ? after.n : before.n);
    if (ops->plan(before, req, &again, &err) || !fuzz_same_plan(plan, &again))
        fuzz_broken("a second run plans something else", err.message, err.offset);
    if (image) {
        memcpy(image, before.p, before.n);
        exti__plan_apply(&again, image, before.n);
        if (memcmp(image, after.p, after.n) != 0)
            fuzz_broken("a second run", "gives other bytes", 0);
    }
    free(image);
    exti__plan_free(&again);
    fuzz_check_facts(&b, &a, req->opts);
    return true;
}

/* ---- random edits ---------------------------------------------------------------------------- */

struct fuzz_edit {
    struct exti_rewrite_opts opts;
    struct exti_needed needed[4];
    struct exti_rename renames[4];
};

/* The names that edits use: with those of the file itself they hit something now and then. */
struct fuzz_names {
    const char *const *ids, *const *libraries, *const *paths, *const *symbols;
    size_t id_count, library_count, path_count, symbol_count;
    bool may_add; /* libraries may be added and removed */
};

static inline const char *fuzz_pick(uint64_t *state, const char *const *list, size_t n)
{
    return n ? list[fuzz_below(state, n)] : NULL;
}

static inline void fuzz_random_needed(struct fuzz_edit *e, const struct fuzz_names *names,
                                      const struct fuzz_facts *own, uint64_t *state)
{
    struct exti_needed *n = &e->needed[e->opts.needed_count++];
    const size_t kind = names->may_add ? fuzz_below(state, 4) : 3;

    *n = (struct exti_needed){NULL, fuzz_pick(state, names->libraries, names->library_count),
                              fuzz_below(state, 2) ? EXTI_NEEDED_FIRST : EXTI_NEEDED_LAST};
    if (kind)
        n->from = own->count && fuzz_below(state, 4)
                      ? own->needed[fuzz_below(state, own->count)]
                      : fuzz_pick(state, names->libraries, names->library_count);
    if (n->from && !*n->from) /* which exti_rewrite refuses */
        n->from = NULL;
    if (kind == 1 && n->from)
        n->to = NULL;
}

/* Edits for `seed`; they refer to the texts in `own`. */
static inline void fuzz_random_edit(struct fuzz_edit *e, const struct fuzz_names *names,
                                    const struct fuzz_facts *own, uint64_t seed)
{
    uint64_t state = seed;
    size_t n;

    *e = (struct fuzz_edit){.opts = {.size = sizeof e->opts}};
    if (fuzz_below(&state, 3))
        e->opts.id = fuzz_pick(&state, names->ids, names->id_count);
    for (n = fuzz_below(&state, 5); n; n--)
        fuzz_random_needed(e, names, own, &state);
    for (n = fuzz_below(&state, 3); n && names->symbol_count; n--)
        e->renames[e->opts.rename_count++] =
            (struct exti_rename){fuzz_pick(&state, names->symbols, names->symbol_count),
                                 fuzz_pick(&state, names->symbols, names->symbol_count)};
    e->opts.needed = e->needed;
    e->opts.renames = e->renames;
    e->opts.flags = (uint32_t)fuzz_below(&state, 16);
    if (!fuzz_below(&state, 3))
        e->opts.path_set = fuzz_pick(&state, names->paths, names->path_count);
    if (!fuzz_below(&state, 3))
        e->opts.path_prepend = "/ctx/dir";
    if (!fuzz_below(&state, 3))
        e->opts.origin = "/opt/lib";
}

#endif
