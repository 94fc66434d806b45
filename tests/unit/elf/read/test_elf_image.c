#include "tests/unit/elf/read/elf_toy_read.h"

#include <stdlib.h>

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

/* The tags that DT_FLAGS made redundant, and those of withheld constructors. */
static void tags_without_a_value_set_flags(void **state)
{
    static const struct {
        uint64_t tag;
        uint32_t flag;
    } cases[] = {{DT_SYMBOLIC, EXTI_IMAGE_SYMBOLIC},
                 {DT_TEXTREL, EXTI_IMAGE_TEXTREL},
                 {DT_BIND_NOW, EXTI_IMAGE_BIND_NOW},
                 {EXTI_DT_INIT, EXTI_IMAGE_WITHHELD},
                 {EXTI_DT_INIT_ARRAY, EXTI_IMAGE_WITHHELD}};
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

/* Each header alone is sound; together they name 60000 times the file's bytes. */
static void notes_that_share_bytes_are_read_in_linear_time(void **state)
{
    enum { COUNT = 60000, ZEROS = 4 << 20, ROOM = ZEROS + COUNT * 56 + 8192 };
    struct fixture *f = *state;
    uint8_t *file = calloc(ROOM, 1), note[56];

    assert_non_null(file);
    elf_toy_make(&f->toy, true, false);
    toy_put(&f->toy, f->toy.note + 8, 4, 0); /* no build-id ends the search */
    memcpy(note, f->toy.b + f->toy.phdr + 3 * 56, sizeof note);
    for (size_t i = 0; i < 4; i++) {
        note[8 + i] = (uint8_t)((ROOM - ZEROS) >> 8 * i);
        note[32 + i] = (uint8_t)(ZEROS >> 8 * i);
    }
    elf_toy_crowd(&f->toy, COUNT, note, file);
    test_time_limit(30);
    assert_ok(exti__elf_format.read(exti__span(file, ROOM), &f->image, &f->err), &f->err);
    test_time_limit(0);
    assert_null(f->image.info.build_id);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(read_describes_either_class_and_byte_order),
        read_test(tags_without_a_value_set_flags),
        read_test(notes_that_share_bytes_are_read_in_linear_time),
    };

    return cmocka_run_group_tests_name("elf/elf_image", tests, NULL, NULL);
}
