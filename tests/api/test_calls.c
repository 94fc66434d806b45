/* All public calls check arguments, accept option structs of other versions and report errors
 * alike. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <string.h>

#include "tests/isolation/iso.h"

/* An error that no call would produce, to detect whether it was touched. */
static struct exti_error untouched(void)
{
    struct exti_error err;

    memset(&err, 0x5a, sizeof err);
    return err;
}

#define assert_untouched(err)                                                                      \
    do {                                                                                           \
        struct exti_error was_ = untouched();                                                      \
        assert_memory_equal((err), &was_, sizeof was_);                                            \
    } while (0)

/* Asserts an argument fault: the code, no offset, the message; and that err may be NULL. */
#define assert_arg(call, err)                                                                      \
    do {                                                                                           \
        struct exti_error *e_ = (err);                                                             \
        *e_ = untouched();                                                                         \
        assert_exti((call), EXTI_E_ARG, e_, EXTI_NO_OFFSET);                                       \
    } while (0)

static void code_names_are_those_of_the_header(void **state)
{
    static const char *const names[] = {"EXTI_OK",        "EXTI_E_ARG",        "EXTI_E_NOMEM",
                                        "EXTI_E_IO",      "EXTI_E_FORMAT",     "EXTI_E_UNSUPPORTED",
                                        "EXTI_E_NOSPACE", "EXTI_E_LOAD",       "EXTI_E_NOSYM",
                                        "EXTI_E_HOOK",    "EXTI_E_INTERPOSED", "EXTI_E_CHECK",
                                        "EXTI_E_BUSY",    "EXTI_E_TRUST",      "EXTI_E_CAPTURED"};
    char version[32];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_string_equal(exti_code_name(-(int)i), names[i]);
    assert_non_null(exti_code_name(1));
    assert_non_null(exti_code_name(-1000));
    snprintf(version, sizeof version, "%d.%d.%d", EXTI_VERSION_MAJOR, EXTI_VERSION_MINOR,
             EXTI_VERSION_PATCH);
    assert_string_equal(exti_version(), version);
}

static void rewrite_and_inspect_check_their_arguments(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = {.size = sizeof opts};
    struct exti_image *im = (void *)t;
    const char *src = toy("ext_a.so"), *dst = test_path(t, "x.so");

    assert_arg(exti_rewrite(NULL, dst, &opts, &t->err), &t->err);
    assert_arg(exti_rewrite(src, NULL, &opts, &t->err), &t->err);
    assert_arg(exti_rewrite(src, dst, NULL, &t->err), &t->err);
    opts.size = 0;
    assert_arg(exti_rewrite(src, dst, &opts, &t->err), &t->err);
    opts = (struct exti_rewrite_opts){.size = sizeof opts, .flags = 1u << 31};
    assert_arg(exti_rewrite(src, dst, &opts, &t->err), &t->err);
    opts = (struct exti_rewrite_opts){.size = sizeof opts, .needed_count = 1};
    assert_arg(exti_rewrite(src, dst, &opts, &t->err), &t->err);
    opts = (struct exti_rewrite_opts){.size = sizeof opts, .rename_count = 1};
    assert_arg(exti_rewrite(src, dst, &opts, &t->err), &t->err);
    assert_int_equal(exti_rewrite(NULL, NULL, NULL, NULL), EXTI_E_ARG);
    assert_false(file_exists(dst));

    assert_arg(exti_inspect(NULL, &im, &t->err), &t->err);
    assert_arg(exti_inspect(src, NULL, &t->err), &t->err);
    assert_ptr_equal(im, t);
    assert_int_equal(exti_inspect(NULL, NULL, NULL), EXTI_E_ARG);
    exti_image_free(NULL);
}

static void bad_edits_are_refused(void **state)
{
    struct test *t = *state;
    const struct exti_needed both_null = {NULL, NULL, EXTI_NEEDED_LAST};
    const struct exti_needed absent = {"libabsent.so", "libx.so", EXTI_NEEDED_LAST};
    const struct exti_needed remove_absent = {"libabsent.so", NULL, EXTI_NEEDED_LAST};
    const struct exti_needed empty = {NULL, "", EXTI_NEEDED_LAST};
    const struct exti_rename no_to = {"toy_next", NULL}, no_from = {NULL, "x"};
    const struct exti_needed *const needed[] = {&both_null, &absent, &remove_absent, &empty};
    const struct exti_rename *const renames[] = {&no_to, &no_from};
    const char *dst = test_path(t, "x.so");

    for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
        struct exti_rewrite_opts opts = {
            .size = sizeof opts, .needed = needed[i], .needed_count = 1};
        int rc = exti_rewrite(toy("ext_a.so"), dst, &opts, &t->err);

        assert_true(rc == EXTI_E_ARG || rc == EXTI_E_UNSUPPORTED);
        assert_true(t->err.code == rc && t->err.message[0]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(renames); i++) {
        struct exti_rewrite_opts opts = {
            .size = sizeof opts, .renames = renames[i], .rename_count = 1};

        assert_arg(exti_rewrite(toy("ext_a.so"), dst, &opts, &t->err), &t->err);
    }
    assert_false(file_exists(dst));
    assert_string_equal(test_list(t, t->dir), "");
}

static void check_and_dir_calls_check_their_arguments(void **state)
{
    struct test *t = *state;
    struct exti_dir *d = (void *)t;
    struct exti_copy_info info = {.size = sizeof info};
    const char *f = toy("ext_a.so");
    size_t n = 77;

    assert_arg(exti_verify(NULL, f, NULL, NULL, &n, &t->err), &t->err);
    assert_arg(exti_verify(f, NULL, NULL, NULL, &n, &t->err), &t->err);
    assert_int_equal(exti_verify(NULL, NULL, NULL, NULL, NULL, NULL), EXTI_E_ARG);
    assert_arg(exti_dir_read(NULL, &d, &t->err), &t->err);
    assert_arg(exti_dir_read("/tmp", NULL, &t->err), &t->err);
    assert_arg(exti_dir_verify(NULL, NULL, NULL, &n, &t->err), &t->err);
    assert_arg(exti_dir_clean(NULL, &t->err), &t->err);
    assert_int_equal(n, 77);
    assert_ptr_equal(d, t);
    assert_int_equal(exti_dir_copy(NULL, 0, &info), EXTI_E_ARG);
    exti_dir_free(NULL);
}

static void context_calls_check_their_arguments(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts opts = iso_opts(test_path(t, "x"), NULL);
    struct exti_ctx *ctx = NULL;
    struct exti_module *m = (void *)t;
    const char *path = "as it was";
    void *p = t;

    assert_arg(exti_ctx_open(NULL, &opts, &t->err), &t->err);
    assert_arg(exti_ctx_open(&ctx, NULL, &t->err), &t->err);
    assert_null(ctx);
    assert_ok(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    assert_arg(exti_copy(NULL, toy("ext_a.so"), &path, &t->err), &t->err);
    assert_arg(exti_copy(ctx, NULL, &path, &t->err), &t->err);
    assert_arg(exti_load(NULL, toy("ext_a.so"), &m, &t->err), &t->err);
    assert_arg(exti_load(ctx, NULL, &m, &t->err), &t->err);
    assert_arg(exti_load(ctx, toy("ext_a.so"), NULL, &t->err), &t->err);
    assert_arg(exti_api(NULL, &m, &t->err), &t->err);
    assert_arg(exti_api(ctx, NULL, &t->err), &t->err);
    assert_arg(exti_symbol(NULL, "x", &p, &t->err), &t->err);
    assert_arg(exti_close(NULL, &t->err), &t->err);
    assert_arg(exti_ctx_prove(NULL, NULL, NULL, NULL, &t->err), &t->err);
    assert_ptr_equal(m, t);
    assert_ptr_equal(p, t);
    assert_string_equal(path, "as it was");
    assert_int_equal(exti_ctx_close(NULL, NULL), 0);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
}

static void bad_context_options_are_refused(void **state)
{
    static const char *const names[] = {
        "", "a b", "a/b", "..", "a.b", "123456789012345678901234567890123", "h\xc3\xb6"};
    struct test *t = *state;
    struct exti_ctx *ctx = (void *)t;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct exti_ctx_opts opts = iso_opts(test_path(t, "x"), names[i]);

        assert_arg(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    }
    for (int i = 0; i < 4; i++) {
        const struct exti_redirect no_symbol = {NULL, t}, no_target = {"x", NULL};
        struct exti_ctx_opts opts = iso_opts(test_path(t, "x"), NULL);

        opts.redirect_count = 1;
        if (i == 1)
            opts.redirects = &no_symbol;
        else if (i == 2)
            opts.redirects = &no_target;
        else if (i == 3)
            opts.redirect_count = 0, opts.flags = 1u << 30;
        assert_arg(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
    }
    {
        struct exti_ctx_opts opts = {.size = sizeof opts, .dir = test_path(t, "x")};
        const struct exti_hooks hooks = {.size = 0};

        assert_arg(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
        opts.hooks = &hooks;
        assert_arg(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
        assert_says(&t->err, "struct exti_hooks.size is 0");
        opts = iso_opts("", NULL);
        assert_arg(exti_ctx_open(&ctx, &opts, &t->err), &t->err);
        assert_says(&t->err, "the context directory's name is empty");
    }
    assert_ptr_equal(ctx, t);
    assert_string_equal(test_list(t, t->dir), "");
}

static void copy_only(void *dir)
{
    struct exti_ctx_opts opts = iso_opts(dir, NULL);
    struct exti_proof proof = {.size = sizeof proof};
    struct exti_module *m = NULL;
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    opts.flags = EXTI_CTX_COPY_ONLY;
    ctx = iso_open_opts(&opts);
    want_exti(exti_api(ctx, &m, &err), EXTI_E_ARG, &err);
    want_text(err.message, "EXTI_CTX_COPY_ONLY; it cannot load");
    want_exti(exti_load(ctx, toy("ext_a.so"), &m, &err), EXTI_E_ARG, &err);
    want_exti(exti_ctx_prove(ctx, NULL, NULL, &proof, &err), EXTI_E_ARG, &err);
    want(!m);
    iso_close_ctx(ctx);
}

static void loaded(void *dir)
{
    struct exti_ctx_opts opts = iso_opts(dir, NULL);
    struct exti_ctx *ctx = iso_open_opts(&opts);
    struct exti_module *m = iso_load(ctx, toy("ext_a.so"));
    struct exti_proof proof = {.size = 0};
    struct exti_error err = {0};
    void *p = ctx;

    want_exti(exti_symbol(m, "not_there", &p, &err), EXTI_E_NOSYM, &err);
    want_text(err.message, "no symbol not_there");
    want_text(err.file, "ext_a.so");
    want_exti(exti_symbol(m, "", &p, &err), EXTI_E_ARG, &err);
    want(p == ctx);
    want_exti(exti_close(iso_api(ctx), &err), EXTI_E_ARG, &err);
    want_text(err.message, "closed with its context");
    want_exti(exti_ctx_prove(ctx, NULL, NULL, &proof, &err), EXTI_E_ARG, &err);
    want_text(err.message, "struct exti_proof.size is not set");
    iso_close_ctx(ctx);
}

static void calls_on_contexts_check_what_is_there(void **state)
{
    struct test *t = *state;

    assert_true(iso_fork(copy_only, test_path(t, "x")));
    assert_true(iso_fork(loaded, test_path(t, "y")));
}

/* ---- option structs of other versions ---- */

struct newer_opts {
    struct exti_rewrite_opts known;
    char tail[24];
};

static void a_newer_callers_options_are_accepted_when_zero(void **state)
{
    struct test *t = *state;
    struct newer_opts opts = {.known = {.size = sizeof opts, .id = "libnew.so"}};

    assert_ok(exti_rewrite(toy("ext_a.so"), test_path(t, "x.so"), &opts.known, &t->err), &t->err);
    opts.tail[7] = 1;
    assert_arg(exti_rewrite(toy("ext_a.so"), test_path(t, "y.so"), &opts.known, &t->err), &t->err);
    assert_string_equal(test_list(t, t->dir), "x.so\n");
}

static void an_older_callers_options_are_accepted(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts;

    /* Ends with `id`; the library must not read further. */
    memset(&opts, 0xff, sizeof opts);
    opts.size = offsetof(struct exti_rewrite_opts, needed);
    opts.id = "libold.so";
    assert_ok(exti_rewrite(toy("ext_a.so"), test_path(t, "x.so"), &opts, &t->err), &t->err);
    assert_contains(test_must_run(t, "readelf", "-dW", test_path(t, "x.so"), NULL),
                    "Library soname: [libold.so]");
}

static void outputs_of_any_size_are_filled_that_far(void **state)
{
    struct test *t = *state;
    struct {
        struct exti_image_info info;
        unsigned char tail[16];
    } out;
    struct exti_image *im;

    assert_ok(exti_inspect(toy("libtoy.so.1"), &im, &t->err), &t->err);
    memset(&out, 0xee, sizeof out);
    out.info.size = offsetof(struct exti_image_info, rpath);
    assert_int_equal(exti_image_info(im, &out.info), 0);
    assert_string_equal(out.info.id, "libtoy.so.1");
    assert_true((uintptr_t)out.info.rpath == (uintptr_t)0xeeeeeeeeeeeeeeee);
    out.info.size = sizeof out;
    assert_int_equal(exti_image_info(im, &out.info), 0);
    assert_null(out.info.rpath);
    assert_int_equal(out.tail[0], 0xee);
    out.info.size = 0;
    assert_int_equal(exti_image_info(im, &out.info), EXTI_E_ARG);
    assert_int_equal(exti_image_info(im, NULL), EXTI_E_ARG);
    assert_int_equal(exti_image_info(NULL, &out.info), EXTI_E_ARG);
    exti_image_free(im);
}

/* ---- the error struct ---- */

static void success_leaves_the_error_alone(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = {.size = sizeof opts, .id = "x.so"};
    struct exti_image *im;
    size_t n;

    t->err = untouched();
    assert_int_equal(exti_inspect(toy("ext_a.so"), &im, &t->err), 0);
    exti_image_free(im);
    assert_int_equal(exti_rewrite(toy("ext_a.so"), test_path(t, "x.so"), &opts, &t->err), 0);
    assert_int_equal(exti_verify(test_path(t, "x.so"), toy("ext_a.so"), NULL, NULL, &n, &t->err),
                     0);
    assert_untouched(&t->err);
    assert_int_equal(n, 0);
}

static void an_io_error_names_file_and_errno(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = {.size = sizeof opts, .id = "x.so"};
    struct exti_image *im = NULL;

    assert_exti(exti_inspect("/nowhere/x.so", &im, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
    assert_string_equal(t->err.file, "/nowhere/x.so");
    assert_exti(exti_rewrite(toy("ext_a.so"), "/nowhere/y.so", &opts, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
    assert_contains(t->err.file, "/nowhere");
    assert_exti(exti_inspect(t->dir, &im, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
}

static void a_format_error_names_file_and_offset(void **state)
{
    struct test *t = *state;
    size_t n;
    char *bytes = test_read(t, toy("ext_a.so"), &n);
    struct exti_image *im = NULL;
    char *path = test_path(t, "cut.so");

    test_write(path, bytes, 100);
    assert_exti(exti_inspect(path, &im, &t->err), EXTI_E_FORMAT, &t->err, ANY_OFFSET);
    assert_true(t->err.offset != EXTI_NO_OFFSET);
    assert_string_equal(t->err.file, path);
    test_write(path, "#!/bin/sh\necho this is no library, whatever its name says\n", 58);
    assert_exti(exti_inspect(path, &im, &t->err), EXTI_E_UNSUPPORTED, &t->err, ANY_OFFSET);
    assert_string_equal(t->err.file, path);
}

/* The end of a path has the file's name. */
static void a_long_path_keeps_its_tail(void **state)
{
    struct test *t = *state;
    char path[900];
    struct exti_image *im = NULL;

    memset(path, 'd', sizeof path);
    for (size_t i = 0; i < sizeof path; i += 100)
        path[i] = '/';
    memcpy(path + sizeof path - 9, "/last.so", 9);
    assert_exti(exti_inspect(path, &im, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_contains(t->err.file, "/last.so");
    assert_true(strlen(t->err.file) < sizeof t->err.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(code_names_are_those_of_the_header),
        exti_test(rewrite_and_inspect_check_their_arguments),
        exti_test(bad_edits_are_refused),
        exti_test(check_and_dir_calls_check_their_arguments),
        exti_test(context_calls_check_their_arguments),
        exti_test(bad_context_options_are_refused),
        exti_test(calls_on_contexts_check_what_is_there),
        exti_test(a_newer_callers_options_are_accepted_when_zero),
        exti_test(an_older_callers_options_are_accepted),
        exti_test(outputs_of_any_size_are_filled_that_far),
        exti_test(success_leaves_the_error_alone),
        exti_test(an_io_error_names_file_and_errno),
        exti_test(a_format_error_names_file_and_offset),
        exti_test(a_long_path_keeps_its_tail),
    };

    return cmocka_run_group_tests_name("api/calls", tests, NULL, NULL);
}
