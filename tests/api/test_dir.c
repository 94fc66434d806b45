/* Context directories: what the manifest says, what is reused, replaced and redone, what verify and
 * clean do.  Nothing is loaded here. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <string.h>
#include <sys/stat.h>

#include "tests/isolation/iso.h"

/* Copies a toy library into the test's folder, so that the test may change it. */
static const char *own_copy(struct test *t, const char *toy_name)
{
    char *path = test_path(t, toy_name);

    test_copy(t, toy(toy_name), path);
    return path;
}

static struct exti_ctx *open_ctx(struct test *t, const char *name)
{
    struct exti_ctx_opts opts = iso_opts(test_path(t, "ctx"), name);
    struct exti_ctx *ctx = NULL;

    opts.api_library = test_path(t, "libtoy.so.1");
    if (!file_exists(opts.api_library))
        own_copy(t, "libtoy.so.1");
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    return ctx;
}

static void close_ctx(struct test *t, struct exti_ctx *ctx)
{
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
}

/* Copies `source`; returns the copy's path. */
static char *copy_one(struct test *t, struct exti_ctx *ctx, const char *source)
{
    const char *path = NULL;

    assert_ok(exti_copy(ctx, source, &path, &t->err), &t->err);
    assert_true(path && path[0] == '/' && file_exists(path));
    return test_format(t, "%s", path);
}

/* Opens the directory, copies ext_a.so into it and closes it. */
static char *make_dir(struct test *t)
{
    const char *source = own_copy(t, "ext_a.so");
    struct exti_ctx *ctx = open_ctx(t, NULL);
    char *copy = copy_one(t, ctx, source);

    close_ctx(t, ctx);
    return copy;
}

static struct stat stat_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st;
}

struct seen {
    size_t count;
    char text[8192];
};

static int collect(void *user, const struct exti_error *finding)
{
    struct seen *s = user;
    size_t n = strlen(s->text);

    snprintf(s->text + n, sizeof s->text - n, "[%s: %s]", finding->file, finding->message);
    s->count++;
    return 0;
}

/* What exti_dir_verify finds in the directory. */
static struct seen verify(struct test *t)
{
    struct seen seen = {.count = 0};
    size_t findings = 99;

    assert_ok(exti_dir_verify(test_path(t, "ctx"), collect, &seen, &findings, &t->err), &t->err);
    assert_int_equal(findings, seen.count);
    return seen;
}

static void assert_sound(struct test *t)
{
    struct seen seen = verify(t);

    if (seen.count)
        print_message("%s\n", seen.text);
    assert_int_equal(seen.count, 0);
}

/* Replaces text in the manifest. */
static void edit_manifest(struct test *t, const char *from, const char *to)
{
    char *path = test_path(t, "ctx/manifest.json"), *text = test_read(t, path, NULL), *at;
    char *out = test_format(t, "%s", "");

    while ((at = strstr(text, from))) {
        out = test_format(t, "%s%.*s%s", out, (int)(at - text), text, to);
        text = at + strlen(from);
    }
    out = test_format(t, "%s%s", out, text);
    test_write(path, out, strlen(out));
}

/* Makes the manifest say that another boot wrote the copies, as after a power loss. */
static void pretend_reboot(struct test *t)
{
    char boot[64] = {0};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%63s", boot), 1);
    fclose(f);
    assert_contains(test_read(t, test_path(t, "ctx/manifest.json"), NULL), boot);
    edit_manifest(t, boot, "00000000-aaaa-bbbb-cccc-000000000000");
}

/* ---- the manifest ---- */

static void assert_entry(struct test *t, const char *manifest, const char *source, const char *copy)
{
    struct stat st = stat_of(source);
    const char *at = strstr(manifest, test_format(t, "\"source\": \"%s\"", source));
    const char *notes = test_must_run(t, "readelf", "-n", source, NULL);
    const char *id = strstr(notes, "Build ID: ");

    assert_non_null(at);
    assert_contains(at, test_format(t, "\"size\": %lld,", (long long)st.st_size));
    assert_contains(at, test_format(t, "\"inode\": %llu,", (unsigned long long)st.st_ino));
    assert_contains(at,
                    test_format(t, "\"mtime_ns\": %lld,",
                                (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec));
    assert_contains(at, test_format(t, "\"copy\": \"%s\"", strrchr(copy, '/') + 1));
    assert_contains(at, "\"edits\": {");
    if (id)
        assert_contains(at, test_format(t, "\"build_id\": \"%.40s\"", id + strlen("Build ID: ")));
}

static void manifest_records_source_and_copy(void **state)
{
    struct test *t = *state;
    const char *a = own_copy(t, "ext_a.so"), *b = own_copy(t, "ext_cxx.so");
    struct exti_ctx *ctx = open_ctx(t, "my-context_1");
    char *copy_a = copy_one(t, ctx, a), *copy_b = copy_one(t, ctx, b), *manifest;
    struct exti_copy_info info = {.size = sizeof info};
    struct exti_dir *d = NULL;

    assert_string_equal(exti_ctx_name(ctx), "my-context_1");
    close_ctx(t, ctx);
    manifest = test_read(t, test_path(t, "ctx/manifest.json"), NULL);
    assert_contains(manifest, "\"name\": \"my-context_1\"");
    assert_ok(exti_dir_read(test_path(t, "ctx"), &d, &t->err), &t->err);
    assert_string_equal(exti_dir_name(d), "my-context_1");
    assert_int_equal(exti_dir_renamed(d), 0);
    assert_int_equal(exti_dir_count(d), 3);
    for (size_t i = 0; i < 3; i++) {
        struct stat st;

        assert_int_equal(exti_dir_copy(d, i, &info), 0);
        st = stat_of(info.source);
        assert_int_equal(info.source_size, st.st_size);
        assert_int_equal(info.source_inode, st.st_ino);
        assert_int_equal(info.source_mtime_ns,
                         (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
        assert_int_equal(info.state, EXTI_COPY_FRESH);
        assert_int_equal(info.is_api, strstr(info.source, "libtoy.so.1") != NULL);
        if (!info.is_api)
            assert_true(!strcmp(info.copy, copy_a) || !strcmp(info.copy, copy_b));
        assert_true(info.edits[0] == '{');
        assert_contains(info.edits, "\"id\"");
        assert_entry(t, manifest, info.source, info.copy);
    }
    assert_int_equal(exti_dir_copy(d, 3, &info), EXTI_E_ARG);
    assert_int_equal(exti_dir_copy(d, 0, NULL), EXTI_E_ARG);
    exti_dir_free(d);
    assert_sound(t);
}

/* Every copy's needed list and id, as an independent reader sees them. */
static void copies_need_the_contexts_api_copy(void **state)
{
    struct test *t = *state;
    char *copy = make_dir(t), *api = NULL, *text;
    struct exti_copy_info info = {.size = sizeof info};
    struct exti_dir *d;

    assert_ok(exti_dir_read(test_path(t, "ctx"), &d, &t->err), &t->err);
    for (size_t i = 0; i < exti_dir_count(d); i++) {
        assert_int_equal(exti_dir_copy(d, i, &info), 0);
        if (info.is_api)
            api = test_format(t, "%s", info.copy);
    }
    assert_non_null(api);
    text = test_must_run(t, "readelf", "-dW", copy, NULL);
    assert_contains(text, test_format(t, "Shared library: [%s]", strrchr(api, '/') + 1));
    assert_contains(text, test_format(t, "Library soname: [%s]", strrchr(copy, '/') + 1));
    assert_contains(copy, exti_dir_name(d));
    assert_contains(api, exti_dir_name(d));
    text = test_must_run(t, "readelf", "-dW", api, NULL);
    assert_null(strstr(text, "Library soname: [libtoy.so.1]"));
    exti_dir_free(d);
}

/* ---- reuse and replacement ---- */

/* A file may name the library twice, as tools that add an entry leave it, or by several names. */
static void a_file_that_names_the_library_again_needs_one_copy(void **state)
{
    static const struct exti_needed twice[] = {
        {NULL, "libtoy.so.1", EXTI_NEEDED_FIRST},
        {"libtoydep.so", "libtoy.so.1", EXTI_NEEDED_LAST},
        {NULL, "/a/libtoy.so.1", EXTI_NEEDED_FIRST},
        {NULL, "/b/libtoy.so.1", EXTI_NEEDED_LAST},
        {NULL, "/c/libtoy.so.1", EXTI_NEEDED_LAST},
        {NULL, "/d/libtoy.so.1", EXTI_NEEDED_LAST},
    };
    struct test *t = *state;
    struct exti_rewrite_opts opts = {.size = sizeof opts, .needed = twice};
    struct exti_ctx *ctx = open_ctx(t, NULL);
    char *source = test_path(t, "again.so"), *text;

    for (opts.needed_count = 2; opts.needed_count <= 6; opts.needed_count++) {
        assert_ok(exti_rewrite(toy("ext_dep.so"), source, &opts, &t->err), &t->err);
        text = test_must_run(t, "readelf", "-dW", copy_one(t, ctx, source), NULL);
        assert_contains(text, "[libtoy.so.");
        assert_null(strstr(text, "libtoy.so.1]"));
    }
    close_ctx(t, ctx);
}

static void an_up_to_date_copy_is_reused(void **state)
{
    struct test *t = *state;
    char *copy = make_dir(t);
    struct stat first = stat_of(copy), manifest;
    struct exti_ctx *ctx;

    /* The first process that uses them again records their hashes. */
    for (int i = 0; i < 2; i++) {
        manifest = stat_of(test_path(t, "ctx/manifest.json"));
        ctx = open_ctx(t, NULL);
        assert_string_equal(copy_one(t, ctx, test_path(t, "ext_a.so")), copy);
        close_ctx(t, ctx);
    }
    assert_int_equal(stat_of(copy).st_ino, first.st_ino);
    assert_int_equal(stat_of(copy).st_mtim.tv_nsec, first.st_mtim.tv_nsec);
    assert_int_equal(stat_of(test_path(t, "ctx/manifest.json")).st_ino, manifest.st_ino);
    assert_int_equal(stat_of(test_path(t, "ctx/manifest.json")).st_mtim.tv_nsec,
                     manifest.st_mtim.tv_nsec);
}

static enum exti_copy_state state_of(struct test *t, const char *source_part)
{
    struct exti_copy_info info = {.size = sizeof info};
    enum exti_copy_state found = (enum exti_copy_state) - 1;
    struct exti_dir *d;

    assert_ok(exti_dir_read(test_path(t, "ctx"), &d, &t->err), &t->err);
    for (size_t i = 0; i < exti_dir_count(d); i++) {
        assert_int_equal(exti_dir_copy(d, i, &info), 0);
        if (strstr(info.source, source_part))
            found = info.state;
    }
    exti_dir_free(d);
    return found;
}

static void recopy(struct test *t, const char *expected)
{
    struct exti_ctx *ctx = open_ctx(t, NULL);

    assert_string_equal(copy_one(t, ctx, test_path(t, "ext_a.so")), expected);
    close_ctx(t, ctx);
    assert_sound(t);
    assert_int_equal(state_of(t, "ext_a.so"), EXTI_COPY_FRESH);
}

static void a_stale_copy_is_replaced(void **state)
{
    struct test *t = *state;
    char *copy = make_dir(t), *before = test_read(t, copy, NULL), *after;
    struct stat first = stat_of(copy);
    size_t n;

    test_must_run(t, "cp", toy("ext_b.so"), test_path(t, "new"), NULL);
    test_must_run(t, "mv", test_path(t, "new"), test_path(t, "ext_a.so"), NULL);
    assert_int_equal(state_of(t, "ext_a.so"), EXTI_COPY_STALE);
    assert_int_equal(verify(t).count, 1);
    recopy(t, copy);
    assert_true(stat_of(copy).st_ino != first.st_ino);
    after = test_read(t, copy, &n);
    assert_true(memcmp(after, before, n) != 0);
}

/* A package upgrade may change nothing but the times. */
static void a_source_with_a_new_mtime_is_copied_again(void **state)
{
    struct test *t = *state;
    char *copy = make_dir(t);

    test_must_run(t, "touch", "-d", "2001-01-01", test_path(t, "ext_a.so"), NULL);
    assert_int_equal(state_of(t, "ext_a.so"), EXTI_COPY_STALE);
    recopy(t, copy);
}

static void a_missing_copy_is_made_again(void **state)
{
    struct test *t = *state;
    char *copy = make_dir(t);

    assert_int_equal(unlink(copy), 0);
    assert_int_equal(state_of(t, "ext_a.so"), EXTI_COPY_MISSING);
    assert_int_equal(verify(t).count, 1);
    recopy(t, copy);
}

static void a_truncated_copy_is_made_again(void **state)
{
    struct test *t = *state;
    char *copy = make_dir(t);

    assert_int_equal(truncate(copy, 5000), 0);
    assert_int_equal(state_of(t, "ext_a.so"), EXTI_COPY_MISSING);
    recopy(t, copy);
}

static void list_reports_a_copy_whose_source_is_gone(void **state)
{
    struct test *t = *state;
    struct exti_ctx *ctx;
    const char *path = NULL;

    make_dir(t);
    assert_int_equal(unlink(test_path(t, "ext_a.so")), 0);
    assert_int_equal(state_of(t, "ext_a.so"), EXTI_COPY_ORPHAN);
    assert_int_equal(verify(t).count, 1);
    ctx = open_ctx(t, NULL);
    assert_exti(exti_copy(ctx, test_path(t, "ext_a.so"), &path, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_null(path);
    close_ctx(t, ctx);
}

/* A new API library makes every copy stale. */
static void a_changed_api_library_makes_all_copies_stale(void **state)
{
    struct test *t = *state;
    struct exti_ctx *ctx;
    char *copy = make_dir(t);

    test_must_run(t, "cp", toy("libtoy.so.1"), test_path(t, "new"), NULL);
    test_must_run(t, "touch", "-d", "2001-01-01", test_path(t, "new"), NULL);
    test_must_run(t, "mv", test_path(t, "new"), test_path(t, "libtoy.so.1"), NULL);
    assert_true(verify(t).count > 0);
    ctx = open_ctx(t, NULL);
    copy_one(t, ctx, test_path(t, "ext_a.so"));
    close_ctx(t, ctx);
    assert_sound(t);
    (void)copy;
}

/* Such a context would make copies that need the old API copy. */
static void contexts_opened_before_an_api_change_are_refused(void **state)
{
    struct test *t = *state;
    struct exti_ctx *older, *newer;
    const char *path = NULL;

    make_dir(t);
    older = open_ctx(t, NULL);
    test_must_run(t, "touch", "-d", "2001-01-01", test_path(t, "libtoy.so.1"), NULL);
    newer = open_ctx(t, NULL);
    assert_exti(exti_copy(older, toy("ext_b.so"), &path, &t->err), EXTI_E_CHECK, &t->err,
                EXTI_NO_OFFSET);
    assert_says(&t->err, "new API library");
    assert_null(path);
    close_ctx(t, older);
    copy_one(t, newer, toy("ext_b.so"));
    copy_one(t, newer, test_path(t, "ext_a.so"));
    close_ctx(t, newer);
    assert_sound(t);
}

/* Private names come from the API library, so nothing can be compared without it. */
static void verify_reports_an_unreadable_api_library(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = iso_opts(test_path(t, "ctx"), NULL);
    struct exti_ctx *ctx = NULL;
    struct seen seen;

    opts.api_library = own_copy(t, "libtoy.so.1");
    opts.flags = EXTI_CTX_RENAME;
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    close_ctx(t, ctx);
    assert_int_equal(verify(t).count, 0);
    test_write(opts.api_library, "text", 4);
    seen = verify(t);
    assert_int_equal(seen.count, 1);
    assert_contains(seen.text, opts.api_library);
}

/* ---- after a power loss ---- */

static void damage_zeros(struct test *t, const char *path)
{
    struct stat st = stat_of(path);

    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(truncate(path, st.st_size), 0);
    (void)t;
}

static void damage_tail(struct test *t, const char *path)
{
    size_t n;
    char *bytes = test_read(t, path, &n);

    memset(bytes + n / 2, 0, n - n / 2);
    test_write(path, bytes, n);
}

static void damage_empty(struct test *t, const char *path)
{
    (void)t;
    assert_int_equal(truncate(path, 0), 0);
}

static void torn_copies_are_redone(void **state)
{
    void (*const damages[])(struct test *, const char *) = {damage_zeros, damage_tail,
                                                            damage_empty};
    struct test *t = *state;
    char *copy = make_dir(t), *good, *again, *api;
    struct exti_copy_info info = {.size = sizeof info};
    struct exti_dir *d;
    size_t n, m;

    assert_ok(exti_dir_read(test_path(t, "ctx"), &d, &t->err), &t->err);
    assert_int_equal(exti_dir_copy(d, 0, &info), 0);
    api = test_format(t, "%s", info.copy);
    exti_dir_free(d);
    good = test_read(t, copy, &n);
    for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
        damages[i](t, copy);
        damages[i](t, api);
        pretend_reboot(t);
        assert_true(verify(t).count > 0);
        recopy(t, copy);
        again = test_read(t, copy, &m);
        assert_true(n == m && !memcmp(again, good, n));
    }
}

/* After a reboot copies are checked, not written again. */
static void whole_copies_outlive_a_reboot(void **state)
{
    struct test *t = *state;
    char *copy = make_dir(t);
    struct stat first = stat_of(copy);

    pretend_reboot(t);
    recopy(t, copy);
    assert_int_equal(stat_of(copy).st_ino, first.st_ino);
}

/* A power loss may tear the manifest itself; the context keeps its name. */
static void a_torn_manifest_is_made_again(void **state)
{
    static const size_t keep[] = {0, 1, 40, 300};
    struct test *t = *state;
    char *copy = make_dir(t), *manifest = test_path(t, "ctx/manifest.json"), *text;
    size_t n;

    text = test_read(t, manifest, &n);
    for (size_t i = 0; i < ARRAY_SIZE(keep); i++) {
        struct exti_dir *d = NULL;
        char *torn = test_alloc(t, n);

        memcpy(torn, text, keep[i]);
        test_write(manifest, torn, i % 2 ? n : keep[i]);
        assert_exti(exti_dir_read(test_path(t, "ctx"), &d, &t->err), EXTI_E_FORMAT, &t->err,
                    ANY_OFFSET);
        assert_contains(t->err.file, "manifest.json");
        recopy(t, copy);
    }
    assert_int_equal(unlink(manifest), 0);
    recopy(t, copy);
}

static void a_manifest_cannot_name_files_elsewhere(void **state)
{
    struct test *t = *state;
    char *copy = make_dir(t), *victim = test_path(t, "victim");
    struct exti_dir *d = NULL;

    test_write(victim, "keep me", 7);
    edit_manifest(t, strrchr(copy, '/') + 1, "../victim");
    assert_exti(exti_dir_read(test_path(t, "ctx"), &d, &t->err), EXTI_E_FORMAT, &t->err,
                ANY_OFFSET);
    assert_true(exti_dir_clean(test_path(t, "ctx"), &t->err) != 0);
    assert_true(file_exists(victim));
}

/* ---- verify ---- */

static void verify_finds_changed_copies_and_strangers(void **state)
{
    struct test *t = *state;
    char *copy = make_dir(t);
    struct seen seen;
    size_t n;
    char *bytes = test_read(t, copy, &n);

    assert_sound(t);
    bytes[n / 2] = (char)(bytes[n / 2] ^ 1);
    test_write(copy, bytes, n);
    seen = verify(t);
    assert_int_equal(seen.count, 1);
    assert_contains(seen.text, copy);
    recopy(t, copy);
    test_write(test_path(t, "ctx/stranger.so"), "x", 1);
    seen = verify(t);
    assert_int_equal(seen.count, 1);
    assert_contains(seen.text, "stranger.so");
}

static void verify_and_read_refuse_other_folders(void **state)
{
    struct test *t = *state;
    struct exti_dir *d = NULL;
    size_t n = 5;

    assert_exti(exti_dir_read(t->dir, &d, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_contains(test_format(t, "%s %s", t->err.file, t->err.message), "manifest.json");
    assert_exti(exti_dir_verify("/nowhere", NULL, NULL, &n, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    test_write(test_path(t, "file"), "x", 1);
    assert_exti(exti_dir_read(test_path(t, "file"), &d, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(n, 5);
    assert_null(d);
}

/* ---- opening ---- */

static void open_refuses_wrong_names_and_foreign_folders(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = iso_opts(test_path(t, "ctx"), NULL);
    struct exti_ctx *ctx = NULL;

    make_dir(t);
    /* Another API library, another name. */
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_contains(t->err.message, "libtoy.so.1");
    opts.api_library = NULL;
    opts.name = "other";
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_contains(t->err.message, "other");
    /* The API library that the directory has. */
    opts.name = NULL;
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    close_ctx(t, ctx);
    assert_sound(t);
    /* A file; a folder of other things; a parent that is not there. */
    ctx = NULL;
    opts = iso_opts(test_path(t, "ext_a.so"), NULL);
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    opts.dir = t->dir;
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(test_list(t, t->dir), "ctx\next_a.so\nlibtoy.so.1\n");
    opts.dir = test_path(t, "no/such/parent");
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_null(ctx);
}

static void a_directory_that_cannot_be_made_leaves_nothing(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = iso_opts(test_path(t, "ctx"), NULL);
    struct exti_ctx *ctx = NULL;

    test_write(test_path(t, "bad.so"), "\177ELF but no more", 15);
    opts.api_library = test_path(t, "bad.so");
    assert_true(exti_ctx_open(&ctx, &opts, &t->err) < 0);
    assert_string_equal(t->err.file, test_path(t, "bad.so"));
    opts.api_library = "/nowhere/libtoy.so";
    assert_exti(exti_ctx_open(&ctx, &opts, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_null(ctx);
    assert_string_equal(test_list(t, t->dir), "bad.so\n");
}

/* A file that cannot be copied leaves the directory as it was. */
static void a_failed_copy_leaves_the_directory_sound(void **state)
{
    struct test *t = *state;
    struct exti_ctx *ctx;
    char *list;
    const char *path = NULL;

    make_dir(t);
    list = test_list(t, test_path(t, "ctx"));
    ctx = open_ctx(t, NULL);
    test_write(test_path(t, "bad.so"), "\177ELF\2\1\1", 7);
    assert_true(exti_copy(ctx, test_path(t, "bad.so"), &path, &t->err) < 0);
    assert_string_equal(t->err.file, test_path(t, "bad.so"));
    assert_true(exti_copy(ctx, "/bin/sh", &path, &t->err) < 0);
    assert_true(exti_copy(ctx, t->dir, &path, &t->err) < 0);
    assert_null(path);
    close_ctx(t, ctx);
    assert_string_equal(test_list(t, test_path(t, "ctx")), list);
    assert_sound(t);
}

/* ---- clean ---- */

static void clean_removes_only_the_contexts_files(void **state)
{
    struct test *t = *state;

    make_dir(t);
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    assert_false(file_exists(test_path(t, "ctx")));
    make_dir(t);
    test_write(test_path(t, "ctx/mine.txt"), "x", 1);
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    assert_string_equal(test_list(t, test_path(t, "ctx")), "mine.txt\n");
    assert_exti(exti_dir_clean(test_path(t, "ctx"), &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_true(file_exists(test_path(t, "ctx/mine.txt")));
}

static void synced_copies_are_trusted_after_a_reboot(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = iso_opts(test_path(t, "ctx"), NULL);
    struct exti_ctx *ctx;

    opts.flags = EXTI_CTX_SYNC;
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    copy_one(t, ctx, toy("ext_a.so"));
    close_ctx(t, ctx);
    assert_contains(test_read(t, test_path(t, "ctx/manifest.json"), NULL), "\"synced\": true");
    assert_sound(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(manifest_records_source_and_copy),
        exti_test(copies_need_the_contexts_api_copy),
        exti_test(a_file_that_names_the_library_again_needs_one_copy),
        exti_test(an_up_to_date_copy_is_reused),
        exti_test(a_stale_copy_is_replaced),
        exti_test(a_source_with_a_new_mtime_is_copied_again),
        exti_test(a_missing_copy_is_made_again),
        exti_test(a_truncated_copy_is_made_again),
        exti_test(list_reports_a_copy_whose_source_is_gone),
        exti_test(a_changed_api_library_makes_all_copies_stale),
        exti_test(contexts_opened_before_an_api_change_are_refused),
        exti_test(verify_reports_an_unreadable_api_library),
        exti_test(torn_copies_are_redone),
        exti_test(whole_copies_outlive_a_reboot),
        exti_test(a_torn_manifest_is_made_again),
        exti_test(a_manifest_cannot_name_files_elsewhere),
        exti_test(verify_finds_changed_copies_and_strangers),
        exti_test(verify_and_read_refuse_other_folders),
        exti_test(open_refuses_wrong_names_and_foreign_folders),
        exti_test(a_directory_that_cannot_be_made_leaves_nothing),
        exti_test(a_failed_copy_leaves_the_directory_sound),
        exti_test(clean_removes_only_the_contexts_files),
        exti_test(synced_copies_are_trusted_after_a_reboot),
    };

    return cmocka_run_group_tests_name("api/dir", tests, NULL, NULL);
}
