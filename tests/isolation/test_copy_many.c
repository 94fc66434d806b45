/* exti_copy_many makes the same copies as single calls, and reports them in order. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include "tests/isolation/build.h"

#define FILES 40
#define BROKEN 7   /* cannot be read */
#define HOPELESS 9 /* needs a library that cannot be recorded */

static char files[FILES][300];
static const char *originals[FILES];

static const char *link_with(const char *libraries, const char *soname)
{
    return iso_text("-Wl,-soname,%s -Wl,--no-as-needed -L'%s' %s -Wl,-rpath,'%s'", soname, iso_tmp,
                    libraries, iso_tmp);
}

/* Builds modules; every third one needs a library that needs another one. */
static void build_files(void)
{
    iso_build("int leaf(void) { return 1; }\n", "libleaf.so", link_with("", "libleaf.so"));
    iso_build("int leaf(void); int mid(void) { return leaf(); }\n", "libmid.so",
              link_with("-lleaf", "libmid.so"));
    iso_build("int mid(void), toy_next(void); int ext(void) { return mid() + toy_next(); }\n",
              "chain.so", link_with("-lmid", "chain.so"));
    for (int i = 0; i < FILES; i++) {
        snprintf(files[i], sizeof files[i], "%s", in_tmp(iso_text("ext%02d.so", i)));
        copy_file(i % 3 ? toy("ext_a.so") : in_tmp("chain.so"), files[i]);
        originals[i] = files[i];
    }
}

static void break_files(void)
{
    iso_write_text(files[BROKEN], "\177ELF, but no more");
    want(mkdir(in_tmp("\377"), 0777) == 0);
    iso_build("int odd(void) { return 1; }\n", "\377/libodd.so", "-Wl,-soname,libodd.so");
    iso_build("int odd(void); int ext(void) { return odd(); }\n", "hopeless.so",
              iso_text("-L'%s' -lodd -Wl,-rpath,'%s'", in_tmp("\377"), in_tmp("\377")));
    copy_file(in_tmp("hopeless.so"), files[HOPELESS]);
}

struct seen {
    size_t count, failed, made, stop_at;
    struct exti_error errors[FILES];
    char copies[FILES][400];
};

static int record_file(void *user, const struct exti_copied *file)
{
    struct seen *t = user;

    want_int((long)file->index, (long)t->count);
    want(!file->copy == !!file->error);
    if (file->copy)
        snprintf(t->copies[file->index], sizeof t->copies[0], "%s", file->copy);
    else
        t->errors[file->index] = *file->error;
    t->failed += file->error != NULL;
    t->made += file->made != 0;
    return ++t->count == t->stop_at;
}

static struct seen seen;

static int copy_by(struct exti_ctx *ctx, size_t threads, struct exti_error *err)
{
    struct exti_copy_opts opts = {
        .size = sizeof opts, .threads = threads, .copied = record_file, .user = &seen};

    seen = (struct seen){.stop_at = seen.stop_at};
    return exti_copy_many(ctx, originals, FILES, &opts, err);
}

static struct exti_ctx *open_named(const char *dir)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp(dir), "many");

    return iso_open_opts(&opts);
}

static void want_no_findings(const char *dir)
{
    struct exti_error err = {0};
    size_t findings = 9;

    want_exti(exti_dir_verify(in_tmp(dir), iso_print_finding, NULL, &findings, &err), 0, &err);
    want_int((long)findings, 0);
}

static void want_same_files(const char *a, const char *b)
{
    want(system(iso_text("cd '%s' && diff -r -x manifest.json %s %s", iso_tmp, a, b)) == 0);
}

ISO_CASE(copies_equal_those_of_single_calls)
{
    struct exti_error err = {0};
    struct exti_ctx *one, *many;

    build_files();
    one = open_named("one");
    many = open_named("many");
    for (int i = 0; i < FILES; i++)
        want_exti(exti_copy(one, originals[i], NULL, &err), 0, &err);
    want_exti(copy_by(many, 5, &err), 0, &err);
    want_int((long)seen.count, FILES);
    want_int((long)seen.made, FILES);
    for (int i = 0; i < FILES; i++)
        want(file_exists(seen.copies[i]));
    iso_close_ctx(one);
    iso_close_ctx(many);
    want_same_files("one", "many");
    want_no_findings("many");
    many = open_named("many");
    want_exti(copy_by(many, 0, &err), 0, &err);
    want_int((long)seen.made, 0);
    iso_close_ctx(many);
}

ISO_CASE(failing_files_leave_the_others_copied)
{
    static const size_t threads[] = {1, 2, 8};
    struct exti_error err = {0};

    build_files();
    break_files();
    for (size_t i = 0; i < 3; i++) {
        const char *dir = iso_text("by%zu", i);
        struct exti_ctx *ctx = open_named(dir);

        want_exti(copy_by(ctx, threads[i], &err), EXTI_E_FORMAT, &err);
        want_text(err.file, files[BROKEN]);
        want_int((long)seen.count, FILES);
        want_int((long)seen.failed, 2);
        want_text(seen.errors[BROKEN].file, files[BROKEN]);
        want_text(seen.errors[HOPELESS].message, "not UTF-8");
        want_text(seen.errors[HOPELESS].file, files[HOPELESS]);
        iso_close_ctx(ctx);
        want_no_findings(dir);
        if (i)
            want_same_files("by0", dir);
    }
}

/* A folder has the name of the copy, so that writing it fails. */
ISO_CASE(a_copy_that_cannot_be_written_fails_those_that_need_it)
{
    struct exti_error err = {0};
    struct exti_ctx *ctx;
    char copy[400];

    build_files();
    ctx = open_named("first");
    want_exti(copy_by(ctx, 1, &err), 0, &err);
    iso_close_ctx(ctx);
    want(system(iso_text("cd '%s' && mkdir ctx && cd first && for f in libleaf.*; do "
                         "mkdir -p ../ctx/$f/in; done; printf 'many\\n' >../ctx/.lock",
                         iso_tmp)) == 0);
    ctx = open_named("ctx");
    want_exti(copy_by(ctx, 4, &err), EXTI_E_IO, &err);
    want_int((long)seen.count, FILES);
    want_int((long)seen.failed, (FILES + 2) / 3);
    want_text(seen.errors[0].message, "needed by libmid.so");
    want(seen.copies[1][0]);
    snprintf(copy, sizeof copy, "%s", seen.copies[1]);
    want(system(iso_text("rm -r '%s'/ctx/libleaf.*", iso_tmp)) == 0);
    want_exti(copy_by(ctx, 4, &err), 0, &err);
    want(strcmp(copy, seen.copies[1]) == 0);
    iso_close_ctx(ctx);
    want_no_findings("ctx");
    want_same_files("first", "ctx");
}

ISO_CASE(a_nonzero_return_stops_the_batch)
{
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    build_files();
    ctx = open_named("ctx");
    seen.stop_at = 3;
    want_exti(copy_by(ctx, 4, &err), 0, &err);
    want_int((long)seen.count, 3);
    seen.stop_at = 0;
    want_exti(copy_by(ctx, 4, &err), 0, &err);
    want_int((long)seen.count, FILES);
    iso_close_ctx(ctx);
    want_no_findings("ctx");
}

static int note_shared(void *user, const struct exti_copied *file)
{
    char(*why)[200] = user;

    want(!file->error && !file->copy == !!file->shared);
    snprintf(why[file->index], sizeof *why, "%s", file->shared ? file->shared : "");
    return 0;
}

/* The folder of one file may be assumed for the next one only if that is not a symbolic link. */
ISO_CASE(links_and_copies_are_traced_to_their_sources)
{
    static const char *const given[] = {"f/one.so",  "f/two.so",      "f/link.so",
                                        "f/copy.so", "lf/two.so",     "lf/one.so",
                                        "old/COPY",  "f/../g/one.so", "f/one.so"};
    static const char *const real[] = {"f/one.so", "f/two.so", "g/one.so", "f/one.so", "f/two.so",
                                       "f/one.so", "f/one.so", "g/one.so", "f/one.so"};
    enum { TRACED = sizeof given / sizeof *given };
    char paths[TRACED][300];
    const char *traced[TRACED], *copy;
    struct exti_error err = {0};
    struct exti_copy_opts opts = {
        .size = sizeof opts, .threads = 2, .copied = record_file, .user = &seen};
    struct exti_ctx *old = open_named("old"), *ctx;

    want(system(iso_text("cd '%s' && mkdir f g && ln -s f lf && cp '%s' f/one.so && "
                         "cp f/one.so f/two.so && cp f/one.so g && ln -s ../g/one.so f/link.so",
                         iso_tmp, toy("ext_a.so"))) == 0);
    want_exti(exti_copy(old, in_tmp("f/one.so"), &copy, &err), 0, &err);
    want(symlink(copy, in_tmp("f/copy.so")) == 0);
    for (int i = 0; i < TRACED; i++) {
        snprintf(paths[i], sizeof paths[i], "%s",
                 strcmp(given[i], "old/COPY") == 0 ? copy : in_tmp(given[i]));
        traced[i] = paths[i];
    }
    iso_close_ctx(old);
    ctx = open_named("ctx");
    seen = (struct seen){0};
    want_exti(exti_copy_many(ctx, traced, TRACED, &opts, &err), 0, &err);
    for (int i = 0; i < TRACED; i++) {
        want_exti(exti_copy(ctx, in_tmp(real[i]), &copy, &err), 0, &err);
        want(strcmp(seen.copies[i], copy) == 0);
    }
    iso_close_ctx(ctx);
    want_no_findings("ctx");
}

ISO_CASE(libraries_are_copied_if_they_are_isolated)
{
    const struct exti_rule rules[] = {{"libmid*", 1}};
    struct exti_ctx_opts o;
    struct exti_error err = {0};
    struct exti_ctx *ctx;
    char why[2][200], leaf[300], mid[300];
    const char *libraries[] = {leaf, mid};
    struct exti_copy_opts opts = {
        .size = sizeof opts, .libraries = 2, .threads = 2, .copied = note_shared, .user = why};

    build_files();
    snprintf(leaf, sizeof leaf, "%s", in_tmp("libleaf.so"));
    snprintf(mid, sizeof mid, "%s", in_tmp("libmid.so"));
    o = iso_opts(in_tmp("ctx"), NULL);
    o.rules = rules;
    o.rule_count = 1;
    ctx = iso_open_opts(&o);
    want_exti(exti_copy_many(ctx, libraries, 2, &opts, &err), 0, &err);
    want(!why[0][0]);
    want_text(why[1], "libmid*");
    iso_close_ctx(ctx);
    want_no_findings("ctx");
}

static int note_library(void *user, const struct exti_library_info *l)
{
    char *text = user;

    snprintf(text + strlen(text), 4000 - strlen(text), "%s %d %zu %s;", l->name, (int)l->state,
             l->users, l->why ? l->why : "-");
    return 0;
}

ISO_CASE(libraries_are_listed_with_reasons)
{
    struct exti_error err = {0};
    struct exti_ctx *ctx;
    char text[4000] = "", states[4000] = "";

    build_files();
    ctx = open_named("ctx");
    want_exti(copy_by(ctx, 2, &err), 0, &err);
    want_exti(exti_ctx_libraries(ctx, note_library, text, &err), 0, &err);
    want_text(text, iso_text("libmid.so 2 %d ", (FILES + 2) / 3));
    want_text(text, "libleaf.so 2 1 ");
    want_text(text, "libc.so.6 1 ");
    want_text(text, "one C library");
    want_exti(exti_ctx_library_states(ctx, note_library, states, &err), 0, &err);
    want_text(states, iso_text("libmid.so 2 %d -;", (FILES + 2) / 3));
    want_text(states, "libc.so.6 1 ");
    want(!strstr(states, "one C library"));
    iso_close_ctx(ctx);
}

ISO_CASE(wrong_arguments_are_refused)
{
    struct exti_error err = {0};
    struct exti_ctx *ctx;
    const char *none[] = {""};
    struct exti_copy_opts opts = {.size = sizeof opts, .libraries = 1};

    ctx = open_named("ctx");
    want_exti(exti_copy_many(NULL, none, 0, NULL, &err), EXTI_E_ARG, &err);
    want_exti(exti_copy_many(ctx, none, 1, NULL, &err), EXTI_E_ARG, &err);
    want_exti(exti_copy_many(ctx, NULL, 1, NULL, &err), EXTI_E_ARG, &err);
    want_exti(exti_copy_many(ctx, none, 0, &opts, &err), EXTI_E_ARG, &err);
    want_exti(exti_ctx_libraries(ctx, NULL, NULL, &err), EXTI_E_ARG, &err);
    want_exti(exti_ctx_library_states(ctx, NULL, NULL, &err), EXTI_E_ARG, &err);
    want_exti(exti_copy_many(ctx, NULL, 0, NULL, &err), 0, &err);
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_equal_those_of_single_calls),
        cmocka_unit_test(failing_files_leave_the_others_copied),
        cmocka_unit_test(a_copy_that_cannot_be_written_fails_those_that_need_it),
        cmocka_unit_test(a_nonzero_return_stops_the_batch),
        cmocka_unit_test(links_and_copies_are_traced_to_their_sources),
        cmocka_unit_test(libraries_are_copied_if_they_are_isolated),
        cmocka_unit_test(libraries_are_listed_with_reasons),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests_name("isolation/copy_many", tests, NULL, NULL);
}
