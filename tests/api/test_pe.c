/* PE files through the public interface: describing them, making a context of them, checking it. */
#include "tests/support/exti_test.h"

#include <string.h>

#include "tests/unit/pe/pe_toy.h"

static struct pe_toy toy;

static const char *write_toy(struct test *t, const char *name, struct pe_toy_opts o)
{
    const char *path = test_path(t, name);

    pe_toy_make(&toy, o);
    test_write(path, toy.b, toy.n);
    return path;
}

static void a_file_is_described(void **state)
{
    struct test *t = *state;
    struct exti_image_info info = {.size = sizeof info};
    struct exti_symbol_info s = {.size = sizeof s};
    struct exti_image *im;

    write_toy(t, "a.pyd", (struct pe_toy_opts){.symbols = true});
    memcpy(toy.b + toy.start[PTOY_TEXT] + 0x80, "\\Python3.dll", 13);
    ptoy_put(&toy, toy.nt + 22, 2, ptoy_get(&toy, toy.nt + 22, 2) | IMAGE_FILE_RELOCS_STRIPPED);
    test_write(test_path(t, "a.pyd"), toy.b, toy.n);
    assert_ok(exti_inspect(test_path(t, "a.pyd"), &im, &t->err), &t->err);
    assert_int_equal(exti_image_info(im, &info), 0);
    assert_int_equal(info.flags & EXTI_IMAGE_RELOCATABLE, 0);
    assert_contains(info.unfit, "IMAGE_FILE_RELOCS_STRIPPED");
    assert_int_equal(info.overlay_size, toy.n - toy.symbols);
    assert_int_equal(info.load_flags, 0x800);
    assert_int_equal(exti_image_symbol(im, 4, &s), 0);
    assert_string_equal(s.forward, "python311.PyLong_Type");
    assert_int_equal(s.ordinal, PTOY_ORDINAL_BASE + 4);
    assert_int_equal(exti_image_symbol(im, 7, &s), 0);
    assert_null(s.forward);
    assert_int_equal(s.ordinal, 12);
    assert_int_equal(exti_image_mention(im, "python3.dll", 0), toy.start[PTOY_TEXT] + 0x81);
    assert_true(exti_image_mention(im, "python311.dll", 0) == EXTI_NO_OFFSET);
    exti_image_free(im);
}

/* Callers built with a shorter struct get the members that they know. */
static void older_callers_are_served(void **state)
{
    struct test *t = *state;
    struct exti_symbol_info s = {.size = offsetof(struct exti_symbol_info, forward),
                                 .ordinal = 4711};
    struct exti_image_info info = {.size = offsetof(struct exti_image_info, unfit),
                                   .load_flags = 4711};
    struct exti_image *im;

    assert_ok(
        exti_inspect(write_toy(t, "a.pyd", (struct pe_toy_opts){.symbols = false}), &im, &t->err),
        &t->err);
    assert_int_equal(exti_image_symbol(im, 4, &s), 0);
    assert_int_equal(s.ordinal, 4711);
    assert_int_equal(exti_image_info(im, &info), 0);
    assert_int_equal(info.load_flags, 4711);
    assert_string_equal(info.format, "PE");
    exti_image_free(im);
}

static void a_context_of_them_is_made_and_checked(void **state)
{
    static const char *const symbols[] = {"PyModule_Create2", "Py_BuildValue", NULL};
    struct test *t = *state;
    struct exti_ctx_opts o = {.size = sizeof o, .flags = EXTI_CTX_COPY_ONLY};
    const char *path;
    struct exti_ctx *ctx;
    size_t findings = 4711;

    o.dir = test_path(t, "ctx");
    o.api_library = write_toy(
        t, "python311.dll",
        (struct pe_toy_opts){.api = "USER32.dll", .id = "python311.dll", .exports = symbols});
    write_toy(
        t, "python3.dll",
        (struct pe_toy_opts){
            .api = "USER32.dll", .id = "python3.dll", .exports = symbols, .forward = "python311"});
    assert_ok(exti_ctx_open(&ctx, &o, &t->err), &t->err);
    assert_ok(exti_copy(ctx,
                        write_toy(t, "by name.pyd", (struct pe_toy_opts){.api = "python3.dll"}),
                        &path, &t->err),
              &t->err);
    assert_contains(path, "/by name.");
    assert_ok(exti_copy(ctx, test_path(t, "python3.dll"), &path, &t->err), &t->err);
    assert_int_equal(strlen(strrchr(path, '/')), strlen("/sXXXXXXXX.dll"));
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_ok(exti_dir_verify(o.dir, NULL, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(a_file_is_described),
        exti_test(older_callers_are_served),
        exti_test(a_context_of_them_is_made_and_checked),
    };

    return cmocka_run_group_tests_name("api/pe", tests, NULL, NULL);
}
