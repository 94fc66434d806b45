#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/edit/macho_trie_build.h"
#include "tests/unit/macho/macho_forms.h"

struct fixture {
    struct test *t;
    struct exti_error err;
    struct exti_buf out;
    char *text;
    size_t n, calls;
    struct exti_span trie;
};

static int setup(void **state)
{
    static struct fixture f;
    void *t = NULL;

    f = (struct fixture){.out = exti__buf(1 << 20)};
    test_setup(&t);
    f.t = t;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    exti__buf_free(&f->out);
    return test_teardown(&t);
}

#define trie_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int append_export(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct fixture *f = user;

    (void)err;
    f->text = test_format(f->t, "%s%s %llx %llx %llu %s\n", f->text ? f->text : "", e->name,
                          (unsigned long long)e->flags, (unsigned long long)e->address,
                          (unsigned long long)e->other, e->import_name);
    f->calls++;
    return 0;
}

static int count(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct fixture *f = user;

    (void)e;
    (void)err;
    f->calls++;
    return 0;
}

static int walk(struct fixture *f, const void *trie, size_t n)
{
    f->err = (struct exti_error){0};
    f->calls = 0;
    f->text = "";
    return exti__macho_trie_walk(exti__span(trie, n), append_export, f, &f->err);
}

static int keep_export(void *user, struct macho_export *e, struct exti_error *err)
{
    (void)user;
    (void)e;
    (void)err;
    return 0;
}

static int each_is_found(void *user, const struct macho_export *e, struct exti_error *err)
{
    struct fixture *f = user;
    struct macho_export found;
    char *name = test_format(f->t, "%sx", e->name);
    bool there;

    assert_ok(exti__macho_trie_find(f->trie, e->name, &there, &found, err), err);
    assert_true(there);
    assert_int_equal(found.address, e->address);
    assert_int_equal(found.flags, e->flags);
    assert_ptr_equal(found.name, e->name);
    name[strlen(e->name) - 1] = '\0';
    assert_ok(exti__macho_trie_find(f->trie, name, &there, &found, err), err);
    assert_int_equal(there, !strcmp(e->name, "_ext_states")); /* _ext_state is there too */
    name[strlen(e->name) - 1] = '_';
    assert_ok(exti__macho_trie_find(f->trie, name, &there, NULL, err), err);
    assert_false(there);
    f->text =
        test_format(f->t, "%s0x%08llX %s%s\n", f->text, (unsigned long long)e->address, e->name,
                    e->flags & EXPORT_SYMBOL_FLAGS_WEAK_DEFINITION ? " [weak_def]" : "");
    return 0;
}

static void linked_tries_are_read_found_and_written_again_byte_by_byte(void **state)
{
    struct fixture *f = *state;

    macho_skip_without_tools();
    for (size_t a = 0; a < ARRAY_SIZE(macho_archs); a++)
        for (size_t i = 0; i < ARRAY_SIZE(macho_forms); i++) {
            struct macho_file m;

            f->text = "";
            assert_ok(exti__macho_open(macho_form_link(f->t, macho_archs[a], &macho_forms[i]), &m,
                                       &f->err),
                      &f->err);
            f->trie = exti__macho_trie(&m);
            assert_ok(exti__macho_trie_walk(f->trie, each_is_found, f, &f->err), &f->err);
            assert_string_equal(
                macho_form_sort(f->t, f->text),
                macho_form_sort(f->t, macho_form_dump(f->t, "--exports-trie", "0x")));
            assert_ok(exti__macho_trie_map(f->trie, keep_export, NULL, &f->out, &f->err), &f->err);
            assert_int_equal(f->out.n, f->trie.n);
            assert_memory_equal(f->out.p, f->trie.p, f->trie.n);
            exti__buf_free(&f->out);
            exti__macho_close(&m);
        }
}

static void all_kinds_of_export_are_written_as_they_are_read(void **state)
{
    static const struct macho_export list[] = {
        {.name = "_a", .address = 0x4000, .import_name = ""},
        {.name = "_abc", .flags = 1, .address = 300, .import_name = ""},
        {.name = "_ab", .flags = 4, .address = 0, .import_name = ""},
        {.name = "_re", .flags = 8, .other = 200, .import_name = "_other"},
        {.name = "_res", .flags = 8, .other = 1, .import_name = ""},
        {.name = "_stub", .flags = 16, .address = 0x1234567, .other = 0x89ab, .import_name = ""},
        {.name = "\xff", .flags = 2, .address = UINT64_MAX, .import_name = ""},
        {.name = "", .address = 1, .import_name = ""},
    };
    struct fixture *f = *state;
    struct macho_export found;
    bool there;

    assert_ok(exti__macho_trie_build(list, ARRAY_SIZE(list), &f->out, &f->err), &f->err);
    assert_int_equal(f->out.n % 8, 0);
    assert_ok(walk(f, f->out.p, f->out.n), &f->err);
    assert_string_equal(f->text, " 0 1 0 \n"
                                 "_a 0 4000 0 \n"
                                 "_ab 4 0 0 \n"
                                 "_abc 1 12c 0 \n"
                                 "_re 8 0 200 _other\n"
                                 "_res 8 0 1 \n"
                                 "_stub 10 1234567 35243 \n"
                                 "\xff 2 ffffffffffffffff 0 \n");
    for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
        assert_ok(exti__macho_trie_find(exti__span(f->out.p, f->out.n), list[i].name, &there,
                                        &found, &f->err),
                  &f->err);
        assert_true(there);
        assert_int_equal(found.address, list[i].address);
        assert_int_equal(found.other, list[i].other);
        assert_string_equal(found.import_name, list[i].import_name);
    }
    exti__buf_free(&f->out);
    assert_ok(exti__macho_trie_build(list, 0, &f->out, &f->err), &f->err);
    assert_int_equal(f->out.n, 0);
    assert_ok(walk(f, NULL, 0), &f->err);
    assert_int_equal(f->calls, 0);
    assert_ok(exti__macho_trie_find(exti__span(NULL, 0), "_a", &there, NULL, &f->err), &f->err);
    assert_false(there);
}

static void function_variants_are_read_and_not_written(void **state)
{
    static const char variant[] = "\0\1v\0\5\3\x20\7\11\0", resolver[] = "\0\1v\0\5\2\x20\7\0";
    static const struct macho_export twice[] = {{.name = "_a", .import_name = ""},
                                                {.name = "_a", .import_name = ""}};
    struct fixture *f = *state;

    assert_ok(walk(f, variant, sizeof variant - 1), &f->err);
    assert_string_equal(f->text, "v 20 7 9 \n");
    assert_ok(walk(f, resolver, sizeof resolver - 1), &f->err);
    assert_string_equal(f->text, "v 20 7 0 \n");
    assert_exti(exti__macho_trie_map(exti__span(variant, sizeof variant - 1), keep_export, NULL,
                                     &f->out, &f->err),
                EXTI_E_UNSUPPORTED, &f->err, EXTI_NO_OFFSET);
    assert_says(&f->err, "v is a function variant");
    assert_exti(exti__macho_trie_build(twice, 2, &f->out, &f->err), EXTI_E_FORMAT, &f->err,
                EXTI_NO_OFFSET);
    assert_says(&f->err, "_a occurs twice");
}

/* As Apple's linkers write them: an edge with an empty label, and a gap before a node. */
static void edges_without_characters_are_followed(void **state)
{
    static const char trie[] = "\0\1_a\0\7\0" /* 7: */ "\0\2\0\20b\0\25\0\0" /* 16: */ "\0\1"
                               "c\0\31" /* 21: */ "\2\0\1\0" /* 25: */ "\2\0\2\0";
    struct fixture *f = *state;
    bool there;

    assert_ok(walk(f, trie, sizeof trie - 1), &f->err);
    assert_string_equal(f->text, "_ac 0 2 0 \n_ab 0 1 0 \n");
    assert_ok(
        exti__macho_trie_find(exti__span(trie, sizeof trie - 1), "_ac", &there, NULL, &f->err),
        &f->err);
    assert_true(there);
    /* dyld does not backtrack, either. */
    assert_ok(
        exti__macho_trie_find(exti__span(trie, sizeof trie - 1), "_ab", &there, NULL, &f->err),
        &f->err);
    assert_false(there);
}

static void malformed_tries_are_refused_with_the_offset(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        uint64_t offset;
        const char *says;
    } cases[] = {
#define CASE(bytes, offset, says) {bytes, sizeof bytes - 1, offset, says}
        CASE("\x80", 1, "node: ends early"),
        CASE("\5\0", 1, "exports trie: export: needs 5 bytes, 1 left"),
        CASE("\1\0", 2, "node: ends early"),
        CASE("\0\1ab", 2, "edge: ends early"),
        CASE("\0\1a\0\x80", 5, "edge: ends early"),
        CASE("\0\1a\0\0", 2, "an edge leads to the root"),
        CASE("\0\1a\0\5", 5, "node: needs 1 bytes, 0 left"),
        CASE("\0\1a\0\x7f", 0x7f, "node: needs 1 bytes, 0 left"),
        CASE("\0\2a\0\10b\0\10\0\0", 8, "two edges lead to one node"),
        CASE("\0\1a\0\5\0\1a\0\5", 5, "two edges lead to one node"),
        CASE("\1\x80\0", 2, "exports trie: export: ends early"),
        CASE("\2\0\x80\0", 3, "exports trie: export: ends early"),
        CASE("\2\x08\1\0", 3, "exports trie: export: ends early"),
        CASE("\3\x08\1x\0", 3, "exports trie: export: ends early"),
        CASE("\2\x10\1\0", 3, "exports trie: export: ends early"),
        CASE("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1\0", 11, "node: ends early"),
#undef CASE
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(walk(f, cases[i].bytes, cases[i].n), EXTI_E_FORMAT);
        if (!strstr(f->err.message, cases[i].says) || f->err.offset != cases[i].offset)
            fail_msg("case %zu: at %llu: %s", i, (unsigned long long)f->err.offset, f->err.message);
    }
}

static void searches_fail_like_walks_on_malformed_nodes(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *name;
    } cases[] = {
        {"\x80", 1, "a"},
        {"\0\1ab", 4, "a"},
        {"\0\1a\0\x7f", 5, "a"},
        {"\0\1a\0\5\2\x10\1\0", 9, "a"},
        {"\0\1\0\5\0\1\0\5", 8, "a"}, /* a cycle */
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        bool there;

        assert_exti(exti__macho_trie_find(exti__span(cases[i].bytes, cases[i].n), cases[i].name,
                                          &there, NULL, &f->err),
                    EXTI_E_FORMAT, &f->err, ANY_OFFSET);
    }
}

/* A chain of `n` nodes, each an export whose name is `step` longer than the one before. */
static size_t long_chain(uint8_t *p, size_t n, size_t step)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        size_t next;

        memcpy(p + at, "\2\0\1\1", 4);
        at += 4;
        memset(p + at, 'a', step);
        at += step;
        p[at++] = '\0';
        next = at + 4;
        for (int k = 0; k < 4; k++)
            p[at++] = (uint8_t)((next >> 7 * k & 0x7f) | (k < 3 ? 0x80 : 0));
    }
    memcpy(p + at, "\2\0\1\0", 4);
    return at + 4;
}

static void names_of_excessive_total_length_are_refused(void **state)
{
    enum { NODES = 20000 };
    struct fixture *f = *state;
    uint8_t *p = test_alloc(f->t, (size_t)NODES * 120 + 64);
    size_t n;

    n = long_chain(p, 1000, 1);
    assert_ok(exti__macho_trie_walk(exti__span(p, n), count, f, &f->err), &f->err);
    assert_int_equal(f->calls, 1001);
    f->calls = 0;
    n = long_chain(p, NODES, 100);
    assert_exti(exti__macho_trie_walk(exti__span(p, n), count, f, &f->err), EXTI_E_FORMAT, &f->err,
                ANY_OFFSET);
    assert_says(&f->err, "add up to more than");
    assert_true(f->calls < NODES / 5);
    /* The copies that rewriting a trie makes are bounded with the names. */
    n = long_chain(p, 60, 16000);
    assert_exti(exti__macho_trie_map(exti__span(p, n), keep_export, NULL, &f->out, &f->err),
                EXTI_E_FORMAT, &f->err, ANY_OFFSET);
    assert_says(&f->err, "add up to more than");
    n = long_chain(p, 2, 1 << 20);
    assert_exti(exti__macho_trie_walk(exti__span(p, n), count, f, &f->err), EXTI_E_FORMAT, &f->err,
                ANY_OFFSET);
    assert_says(&f->err, "a name is longer than");
}

/* Each node has one long edge of its own, whose bytes it shares with others. */
static void overlapping_nodes_take_linear_time(void **state)
{
    enum { SIZE = 100000 };
    struct fixture *f = *state;
    uint8_t *p = test_alloc(f->t, SIZE + 16);
    bool there;

    /* 0: an empty edge, to 5.  From there, every second byte starts a node with one edge of "\0"
     * or more, and other nodes contain all its bytes. */
    memcpy(p, "\0\1\0\5\0", 5);
    for (size_t i = 5; i < SIZE; i += 2)
        memcpy(p + i, "\0\1", 2);
    assert_int_equal(exti__macho_trie_walk(exti__span(p, SIZE), count, f, &f->err), EXTI_E_FORMAT);
    assert_int_equal(exti__macho_trie_find(exti__span(p, SIZE), "a", &there, NULL, &f->err),
                     EXTI_E_FORMAT);
    /* 255 edges that lead into the node's own edges. */
    memset(p, 1, SIZE);
    p[0] = 0;
    p[1] = 255;
    for (size_t i = 2, k = 0; k < 255; k++, i += 5)
        memcpy(p + i, "\1\1\0", 3), p[i + 3] = (uint8_t)(0x80 | (i + 5)), p[i + 4] = 2;
    assert_int_equal(exti__macho_trie_walk(exti__span(p, SIZE), count, f, &f->err), EXTI_E_FORMAT);
}

static void out_of_memory_is_reported(void **state)
{
    static const struct macho_export list[] = {{.name = "_ab", .import_name = ""},
                                               {.name = "_ac", .address = 9, .import_name = ""}};
    struct fixture *f = *state;
    struct exti_buf trie = exti__buf(1000);
    long n = 0;
    int rc;

    assert_ok(exti__macho_trie_build(list, 2, &trie, &f->err), &f->err);
    do {
        exti__buf_free(&f->out);
        exti__mem_fail_after(n);
        rc = exti__macho_trie_map(exti__span(trie.p, trie.n), keep_export, NULL, &f->out, &f->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &f->err, EXTI_NO_OFFSET);
    } while (rc && ++n < 100);
    assert_int_equal(rc, 0);
    assert_true(n > 5);
    exti__buf_free(&trie);
}

static int refuse(void *user, struct macho_export *e, struct exti_error *err)
{
    (void)user;
    (void)e;
    (void)err;
    return EXTI_E_HOOK;
}

static void an_error_of_the_callback_ends_the_walk(void **state)
{
    static const char trie[] = "\0\1a\0\5\2\0\1\0";
    struct fixture *f = *state;

    assert_int_equal(exti__macho_trie_map(exti__span(trie, 9), refuse, NULL, &f->out, &f->err),
                     EXTI_E_HOOK);
    assert_int_equal(f->out.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        trie_test(linked_tries_are_read_found_and_written_again_byte_by_byte),
        trie_test(all_kinds_of_export_are_written_as_they_are_read),
        trie_test(function_variants_are_read_and_not_written),
        trie_test(edges_without_characters_are_followed),
        trie_test(malformed_tries_are_refused_with_the_offset),
        trie_test(searches_fail_like_walks_on_malformed_nodes),
        trie_test(names_of_excessive_total_length_are_refused),
        trie_test(overlapping_nodes_take_linear_time),
        trie_test(out_of_memory_is_reported),
        trie_test(an_error_of_the_callback_ends_the_walk),
    };

    return cmocka_run_group_tests_name("macho/macho_trie", tests, NULL, NULL);
}
