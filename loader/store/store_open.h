/* Opening and closing a context directory. */
#ifndef LOADER_STORE_STORE_OPEN_H
#define LOADER_STORE_STORE_OPEN_H

#include "loader/store/store.h"

struct exti_store_opts {
    const char *dir, *name, *api_library; /* as in exti_ctx_opts */
    bool rename, sync, copy_only, withhold, drop_unused, trust_dir;
    bool one_shot; /* as without `dir`, but the directory stays */
    bool full;     /* copies leave out nothing */
    enum exti_closure closure;
    const struct exti_rule *rules;
    size_t rule_count;
    const struct exti_quirks *quirks;   /* NULL: none; outlive the store */
    bool (*is_copy)(uintptr_t address); /* whether a context of this process has loaded it */
    int (*copy_name)(void *user, const char *original, char *out, size_t cap);
    void *user;
};

/* Opens or creates the directory and brings the API library's copy up to date.  On failure `s`
 * needs no close, and a directory that this call created is gone again. */
int exti__store_open(struct exti_store *s, const struct exti_store_opts *opts,
                     struct exti_error *err);

/* Saves the manifest and frees the store, on failure too.  A private directory is removed; with
 * `drop_unused` so is a directory of our making that has no copy but the API library's.
 * `unloaded`: nobody has a copy mapped any more, so that contexts that are open may get the files
 * and the removal is for later. */
int exti__store_close(struct exti_store *s, bool unloaded, struct exti_error *err);

#endif
