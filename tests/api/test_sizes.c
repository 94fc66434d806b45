/* Option structs of older callers, which end earlier, and of newer ones, which are longer. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <string.h>

#include "tests/isolation/iso.h"

enum { TAIL = 24 };

/* ---- what callers give ---- */

/* A caller's struct of `size` bytes: the first `known` are ours, all others have the value
 * `rest`. */
#define OTHERS(type, name, ours, count, length, rest)                                              \
    union {                                                                                        \
        type known;                                                                                \
        unsigned char bytes[sizeof(type) + TAIL];                                                  \
    } name;                                                                                        \
    memset(&(name), (rest), sizeof(name));                                                         \
    memcpy(&(name), (ours), (count));                                                              \
    (name).known.size = (length)

static void older_callers_contexts_open(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts ours = iso_opts(test_path(t, "x"), NULL);
    const struct exti_hooks no_hooks = {.size = sizeof no_hooks};
    const size_t at = offsetof(struct exti_ctx_opts, closure);
    const size_t hooks_at = offsetof(struct exti_hooks, before_load);
    struct exti_ctx *ctx;
    OTHERS(struct exti_ctx_opts, opts, &ours, at, at, 0xff);
    OTHERS(struct exti_hooks, hooks, &no_hooks, hooks_at, hooks_at, 0xff);

    opts.known.hooks = &hooks.known;
    opts.known.flags |= EXTI_CTX_COPY_ONLY;
    assert_ok(exti_ctx_open(&ctx, &opts.known, &t->err), &t->err);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
}

static void newer_callers_contexts_open_if_what_is_new_is_zero(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts ours = iso_opts(test_path(t, "x"), NULL);
    const struct exti_hooks no_hooks = {.size = sizeof no_hooks};
    struct exti_ctx *ctx;
    OTHERS(struct exti_ctx_opts, opts, &ours, sizeof ours, sizeof opts, 0);
    OTHERS(struct exti_hooks, hooks, &no_hooks, sizeof no_hooks, sizeof hooks, 0);

    opts.known.hooks = &hooks.known;
    opts.known.flags |= EXTI_CTX_COPY_ONLY;
    opts.bytes[sizeof ours + 3] = 1;
    assert_exti(exti_ctx_open(&ctx, &opts.known, &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "struct exti_ctx_opts: this library is older than its caller");
    opts.bytes[sizeof ours + 3] = 0;
    hooks.bytes[sizeof hooks - 1] = 1;
    t->err = (struct exti_error){0};
    assert_exti(exti_ctx_open(&ctx, &opts.known, &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "struct exti_hooks: this library is older than its caller");
    hooks.bytes[sizeof hooks - 1] = 0;
    t->err = (struct exti_error){0};
    assert_string_equal(test_list(t, t->dir), "");
    assert_ok(exti_ctx_open(&ctx, &opts.known, &t->err), &t->err);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
}

static void options_of_many_copies_may_be_of_any_size(void **state)
{
    struct test *t = *state;
    struct exti_ctx_opts ctx_opts = iso_opts(test_path(t, "x"), NULL);
    const struct exti_copy_opts ours = {.size = sizeof ours};
    const char *const originals[] = {toy("ext_a.so")};
    const size_t at = offsetof(struct exti_copy_opts, threads);
    struct exti_ctx *ctx;
    OTHERS(struct exti_copy_opts, older, &ours, at, at, 0xff);
    OTHERS(struct exti_copy_opts, newer, &ours, sizeof ours, sizeof newer, 0);

    ctx_opts.flags |= EXTI_CTX_COPY_ONLY;
    assert_ok(exti_ctx_open(&ctx, &ctx_opts, &t->err), &t->err);
    assert_ok(exti_copy_many(ctx, originals, 1, &older.known, &t->err), &t->err);
    assert_ok(exti_copy_many(ctx, originals, 1, &newer.known, &t->err), &t->err);
    newer.bytes[sizeof ours] = 1;
    assert_exti(exti_copy_many(ctx, originals, 1, &newer.known, &t->err), EXTI_E_ARG, &t->err,
                EXTI_NO_OFFSET);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
}

/* ---- what callers get ---- */

/* Asks with each size: as much as that is filled, as in the whole answer, and no more. */
static void want_each_size(int (*give)(void *of, void *out), void *of, size_t known)
{
    unsigned char whole[512] = {0}, out[512];

    want(known + TAIL <= sizeof out);
    memcpy(whole, &known, sizeof known);
    want(give(of, whole) == 0);
    for (size_t size = sizeof size; size <= known + TAIL; size++) {
        const size_t filled = size < known ? size : known;

        memset(out, 0xee, sizeof out);
        memcpy(out, &size, sizeof size);
        want(give(of, out) == 0);
        want(!memcmp(out, &size, sizeof size));
        want(!memcmp(out + sizeof size, whole + sizeof size, filled - sizeof size));
        for (size_t i = filled; i < sizeof out; i++)
            want(out[i] == 0xee);
    }
    for (size_t size = 0; size < sizeof size; size++) {
        memcpy(out, &size, sizeof size);
        want(give(of, out) == EXTI_E_ARG);
    }
}

static int give_copy(void *d, void *out)
{
    return exti_dir_copy(d, 0, out);
}

static int give_quirk(void *q, void *out)
{
    return exti_quirks_info(q, 0, out);
}

static int give_symbol(void *im, void *out)
{
    return exti_image_symbol(im, 0, out);
}

static int give_image(void *im, void *out)
{
    return exti_image_info(im, out);
}

static int give_proof(void *ctx, void *out)
{
    return exti_ctx_prove(ctx, NULL, NULL, out, NULL);
}

static void ask_a_context(void *dir)
{
    struct exti_ctx_opts opts = iso_opts(dir, NULL);
    struct exti_ctx *ctx = iso_open_opts(&opts);

    iso_load(ctx, toy("ext_a.so"));
    want_each_size(give_proof, ctx, sizeof(struct exti_proof));
    iso_close_ctx(ctx);
}

static void ask_files(void *dir)
{
    struct exti_ctx_opts opts = iso_opts(dir, NULL);
    struct exti_error err = {0};
    struct exti_quirks *quirks;
    struct exti_image *im;
    struct exti_ctx *ctx;
    struct exti_dir *d;

    opts.flags |= EXTI_CTX_COPY_ONLY;
    ctx = iso_open_opts(&opts);
    iso_close_ctx(ctx);
    want_exti(exti_dir_read(dir, &d, &err), 0, &err);
    want_each_size(give_copy, d, sizeof(struct exti_copy_info));
    exti_dir_free(d);
    want_exti(exti_quirks_open(NULL, 0, &quirks, &err), 0, &err);
    want_each_size(give_quirk, quirks, sizeof(struct exti_quirk_info));
    exti_quirks_free(quirks);
    want_exti(exti_inspect(toy("libtoy.so.1"), &im, &err), 0, &err);
    want_each_size(give_symbol, im, sizeof(struct exti_symbol_info));
    want_each_size(give_image, im, sizeof(struct exti_image_info));
    exti_image_free(im);
}

static void answers_fill_structs_of_any_size(void **state)
{
    struct test *t = *state;

    assert_true(iso_fork(ask_files, test_path(t, "x")));
    assert_true(iso_fork(ask_a_context, test_path(t, "y")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(older_callers_contexts_open),
        exti_test(newer_callers_contexts_open_if_what_is_new_is_zero),
        exti_test(options_of_many_copies_may_be_of_any_size),
        exti_test(answers_fill_structs_of_any_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
