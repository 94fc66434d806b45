/* What tests of captured references share: libraries that ask to be shared, findings, and failing
 * allocations. */
#ifndef TESTS_ISOLATION_CAPTURED_H
#define TESTS_ISOLATION_CAPTURED_H

#include <dlfcn.h>
#include <stdbool.h>

#include "base/mem.h"
#include "tests/isolation/build.h"

static inline void build_library(const char *source, const char *name, const char *flags)
{
    iso_build(source, iso_text("lib%s.so.1", name),
              iso_text("-Wl,-soname,lib%s.so.1 -Wl,-z,nodelete -Wl,-rpath,'%s' %s", name, iso_tmp,
                       flags));
}

static inline void *open_global(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    want(handle);
    return handle;
}

struct findings {
    int captured;
    char text[4096];
};

static inline int add_finding(void *to, const struct exti_error *finding)
{
    struct findings *f = to;
    size_t n = strlen(f->text);

    want_int(finding->code, EXTI_E_CAPTURED);
    f->captured++;
    snprintf(f->text + n, sizeof f->text - n, "[%s: %s]", finding->file, finding->message);
    return 0;
}

/* EXTI_STEP=3 lets every third allocation fail. */
static inline long step(void)
{
    const char *text = getenv("EXTI_STEP");

    return text ? atol(text) : 1;
}

/* Whether one of the next `count` allocations is still to fail.  Ends the failing. */
static inline bool is_pending(long count)
{
    bool pending = false;

    for (long i = 0; i < count && !pending; i++) {
        void *p = exti__alloc(1);

        pending = !p;
        exti__free(p);
    }
    exti__mem_fail_after(-1);
    return pending;
}

/* Loads the module into a new context with the n-th allocation failing, for each n, and tries
 * again; `check` looks at what is loaded then. */
static inline void load_while_allocations_fail(void (*check)(struct exti_ctx *ctx,
                                                             struct exti_module *m))
{
    bool all = false;
    long n;

    for (n = 0; !all; n += step()) {
        struct exti_ctx *ctx = iso_open(NULL);
        struct exti_error err = {0};
        struct exti_module *m = NULL;
        int rc;

        want(n < 100000);
        exti__mem_fail_after(n);
        rc = exti_load(ctx, in_tmp("user.so"), &m, &err);
        all = is_pending(step());
        if (rc)
            want_exti(rc, EXTI_E_NOMEM, &err);
        m = iso_load(ctx, in_tmp("user.so"));
        check(ctx, m);
        iso_close_ctx(ctx);
    }
    want(n > 50);
}

#endif
