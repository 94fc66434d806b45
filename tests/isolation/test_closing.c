/* Closing a context while threads still use it, or after they have left keys and values in it. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "loader/track/context_keys.h"
#include "tests/isolation/build.h"
#include "tests/isolation/closing.h"

static const char *threads_toy(void)
{
    return iso_text("%s/ext_threads.so", iso_toys());
}

static const char *cxx_threads_toy(void)
{
    return iso_text("%s/ext_cxxthreads.so", iso_toys());
}

/* ---- threads that copies have started ------------------------------------------------------- */

static void want_kept_by_thread(const char *file, const char *start, const char *join)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, file);
    int (*release_fn)(void) = (int (*)(void))iso_sym(m, "threads_release");
    int (*join_fn)(void) = (int (*)(void))iso_sym(m, join);
    struct close_report t;

    want_int(call_int(m, start), 0);
    t = close_and_report(ctx);
    want_int((long)t.left, 2);
    want_int((long)t.count, 1);
    want_text(t.text, in_tmp("x/ext_"));
    want_text(t.text, "which this has started, is still running");
    want(is_mapped(in_tmp("x/")));
    /* The code is still mapped: the thread can end and be joined. */
    release_fn();
    join_fn();
}

ISO_CASE(a_running_thread_keeps_its_context_mapped)
{
    want_kept_by_thread(threads_toy(), "threads_start", "threads_join");
}

ISO_CASE(a_running_c11_thread_keeps_its_context_mapped)
{
    want_kept_by_thread(threads_toy(), "threads_start_c11", "threads_join_c11");
}

ISO_CASE(a_running_cxx_thread_keeps_its_context_mapped)
{
    want_kept_by_thread(cxx_threads_toy(), "threads_start", "threads_join");
}

ISO_CASE(a_context_whose_threads_have_ended_is_unloaded)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *c = iso_load(ctx, threads_toy()), *cxx = iso_load(ctx, cxx_threads_toy());

    for (int i = 0; i < 200; i++) {
        want_int(call_int(c, "threads_start"), 0);
        want_int(call_int(c, "threads_release"), 0);
        want_int(call_int(c, "threads_join"), 0);
    }
    want_int(call_int(c, "threads_start_c11"), 0);
    want_int(call_int(c, "threads_release"), 0);
    want_int(call_int(c, "threads_join_c11"), 7);
    want_int(call_int(cxx, "threads_start"), 0);
    want_int(call_int(cxx, "threads_release"), 0);
    want_int(call_int(cxx, "threads_join"), 0);
    want_int(call_int(cxx, "threads_ended"), 1);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

/* As torch's engine: threads that are detached, and that a destructor tells to end, which is not in
 * the library that has started them.  `ends`: what the destructor does besides. */
static struct exti_ctx *open_engine(const char *file, const char *ends)
{
    struct exti_ctx *ctx = iso_open("x");

    iso_build("#include <pthread.h>\n"
              "#include <semaphore.h>\n"
              "sem_t engine_end;\n"
              "static void *work(void *p) { while (sem_wait(&engine_end)) ; return p; }\n"
              "int engine_start(void)\n"
              "{ pthread_t t; if (pthread_create(&t, 0, work, 0)) return -1; return "
              "pthread_detach(t); }\n",
              file, iso_text("-pthread -Wl,-soname,%s", file));
    iso_build("#include <fcntl.h>\n"
              "#include <semaphore.h>\n"
              "#include <stdlib.h>\n"
              "#include <unistd.h>\n"
              "extern sem_t engine_end;\n"
              "int engine_start(void);\n"
              "static void stop(void) { close(creat(STOPPED, 0600)); ENDS; }\n"
              "int start(void) { return atexit(stop) ? -1 : engine_start(); }\n",
              "engine.so",
              iso_text("'%s' -Wl,-rpath,'%s' -DSTOPPED='\"%s\"' -DENDS='%s'", in_tmp(file), iso_tmp,
                       in_tmp("stopped"), ends));
    want_int(call_int(iso_load(ctx, in_tmp("engine.so")), "start"), 0);
    return ctx;
}

ISO_CASE(threads_that_destructors_stop_do_not_keep_a_context_mapped)
{
    struct exti_ctx *ctx = open_engine("libtorch_cpu.so.2", "sem_post(&engine_end)");

    close_and_want_unloaded(ctx, in_tmp("x/"));
    want(access(in_tmp("stopped"), F_OK) == 0);
}

/* Whose destructors nothing is known of run when the process exits. */
ISO_CASE(destructors_do_not_run_beside_other_threads)
{
    struct exti_ctx *ctx = open_engine("libengine.so.2", "sem_post(&engine_end)");
    struct close_report t = close_and_report(ctx);

    want_int((long)t.count, 1);
    want_text(t.text, in_tmp("x/libengine."));
    want(access(in_tmp("stopped"), F_OK) != 0);
}

ISO_CASE(a_thread_of_another_library_keeps_destructors_from_running)
{
    struct exti_ctx *ctx = open_engine("libtorch_cpu.so.2", "sem_post(&engine_end)");
    struct exti_module *m = iso_load(ctx, threads_toy());
    int (*release_fn)(void) = (int (*)(void))iso_sym(m, "threads_release");
    int (*join_fn)(void) = (int (*)(void))iso_sym(m, "threads_join");
    struct close_report t;

    want_int(call_int(m, "threads_start"), 0);
    t = close_and_report(ctx);
    want_int((long)t.count, 2);
    want(access(in_tmp("stopped"), F_OK) != 0);
    release_fn();
    join_fn();
}

static struct exti_module *load_starter(struct exti_ctx *ctx)
{
    iso_build("#include <pthread.h>\n"
              "#include <semaphore.h>\n"
              "static sem_t end;\n"
              "static pthread_t thread;\n"
              "static void *wait(void *p) { while (sem_wait(&end)) ; return p; }\n"
              "__attribute__((constructor)) static void start(void)\n"
              "{ sem_init(&end, 0, 0); pthread_create(&thread, 0, wait, 0); }\n"
              "int release(void) { sem_post(&end); return pthread_join(thread, 0); }\n",
              "starter.so", "-pthread");
    return iso_load(ctx, in_tmp("starter.so"));
}

ISO_CASE(a_running_thread_of_a_constructor_keeps_its_context_mapped)
{
    struct exti_ctx *ctx;
    int (*release_fn)(void);
    struct visitor v;
    struct close_report t;

    ctx = iso_open("x");
    release_fn = (int (*)(void))iso_sym(load_starter(ctx), "release");
    want_int(call_int(iso_load(ctx, threads_toy()), "threads_make_key"), 0);
    /* A thread of the program does not count as one of the constructor. */
    visit(&v, iso_load(ctx, threads_toy()), "threads_set_value");
    t = close_and_report(ctx);
    want_int((long)t.left, 3);
    want_int((long)t.count, 1);
    want_text(t.text, in_tmp("x/starter."));
    want_text(t.text, "which this has started, is still running");
    want_int(release_fn(), 0);
    end_visit(&v);
}

ISO_CASE(a_context_whose_constructors_threads_have_ended_is_unloaded)
{
    struct exti_ctx *ctx = iso_open("x");

    want_int(call_int(load_starter(ctx), "release"), 0);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

ISO_CASE(closing_a_kept_context_reports_nothing)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_ctx *ctx;
    struct close_report t;

    opts.flags = EXTI_CTX_KEEP;
    ctx = iso_open_opts(&opts);
    iso_load(ctx, threads_toy());
    t = close_and_report(ctx);
    want_int((long)t.left, 2);
    want_int((long)t.count, 0);
    want(is_mapped(in_tmp("x/")));
}

/* A failed start must not leave a record of a thread, which would keep the context mapped. */
ISO_CASE(a_thread_that_failed_to_start_does_not_keep_its_context_mapped)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, threads_toy());
    int (*start)(void) = (int (*)(void))iso_sym(m, "threads_start");
    int (*start_c11)(void) = (int (*)(void))iso_sym(m, "threads_start_c11");

    for (long n = 0; n < 2; n++) {
        exti__mem_fail_after(n);
        want_int(start(), EAGAIN);
        exti__mem_fail_after(n);
        want(start_c11() != 0);
    }
    exti__mem_fail_after(-1);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void want_left_key_deleted(const char *make, const char *set)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, threads_toy());
    struct visitor v;

    want_int(call_int(m, make), 0);
    visit(&v, m, set);
    close_and_want_unloaded(ctx, in_tmp("x/"));
    end_visit(&v);
    want_int(v.value, 0); /* the key's destructor has not run */
}

ISO_CASE(closing_deletes_a_left_over_key)
{
    want_left_key_deleted("threads_make_key", "threads_set_value");
}

ISO_CASE(closing_deletes_a_left_over_c11_key)
{
    want_left_key_deleted("threads_make_key_c11", "threads_set_value_c11");
}

/* The control: the key is not deleted, and the thread's end calls a destructor that is unmapped. */
static void close_without_deleting_keys(void *arg)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, threads_toy());
    struct visitor v;

    (void)arg;
    want_int(call_int(m, "threads_make_key_c11"), 0);
    visit(&v, m, "threads_set_value_c11");
    exti__ctx_keys_forget(ctx);
    close_and_want_unloaded(ctx, in_tmp("x/"));
    end_visit(&v);
}

ISO_CASE(control_a_key_that_outlives_its_code_crashes_a_thread)
{
    int status;
    pid_t pid = iso_spawn(close_without_deleting_keys, NULL);

    want(waitpid(pid, &status, 0) == pid);
    want(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 99));
}

/* The number that the next key of the context has. */
static pthread_key_t next_key(const struct exti_ctx *ctx)
{
    pthread_key_t key;

    want_int(exti__ctx_key_create(ctx, &key, NULL), 0);
    want_int(exti__ctx_key_delete(key), 0);
    return key;
}

/* It deletes the keys that constructors made too, and no key of the program or of another
 * context. */
ISO_CASE(closing_deletes_only_the_keys_of_the_context)
{
    struct exti_ctx *other = iso_open("y");
    pthread_key_t others, before;

    want_int(exti__ctx_key_create(other, &others, NULL), 0);
    want_int(exti__ctx_key_set(others, &others), 0);
    before = next_key(other);
    for (int i = 0; i < 10; i++) {
        struct exti_ctx *ctx = iso_open("x");
        struct exti_module *m = iso_load(ctx, threads_toy());
        pthread_key_t key;

        want_int(call_int(m, "threads_make_key"), 0);
        want_int(call_int(m, "threads_make_key_c11"), 0);
        want(next_key(other) == before + 3);
        want_int(pthread_key_create(&key, NULL), 0);
        want_int(pthread_setspecific(key, &key), 0);
        close_and_want_unloaded(ctx, in_tmp("x/"));
        want(pthread_getspecific(key) == &key);
        want_int(pthread_key_delete(key), 0);
        want(exti__ctx_key_get(others) == &others);
        want(next_key(other) == before);
    }
    iso_close_ctx(other);
}

/* ---- threads of the program in a context ---------------------------------------------------- */

static void want_kept_by_value(const char *make, const char *set, const char *gone)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, threads_toy());
    struct visitor left, stays;
    struct close_report t;
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, set);

    want_int(call_int(m, make), 0);
    visit(&left, m, set);
    end_visit(&left);
    set_fn(&left.value); /* the thread that deletes the key may have a value */
    visit(&stays, m, set);
    want_int(call_int(m, gone), 0);
    t = close_and_report(ctx);
    want_int((long)t.left, 2);
    want_int((long)t.count, 1);
    want_text(t.text, "of the program is still in it");
    want_text(t.text, in_tmp("x/libtoy"));
    end_visit(&stays);
}

ISO_CASE(a_thread_with_a_value_keeps_the_context_mapped)
{
    want_kept_by_value("threads_make_key", "threads_set_value", "threads_delete_key");
}

ISO_CASE(a_thread_with_a_value_of_a_c11_key_keeps_the_context_mapped)
{
    want_kept_by_value("threads_make_key_c11", "threads_set_value_c11", "threads_delete_key_c11");
}

ISO_CASE(a_context_whose_values_are_cleared_is_unloaded)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, threads_toy());
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, "threads_set_value");
    struct visitor v;

    want_int(call_int(m, "threads_make_key"), 0);
    visit(&v, m, "threads_set_value");
    end_visit(&v); /* it ends with a value, which its end removes */
    want_int(v.value, 1);
    want_int(set_fn(&v.value), 0);
    want_int(set_fn(NULL), 0);
    want_int(call_int(m, "threads_delete_key"), 0);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

ISO_CASE(setting_a_value_without_memory_to_record_it_fails)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, threads_toy());
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, "threads_set_value");
    int (*set_c11)(int *) = (int (*)(int *))iso_sym(m, "threads_set_value_c11"), value;

    want_int(call_int(m, "threads_make_key"), 0);
    want_int(call_int(m, "threads_make_key_c11"), 0);
    exti__mem_fail_after(0);
    want_int(set_fn(&value), ENOMEM);
    exti__mem_fail_after(0);
    want(set_c11(&value) != 0);
    exti__mem_fail_after(-1);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

/* ---- why a file stays mapped ---------------------------------------------------------------- */

ISO_CASE(closing_reports_thread_local_objects)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, cxx_threads_toy());
    struct close_report t;
    struct visitor v;

    visit(&v, m, "threads_visit");
    t = close_and_report(ctx);
    want_int((long)t.left, 2);
    want_int((long)t.count, 2);
    want_text(t.text, "ext_cxxthreads");
    want_text(t.text, "a living thread has C++ thread-local objects");
    want_text(t.text, "libtoy");
    want_text(t.text, "is still mapped: ext_cxxthreads");
    end_visit(&v);
    want(!is_mapped(in_tmp("x/")));
}

ISO_CASE(closing_reports_an_open_handle)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, threads_toy());
    void *handle = dlopen(exti_module_copy(m), RTLD_NOW);
    struct close_report t;

    want(handle);
    t = close_and_report(ctx);
    want_int((long)t.left, 2);
    want_text(t.text, "is still mapped: a handle of it is open");
    want_text(t.text, "needs it");
    dlclose(handle);
    want(!is_mapped(in_tmp("x/")));
}

static int stop_at_once(void *user, const struct exti_error *finding)
{
    (void)finding;
    ++*(int *)user;
    return 1;
}

ISO_CASE(a_nonzero_return_ends_the_report)
{
    struct exti_ctx *ctx = iso_open("x");
    void *handle = dlopen(exti_module_copy(iso_load(ctx, threads_toy())), RTLD_NOW);
    struct exti_error err = {0};
    size_t left;
    int heard = 0;

    want_exti(exti_ctx_close_report(ctx, stop_at_once, &heard, &left, &err), 0, &err);
    want_int(heard, 1);
    want_int((long)left, 2);
    want_exti(exti_ctx_close_report(NULL, NULL, NULL, &left, &err), 0, &err);
    want_int((long)left, 0);
    dlclose(handle);
}

/* ---- fork ----------------------------------------------------------------------------------- */

static _Atomic int stop;

static void *set_and_start(void *arg)
{
    struct exti_module *m = arg;
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, "threads_set_value");
    int value;

    while (!stop) {
        set_fn(&value);
        set_fn(NULL);
    }
    return NULL;
}

ISO_CASE(a_forked_child_can_use_keys_and_close_its_context)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, threads_toy());
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, "threads_set_value"), value;
    const char *rounds = getenv("EXTI_ROUNDS");
    const int children = rounds ? atoi(rounds) : 100;
    pthread_t thread;

    want_int(call_int(m, "threads_make_key"), 0);
    want_int(pthread_create(&thread, NULL, set_and_start, m), 0);
    want(children > 0);
    for (int i = 0; i < children; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            alarm(60);
            want_int(set_fn(&value), 0);
            want_int(call_int(m, "threads_delete_key"), 0);
            close_and_want_unloaded(ctx, in_tmp("x/"));
            _exit(0);
        }
        want(iso_join(pid));
    }
    stop = 1;
    pthread_join(thread, NULL);
    close_and_want_unloaded(ctx, in_tmp("x/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_thread_keeps_its_context_mapped),
        cmocka_unit_test(a_running_c11_thread_keeps_its_context_mapped),
        cmocka_unit_test(a_running_cxx_thread_keeps_its_context_mapped),
        cmocka_unit_test(threads_that_destructors_stop_do_not_keep_a_context_mapped),
        cmocka_unit_test(destructors_do_not_run_beside_other_threads),
        cmocka_unit_test(a_thread_of_another_library_keeps_destructors_from_running),
        cmocka_unit_test(a_context_whose_threads_have_ended_is_unloaded),
        cmocka_unit_test(a_running_thread_of_a_constructor_keeps_its_context_mapped),
        cmocka_unit_test(a_context_whose_constructors_threads_have_ended_is_unloaded),
        cmocka_unit_test(closing_a_kept_context_reports_nothing),
        cmocka_unit_test(a_thread_that_failed_to_start_does_not_keep_its_context_mapped),
        cmocka_unit_test(closing_deletes_a_left_over_key),
        cmocka_unit_test(closing_deletes_a_left_over_c11_key),
        cmocka_unit_test(control_a_key_that_outlives_its_code_crashes_a_thread),
        cmocka_unit_test(closing_deletes_only_the_keys_of_the_context),
        cmocka_unit_test(a_thread_with_a_value_keeps_the_context_mapped),
        cmocka_unit_test(a_thread_with_a_value_of_a_c11_key_keeps_the_context_mapped),
        cmocka_unit_test(a_context_whose_values_are_cleared_is_unloaded),
        cmocka_unit_test(setting_a_value_without_memory_to_record_it_fails),
        cmocka_unit_test(closing_reports_thread_local_objects),
        cmocka_unit_test(closing_reports_an_open_handle),
        cmocka_unit_test(a_nonzero_return_ends_the_report),
        cmocka_unit_test(a_forked_child_can_use_keys_and_close_its_context),
    };

    return cmocka_run_group_tests_name("isolation/closing", tests, NULL, NULL);
}
