/* Constructors that wait for each other in several contexts, and such as do not return. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>

#include "tests/isolation/build.h"

/* ---- circles --------------------------------------------------------------------------------- */

enum { RING_MAX = 3 };

static struct exti_ctx *ring[RING_MAX];
static int ring_size;
static pthread_barrier_t all_began;
static _Thread_local int here; /* the context whose thread this is */
static _Atomic int met;        /* constructors that have been where they load from */

/* A constructor of each context loads the library of the next. */
static void load_from_next(void)
{
    /* The context that closes the circle runs the constructor of no other. */
    if (met++ < ring_size)
        pthread_barrier_wait(&all_began);
    iso_load(ring[(here + 1) % ring_size], in_tmp("caller.so"));
}

static void *load_here(void *number)
{
    struct exti_module *m;

    here = *(int *)number;
    m = iso_load(ring[here], in_tmp("caller.so"));
    want_int(*(int *)iso_sym(m, "done"), 1);
    return NULL;
}

static void want_ring_to_end(int size)
{
    const struct exti_redirect redirect = {"called", (void *)(uintptr_t)load_from_next};
    int numbers[RING_MAX] = {0, 1, 2};
    pthread_t threads[RING_MAX];

    ring_size = size;
    met = 0;
    want(pthread_barrier_init(&all_began, NULL, (unsigned)size) == 0);
    for (int i = 0; i < size; i++) {
        struct exti_ctx_opts opts = iso_opts(NULL, NULL);

        opts.redirects = &redirect;
        opts.redirect_count = 1;
        ring[i] = iso_open_opts(&opts);
        iso_api(ring[i]);
    }
    for (int i = 0; i < size; i++)
        want(pthread_create(&threads[i], NULL, load_here, &numbers[i]) == 0);
    for (int i = 0; i < size; i++)
        want(pthread_join(threads[i], NULL) == 0);
    want_int(met, size);
    for (int i = 0; i < size; i++) {
        iso_prove_clean(ring[i], 2);
        iso_close_ctx(ring[i]);
    }
}

/* A thread that waits for ever is ended by SIGALRM. */
ISO_CASE(constructors_that_load_into_each_others_contexts_end)
{
    alarm(120);
    iso_build("void called(void) __attribute__((weak));\n"
              "int done;\n"
              "__attribute__((constructor)) static void begin(void) { called(); done = 1; }\n",
              "caller.so", "");
    want_ring_to_end(2);
    want_ring_to_end(3);
}

/* ---- closing --------------------------------------------------------------------------------- */

static int close_results[2];

static void close_next(void)
{
    pthread_barrier_wait(&all_began);
    close_results[here] = exti_ctx_close(ring[!here], NULL);
    pthread_barrier_wait(&all_began);
}

/* Each thread would wait until the other's call has ended. */
ISO_CASE(constructors_that_close_each_others_contexts_are_refused)
{
    const struct exti_redirect redirect = {"called", (void *)(uintptr_t)close_next};
    int numbers[2] = {0, 1};
    pthread_t threads[2];

    alarm(120);
    iso_build("void called(void) __attribute__((weak));\n"
              "int done;\n"
              "__attribute__((constructor)) static void begin(void) { called(); done = 1; }\n",
              "caller.so", "");
    want(pthread_barrier_init(&all_began, NULL, 2) == 0);
    for (int i = 0; i < 2; i++) {
        struct exti_ctx_opts opts = iso_opts(NULL, NULL);

        opts.redirects = &redirect;
        opts.redirect_count = 1;
        ring[i] = iso_open_opts(&opts);
        iso_api(ring[i]);
    }
    for (int i = 0; i < 2; i++)
        want(pthread_create(&threads[i], NULL, load_here, &numbers[i]) == 0);
    for (int i = 0; i < 2; i++)
        want(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 2; i++) {
        want_int(close_results[i], EXTI_E_BUSY);
        iso_close_ctx(ring[i]);
    }
}

/* ---- constructors that do not return --------------------------------------------------------- */

static const char leaver_source[] =
    "void leave(void) __attribute__((weak));\n"
    "__attribute__((constructor)) static void begin(void) { leave(); }\n"
    "__attribute__((destructor)) static void end(void) { }\n";

/* Needs leaver.so, so that its own constructor never begins, nor must its destructor. */
static const char user_source[] =
    "#include <stdlib.h>\n"
    "int begun;\n"
    "__attribute__((constructor)) static void begin(void) { begun = 1; }\n"
    "__attribute__((destructor)) static void end(void) { if (!begun) abort(); }\n";

static const char opener_source[] =
    "#include <dlfcn.h>\n"
    "__attribute__((constructor)) static void begin(void) { dlopen(OPENED, RTLD_NOW); }\n";

static void build_leavers(void)
{
    iso_build(leaver_source, "libleaver.so", "-fexceptions -Wl,-soname,libleaver.so");
    iso_build(user_source, "user.so",
              iso_text("-fexceptions -Wl,--no-as-needed -L'%s' -lleaver -Wl,-rpath,'%s'", iso_tmp,
                       iso_tmp));
    iso_build(opener_source, "opener.so",
              iso_text("-fexceptions -DOPENED='\"%s\"'", in_tmp("user.so")));
    iso_build("int plain;\n", "plain.so", "");
    iso_write_text(in_tmp("source.cc"), "extern \"C\" void throw_five() { throw 5; }\n"
                                        "extern \"C\" int catch_five(void (*f)(void *), void *p)\n"
                                        "{\n"
                                        "    try { f(p); } catch (int n) { return n; }\n"
                                        "    return 0;\n"
                                        "}\n");
    want(system(iso_text("g++ -O1 -g -fPIC -shared -o '%s' '%s'", in_tmp("thrower.so"),
                         in_tmp("source.cc"))) == 0);
}

static struct exti_ctx *left_ctx;
static jmp_buf outside;
static void *thrower;

static void leave_by_exit(void)
{
    pthread_exit(NULL);
}

static void leave_by_jump(void)
{
    longjmp(outside, 1);
}

static void leave_by_exception(void)
{
    ((void (*)(void))dlsym(thrower, "throw_five"))();
}

static void load_and_leave(void *file)
{
    struct exti_module *m;

    exti_load(left_ctx, in_tmp(file), &m, NULL);
    iso_want(false, "the constructor does not return", __FILE__, __LINE__);
}

static void *load_on_thread(void *file)
{
    load_and_leave(file);
    return NULL;
}

static void load_and_exit(const char *file)
{
    pthread_t t;

    want(pthread_create(&t, NULL, load_on_thread, (void *)file) == 0);
    want(pthread_join(t, NULL) == 0);
}

static void load_and_jump(const char *file)
{
    if (!setjmp(outside))
        load_and_leave((void *)file);
}

static void load_and_catch(const char *file)
{
    int (*catch_five)(void (*)(void *), void *) =
        (int (*)(void (*)(void *), void *))dlsym(thrower, "catch_five");

    want_int(catch_five(load_and_leave, (void *)file), 5);
}

static void *close_on_thread(void *unused)
{
    struct exti_error err = {0};
    size_t left = 9;

    want_exti(exti_ctx_close_report(left_ctx, iso_print_finding, NULL, &left, &err), 0, &err);
    want_int((long)left, 0);
    return unused;
}

static void want_broken(const char *file)
{
    struct exti_module *m = NULL;
    struct exti_error err = {0};

    want_exti(exti_load(left_ctx, in_tmp(file), &m, &err), EXTI_E_LOAD, &err);
    want_text(err.message, "has not returned");
    want_text(err.file, in_tmp(""));
}

/* Whatever way a constructor is left: others are told, and the context works on and is closed. */
static void want_survived(void (*leave)(void), void (*load)(const char *file), const char *file)
{
    const struct exti_redirect redirect = {"leave", (void *)(uintptr_t)leave};
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    pthread_t t;

    alarm(120);
    opts.redirects = &redirect;
    opts.redirect_count = 1;
    left_ctx = iso_open_opts(&opts);
    iso_api(left_ctx);
    load(file);
    want_broken("libleaver.so");
    want_broken("user.so");
    iso_load(left_ctx, in_tmp("plain.so"));
    iso_prove_clean(left_ctx, 2);
    want(pthread_create(&t, NULL, close_on_thread, NULL) == 0);
    want(pthread_join(t, NULL) == 0);
    alarm(0);
}

static void want_survived_each(void (*leave)(void), void (*load)(const char *file))
{
    static const char *const files[] = {"libleaver.so", "user.so", "opener.so"};

    build_leavers();
    thrower = dlopen(in_tmp("thrower.so"), RTLD_NOW);
    want(thrower);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        want_survived(leave, load, files[i]);
}

ISO_CASE(a_constructor_may_end_its_thread)
{
    want_survived_each(leave_by_exit, load_and_exit);
}

ISO_CASE(a_constructor_may_throw_an_exception_that_is_caught)
{
    want_survived_each(leave_by_exception, load_and_catch);
}

#ifdef __GLIBC__
ISO_CASE(a_constructor_may_be_left_by_longjmp)
{
    want_survived_each(leave_by_jump, load_and_jump);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constructors_that_load_into_each_others_contexts_end),
        cmocka_unit_test(constructors_that_close_each_others_contexts_are_refused),
        cmocka_unit_test(a_constructor_may_end_its_thread),
        cmocka_unit_test(a_constructor_may_throw_an_exception_that_is_caught),
#ifdef __GLIBC__
        cmocka_unit_test(a_constructor_may_be_left_by_longjmp),
#endif
    };

    return cmocka_run_group_tests_name("isolation/initialisation", tests, NULL, NULL);
}
