/* Copies that are made by pattern, from the third context on. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/store/store_make.h"
#include "loader/store/store_pattern.h"
#include "loader/store/store_write.h"
#include "loader/track/context.h"
#include "tests/isolation/build.h"

static const char library[] =
    "int count; int dep_next(void); int dep_next(void) { return ++count; }";
static const char user[] = "int dep_next(void); int next(void); int next(void) "
                           "{ return 10 * dep_next(); }";

/* 95 bytes, a number follows. */
#define NAME                                                                                       \
    "a_name_that_is_long_so_that_many_of_them_take_as_many_bytes_as_patterns_may_have_between_"    \
    "two_c"

static void build(void)
{
    iso_build(library, "libdep.so", "-Wl,-soname,libdep.so");
    iso_build(user, "mod.so", iso_text("-L'%s' -ldep -Wl,-rpath,'%s'", iso_tmp, iso_tmp));
}

/* Whether the context gets its copy of a file by pattern.  It is not recorded. */
static bool uses_pattern(struct exti_ctx *ctx, const char *file, bool symbolic)
{
    const struct exti_copy_request r = {
        .source = file, .first = file, .root = true, .symbolic = symbolic};
    struct exti_pattern_turn turn;
    struct exti_entry e;
    bool used;

    pthread_mutex_lock(&ctx->store.lock);
    used = exti__pattern_use(&ctx->store, &r, &e, &turn);
    exti__pattern_planned(&turn);
    pthread_mutex_unlock(&ctx->store.lock);
    if (used) {
        want(unlink(iso_text("%s/%s", exti_ctx_dir(ctx), e.copy)) == 0);
        exti__entry_clear(&e);
    }
    return used;
}

static struct exti_ctx *open_with(const char *dir, const char *name, uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(dir ? in_tmp(dir) : NULL, name);

    opts.flags = flags;
    return iso_open_opts(&opts);
}

static const char *mod(void)
{
    return in_tmp("mod.so");
}

/* Two contexts that have planned copies, each by itself. */
struct planners {
    struct exti_ctx *ctx[2];
};

static struct planners plan_two(void)
{
    struct planners p;

    build();
    for (int i = 0; i < 2; i++) {
        p.ctx[i] = iso_open(i ? "b" : "a");
        want(!uses_pattern(p.ctx[i], mod(), false));
        iso_load(p.ctx[i], mod());
    }
    return p;
}

static void close_all(const struct planners *p, struct exti_ctx *ctx)
{
    iso_close_ctx(ctx);
    for (int i = 0; i < 2; i++)
        iso_close_ctx(p->ctx[i]);
}

/* exti_dir_verify plans each copy again. */
ISO_CASE(from_the_third_context_on_copies_are_made_by_pattern)
{
    const struct planners p = plan_two();
    struct exti_ctx *c = iso_open("c"), *d = iso_open(NULL);

    want(uses_pattern(c, mod(), false));
    want(uses_pattern(d, mod(), false));
    want_int(call_int(iso_load(c, mod()), "next"), 10);
    want_int(call_int(iso_load(c, mod()), "next"), 20);
    want_int(call_int(iso_load(d, mod()), "next"), 10);
    want_int(call_int(iso_load(p.ctx[0], mod()), "next"), 10);
    iso_prove_clean(c, 3);
    iso_dir_clean(exti_ctx_dir(c));
    iso_dir_clean(exti_ctx_dir(p.ctx[1]));
    iso_close_ctx(d);
    close_all(&p, c);
    want_int(file_exists(in_tmp("c/manifest.json")), 1);
}

/* The entry that the manifest gets is the one that a plan would have given. */
ISO_CASE(contexts_one_after_the_other_have_patterns_too)
{
    struct exti_ctx *ctx;

    build();
    for (int i = 0; i < 2; i++) {
        ctx = iso_open(i ? "b" : "a");
        want(!uses_pattern(ctx, mod(), false));
        iso_load(ctx, mod());
        iso_close_ctx(ctx);
    }
    ctx = iso_open("c");
    want(uses_pattern(ctx, mod(), false));
    want_int(call_int(iso_load(ctx, mod()), "next"), 10);
    iso_prove_clean(ctx, 3);
    iso_dir_clean(exti_ctx_dir(ctx));
    iso_close_ctx(ctx);
}

/* The names of a copy's symbols are its own. */
ISO_CASE(patterns_that_take_much_memory_end_with_the_last_context)
{
    const char *const large = "__asm__(\".altmacro\\n\"\n"
                              "\".macro name\\n.globl " NAME "\\\\@\\n" NAME "\\\\@:\\n.endm\\n\"\n"
                              "\".rept 180000\\nname\\n.endr\");";
    struct exti_ctx *ctx;

    build();
    iso_build(large, "large.so", "-Wl,-soname,large.so");
    for (int i = 0; i < 2; i++) {
        ctx = iso_open(i ? "b" : "a");
        iso_load(ctx, mod());
        iso_load(ctx, in_tmp("large.so"));
        iso_close_ctx(ctx);
    }
    ctx = iso_open("c");
    want(!uses_pattern(ctx, mod(), false));
    iso_close_ctx(ctx);
}

ISO_CASE(such_a_context_can_be_opened_again)
{
    const struct planners p = plan_two();
    struct exti_ctx *c = iso_open("c");

    want_int(call_int(iso_load(c, mod()), "next"), 10);
    close_all(&p, c);
    iso_dir_clean(in_tmp("c"));
    c = iso_open("c");
    want_int(call_int(iso_load(c, mod()), "next"), 10);
    iso_prove_clean(c, 3);
    iso_close_ctx(c);
}

/* A context that gets its copy of the file in a thread. */
struct third {
    struct exti_ctx *ctx;
    bool used_pattern;
};

static void *copy_in_thread(void *p)
{
    struct third *t = p;

    t->used_pattern = uses_pattern(t->ctx, mod(), false);
    return NULL;
}

/* Plans the copy as exti__store_make does, with another context asking for its own meanwhile. */
static bool third_uses_pattern_of(struct exti_ctx *second, struct exti_ctx *third, bool fails)
{
    const struct exti_copy_request r = {.source = mod(), .first = mod(), .root = true};
    struct third t = {.ctx = third};
    struct exti_store *s = &second->store;
    struct exti_pattern_turn turn;
    struct exti_making m = {0};
    pthread_t thread;

    pthread_mutex_lock(&s->lock);
    want(!exti__pattern_use(s, &r, &m.e, &turn));
    want_int(exti__store_plan(s, &r, &m, NULL), 0);
    want_int(pthread_create(&thread, NULL, copy_in_thread, &t), 0);
    usleep(20000);
    if (!fails)
        want_int(exti__store_write(s, m.im, &m.edits, &r, &m.e, NULL), 0);
    exti__pattern_planned(&turn);
    exti__entry_clear(&m.e);
    exti__making_clear(&m);
    pthread_mutex_unlock(&s->lock);
    want_int(pthread_join(thread, NULL), 0);
    return t.used_pattern;
}

/* From now on the context plans its copy. */
static void begin_plan(struct exti_ctx *ctx, struct exti_pattern_turn *turn)
{
    const struct exti_copy_request r = {.source = mod(), .first = mod(), .root = true};
    struct exti_entry e;

    pthread_mutex_lock(&ctx->store.lock);
    want(!exti__pattern_use(&ctx->store, &r, &e, turn));
    pthread_mutex_unlock(&ctx->store.lock);
    want(turn->known);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

ISO_CASE(a_third_context_waits_while_the_second_plans)
{
    struct exti_ctx *a, *b, *c;

    build();
    a = iso_open("a");
    b = iso_open("b");
    c = iso_open("c");
    iso_load(a, mod());
    want(!third_uses_pattern_of(b, c, true));
    want(third_uses_pattern_of(b, c, false));
    iso_close_ctx(c);
    iso_close_ctx(b);
    iso_close_ctx(a);
}

/* As in a forked child, which has no thread that would end the plan. */
ISO_CASE(nobody_waits_for_ever)
{
    struct exti_pattern_turn turn;
    struct exti_ctx *a, *b, *c;
    double began;

    build();
    a = iso_open("a");
    b = iso_open("b");
    c = iso_open("c");
    iso_load(a, mod());
    begin_plan(b, &turn);
    began = now();
    want(!uses_pattern(c, mod(), false));
    want(now() - began > 0.2); /* it has waited */
    want_int(call_int(iso_load(c, mod()), "next"), 10);
    exti__pattern_planned(&turn);
    iso_close_ctx(c);
    iso_close_ctx(b);
    iso_close_ctx(a);
}

#ifndef __SANITIZE_THREAD__ /* which reports the parent's thread as the child's */
/* Its parent's threads that plan and wait are not there. */
ISO_CASE(a_forked_child_waits_for_nobody_for_ever)
{
    struct third t = {.ctx = NULL};
    struct exti_pattern_turn turn;
    struct exti_ctx *a, *b, *c;
    pthread_t thread;
    int status;
    pid_t child;

    build();
    a = iso_open("a");
    b = iso_open("b");
    t.ctx = iso_open("c");
    c = iso_open("d");
    iso_load(a, mod());
    begin_plan(b, &turn);
    want_int(pthread_create(&thread, NULL, copy_in_thread, &t), 0);
    usleep(20000);
    child = fork();
    if (!child) {
        alarm(20);
        iso_load(b, mod());
        _exit(uses_pattern(c, mod(), false) ? 0 : 1);
    }
    want_int(waitpid(child, &status, 0), child);
    want_int(status, 0);
    exti__pattern_planned(&turn);
    want_int(pthread_join(thread, NULL), 0);
    iso_close_ctx(c);
    iso_close_ctx(t.ctx);
    iso_close_ctx(b);
    iso_close_ctx(a);
}
#endif

/* A thread may be cancelled while it waits. */
ISO_CASE(a_cancelled_thread_holds_nobody_up)
{
    struct exti_pattern_turn turn;
    struct third t = {.ctx = NULL};
    struct exti_ctx *a, *b;
    pthread_t thread;

    build();
    a = iso_open("a");
    b = iso_open("b");
    t.ctx = iso_open("c");
    iso_load(a, mod());
    begin_plan(b, &turn);
    want_int(pthread_create(&thread, NULL, copy_in_thread, &t), 0);
    usleep(20000);
    want_int(pthread_cancel(thread), 0);
    want_int(pthread_join(thread, NULL), 0);
    alarm(20);
    exti__pattern_planned(&turn);
    want_int(call_int(iso_load(b, mod()), "next"), 10);
    iso_close_ctx(t.ctx);
    iso_close_ctx(b);
    iso_close_ctx(a);
}

/* ld.so finds them by the ids that their copies get. */
ISO_CASE(libraries_without_a_name_can_be_needed)
{
    struct exti_ctx *ctx[3];

    iso_write_text(in_tmp("versions"), "V1 { dep_next; };");
    iso_build(library, "libdep.so", iso_text("-Wl,--version-script='%s'", in_tmp("versions")));
    iso_build(user, "mod.so", iso_text("-L'%s' -ldep -Wl,-rpath,'%s'", iso_tmp, iso_tmp));
    want(system(iso_text("readelf -d '%s' | grep -q SONAME", in_tmp("libdep.so"))) != 0);
    for (int i = 0; i < 3; i++) {
        ctx[i] = iso_open(iso_text("%c", 'a' + i));
        want_int(call_int(iso_load(ctx[i], in_tmp("libdep.so")), "dep_next"), 1);
        want_int(call_int(iso_load(ctx[i], mod()), "next"), 20);
    }
    for (int i = 3; i--;) {
        want_int(call_int(iso_load(ctx[i], mod()), "next"), 30);
        iso_prove_clean(ctx[i], 3);
        iso_dir_clean(exti_ctx_dir(ctx[i]));
        iso_close_ctx(ctx[i]);
    }
}

/* The API library's id has as much of the context's name as the original's leaves room for: of the
 * first two of these names, the same, so that only the third one tells where others have theirs. */
ISO_CASE(names_that_begin_alike_mislead_nobody)
{
    static const struct {
        const char *name;
        bool by_pattern;
    } contexts[] = {{"aaaa1111", false}, {"aaaa2222", false}, {"bbbb3333", false},
                    {"cccc4444", true},  {"aaaa5555", true},  {"bbbb3366", true}};
    struct exti_ctx *c[ARRAY_SIZE(contexts)];

    build();
    for (size_t i = 0; i < ARRAY_SIZE(contexts); i++) {
        c[i] = open_with(contexts[i].name, contexts[i].name, 0);
        want_int(c[i]->store.manifest.api.marks.made, contexts[i].by_pattern);
        want_int(call_int(iso_load(c[i], mod()), "next"), 10);
        iso_dir_clean(exti_ctx_dir(c[i]));
    }
    for (size_t i = 0; i < ARRAY_SIZE(contexts); i++)
        iso_close_ctx(c[i]);
}

ISO_CASE(contexts_of_another_kind_plan_their_own)
{
    static const struct exti_rule rule = {"libdep*", 1};
    const struct planners p = plan_two();
    struct exti_ctx_opts opts = iso_opts(in_tmp("shares"), NULL);
    struct exti_ctx *c;
    const struct {
        const char *dir, *name;
        uint32_t flags;
    } kinds[] = {{"long", "morethaneight", 0},
                 {"full", NULL, EXTI_CTX_FULL_COPIES},
                 {"renamed", NULL, EXTI_CTX_RENAME},
                 {"only", NULL, EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING}};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        c = open_with(kinds[i].dir, kinds[i].name, kinds[i].flags);
        want(!uses_pattern(c, mod(), false));
        iso_close_ctx(c);
    }
    opts.rules = &rule;
    opts.rule_count = 1;
    c = iso_open_opts(&opts);
    want(!uses_pattern(c, mod(), false));
    iso_close_ctx(c);
    c = iso_open("c");
    want(!uses_pattern(c, mod(), true));
    want(uses_pattern(c, mod(), false));
    close_all(&p, c);
}

ISO_CASE(what_has_changed_is_planned)
{
    const struct planners p = plan_two();
    struct exti_ctx *c = iso_open("c");

    /* A file that is there may be another process's. */
    want(uses_pattern(c, mod(), false));
    iso_load(c, mod());
    want(!uses_pattern(c, mod(), false));
    iso_close_ctx(c);
    c = iso_open("d");
    want(rename(in_tmp("libdep.so"), in_tmp("away")) == 0);
    want(!uses_pattern(c, mod(), false));
    want(rename(in_tmp("away"), in_tmp("libdep.so")) == 0);
    want(uses_pattern(c, mod(), false));
    iso_build("int next(void); int next(void) { return 7; }", "mod.so", "");
    want(!uses_pattern(c, mod(), false));
    want_int(call_int(iso_load(c, mod()), "next"), 7);
    iso_dir_clean(exti_ctx_dir(c));
    close_all(&p, c);
}

/* A context whose copies are there was made by an earlier process, or by another. */
ISO_CASE(directories_that_others_have_made_are_planned)
{
    struct exti_ctx *c = iso_open("c");
    struct planners p;

    iso_close_ctx(c);
    p = plan_two();
    c = iso_open("c");
    want(!uses_pattern(c, mod(), false));
    want_int(call_int(iso_load(c, mod()), "next"), 10);
    close_all(&p, c);
}

/* ---- one-shot directories --------------------------------------------------------------------- */

static struct exti_ctx *open_one_shot(const char *dir)
{
    return open_with(dir, NULL, EXTI_CTX_ONE_SHOT);
}

/* Planned, and by pattern. */
ISO_CASE(a_one_shot_directory_stays_and_has_copies_alone)
{
    const struct planners p = plan_two();
    const char *const dirs[] = {"first", "second", "third"};

    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        struct exti_ctx *c = open_one_shot(dirs[i]);
        struct exti_module *m = iso_load(c, mod());
        char *copy = strdup(exti_module_copy(m));

        want_int(call_int(m, "next"), 10);
        iso_prove_clean(c, 3);
        iso_close_ctx(c);
        want_int(file_exists(copy), 1);
        want_int(file_exists(iso_text("%s/manifest.json", in_tmp(dirs[i]))), 0);
        free(copy);
    }
    close_all(&p, NULL);
}

ISO_CASE(a_one_shot_directory_must_be_new)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("there"), NULL);
    struct exti_error err = {0};
    struct exti_ctx *c = NULL;

    want(mkdir(in_tmp("there"), 0755) == 0);
    opts.flags = EXTI_CTX_ONE_SHOT;
    want_int(exti_ctx_open(&c, &opts, &err), EXTI_E_IO);
    want_int(err.os_error, EEXIST);
    want_text(err.file, in_tmp("there"));
    want(!c);
    want_int(file_exists(in_tmp("there")), 1);
}

/* Both make copies there, each by itself. */
ISO_CASE(a_forked_child_shares_a_one_shot_directory)
{
    const struct planners p = plan_two();
    struct exti_ctx *c = open_one_shot("c");
    pid_t child;
    int status;

    child = fork();
    if (child == 0) {
        struct exti_module *m = NULL;

        _exit(exti_load(c, mod(), &m, NULL) ? 1 : call_int(m, "next"));
    }
    want_int(call_int(iso_load(c, mod()), "next"), 10);
    want(waitpid(child, &status, 0) == child);
    want_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 10);
    iso_prove_clean(c, 3);
    close_all(&p, c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_the_third_context_on_copies_are_made_by_pattern),
        cmocka_unit_test(contexts_one_after_the_other_have_patterns_too),
        cmocka_unit_test(patterns_that_take_much_memory_end_with_the_last_context),
        cmocka_unit_test(such_a_context_can_be_opened_again),
        cmocka_unit_test(names_that_begin_alike_mislead_nobody),
        cmocka_unit_test(contexts_of_another_kind_plan_their_own),
        cmocka_unit_test(what_has_changed_is_planned),
        cmocka_unit_test(directories_that_others_have_made_are_planned),
        cmocka_unit_test(a_third_context_waits_while_the_second_plans),
        cmocka_unit_test(nobody_waits_for_ever),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(a_forked_child_waits_for_nobody_for_ever),
#endif
        cmocka_unit_test(a_cancelled_thread_holds_nobody_up),
        cmocka_unit_test(libraries_without_a_name_can_be_needed),
        cmocka_unit_test(a_one_shot_directory_stays_and_has_copies_alone),
        cmocka_unit_test(a_one_shot_directory_must_be_new),
        cmocka_unit_test(a_forked_child_shares_a_one_shot_directory),
    };

    return cmocka_run_group_tests_name("isolation/patterns", tests, NULL, NULL);
}
