#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "loader/resolve/quirks.h"

#define FILE_OF(rules) "{\"extisolate_quirks\": 1, \"quirks\": [" rules "]}"
/* A rule with these `members`. */
#define RULE(id, members) "{\"id\": \"" id "\", \"match\": {\"file\": \"*\"}, " members "}"

/* The result of exti_quirks_open.  The teardown frees it, since a failed assertion leaves the
 * test. */
static struct exti_quirks *opened;

static int teardown(void **state)
{
    exti__mem_fail_after(-1);
    exti_quirks_free(opened);
    opened = NULL;
    return test_teardown(state);
}

#define quirks_test(f) cmocka_unit_test_setup_teardown(f, test_setup, teardown)

static int open_text(struct test *t, const char *text)
{
    const char *path = test_path(t, "rules.json");

    exti_quirks_free(opened);
    opened = NULL;
    test_write(path, text, strlen(text));
    return exti_quirks_open(&path, 1, &opened, &t->err);
}

static void must_open(struct test *t, const char *text)
{
    assert_ok(open_text(t, text), &t->err);
    assert_non_null(opened);
}

/* ---- files ---- */

static void built_in_rules_are_valid(void **state)
{
    struct test *t = *state;

    assert_ok(exti_quirks_open(NULL, 0, &opened, &t->err), &t->err);
    for (size_t i = 0; i < exti_quirks_count(opened); i++) {
        struct exti_quirk_info info = {.size = sizeof info};

        assert_int_equal(exti_quirks_info(opened, i, &info), 0);
        assert_null(info.file);
        assert_null(info.disabled_by);
        /* Each rule says what showed that it is needed. */
        assert_contains(info.rule, "\"note\"");
    }
}

static void errors_name_rule_and_member(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"[]", "is not a quirk file; one starts with {\"extisolate_quirks\": 1"},
        {"{}", "is not a quirk file"},
        {"{\"quirks\": []}", "is not a quirk file"},
        {"{\"extisolate_quirks\": \"1\"}",
         "extisolate_quirks is a string, not the format's number"},
        {"{\"extisolate_quirks\": 1.0}", "extisolate_quirks is a number, not the format's number"},
        {"{\"extisolate_quirks\": 1, \"quirk\": []}",
         "unknown member 'quirk'; known are extisolate_quirks, quirks, disable"},
        {"{\"extisolate_quirks\": 1}", "has neither quirks nor disable"},
        {FILE_OF(""), "has neither quirks nor disable"},
        {"{\"extisolate_quirks\": 1, \"quirks\": {}}",
         "quirks is an object, not an array of rules"},
        {"{\"extisolate_quirks\": 1, \"disable\": \"a\"}",
         "disable is a string, not an array of ids"},
        {"{\"extisolate_quirks\": 1, \"disable\": [null]}", "disable[0] is null, not a rule's id"},
        {"{\"extisolate_quirks\": 1, \"disable\": [\"no-such\"]}",
         "disable[0]: no earlier file has a rule 'no-such'; 'extisolate quirks' lists them"},
        {FILE_OF("7"), "quirks[0]: is a number, not an object"},
        {FILE_OF("{}"), "quirks[0]: has no id"},
        {FILE_OF("{\"id\": true}"), "quirks[0]: id is a boolean, not a string"},
        {FILE_OF("{\"id\": \"\"}"), "quirks[0]: id is empty"},
        {FILE_OF("{\"id\": \"a b\"}"),
         "quirks[0]: id is 'a b'; it takes 1 to 64 letters, digits, '.', '_' and '-'"},
        {FILE_OF("{\"id\": \"0123456789012345678901234567890123456789012345678901234567890123x\"}"),
         "it takes 1 to 64 letters"},
        {FILE_OF("{\"id\": \"a\", \"note\": \"n\"}"),
         "quirks[0] (a): has no match; add one to say which files it is for"},
        {FILE_OF("{\"id\": \"a\", \"match\": {\"file\": \"x\"}}"),
         "quirks[0] (a): does nothing: give it library, rename, redirect, environment, refuse or "
         "note"},
        {FILE_OF(RULE("a", "\"note\": \"n\"") "," RULE("b", "\"libary\": \"share\"")),
         "quirks[1] (b): unknown member 'libary'; known are id, match, library, rename, "
         "redirect, environment, refuse, note"},
        {FILE_OF(RULE("a", "\"note\": \"n\"") "," RULE("a", "\"note\": \"n\"")),
         "quirks[1] (a): has the same id as quirks[0]"},

        {FILE_OF("{\"id\": \"a\", \"match\": \"x\", \"note\": \"n\"}"),
         "quirks[0] (a): match is a string, not an object"},
        {FILE_OF("{\"id\": \"a\", \"match\": {}, \"note\": \"n\"}"),
         "quirks[0] (a): match is empty: it would match every file"},
        {FILE_OF("{\"id\": \"a\", \"match\": {\"soname\": \"x\"}, \"note\": \"n\"}"),
         "quirks[0] (a): match: unknown member 'soname'; known are file, needs, imports, "
         "exports, text"},
        {FILE_OF("{\"id\": \"a\", \"match\": {\"needs\": 1}, \"note\": \"n\"}"),
         "quirks[0] (a): match.needs is a number, not a string"},
        {FILE_OF("{\"id\": \"a\", \"match\": {\"text\": \"\"}, \"note\": \"n\"}"),
         "quirks[0] (a): match.text is empty"},
        {FILE_OF("{\"id\": \"a\", \"match\": {\"file\": \"\"}, \"note\": \"n\"}"),
         "quirks[0] (a): match.file is empty"},
        {FILE_OF("{\"id\": \"a\", \"match\": {\"file\": \"x[ab\"}, \"note\": \"n\"}"),
         "quirks[0] (a): match.file: 'x[ab' has a '[' without a ']'"},
        {FILE_OF("{\"id\": \"a\", \"match\": {\"imports\": \"[]\"}, \"note\": \"n\"}"),
         "quirks[0] (a): match.imports: '[]' has a '[' without a ']'"},
        {FILE_OF("{\"id\": \"a\", \"match\": {\"exports\": \"[a][!z-a]\"}, \"note\": \"n\"}"),
         "quirks[0] (a): match.exports: '[a][!z-a]' has a range that ends before it begins"},

        {FILE_OF(RULE("a", "\"library\": true")),
         "quirks[0] (a): library is a boolean, not a string"},
        {FILE_OF(RULE("a", "\"library\": \"shared\"")),
         "quirks[0] (a): library is 'shared', neither share nor isolate"},

        {FILE_OF(RULE("a", "\"rename\": [\"x\"]")),
         "quirks[0] (a): rename is an array, not an object"},
        {FILE_OF(RULE("a", "\"rename\": {}")), "quirks[0] (a): rename is empty"},
        {FILE_OF(RULE("a", "\"rename\": {\"x\": null}")),
         "quirks[0] (a): rename: 'x' is null, not a string"},
        {FILE_OF(RULE("a", "\"rename\": {\"x\": \"\"}")),
         "quirks[0] (a): rename: '' is not a symbol name"},
        {FILE_OF(RULE("a", "\"rename\": {\"\": \"x\"}")),
         "quirks[0] (a): rename: '' is not a symbol name"},
        {FILE_OF(RULE("a", "\"rename\": {\"x@V_1\": \"y\"}")),
         "quirks[0] (a): rename: 'x@V_1' is not a symbol name"},
        {FILE_OF(RULE("a", "\"rename\": {\"x\": \"x\"}")),
         "quirks[0] (a): rename: 'x' is renamed to itself"},
        {FILE_OF(RULE("a", "\"rename\": {\"x\": \"y\", \"y\": \"z\"}")),
         "quirks[0] (a): rename: 'x' becomes 'y', which is itself renamed"},
        {FILE_OF(RULE("a", "\"rename\": {\"x\": \"z\", \"y\": \"z\"}")),
         "quirks[0] (a): rename: 'x' and 'y' would both be 'z'"},
        {FILE_OF(RULE("a", "\"redirect\": {\"x\": \"a b\"}")),
         "quirks[0] (a): redirect: 'a b' is not a symbol name"},
        {FILE_OF(RULE("a", "\"redirect\": {\"x\": \"x\"}")),
         "quirks[0] (a): redirect: 'x' is renamed to itself"},
        {FILE_OF(RULE("a", "\"redirect\": {\"x\": \"z\"}, \"rename\": {\"x\": \"y\"}")),
         "quirks[0] (a): 'x' is in both rename and redirect; keep one"},

        {FILE_OF(RULE("a", "\"environment\": {\"A\": 1}")),
         "quirks[0] (a): environment: 'A' is a number, not a string"},
        {FILE_OF(RULE("a", "\"environment\": {\"1A\": \"\"}")),
         "quirks[0] (a): environment: '1A' is not a variable name; use letters, digits and '_'"},
        {FILE_OF(RULE("a", "\"environment\": {\"A=B\": \"\"}")),
         "environment: 'A=B' is not a variable name"},
        {FILE_OF(RULE("a", "\"environment\": {\"\": \"\"}")),
         "environment: '' is not a variable name"},

        {FILE_OF(RULE("a", "\"refuse\": \"\"")), "quirks[0] (a): refuse is empty"},
        {FILE_OF(RULE("a", "\"refuse\": true")),
         "quirks[0] (a): refuse is a boolean, not a string"},
        {FILE_OF(RULE("a", "\"note\": 5")), "quirks[0] (a): note is a number, not a string"},
        {FILE_OF(RULE("a", "\"refuse\": \"x\", \"library\": \"share\"")),
         "quirks[0] (a): refuse and library contradict each other: a file that is refused has no "
         "copy"},
        {FILE_OF(RULE("a", "\"refuse\": \"x\", \"environment\": {\"A\": \"\"}")),
         "quirks[0] (a): refuse and environment contradict each other"},
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_exti(open_text(t, cases[i].text), EXTI_E_FORMAT, &t->err, EXTI_NO_OFFSET);
        assert_says(&t->err, cases[i].says);
        assert_string_equal(t->err.file, test_path(t, "rules.json"));
        assert_null(opened);
    }
}

static void json_errors_name_the_place(void **state)
{
    static const struct {
        const char *text, *says;
        uint64_t offset;
    } cases[] = {
        {"{\n  \"extisolate_quirks\": 1,\n  }", "line 3, column 3: ", 30},
        {"", "line 1, column 1: ", 0},
        {"{\"a\": 1, \"a\": 2}", "line 1, column 10: the object has this name already", 9},
        {FILE_OF(RULE("a", "\"note\": \"\\u0000\"")), "line 1, column ", ANY_OFFSET},
        {FILE_OF(RULE("a", "\"note\": \"\xff\"")), "line 1, column ", ANY_OFFSET},
        {FILE_OF("") "x", "line 1, column ", ANY_OFFSET},
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_exti(open_text(t, cases[i].text), EXTI_E_FORMAT, &t->err, cases[i].offset);
        assert_says(&t->err, cases[i].says);
    }
}

static void files_of_a_later_format_are_refused(void **state)
{
    struct test *t = *state;

    assert_exti(open_text(t, "{\"extisolate_quirks\": 2, \"quarks\": 5}"), EXTI_E_UNSUPPORTED,
                &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "has format 2; this library reads format 1");
}

static void wrong_arguments_are_refused(void **state)
{
    struct test *t = *state;
    const char *none = "", *missing = test_path(t, "missing");
    struct exti_quirk_info info = {.size = sizeof info};
    struct exti_image im = {.info = {.format = "ELF"}};
    const char *name, *value;

    assert_exti(exti_quirks_open(NULL, 1, &opened, &t->err), EXTI_E_ARG, &t->err, ANY_OFFSET);
    assert_exti(exti_quirks_open(&none, 1, &opened, &t->err), EXTI_E_ARG, &t->err, ANY_OFFSET);
    assert_exti(exti_quirks_open(&missing, 0, NULL, &t->err), EXTI_E_ARG, &t->err, ANY_OFFSET);
    assert_exti(exti_quirks_open(&missing, 1, &opened, &t->err), EXTI_E_IO, &t->err, ANY_OFFSET);
    assert_string_equal(t->err.file, missing);
    must_open(t, FILE_OF(RULE("a", "\"environment\": {\"A\": \"1\"}")));
    assert_int_equal(exti_quirks_info(opened, exti_quirks_count(opened), &info), EXTI_E_ARG);
    assert_int_equal(exti_quirks_info(NULL, 0, &info), EXTI_E_ARG);
    assert_int_equal(exti_quirks_info(opened, 0, NULL), EXTI_E_ARG);
    assert_int_equal(exti_quirks_count(NULL), 0);
    assert_int_equal(exti_quirks_next(NULL, "/x", &im, 0), 0);
    assert_int_equal(exti_quirks_next(opened, NULL, &im, 0), exti_quirks_count(opened));
    assert_int_equal(exti_quirks_next(opened, "/x", NULL, 0), exti_quirks_count(opened));
    assert_int_equal(exti_quirks_next(opened, "/x", &im, SIZE_MAX), exti_quirks_count(opened));
    assert_int_equal(exti_quirks_environment(NULL, "/x", &im, 0, &name, &value), 0);
    exti_quirks_free(NULL);
}

/* ---- which rules apply ---- */

static struct exti_image_needed needed[] = {{"libneeded.so.1", 0}, {"libother.so", 0}};
static struct exti_image_symbol symbols[] = {{.name = "taken"},
                                             {.name = "given", .flags = EXTI_SYM_EXPORT}};
static const char bytes[] = "\177ELF libsecret.so\0 anything";
static const struct exti_image image = {
    .bytes = {.p = (const uint8_t *)bytes, .n = sizeof bytes},
    .info = {.format = "ELF", .id = "libtoy.so.1", .needed_count = 2, .symbol_count = 2},
    .needed = needed,
    .symbols = symbols};
#define PATH "/opt/pkg/toy.so"

/* The first rule of the file that applies; the library's built-in rules are skipped. */
static size_t first_applying(void)
{
    size_t i = 0;
    struct exti_quirk_info info = {.size = sizeof info};

    while ((i = exti_quirks_next(opened, PATH, &image, i)) < exti_quirks_count(opened)) {
        assert_int_equal(exti_quirks_info(opened, i, &info), 0);
        if (info.file)
            break;
        i++;
    }
    return i;
}

static void rules_apply_by_name_and_by_content(void **state)
{
    static const struct {
        const char *match;
        bool applies;
    } cases[] = {
        {"\"file\": \"toy.so\"", true},
        {"\"file\": \"libtoy.so.?\"", true},
        {"\"file\": \"libtoy.so\"", false},
        {"\"file\": \"*/pkg/*\"", true},
        {"\"file\": \"/opt/pkg/toy.so\"", true},
        {"\"file\": \"pkg/toy.so\"", false},
        {"\"file\": \"[s-u]oy.so\"", true},
        {"\"file\": \"[!t]oy.so\"", false},
        {"\"file\": \"TOY.so\"", false},
        {"\"needs\": \"libneeded.so*\"", true},
        {"\"needs\": \"libother.so\"", true},
        {"\"needs\": \"libtoy.so.1\"", false},
        {"\"imports\": \"taken\"", true},
        {"\"imports\": \"given\"", false},
        {"\"exports\": \"giv*\"", true},
        {"\"exports\": \"taken\"", false},
        {"\"text\": \"libsecret.so\"", true},
        {"\"text\": \"LIBSECRET.SO\"", true},
        {"\"text\": \"libsecre\"", false},
        {"\"text\": \"nothing\"", false},
        {"\"file\": \"toy.so\", \"needs\": \"libother.so\", \"imports\": \"t*\", \"exports\": "
         "\"g*\", "
         "\"text\": \"anything\"",
         true},
        {"\"file\": \"toy.so\", \"needs\": \"libother.so\", \"imports\": \"t*\", \"exports\": "
         "\"g*\", "
         "\"text\": \"everything\"",
         false},
        {"\"file\": \"toy.so\", \"needs\": \"libother.so\", \"imports\": \"u*\"", false},
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        must_open(t, test_format(t, FILE_OF("{\"id\": \"a\", \"match\": {%s}, \"note\": \"n\"}"),
                                 cases[i].match));
        if ((first_applying() < exti_quirks_count(opened)) != cases[i].applies)
            fail_msg("%s: applies: %d", cases[i].match, !cases[i].applies);
    }
}

static void images_without_a_name_match_by_file_name(void **state)
{
    struct exti_image bare = {.info = {.format = "ELF"}};
    struct test *t = *state;

    must_open(t, FILE_OF(RULE("a", "\"note\": \"n\"")));
    assert_int_equal(exti_quirks_next(opened, "toy.so", &bare, 0), exti_quirks_count(opened) - 1);
}

/* ---- their effect ---- */

static void later_rules_win(void **state)
{
    struct exti_quirk_effect e;
    const char *name, *value;
    struct test *t = *state;

    must_open(
        t,
        FILE_OF(RULE("a", "\"library\": \"share\", \"rename\": {\"r\": \"1\", "
                          "\"s\": \"2\"}, \"redirect\": {\"d\": \"e\"}, \"environment\": {\"A\": "
                          "\"1\", \"B\": \"2\"}") "," //
                RULE("b", "\"library\": \"isolate\", \"rename\": {\"s\": \"3\", \"t\": \"4\"}, "
                          "\"redirect\": {\"d\": \"f\"}, \"environment\": {\"C\": \"4\", \"A\": "
                          "\"3\"}") ","
                                    "{\"id\": \"c\", \"match\": {\"file\": \"other\"}, "
                                    "\"environment\": {\"A\": \"9\"}}"));
    assert_ok(exti__quirks_apply(opened, PATH, &image, &e, &t->err), &t->err);
    assert_int_equal(e.library, EXTI_QUIRK_ISOLATE);
    assert_string_equal(e.library_by, "b");
    assert_int_equal(e.rename_count, 3);
    assert_string_equal(e.renames[1].from, "s");
    assert_string_equal(e.renames[1].to, "3");
    assert_int_equal(e.redirect_count, 1);
    assert_string_equal(e.redirects[0].to, "f");
    assert_null(e.refuse);
    exti__quirk_effect_free(&e);

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(exti_quirks_environment(opened, PATH, &image, i, &name, &value), 1);
        assert_string_equal(name, ((const char *[]){"B", "C", "A"})[i]);
        assert_string_equal(value, ((const char *[]){"2", "4", "3"})[i]);
    }
    assert_int_equal(exti_quirks_environment(opened, PATH, &image, 3, &name, &value), 0);
}

static void a_refusal_names_its_reason_and_rule(void **state)
{
    struct exti_quirk_effect e;
    struct test *t = *state;

    must_open(t, FILE_OF(RULE("a", "\"refuse\": \"it cannot\"") "," RULE("b", "\"note\": \"n\"")));
    assert_ok(exti__quirks_apply(opened, PATH, &image, &e, &t->err), &t->err);
    assert_string_equal(e.refuse, "it cannot");
    assert_string_equal(e.refused_by, "a");
    exti__quirk_effect_free(&e);
}

static int open_two(struct test *t, const char *first, const char *second)
{
    const char *files[] = {test_path(t, "1.json"), test_path(t, "2.json")};

    exti_quirks_free(opened);
    opened = NULL;
    test_write(files[0], first, strlen(first));
    test_write(files[1], second, strlen(second));
    return exti_quirks_open(files, 2, &opened, &t->err);
}

static const struct exti_quirk *rule(size_t from_last)
{
    return &opened->rules[opened->count - 1 - from_last];
}

static void a_later_file_disables_rules_by_id(void **state)
{
    struct test *t = *state;

    assert_ok(open_two(t, FILE_OF(RULE("a", "\"note\": \"1\"") "," RULE("b", "\"note\": \"2\"")),
                       "{\"extisolate_quirks\": 1, \"disable\": [\"a\"]}"),
              &t->err);
    assert_string_equal(rule(1)->id, "a");
    assert_string_equal(rule(1)->disabled_by, test_path(t, "2.json"));
    assert_null(rule(0)->disabled_by);
    assert_int_equal(first_applying(), opened->count - 1);
    /* A file cannot disable its own rules. */
    assert_exti(open_text(t, "{\"extisolate_quirks\": 1, \"disable\": [\"a\"], \"quirks\": [" RULE(
                                 "a", "\"note\": \"1\"") "]}"),
                EXTI_E_FORMAT, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "no earlier file has a rule 'a'");
}

static void a_later_file_replaces_rules_of_the_same_id(void **state)
{
    struct test *t = *state;

    assert_ok(open_two(t, FILE_OF(RULE("a", "\"refuse\": \"never\"")),
                       "{\"extisolate_quirks\": 1, \"disable\": [\"a\"], \"quirks\": [" RULE(
                           "a", "\"note\": \"fine\"") "]}"),
              &t->err);
    assert_string_equal(rule(1)->disabled_by, test_path(t, "2.json"));
    assert_null(rule(0)->disabled_by);
    assert_ok(open_two(t, FILE_OF(RULE("a", "\"refuse\": \"never\"")),
                       FILE_OF(RULE("a", "\"note\": \"fine\""))),
              &t->err);
    assert_string_equal(rule(1)->disabled_by, test_path(t, "2.json"));
    assert_int_equal(first_applying(), opened->count - 1);
}

/* ---- memory ---- */

static int open_without_memory(struct test *t, const char *path)
{
    int rc = EXTI_E_NOMEM;

    for (long n = 0; rc == EXTI_E_NOMEM; n++) {
        exti_quirks_free(opened);
        opened = NULL;
        exti__mem_fail_after(n);
        rc = exti_quirks_open(&path, 1, &opened, &t->err);
        exti__mem_fail_after(-1);
        if (!rc != (opened != NULL))
            return EXTI_E_CHECK;
    }
    return rc;
}

static void every_allocation_may_fail(void **state)
{
    static const char text[] = FILE_OF(RULE(
        "a",
        "\"library\": \"share\", \"rename\": {\"r\": \"1\"}, \"redirect\": {\"d\": \"e\"}, "
        "\"environment\": {\"A\": \"1\"}") "," RULE("b",
                                                    "\"rename\": {\"r\": \"3\", \"s\": \"2\"}"));
    struct test *t = *state;
    const char *path = test_path(t, "rules.json");
    struct exti_quirk_effect e = {0};
    int rc;

    test_write(path, text, sizeof text - 1);
    rc = open_without_memory(t, path);
    for (long n = 0; opened && (n == 0 || rc == EXTI_E_NOMEM); n++) {
        exti__mem_fail_after(n);
        rc = exti__quirks_apply(opened, PATH, &image, &e, &t->err);
        exti__mem_fail_after(-1);
    }
    assert_ok(rc, &t->err);
    assert_int_equal(e.rename_count, 2);
    exti__quirk_effect_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        quirks_test(built_in_rules_are_valid),
        quirks_test(errors_name_rule_and_member),
        quirks_test(json_errors_name_the_place),
        quirks_test(files_of_a_later_format_are_refused),
        quirks_test(wrong_arguments_are_refused),
        quirks_test(rules_apply_by_name_and_by_content),
        quirks_test(images_without_a_name_match_by_file_name),
        quirks_test(later_rules_win),
        quirks_test(a_refusal_names_its_reason_and_rule),
        quirks_test(a_later_file_disables_rules_by_id),
        quirks_test(a_later_file_replaces_rules_of_the_same_id),
        quirks_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("loader/quirks", tests, NULL, NULL);
}
