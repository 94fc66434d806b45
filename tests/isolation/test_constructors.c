/* Constructors run after the references of their copies lead into the context, in ld.so's order. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include "tests/isolation/build.h"

static int main_argc;
static char **main_argv;

static void build_cxx(const char *source, const char *file, const char *flags)
{
    iso_write_text(in_tmp("source.cc"), source);
    want(system(iso_text("g++ -O1 -g -fPIC -shared -o '%s' '%s' %s", in_tmp(file),
                         in_tmp("source.cc"), flags)) == 0);
}

static void *must_dlopen(const char *path, int mode)
{
    void *handle = dlopen(path, mode);

    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    want(handle);
    return handle;
}

/* The text of a file, "" if there is none. */
static const char *text_of(const char *path)
{
    static char text[2][4096];
    static int next;
    char *to = text[next++ % 2];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(to, 1, sizeof text[0] - 1, f) : 0;

    to[n] = 0;
    if (f)
        fclose(f);
    return to;
}

/* ---- what constructors do -------------------------------------------------------------------- */

static const char busy_source[] =
    "#include <cstdio>\n"
    "#include <cstdlib>\n"
    "#include <dlfcn.h>\n"
    "#include <pthread.h>\n"
    "#include <stdexcept>\n"
    "#include <string>\n"
    "extern \"C\" {\n"
    "void *busy_sibling, *busy_next, *busy_thread_saw;\n"
    "const char *busy_file;\n"
    "int busy_caught, busy_key_made;\n"
    "pthread_key_t busy_key;\n"
    "static void forget(void *) {}\n"
    "static void *on_thread(void *) { return dlopen(nullptr, RTLD_NOW); }\n"
    "static void at_exit() { FILE *f = fopen(ENDED, \"a\"); fputs(\"x\", f); fclose(f); }\n"
    "static void at_fork() {}\n"
    "}\n"
    "struct Busy {\n"
    "    Busy()\n"
    "    {\n"
    "        Dl_info info;\n"
    "        pthread_t t;\n"
    "        void *sibling = dlopen(\"libsibling.so\", RTLD_NOW);\n"
    "        if (sibling) busy_sibling = dlsym(sibling, \"sibling_count\");\n"
    "        busy_next = dlsym(RTLD_DEFAULT, \"toy_next\");\n"
    "        if (dladdr(reinterpret_cast<void *>(at_exit), &info)) busy_file = info.dli_fname;\n"
    "        pthread_create(&t, nullptr, on_thread, nullptr);\n"
    "        pthread_join(t, &busy_thread_saw);\n"
    "        busy_key_made = pthread_key_create(&busy_key, forget) == 0;\n"
    "        pthread_setspecific(busy_key, this);\n"
    "        std::atexit(at_exit);\n"
    "        pthread_atfork(at_fork, at_fork, at_fork);\n"
    "        try { throw std::runtime_error(\"thrown\"); }\n"
    "        catch (const std::exception &e) { busy_caught = std::string(e.what()) == \"thrown\"; "
    "}\n"
    "    }\n"
    "};\n"
    "static Busy busy;\n";

static struct exti_module *load_busy(struct exti_ctx *ctx)
{
    struct exti_module *busy = iso_load(ctx, in_tmp("busy.so"));
    struct exti_module *sibling = iso_load(ctx, in_tmp("libsibling.so"));

    want(*(void **)iso_sym(busy, "busy_sibling") == iso_sym(sibling, "sibling_count"));
    want(*(void **)iso_sym(busy, "busy_next") == iso_sym(iso_api(ctx), "toy_next"));
    want_text(*(const char **)iso_sym(busy, "busy_file"), in_tmp("busy.so"));
    want(*(void **)iso_sym(busy, "busy_thread_saw") != NULL);
    want_int(*(int *)iso_sym(busy, "busy_key_made"), 1);
    want_int(*(int *)iso_sym(busy, "busy_caught"), 1);
    return busy;
}

static void close_clean(struct exti_ctx *ctx)
{
    struct exti_error err = {0};
    size_t left = 9;

    want_exti(exti_ctx_close_report(ctx, iso_print_finding, NULL, &left, &err), 0, &err);
    want_int((long)left, 0);
}

/* The thread that the constructor waits for opens a library: ld.so's lock would stop it. */
static void *open_two(void *unused)
{
    struct exti_ctx *x = iso_open("x"), *y = iso_open("y");
    struct exti_module *bx = load_busy(x), *by = load_busy(y);

    want(*(void **)iso_sym(bx, "busy_sibling") != *(void **)iso_sym(by, "busy_sibling"));
    want(*(void **)iso_sym(bx, "busy_thread_saw") != *(void **)iso_sym(by, "busy_thread_saw"));
    iso_prove_clean(x, 3);
    iso_prove_clean(y, 3);
    *(struct exti_ctx **)unused = x;
    return y;
}

ISO_CASE(what_a_constructor_does_stays_in_its_context)
{
    struct exti_ctx *x, *y;
    pthread_t t;
    void *host;

    iso_build("int sibling_count;\n", "libsibling.so", "-Wl,-soname,libsibling.so");
    build_cxx(busy_source, "busy.so",
              iso_text("-Wl,-rpath,'%s' -pthread -DENDED='\"%s\"'", iso_tmp, in_tmp("ended")));
    host = must_dlopen(in_tmp("libsibling.so"), RTLD_NOW | RTLD_GLOBAL);
    must_dlopen(toy("libtoy.so.1"), RTLD_NOW | RTLD_GLOBAL);
    want(pthread_create(&t, NULL, open_two, &x) == 0);
    want(pthread_join(t, (void **)&y) == 0);
    want(*(void **)iso_sym(iso_load(x, in_tmp("busy.so")), "busy_sibling") !=
         dlsym(host, "sibling_count"));
    want(!file_exists(in_tmp("ended")));
    close_clean(x);
    want_int((long)strlen(text_of(in_tmp("ended"))), 1);
    close_clean(y);
    want_int((long)strlen(text_of(in_tmp("ended"))), 2);
}

ISO_CASE(constructors_get_the_programs_arguments)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *m;

    iso_build("int count; char **words, **variables;\n"
              "__attribute__((constructor)) static void begin(int argc, char **argv, char **envp)\n"
              "{ count = argc; words = argv; variables = envp; }\n",
              "told.so", "");
    m = iso_load(ctx, in_tmp("told.so"));
    want_int(*(int *)iso_sym(m, "count"), main_argc);
    want(*(char ***)iso_sym(m, "words") == main_argv);
    want(*(char ***)iso_sym(m, "variables") == environ);
    iso_close_ctx(ctx);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Libraries a, b, c... in iso_tmp, each of which appends its letter to the file $LOG.  Line i of
 * `needs` has the letters that library i needs, in that order; the first is the one to open. */
static void build_graph(const char *const *needs, size_t count)
{
    want(system(iso_text("mkdir -p '%s'", in_tmp("stubs"))) == 0);
    for (size_t i = 0; i < count; i++) {
        const char *name = iso_text("libn_%c.so", 'a' + (int)i);

        iso_build("", iso_text("stubs/%s", name), iso_text("-Wl,-soname,%s", name));
    }
    for (size_t i = 0; i < count; i++) {
        const char letter = (char)('a' + i);
        char flags[1024];
        size_t n = (size_t)snprintf(flags, sizeof flags,
                                    "-DLETTER='\"%c\"' -Wl,-soname,libn_%c.so -Wl,--no-as-needed "
                                    "-Wl,-rpath,'%s' -L'%s'",
                                    letter, letter, iso_tmp, in_tmp("stubs"));

        for (const char *p = needs[i]; *p; p++)
            n += (size_t)snprintf(flags + n, sizeof flags - n, " -ln_%c", *p);
        iso_build("#include <fcntl.h>\n"
                  "#include <stdlib.h>\n"
                  "#include <unistd.h>\n"
                  "static void say(const char *what)\n"
                  "{\n"
                  "    int fd = open(getenv(\"LOG\"), O_WRONLY | O_CREAT | O_APPEND, 0600);\n"
                  "    if (fd < 0 || write(fd, what, 1) != 1) abort();\n"
                  "    close(fd);\n"
                  "}\n"
                  "__attribute__((constructor)) static void begin(void) { say(LETTER); }\n",
                  iso_text("libn_%c.so", letter), flags);
    }
}

static void open_plainly(void *path)
{
    setenv("LOG", in_tmp("plain"), 1);
    must_dlopen(path, RTLD_NOW);
}

/* The same in a context, in this process. */
static void want_same_order(const char *path, size_t count)
{
    struct exti_ctx *ctx;

    want(iso_join(iso_spawn(open_plainly, (void *)path)));
    setenv("LOG", in_tmp("ours"), 1);
    ctx = iso_open(NULL); /* its environment is what the process's is now */
    iso_load(ctx, path);
    want_int((long)strlen(text_of(in_tmp("plain"))), (long)count);
    if (strcmp(text_of(in_tmp("plain")), text_of(in_tmp("ours"))) != 0) {
        fprintf(stderr, "ld.so: %s, here: %s\n", text_of(in_tmp("plain")), text_of(in_tmp("ours")));
        iso_fail_at(__FILE__, __LINE__);
    }
    unlink(in_tmp("plain"));
    unlink(in_tmp("ours"));
    iso_close_ctx(ctx);
}

static void want_order_of_graph(const char *const *needs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "%c needs %s%s", 'a' + (int)i, needs[i], i + 1 < count ? ", " : "\n");
    build_graph(needs, count);
    want_same_order(in_tmp("libn_a.so"), count);
}

ISO_CASE(the_order_of_constructors_is_that_of_ld_so)
{
    want_order_of_graph((const char *const[]){"b", "c", "d", ""}, 4);
    want_order_of_graph((const char *const[]){"bc", "d", "d", ""}, 4);
    want_order_of_graph((const char *const[]){"cb", "d", "d", ""}, 4);
    want_order_of_graph((const char *const[]){"b", "c", "d", "b"}, 4);  /* a circle */
    want_order_of_graph((const char *const[]){"bd", "c", "a", "b"}, 4); /* through the first */
    want_order_of_graph((const char *const[]){"bc", "ca", "ab"}, 3);
}

/* With a fixed seed: the same graphs each time. */
ISO_CASE(the_order_is_that_of_ld_so_in_random_graphs)
{
    enum { NODES = 7, GRAPHS = 10 };
    uint32_t seed = 1;

    for (int g = 0; g < GRAPHS; g++) {
        char needs[NODES][NODES + 1];
        const char *lines[NODES];

        for (int i = 0; i < NODES; i++) {
            size_t n = 0;

            /* Each is needed by the one before it, so that all are loaded. */
            if (i + 1 < NODES)
                needs[i][n++] = (char)('a' + i + 1);
            for (int k = 0; k < NODES; k++) {
                seed = seed * 1664525 + 1013904223;
                if (k != i && k != i + 1 && seed >> 30 == 0)
                    needs[i][n++] = (char)('a' + k);
            }
            needs[i][n] = 0;
            lines[i] = needs[i];
        }
        want_order_of_graph(lines, NODES);
    }
}

/* The constructor of b, which comes before c's, opens d, which needs c. */
ISO_CASE(a_nested_opening_runs_the_constructors_that_it_needs)
{
    build_graph((const char *const[]){"cb", "", "", "c"}, 4);
    iso_build("#include <dlfcn.h>\n"
              "#include <fcntl.h>\n"
              "#include <stdlib.h>\n"
              "#include <unistd.h>\n"
              "__attribute__((constructor)) static void begin(void)\n"
              "{\n"
              "    int fd = open(getenv(\"LOG\"), O_WRONLY | O_CREAT | O_APPEND, 0600);\n"
              "    if (write(fd, \"b\", 1) != 1 || !dlopen(OPENED, RTLD_NOW)) abort();\n"
              "    close(fd);\n"
              "}\n",
              "libn_b.so",
              iso_text("-Wl,-soname,libn_b.so -Wl,-rpath,'%s' -DOPENED='\"%s\"'", iso_tmp,
                       in_tmp("libn_d.so")));
    want_same_order(in_tmp("libn_a.so"), 4);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Opens a library of variables for all to see, for the libraries below and this program. */
static void *open_variables(const char *source)
{
    iso_build(source, "variables.so", "-pthread");
    return must_dlopen(in_tmp("variables.so"), RTLD_NOW | RTLD_GLOBAL);
}

static const char slow_source[] = "#include <semaphore.h>\n"
                                  "extern sem_t slow_began, slow_may_end;\n"
                                  "int slow_done;\n"
                                  "__attribute__((constructor)) static void begin(void)\n"
                                  "{\n"
                                  "    sem_post(&slow_began);\n"
                                  "    sem_wait(&slow_may_end);\n"
                                  "    slow_done = 1;\n"
                                  "}\n";

struct slow_load {
    struct exti_ctx *ctx;
    const char *path;
    _Atomic int ended;
};

static void *load_slowly(void *arg)
{
    struct slow_load *l = arg;
    struct exti_module *m = iso_load(l->ctx, l->path);

    l->ended = 1;
    want_int(*(int *)iso_sym(m, "slow_done"), 1);
    return NULL;
}

/* A second thread gets the library only once the first has run its constructors. */
ISO_CASE(a_library_is_given_to_other_threads_once_it_is_initialised)
{
    struct slow_load one = {.ctx = iso_open("x"), .path = in_tmp("slow.so")}, two;
    void *variables = open_variables("#include <semaphore.h>\nsem_t slow_began, slow_may_end;\n");
    sem_t *began = dlsym(variables, "slow_began"), *may_end = dlsym(variables, "slow_may_end");
    pthread_t t[2];

    iso_build(slow_source, "slow.so", "-pthread");
    iso_api(one.ctx);
    two = (struct slow_load){.ctx = one.ctx, .path = one.path};
    want(pthread_create(&t[0], NULL, load_slowly, &one) == 0);
    want(sem_wait(began) == 0);
    want(pthread_create(&t[1], NULL, load_slowly, &two) == 0);
    usleep(100000);
    want(!one.ended && !two.ended);
    sem_post(may_end);
    want(pthread_join(t[0], NULL) == 0 && pthread_join(t[1], NULL) == 0);
    iso_close_ctx(one.ctx);
}

static const char mutual_source[] = "#include <dlfcn.h>\n"
                                    "#include <pthread.h>\n"
                                    "#include <stdlib.h>\n"
                                    "extern pthread_barrier_t both_began;\n"
                                    "int slow_done;\n"
                                    "__attribute__((constructor)) static void begin(void)\n"
                                    "{\n"
                                    "    pthread_barrier_wait(&both_began);\n"
                                    "    if (!dlopen(OTHER, RTLD_NOW)) abort();\n"
                                    "    slow_done = 1;\n"
                                    "}\n";

/* Two constructors, on two threads, each open the other's library. */
ISO_CASE(constructors_that_open_each_others_libraries_end)
{
    struct slow_load x = {.ctx = iso_open("x")}, y = {.ctx = x.ctx};
    void *variables;
    pthread_t t[2];

    variables = open_variables("#include <pthread.h>\npthread_barrier_t both_began;\n");
    want(pthread_barrier_init(dlsym(variables, "both_began"), NULL, 2) == 0);
    x.path = in_tmp("mx.so");
    y.path = in_tmp("my.so");
    iso_build(mutual_source, "mx.so", iso_text("-DOTHER='\"%s\"' -pthread", y.path));
    iso_build(mutual_source, "my.so", iso_text("-DOTHER='\"%s\"' -pthread", x.path));
    iso_api(x.ctx);
    want(pthread_create(&t[0], NULL, load_slowly, &x) == 0);
    want(pthread_create(&t[1], NULL, load_slowly, &y) == 0);
    want(pthread_join(t[0], NULL) == 0 && pthread_join(t[1], NULL) == 0);
    iso_prove_clean(x.ctx, 3);
    iso_close_ctx(x.ctx);
}

/* The C library keeps it mapped while the thread lives: its thread-local object is to be
 * destroyed. */
ISO_CASE(a_library_that_stayed_mapped_is_not_initialised_again)
{
    static const char source[] = "struct Object { int n; ~Object() { n = 0; } };\n"
                                 "static thread_local Object object;\n"
                                 "extern \"C\" { int begun; }\n"
                                 "extern \"C\" int touch() { return object.n++; }\n"
                                 "struct Begin { Begin() { begun++; } };\n"
                                 "static Begin begin;\n";
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_error err = {0};
    struct exti_module *m;
    const int *begun;

    build_cxx(source, "lasting.so", "");
    m = iso_load(ctx, in_tmp("lasting.so"));
    begun = iso_sym(m, "begun");
    want_int(*begun, 1);
    want_int(call_int(m, "touch"), 0);
    want_exti(exti_close(m, &err), 0, &err);
    m = iso_load(ctx, in_tmp("lasting.so"));
    want(iso_sym(m, "begun") == begun);
    want_int(*begun, 1);
    iso_close_ctx(ctx);
}

/* A constructor that says when it begins, opens another library, and takes its time. */
static const char opener_source[] = "#include <dlfcn.h>\n"
                                    "#include <semaphore.h>\n"
                                    "#include <stdlib.h>\n"
                                    "#include <unistd.h>\n"
                                    "extern sem_t opener_began;\n"
                                    "int slow_done;\n"
                                    "__attribute__((constructor)) static void begin(void)\n"
                                    "{\n"
                                    "    sem_post(&opener_began);\n"
                                    "    if (!dlopen(OTHER, RTLD_NOW)) abort();\n"
                                    "    usleep(100000);\n"
                                    "    slow_done = 1;\n"
                                    "}\n";

static sem_t held_up, may_go_on, may_load;

static void *load_slowly_when_told(void *arg)
{
    sem_wait(&may_load);
    return load_slowly(arg);
}

static void hold_up(int signal)
{
    (void)signal;
    sem_post(&held_up);
    sem_wait(&may_go_on);
}

/* One thread has run slow.so's constructors and has ended; another, which has waited for them, has
 * not woken yet when a third asks for the library that this one initialises. */
ISO_CASE(a_wait_that_is_over_counts_no_more)
{
    struct exti_ctx *ctx = iso_open("x");
    void *variables =
        open_variables("#include <semaphore.h>\nsem_t slow_began, slow_may_end, opener_began;\n");
    sem_t *began = dlsym(variables, "slow_began"), *may_end = dlsym(variables, "slow_may_end");
    struct slow_load slow = {.ctx = ctx, .path = in_tmp("slow.so")},
                     opener = {.ctx = ctx, .path = in_tmp("opener.so")}, again = opener;
    pthread_attr_t large; /* the C library keeps no stack of that size for later threads */
    pthread_t t[3];

    iso_build(slow_source, "slow.so", "-pthread");
    iso_build(opener_source, "opener.so", iso_text("-pthread -DOTHER='\"%s\"'", slow.path));
    iso_api(ctx);
    want(signal(SIGUSR1, hold_up) != SIG_ERR);
    want(pthread_attr_init(&large) == 0 && pthread_attr_setstacksize(&large, 256 << 20) == 0);
    want(pthread_create(&t[2], NULL, load_slowly_when_told, &again) == 0);
    want(pthread_create(&t[0], &large, load_slowly, &slow) == 0);
    want(sem_wait(began) == 0);
    want(pthread_create(&t[1], NULL, load_slowly, &opener) == 0);
    want(sem_wait(dlsym(variables, "opener_began")) == 0);
    usleep(100000); /* it waits by now */
    want(pthread_kill(t[1], SIGUSR1) == 0 && sem_wait(&held_up) == 0);
    sem_post(may_end);
    want(pthread_join(t[0], NULL) == 0);
    sem_post(&may_load);
    usleep(100000);
    want(!again.ended);
    sem_post(&may_go_on);
    want(pthread_join(t[1], NULL) == 0 && pthread_join(t[2], NULL) == 0);
    iso_close_ctx(ctx);
}

/* lld can put the dynamic section into a segment that is never writable. */
ISO_CASE(constructors_of_a_library_with_a_read_only_dynamic_section_run)
{
    struct exti_ctx *ctx;

    /* gcc looks for "ld.lld" in the folder of -B first. */
    if (system(iso_text("ln -s \"$(command -v ld.lld)\" '%s'", in_tmp("ld.lld"))) != 0) {
        fprintf(stderr, "lld is not installed\n");
        return;
    }
    iso_build("int begun; __attribute__((constructor)) static void begin(void) { begun++; }\n"
              "__attribute__((destructor)) static void end(void) { begun--; }\n",
              "fixed.so", iso_text("-B'%s' -fuse-ld=lld -Wl,-z,rodynamic", iso_tmp));
    ctx = iso_open(NULL);
    want_int(*(int *)iso_sym(iso_load(ctx, in_tmp("fixed.so")), "begun"), 1);
    iso_close_ctx(ctx);
}

/* ---- for whom copies are --------------------------------------------------------------------- */

static const char *copy_for(const char *dir, uint32_t flags, const char *original)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp(dir), "kinds");
    struct exti_ctx *ctx;
    struct exti_error err = {0};
    const char *path;

    opts.flags = flags;
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, original, &path, &err), 0, &err);
    path = iso_text("%s", path);
    iso_close_ctx(ctx);
    return path;
}

static void want_sound(const char *dir)
{
    struct exti_error err = {0};
    size_t findings = 9;

    want_exti(exti_dir_verify(in_tmp(dir), iso_print_finding, NULL, &findings, &err), 0, &err);
    want_int((long)findings, 0);
}

static void want_flag(const char *path, bool withheld)
{
    struct exti_image_info info = {.size = sizeof info};
    struct exti_error err = {0};
    struct exti_image *im;

    want_exti(exti_inspect(path, &im, &err), 0, &err);
    want(exti_image_info(im, &info) == 0);
    want_int(!!(info.flags & EXTI_IMAGE_WITHHELD), withheld);
    exti_image_free(im);
}

/* A copy for programs runs its constructors, one for contexts withholds them from ld.so. */
ISO_CASE(copies_for_other_programs_keep_their_constructors)
{
    static const char source[] = "int begun, *seen = &begun;\n"
                                 "__attribute__((constructor)) static void begin(void)\n"
                                 "{ begun++; }\n";
    const char *copy;
    struct exti_ctx_opts opts;
    struct exti_ctx *ctx;
    void *h;

    iso_build(source, "mod.so", "");
    copy = copy_for("c", EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING, in_tmp("mod.so"));
    want_flag(copy, true);
    want_sound("c");
    h = must_dlopen(copy, RTLD_NOW);
    want_int(*(int *)dlsym(h, "begun"), 0);
    want(dlclose(h) == 0);

    want(strcmp(copy_for("c", EXTI_CTX_COPY_ONLY, in_tmp("mod.so")), copy) == 0);
    want_flag(copy, false);
    want_sound("c");
    h = must_dlopen(copy, RTLD_NOW);
    want_int(*(int *)dlsym(h, "begun"), 1);
    want(dlclose(h) == 0);

    /* A context makes it again for itself. */
    opts = iso_opts(in_tmp("c"), "kinds");
    ctx = iso_open_opts(&opts);
    want_int(*(int *)iso_sym(iso_load(ctx, in_tmp("mod.so")), "begun"), 1);
    want_flag(copy, true);
    want_sound("c"); /* others do not wait for the context's end */
    iso_close_ctx(ctx);
    want_sound("c");
}

/* Between the making of a copy and its opening, another process makes it for programs. */
static int make_for_programs(void *user, struct exti_ctx *ctx, const char *original,
                             const char *copy)
{
    (void)ctx;
    if (strcmp(original, user) == 0)
        want_flag(copy_for("c", EXTI_CTX_COPY_ONLY, original), false);
    want_flag(copy, strcmp(original, user) != 0);
    return 0;
}

/* Closes a context whose directory another process has taken over: it has nothing more to save, or
 * cannot save it. */
static void close_overtaken(struct exti_ctx *ctx)
{
    struct exti_error err = {0};
    int rc = exti_ctx_close(ctx, &err);

    want(rc == 0 || rc == EXTI_E_CHECK);
}

ISO_CASE(a_copy_that_ld_so_has_initialised_is_refused)
{
    struct exti_hooks hooks = {.size = sizeof hooks, .before_load = make_for_programs};
    struct exti_ctx_opts opts = iso_opts(in_tmp("c"), "kinds");
    struct exti_module *m = NULL;
    struct exti_error err = {0};
    char original[128];
    struct exti_ctx *ctx;

    iso_build("int begun; __attribute__((constructor)) static void begin(void) { begun++; }",
              "mod.so", "");
    snprintf(original, sizeof original, "%s", in_tmp("mod.so"));
    opts.hooks = &hooks;
    opts.user = original;
    ctx = iso_open_opts(&opts);
    iso_api(ctx);
    want_exti(exti_load(ctx, original, &m, &err), EXTI_E_BUSY, &err);
    want_text(err.message, "give those a directory of their own");
    close_overtaken(ctx);
}

static int make_all_for_programs(void *user, struct exti_ctx *ctx, const char *original,
                                 const char *copy)
{
    (void)ctx;
    (void)copy;
    if (strcmp(original, user) == 0)
        copy_for("c", EXTI_CTX_COPY_ONLY, original);
    return 0;
}

/* The needed API copy has another inode by then, so ld.so would load it a second time. */
ISO_CASE(an_api_copy_that_was_made_again_is_named)
{
    struct exti_hooks hooks = {.size = sizeof hooks, .before_load = make_all_for_programs};
    struct exti_ctx_opts opts = iso_opts(in_tmp("c"), "kinds");
    char original[128];
    struct exti_module *m = NULL;
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    iso_build("int toy_next(void); int step(void); int step(void) { return toy_next(); }", "mod.so",
              "-nostartfiles");
    snprintf(original, sizeof original, "%s", in_tmp("mod.so"));
    opts.hooks = &hooks;
    opts.user = original;
    ctx = iso_open_opts(&opts);
    iso_api(ctx);
    want_exti(exti_load(ctx, original, &m, &err), EXTI_E_INTERPOSED, &err);
    want_text(err.message, "which another process has made again since this context loaded it");

    /* Nor does the context go on, and describe the API copy as it was. */
    iso_build("int two;", "two.so", "");
    want_exti(exti_load(ctx, in_tmp("two.so"), &m, &err), EXTI_E_CHECK, &err);
    want_text(err.message, "made again for another purpose");
    want_int(err.os_error, ENOENT);
    want_sound("c");
    close_overtaken(ctx);
    want_sound("c");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_constructor_does_stays_in_its_context),
        cmocka_unit_test(constructors_get_the_programs_arguments),
        cmocka_unit_test(the_order_of_constructors_is_that_of_ld_so),
        cmocka_unit_test(the_order_is_that_of_ld_so_in_random_graphs),
        cmocka_unit_test(a_nested_opening_runs_the_constructors_that_it_needs),
        cmocka_unit_test(a_library_is_given_to_other_threads_once_it_is_initialised),
        cmocka_unit_test(constructors_that_open_each_others_libraries_end),
        cmocka_unit_test(a_library_that_stayed_mapped_is_not_initialised_again),
        cmocka_unit_test(a_wait_that_is_over_counts_no_more),
        cmocka_unit_test(constructors_of_a_library_with_a_read_only_dynamic_section_run),
        cmocka_unit_test(copies_for_other_programs_keep_their_constructors),
        cmocka_unit_test(a_copy_that_ld_so_has_initialised_is_refused),
        cmocka_unit_test(an_api_copy_that_was_made_again_is_named),
    };

    main_argc = argc;
    main_argv = argv;
    return cmocka_run_group_tests_name("isolation/constructors", tests, NULL, NULL);
}
