#include <string.h>

#include "base/os/sha256.h"
#include "tests/support/exti_test.h"

static const char *hex(struct test *t, const uint8_t *hash)
{
    char *text = test_alloc(t, EXTI_SHA256_SIZE * 2 + 1);

    for (size_t i = 0; i < EXTI_SHA256_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    return text;
}

/* FIPS 180-2, appendix B, and the empty message. */
static const struct {
    const char *message, *hash;
} vectors[] = {
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static void gives_the_hashes_of_the_standard(void **state)
{
    struct test *t = *state;
    struct exti_sha256 h;
    uint8_t hash[EXTI_SHA256_SIZE];

    assert_ok(exti__sha256_init(&h, &t->err), &t->err);
    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
        exti__sha256_add(&h, vectors[i].message, strlen(vectors[i].message));
        assert_ok(exti__sha256_end(&h, hash, &t->err), &t->err);
        assert_string_equal(hex(t, hash), vectors[i].hash);
    }
    exti__sha256_free(&h);
    exti__sha256_free(&h);
}

static void takes_a_message_in_pieces(void **state)
{
    struct test *t = *state;
    const size_t size = 1000000;
    char *as = test_alloc(t, size);
    struct exti_sha256 h;
    uint8_t hash[EXTI_SHA256_SIZE];
    size_t n;

    memset(as, 'a', size);
    assert_ok(exti__sha256_init(&h, &t->err), &t->err);
    for (size_t at = 0; at < size; at += n) {
        n = at % 997 + 1 < size - at ? at % 997 + 1 : size - at;
        exti__sha256_add(&h, as + at, n);
    }
    assert_ok(exti__sha256_end(&h, hash, &t->err), &t->err);
    exti__sha256_free(&h);
    assert_string_equal(hex(t, hash),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(gives_the_hashes_of_the_standard),
        exti_test(takes_a_message_in_pieces),
    };

    return cmocka_run_group_tests_name("base/sha256", tests, NULL, NULL);
}
