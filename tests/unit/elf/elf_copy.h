/* Shared objects built at test time, and their rewritten copies. */
#ifndef TESTS_UNIT_ELF_COPY_H
#define TESTS_UNIT_ELF_COPY_H

#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/elf_format.h"

/* Compiles C source to dir/name; `flags` are words of a shell. */
static inline char *build(struct test *t, const char *name, const char *source, const char *flags)
{
    char *c = test_format(t, "%s.c", test_path(t, name)), *so = test_path(t, name);

    test_write(c, source, strlen(source));
    test_must_run(t, "sh", "-c",
                  test_format(t, "${CC:-cc} -O1 -fPIC -shared -Wl,--no-as-needed -o '%s' '%s' %s",
                              so, c, flags),
                  NULL);
    return so;
}

static inline int plan_file(struct test *t, const char *path, const struct exti_rewrite_opts *opts,
                            struct exti_plan *plan)
{
    size_t n;
    const char *p = test_read(t, path, &n);

    t->err = (struct exti_error){0};
    return exti__elf_format.plan(exti__span(p, n), &(struct exti_request){.opts = opts}, plan,
                                 &t->err);
}

/* The plan operation must fail with `code` and a message that has `says` in it. */
static inline void assert_refused(struct test *t, const char *path,
                                  const struct exti_rewrite_opts *opts, int code, const char *says)
{
    struct exti_plan plan;
    int rc;

    exti__plan_init(&plan, 1 << 24);
    rc = plan_file(t, path, opts, &plan);
    exti__plan_free(&plan);
    assert_exti(rc, code, &t->err, ANY_OFFSET);
    assert_says(&t->err, says);
}

static inline char *readelf_complaints(struct test *t, const char *path)
{
    return test_must_run(
        t, "sh", "-c",
        test_format(t, "readelf -aW '%s' 2>&1 >/dev/null | sed 's/.*readelf: //'", path), NULL);
}

struct edited {
    char *path;       /* path.new */
    size_t was, size; /* bytes of the input and of the copy */
    size_t patches;
    bool grown; /* the plan has a tail */
};

/* Writes the rewritten copy and checks what every copy must satisfy: readelf has no new complaint,
 * and planning the same edit again changes nothing. */
static inline struct edited edit(struct test *t, const char *path,
                                 const struct exti_rewrite_opts *opts)
{
    struct edited e = {.path = test_format(t, "%s.new", path)};
    struct exti_plan plan, again;
    const char *in = test_read(t, path, &e.was);
    uint8_t *out;
    int rc;

    exti__plan_init(&plan, 1 << 24);
    rc = plan_file(t, path, opts, &plan);
    assert_ok(rc, &t->err);
    e.size = (size_t)exti__plan_size(&plan, e.was);
    e.patches = plan.count;
    e.grown = plan.tail.n != 0;
    out = test_alloc(t, e.size);
    memcpy(out, in, e.was);
    exti__plan_apply(&plan, out, e.was);
    exti__plan_free(&plan);
    test_write(e.path, out, e.size);

    exti__plan_init(&again, 1 << 24);
    rc = plan_file(t, e.path, opts, &again);
    assert_ok(rc, &t->err);
    assert_int_equal(again.count, 0);
    assert_int_equal(again.tail.n, 0);
    exti__plan_free(&again);

    assert_string_equal(readelf_complaints(t, e.path), readelf_complaints(t, path));
    return e;
}

/* The dynamic string entries as readelf shows them, in order, one per line: "NEEDED libc.so.6". */
static inline char *dynamic_strings(struct test *t, const char *path)
{
    return test_must_run(t, "sh", "-c",
                         test_format(t,
                                     "LC_ALL=C readelf -dW '%s' | sed -n "
                                     "'s/.*(\\([A-Z]*\\)) .*\\[\\(.*\\)\\]$/\\1 \\2/p'",
                                     path),
                         NULL);
}

static inline char *readelf(struct test *t, const char *option, const char *path)
{
    return test_must_run(t, "readelf", option, path, NULL);
}

static inline void *load_object(const char *path)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!h)
        fail_msg("%s", dlerror());
    return h;
}

/* Calls int NAME(void) of the loaded file. */
static inline int call(void *h, const char *name)
{
    int (*f)(void);
    void *p = dlsym(h, name);

    if (!p)
        fail_msg("%s", dlerror());
    memcpy(&f, &p, sizeof f);
    return f();
}

#endif
