/* A thread of one context forks while another context loads. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>

#include "tests/isolation/build.h"

static _Thread_local int unlocks_late;
static _Atomic int stop;

/* Takes the place of the C library's function, and keeps the process-wide lock of the library long
 * enough for a fork to happen meanwhile. */
int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    static int (*real)(pthread_rwlock_t *);

    if (unlocks_late)
        usleep(1000);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_rwlock_unlock");
    return real(lock);
}

static void *load_and_close(void *arg)
{
    unlocks_late = 1;
    while (!stop) {
        struct exti_ctx *ctx = iso_open(NULL);

        iso_load(ctx, toy("ext_a.so"));
        iso_close_ctx(ctx);
    }
    return arg;
}

ISO_CASE(a_forked_child_can_look_up_symbols_in_its_context)
{
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_module *m = iso_load(ctx, toy("ext_dl.so"));
    void *(*sym_default)(const char *) = (void *(*)(const char *))iso_sym(m, "dl_sym_default");
    void *next = iso_sym(iso_api(ctx), "toy_next");
    pthread_t thread;

    want_int(pthread_create(&thread, NULL, load_and_close, NULL), 0);
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            alarm(600);
            _exit(sym_default("toy_next") != next);
        }
        want(iso_join(pid));
    }
    stop = 1;
    pthread_join(thread, NULL);
    iso_close_ctx(ctx);
}

/* The process has loaded no copy before this one. */
ISO_CASE(a_fork_handler_of_the_first_copy_can_use_the_loader_and_keys)
{
    static const char source[] =
        "#define _GNU_SOURCE\n"
        "#include <dlfcn.h>\n"
        "#include <pthread.h>\n"
        "#include <unistd.h>\n"
        "int asked;\n"
        "static void gone(void *p) { (void)p; }\n"
        "static void ask(void)\n"
        "{\n"
        "    pthread_key_t key;\n"
        "    Dl_info info;\n"
        "    alarm(60);\n"
        "    asked = dladdr(&asked, &info) && pthread_key_create(&key, gone) == 0 &&\n"
        "            pthread_setspecific(key, &key) == 0 && pthread_key_delete(key) == 0;\n"
        "}\n"
        "__attribute__((constructor)) static void begin(void) { pthread_atfork(0, 0, ask); }\n";
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    char api[512];
    struct exti_ctx *ctx;
    const int *asked;
    pid_t pid;

    iso_build(source, "libapi.so", "-Wl,-soname,libapi.so");
    snprintf(api, sizeof api, "%s", in_tmp("libapi.so"));
    opts.api_library = api;
    ctx = iso_open_opts(&opts);
    asked = iso_sym(iso_api(ctx), "asked");
    pid = fork();
    if (pid == 0)
        _exit(!*asked);
    want(iso_join(pid));
    want_int(*asked, 0);
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forked_child_can_look_up_symbols_in_its_context),
        cmocka_unit_test(a_fork_handler_of_the_first_copy_can_use_the_loader_and_keys),
    };

    return cmocka_run_group_tests_name("isolation/fork", tests, NULL, NULL);
}
