/* Context directories in bad company: other programs' files, links, names, permissions. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <string.h>
#include <sys/stat.h>

#include "tests/isolation/iso.h"

static struct exti_ctx_opts options(struct test *t)
{
    return iso_opts(test_path(t, "ctx"), NULL);
}

static struct exti_ctx *open_ctx(struct test *t)
{
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx = NULL;

    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    return ctx;
}

static const char *copy_one(struct test *t, struct exti_ctx *ctx, const char *source)
{
    const char *copy = NULL;

    assert_ok(exti_copy(ctx, source, &copy, &t->err), &t->err);
    return test_format(t, "%s", copy);
}

static void refuses_to_open(struct test *t, int code)
{
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx = NULL;

    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), code, &t->err, EXTI_NO_OFFSET);
    assert_null(ctx);
}

static void in_folder(struct test *t, const char *name, const char *text)
{
    mkdir(test_path(t, "ctx"), 0777);
    test_write(test_path(t, test_format(t, "ctx/%s", name)), text, strlen(text));
}

static void assert_holds(struct test *t, const char *name, const char *text)
{
    assert_string_equal(test_read(t, test_path(t, name), NULL), text);
}

/* The public header promises so; compared byte by byte. */
static void success_does_not_touch_the_error(void **state)
{
    struct test *t = *state;
    struct exti_error err = {0}, untouched = {0};
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx;
    const char *copy;

    assert_int_equal(exti_ctx_open(&ctx, &opts, &err), 0);
    assert_int_equal(exti_copy(ctx, toy("ext_a.so"), &copy, &err), 0);
    assert_int_equal(exti_verify(copy, toy("ext_a.so"), NULL, NULL, NULL, &err), 0);
    assert_int_equal(exti_ctx_close(ctx, &err), 0);
    assert_int_equal(exti_dir_verify(opts.dir, NULL, NULL, NULL, &err), 0);
    assert_int_equal(exti_dir_clean(opts.dir, &err), 0);
    assert_memory_equal(&err, &untouched, sizeof err);
}

static void another_programs_lock_is_left_alone(void **state)
{
    static const char *const notes[] = {"", "12345", "12345\n"};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
        in_folder(t, "mine.txt", "mine");
        in_folder(t, ".lock", notes[i]);
        refuses_to_open(t, EXTI_E_ARG);
        assert_holds(t, "ctx/.lock", notes[i]);
        assert_string_equal(test_list(t, test_path(t, "ctx")), ".lock\nmine.txt\n");
    }
}

static void another_programs_manifest_is_kept(void **state)
{
    struct test *t = *state;

    in_folder(t, "manifest.json", "{\"name\": \"my web page\"}");
    in_folder(t, ".lock", "12345");
    refuses_to_open(t, EXTI_E_ARG);
    assert_holds(t, "ctx/manifest.json", "{\"name\": \"my web page\"}");
}

static void a_damaged_manifest_is_told_from_a_new_directory(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx = NULL;

    opts.api_library = NULL;
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "new");
    assert_ok(exti_ctx_close(open_ctx(t), &t->err), &t->err);
    in_folder(t, "manifest.json", "{{");
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "damaged");
    assert_ok(exti_ctx_close(open_ctx(t), &t->err), &t->err);
}

/* A manifest torn before the lock file was written had no copies yet; one with text is
 * somebody's. */
static void a_torn_manifest_alone_is_a_new_directory(void **state)
{
    struct test *t = *state;

    in_folder(t, "manifest.json", "");
    assert_ok(exti_ctx_close(open_ctx(t), &t->err), &t->err);
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);

    mkdir(test_path(t, "ctx"), 0777);
    test_write(test_path(t, "ctx/manifest.json"), "\0\0\0\0", 4);
    assert_ok(exti_ctx_close(open_ctx(t), &t->err), &t->err);
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);

    in_folder(t, "manifest.json", "{{");
    {
        struct exti_ctx_opts opts = options(t);
        struct exti_ctx *ctx = NULL;

        assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_FORMAT, &t->err, ANY_OFFSET);
        assert_says(&t->err, "is damaged: ");
        assert_contains(t->err.file, "ctx/manifest.json");
    }
    assert_holds(t, "ctx/manifest.json", "{{");
    assert_string_equal(test_list(t, test_path(t, "ctx")), "manifest.json\n");
}

static void clean_says_what_it_cannot_remove(void **state)
{
    static const char odd[] = "ctx/.exti-0123456789abcdef0123456789abcdef";
    struct test *t = *state;

    assert_ok(exti_ctx_close(open_ctx(t), &t->err), &t->err);
    assert_int_equal(mkdir(test_path(t, odd), 0777), 0); /* named as temporary files are */
    assert_exti(exti_dir_clean(test_path(t, "ctx"), &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_contains(t->err.file, odd);
    assert_true(file_exists(test_path(t, "ctx/manifest.json"))); /* so that it can be tried again */
    assert_int_equal(rmdir(test_path(t, odd)), 0);
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    assert_false(file_exists(test_path(t, "ctx")));
}

static void a_private_directory_may_be_gone_before_its_context(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct exti_ctx *ctx = NULL;

    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    test_must_run(t, "rm", "-rf", exti_ctx_dir(ctx), NULL);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
}

static void a_directory_cleaned_meanwhile_says_so(void **state)
{
    struct test *t = *state;
    struct exti_ctx *ctx = open_ctx(t);
    const char *path = NULL;

    copy_one(t, ctx, toy("ext_a.so"));
    in_folder(t, "mine.txt", "mine");
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    assert_exti(exti_copy(ctx, toy("ext_a.so"), &path, &t->err), EXTI_E_CHECK, &t->err,
                EXTI_NO_OFFSET);
    assert_says(&t->err, "cleaned");
    exti_ctx_close(ctx, NULL); /* may find that it cannot record its copies */
    assert_false(file_exists(test_path(t, "ctx/manifest.json")));
    assert_int_equal(unlink(test_path(t, "ctx/mine.txt")), 0);
    unlink(test_path(t, "ctx/.lock"));
    ctx = open_ctx(t);
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    assert_true(exti_copy(ctx, toy("ext_a.so"), &path, &t->err) < 0);
    assert_says(&t->err, "cleaned");
    assert_null(path);
    exti_ctx_close(ctx, NULL);
    assert_false(file_exists(test_path(t, "ctx")));
}

static void an_unused_directory_of_its_making_is_dropped(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx = NULL, *other;

    opts.flags |= EXTI_CTX_DROP_UNUSED;
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_true(file_exists(test_path(t, "ctx/manifest.json")));
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_false(file_exists(test_path(t, "ctx")));

    /* A directory with a copy, recorded or not, that another process made is in use. */
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    other = open_ctx(t);
    copy_one(t, other, toy("ext_a.so"));
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    copy_one(t, other, toy("ext_dep.so"));
    assert_ok(exti_ctx_close(other, &t->err), &t->err);

    /* So is a directory that existed before. */
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    assert_ok(exti_ctx_close(open_ctx(t), &t->err), &t->err);
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_true(file_exists(test_path(t, "ctx/manifest.json")));

    /* Another process has cleaned it meanwhile. */
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);

    /* Another process has begun its own context there since. */
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    other = open_ctx(t);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_true(file_exists(test_path(t, "ctx/manifest.json")));
    copy_one(t, other, toy("ext_a.so"));
    assert_ok(exti_ctx_close(other, &t->err), &t->err);
}

/* Several processes begin a directory at once; some fail and clean up. */
static void a_failed_open_leaves_a_concurrent_one_alone(void **state)
{
    struct test *t = *state;
    pid_t pids[6];

    test_write(test_path(t, "bad.so"), "\177ELF but no more", 15);
    iso_toys();
    for (int round = 0; round < 30; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                struct exti_ctx_opts opts = options(t);
                struct exti_ctx *ctx = NULL;
                struct exti_error err;
                int rc;

                if (i % 2)
                    opts.api_library = test_path(t, "bad.so");
                rc = exti_ctx_open(&ctx, &opts, &err);
                want_int(rc != 0, i % 2);
                want(rc || file_exists(test_path(t, "ctx/manifest.json")));
                want(rc || !exti_ctx_close(ctx, &err));
                _exit(0);
            }
        }
        for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
            assert_true(iso_join(pids[i]));
        assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    }
}

static void a_symbolic_link_as_lock_file_is_not_followed(void **state)
{
    struct test *t = *state;

    test_write(test_path(t, "victim"), "keep me", 7);
    mkdir(test_path(t, "ctx"), 0777);
    assert_int_equal(symlink(test_path(t, "victim"), test_path(t, "ctx/.lock")), 0);
    refuses_to_open(t, EXTI_E_IO);
    assert_holds(t, "victim", "keep me");
}

static void clean_takes_only_its_own_temporary_files(void **state)
{
    struct test *t = *state;

    assert_ok(exti_ctx_close(open_ctx(t), &t->err), &t->err);
    in_folder(t, ".exti-notes", "mine");
    in_folder(t, ".exti-0123456789abcdef0123456789abcdef", "left by a kill");
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    assert_string_equal(test_list(t, test_path(t, "ctx")), ".exti-notes\n");
}

/* A name that is cut to length must still be UTF-8; the copy of a hidden file is not hidden. */
static void odd_file_names_can_be_copied(void **state)
{
    static const char *const stems[] = {".hidden", "..", "a b\n\t\"\\", "x.so\xc3\xa9"};
    struct test *t = *state;
    struct exti_ctx *ctx = open_ctx(t);
    size_t findings = 9;
    char stem[256] = "x", *source;

    while (strlen(stem) < 240)
        strcat(stem, "\xe2\x82\xac");
    for (size_t i = 0; i <= ARRAY_SIZE(stems) * 2; i++) {
        source = test_path(t, test_format(t, i % 2 ? "%s" : "%s.so",
                                          i / 2 < ARRAY_SIZE(stems) ? stems[i / 2] : stem));
        if (strcmp(strrchr(source, '/'), "/..") == 0)
            continue;
        test_copy(t, toy("ext_a.so"), source);
        assert_true(strrchr(copy_one(t, ctx, source), '/')[1] != '.');
    }
    source = test_path(t, test_format(t, "n.%s", stem + 1));
    test_copy(t, toy("ext_a.so"), source);
    copy_one(t, ctx, source);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_ok(exti_dir_verify(test_path(t, "ctx"), NULL, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
}

/* Such names cannot be recorded; the error must not be jansson's EXTI_E_NOMEM. */
static void names_that_are_not_utf8_are_refused_by_name(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts edits = {.size = sizeof edits, .id = "caf\xe9.so"};
    struct exti_ctx *ctx = open_ctx(t);
    struct exti_ctx_opts opts = options(t);
    const char *path = NULL;

    assert_ok(exti_rewrite(toy("ext_a.so"), test_path(t, "e.so"), &edits, &t->err), &t->err);
    assert_exti(exti_copy(ctx, test_path(t, "e.so"), &path, &t->err), EXTI_E_UNSUPPORTED, &t->err,
                EXTI_NO_OFFSET);
    assert_says(&t->err, "SONAME is not UTF-8");
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    opts.dir = test_path(t, "ctx2");
    opts.api_library = test_path(t, "caf\xe9.so");
    test_copy(t, toy("libtoy.so.1"), opts.api_library);
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "path is not UTF-8");
    assert_false(file_exists(opts.dir));
}

/* ---- permissions ---- */

/* Runs `body` in a child that has no privileges. */
static void as_nobody(struct test *t, void (*body)(struct test *t))
{
    pid_t pid;

    assert_int_equal(chmod(t->dir, 0755), 0);
    pid = fork();
    if (pid == 0) {
        iso_want(geteuid() != 0 || (setegid(65534) == 0 && seteuid(65534) == 0), "seteuid",
                 __FILE__, __LINE__);
        body(t);
        _exit(0);
    }
    assert_true(iso_join(pid));
}

static void use_read_only(struct test *t)
{
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx;
    struct exti_error err;
    const char *path = NULL;

    opts.api_library = test_path(t, "libtoy.so.1");
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, test_path(t, "ext_a.so"), &path, &err), 0, &err);
    want(path && file_exists(path));
    want_exti(exti_copy(ctx, test_path(t, "ext_b.so"), &path, &err), EXTI_E_IO, &err);
    want_int(err.os_error, EACCES);
    want_exti(exti_ctx_close(ctx, &err), 0, &err);
    want_exti(exti_dir_clean(opts.dir, &err), EXTI_E_IO, &err);
}

static void a_directory_that_cannot_be_written_can_be_used(void **state)
{
    static const char *const toys[] = {"libtoy.so.1", "ext_a.so", "ext_b.so"};
    struct test *t = *state;
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx = NULL;
    char *list, *manifest = test_path(t, "ctx/manifest.json"), *at;

    /* The toys as built may lie in a folder that only their owner can enter. */
    for (size_t i = 0; i < ARRAY_SIZE(toys); i++)
        test_copy(t, toy(toys[i]), test_path(t, toys[i]));
    opts.api_library = test_path(t, "libtoy.so.1");
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    copy_one(t, ctx, test_path(t, "ext_a.so"));
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    list = test_list(t, test_path(t, "ctx"));
    for (int boot = 0; boot < 2; boot++) {
        assert_int_equal(chmod(test_path(t, "ctx"), 0555), 0);
        as_nobody(t, use_read_only);
        assert_int_equal(chmod(test_path(t, "ctx"), 0755), 0);
        assert_string_equal(test_list(t, test_path(t, "ctx")), list);
        /* Again as after a reboot, when copies may be torn. */
        manifest = test_read(t, test_path(t, "ctx/manifest.json"), NULL);
        for (at = manifest; (at = strstr(at, "\"boot\": \"")); at += 12)
            memcpy(at + 9, "xxx", 3);
        test_write(test_path(t, "ctx/manifest.json"), manifest, strlen(manifest));
    }
}

/* ---- concurrent changes ---- */

struct swap {
    struct test *t;
    char *source;
};

/* Replaces the source between its inspection and its copying. */
static int replace_source(void *user, const char *original, char *out, size_t cap)
{
    struct swap *s = user;

    (void)out;
    (void)cap;
    if (s->source && strcmp(original, s->source) == 0) {
        test_copy(s->t, toy("ext_b.so"), test_path(s->t, "new.so"));
        rename(test_path(s->t, "new.so"), s->source);
    }
    return 0;
}

static void a_source_that_changes_while_it_is_copied_is_not_recorded(void **state)
{
    struct test *t = *state;
    struct swap swap = {t, test_path(t, "m.so")};
    struct exti_hooks hooks = {.size = sizeof hooks, .copy_name = replace_source};
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx;
    const char *path = NULL;

    opts.hooks = &hooks;
    opts.user = &swap;
    test_copy(t, toy("ext_a.so"), swap.source);
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_exti(exti_copy(ctx, swap.source, &path, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ESTALE);
    assert_string_equal(t->err.file, swap.source);
    assert_null(path);
    swap.source = NULL;
    copy_one(t, ctx, test_path(t, "m.so"));
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
}

static void a_copy_in_anothers_private_directory_is_no_source(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct exti_ctx *ctx, *other = open_ctx(t);
    const char *path = NULL;

    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_exti(exti_copy(other, copy_one(t, ctx, toy("ext_a.so")), &path, &t->err), EXTI_E_BUSY,
                &t->err, EXTI_NO_OFFSET);
    assert_null(path);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_ok(exti_ctx_close(other, &t->err), &t->err);
}

static void a_private_directory_behind_a_link_knows_its_copies(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct exti_ctx *ctx;
    const char *copy;

    assert_int_equal(mkdir(test_path(t, "tmp"), 0777), 0);
    assert_int_equal(symlink(test_path(t, "tmp"), test_path(t, "link")), 0);
    setenv("TMPDIR", test_path(t, "link"), 1);
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    unsetenv("TMPDIR");
    copy = copy_one(t, ctx, toy("ext_a.so"));
    assert_string_equal(copy_one(t, ctx, copy), copy);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_string_equal(test_list(t, test_path(t, "tmp")), "");
}

/* ---- who can change the directory ---- */

static void trusted(struct test *t, int code, const char *at)
{
    assert_exti(exti_dir_trust(test_path(t, "ctx"), &t->err), code, &t->err, EXTI_NO_OFFSET);
    if (code)
        assert_string_equal(t->err.file, test_path(t, at));
}

static void a_directory_that_others_can_change_is_refused(void **state)
{
    static const char *const files[] = {"ctx/manifest.json", "ctx/.lock"};
    struct test *t = *state;
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx = NULL;

    assert_int_equal(mkdir(test_path(t, "ctx"), 0700), 0);
    assert_int_equal(chmod(test_path(t, "ctx"), 0757), 0);
    refuses_to_open(t, EXTI_E_TRUST);
    assert_string_equal(t->err.file, test_path(t, "ctx"));
    trusted(t, EXTI_E_TRUST, "ctx");
    assert_string_equal(test_list(t, test_path(t, "ctx")), "");
    opts.flags |= EXTI_CTX_TRUST_DIR;
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    copy_one(t, ctx, toy("ext_a.so"));
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);

    assert_int_equal(chmod(test_path(t, "ctx"), 0755), 0);
    trusted(t, 0, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        assert_int_equal(chmod(test_path(t, files[i]), 0646), 0);
        refuses_to_open(t, EXTI_E_TRUST);
        assert_string_equal(t->err.file, test_path(t, files[i]));
        trusted(t, EXTI_E_TRUST, files[i]);
        assert_int_equal(chmod(test_path(t, files[i]), 0644), 0);
    }
    assert_ok(exti_ctx_close(open_ctx(t), &t->err), &t->err);
    assert_exti(exti_dir_trust("", &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
}

static void a_folder_made_for_a_refused_directory_is_gone_again(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx = NULL;

    assert_int_equal(mkdir(test_path(t, "above"), 0700), 0);
    assert_int_equal(chmod(test_path(t, "above"), 0757), 0);
    opts.dir = test_path(t, "above/ctx");
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_TRUST, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.file, test_path(t, "above"));
    setenv("TMPDIR", test_path(t, "above"), 1);
    opts.dir = NULL;
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_TRUST, &t->err, EXTI_NO_OFFSET);
    unsetenv("TMPDIR");
    assert_string_equal(test_list(t, test_path(t, "above")), "");
}

/* With umask 0, all that a context makes would be anyone's. */
static void what_is_made_is_writable_for_its_owner_alone(void **state)
{
    struct test *t = *state;
    const mode_t old = umask(0);
    struct exti_ctx *ctx = open_ctx(t);
    const char *copy = copy_one(t, ctx, toy("ext_a.so"));
    struct stat st;

    umask(old);
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_mode & 022, 0);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    trusted(t, 0, NULL);
}

static int count_trust(void *user, const struct exti_error *finding)
{
    *(size_t *)user += finding->code == EXTI_E_TRUST;
    return 0;
}

static void verify_reports_copies_that_others_can_change(void **state)
{
    struct test *t = *state;
    struct exti_ctx *ctx = open_ctx(t);
    const char *copy = copy_one(t, ctx, toy("ext_a.so"));
    size_t n = 0;

    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_int_equal(chmod(copy, 0757), 0);
    assert_ok(exti_dir_verify(test_path(t, "ctx"), count_trust, &n, NULL, &t->err), &t->err);
    assert_int_equal(n, 1);
    /* It is made again. */
    ctx = open_ctx(t);
    copy_one(t, ctx, toy("ext_a.so"));
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    n = 0;
    assert_ok(exti_dir_verify(test_path(t, "ctx"), count_trust, &n, NULL, &t->err), &t->err);
    assert_int_equal(n, 0);
    /* Of a directory that is others' anyway, its copies are not singled out. */
    assert_int_equal(chmod(copy, 0757), 0);
    assert_int_equal(chmod(test_path(t, "ctx"), 0757), 0);
    assert_ok(exti_dir_verify(test_path(t, "ctx"), count_trust, &n, NULL, &t->err), &t->err);
    assert_int_equal(n, 0);
    assert_int_equal(chmod(test_path(t, "ctx"), 0755), 0);
}

static int keep_message(void *user, const struct exti_error *finding)
{
    snprintf(user, 512, "%s", finding->message);
    return 0;
}

/* The bytes are right; what is recorded of them is not. */
static void verify_compares_the_recorded_hash(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx = NULL;
    char *path = test_path(t, "ctx/manifest.json"), *manifest, *at, said[512] = "";
    size_t n = 0;

    opts.flags |= EXTI_CTX_SYNC;
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_ok(exti_dir_verify(test_path(t, "ctx"), NULL, NULL, &n, &t->err), &t->err);
    assert_int_equal(n, 0);
    manifest = test_read(t, path, NULL);
    at = strstr(manifest, "\"copy_sha256\": \"");
    assert_non_null(at);
    at += strlen("\"copy_sha256\": \"");
    *at = *at == '0' ? '1' : '0';
    test_write(path, manifest, strlen(manifest));
    assert_ok(exti_dir_verify(test_path(t, "ctx"), keep_message, said, &n, &t->err), &t->err);
    assert_int_equal(n, 1);
    assert_contains(said, "SHA-256");
}

/* Anyone can put a manifest.json into /tmp. */
static void a_manifest_that_others_can_change_names_no_source(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = options(t);
    struct exti_ctx *ctx = open_ctx(t);
    const char *copy = copy_one(t, ctx, toy("ext_a.so")), *path = NULL;

    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    opts.dir = test_path(t, "other");
    assert_int_equal(chmod(test_path(t, "ctx/manifest.json"), 0646), 0);
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_exti(exti_copy(ctx, copy, &path, &t->err), EXTI_E_TRUST, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.file, test_path(t, "ctx/manifest.json"));
    assert_int_equal(chmod(test_path(t, "ctx/manifest.json"), 0644), 0);
    copy_one(t, ctx, copy);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(success_does_not_touch_the_error),
        exti_test(another_programs_lock_is_left_alone),
        exti_test(another_programs_manifest_is_kept),
        exti_test(a_damaged_manifest_is_told_from_a_new_directory),
        exti_test(a_torn_manifest_alone_is_a_new_directory),
        exti_test(clean_says_what_it_cannot_remove),
        exti_test(a_private_directory_may_be_gone_before_its_context),
        exti_test(a_directory_cleaned_meanwhile_says_so),
        exti_test(an_unused_directory_of_its_making_is_dropped),
        exti_test(a_failed_open_leaves_a_concurrent_one_alone),
        exti_test(a_symbolic_link_as_lock_file_is_not_followed),
        exti_test(clean_takes_only_its_own_temporary_files),
        exti_test(odd_file_names_can_be_copied),
        exti_test(names_that_are_not_utf8_are_refused_by_name),
        exti_test(a_directory_that_cannot_be_written_can_be_used),
        exti_test(a_source_that_changes_while_it_is_copied_is_not_recorded),
        exti_test(a_copy_in_anothers_private_directory_is_no_source),
        exti_test(a_private_directory_behind_a_link_knows_its_copies),
        exti_test(a_directory_that_others_can_change_is_refused),
        exti_test(a_folder_made_for_a_refused_directory_is_gone_again),
        exti_test(what_is_made_is_writable_for_its_owner_alone),
        exti_test(verify_reports_copies_that_others_can_change),
        exti_test(verify_compares_the_recorded_hash),
        exti_test(a_manifest_that_others_can_change_names_no_source),
    };

    return cmocka_run_group_tests_name("api/hostile_dir", tests, NULL, NULL);
}
