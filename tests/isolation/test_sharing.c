/* Many threads, processes and contexts use one directory or context at once. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>

#include "tests/isolation/build.h"
#include "tests/isolation/pair.h"

enum { MANY = 8 };

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    struct exti_ctx *ctx; /* a shared one, or NULL to open one for each round */
    int number, rounds;
    struct exti_module *module;
    void *count;
};

/* Loads all extensions.  Each thread begins with another one. */
static void load_some(struct worker *w, struct exti_ctx *ctx)
{
    static const char *const files[] = {"ext_a.so", "ext_b.so", "ext_dl.so", "ext_cxx.so"};

    for (int i = 0; i < 4; i++) {
        struct exti_module *m = iso_load(ctx, toy(files[(i + w->number) % 4]));

        if ((i + w->number) % 4 == 0) {
            w->module = m;
            w->count = call_ptr(m, "ext_count");
        }
    }
    want(w->count == iso_sym(iso_api(ctx), "toy_count"));
}

static void *work(void *arg)
{
    struct worker *w = arg;

    pthread_barrier_wait(w->start);
    for (int round = 0; round < w->rounds; round++) {
        struct exti_ctx *ctx = w->ctx ? w->ctx : iso_open(NULL);

        load_some(w, ctx);
        if (w->ctx)
            want(exti_close(w->module, NULL) == 0);
        else
            iso_close_ctx(ctx);
    }
    return NULL;
}

static void run_workers(struct worker *all, struct exti_ctx *shared, int rounds)
{
    pthread_barrier_t start;

    toy("");
    want(pthread_barrier_init(&start, NULL, MANY) == 0);
    for (int i = 0; i < MANY; i++) {
        all[i] = (struct worker){.start = &start, .ctx = shared, .number = i, .rounds = rounds};
        want(pthread_create(&all[i].thread, NULL, work, &all[i]) == 0);
    }
    for (int i = 0; i < MANY; i++)
        want(pthread_join(all[i].thread, NULL) == 0);
    pthread_barrier_destroy(&start);
}

ISO_CASE(threads_load_into_one_context)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m = iso_load(ctx, toy("ext_a.so"));
    struct worker all[MANY];

    run_workers(all, ctx, 3);
    for (int i = 0; i < MANY; i++) {
        want(all[i].module == m);
        want(all[i].count == all[0].count);
    }
    iso_prove_clean(ctx, 5);
    iso_close_ctx(ctx);
    iso_dir_clean(in_tmp("x"));
}

/* Each round opens the file, and closes it with its last reference. */
static void *load_and_close(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < 100; i++) {
        struct exti_module *m = iso_load(w->ctx, toy("ext_a.so"));

        want(call_ptr(m, "ext_count") == w->count);
        want(exti_close(m, NULL) == 0);
    }
    return NULL;
}

/* Calls from the file find its context while other threads load and close the file. */
static void *load_and_call(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < 30; i++) {
        struct exti_module *m = iso_load(w->ctx, toy("ext_dl.so"));
        void *(*open)(const char *, int) = (void *(*)(const char *, int))iso_sym(m, "dl_open");
        int (*close)(void *) = (int (*)(void *))iso_sym(m, "dl_close");
        void *handle = open(toy("ext_a.so"), RTLD_NOW);

        want(handle && close(handle) == 0);
        want(exti_close(m, NULL) == 0);
    }
    return NULL;
}

ISO_CASE(threads_call_from_a_file_that_others_load)
{
    struct exti_ctx *ctx = iso_open("x");
    struct worker all[4];

    iso_api(ctx);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        all[i] = (struct worker){.ctx = ctx};
        want(pthread_create(&all[i].thread, NULL, load_and_call, &all[i]) == 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        want(pthread_join(all[i].thread, NULL) == 0);
    iso_close_ctx(ctx);
}

ISO_CASE_EACH(threads_load_and_close_one_file)
{
    struct exti_ctx *ctx = iso_open("x");
    struct worker all[MANY];

    for (int i = 0; i < MANY; i++) {
        all[i] = (struct worker){.ctx = ctx, .count = iso_sym(iso_api(ctx), "toy_count")};
        want(pthread_create(&all[i].thread, NULL, load_and_close, &all[i]) == 0);
    }
    for (int i = 0; i < MANY; i++)
        want(pthread_join(all[i].thread, NULL) == 0);
    iso_prove_clean(ctx, 1);
    iso_close_ctx(ctx);
}

ISO_CASE(threads_load_into_contexts_of_their_own)
{
    struct worker all[MANY];

    run_workers(all, NULL, 5);
}

static void *copy_all(void *arg)
{
    struct worker *w = arg;
    struct exti_ctx *ctx = iso_open("x");
    struct exti_error err = {0};

    for (int i = 0; i < 4; i++) {
        const char *const files[] = {"ext_a.so", "ext_b.so", "ext_dl.so", "ext_cxx.so"};
        const char *path = NULL;

        want_exti(exti_copy(ctx, toy(files[(i + w->number) % 4]), &path, &err), 0, &err);
        want(file_exists(path));
    }
    iso_close_ctx(ctx);
    return NULL;
}

ISO_CASE(threads_copy_into_one_directory_by_contexts_of_their_own)
{
    struct worker all[MANY];
    struct exti_dir *d = NULL;
    struct exti_error err = {0};

    toy("");
    for (int i = 0; i < MANY; i++) {
        all[i] = (struct worker){.number = i};
        want(pthread_create(&all[i].thread, NULL, copy_all, &all[i]) == 0);
    }
    for (int i = 0; i < MANY; i++)
        want(pthread_join(all[i].thread, NULL) == 0);
    want_exti(exti_dir_read(in_tmp("x"), &d, &err), 0, &err);
    want_int((long)exti_dir_count(d), 5);
    exti_dir_free(d);
    iso_dir_clean(in_tmp("x"));
}

/* The body of each process of `processes_share_one_directory`. */
static void one_process(void *arg)
{
    struct worker w = {.number = *(int *)arg};

    for (int round = 0; round < 4; round++) {
        struct exti_ctx *ctx = iso_open("x");

        load_some(&w, ctx);
        want_int(call_int(w.module, "ext_next") > 0, 1);
        iso_prove_clean(ctx, 5);
        iso_close_ctx(ctx);
    }
}

ISO_CASE_EACH(processes_share_one_directory)
{
    pid_t pids[MANY];
    struct exti_dir *d = NULL;
    struct exti_error err = {0};

    for (int i = 0; i < MANY; i++)
        pids[i] = iso_spawn(one_process, &i);
    for (int i = 0; i < MANY; i++)
        want(iso_join(pids[i]));
    want_exti(exti_dir_read(in_tmp("x"), &d, &err), 0, &err);
    want_int((long)exti_dir_count(d), 5);
    exti_dir_free(d);
    iso_dir_clean(in_tmp("x"));
}

/* Writes a byte each time it begins to copy. */
static void copy_until_killed(void *arg)
{
    const int *began = arg;

    for (;;) {
        struct exti_ctx *ctx;

        want(write(*began, "x", 1) == 1);
        ctx = iso_open("x");
        for (int i = 0; i < 4; i++) {
            const char *const files[] = {"ext_a.so", "ext_b.so", "ext_dl.so", "ext_cxx.so"};

            want(exti_copy(ctx, toy(files[i]), NULL, NULL) == 0);
        }
        iso_close_ctx(ctx);
        want(exti_dir_clean(in_tmp("x"), NULL) == 0);
    }
}

/* A process is killed during its first or second round of copying.  The next process can use the
 * directory.  The sleeps only vary the moment of the kill. */
ISO_CASE(a_killed_process_leaves_a_usable_directory)
{
    for (int i = 0; i < 60; i++) {
        struct exti_ctx *ctx;
        struct worker w = {.number = i};
        int began[2], status;
        char byte;
        pid_t pid;

        want(pipe(began) == 0);
        pid = iso_spawn(copy_until_killed, &began[1]);
        close(began[1]);
        for (int times = 0; times <= i % 2; times++)
            want(read(began[0], &byte, 1) == 1);
        usleep((useconds_t)(137 * i));
        kill(pid, 9);
        want(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        close(began[0]);
        ctx = iso_open("x");
        load_some(&w, ctx);
        iso_close_ctx(ctx);
        iso_dir_clean(in_tmp("x"));
        if (i % 2)
            want(exti_dir_clean(in_tmp("x"), NULL) == 0);
    }
}

ISO_CASE(a_process_can_load_from_a_directory_in_one_context_only)
{
    struct exti_ctx *first = iso_open("x"), *second = iso_open("x");
    struct exti_error err = {0};
    struct exti_module *m = iso_load(first, toy("ext_a.so")), *none = NULL;
    const char *path = NULL;

    want_exti(exti_load(second, toy("ext_a.so"), &none, &err), EXTI_E_BUSY, &err);
    want_exti(exti_api(second, &none, &err), EXTI_E_BUSY, &err);
    want(!none);
    want_text(err.message[0] ? iso_text("%s %s", err.file, err.message) : "", in_tmp("x"));
    want_exti(exti_copy(second, toy("ext_b.so"), &path, &err), 0, &err);
    want_int(call_int(m, "ext_next"), 2);
    iso_close_ctx(first);
    want_int(call_int(iso_load(second, toy("ext_a.so")), "ext_count_at_init"), 1);
    iso_close_ctx(second);
}

static struct exti_ctx *late;

/* Another context, while the first one's copy is not mapped yet. */
static int load_late(void *user, struct exti_ctx *ctx, const char *original, const char *copy)
{
    struct exti_error err = {0};
    struct exti_module *none = NULL;
    int *times = user;

    (void)ctx, (void)original, (void)copy;
    if (!(*times)++)
        want_exti(exti_load(late, toy("ext_a.so"), &none, &err), EXTI_E_BUSY, &err);
    want(!none);
    return 0;
}

/* So the other cannot have unmapped it a moment later, but for what the first one then took. */
ISO_CASE(a_context_that_begins_to_load_keeps_others_of_its_directory_out)
{
    int times = 0;
    struct exti_hooks hooks = {.size = sizeof hooks, .before_load = load_late};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_ctx *first;

    opts.hooks = &hooks;
    opts.user = &times;
    first = iso_open_opts(&opts);
    late = iso_open("x");
    want_int(call_int(iso_load(first, toy("ext_a.so")), "ext_next"), 2);
    want(times > 0);
    iso_close_ctx(first);
    want_int(call_int(iso_load(late, toy("ext_a.so")), "ext_next"), 2);
    iso_close_ctx(late);
}

static void *open_original(struct exti_ctx *ctx, const char *original)
{
    struct exti_error err = {0};
    const char *copy = NULL;
    void *handle;

    want_exti(exti_copy(ctx, original, &copy, &err), 0, &err);
    handle = dlopen(copy, RTLD_NOW | RTLD_NOLOAD);
    want(handle != NULL);
    return handle;
}

ISO_CASE(a_copy_that_outlives_its_context_is_not_given_to_the_next_one)
{
    struct exti_ctx *first = iso_open("x"), *second;
    struct exti_error err = {0};
    struct exti_module *none = NULL;
    void *held;
    size_t left = 0;

    iso_build("int next(void); static int n; int next(void) { return ++n; }", "libcount.so",
              "-Wl,-soname,libcount.so");
    iso_build("int next(void); int use(void); int use(void) { return next(); }", "user.so",
              iso_text("%s -Wl,-rpath,'$ORIGIN'", in_tmp("libcount.so")));
    want_int(call_int(iso_load(first, in_tmp("user.so")), "use"), 1);
    held = open_original(first, in_tmp("libcount.so"));
    want_exti(exti_ctx_close_report(first, NULL, NULL, &left, &err), 0, &err);
    want_int((int)left, 1);
    second = iso_open("x");
    want_exti(exti_load(second, in_tmp("user.so"), &none, &err), EXTI_E_BUSY, &err);
    want_text(err.message, "still mapped");
    want(!none);
    want_int(dlclose(held), 0);
    want_int(call_int(iso_load(second, in_tmp("user.so")), "use"), 1);
    iso_close_ctx(second);
}

/* The loader also tells libraries apart by SONAME, so that copies in two directories of the same
 * name would be mixed up. */
ISO_CASE_EACH(copies_of_two_directories_with_the_same_name_are_not_mixed_up)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), "twin");
    struct exti_ctx *first = iso_open_opts(&opts), *second = NULL;
    struct exti_module *m = iso_load(first, toy("ext_a.so")), *none = NULL;
    struct exti_error err = {0};
    int rc;

    want_int(strcmp(exti_ctx_name(first), "twin"), 0);
    opts.dir = in_tmp("y");
    rc = exti_ctx_open(&second, &opts, &err);
    if (!rc)
        rc = exti_load(second, toy("ext_a.so"), &none, &err);
    want_exti(rc, EXTI_E_BUSY, &err);
    want_text(err.message, "twin");
    want(!none);
    want_int(call_int(m, "ext_next"), 2);
    iso_prove_clean(first, 2);
    iso_close_ctx(first);
    if (second) {
        want_int(call_int(iso_load(second, toy("ext_a.so")), "ext_count_at_init"), 1);
        iso_close_ctx(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_load_into_one_context),
        cmocka_unit_test(threads_load_and_close_one_file),
        cmocka_unit_test(threads_call_from_a_file_that_others_load),
        cmocka_unit_test(threads_load_into_contexts_of_their_own),
        cmocka_unit_test(threads_copy_into_one_directory_by_contexts_of_their_own),
        cmocka_unit_test(processes_share_one_directory),
        cmocka_unit_test(a_killed_process_leaves_a_usable_directory),
        cmocka_unit_test(a_process_can_load_from_a_directory_in_one_context_only),
        cmocka_unit_test(a_context_that_begins_to_load_keeps_others_of_its_directory_out),
        cmocka_unit_test(a_copy_that_outlives_its_context_is_not_given_to_the_next_one),
        cmocka_unit_test(copies_of_two_directories_with_the_same_name_are_not_mixed_up),
    };

    return cmocka_run_group_tests_name("isolation/sharing", tests, NULL, NULL);
}
