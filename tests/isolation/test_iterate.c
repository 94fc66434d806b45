/* A copy's dl_iterate_phdr shows its context's copies as their originals, and the copy may load
 * other libraries during the walk. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>

#include "loader/track/address_map.h"
#include "tests/isolation/build.h"

typedef int (*visitor)(struct dl_phdr_info *info, size_t size, void *data);
typedef int (*iterator)(visitor visit, void *data);

/* Volatile results keep the calls from becoming tail calls.  find_own is a visitor inside the copy,
 * as a statically linked unwinder has one. */
static const char walker[] =
    "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <link.h>\n"
    "static _Thread_local long mark = 77;\n"
    "typedef int (*visitor)(struct dl_phdr_info *, size_t, void *);\n"
    "int walk(visitor visit, void *data)\n"
    "{ int volatile rc = dl_iterate_phdr(visit, data); return rc; }\n"
    "void *looked_up(void)\n"
    "{ void *volatile p = dlsym(dlopen(\"libc.so.6\", RTLD_NOW), \"dl_iterate_phdr\"); return p; "
    "}\n"
    "void *opened(const char *path, int mode)\n"
    "{ void *volatile p = dlopen(path, mode); return p; }\n"
    "static int find_own(struct dl_phdr_info *info, size_t size, void *data)\n"
    "{ (void)size; if (info->dlpi_tls_data != data) return 0;\n"
    "  return (long)info->dlpi_adds - (long)info->dlpi_subs; }\n"
    "int walk_inside(void)\n"
    "{ int volatile rc = dl_iterate_phdr(find_own, &mark); return rc; }\n";

/* The C library does not tell of a variable that a descriptor has put into the static block. */
#ifdef __aarch64__
#define BY_CALLS " -mtls-dialect=trad"
#else
#define BY_CALLS ""
#endif

struct one {
    struct exti_ctx *ctx;
    struct exti_module *m;
    iterator walk, looked_up;
};

static struct one open_one(const char *dir, uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(dir ? in_tmp(dir) : NULL, NULL);
    struct one o;

    if (!file_exists(in_tmp("walker.so")))
        iso_build(walker, "walker.so", "-ftls-model=global-dynamic" BY_CALLS);
    opts.flags = flags;
    o.ctx = iso_open_opts(&opts);
    o.m = iso_load(o.ctx, in_tmp("walker.so"));
    o.walk = (iterator)iso_sym(o.m, "walk");
    o.looked_up = (iterator)call_ptr(o.m, "looked_up");
    return o;
}

/* ---- files that a walk shows ---- */

struct tally {
    const char *path; /* or the end of a path */
    int seen, all, stop_after;
};

static int count_name(struct dl_phdr_info *info, size_t size, void *data)
{
    struct tally *t = data;
    const size_t name = strlen(info->dlpi_name), wanted = strlen(t->path);

    want(size >= offsetof(struct dl_phdr_info, dlpi_tls_data) && info->dlpi_phnum > 1);
    t->all++;
    if (name >= wanted && strcmp(info->dlpi_name + name - wanted, t->path) == 0)
        t->seen++;
    return t->stop_after && t->all == t->stop_after ? 40 + t->all : 0;
}

static int count_seen(iterator walk, const char *path)
{
    char *real = realpath(path, NULL);
    struct tally t = {.path = real ? real : path};

    want_int(walk(count_name, &t), 0);
    free(real);
    return t.seen;
}

static void want_own_files_seen(iterator walk, const struct one *own, const struct one *other)
{
    want_int(count_seen(walk, in_tmp("walker.so")), 1);
    want_int(count_seen(walk, toy("libtoy.so.1")), 1);
    want_int(count_seen(walk, exti_module_copy(own->m)), 0);
    want_int(count_seen(walk, exti_module_copy(other->m)), 0);
    want_int(count_seen(walk, exti_module_copy(iso_api(other->ctx))), 0);
    want(count_seen(walk, "/libc.so.6") == 1);
}

ISO_CASE(a_walk_shows_the_contexts_copies_as_their_originals)
{
    struct one x = open_one("x", 0), y = open_one("y", EXTI_CTX_RENAME);

    want_own_files_seen(x.walk, &x, &y);
    want_own_files_seen(y.walk, &y, &x);
    /* Called from the program, as through libffi: a function that a copy has looked up still serves
     * that copy's context. */
    want(x.looked_up != dl_iterate_phdr && x.looked_up != y.looked_up);
    want_own_files_seen(x.looked_up, &x, &y);
    want_own_files_seen(y.looked_up, &y, &x);
    want((iterator)call_ptr(x.m, "looked_up") == x.looked_up);
    /* The program sees the copies themselves. */
    want_int(count_seen(dl_iterate_phdr, exti_module_copy(x.m)), 1);
    want_int(count_seen(dl_iterate_phdr, exti_module_copy(y.m)), 1);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

static int open_what_is_seen(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct one *o = data;
    const char *base = strrchr(info->dlpi_name, '/');
    void *handle;

    (void)size;
    if (!base || strcmp(base, "/walker.so") != 0)
        return 0;
    handle = ((void *(*)(const char *, int))iso_sym(o->m, "opened"))(info->dlpi_name,
                                                                     RTLD_NOW | RTLD_NOLOAD);
    return handle && dlsym(handle, "walk") == iso_sym(o->m, "walk") ? 5 : -5;
}

ISO_CASE(a_path_that_a_walk_shows_opens_the_contexts_copy)
{
    struct one x = open_one("x", 0), y = open_one("y", 0);

    want_int(x.looked_up(open_what_is_seen, &x), 5);
    want_int(y.walk(open_what_is_seen, &y), 5);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

ISO_CASE(a_visitors_nonzero_return_ends_the_walk)
{
    struct one x = open_one("x", 0);
    struct tally t = {.path = "", .stop_after = 2};

    want_int(x.walk(count_name, &t), 42);
    want_int(t.all, 2);
    iso_close_ctx(x.ctx);
}

/* Only 64 contexts get a function of their own to look up.  The function that the others get shows
 * all files.  A context that is closed frees its function for another one. */
ISO_CASE(more_contexts_than_functions_can_walk)
{
    enum { MANY = 66 };
    struct one o[MANY];

    for (int i = 0; i < MANY; i++)
        o[i] = open_one(iso_text("%d", i), 0);
    for (int i = 0; i < 64; i++)
        want_int(count_seen(o[i].looked_up, in_tmp("walker.so")), 1);
    want(o[64].looked_up == o[65].looked_up);
    want_int(count_seen(o[65].looked_up, exti_module_copy(o[0].m)), 1);
    want_own_files_seen(o[65].walk, &o[65], &o[0]);
    iso_close_ctx(o[7].ctx);
    want((iterator)call_ptr(o[65].m, "looked_up") == o[7].looked_up);
    want_own_files_seen(o[7].looked_up, &o[65], &o[0]);
    for (int i = 0; i < MANY; i++)
        if (i != 7)
            iso_close_ctx(o[i].ctx);
}

/* ---- lingering modules of closed contexts ---- */

/* Paths of a context's copies and addresses of their functions, for use after the context is
 * closed. */
struct left {
    char copy[PATH_MAX], api[PATH_MAX], dir[PATH_MAX];
    iterator walk, looked_up;
    void *(*opened)(const char *, int);
};

static struct left close_mapped(struct one *o)
{
    struct left l = {.walk = o->walk, .looked_up = o->looked_up};
    struct exti_error err = {0};
    size_t left;

    l.opened = (void *(*)(const char *, int))iso_sym(o->m, "opened");
    snprintf(l.copy, sizeof l.copy, "%s", exti_module_copy(o->m));
    snprintf(l.api, sizeof l.api, "%s", exti_module_copy(iso_api(o->ctx)));
    snprintf(l.dir, sizeof l.dir, "%s/", exti_ctx_dir(o->ctx));
    want_exti(exti_ctx_close_report(o->ctx, NULL, NULL, &left, &err), 0, &err);
    want(left >= 2);
    o->ctx = NULL;
    o->m = NULL;
    return l;
}

static int count_in_dir(struct dl_phdr_info *info, size_t size, void *data)
{
    struct tally *t = data;

    (void)size;
    t->seen += strncmp(info->dlpi_name, t->path, strlen(t->path)) == 0;
    return 0;
}

static int count_seen_in(iterator walk, const char *dir)
{
    struct tally t = {.path = dir};

    want_int(walk(count_in_dir, &t), 0);
    return t.seen;
}

static void *walk_in(void *handle)
{
    want(handle);
    return dlsym(handle, "walk");
}

/* No context sees the lingering modules.  The C library's functions, the control, see
 * them. */
static void want_in_no_context(const struct left *l, const struct one *o)
{
    void *(*opened)(const char *, int) = (void *(*)(const char *, int))iso_sym(o->m, "opened");
    void *own = iso_sym(o->m, "walk"), *plain = dlopen(l->copy, RTLD_NOW);

    want(walk_in(plain) == *(void *const *)&l->walk && walk_in(plain) != own);
    want(count_seen_in(dl_iterate_phdr, l->dir) >= 2);
    want_int(count_seen_in(o->walk, l->dir), 0);
    want_int(count_seen_in(o->looked_up, l->dir), 0);
    want_int(count_seen(o->walk, in_tmp("walker.so")), 1);
    want(walk_in(opened(l->copy, RTLD_NOW)) == own);
    want(walk_in(opened(l->copy, RTLD_NOW | RTLD_NOLOAD)) == own);
    want(opened(l->api, RTLD_NOW | RTLD_NOLOAD) == opened(NULL, RTLD_NOW));
    /* Code that still runs in a lingering module gets the C library's functions. */
    want(count_seen_in(l->walk, l->dir) >= 2);
    want(walk_in(l->opened(l->copy, RTLD_NOW)) == walk_in(plain));
    dlclose(plain);
}

ISO_CASE(modules_that_a_thread_keeps_mapped_are_in_no_context)
{
    struct one x = open_one("x", 0), y = open_one("y", 0), z;
    struct exti_module *m = iso_load(x.ctx, iso_text("%s/ext_threads.so", iso_toys()));
    int (*release)(void) = (int (*)(void))iso_sym(m, "threads_release");
    int (*join)(void) = (int (*)(void))iso_sym(m, "threads_join");
    struct left l;

    want_int(call_int(m, "threads_start"), 0);
    l = close_mapped(&x);
    z = open_one("z", EXTI_CTX_RENAME);
    want_in_no_context(&l, &y);
    want_in_no_context(&l, &z);
    release();
    join();
    iso_close_ctx(y.ctx);
    iso_close_ctx(z.ctx);
}

ISO_CASE(modules_of_a_kept_context_are_in_no_context_after_its_close)
{
    struct one x = open_one(NULL, EXTI_CTX_KEEP), y;
    struct left l = close_mapped(&x);

    want(!file_exists(l.copy));
    y = open_one(NULL, 0);
    want_in_no_context(&l, &y);
    iso_close_ctx(y.ctx);
}

/* After it is unmapped the copy is an ordinary file again, which the address map does not know. */
ISO_CASE(a_lingering_module_is_forgotten_once_it_is_unmapped)
{
#ifndef __GLIBC__
    fprintf(stderr, "this C library unmaps nothing\n");
#else
    struct one x = open_one("x", 0), y = open_one("y", 0);
    void *handle = dlopen(exti_module_copy(x.m), RTLD_NOW);
    void *(*opened)(const char *, int) = (void *(*)(const char *, int))iso_sym(y.m, "opened");
    struct left l = close_mapped(&x);
    char original[PATH_MAX];

    want_in_no_context(&l, &y);
    want(exti__address_map_original(l.copy, original, sizeof original));
    want_text(original, "/walker.so");
    dlclose(handle);
    dlclose(handle); /* the lingering module has opened it once more */
    want_int(count_seen_in(dl_iterate_phdr, l.dir), 0);
    want(!exti__address_map_original(l.copy, original, sizeof original));
    want(!opened(l.copy, RTLD_NOW | RTLD_NOLOAD));
    iso_close_ctx(y.ctx);
#endif
}

ISO_CASE(a_lingering_module_stays_in_its_context_and_can_be_loaded_again)
{
    struct one x = open_one("x", 0), y = open_one("y", 0);
    struct exti_module *other = iso_load(x.ctx, toy("ext_a.so"));
    void *handle = dlopen(exti_module_copy(other), RTLD_NOW);
    char copy[PATH_MAX];
    struct exti_error err = {0};

    want(handle);
    snprintf(copy, sizeof copy, "%s", exti_module_copy(other));
    want_exti(exti_close(other, &err), 0, &err);
    want_int(count_seen(x.walk, copy), 1);
    want_int(count_seen(y.walk, copy), 0);
    iso_load(x.ctx, toy("ext_a.so"));
    want_int(count_seen(x.walk, copy), 0);
    want_int(count_seen(x.walk, toy("ext_a.so")), 1);
    want_int(count_seen(y.walk, copy), 0);
    dlclose(handle);
    iso_close_ctx(x.ctx);
    want_int(count_seen(y.walk, toy("ext_a.so")), 0);
    iso_close_ctx(y.ctx);
}

static _Atomic int stop;

static void *walk_and_open(void *arg)
{
    const struct one *o = arg;
    void *(*opened)(const char *, int) = (void *(*)(const char *, int))iso_sym(o->m, "opened");
    void *own = iso_sym(o->m, "walk");

    while (!stop) {
        want_int(count_seen(o->walk, in_tmp("walker.so")), 1);
        want(walk_in(opened(in_tmp("walker.so"), RTLD_NOW)) == own);
    }
    return NULL;
}

static void *open_and_close(void *arg)
{
    for (int i = 0; i < 12; i++) {
        struct one o = open_one(NULL, i % 3 ? 0 : EXTI_CTX_KEEP);

        iso_close_ctx(o.ctx);
    }
    return arg;
}

/* Gives the sanitizers a chance to see a race. */
ISO_CASE(contexts_can_be_closed_while_another_one_walks)
{
    struct one y = open_one("y", 0);
    struct left l;
    pthread_t closers[2], walks;

    for (int i = 0; i < 2; i++)
        want_int(pthread_create(&closers[i], NULL, open_and_close, NULL), 0);
    want_int(pthread_create(&walks, NULL, walk_and_open, &y), 0);
    for (int i = 0; i < 12; i++) {
        struct one x = open_one(NULL, EXTI_CTX_KEEP);

        l = close_mapped(&x);
        want_int(count_seen_in(y.walk, l.dir), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(closers[i], NULL);
    stop = 1;
    pthread_join(walks, NULL);
    want_in_no_context(&l, &y);
    iso_close_ctx(y.ctx);
}

/* ---- loading during a walk ---- */

/* One thread walks.  Once another thread is loading a library, the first one loads a library too,
 * and the second one's library loads another in its initialiser.  If the walk held a lock, each
 * thread would wait for the other. */
struct meeting {
    iterator walk;
    void *(*load)(const char *path); /* called in the walk */
    pthread_barrier_t walking, loading;
};

static struct meeting *meeting;

static const char loads_another[] =
    "#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "__attribute__((constructor)) static void load(void)\n"
    "{ void (*begun)(void); void *p = NULL; const char *next = getenv(\"EXTI_TEST_NEXT\");\n"
    "  if (!next || sscanf(getenv(\"EXTI_TEST_BEGUN\"), \"%p\", &p) != 1) return;\n"
    "  *(void **)&begun = p; begun();\n"
    "  if (!dlopen(next, RTLD_NOW)) abort(); }\n";

static void has_begun(void)
{
    pthread_barrier_wait(&meeting->loading);
}

static int load_in_walk(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info, (void)size, (void)data;
    pthread_barrier_wait(&meeting->walking);
    pthread_barrier_wait(&meeting->loading);
    want(meeting->load(in_tmp("third.so")));
    return 1;
}

static void *walk_and_load(void *arg)
{
    want_int(meeting->walk(load_in_walk, NULL), 1);
    return arg;
}

static void *load_plainly(const char *path)
{
    return dlopen(path, RTLD_NOW);
}

/* Before contexts are opened, whose environment is what the process's is then. */
static void tell_the_library(void)
{
    setenv("EXTI_TEST_NEXT", in_tmp("second.so"), 1);
    setenv("EXTI_TEST_BEGUN", iso_text("%p", (void *)(uintptr_t)has_begun), 1);
}

/* The context `other` loads the library; the program itself does, and hangs, if that is NULL. */
static void walk_and_load_at_once(iterator walk, void *(*load)(const char *),
                                  struct exti_ctx *other)
{
    struct meeting here = {.walk = walk, .load = load};
    pthread_t thread;

    meeting = &here;
    iso_build(loads_another, "first.so", "");
    iso_build("int second;", "second.so", "");
    iso_build("int third;", "third.so", "");
    pthread_barrier_init(&here.walking, NULL, 2);
    pthread_barrier_init(&here.loading, NULL, 2);
    want_int(pthread_create(&thread, NULL, walk_and_load, NULL), 0);
    pthread_barrier_wait(&here.walking);
    if (!other) {
        alarm(5);
        want(dlopen(in_tmp("first.so"), RTLD_NOW));
    } else {
        iso_load(other, in_tmp("first.so"));
    }
    want_int(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&here.walking);
    pthread_barrier_destroy(&here.loading);
}

static struct one loader;

static void *load_in_context(const char *path)
{
    return ((void *(*)(const char *, int))iso_sym(loader.m, "opened"))(path, RTLD_NOW);
}

ISO_CASE(a_walk_may_load_while_another_context_loads)
{
    struct one y;

    tell_the_library();
    loader = open_one("x", 0);
    y = open_one("y", 0);
    walk_and_load_at_once(loader.walk, load_in_context, y.ctx);
    iso_close_ctx(y.ctx);
    iso_close_ctx(loader.ctx);
}

ISO_CASE(a_walk_by_a_looked_up_function_may_load_too)
{
    struct one y;

    tell_the_library();
    loader = open_one("x", 0);
    y = open_one("y", 0);
    walk_and_load_at_once(loader.looked_up, load_in_context, y.ctx);
    iso_close_ctx(y.ctx);
    iso_close_ctx(loader.ctx);
}

#ifdef __GLIBC__
static void walk_and_load_plainly(void *arg)
{
    (void)arg;
    tell_the_library();
    walk_and_load_at_once(dl_iterate_phdr, load_plainly, NULL);
}

/* The control: the test above can hang. */
static void control_the_c_librarys_walk_hangs(void **state)
{
    int status = 0;
    pid_t pid;

    (void)state;
    snprintf(iso_tmp, sizeof iso_tmp, "/tmp/exti-test.XXXXXX");
    assert_non_null(mkdtemp(iso_tmp));
    pid = iso_spawn(walk_and_load_plainly, NULL);
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    assert_int_equal(system(iso_text("rm -rf %s", iso_tmp)), 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGALRM);
}
#endif

/* ---- a visitor in a copy ---- */

/* Such a walk holds the C library's lock, and gives the C library's counts and the calling thread's
 * thread-local variables. */
ISO_CASE(an_unwinders_walk_is_the_c_librarys)
{
    struct one x = open_one("x", 0), y = open_one("y", 0);

    want(call_int(x.m, "walk_inside") > 3);
    want(call_int(y.m, "walk_inside") == call_int(x.m, "walk_inside"));
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_shows_the_contexts_copies_as_their_originals),
        cmocka_unit_test(a_path_that_a_walk_shows_opens_the_contexts_copy),
        cmocka_unit_test(a_visitors_nonzero_return_ends_the_walk),
        cmocka_unit_test(more_contexts_than_functions_can_walk),
        cmocka_unit_test(modules_that_a_thread_keeps_mapped_are_in_no_context),
        cmocka_unit_test(modules_of_a_kept_context_are_in_no_context_after_its_close),
        cmocka_unit_test(a_lingering_module_is_forgotten_once_it_is_unmapped),
        cmocka_unit_test(a_lingering_module_stays_in_its_context_and_can_be_loaded_again),
        cmocka_unit_test(contexts_can_be_closed_while_another_one_walks),
        cmocka_unit_test(a_walk_may_load_while_another_context_loads),
        cmocka_unit_test(a_walk_by_a_looked_up_function_may_load_too),
#ifdef __GLIBC__
        cmocka_unit_test(control_the_c_librarys_walk_hangs),
#endif
        cmocka_unit_test(an_unwinders_walk_is_the_c_librarys),
    };

    return cmocka_run_group_tests_name("isolation/iterate", tests, NULL, NULL);
}
