/* threads COUNT SECONDS DIR API LEAST MOST FILE...: that many threads open contexts in DIR at
 * the same time, copy the files, load one, call it, prove it, read the directory and verify it,
 * and print each error as "CODE errno FILE: MESSAGE".  The result of a call is to be from LEAST
 * to MOST.  With 0 SECONDS each does so once.  Status 1: a wrong result or a leak. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <extisolate.h>

static struct {
    const char *dir, *api;
    int least, most;
    const char *const *files;
    size_t count;
    time_t end;
} plan;
static atomic_int wrong, done;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static void tell(const char *what, const struct exti_error *err)
{
    pthread_mutex_lock(&output);
    printf("%s %d %s: %s: %s\n", exti_code_name(err->code), err->os_error, what, err->file,
           err->message);
    pthread_mutex_unlock(&output);
}

static void fault(const char *what, long value)
{
    atomic_fetch_add(&wrong, 1);
    pthread_mutex_lock(&output);
    printf("WRONG %s %ld\n", what, value);
    pthread_mutex_unlock(&output);
}

static void call_and_prove(struct exti_ctx *ctx, struct exti_module *m)
{
    struct exti_proof proof = {.size = sizeof proof};
    struct exti_error err;
    void *init;
    int *n;

    if (exti_symbol(m, "PyInit_one", &init, &err)) {
        tell("symbol", &err);
        return;
    }
    n = ((int *(*)(void))init)();
    if (*n < plan.least || *n > plan.most)
        fault("result", *n);
    if (exti_ctx_prove(ctx, NULL, NULL, &proof, &err))
        tell("prove", &err);
    else if (proof.leaks)
        fault("leaks", (long)proof.leaks);
    atomic_fetch_add(&done, 1);
}

static void use_context(unsigned *seed)
{
    struct exti_ctx_opts opts = {.size = sizeof opts, .dir = plan.dir, .api_library = plan.api};
    const struct exti_copy_opts many = {.size = sizeof many, .threads = 2};
    struct exti_error err;
    struct exti_module *m;
    struct exti_ctx *ctx;

    if (exti_ctx_open(&ctx, &opts, &err)) {
        tell("open", &err);
        return;
    }
    if (rand_r(seed) % 2 && exti_copy_many(ctx, plan.files, plan.count, &many, &err))
        tell("copy", &err);
    if (exti_load(ctx, plan.files[(size_t)rand_r(seed) % plan.count], &m, &err))
        tell("load", &err);
    else
        call_and_prove(ctx, m);
    if (exti_ctx_close(ctx, &err))
        tell("close", &err);
}

static void look_at_folder(void)
{
    struct exti_error err;
    struct exti_dir *dir;

    if (exti_dir_read(plan.dir, &dir, &err)) {
        tell("read", &err);
        return;
    }
    exti_dir_free(dir);
    if (exti_dir_verify(plan.dir, NULL, NULL, NULL, &err))
        tell("verify", &err);
}

static void *work(void *user)
{
    unsigned seed = (unsigned)(size_t)user;

    do {
        if (rand_r(&seed) % 4)
            use_context(&seed);
        else
            look_at_folder();
    } while (time(NULL) < plan.end);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    size_t n;

    if (argc < 8)
        return 2;
    n = strtoul(argv[1], NULL, 10);
    if (!n || n > 64)
        return 2;
    plan.end = time(NULL) + strtol(argv[2], NULL, 10);
    plan.dir = argv[3];
    plan.api = argv[4];
    plan.least = atoi(argv[5]);
    plan.most = atoi(argv[6]);
    plan.files = (const char *const *)argv + 7;
    plan.count = (size_t)argc - 7;
    for (size_t i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + (size_t)time(NULL))))
            return 2;
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("loaded %d\n", atomic_load(&done));
    return atomic_load(&wrong) ? 1 : 0;
}
