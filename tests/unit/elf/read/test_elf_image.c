#include "tests/unit/elf/read/elf_toy_read.h"

static void read_describes_either_class_and_byte_order(void **state)
{
    static const char *const machines[2][2] = {{"i386", "PowerPC64"}, {"x86-64", "PowerPC64"}};
    struct fixture *f = *state;

    for (int wide = 0; wide < 2; wide++)
        for (int big = 0; big < 2; big++) {
            const struct exti_image_info *info = &f->image.info;

            elf_toy_make(&f->toy, wide, big);
            assert_ok(read_toy(f), &f->err);
            assert_string_equal(info->format, "ELF");
            assert_string_equal(info->machine, machines[wide][big]);
            assert_int_equal(info->bits, wide ? 64 : 32);
            assert_int_equal(info->big_endian, big);
            assert_string_equal(info->id, "libtoy.so");
            assert_string_equal(info->runpath, "$ORIGIN/lib");
            assert_null(info->rpath);
            assert_string_equal(info->build_id, "0123456789abcdef");
            assert_int_equal(info->flags,
                             EXTI_IMAGE_NODELETE | EXTI_IMAGE_BIND_NOW | EXTI_IMAGE_UNIQUE);
            assert_int_equal(info->needed_count, 1);
            assert_string_equal(f->image.needed[0].name, "libc.so.6");
            assert_int_equal(info->symbol_count, 3); /* the version node does not count */
            assert_symbol(&f->image, 0, "import", "V1", EXTI_SYM_WEAK | EXTI_SYM_FUNCTION);
            assert_symbol(&f->image, 1, "export", "V2", EXTI_SYM_EXPORT | EXTI_SYM_FUNCTION);
            assert_symbol(&f->image, 2, "unique", NULL, EXTI_SYM_EXPORT | EXTI_SYM_UNIQUE);
            exti__image_clear(&f->image);
        }
}

/* The tags that DT_FLAGS made redundant. */
static void older_flag_tags_mean_the_same(void **state)
{
    static const struct {
        uint64_t tag;
        uint32_t flag;
    } cases[] = {{DT_SYMBOLIC, EXTI_IMAGE_SYMBOLIC},
                 {DT_TEXTREL, EXTI_IMAGE_TEXTREL},
                 {DT_BIND_NOW, EXTI_IMAGE_BIND_NOW}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        elf_toy_make(&f->toy, true, false);
        toy_put(&f->toy, value_of(&f->toy, DT_FLAGS_1) - 8, 8, cases[i].tag);
        assert_ok(read_toy(f), &f->err);
        assert_int_equal(f->image.info.flags, cases[i].flag | EXTI_IMAGE_UNIQUE);
        exti__image_clear(&f->image);
        f->image.info.flags = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(read_describes_either_class_and_byte_order),
        read_test(older_flag_tags_mean_the_same),
    };

    return cmocka_run_group_tests_name("elf/elf_image", tests, NULL, NULL);
}
