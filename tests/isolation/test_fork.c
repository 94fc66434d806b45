/* A thread of one context forks while another context loads. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

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

/* Appends to the file $LOG: what, then the letter of its context. */
static const char handlers_source[] =
    "#include <fcntl.h>\n"
    "#include <pthread.h>\n"
    "#include <stdlib.h>\n"
    "#include <sys/wait.h>\n"
    "#include <unistd.h>\n"
    "char letter = '?';\n"
    "static void say(char what)\n"
    "{\n"
    "    const char text[] = {NAME, what, letter, ' '};\n"
    "    int fd = open(getenv(\"LOG\"), O_WRONLY | O_CREAT | O_APPEND, 0600);\n"
    "    if (write(fd, text, sizeof text) != sizeof text) abort();\n"
    "    close(fd);\n"
    "}\n"
    "static void prepare(void) { say('<'); }\n"
    "static void parent(void) { say('>'); }\n"
    "static void child(void) { say('+'); }\n"
    "__attribute__((constructor)) static void begin(void)\n"
    "{ pthread_atfork(prepare, parent, child); }\n"
    "int forks(void)\n"
    "{\n"
    "    int status;\n"
    "    pid_t pid = fork();\n"
    "    if (!pid) _exit(0);\n"
    "    return waitpid(pid, &status, 0) == pid ? status : -1;\n"
    "}\n";

static struct exti_ctx *open_handlers(const char *dir, char letter, struct exti_module **b)
{
    struct exti_ctx *ctx = iso_open(dir);

    *(char *)iso_sym(iso_load(ctx, in_tmp("a.so")), "letter") = letter;
    *b = iso_load(ctx, in_tmp("b.so"));
    *(char *)iso_sym(*b, "letter") = letter;
    return ctx;
}

/* What the handlers have said since the last call.  The child's words and the parent's may come in
 * either order, so they are told apart. */
static void want_said(const char *prepare, const char *parent, const char *child)
{
    char text[256] = "", by[3][256] = {"", "", ""};
    FILE *f = fopen(in_tmp("log"), "r");

    if (f) {
        while (fscanf(f, "%7s", text) == 1)
            strcat(strcat(by[text[1] == '<' ? 0 : text[1] == '>' ? 1 : 2], text), " ");
        fclose(f);
        unlink(in_tmp("log"));
    }
    if (strcmp(by[0], prepare) != 0 || strcmp(by[1], parent) != 0 || strcmp(by[2], child) != 0)
        fprintf(stderr, "before: %s, parent: %s, child: %s\n", by[0], by[1], by[2]);
    want(strcmp(by[0], prepare) == 0);
    want(strcmp(by[1], parent) == 0);
    want(strcmp(by[2], child) == 0);
}

static void fork_and_wait(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    want(iso_join(pid));
}

ISO_CASE(a_fork_runs_the_handlers_of_its_own_context_only)
{
    struct exti_module *xb, *yb;
    struct exti_ctx *x, *y;

    setenv("LOG", in_tmp("log"), 1);
    iso_build(handlers_source, "a.so", "-DNAME=\"'a'\"");
    iso_build(handlers_source, "b.so", "-DNAME=\"'b'\"");
    x = open_handlers("x", 'x', &xb);
    y = open_handlers("y", 'y', &yb);
    want_int(call_int(xb, "forks"), 0);
    want_said("b<x a<x ", "a>x b>x ", "a+x b+x ");
    want_int(call_int(yb, "forks"), 0);
    want_said("b<y a<y ", "a>y b>y ", "a+y b+y ");
    fork_and_wait(); /* the program's */
    want_said("b<y a<y b<x a<x ", "a>x b>x a>y b>y ", "a+x b+x a+y b+y ");
    iso_close_ctx(x);
    want_int(call_int(yb, "forks"), 0);
    want_said("b<y a<y ", "a>y b>y ", "a+y b+y ");
    iso_close_ctx(y);
    fork_and_wait();
    want_said("", "", "");
}

/* Their allocators may be locked in a forked child, by a thread that it does not have. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ALLOCATES_IN_CHILDREN
#endif

#ifdef ALLOCATES_IN_CHILDREN
static void *load_and_close_plainly(void *arg)
{
    while (!stop) {
        struct exti_ctx *ctx = iso_open(NULL);

        iso_load(ctx, toy("ext_a.so"));
        iso_close_ctx(ctx);
    }
    return arg;
}

/* A child of several threads may find a lock of qemu-user's own taken, and then wait for ever. */
static int forks_in_all(int forks)
{
    return getenv("EXTI_EMULATED") ? forks / 10 : forks;
}

static void *open_and_close_plainly(void *arg)
{
    while (!stop)
        iso_close_ctx(iso_open(NULL));
    return arg;
}

/* Forks while two threads do something, children that end by what `in_child` gives. */
static void fork_meanwhile(void *(*work)(void *), int forks, bool (*in_child)(void *), void *arg)
{
    pthread_t threads[2];

    for (size_t i = 0; i < 2; i++)
        want_int(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < forks; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            alarm(60);
            _exit(!in_child(arg));
        }
        want(iso_join(pid));
    }
    stop = 1;
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static bool open_by_copy(void *module)
{
    void *(*open_library)(const char *, int) =
        (void *(*)(const char *, int))iso_sym(module, "dl_open");
    char path[1024];

    snprintf(path, sizeof path, "%s", toy("ext_b.so"));
    return open_library(path, RTLD_NOW) != NULL;
}

/* ld.so ends a child whose tables are half changed ("r_state == RT_CONSISTENT"). */
ISO_CASE(a_forked_child_can_open_libraries_while_others_do)
{
    struct exti_ctx *ctx = iso_open(NULL);

    fork_meanwhile(load_and_close_plainly, forks_in_all(getenv("EXTI_ALL") ? 10000 : 300),
                   open_by_copy, iso_load(ctx, toy("ext_dl.so")));
    iso_close_ctx(ctx);
}

static bool open_context(void *arg)
{
    (void)arg;
    iso_close_ctx(iso_open(NULL));
    return true;
}

/* The C library locks its locales where contexts get theirs, and not when a process is forked. */
ISO_CASE(a_forked_child_can_open_contexts_while_others_do)
{
    fork_meanwhile(open_and_close_plainly, forks_in_all(getenv("EXTI_ALL") ? 10000 : 1000),
                   open_context, NULL);
}
#endif

/* ---- a fork while other threads of the same context load ------------------------------------- */

#ifdef ALLOCATES_IN_CHILDREN
static const char forker_source[] =
    "#include <unistd.h>\n"
    "#include <sys/types.h>\n"
    "volatile int answer;\n"
    "pid_t do_fork(void);\n"
    "pid_t do_fork(void) { pid_t p = fork(); answer = 1; return p; }\n";

static struct exti_ctx *shared_ctx;

static void *load_new_libraries(void *arg)
{
    for (int i = 0; !stop; i++) {
        struct exti_module *m = iso_load(shared_ctx, in_tmp(iso_text("new%d.so", i % 20)));
        struct exti_error err = {0};

        want_exti(exti_close(m, &err), 0, &err);
    }
    return arg;
}

/* 0: it has loaded, 2: it was refused; any other: it hung, or was told something else. */
static int load_in_child(const char *path)
{
    struct exti_error err = {0};
    struct exti_module *m;
    int rc;

    alarm(60);
    rc = exti_load(shared_ctx, path, &m, &err);
    if (!rc)
        return 0;
    return rc == EXTI_E_BUSY && strstr(err.message, "this process was forked while") ? 2 : 3;
}

static int wait_for_load(pid_t pid)
{
    int status;

    want(waitpid(pid, &status, 0) == pid);
    want(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2));
    return WEXITSTATUS(status) == 0;
}

/* By the context, for whose threads the fork waits, and by the program. */
ISO_CASE(a_forked_child_loads_or_is_refused_while_others_load_in_its_context)
{
    struct exti_module *m;
    pid_t (*do_fork)(void);
    int loaded[2] = {0, 0};
    pthread_t threads[2];

    for (int i = 0; i < 20; i++)
        iso_build(iso_text("int new%d;", i), iso_text("new%d.so", i), "");
    iso_build("int extra;", "extra.so", "");
    iso_build(forker_source, "forker.so", "");
    shared_ctx = iso_open(NULL);
    m = iso_load(shared_ctx, in_tmp("forker.so"));
    do_fork = (pid_t(*)(void))iso_sym(m, "do_fork");
    for (size_t i = 0; i < 2; i++)
        want_int(pthread_create(&threads[i], NULL, load_new_libraries, NULL), 0);
    for (int i = 0; i < 200; i++) {
        const pid_t pid = i % 2 ? do_fork() : fork();

        if (pid == 0)
            _exit(load_in_child(in_tmp("extra.so")));
        loaded[i % 2] += wait_for_load(pid);
    }
    stop = 1;
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    fprintf(stderr, "children that loaded: %d of 100, of the context's own forks: %d\n", loaded[0],
            loaded[1]);
    want_int(loaded[1], 100);
    want(loaded[0] < 100);
    iso_close_ctx(shared_ctx);
}

#endif

/* ---- who waits for whom ---------------------------------------------------------------------- */

static const char waiter_source[] =
    "#define _GNU_SOURCE\n"
    "#include <link.h>\n"
    "#include <pthread.h>\n"
    "#include <semaphore.h>\n"
    "#include <unistd.h>\n"
    "sem_t inside, may_leave;\n"
    "static int stay(struct dl_phdr_info *i, size_t n, void *p)\n"
    "{ (void)i, (void)n, (void)p; sem_post(&inside); sem_wait(&may_leave); return 1; }\n"
    "int be_inside(void) { int rc = dl_iterate_phdr(stay, 0); return rc; }\n"
    "static void nothing(void) {}\n"
    "int add_handlers(void) { int rc = pthread_atfork(nothing, nothing, nothing); return rc; }\n"
    "int look(void) { Dl_info i; int rc = !dladdr(nothing, &i); return rc; }\n"
    "volatile pid_t forked;\n"
    "int do_fork(void)\n"
    "{ pid_t p = fork(); if (p == 0) _exit(0); forked = p; return 0; }\n";

static void *call_on_thread(void *function)
{
    return (void *)(intptr_t)((int (*)(void))function)();
}

static void want_zero_on_thread(void *function)
{
    pthread_t thread;
    void *rc;

    want_int(pthread_create(&thread, NULL, call_on_thread, function), 0);
    want_int(pthread_join(thread, &rc), 0);
    want_int((long)(intptr_t)rc, 0);
}

/* A fork waits for a thread that is in the system's loader; others need not wait for the fork. */
ISO_CASE(handlers_are_added_and_addresses_looked_up_while_a_fork_waits)
{
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_module *m;
    pthread_t inside, forks;
    volatile pid_t *forked;
    void *began, *may_leave, *add_handlers, *look; /* looked up before: look-ups wait for forks */

    iso_build(waiter_source, "waiter.so", "-pthread");
    m = iso_load(ctx, in_tmp("waiter.so"));
    began = iso_sym(m, "inside");
    may_leave = iso_sym(m, "may_leave");
    add_handlers = iso_sym(m, "add_handlers");
    look = iso_sym(m, "look");
    forked = iso_sym(m, "forked");
    want_int(pthread_create(&inside, NULL, call_on_thread, iso_sym(m, "be_inside")), 0);
    want(sem_wait(began) == 0);
    want_int(pthread_create(&forks, NULL, call_on_thread, iso_sym(m, "do_fork")), 0);
    usleep(200000); /* it waits by now */
    want_zero_on_thread(add_handlers);
    want_zero_on_thread(look);
    want_int(*forked,
             0); /* it waits for some seconds, and had they waited for it, it would be over */
    sem_post(may_leave);
    want_int(pthread_join(inside, NULL), 0);
    want_int(pthread_join(forks, NULL), 0);
    want(iso_join(*forked));
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_runs_the_handlers_of_its_own_context_only),
#ifdef ALLOCATES_IN_CHILDREN
        cmocka_unit_test(a_forked_child_can_open_libraries_while_others_do),
        cmocka_unit_test(a_forked_child_can_open_contexts_while_others_do),
#endif
        cmocka_unit_test(a_forked_child_can_look_up_symbols_in_its_context),
#ifdef ALLOCATES_IN_CHILDREN
        cmocka_unit_test(a_forked_child_loads_or_is_refused_while_others_load_in_its_context),
#endif
        cmocka_unit_test(handlers_are_added_and_addresses_looked_up_while_a_fork_waits),
        cmocka_unit_test(a_fork_handler_of_the_first_copy_can_use_the_loader_and_keys),
    };

    return cmocka_run_group_tests_name("isolation/fork", tests, NULL, NULL);
}
