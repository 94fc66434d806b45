/* Closing contexts that threads still use, or have left things in. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "loader/track/context_keys.h"
#include "tests/isolation/build.h"

static const char *guests(void)
{
    return iso_text("%s/ext_guests.so", iso_toys());
}

static const char *cxx_guests(void)
{
    return iso_text("%s/ext_cxxguests.so", iso_toys());
}

/* Whether a file in the folder is mapped, by the kernel's account. */
static int is_mapped(const char *dir)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 128];
    int found = 0;

    want(f);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, dir) != NULL;
    fclose(f);
    return found;
}

/* ---- closing, and what is told ---------------------------------------------------------------- */

struct told {
    size_t left, count;
    char text[4096]; /* "FILE: MESSAGE" lines */
};

static int note(void *user, const struct exti_error *finding)
{
    struct told *t = user;
    size_t n = strlen(t->text);

    want_int(finding->code, EXTI_E_BUSY);
    t->count++;
    snprintf(t->text + n, sizeof t->text - n, "%s: %s\n", finding->file, finding->message);
    return 0;
}

static struct told close_told(struct exti_ctx *ctx)
{
    struct told t = {.left = 99};
    struct exti_error err = {0};

    want_exti(exti_ctx_close_report(ctx, note, &t, &t.left, &err), 0, &err);
    return t;
}

static void close_whole(struct exti_ctx *ctx, const char *dir)
{
    struct told t = close_told(ctx);

    if (t.count || t.left)
        fprintf(stderr, "left %zu:\n%s", t.left, t.text);
    want_int((long)t.count, 0);
    want_int((long)t.left, 0);
    want(!is_mapped(dir));
}

/* ---- threads of the program ------------------------------------------------------------------- */

/* Runs one function and lives until it is told to end. */
struct visitor {
    pthread_t thread;
    int (*run)(int *);
    int value, result;
    sem_t has_run, end;
};

static void *be_visitor(void *arg)
{
    struct visitor *v = arg;

    v->result = v->run(&v->value);
    sem_post(&v->has_run);
    sem_wait(&v->end);
    return NULL;
}

static void visit(struct visitor *v, struct exti_module *m, const char *function)
{
    *v = (struct visitor){.run = (int (*)(int *))iso_sym(m, function)};
    sem_init(&v->has_run, 0, 0);
    sem_init(&v->end, 0, 0);
    want_int(pthread_create(&v->thread, NULL, be_visitor, v), 0);
    sem_wait(&v->has_run);
    want_int(v->result, 0);
}

static void end_visit(struct visitor *v)
{
    sem_post(&v->end);
    pthread_join(v->thread, NULL);
}

/* ---- threads that copies have started --------------------------------------------------------- */

static void living_thread(const char *file, const char *start, const char *join)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, file);
    int (*release_fn)(void) = (int (*)(void))iso_sym(m, "guests_release");
    int (*join_fn)(void) = (int (*)(void))iso_sym(m, join);
    struct told t;

    want_int(call_int(m, start), 0);
    t = close_told(ctx);
    want_int((long)t.left, 2);
    want_int((long)t.count, 1);
    want_text(t.text, in_tmp("x/ext_"));
    want_text(t.text, "which this has started, is still running");
    want(is_mapped(in_tmp("x/")));
    /* The code is there for what is left to do. */
    release_fn();
    join_fn();
}

ISO_CASE(a_context_whose_thread_lives_stays_mapped)
{
    living_thread(guests(), "guests_start", "guests_join");
}

ISO_CASE(a_context_whose_c11_thread_lives_stays_mapped)
{
    living_thread(guests(), "guests_start_c11", "guests_join_c11");
}

ISO_CASE(a_context_whose_cxx_thread_lives_stays_mapped)
{
    living_thread(cxx_guests(), "guests_start", "guests_join");
}

ISO_CASE(threads_that_have_ended_do_not_matter)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *c = iso_load(ctx, guests()), *cxx = iso_load(ctx, cxx_guests());

    for (int i = 0; i < 200; i++) {
        want_int(call_int(c, "guests_start"), 0);
        want_int(call_int(c, "guests_release"), 0);
        want_int(call_int(c, "guests_join"), 0);
    }
    want_int(call_int(c, "guests_start_c11"), 0);
    want_int(call_int(c, "guests_release"), 0);
    want_int(call_int(c, "guests_join_c11"), 7);
    want_int(call_int(cxx, "guests_start"), 0);
    want_int(call_int(cxx, "guests_release"), 0);
    want_int(call_int(cxx, "guests_join"), 0);
    want_int(call_int(cxx, "guests_ended"), 1);
    close_whole(ctx, in_tmp("x/"));
}

/* A sanitizer and other C libraries start threads by functions of their own, which tell nothing. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SEES_STARTS 1
#else
#define SEES_STARTS 0
#endif

#if SEES_STARTS
/* Under valgrind a thread's stack is not the one that the kernel knows of. */
static bool kernel_knows_the_stack(void)
{
    FILE *f = fopen("/proc/thread-self/syscall", "r");
    uintptr_t top = 0;

    want(f && fscanf(f, "%*s %*s %*s %*s %*s %*s %*s %" SCNxPTR, &top) == 1);
    fclose(f);
    return (uintptr_t)&top - top < 65536;
}

/* Waits until all threads but this one sleep. */
static void wait_for_sleepers(void)
{
    int awake = 1;

    while (awake) {
        DIR *d = opendir("/proc/self/task");
        const struct dirent *e;

        want(d);
        awake = 0;
        while ((e = readdir(d))) {
            char path[300], state = 'S';
            FILE *f;

            snprintf(path, sizeof path, "/proc/self/task/%s/stat", e->d_name);
            f = atoi(e->d_name) && atoi(e->d_name) != getpid() ? fopen(path, "r") : NULL;
            if (f) {
                want(fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
                fclose(f);
            }
            awake = awake || state != 'S';
        }
        closedir(d);
    }
}
#endif

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

ISO_CASE(a_context_whose_initialiser_has_started_a_thread_stays_mapped)
{
#if !SEES_STARTS
    fprintf(stderr, "threads start with the C library's or the sanitizer's function here\n");
#else
    struct exti_ctx *ctx;
    int (*release_fn)(void);
    struct visitor v;
    struct told t;

    if (!kernel_knows_the_stack()) {
        fprintf(stderr, "where threads' stacks are is not seen here: an emulator runs them\n");
        return;
    }
    ctx = iso_open("x");
    release_fn = (int (*)(void))iso_sym(load_starter(ctx), "release");
    want_int(call_int(iso_load(ctx, guests()), "guests_key"), 0);
    visit(&v, iso_load(ctx, guests()), "guests_value"); /* a thread of the program is none */
    wait_for_sleepers();
    t = close_told(ctx);
    want_int((long)t.left, 3);
    want_int((long)t.count, 1);
    want_text(t.text, in_tmp("x/starter."));
    want_text(t.text, "which this has started, is still running");
    want_int(release_fn(), 0);
    end_visit(&v);
#endif
}

/* Nothing can be looked up then, so any thread may be one. */
ISO_CASE(a_context_is_kept_if_its_threads_cannot_be_told)
{
#if !SEES_STARTS
    fprintf(stderr, "threads start with the C library's or the sanitizer's function here\n");
#else
    struct rlimit limit, none;
    struct exti_ctx *ctx;
    int (*release_fn)(void);
    struct told t;

    if (!kernel_knows_the_stack()) {
        fprintf(stderr, "an emulator runs this, which does not keep to such limits\n");
        return;
    }
    ctx = iso_open("x");
    release_fn = (int (*)(void))iso_sym(load_starter(ctx), "release");
    want(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    none = (struct rlimit){0, limit.rlim_max};
    want(setrlimit(RLIMIT_NOFILE, &none) == 0);
    t = close_told(ctx);
    want(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    want(t.left > 0);
    want_int((long)t.count, 1);
    want_text(t.text, "still runs: Too many open files");
    want_int(release_fn(), 0);
#endif
}

ISO_CASE(a_context_whose_initialisers_threads_have_ended_is_unloaded)
{
    struct exti_ctx *ctx = iso_open("x");

    want_int(call_int(load_starter(ctx), "release"), 0);
    close_whole(ctx, in_tmp("x/"));
}

ISO_CASE(a_kept_context_tells_nothing)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_ctx *ctx;
    struct told t;

    opts.flags = EXTI_CTX_KEEP;
    ctx = iso_open_opts(&opts);
    iso_load(ctx, guests());
    t = close_told(ctx);
    want_int((long)t.left, 2);
    want_int((long)t.count, 0);
    want(is_mapped(in_tmp("x/")));
}

/* A start that fails leaves nothing behind that would hold the context. */
ISO_CASE(a_thread_that_does_not_start_does_not_matter)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, guests());
    int (*start)(void) = (int (*)(void))iso_sym(m, "guests_start");
    int (*start_c11)(void) = (int (*)(void))iso_sym(m, "guests_start_c11");

    for (long n = 0; n < 2; n++) {
        exti__mem_fail_after(n);
        want_int(start(), EAGAIN);
        exti__mem_fail_after(n);
        want(start_c11() != 0);
    }
    exti__mem_fail_after(-1);
    close_whole(ctx, in_tmp("x/"));
}

/* ---- keys --------------------------------------------------------------------------------------- */

static void left_key(const char *make, const char *set)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, guests());
    struct visitor v;

    want_int(call_int(m, make), 0);
    visit(&v, m, set);
    close_whole(ctx, in_tmp("x/"));
    end_visit(&v);
    want_int(v.value, 0); /* its destructor has not run */
}

ISO_CASE(a_key_that_is_left_over_does_not_outlive_its_code)
{
    left_key("guests_key", "guests_value");
}

ISO_CASE(a_c11_key_that_is_left_over_does_not_outlive_its_code)
{
    left_key("guests_key_c11", "guests_value_c11");
}

/* The control: the end of the thread runs the key's destructor where that was. */
static void forget_key(void *arg)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, guests());
    struct visitor v;

    (void)arg;
    want_int(call_int(m, "guests_key_c11"), 0);
    visit(&v, m, "guests_value_c11");
    exti__ctx_keys_forget(ctx);
    close_whole(ctx, in_tmp("x/"));
    end_visit(&v);
}

ISO_CASE(without_that_the_end_of_a_thread_crashes)
{
    int status;
    pid_t pid = iso_spawn(forget_key, NULL);

    want(waitpid(pid, &status, 0) == pid);
    want(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 99));
}

/* How many keys can be had. */
static int free_keys(void)
{
    pthread_key_t keys[PTHREAD_KEYS_MAX];
    int n = 0;

    while (n < PTHREAD_KEYS_MAX && !pthread_key_create(&keys[n], NULL))
        n++;
    for (int i = 0; i < n; i++)
        pthread_key_delete(keys[i]);
    return n;
}

/* Those of initialisers too, and none of another. */
ISO_CASE(closing_gives_back_the_keys_of_the_context_alone)
{
    int before = free_keys();

    for (int i = 0; i < 10; i++) {
        struct exti_ctx *ctx = iso_open("x");
        struct exti_module *m = iso_load(ctx, guests());
        pthread_key_t key;

        want_int(call_int(m, "guests_key"), 0);
        want_int(call_int(m, "guests_key_c11"), 0);
        want_int(pthread_key_create(&key, NULL), 0);
        want_int(pthread_setspecific(key, &key), 0);
        close_whole(ctx, in_tmp("x/"));
        want(pthread_getspecific(key) == &key);
        want_int(pthread_key_delete(key), 0);
        want_int(free_keys(), before);
    }
}

/* ---- threads of the program in a context -------------------------------------------------------- */

static void inside(const char *make, const char *set, const char *gone)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, guests());
    struct visitor left, stays;
    struct told t;
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, set);

    want_int(call_int(m, make), 0);
    visit(&left, m, set);
    end_visit(&left);
    set_fn(&left.value); /* the thread that deletes the key may have it */
    visit(&stays, m, set);
    want_int(call_int(m, gone), 0);
    t = close_told(ctx);
    want_int((long)t.left, 2);
    want_int((long)t.count, 1);
    want_text(t.text, "of the program is still in it");
    want_text(t.text, in_tmp("x/libtoy"));
    end_visit(&stays);
}

ISO_CASE(a_context_that_a_thread_is_in_stays_mapped)
{
    inside("guests_key", "guests_value", "guests_key_gone");
}

ISO_CASE(a_context_that_a_thread_is_in_by_a_c11_key_stays_mapped)
{
    inside("guests_key_c11", "guests_value_c11", "guests_key_gone_c11");
}

ISO_CASE(a_context_that_a_thread_has_left_is_unloaded)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, guests());
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, "guests_value");
    struct visitor v;

    want_int(call_int(m, "guests_key"), 0);
    visit(&v, m, "guests_value");
    end_visit(&v); /* ended with the value: its end took it away */
    want_int(v.value, 1);
    want_int(set_fn(&v.value), 0);
    want_int(set_fn(NULL), 0);
    want_int(call_int(m, "guests_key_gone"), 0);
    close_whole(ctx, in_tmp("x/"));
}

ISO_CASE(a_value_without_memory_to_note_it_is_refused)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, guests());
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, "guests_value");
    int (*set_c11)(int *) = (int (*)(int *))iso_sym(m, "guests_value_c11"), value;

    want_int(call_int(m, "guests_key"), 0);
    want_int(call_int(m, "guests_key_c11"), 0);
    exti__mem_fail_after(0);
    want_int(set_fn(&value), ENOMEM);
    exti__mem_fail_after(0);
    want(set_c11(&value) != 0);
    exti__mem_fail_after(-1);
    close_whole(ctx, in_tmp("x/"));
}

/* ---- what holds a file ---------------------------------------------------------------------------- */

ISO_CASE(a_file_with_thread_local_objects_is_told)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, cxx_guests());
    struct told t;

    want_int(call_int(m, "guests_object"), 2);
    t = close_told(ctx);
    want_int((long)t.left, 2);
    want_int((long)t.count, 2);
    want_text(t.text, "ext_cxxguests");
    want_text(t.text, "a living thread has C++ thread-local objects");
    want_text(t.text, "libtoy");
    want_text(t.text, "is still mapped: ext_cxxguests");
}

ISO_CASE(an_open_handle_is_told)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, guests());
    void *handle = dlopen(exti_module_copy(m), RTLD_NOW);
    struct told t;

    want(handle);
    t = close_told(ctx);
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

ISO_CASE(a_report_that_has_heard_enough_hears_no_more)
{
    struct exti_ctx *ctx = iso_open("x");
    void *handle = dlopen(exti_module_copy(iso_load(ctx, guests())), RTLD_NOW);
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

/* ---- fork --------------------------------------------------------------------------------------- */

static _Atomic int stop;

static void *set_and_start(void *arg)
{
    struct exti_module *m = arg;
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, "guests_value");
    int value;

    while (!stop) {
        set_fn(&value);
        set_fn(NULL);
    }
    return NULL;
}

ISO_CASE(a_forked_child_goes_on_with_keys_and_has_no_other_thread)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, guests());
    int (*set_fn)(int *) = (int (*)(int *))iso_sym(m, "guests_value"), value;
    const char *rounds = getenv("EXTI_ROUNDS");
    const int children = rounds ? atoi(rounds) : 100;
    pthread_t thread;

    want_int(call_int(m, "guests_key"), 0);
    want_int(pthread_create(&thread, NULL, set_and_start, m), 0);
    want(children > 0);
    for (int i = 0; i < children; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            alarm(60);
            want_int(set_fn(&value), 0);
            want_int(call_int(m, "guests_key_gone"), 0);
            close_whole(ctx, in_tmp("x/"));
            _exit(0);
        }
        want(iso_join(pid));
    }
    stop = 1;
    pthread_join(thread, NULL);
    close_whole(ctx, in_tmp("x/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_whose_thread_lives_stays_mapped),
        cmocka_unit_test(a_context_whose_c11_thread_lives_stays_mapped),
        cmocka_unit_test(a_context_whose_cxx_thread_lives_stays_mapped),
        cmocka_unit_test(threads_that_have_ended_do_not_matter),
        cmocka_unit_test(a_context_whose_initialiser_has_started_a_thread_stays_mapped),
        cmocka_unit_test(a_context_is_kept_if_its_threads_cannot_be_told),
        cmocka_unit_test(a_context_whose_initialisers_threads_have_ended_is_unloaded),
        cmocka_unit_test(a_kept_context_tells_nothing),
        cmocka_unit_test(a_thread_that_does_not_start_does_not_matter),
        cmocka_unit_test(a_key_that_is_left_over_does_not_outlive_its_code),
        cmocka_unit_test(a_c11_key_that_is_left_over_does_not_outlive_its_code),
        cmocka_unit_test(without_that_the_end_of_a_thread_crashes),
        cmocka_unit_test(closing_gives_back_the_keys_of_the_context_alone),
        cmocka_unit_test(a_context_that_a_thread_is_in_stays_mapped),
        cmocka_unit_test(a_context_that_a_thread_is_in_by_a_c11_key_stays_mapped),
        cmocka_unit_test(a_context_that_a_thread_has_left_is_unloaded),
        cmocka_unit_test(a_value_without_memory_to_note_it_is_refused),
        cmocka_unit_test(a_file_with_thread_local_objects_is_told),
        cmocka_unit_test(an_open_handle_is_told),
        cmocka_unit_test(a_report_that_has_heard_enough_hears_no_more),
        cmocka_unit_test(a_forked_child_goes_on_with_keys_and_has_no_other_thread),
    };

    return cmocka_run_group_tests_name("isolation/closing", tests, NULL, NULL);
}
