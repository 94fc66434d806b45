/* Thread-local variables by each of the compiler's dialects and models, while the program has the
 * original library in its global scope. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>

#include "tests/isolation/build.h"

/* How the compiler reaches variables whose place only the loader knows: by calls of
 * __tls_get_addr, or by descriptors. */
#if defined(__x86_64__)
static const char *const dialects[] = {"-mtls-dialect=gnu", "-mtls-dialect=gnu2"};
#elif defined(__aarch64__)
static const char *const dialects[] = {"-mtls-dialect=trad", "-mtls-dialect=desc"};
#else
static const char *const dialects[] = {""};
#endif
#define DIALECTS (sizeof dialects / sizeof *dialects)

static const char *const models[] = {"global-dynamic", "local-dynamic", "initial-exec"};
#define MODELS (sizeof models / sizeof *models)

/* dep_weak is as C++ makes a thread_local variable that is inline.  The extern references cannot
 * be bound by the linker, the local ones are. */
static const char dep_source[] =
    "__thread int dep_first = 7;\n"
    "__thread int dep_count = 1;\n"
    "__thread int dep_weak __attribute__((weak)) = 1;\n"
    "__thread int dep_hidden __attribute__((visibility(\"hidden\"))) = 1;\n"
    "static __thread int own = 1, own_other = 1;\n"
    "int dep_next(void) { return ++dep_count; }\n"
    "int dep_weak_next(void) { return ++dep_weak; }\n"
    "int dep_hidden_next(void) { return ++dep_hidden; }\n"
    "int dep_own_next(void) { own_other++; return ++own + own_other - own; }\n"
    "int dep_local(void) { return dep_hidden + own + own_other; }\n";

static const char user_source[] = "extern __thread int dep_count, dep_weak;\n"
                                  "extern __thread int absent __attribute__((weak));\n"
                                  "__thread int user_count = 1;\n"
                                  "int user_next(void) { return ++dep_count; }\n"
                                  "int user_weak_next(void) { return ++dep_weak; }\n"
                                  "int user_own_next(void) { return ++user_count; }\n"
                                  "int user_has_absent(void) { return &absent != 0; }\n";

static const char *const counters[] = {"dep_next", "dep_weak_next", "dep_hidden_next",
                                       "dep_own_next"};
static const char *const user_counters[] = {"user_next", "user_weak_next", "user_own_next"};

/* The program's own, which it exports. */
__attribute__((visibility("default"))) extern __thread int shadowed;
__attribute__((visibility("default"))) __thread int shadowed = 50;

static const char shadowed_source[] = "__thread int shadowed = 1;\n";
static const char shadowing_source[] = "extern __thread int shadowed;\n"
                                       "int user_next(void) { return ++shadowed; }\n";

struct dialect_case {
    const char *dialect, *dep_model, *user_model;
};

static void build_pair(const struct dialect_case *c)
{
    iso_build(dep_source, "libdep.so.1",
              iso_text("-Wl,-soname,libdep.so.1 %s -ftls-model=%s", c->dialect, c->dep_model));
    iso_build(user_source, "user.so",
              iso_text("%s -ftls-model=%s '%s' -Wl,-rpath,'%s'", c->dialect, c->user_model,
                       in_tmp("libdep.so.1"), iso_tmp));
}

static int call_in(void *handle, const char *name)
{
    int (*f)(void) = (int (*)(void))dlsym(handle, name);

    want(f);
    return f();
}

static void *open_in(const char *file, int mode)
{
    void *handle = dlopen(in_tmp(file), RTLD_NOW | mode);

    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    want(handle);
    return handle;
}

struct pair {
    struct exti_ctx *ctx;
    struct exti_module *dep, *user;
};

static struct pair load_pair(void)
{
    struct pair p = {.ctx = iso_open(NULL)};

    p.dep = iso_load(p.ctx, in_tmp("libdep.so.1"));
    p.user = iso_load(p.ctx, in_tmp("user.so"));
    return p;
}

/* The first thread that asks finds each variable at its initial value, 1.  user_next counts in the
 * variable of dep_next. */
static void count_afresh(const struct pair *p)
{
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        want_int(call_int(p->dep, counters[i]), 2);
    want_int(call_int(p->user, user_counters[0]), 3);
    want_int(call_int(p->user, user_counters[1]), 3);
    want_int(call_int(p->user, user_counters[2]), 2);
    want_int(*(int *)iso_sym(p->dep, "dep_count"), 3);
    want_int(*(int *)iso_sym(p->dep, "dep_first"), 7);
}

static void *count_on_thread(void *p)
{
    count_afresh(p);
    return NULL;
}

static void want_apart(void *arg)
{
    const struct dialect_case *c = arg;
    struct pair x, y;
    pthread_t t;
    void *host;

    build_pair(c);
    host = open_in("libdep.so.1", RTLD_GLOBAL);
    for (int i = 2; i < 100; i++)
        want_int(call_in(host, "dep_next"), i);
    x = load_pair();
    y = load_pair();
    count_afresh(&x);
    count_afresh(&y);
    for (size_t i = 0; i < 2; i++) {
        want(pthread_create(&t, NULL, count_on_thread, i ? &y : &x) == 0);
        want(pthread_join(t, NULL) == 0);
    }
    want_int(call_in(host, "dep_next"), 100);
    want_int(call_int(x.user, "user_next"), 4);
    want_int(call_int(y.dep, "dep_next"), 4);
    /* Only a descriptor can lead to no variable. */
    if (c->dialect == dialects[1] && strcmp(c->user_model, "global-dynamic") == 0)
        want_int(call_int(x.user, "user_has_absent"), 0);
    iso_prove_clean(x.ctx, 3);
    iso_prove_clean(y.ctx, 3);
    iso_close_ctx(x.ctx);
    want_int(call_int(y.user, "user_next"), 5);
    iso_close_ctx(y.ctx);
}

static bool run_case(void (*body)(void *), struct dialect_case *c)
{
    bool ok = iso_fork(body, c);

    if (!ok)
        fprintf(stderr, "failed with %s, %s used as %s\n", c->dialect, c->dep_model, c->user_model);
    return ok;
}

static void variables_are_each_contexts_own(void **state)
{
    bool ok = true;

    (void)state;
    for (size_t d = 0; d < DIALECTS; d++)
        for (size_t m = 0; m < MODELS; m++)
            for (size_t u = 0; u < MODELS; u += 2) {
                struct dialect_case c = {dialects[d], models[m], models[u]};

                /* See uses_that_need_static_storage_are_refused_without_it. */
                if (u == 2 && m != 2)
                    continue;
                ok &= run_case(want_apart, &c);
            }
    assert_true(ok);
}

/* The program has a variable of that name, before all libraries. */
static void want_not_the_programs(void *arg)
{
    const struct dialect_case *c = arg;
    struct pair x, y;

    iso_build(shadowed_source, "libdep.so.1", "-Wl,-soname,libdep.so.1");
    iso_build(shadowing_source, "user.so",
              iso_text("%s '%s' -Wl,-rpath,'%s'", c->dialect, in_tmp("libdep.so.1"), iso_tmp));
    want_int(call_in(open_in("user.so", RTLD_LOCAL), "user_next"), 51);
    x = load_pair();
    y = load_pair();
    want_int(call_int(x.user, "user_next"), 2);
    want_int(call_int(y.user, "user_next"), 2);
    want_int(*(int *)iso_sym(x.dep, "shadowed"), 2);
    want_int(shadowed, 51);
    iso_prove_clean(x.ctx, 3);
    iso_prove_clean(y.ctx, 3);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

static void the_programs_variables_capture_nothing(void **state)
{
    (void)state;
    for (size_t d = 0; d < DIALECTS; d++) {
        struct dialect_case c = {dialects[d], "global-dynamic", "global-dynamic"};

        assert_true(run_case(want_not_the_programs, &c));
    }
}

/* The control: without contexts, the library that the program has opened captures the copies'
 * references. */
static void want_shared(void *arg)
{
    void *host, *user[2];

    build_pair(arg);
    host = open_in("libdep.so.1", RTLD_GLOBAL);
    want_int(call_in(host, "dep_next"), 2);
    for (int i = 0; i < 2; i++) {
        copy_file(in_tmp("user.so"), in_tmp(iso_text("user_%d.so", i)));
        user[i] = open_in(iso_text("user_%d.so", i), RTLD_LOCAL);
    }
    want_int(call_in(user[0], "user_next"), 3);
    want_int(call_in(user[1], "user_next"), 4);
}

static void control_variables_are_shared_without_contexts(void **state)
{
    (void)state;
    for (size_t d = 0; d < DIALECTS; d++)
        for (size_t u = 0; u < MODELS; u += 2) {
            struct dialect_case c = {dialects[d], models[u], models[u]};

            assert_true(run_case(want_shared, &c));
        }
}

/* An initial-exec reference holds one offset for all threads.  The copy of the library has a block
 * at such an offset only if it uses that model itself. */
static void want_refused(void *arg)
{
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_module *m = NULL;
    struct exti_error err = {0};

    build_pair(arg);
    open_in("libdep.so.1", RTLD_GLOBAL);
    iso_load(ctx, in_tmp("libdep.so.1"));
    want_exti(exti_load(ctx, in_tmp("user.so"), &m, &err), EXTI_E_INTERPOSED, &err);
    want_text(err.message, "thread-local variable dep_");
    want_text(err.message, "libdep.so.1");
    want_text(err.message, "initial-exec");
    want(!m);
    iso_close_ctx(ctx);
}

static void uses_that_need_static_storage_are_refused_without_it(void **state)
{
    (void)state;
    for (size_t d = 0; d < DIALECTS; d++) {
        struct dialect_case c = {dialects[d], "global-dynamic", "initial-exec"};

        assert_true(run_case(want_refused, &c));
    }
}

/* dlsym(RTLD_DEFAULT) by a copy, while the original is in the global scope. */
ISO_CASE(a_look_up_by_name_gives_the_contexts_variable)
{
    const struct dialect_case c = {dialects[0], "global-dynamic", "global-dynamic"};
    void *(*sym_default)(const char *);
    struct pair x;
    void *host;

    build_pair(&c);
    host = open_in("libdep.so.1", RTLD_GLOBAL);
    x = load_pair();
    sym_default =
        (void *(*)(const char *))iso_sym(iso_load(x.ctx, toy("ext_dl.so")), "dl_sym_default");
    want(sym_default("dep_count") == iso_sym(x.dep, "dep_count"));
    want(sym_default("dep_count") != dlsym(host, "dep_count"));
    want(sym_default("dep_weak") == iso_sym(x.dep, "dep_weak"));
    want(sym_default("dep_next") == iso_sym(x.dep, "dep_next"));
    /* The program's own, of which no context has a copy. */
    want(sym_default("shadowed") == &shadowed);
    iso_close_ctx(x.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_up_by_name_gives_the_contexts_variable),
        cmocka_unit_test(variables_are_each_contexts_own),
        cmocka_unit_test(the_programs_variables_capture_nothing),
        cmocka_unit_test(control_variables_are_shared_without_contexts),
        cmocka_unit_test(uses_that_need_static_storage_are_refused_without_it),
    };

    return cmocka_run_group_tests_name("isolation/tls", tests, NULL, NULL);
}
