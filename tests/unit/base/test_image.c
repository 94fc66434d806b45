#include "tests/support/exti_test.h"

#include "base/image.h"
#include "base/mem.h"

static void format_names_and_formats_match(void **state)
{
    static const enum exti_file_format formats[] = {EXTI_FORMAT_ELF, EXTI_FORMAT_MACHO,
                                                    EXTI_FORMAT_PE};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
        assert_int_equal(exti__format_named(exti__format_name(formats[i])), formats[i]);
    assert_string_equal(exti__format_name(EXTI_FORMAT_MACHO), "Mach-O");
    assert_null(exti__format_name(EXTI_FORMAT_NONE));
}

static void unknown_format_names_give_no_format(void **state)
{
    (void)state;
    assert_int_equal(exti__format_named(""), EXTI_FORMAT_NONE);
    assert_int_equal(exti__format_named("elf"), EXTI_FORMAT_NONE);
    assert_int_equal(exti__format_named("COFF"), EXTI_FORMAT_NONE);
}

static void arrays_grow_and_keep_their_order(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    struct exti_image im = {0};
    struct exti_error err;

    (void)state;
    for (size_t i = 0; i < 60; i++) {
        assert_ok(exti__image_add_needed(&im, names[i % 3], (uint32_t)i, &err), &err);
        assert_ok(exti__image_add_path(&im, names[(i + 1) % 3], &err), &err);
        assert_ok(exti__image_add_symbol(&im,
                                         (struct exti_image_symbol){.name = names[(i + 2) % 3],
                                                                    .ordinal = (uint32_t)i},
                                         &err),
                  &err);
    }
    assert_int_equal(im.info.needed_count, 60);
    assert_int_equal(im.path_count, 60);
    assert_int_equal(im.info.symbol_count, 60);
    for (size_t i = 0; i < 60; i++) {
        assert_ptr_equal(im.needed[i].name, names[i % 3]);
        assert_int_equal(im.needed[i].flags, i);
        assert_ptr_equal(im.paths[i], names[(i + 1) % 3]);
        assert_ptr_equal(im.symbols[i].name, names[(i + 2) % 3]);
        assert_int_equal(im.symbols[i].ordinal, i);
    }
    exti__image_clear(&im);
    assert_null(im.needed);
    assert_int_equal(im.info.symbol_count, 0);
}

static void failed_growth_keeps_the_image(void **state)
{
    struct exti_image im = {0};
    struct exti_error err;

    (void)state;
    assert_ok(exti__image_add_path(&im, "a", &err), &err);
    exti__mem_fail_after(0);
    assert_int_equal(exti__image_add_needed(&im, "x", 0, &err), EXTI_E_NOMEM);
    exti__mem_fail_after(0);
    assert_int_equal(exti__image_add_symbol(&im, (struct exti_image_symbol){.name = "x"}, &err),
                     EXTI_E_NOMEM);
    assert_int_equal(im.info.needed_count + im.info.symbol_count, 0);
    assert_string_equal(im.paths[0], "a");
    exti__image_clear(&im);
}

static void part_is_a_slice_or_the_file_itself(void **state)
{
    static struct exti_image slices[2];
    struct exti_image universal = {.slices = slices, .info.slice_count = 2}, thin = {0};

    (void)state;
    assert_ptr_equal(exti__image_part(&universal, 1), &slices[1]);
    assert_null(exti__image_part(&universal, 2));
    assert_ptr_equal(exti__image_part(&thin, 0), &thin);
    assert_null(exti__image_part(&thin, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_names_and_formats_match),
        cmocka_unit_test(unknown_format_names_give_no_format),
        cmocka_unit_test(arrays_grow_and_keep_their_order),
        cmocka_unit_test(failed_growth_keeps_the_image),
        cmocka_unit_test(part_is_a_slice_or_the_file_itself),
    };

    return cmocka_run_group_tests_name("base/image", tests, NULL, NULL);
}
