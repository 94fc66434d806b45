/* What is still mapped of a context after it was closed, and what holds it there. */
#include "loader/track/still_mapped.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/os/fs.h"
#include "loader/process/linkmap.h"
#include "loader/store/copy_names.h"
#include "loader/track/context_threads.h"

/* Looks for the nth library that lies in the folder; then at all others for one that refers to it. */
struct search {
    const char *dir;
    size_t n;
    bool found;
    struct exti_loaded lib;
    struct exti_layout layout;
    char path[EXTI_PATH_MAX];      /* of what was found */
    char holder[200], symbol[100]; /* the symbol is "" where the holder names it as needed */
    const struct exti_loaded *other;
};

static bool lies_in(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

static void name_holder(struct search *s, const char *symbol)
{
    const char *path = s->other->path;

    snprintf(s->holder, sizeof s->holder, "%s", *path ? exti__base_name(path) : "the program");
    snprintf(s->symbol, sizeof s->symbol, "%s", symbol);
}

static int refers(void *user, const struct exti_reference *ref)
{
    struct search *s = user;

    if (ref->kind != EXTI_REF_ADDRESS || *ref->slot < s->layout.lo || *ref->slot >= s->layout.hi)
        return 0;
    name_holder(s, ref->name);
    return 1;
}

static int look_for_holder(void *user, const struct exti_loaded *lib,
                           const struct exti_layout *layout)
{
    struct search *s = user;
    const char *needed;

    (void)layout;
    if (lib->dynamic == s->lib.dynamic)
        return 0;
    s->other = lib;
    for (size_t i = 0; (needed = exti__loaded_needed(lib, i)); i++)
        if (strcmp(exti__base_name(needed), exti__base_name(s->path)) == 0) {
            name_holder(s, "");
            return 1;
        }
    exti__loaded_references(lib, refers, s, NULL);
    return s->holder[0] != 0;
}

static int look_for_file(void *user, const struct exti_loaded *lib,
                         const struct exti_layout *layout)
{
    struct search *s = user;

    if (!lies_in(lib->path, s->dir) || s->n-- > 0)
        return 0;
    s->found = true;
    s->lib = *lib;
    s->layout = *layout;
    snprintf(s->path, sizeof s->path, "%s", lib->path);
    /* While this one cannot go away. */
    exti__loaded_each(look_for_holder, s);
    return 1;
}

static void explain(const struct search *s, bool objects, struct exti_error *finding)
{
    const char *text = objects ? "is still mapped: a living thread has C++ thread-local objects of "
                                 "this or another file to destroy"
                               : "is still mapped: some handle of it is open";

#ifndef __GLIBC__
    text = "is still mapped: this C library unmaps nothing";
#endif
    if (s->symbol[0])
        exti__fail(finding, EXTI_E_BUSY, EXTI_NO_OFFSET,
                   "is still mapped: %s refers to its symbol %s", s->holder, s->symbol);
    else if (s->holder[0])
        exti__fail(finding, EXTI_E_BUSY, EXTI_NO_OFFSET, "is still mapped: %s needs it", s->holder);
    else
        exti__fail(finding, EXTI_E_BUSY, EXTI_NO_OFFSET, "%s", text);
    exti__error_file(finding, s->path);
}

size_t exti__still_mapped_report(const struct exti_ctx *ctx, exti_report_fn report, void *user)
{
    bool objects = exti__ctx_threads_have_objects(ctx);
    size_t n;

    for (n = 0;; n++) {
        struct search s = {.dir = exti_ctx_dir(ctx), .n = n};
        struct exti_error finding = {0};

        exti__loaded_each(look_for_file, &s);
        if (!s.found)
            return n;
        explain(&s, objects, &finding);
        report(user, &finding);
    }
}
