/* Finds what is still mapped of a context after its modules were closed, and what keeps it
 * mapped. */
#include "loader/track/still_mapped.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "loader/process/linkmap.h"
#include "loader/track/context.h"
#include "loader/track/thread_objects.h"

/* Looks for the nth library in the folder `dir`, then for another that refers to it. */
struct mapped_search {
    const char *dir;
    size_t n;
    bool found;
    struct exti_loaded lib;
    struct exti_layout layout;
    char path[EXTI_PATH_MAX];      /* of the library that was found */
    char holder[200], symbol[100]; /* the symbol is "" if the holder names the library as needed */
    const struct exti_loaded *other;
};

static void name_holder(struct mapped_search *s, const char *symbol)
{
    const char *path = s->other->path;

    snprintf(s->holder, sizeof s->holder, "%s", *path ? exti__base_name(path) : "the program");
    snprintf(s->symbol, sizeof s->symbol, "%s", symbol);
}

static int reference_into_found(void *user, const struct exti_reference *ref)
{
    struct mapped_search *s = user;

    if (ref->kind != EXTI_REF_ADDRESS || exti__slot_value(ref) < s->layout.lo ||
        exti__slot_value(ref) >= s->layout.hi)
        return 0;
    name_holder(s, ref->name);
    return 1;
}

static int look_for_holder(void *user, const struct exti_loaded *lib,
                           const struct exti_layout *layout)
{
    struct mapped_search *s = user;
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
    exti__loaded_references(lib, NULL, reference_into_found, s, NULL);
    return s->holder[0] != 0;
}

static int look_for_file(void *user, const struct exti_loaded *lib,
                         const struct exti_layout *layout)
{
    struct mapped_search *s = user;

    if (!exti__path_is_below(lib->path, s->dir) || s->n-- > 0)
        return 0;
    s->found = true;
    s->lib = *lib;
    s->layout = *layout;
    snprintf(s->path, sizeof s->path, "%s", lib->path);
    /* From here, while the library cannot be unloaded. */
    exti__loaded_each(look_for_holder, s);
    return 1;
}

static void describe_holder(const struct mapped_search *s, bool objects, struct exti_error *finding)
{
    const char *text = objects ? "is still mapped: a living thread has C++ thread-local objects of "
                                 "this or another file"
                               : "is still mapped: a handle of it is open";

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
    bool objects = exti__thread_objects_remain(ctx);
    size_t n;

    for (n = 0;; n++) {
        struct mapped_search s = {.dir = exti__ctx_dir(ctx), .n = n};
        struct exti_error finding = {0};

        exti__loaded_each(look_for_file, &s);
        if (!s.found)
            return n;
        describe_holder(&s, objects, &finding);
        report(user, &finding);
    }
}
