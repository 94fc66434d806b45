/* Files of contexts that have ended become those of the next ones. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/store/store_spares.h"
#include "tests/isolation/build.h"

static const char library[] =
    "int count; int dep_next(void); int dep_next(void) { return ++count; }";
static const char user[] = "int dep_next(void); int next(void); int next(void) "
                           "{ return 10 * dep_next(); }";

static const char *mod(void)
{
    return in_tmp("mod.so");
}

static struct exti_ctx *open_in(const char *dir, const char *name, uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(dir ? in_tmp(dir) : NULL, name);

    opts.flags = flags;
    return iso_open_opts(&opts);
}

static struct exti_ctx *open_private(void)
{
    return open_in(NULL, NULL, 0);
}

/* Two contexts that have planned copies, so that later ones have theirs by pattern. */
struct planners {
    struct exti_ctx *ctx[2];
};

static struct planners plan_two(void)
{
    struct planners p;

    iso_build(library, "libdep.so", "-Wl,-soname,libdep.so");
    iso_build(user, "mod.so", iso_text("-L'%s' -ldep -Wl,-rpath,'%s'", iso_tmp, iso_tmp));
    for (int i = 0; i < 2; i++) {
        p.ctx[i] = open_private();
        iso_load(p.ctx[i], mod());
    }
    return p;
}

static void close_planners(const struct planners *p)
{
    for (int i = 0; i < 2; i++)
        iso_close_ctx(p->ctx[i]);
}

static long inode_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (long)st.st_ino : 0;
}

/* A context's file.  It is held open, so that no other file gets its inode. */
struct copy {
    long inode;
    char path[EXTI_PATH_MAX], dir[EXTI_PATH_MAX];
};

/* Loads mod.so, which must begin anew, and tells which file it is. */
static struct copy load(struct exti_ctx *ctx)
{
    struct exti_module *m = iso_load(ctx, mod());
    struct copy c;

    want_int(call_int(m, "next"), 10);
    iso_prove_clean(ctx, 3);
    snprintf(c.path, sizeof c.path, "%s", exti_module_copy(m));
    snprintf(c.dir, sizeof c.dir, "%s", exti_ctx_dir(ctx));
    c.inode = inode_of(c.path);
    want(c.inode && open(c.path, O_RDONLY) >= 0);
    return c;
}

/* Of a context that has ended. */
static struct copy use_and_close(struct exti_ctx *ctx)
{
    const struct copy c = load(ctx);

    iso_close_ctx(ctx);
    return c;
}

static bool gets(struct copy c)
{
    struct exti_ctx *next = open_private();
    const bool same = load(next).inode == c.inode;

    iso_close_ctx(next);
    return same;
}

ISO_CASE(the_next_context_gets_the_files)
{
    const struct planners p = plan_two();
    const struct copy c = use_and_close(open_private());
    struct exti_ctx *d = open_private();
    const struct copy of_d = load(d);

    want_int(of_d.inode, c.inode);
    want_int(file_exists(c.path), 0);
    want_int(file_exists(c.dir), 0);
    /* Another context that is open at the same time has files of its own. */
    want(!gets(of_d));
    want_int(call_int(iso_load(d, mod()), "next"), 20);
    iso_close_ctx(d);
    want_int(file_exists(of_d.path), 1);
    close_planners(&p);
    want_int(file_exists(of_d.dir), 0);
}

/* As bytes, the file is what a plan gives. */
ISO_CASE(such_a_file_is_what_a_plan_gives)
{
    const struct planners p = plan_two();
    const struct copy c = use_and_close(open_in("c", "cccc4444", EXTI_CTX_ONE_SHOT));
    struct exti_ctx *d = open_in("d", "dddd5555", EXTI_CTX_ONE_SHOT);
    struct copy of_d = load(d);

    want_int(of_d.inode, c.inode);
    want(system(iso_text("cp -r '%s' '%s'", of_d.dir, in_tmp("kept"))) == 0);
    iso_close_ctx(d);
    close_planners(&p);
    d = open_in("e", "dddd5555", EXTI_CTX_ONE_SHOT);
    load(d);
    want(system(iso_text("diff -r '%s' '%s'", in_tmp("kept"), exti_ctx_dir(d))) == 0);
    iso_close_ctx(d);
}

ISO_CASE(a_file_that_is_mapped_is_nobody_elses)
{
    const struct planners p = plan_two();
    struct exti_ctx *c = open_private();
    const struct copy of_c = load(c);
    void *held = dlopen(of_c.path, RTLD_NOW);
    size_t left = 0;

    want(held);
    want_int(exti_ctx_close_report(c, NULL, NULL, &left, NULL), 0);
    want(left > 0);
    want(!gets(of_c));
    want_int(((int (*)(void))dlsym(held, "next"))(), 20);
    dlclose(held);
    close_planners(&p);
}

/* A child has the pages of its parent's mappings, which show what is written to the file. */
ISO_CASE(a_file_that_a_forked_child_may_have_mapped_is_nobody_elses)
{
    const struct planners p = plan_two();
    struct exti_ctx *c = open_private();
    const struct copy of_c = load(c);
    const pid_t child = fork();
    int status;

    if (!child)
        _exit(0);
    want(waitpid(child, &status, 0) == child);
    iso_close_ctx(c);
    want_int(file_exists(of_c.path), 0);
    want(!gets(of_c));
    close_planners(&p);
}

/* Its end need be no exit, so that it leaves nothing for later. */
ISO_CASE(a_forked_child_keeps_none_itself)
{
    const struct planners p = plan_two();
    const pid_t child = fork();
    struct copy c;
    int status;

    if (!child) {
        struct exti_ctx *d = open_private(), *e = open_private();

        load(d);
        c = use_and_close(e);
        iso_close_ctx(d);
        _exit(file_exists(c.dir) ? 1 : 0);
    }
    want(waitpid(child, &status, 0) == child);
    want_int(status, 0);
    close_planners(&p);
}

/* Those of contexts that are open then stay. */
ISO_CASE(the_end_of_the_process_leaves_none)
{
    char *dir = NULL;
    pid_t child;
    int status;
    FILE *f;

    child = fork();
    if (!child) {
        struct copy c;

        plan_two();
        c = use_and_close(open_private());
        iso_write_text(in_tmp("spare"), file_exists(c.dir) ? c.dir : "/");
        exit(0);
    }
    want(waitpid(child, &status, 0) == child);
    want_int(status, 0);
    f = fopen(in_tmp("spare"), "r");
    want(f && fscanf(f, "%ms", &dir) == 1);
    want_int(file_exists(dir), 0);
    free(dir);
    fclose(f);
}

ISO_CASE(a_forked_child_leaves_the_parents_files_alone)
{
    const struct planners p = plan_two();
    const struct copy c = use_and_close(open_private());
    const pid_t child = fork();
    int status;

    if (!child) {
        const bool taken = gets(c);

        exti__spares_trim(0);
        _exit(taken ? 1 : 0);
    }
    want(waitpid(child, &status, 0) == child);
    want_int(status, 0);
    want_int(inode_of(c.path), c.inode);
    want(gets(c));
    close_planners(&p);
}

/* What somebody has done to the file, and whether it is there afterwards. */
static void spoil_by_writing(const char *path)
{
    const int fd = open(path, O_WRONLY);

    want(pwrite(fd, "x", 1, 4096) == 1 && close(fd) == 0);
}

static void spoil_by_linking(const char *path)
{
    want(link(path, iso_text("%s-too", path)) == 0);
}

static void spoil_by_another(const char *path)
{
    want(rename(path, iso_text("%s-away", path)) == 0);
    iso_write_text(path, "another");
}

ISO_CASE(a_file_that_has_changed_is_left_alone)
{
    static void (*const spoil[])(const char *path) = {spoil_by_writing, spoil_by_linking,
                                                      spoil_by_another};
    const struct planners p = plan_two();

    for (size_t i = 0; i < ARRAY_SIZE(spoil); i++) {
        const char *const dir = iso_text("c%zu", i);
        struct copy c = use_and_close(open_in(dir, NULL, EXTI_CTX_ONE_SHOT));

        spoil[i](c.path);
        c.inode = inode_of(c.path);
        want(!gets(c));
        want_int(inode_of(c.path), c.inode);
    }
    close_planners(&p);
}

ISO_CASE(folders_that_are_gone_do_no_harm)
{
    const struct planners p = plan_two();
    const struct copy c = use_and_close(open_in("c", NULL, EXTI_CTX_ONE_SHOT));

    want(system(iso_text("rm -r '%s'", c.dir)) == 0);
    gets(c);
    close_planners(&p);
}

/* A source that is made again has another version, so its copies are planned. */
ISO_CASE(a_copy_of_another_version_is_of_no_use)
{
    const struct planners p = plan_two();
    const struct copy c = use_and_close(open_private());
    struct exti_ctx *d;

    iso_build("int next(void); int next(void) { return 7; }", "mod.so", "");
    d = open_private();
    want_int(call_int(iso_load(d, mod()), "next"), 7);
    want(inode_of(exti_module_copy(iso_load(d, mod()))) != c.inode);
    iso_close_ctx(d);
    close_planners(&p);
}

/* Directories of their own are kept by whoever has given them. */
ISO_CASE(a_persistent_directory_keeps_its_files)
{
    const struct planners p = plan_two();
    const struct copy c = use_and_close(open_in("c", NULL, 0));

    want(!gets(c));
    want_int(inode_of(c.path), c.inode);
    iso_dir_clean(in_tmp("c"));
    close_planners(&p);
}

#define MANY 6

static int count_folders(const struct copy *c, int n)
{
    int there = 0;

    for (int i = 0; i < n; i++)
        there += file_exists(c[i].dir) != 0;
    return there;
}

/* No more than there are contexts for which they could be. */
ISO_CASE(no_more_is_kept_than_contexts_are_open)
{
    const struct planners p = plan_two();
    struct exti_ctx *ctx[MANY];
    struct copy c[MANY];

    for (int i = 0; i < MANY; i++)
        c[i] = load(ctx[i] = open_private());
    for (int i = 0; i < MANY; i++) {
        const int open = MANY - i - 1 + 2;

        iso_close_ctx(ctx[i]);
        want_int(count_folders(c, i + 1), i + 1 < open ? i + 1 : open);
    }
    want_int(file_exists(c[MANY - 1].dir), 1); /* the newest */
    iso_close_ctx(p.ctx[0]);
    want_int(count_folders(c, MANY), 1);
    iso_close_ctx(p.ctx[1]);
    want_int(count_folders(c, MANY), 0);
}

#define THREADS 6
#define ROUNDS 15

static void *open_and_close(void *p)
{
    long *sum = p;

    for (int i = 0; i < ROUNDS; i++) {
        struct exti_ctx *c = open_private();
        struct exti_module *m = iso_load(c, mod());

        *sum += call_int(m, "next") + call_int(m, "next");
        iso_close_ctx(c);
    }
    return NULL;
}

ISO_CASE(threads_take_and_give_at_once)
{
    const struct planners p = plan_two();
    long sum[THREADS] = {0};
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        want_int(pthread_create(&thread[i], NULL, open_and_close, &sum[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        want_int(pthread_join(thread[i], NULL), 0);
        want_int(sum[i], ROUNDS * (10 + 20));
    }
    close_planners(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_context_gets_the_files),
        cmocka_unit_test(such_a_file_is_what_a_plan_gives),
        cmocka_unit_test(a_file_that_is_mapped_is_nobody_elses),
        cmocka_unit_test(a_file_that_a_forked_child_may_have_mapped_is_nobody_elses),
        cmocka_unit_test(a_forked_child_keeps_none_itself),
        cmocka_unit_test(the_end_of_the_process_leaves_none),
        cmocka_unit_test(a_forked_child_leaves_the_parents_files_alone),
        cmocka_unit_test(a_file_that_has_changed_is_left_alone),
        cmocka_unit_test(folders_that_are_gone_do_no_harm),
        cmocka_unit_test(a_copy_of_another_version_is_of_no_use),
        cmocka_unit_test(a_persistent_directory_keeps_its_files),
        cmocka_unit_test(no_more_is_kept_than_contexts_are_open),
        cmocka_unit_test(threads_take_and_give_at_once),
    };

    return cmocka_run_group_tests_name("isolation/spares", tests, NULL, NULL);
}
