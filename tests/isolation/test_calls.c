/* A context is not freed under calls that use it. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include "tests/isolation/build.h"

static sem_t began, may_end;
static struct exti_ctx *context;
static int close_result = 1;
static _Atomic int ended;

/* What constructors call in place of their undefined functions. */
static void linger(void)
{
    sem_post(&began);
    sem_wait(&may_end);
    ended = 1;
}

static void close_context(void)
{
    close_result = exti_ctx_close(context, NULL);
}

static struct exti_ctx *open_with(uint32_t flags, void (*called)(void))
{
    const struct exti_redirect redirect = {"called", (void *)(uintptr_t)called};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);

    opts.flags = flags;
    opts.redirects = &redirect;
    opts.redirect_count = 1;
    iso_build("void called(void) __attribute__((weak));\n"
              "__attribute__((constructor)) static void begin(void) { called(); }\n",
              "caller.so", "");
    sem_init(&began, 0, 0);
    sem_init(&may_end, 0, 0);
    context = iso_open_opts(&opts);
    iso_api(context);
    return context;
}

static void *load_caller(void *unused)
{
    iso_load(context, in_tmp("caller.so"));
    return unused;
}

static void *let_it_end(void *unused)
{
    usleep(100000);
    sem_post(&may_end);
    return unused;
}

ISO_CASE(closing_waits_for_calls_in_flight)
{
    struct exti_ctx *ctx = open_with(0, linger);
    struct exti_error err = {0};
    pthread_t loads, posts;

    want(pthread_create(&loads, NULL, load_caller, NULL) == 0);
    want(sem_wait(&began) == 0);
    want(pthread_create(&posts, NULL, let_it_end, NULL) == 0);
    want(!ended);
    want_exti(exti_ctx_close(ctx, &err), 0, &err);
    want(ended);
    want(pthread_join(loads, NULL) == 0 && pthread_join(posts, NULL) == 0);
}

ISO_CASE(closing_is_refused_while_calls_are_in_flight_if_asked_for)
{
    struct exti_ctx *ctx = open_with(EXTI_CTX_CLOSE_IDLE, linger);
    struct exti_error err = {0};
    size_t left = 0;
    pthread_t loads;

    want(pthread_create(&loads, NULL, load_caller, NULL) == 0);
    want(sem_wait(&began) == 0);
    want_exti(exti_ctx_close_report(ctx, NULL, NULL, &left, &err), EXTI_E_BUSY, &err);
    want_text(err.message, "1 calls of other threads");
    want_int((long)left, 2);
    sem_post(&may_end);
    want(pthread_join(loads, NULL) == 0);
    iso_prove_clean(ctx, 2);
    iso_close_ctx(ctx);
}

ISO_CASE(a_constructor_cannot_close_its_context)
{
    struct exti_ctx *ctx = open_with(0, close_context);

    load_caller(NULL);
    want_int(close_result, EXTI_E_BUSY);
    iso_close_ctx(ctx);
}

/* A constructor that begins a call while another thread waits to close the context. */
static struct exti_error refusal;

static void load_another_after_a_while(void)
{
    struct exti_module *m;

    sem_post(&began);
    usleep(100000); /* the other thread is closing by now */
    exti_load(context, toy("ext_a.so"), &m, &refusal);
}

ISO_CASE(no_call_begins_while_a_context_is_closed)
{
    struct exti_ctx *ctx = open_with(0, load_another_after_a_while);
    struct exti_error err = {0};
    pthread_t loads;

    want(pthread_create(&loads, NULL, load_caller, NULL) == 0);
    want(sem_wait(&began) == 0);
    want_exti(exti_ctx_close(ctx, &err), 0, &err);
    want(pthread_join(loads, NULL) == 0);
    want_int(refusal.code, EXTI_E_BUSY);
    want_text(refusal.message, "another thread is closing the context");
}

/* Nor does a copy's own call: the system's loader would give it the original of its sibling. */
static void note_that_it_runs(void)
{
    sem_post(&began);
    usleep(100000); /* the other thread is closing by now */
}

ISO_CASE(a_copy_gets_no_original_while_its_context_is_closed)
{
    struct exti_ctx *ctx = open_with(0, note_that_it_runs);
    struct exti_error err = {0};
    pthread_t loads;

    iso_build("int sibling;\n", "libsibling.so", "-Wl,-soname,libsibling.so");
    iso_build(
        "#include <dlfcn.h>\n"
        "#include <fcntl.h>\n"
        "#include <unistd.h>\n"
        "void called(void) __attribute__((weak));\n"
        "__attribute__((constructor)) static void begin(void)\n"
        "{\n"
        "    const char *file = SIBLING, *why;\n"
        "    called();\n"
        "    why = dlopen(file, RTLD_NOW) ? \"opened\" : dlerror();\n"
        "    for (int fd = creat(ANSWER, 0600); *why; why++) if (write(fd, why, 1) < 0) return;\n"
        "}\n",
        "caller.so",
        iso_text("-DSIBLING='\"%s\"' -DANSWER='\"%s\"'", in_tmp("libsibling.so"),
                 in_tmp("answer")));
    want(pthread_create(&loads, NULL, load_caller, NULL) == 0);
    want(sem_wait(&began) == 0);
    want_exti(exti_ctx_close(ctx, &err), 0, &err);
    want(pthread_join(loads, NULL) == 0);
    want(system(iso_text("grep -q 'another thread is closing the context' '%s'",
                         in_tmp("answer"))) == 0);
    want(!dlopen(in_tmp("libsibling.so"), RTLD_NOW | RTLD_NOLOAD));
}

/* A thread that a constructor starts while another thread waits to close the context. */
ISO_CASE(a_thread_that_is_started_while_a_context_is_closed_keeps_it_mapped)
{
    struct exti_ctx *ctx = open_with(0, note_that_it_runs);
    struct exti_error err = {0};
    pthread_t loads;
    size_t left = 0;

    iso_build("#include <pthread.h>\n"
              "#include <unistd.h>\n"
              "void called(void) __attribute__((weak));\n"
              "static void *work(void *p)\n"
              "{\n"
              "    for (int i = 0; i < 500; i++) usleep(1000);\n"
              "    return p;\n"
              "}\n"
              "__attribute__((constructor)) static void begin(void)\n"
              "{\n"
              "    pthread_t t;\n"
              "    called();\n"
              "    if (pthread_create(&t, NULL, work, NULL) == 0) pthread_detach(t);\n"
              "}\n",
              "caller.so", "-pthread");
    want(pthread_create(&loads, NULL, load_caller, NULL) == 0);
    want(sem_wait(&began) == 0);
    want_exti(exti_ctx_close_report(ctx, NULL, NULL, &left, &err), 0, &err);
    want(left > 0);
    want(pthread_join(loads, NULL) == 0);
    usleep(800000);
}

/* The threads of calls in flight do not exist in a forked child. */
ISO_CASE(a_forked_child_closes_a_context_whatever_other_threads_did)
{
    struct exti_ctx *ctx = open_with(0, linger);
    pthread_t loads;
    pid_t pid;

    want(pthread_create(&loads, NULL, load_caller, NULL) == 0);
    want(sem_wait(&began) == 0);
    pid = fork();
    if (pid == 0) {
        alarm(20);
        _exit(exti_ctx_close(ctx, NULL) != 0);
    }
    want(iso_join(pid));
    sem_post(&may_end);
    want(pthread_join(loads, NULL) == 0);
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_waits_for_calls_in_flight),
        cmocka_unit_test(closing_is_refused_while_calls_are_in_flight_if_asked_for),
        cmocka_unit_test(a_constructor_cannot_close_its_context),
        cmocka_unit_test(no_call_begins_while_a_context_is_closed),
        cmocka_unit_test(a_copy_gets_no_original_while_its_context_is_closed),
        cmocka_unit_test(a_forked_child_closes_a_context_whatever_other_threads_did),
        cmocka_unit_test(a_thread_that_is_started_while_a_context_is_closed_keeps_it_mapped),
    };

    return cmocka_run_group_tests_name("isolation/calls", tests, NULL, NULL);
}
