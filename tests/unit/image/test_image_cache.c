#include "loader/image/image_cache.h"

#include "base/mem.h"
#include "base/os/fs_id.h"
#include "tests/support/exti_test.h"
#include "tests/unit/elf/elf_toy.h"

struct fixture {
    struct test *t;
    const char *path;
    struct elf_toy toy;
    struct exti_file_id id;
    struct exti_image_cache images;
};

static void write_toy(struct fixture *f)
{
    test_write(f->path, f->toy.b, f->toy.n);
    assert_ok(exti__fs_id(f->path, &f->id, &f->t->err), &f->t->err);
}

static int setup(void **state)
{
    static struct fixture f;
    void *t = NULL;

    f = (struct fixture){0};
    test_setup(&t);
    f.t = t;
    f.path = test_path(f.t, "libtoy.so");
    elf_toy_make(&f.toy, true, false);
    write_toy(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    while (f->images.users)
        exti__image_cache_end(&f->images);
    return test_teardown(&t);
}

#define images_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static struct exti_image *get_image(struct fixture *f)
{
    struct exti_image *im;

    assert_ok(exti__image_cache_get(&f->images, f->path, &f->id, &im, &f->t->err), &f->t->err);
    assert_string_equal(im->info.id, "libtoy.so");
    return im;
}

static void kept_images_are_read_once(void **state)
{
    struct fixture *f = *state;
    struct exti_image *im;

    exti__image_cache_begin(&f->images);
    im = get_image(f);
    exti__image_cache_put(&f->images, im);
    assert_ptr_equal(get_image(f), im);
    exti__image_cache_end(&f->images);
    assert_int_equal(f->images.users, 0);
    assert_null(f->images.kept);
}

static void nothing_is_kept_by_default(void **state)
{
    struct fixture *f = *state;

    exti__image_cache_put(&f->images, get_image(f));
    exti__image_cache_put(&f->images, NULL);
    assert_null(f->images.kept);
}

static void taken_images_outlive_the_cache(void **state)
{
    struct fixture *f = *state;
    struct exti_image *kept, *not_kept;

    not_kept = get_image(f);
    exti__image_cache_take(&f->images, not_kept);
    exti__image_cache_begin(&f->images);
    kept = get_image(f);
    exti__image_cache_take(&f->images, kept);
    assert_null(f->images.kept);
    exti__image_cache_end(&f->images);
    assert_string_equal(kept->info.id, "libtoy.so");
    assert_string_equal(not_kept->info.id, "libtoy.so");
    exti_image_free(kept);
    exti_image_free(not_kept);
}

static void images_stay_for_the_last_user(void **state)
{
    struct fixture *f = *state;
    struct exti_image *im;

    exti__image_cache_begin(&f->images);
    im = get_image(f);
    exti__image_cache_begin(&f->images);
    exti__image_cache_end(&f->images);
    assert_ptr_equal(get_image(f), im);
    exti__image_cache_end(&f->images);
    assert_null(f->images.kept);
}

static void given_images_are_kept_for_others(void **state)
{
    struct fixture *f = *state;
    struct exti_image *im;

    assert_null(exti__image_cache_take_file(&f->images, &f->id));
    exti__image_cache_begin(&f->images);
    im = get_image(f);
    assert_ptr_equal(exti__image_cache_take_file(&f->images, &f->id), im);
    assert_null(exti__image_cache_take_file(&f->images, &f->id));
    exti__image_cache_give(&f->images, im);
    assert_ptr_equal(get_image(f), im);
    exti__image_cache_give(&f->images, NULL);
}

/* The first one stays; and where nobody uses the cache, none does. */
static void what_is_given_too_often_is_freed(void **state)
{
    struct fixture *f = *state;
    struct exti_image *first, *second;

    first = get_image(f);
    second = get_image(f);
    exti__image_cache_begin(&f->images);
    exti__image_cache_give(&f->images, first);
    exti__image_cache_give(&f->images, second);
    assert_ptr_equal(exti__image_cache_take_file(&f->images, &f->id), first);
    exti__image_cache_end(&f->images);
    exti__image_cache_give(&f->images, first);
    assert_null(f->images.kept);
}

static void a_changed_file_is_read_again(void **state)
{
    struct fixture *f = *state;
    const struct exti_image *old, *now;

    exti__image_cache_begin(&f->images);
    old = get_image(f);
    f->path = test_path(f->t, "again.so");
    f->toy.n++;
    write_toy(f);
    now = get_image(f);
    assert_ptr_not_equal(now, old);
    assert_int_equal(now->bytes.n, old->bytes.n + 1);
    assert_int_equal(exti__inspected_id(now)->size, f->id.size);
}

/* chmod and link change that, too, and what compares a file with its image compares it. */
static void the_time_of_the_inode_counts(void **state)
{
    struct fixture *f = *state;
    struct exti_image *im, *again;

    exti__image_cache_begin(&f->images);
    im = get_image(f);
    f->id.ctime_ns++;
    again = get_image(f);
    assert_ptr_not_equal(again, im);
    exti__image_cache_put(&f->images, again);
}

static void unreadable_file_is_reported(void **state)
{
    struct fixture *f = *state;
    struct exti_image *im = NULL;

    exti__image_cache_begin(&f->images);
    assert_int_equal(
        exti__image_cache_get(&f->images, test_path(f->t, "none.so"), &f->id, &im, &f->t->err),
        EXTI_E_IO);
    assert_null(im);
    assert_null(f->images.kept);
}

/* If there is no memory to keep an image, the caller still gives it back as usual. */
static void out_of_memory_loses_nothing(void **state)
{
    struct fixture *f = *state;
    struct exti_image *im;
    long n = -1;
    int rc;

    do {
        exti__image_cache_begin(&f->images);
        exti__mem_fail_after(++n);
        rc = exti__image_cache_get(&f->images, f->path, &f->id, &im, &f->t->err);
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || rc == EXTI_E_NOMEM);
        if (!rc) {
            assert_string_equal(im->info.id, "libtoy.so");
            exti__image_cache_put(&f->images, im);
        }
        assert_true(n < 1000);
        if (f->images.kept)
            break;
        exti__image_cache_end(&f->images);
    } while (true);
    assert_int_equal(rc, 0);
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        images_test(kept_images_are_read_once),
        images_test(nothing_is_kept_by_default),
        images_test(taken_images_outlive_the_cache),
        images_test(images_stay_for_the_last_user),
        images_test(given_images_are_kept_for_others),
        images_test(what_is_given_too_often_is_freed),
        images_test(a_changed_file_is_read_again),
        images_test(the_time_of_the_inode_counts),
        images_test(unreadable_file_is_reported),
        images_test(out_of_memory_loses_nothing),
    };

    return cmocka_run_group_tests_name("images", tests, NULL, NULL);
}
