#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loader/store/manifest.h"

static int stop_failing(void **state)
{
    exti__mem_fail_after(-1);
    return test_teardown(state);
}

#define manifest_test(f) cmocka_unit_test_setup_teardown(f, test_setup, stop_failing)

static char *dup(const char *s)
{
    char *p = exti__strdup(s);

    assert_non_null(p);
    return p;
}

static struct exti_entry entry_of(const char *source, const char *copy)
{
    return (struct exti_entry){.source = dup(source),
                               .id = {.size = 5, .inode = UINT64_MAX - 1, .mtime_ns = -7},
                               .copy = dup(copy),
                               .copy_id = {.size = 9,
                                           .inode = UINT64_MAX - 2,
                                           .device = 12,
                                           .mtime_ns = 11,
                                           .ctime_ns = 13},
                               .copy_hash = "ab12",
                               .generation = 2,
                               .resolution = 4,
                               .symbolic = true,
                               .boot = "b",
                               .edits = dup("{\"id\":\"x\"}")};
}

static void add_needs(struct exti_entry *e)
{
    const struct exti_need needs[] = {
        {dup("liba.so"), dup("a.ctx.so"), dup("/l/a.so.1"), true, true},
        {dup("libb.so"), NULL, dup("/l/b.so"), false, false},
        {dup("libc.so"), dup("/l/c.so"), dup("/l/c.so"), false, false},
        {dup("libgone.so"), NULL, NULL, false, true}};

    e->needs = exti__calloc(ARRAY_SIZE(needs), sizeof *needs);
    assert_non_null(e->needs);
    memcpy(e->needs, needs, sizeof needs);
    e->need_count = ARRAY_SIZE(needs);
}

static void add_policy(struct exti_manifest *m)
{
    m->policy.closure = EXTI_CLOSURE_API;
    m->policy.rules = exti__calloc(2, sizeof *m->policy.rules);
    assert_non_null(m->policy.rules);
    m->policy.rules[0] = (struct exti_rule){dup("lib*"), 1};
    m->policy.rules[1] = (struct exti_rule){dup("libx*"), 0};
    m->policy.rule_count = 2;
    m->search = dup("a b");
    m->resolution = 4;
}

static void fill(struct exti_manifest *m)
{
    *m = (struct exti_manifest){.name = "ctx",
                                .renamed = true,
                                .names = 3,
                                .generation = 2,
                                .target = {EXTI_FORMAT_ELF, "x86-64", 64, false}};
    m->api = entry_of("/api.so", "api.ctx");
    m->api.build_id = dup("abcd");
    m->api.source_name = dup("libapi.so.1");
    add_needs(&m->api);
    add_policy(m);
    m->api.renames = dup("{\"a\":\"b\"}");
    for (const char *const *s = (const char *const[]){"/c", "/a", "/b", "/a", NULL}; *s; s++) {
        struct exti_entry e = entry_of(*s, *s + 1);

        assert_int_equal(exti__manifest_put(m, &e, NULL), 0);
        assert_null(e.source);
    }
}

static void entries_are_found_by_source_and_by_copy(void **state)
{
    struct exti_manifest m;

    (void)state;
    fill(&m);
    assert_int_equal(m.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(m.entries[i].source, ((const char *[]){"/a", "/b", "/c"})[i]);
    assert_ptr_equal(exti__manifest_find(&m, "/b"), &m.entries[1]);
    assert_ptr_equal(exti__manifest_find(&m, "/api.so"), &m.api);
    assert_null(exti__manifest_find(&m, "/d"));
    assert_ptr_equal(exti__manifest_find_copy(&m, "c"), &m.entries[2]);
    assert_ptr_equal(exti__manifest_find_copy(&m, "api.ctx"), &m.api);
    assert_null(exti__manifest_find_copy(&m, "d"));
    exti__manifest_clear(&m);
}

static void read_gives_what_was_written(void **state)
{
    struct test *t = *state;
    struct exti_manifest m, r;

    fill(&m);
    test_path(t, "x"); /* makes the folder */
    assert_ok(exti__manifest_write(t->dir, &m, false, &t->err), &t->err);
    exti__manifest_clear(&m);
    assert_ok(exti__manifest_read(t->dir, &r, &t->err), &t->err);
    assert_string_equal(r.name, "ctx");
    assert_true(r.renamed);
    assert_int_equal(r.names, 3);
    assert_int_equal(r.generation, 2);
    assert_string_equal(r.api.source_name, "libapi.so.1");
    assert_string_equal(r.api.build_id, "abcd");
    assert_int_equal(r.target.format, EXTI_FORMAT_ELF);
    assert_string_equal(r.target.machine, "x86-64");
    assert_int_equal(r.target.bits, 64);
    assert_int_equal(r.count, 3);
    assert_null(r.entries[0].build_id);
    assert_null(r.entries[0].renames);
    assert_string_equal(r.api.renames, "{\"a\":\"b\"}");
    assert_int_equal(r.entries[0].id.size, 5);
    assert_true(r.entries[0].id.inode == UINT64_MAX - 1);
    assert_int_equal(r.entries[0].id.mtime_ns, -7);
    assert_int_equal(r.entries[0].copy_id.size, 9);
    assert_true(r.entries[0].copy_id.inode == UINT64_MAX - 2);
    assert_int_equal(r.entries[0].copy_id.device, 12);
    assert_int_equal(r.entries[0].copy_id.mtime_ns, 11);
    assert_int_equal(r.entries[0].copy_id.ctime_ns, 13);
    assert_string_equal(r.entries[0].copy_hash, "ab12");
    assert_true(r.entries[0].symbolic);
    assert_false(r.entries[0].synced);
    assert_string_equal(r.entries[0].boot, "b");
    assert_string_equal(r.entries[0].edits, "{\"id\":\"x\"}");
    assert_int_equal(r.entries[0].resolution, 4);
    assert_false(r.entries[0].takes_api);
    assert_int_equal(r.entries[0].need_count, 0);
    exti__manifest_clear(&r);
}

static void read_finds_what_replaces_python3_dll(void **state)
{
    struct test *t = *state;
    struct exti_manifest m, r;

    fill(&m);
    exti__free(m.entries[0].edits);
    m.entries[0].edits = dup("{\"needed\":[{\"replace\":\"a.dll\",\"by\":\"b.dll\"},"
                             "{\"replace\":\"PYTHON3.dll\",\"by\":\"sx.dll\"}]}");
    test_path(t, "x");
    assert_ok(exti__manifest_write(t->dir, &m, false, &t->err), &t->err);
    exti__manifest_clear(&m);
    assert_ok(exti__manifest_read(t->dir, &r, &t->err), &t->err);
    assert_string_equal(r.entries[0].stable_abi_copy, "sx.dll");
    assert_null(r.entries[1].stable_abi_copy);
    exti__manifest_clear(&r);
}

static void needs_and_policy_are_read_back(void **state)
{
    struct test *t = *state;
    struct exti_manifest m, r;

    fill(&m);
    test_path(t, "x");
    assert_ok(exti__manifest_write(t->dir, &m, false, &t->err), &t->err);
    exti__manifest_clear(&m);
    assert_ok(exti__manifest_read(t->dir, &r, &t->err), &t->err);
    assert_int_equal(r.policy.closure, EXTI_CLOSURE_API);
    assert_int_equal(r.policy.rule_count, 2);
    assert_string_equal(r.policy.rules[0].glob, "lib*");
    assert_true(r.policy.rules[0].share);
    assert_string_equal(r.policy.rules[1].glob, "libx*");
    assert_false(r.policy.rules[1].share);
    assert_string_equal(r.search, "a b");
    assert_int_equal(r.resolution, 4);
    assert_int_equal(r.api.need_count, 4);
    assert_string_equal(r.api.needs[0].name, "liba.so");
    assert_string_equal(r.api.needs[0].to, "a.ctx.so");
    assert_string_equal(r.api.needs[0].file, "/l/a.so.1");
    assert_true(r.api.needs[0].isolated);
    assert_null(r.api.needs[1].to);
    assert_false(r.api.needs[1].isolated);
    assert_string_equal(r.api.needs[2].to, "/l/c.so");
    assert_null(r.api.needs[3].file);
    exti__manifest_clear(&r);
}

#define COPY(extra)                                                                                \
    "{\"source\":\"/s\",\"size\":1,\"mtime_ns\":1,\"inode\":1,\"copy\":\"c\",\"copy_size\":1,"     \
    "\"copy_mtime_ns\":1,\"generation\":1,\"symbolic\":false,\"synced\":false,\"boot\":\"\","      \
    "\"edits\":{}" extra "}"
#define COPY_WITH(source, edits)                                                                   \
    "{\"source\":\"" source "\",\"size\":1,\"mtime_ns\":1,\"inode\":1,\"copy\":\"c\","             \
    "\"copy_size\":1,\"copy_mtime_ns\":1,\"generation\":1,\"symbolic\":false,\"synced\":false,"    \
    "\"boot\":\"\",\"edits\":" edits "}"
#define MANIFEST_FOR(target, format, name, api, copies)                                            \
    "{\"extisolate\":" format ",\"name\":\"" name "\",\"target\":{" target                         \
    "\"machine\":\"m\",\"bits\":64,\"big_endian\":false},\"renamed\":false,"                       \
    "\"generation\":1,\"api\":" api ",\"copies\":" copies "}"
#define MANIFEST(format, name, api, copies) MANIFEST_FOR("", format, name, api, copies)

static void damaged_manifests_are_refused(void **state)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"", EXTI_E_FORMAT},
        {"{", EXTI_E_FORMAT},
        {"[]", EXTI_E_ARG},
        {"{}", EXTI_E_ARG},
        {"{\"extisolate\":1}", EXTI_E_FORMAT},
        {MANIFEST("0", "n", COPY(""), "[]"), EXTI_E_UNSUPPORTED},
        {MANIFEST("6", "n", COPY(""), "[]"), EXTI_E_UNSUPPORTED},
        {MANIFEST_FOR("\"format\":\"COFF\",", "2", "n", COPY(""), "[]"), EXTI_E_UNSUPPORTED},
        {MANIFEST("2", "n\",\"closure\":\"most", COPY(""), "[]"), EXTI_E_FORMAT},
        {MANIFEST("2", "n\",\"rules\":[1],\"x\":\"", COPY(""), "[]"), EXTI_E_FORMAT},
        {MANIFEST("2", "n\",\"rules\":[{\"share\":\"a\",\"isolate\":\"b\"}],\"x\":\"", COPY(""),
                  "[]"),
         EXTI_E_FORMAT},
        {MANIFEST("2", "n", COPY(",\"needs\":[1]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("4", "n", COPY(",\"left_out\":1"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("4", "n", COPY(",\"left_out\":[]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("4", "n", COPY(",\"left_out\":[1]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("5", "n", COPY(",\"unloaded\":[1]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("5", "n", COPY(",\"unloaded\":[[1,1]]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("5", "n", COPY(",\"left_out\":[[1,1]],\"unloaded\":[[1,1]]"), "[]"),
         EXTI_E_FORMAT},
        {MANIFEST("5", "n", COPY(",\"left_out\":[[1,1],[4,2]],\"unloaded\":[[4,1]]"), "[]"),
         EXTI_E_FORMAT},
        {MANIFEST("4", "n", COPY(",\"left_out\":[[1]]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("4", "n", COPY(",\"left_out\":[[1,-1]]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("4", "n", COPY(",\"left_out\":[[1,\"1\"]]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("4", "n", COPY(",\"left_out\":[[1,4294967297]]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("4", "n", COPY(",\"left_out\":[[1,2],[2,1]]"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("4", "n",
                  COPY(",\"left_out\":[[1,1],[2,1],[3,1],[4,1],[5,1],[6,1],[7,1],[8,1],[9,1],"
                       "[10,1],[11,1],[12,1],[13,1],[14,1],[15,1],[16,1],[17,1],[18,1],[19,1],"
                       "[20,1],[21,1],[22,1],[23,1],[24,1],[25,1]]"),
                  "[]"),
         EXTI_E_FORMAT},
        {MANIFEST("2", "n", COPY(",\"needs\":[{\"name\":\"l\",\"file\":\"l\"}]"), "[]"),
         EXTI_E_FORMAT},
        {MANIFEST("2", "n", COPY(",\"needs\":[{\"name\":\"l\",\"isolated\":true}]"), "[]"),
         EXTI_E_FORMAT},
        {MANIFEST("2", "n",
                  COPY(",\"needs\":[{\"name\":\"l\",\"file\":\"/l\",\"to\":\"../l\","
                       "\"isolated\":true}]"),
                  "[]"),
         EXTI_E_FORMAT},
        {MANIFEST("1", "../n", COPY(""), "[]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", "{}", "[]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", COPY(""), "{}"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", COPY(""), "[1]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", COPY(",\"copy\":\"d\""), "[]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", "{\"copy\":\"../../x\"}", "[]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", COPY_WITH("/s", "5"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", COPY(",\"renames\":{\"a\":1}"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", COPY(",\"renames\":{\"\":\"a\"}"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", COPY_WITH("s", "{}"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", COPY_WITH("", "{}"), "[]"), EXTI_E_FORMAT},
        {MANIFEST("1", "n", COPY_WITH("C:\\\\s", "{}"), "[]"), EXTI_E_UNSUPPORTED},
        {MANIFEST("1", "n", COPY_WITH("\\\\\\\\server\\\\s", "{}"), "[]"), EXTI_E_UNSUPPORTED},
    };
    struct test *t = *state;
    struct exti_manifest m = {0};
    char *path = test_path(t, EXTI_MANIFEST_FILE);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        test_write(path, cases[i].text, strlen(cases[i].text));
        assert_exti(exti__manifest_read(t->dir, &m, &t->err), cases[i].code, &t->err, ANY_OFFSET);
        assert_string_equal(t->err.file, path);
        assert_null(m.entries);
    }
}

/* An earlier version, which would load a lean copy as it is, refuses the later format. */
static void lean_copies_are_read_back(void **state)
{
    static const struct exti_unread left_out = {{{4096, 70000}, {81920, 5}}, 2},
                                    unloaded = {{{81920, 5}}, 1};
    struct test *t = *state;
    char *path = test_path(t, EXTI_MANIFEST_FILE);
    struct exti_manifest m, r;

    fill(&m);
    assert_ok(exti__manifest_write(t->dir, &m, false, &t->err), &t->err);
    assert_non_null(strstr(test_read(t, path, NULL), "\"extisolate\": 2"));
    m.entries[1].left_out = left_out;
    m.entries[1].unloaded = unloaded;
    assert_ok(exti__manifest_write(t->dir, &m, false, &t->err), &t->err);
    assert_non_null(strstr(test_read(t, path, NULL), "\"extisolate\": 5"));
    exti__manifest_clear(&m);
    assert_ok(exti__manifest_read(t->dir, &r, &t->err), &t->err);
    assert_int_equal(r.entries[0].left_out.count, 0);
    assert_true(exti__parts_same(&r.entries[1].left_out, &left_out));
    assert_true(exti__parts_same(&r.entries[1].unloaded, &unloaded));
    exti__manifest_clear(&r);
}

/* In format 1, copies share all libraries that they need. */
static void manifests_of_the_first_format_are_read(void **state)
{
    static const char text[] = MANIFEST("1", "n", COPY(""), "[]");
    struct test *t = *state;
    struct exti_manifest m;

    test_write(test_path(t, EXTI_MANIFEST_FILE), text, strlen(text));
    assert_ok(exti__manifest_read(t->dir, &m, &t->err), &t->err);
    assert_int_equal(m.policy.closure, EXTI_CLOSURE_NONE);
    assert_true(m.api.takes_api);
    assert_int_equal(m.api.need_count, 0);
    exti__manifest_clear(&m);
}

static void copies_cannot_name_files_elsewhere(void **state)
{
    static const char *const names[] = {"../x", "/etc/passwd", ".", "..", ".lock", ""};
    struct test *t = *state;
    struct exti_manifest m;
    char *path = test_path(t, EXTI_MANIFEST_FILE), *text;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        text = test_format(
            t,
            "{\"extisolate\":1,\"name\":\"n\",\"target\":{\"machine\":\"m\",\"bits\":64,\"big_"
            "endian\":false},"
            "\"renamed\":false,\"generation\":1,"
            "\"copies\":[],\"api\":{\"source\":\"/s\",\"size\":1,\"mtime_ns\":1,"
            "\"inode\":1,\"copy\":\"%s\",\"copy_size\":1,\"copy_mtime_ns\":1,\"generation\":1,"
            "\"symbolic\":false,\"synced\":false,\"boot\":\"\",\"edits\":{}}}",
            names[i]);
        test_write(path, text, strlen(text));
        assert_exti(exti__manifest_read(t->dir, &m, &t->err), EXTI_E_FORMAT, &t->err, ANY_OFFSET);
    }
}

static void a_missing_manifest_is_not_a_damaged_one(void **state)
{
    struct test *t = *state;
    struct exti_manifest m;

    test_path(t, "x");
    assert_exti(exti__manifest_read(t->dir, &m, &t->err), EXTI_E_IO, &t->err, ANY_OFFSET);
    assert_int_equal(t->err.os_error, 2);
}

/* Merging two manifests moves entries; failing halfway would lose some. */
static void reserved_room_is_there_without_memory(void **state)
{
    struct test *t = *state;
    struct exti_manifest m = {0};

    assert_int_equal(exti__manifest_reserve(&m, 40, NULL), 0);
    for (int i = 0; i < 40; i++) {
        struct exti_entry e = {.source = strdup(test_format(t, "/s%d", i)), .copy = strdup("c")};
        int rc;

        exti__mem_fail_after(0);
        rc = exti__manifest_put(&m, &e, NULL);
        exti__mem_fail_after(-1);
        assert_int_equal(rc, 0);
    }
    assert_int_equal(m.count, 40);
    exti__mem_fail_after(0);
    assert_exti(exti__manifest_reserve(&m, 1000, &t->err), EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
    exti__mem_fail_after(-1);
    assert_int_equal(m.count, 40);
    exti__manifest_clear(&m);
}

static void out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    struct test *t = *state;
    struct exti_manifest m, r = {0};
    int rc = EXTI_E_NOMEM;

    fill(&m);
    test_path(t, "x");
    for (long n = 0; rc == EXTI_E_NOMEM; n++) {
        exti__mem_fail_after(n);
        rc = exti__manifest_write(t->dir, &m, false, &t->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
        assert_string_equal(test_list(t, t->dir), rc ? "" : EXTI_MANIFEST_FILE "\n");
    }
    exti__manifest_clear(&m);
    assert_int_equal(rc, 0);
    rc = EXTI_E_NOMEM;
    for (long n = 0; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__manifest_read(t->dir, &r, &t->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
        assert_true(!rc || !r.entries);
    }
    exti__manifest_clear(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        manifest_test(entries_are_found_by_source_and_by_copy),
        manifest_test(read_gives_what_was_written),
        manifest_test(read_finds_what_replaces_python3_dll),
        manifest_test(needs_and_policy_are_read_back),
        manifest_test(lean_copies_are_read_back),
        manifest_test(manifests_of_the_first_format_are_read),
        manifest_test(damaged_manifests_are_refused),
        manifest_test(copies_cannot_name_files_elsewhere),
        manifest_test(a_missing_manifest_is_not_a_damaged_one),
        manifest_test(reserved_room_is_there_without_memory),
        manifest_test(out_of_memory_is_reported_and_leaks_nothing),
    };

    return cmocka_run_group_tests_name("store/manifest", tests, NULL, NULL);
}
