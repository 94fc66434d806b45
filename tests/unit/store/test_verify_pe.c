/* Contexts of PE files: python3.dll's copy, and the checks of copies against each other. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/image/exports.h"
#include "loader/store/verify_set.h"
#include "tests/unit/pe/pe_toy.h"

static const char *const symbols[] = {"PyModule_Create2", "Py_BuildValue", NULL};
static struct pe_toy toy;

static void write_toy(struct test *t, const char *name, struct pe_toy_opts o, unsigned ordinal)
{
    pe_toy_make(&toy, o);
    if (ordinal) {
        ptoy_put(&toy, toy.lookup[0] + toy.word, toy.word, ptoy_ordinal(&toy, ordinal));
        ptoy_put(&toy, toy.iat[0] + toy.word, toy.word, ptoy_ordinal(&toy, ordinal));
    }
    test_write(test_path(t, name), toy.b, toy.n);
}

static void write_python(struct test *t)
{
    write_toy(t, "python311.dll",
              (struct pe_toy_opts){.api = "USER32.dll", .id = "python311.dll", .exports = symbols},
              0);
}

static void write_python3(struct test *t, const char *name, const char *to)
{
    write_toy(t, name,
              (struct pe_toy_opts){
                  .api = "USER32.dll", .id = "python3.dll", .exports = symbols, .forward = to},
              0);
}

static void write_module(struct test *t, const char *name, unsigned ordinal)
{
    write_toy(t, name, (struct pe_toy_opts){.api = "python3.dll", .by_ordinal = ordinal != 0},
              ordinal);
}

enum { SECOND = PTOY_ORDINAL_BASE + 1 }; /* of python3.dll's exports */

static int open_context(struct test *t, struct exti_ctx **ctx)
{
    struct exti_ctx_opts o = {.size = sizeof o,
                              .dir = test_path(t, "ctx"),
                              .name = "k3x9q2m4",
                              .api_library = test_path(t, "python311.dll"),
                              .flags = EXTI_CTX_COPY_ONLY};

    return exti_ctx_open(ctx, &o, &t->err);
}

/* Copies `name` into the context; returns exti_copy's result and leaves its error in t->err. */
static int copy_one(struct test *t, const char *name)
{
    struct exti_ctx *ctx;
    struct exti_error why = {0};
    int rc;

    assert_ok(open_context(t, &ctx), &t->err);
    rc = exti_copy(ctx, test_path(t, name), NULL, &why);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    t->err = why;
    return rc;
}

static int gather(void *user, const struct exti_error *finding)
{
    FILE *f = user;

    fprintf(f, "%s: %s\n", strrchr(finding->file, '/') + 1, finding->message);
    return 0;
}

/* Every finding about the context's directory, a line for each. */
static char *findings(struct test *t)
{
    char *text = NULL, *out;
    size_t n, count;
    FILE *f = open_memstream(&text, &n);
    int rc = exti_dir_verify(test_path(t, "ctx"), gather, f, &count, &t->err);

    fclose(f);
    out = test_format(t, "%s", text);
    free(text);
    assert_ok(rc, &t->err);
    return out;
}

/* Puts `to` in place of every `from`, of the same length, in a copy. */
static void damage(struct test *t, const char *copy, const char *from, const char *to, size_t n)
{
    char *path = test_path(t, test_format(t, "ctx/%s", copy)), *p;
    size_t size, count = 0;
    char *bytes = test_read(t, path, &size);

    for (char *at = bytes; (p = memmem(at, size - (size_t)(at - bytes), from, n)); at = p + n) {
        memcpy(p, to, n);
        count++;
    }
    assert_true(count > 0);
    test_write(path, bytes, size);
}

static char *copy_of(struct test *t, const char *start)
{
    char *list = test_list(t, test_path(t, "ctx"));

    for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, start, strlen(start)) == 0)
            return line;
    fail_msg("no copy of %s", start);
    return NULL;
}

#define P "pk3x9q2m4"
#define S "sk3x9q2m4"

static void make_context(struct test *t)
{
    write_python(t);
    write_python3(t, "python3.dll", "python311");
    write_module(t, "number.pyd", SECOND);
    write_module(t, "name.pyd", 0);
    assert_ok(copy_one(t, "number.pyd"), &t->err);
    assert_ok(copy_one(t, "name.pyd"), &t->err);
}

/* ---- python3.dll ---- */

static void an_import_by_number_gets_a_copy_of_python3(void **state)
{
    struct test *t = *state;
    struct exti_symbol_info s = {.size = sizeof s};
    struct exti_image *im;

    make_context(t);
    assert_string_equal(findings(t), "");
    assert_ok(exti_inspect(test_path(t, "ctx/" S ".dll"), &im, &t->err), &t->err);
    assert_int_equal(exti_image_symbol(im, 0, &s), 0);
    assert_string_equal(s.forward, P ".PyModule_Create2");
    assert_int_equal(s.ordinal, PTOY_ORDINAL_BASE);
    exti_image_free(im);
    assert_ok(
        exti_inspect(test_path(t, test_format(t, "ctx/%s", copy_of(t, "number."))), &im, &t->err),
        &t->err);
    assert_string_equal(exti_image_needed(im, 0), S ".dll");
    exti_image_free(im);
    assert_ok(
        exti_inspect(test_path(t, test_format(t, "ctx/%s", copy_of(t, "name."))), &im, &t->err),
        &t->err);
    assert_string_equal(exti_image_needed(im, 0), P ".dll");
    exti_image_free(im);
}

static void symbols_missing_in_libpython_come_from_python3(void **state)
{
    static const char *const fewer[] = {"PyModule_Create2", NULL};
    struct test *t = *state;

    write_toy(t, "python311.dll",
              (struct pe_toy_opts){.api = "USER32.dll", .id = "python311.dll", .exports = fewer},
              0);
    write_python3(t, "python3.dll", "python311");
    write_module(t, "name.pyd", 0);
    assert_exti(copy_one(t, "name.pyd"), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err,
                "'Py_BuildValue' from python3.dll, which forwards it to python311.Py_BuildValue");

    /* This python3.dll has code of its own instead of forwarders. */
    write_toy(t, "python3.dll",
              (struct pe_toy_opts){.api = "USER32.dll", .id = "python3.dll", .exports = symbols},
              0);
    assert_exti(copy_one(t, "name.pyd"), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "does not forward to python311.dll");
    write_python3(t, "python3.dll", "python311");
    write_module(t, "name.pyd", 99);
    assert_exti(copy_one(t, "name.pyd"), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "imports '#99' from python3.dll, but neither");
}

static void without_python3_there_is_no_copy(void **state)
{
    struct test *t = *state;

    write_python(t);
    write_module(t, "number.pyd", SECOND);
    assert_exti(copy_one(t, "number.pyd"), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "needs a copy of python3.dll");
    write_python3(t, "PYTHON3.DLL", "python310");
    assert_exti(copy_one(t, "number.pyd"), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "but to python310.Py");
    write_python3(t, "PYTHON3.DLL", "Python311");
    assert_ok(copy_one(t, "number.pyd"), &t->err);
    assert_string_equal(findings(t), "");
    write_python3(t, "python3.dll", "python311");
    assert_exti(copy_one(t, "python3.dll"), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "already");
}

static void forwarders_to_the_same_library_are_handled(void **state)
{
    struct test *t = *state;
    struct exti_symbol_info s = {.size = sizeof s};
    struct exti_image *im;

    write_python(t);
    write_module(t, "number.pyd", SECOND);
    write_python3(t, "python3.dll", "PYTHON3");
    assert_exti(copy_one(t, "number.pyd"), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err,
                "forwards 'PyModule_Create2' to PYTHON3.PyModule_Create2, which is python3.dll");
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);

    write_toy(
        t, "python311.dll",
        (struct pe_toy_opts){
            .api = "USER32.dll", .id = "python311.dll", .exports = symbols, .forward = "Python311"},
        0);
    write_python3(t, "python3.dll", "python311");
    assert_ok(copy_one(t, "number.pyd"), &t->err);
    assert_ok(exti_inspect(test_path(t, "ctx/" P ".dll"), &im, &t->err), &t->err);
    assert_int_equal(exti_image_symbol(im, 0, &s), 0);
    assert_string_equal(s.forward, P ".PyModule_Create2");
    exti_image_free(im);
    assert_contains(findings(t), "its forwarders form a cycle");
}

static void ordinals_begin_at_0(void **state)
{
    static const char *const others[] = {"#1", "#", "#0x", "#65536", "#4294967296", "zero"};
    struct test *t = *state;
    struct exti_image_symbol first = {.name = "first", .flags = EXTI_SYM_EXPORT};
    const struct exti_image im = {.symbols = &first, .info.symbol_count = 1};
    struct exti_exports x;

    assert_ok(exti__exports_of(&im, &x, &t->err), &t->err);
    assert_ptr_equal(exti__exports_find(&x, "#0"), &first);
    assert_ptr_equal(exti__exports_find(&x, "first"), &first);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        assert_null(exti__exports_find(&x, others[i]));
    exti__exports_free(&x);
}

static void forwarders_alone_are_renamed_too(void **state)
{
    struct test *t = *state;
    struct exti_symbol_info s = {.size = sizeof s};
    struct exti_image *im;

    write_python(t);
    write_toy(t, "lead.dll",
              (struct pe_toy_opts){.api = "USER32.dll", .exports = symbols, .forward = "python3"},
              0);
    assert_ok(copy_one(t, "lead.dll"), &t->err);
    assert_string_equal(findings(t), "");
    assert_ok(
        exti_inspect(test_path(t, test_format(t, "ctx/%s", copy_of(t, "lead-"))), &im, &t->err),
        &t->err);
    assert_int_equal(exti_image_symbol(im, 1, &s), 0);
    assert_string_equal(s.forward, P ".Py_BuildValue");
    exti_image_free(im);
}

/* ---- copies against each other ---- */

static void verify_finds_references_out_of_the_context(void **state)
{
    static const struct {
        const char *copy, *from, *to;
        size_t n;
        const char *says;
    } cases[] = {
        {"name.", P ".dll", "python311.dll", 13, "imports from python311.dll, the original"},
        {"number.", S ".dll", "python3.dll\0", 13, "imports from python3.dll, the original"},
        {"name.", P ".dll", "pother123.dll", 13, "imports from pother123.dll, which is none"},
        {S ".dll", P ".Py_B", "python311.Py_B", 14, "forwards 'Py_BuildValue' to python311.Py"},
        {S ".dll", P ".Py_B", S ".Py_B", 14, "forwarders form a cycle"},
        {S ".dll", P ".Py_B", "USER32xxx.Py_B", 14, "differs from what its source"},
        {S ".dll", P ".Py_B", P ".Py_X", 14, P ".dll does not export Py_XuildValue"},
        {P ".dll", "Py_BuildValue", "Py_BuildValuf", 13,
         "imports '#6' from " S ".dll: " P ".dll does not export Py_BuildValue"},
        {P ".dll", "Py_BuildValue", "Py_BuildValuf", 13,
         "imports 'Py_BuildValue' from " P ".dll: " P ".dll does not export Py_BuildValue"},
        {P ".dll", "PE\0\0", "XX\0\0", 4, "differs from what its source"},
    };
    struct test *t = *state;

    make_context(t);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *copy = copy_of(t, cases[i].copy);
        char *path = test_path(t, test_format(t, "ctx/%s", copy));
        size_t n;
        char *whole = test_read(t, path, &n);

        damage(t, copy, cases[i].from, cases[i].to, cases[i].n);
        assert_contains(findings(t), cases[i].says);
        test_write(path, whole, n);
        assert_string_equal(findings(t), "");
    }
}

/* ---- dependencies ---- */

/* x.pyd imports from brought.dll, which imports from further.dll, which forwards to brought.dll. */
static void write_brought(struct test *t)
{
    write_python(t);
    write_toy(t, "brought.dll", (struct pe_toy_opts){.api = "FURTHER.dll", .exports = symbols}, 0);
    write_toy(t, "Further.dll",
              (struct pe_toy_opts){.api = "USER32.dll", .exports = symbols, .forward = "Brought"},
              0);
    write_toy(t, "x.pyd", (struct pe_toy_opts){.api = "brought.dll"}, 0);
}

static bool needs_it(struct test *t, const char *file, const char *name)
{
    struct exti_image *im;
    bool found = false;

    assert_ok(exti_inspect(test_path(t, test_format(t, "ctx/%s", file)), &im, &t->err), &t->err);
    for (size_t i = 0; exti_image_needed(im, i); i++)
        found = found || strcmp(exti_image_needed(im, i), name) == 0;
    exti_image_free(im);
    return found;
}

static void dependencies_are_copied_with_a_module(void **state)
{
    struct test *t = *state;
    struct exti_symbol_info s = {.size = sizeof s};
    struct exti_image *im;
    char *brought, *further, *x, *wrong;

    write_brought(t);
    assert_ok(copy_one(t, "x.pyd"), &t->err);
    x = copy_of(t, "x.k3x9q2m4");
    brought = copy_of(t, "brought-k3x9q2m4");
    further = copy_of(t, "Further-k3x9q2m4");
    assert_true(needs_it(t, x, brought) && needs_it(t, x, "KERNEL32.dll"));
    assert_true(needs_it(t, brought, "KERNEL32.dll") && needs_it(t, brought, further));
    assert_ok(exti_inspect(test_path(t, test_format(t, "ctx/%s", further)), &im, &t->err), &t->err);
    assert_int_equal(exti_image_symbol(im, 1, &s), 0);
    assert_string_equal(s.forward,
                        test_format(t, "%.*s.Py_BuildValue", (int)strlen(brought) - 4, brought));
    exti_image_free(im);
    assert_string_equal(findings(t), "");

    wrong = test_format(t, "%s", brought);
    wrong[0] = 'x';
    damage(t, x, brought, wrong, strlen(wrong));
    assert_contains(findings(t), "in place of brought.dll, which is brought-");
    damage(t, x, wrong, "brought.dll\0", 12);
    assert_contains(findings(t), "imports from brought.dll, the original");
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
}

/* With closure none a copy's name is the one that format 1 gave it. */
static void shared_libraries_keep_their_names(void **state)
{
    struct test *t = *state;
    const struct exti_rule rule = {"BROUGHT.*", 1};
    struct exti_ctx_opts o = {.size = sizeof o,
                              .dir = test_path(t, "ctx"),
                              .name = "k3x9q2m4",
                              .api_library = test_path(t, "python311.dll"),
                              .rules = &rule,
                              .rule_count = 1,
                              .flags = EXTI_CTX_COPY_ONLY};
    struct exti_ctx *ctx;

    write_brought(t);
    assert_ok(exti_ctx_open(&ctx, &o, &t->err), &t->err);
    assert_ok(exti_copy(ctx, test_path(t, "x.pyd"), NULL, &t->err), &t->err);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_true(needs_it(t, copy_of(t, "x.k3x9q2m4"), "brought.dll"));
    assert_null(strstr(test_list(t, test_path(t, "ctx")), "brought"));
    assert_string_equal(findings(t), "");
    damage(t, copy_of(t, "x.k3x9q2m4"), "brought.dll", "another.dll", 11);
    assert_contains(findings(t), "in place of brought.dll, which is shared");
    assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);

    o.rule_count = 0;
    o.closure = EXTI_CLOSURE_NONE;
    assert_ok(exti_ctx_open(&ctx, &o, &t->err), &t->err);
    assert_ok(exti_copy(ctx, test_path(t, "brought.dll"), NULL, &t->err), &t->err);
    assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
    assert_true(needs_it(t, copy_of(t, "brought.k3x9q2m4-"), "FURTHER.dll"));
}

static void uncopyable_dependency_error_names_its_user(void **state)
{
    struct test *t = *state;

    write_brought(t);
    pe_toy_make(&toy, (struct pe_toy_opts){.api = "USER32.dll", .exports = symbols});
    ptoy_put(&toy, toy.nt + 22, 2, ptoy_get(&toy, toy.nt + 22, 2) | IMAGE_FILE_RELOCS_STRIPPED);
    test_write(test_path(t, "brought.dll"), toy.b, toy.n);
    assert_exti(copy_one(t, "x.pyd"), EXTI_E_UNSUPPORTED, &t->err, ANY_OFFSET);
    assert_string_equal(t->err.file, test_path(t, "brought.dll"));
    assert_says(&t->err, "no relocations");
    assert_says(&t->err, "; needed by x.pyd (use --share to share it instead)");
}

/* The library is put beside the module after the first copy. */
static void a_dependency_added_later_is_found(void **state)
{
    struct test *t = *state;

    write_brought(t);
    rename(test_path(t, "brought.dll"), test_path(t, "away"));
    assert_ok(copy_one(t, "x.pyd"), &t->err);
    assert_true(needs_it(t, copy_of(t, "x.k3x9q2m4"), "brought.dll"));
    rename(test_path(t, "away"), test_path(t, "brought.dll"));
    assert_ok(copy_one(t, "x.pyd"), &t->err);
    assert_true(needs_it(t, copy_of(t, "x.k3x9q2m4"), copy_of(t, "brought-k3x9q2m4")));
    assert_string_equal(findings(t), "");
}

static void verify_finds_hard_links(void **state)
{
    struct test *t = *state;
    char *number, *name;

    make_context(t);
    number = test_path(t, test_format(t, "ctx/%s", copy_of(t, "number.")));
    name = test_path(t, test_format(t, "ctx/%s", copy_of(t, "name.")));
    unlink(number);
    assert_int_equal(link(name, number), 0);
    assert_contains(findings(t), "is the same file as n");
    unlink(number);
    assert_int_equal(symlink(test_path(t, "number.pyd"), number), 0);
    assert_contains(findings(t), "is the same file as its original, ");
}

static int stop_at_once(void *user, const struct exti_error *finding)
{
    ++*(int *)user;
    (void)finding;
    return 1;
}

static void copy_names_differ_in_more_than_case(void **state)
{
    struct exti_entry two[] = {{.source = (char *)"/x/a.pyd", .copy = (char *)"a.pyd"},
                               {.source = (char *)"/x/b.pyd", .copy = (char *)"A.PYD"}};
    char *const copies[] = {(char *)"/none/p.dll", (char *)"/none/a.pyd", (char *)"/none/A.PYD"};
    struct exti_manifest m = {
        .api = {.source = (char *)"/x/python311.dll", .copy = (char *)"p.dll"},
        .entries = two,
        .count = 2};
    struct test *t = *state;
    int count = 0;

    assert_ok(exti__verify_set(&m, copies, stop_at_once, &count, &t->err), &t->err);
    assert_int_equal(count, 0);
    m.target.format = EXTI_FORMAT_PE;
    assert_ok(exti__verify_set(&m, copies, stop_at_once, &count, &t->err), &t->err);
    assert_int_equal(count, 1);
}

/* ---- names in text ---- */

static void names_in_text_are_found(void **state)
{
    static const char wide[] = "P\0y\0t\0h\0o\0n\0003\0.\0d\0l\0l";
    struct test *t = *state;
    struct exti_image *im;
    size_t at[4], n;

    pe_toy_make(&toy, (struct pe_toy_opts){.api = "python3.dll"});
    n = toy.start[PTOY_DATA] + 0x80;
    at[0] = n + 1;
    memcpy(toy.b + n, "\\PYTHON3.DLL", 13);
    memcpy(toy.b + n + 20, "xpython3.dll", 13);
    memcpy(toy.b + n + 40, "python3.dlls", 13);
    at[1] = n + 60;
    memcpy(toy.b + at[1], wide, sizeof wide);
    memcpy(toy.b + n + 88, "_", 2);
    memcpy(toy.b + n + 90, wide, sizeof wide);
    at[2] = n + 120;
    memcpy(toy.b + at[2] - 1, "\1", 1);
    memcpy(toy.b + at[2], wide, sizeof wide);
    at[3] = toy.n;
    memcpy(toy.b + at[3], "python3.dll", 11);
    test_write(test_path(t, "a.pyd"), toy.b, toy.n + 11);
    assert_ok(exti_inspect(test_path(t, "a.pyd"), &im, &t->err), &t->err);
    n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(at); i++, n++) {
        n = (size_t)exti_image_mention(im, "python3.dll", n);
        assert_int_equal(n, at[i]);
    }
    assert_true(exti_image_mention(im, "python3.dll", n) == EXTI_NO_OFFSET);
    assert_true(exti_image_mention(im, "python3.dll", UINT64_MAX - 1) == EXTI_NO_OFFSET);
    assert_true(exti_image_mention(im, "", 0) == EXTI_NO_OFFSET);
    assert_true(exti_image_mention(im, NULL, 0) == EXTI_NO_OFFSET);
    assert_true(exti_image_mention(NULL, "python3.dll", 0) == EXTI_NO_OFFSET);
    assert_true(exti_image_mention(im, PTOY_ID, 0) == EXTI_NO_OFFSET);
    exti_image_free(im);
}

/* ---- memory ---- */

static void out_of_memory_copying_dependencies_leaks_nothing(void **state)
{
    struct test *t = *state;
    int failures = 0;

    write_brought(t);
    for (long n = 0, good = 0; good < 20; n += 3) {
        struct exti_ctx *ctx;
        int rc;

        assert_ok(open_context(t, &ctx), &t->err);
        exti__mem_fail_after(n);
        rc = exti_copy(ctx, test_path(t, "x.pyd"), NULL, &t->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_int_equal(rc, EXTI_E_NOMEM);
        failures += rc != 0;
        good = rc ? 0 : good + 1;
        assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
        if (rc) /* now the missing files are made */
            assert_ok(copy_one(t, "x.pyd"), &t->err);
        assert_string_equal(findings(t), "");
        assert_true(needs_it(t, copy_of(t, "x.k3"), copy_of(t, "brought-k3")));
        assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    }
    assert_true(failures > 50);
}

/* Some look-ups may fail without harm, so the loop does not end at the first success. */
static void out_of_memory_leaks_nothing(void **state)
{
    struct test *t = *state;
    struct exti_manifest m;
    char *copies[4];
    int rc, count = 0, failures = 0;

    write_python(t);
    write_python3(t, "python3.dll", "python311");
    write_module(t, "number.pyd", SECOND);
    for (long n = 0, good = 0; good < 20; n++) {
        struct exti_ctx *ctx;

        assert_ok(open_context(t, &ctx), &t->err);
        exti__mem_fail_after(n);
        rc = exti_copy(ctx, test_path(t, "number.pyd"), NULL, &t->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_int_equal(rc, EXTI_E_NOMEM);
        failures += rc != 0;
        good = rc ? 0 : good + 1;
        assert_ok(exti_ctx_close(ctx, &t->err), &t->err);
        assert_string_equal(findings(t), "");
        if (good < 20)
            assert_ok(exti_dir_clean(test_path(t, "ctx"), &t->err), &t->err);
    }
    assert_true(failures > 50);

    assert_ok(exti__manifest_read(test_path(t, "ctx"), &m, &t->err), &t->err);
    assert_int_equal(m.count, 2);
    copies[0] = test_path(t, test_format(t, "ctx/%s", m.api.copy));
    for (size_t i = 0; i < m.count; i++)
        copies[i + 1] = test_path(t, test_format(t, "ctx/%s", m.entries[i].copy));
    rc = EXTI_E_NOMEM;
    for (long n = 0; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__verify_set(&m, copies, stop_at_once, &count, &t->err);
        exti__mem_fail_after(-1);
        assert_int_equal(rc, rc ? EXTI_E_NOMEM : 0);
    }
    exti__manifest_clear(&m);
    assert_int_equal(count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(an_import_by_number_gets_a_copy_of_python3),
        exti_test(symbols_missing_in_libpython_come_from_python3),
        exti_test(without_python3_there_is_no_copy),
        exti_test(forwarders_to_the_same_library_are_handled),
        exti_test(ordinals_begin_at_0),
        exti_test(forwarders_alone_are_renamed_too),
        exti_test(verify_finds_references_out_of_the_context),
        exti_test(dependencies_are_copied_with_a_module),
        exti_test(shared_libraries_keep_their_names),
        exti_test(uncopyable_dependency_error_names_its_user),
        exti_test(a_dependency_added_later_is_found),
        exti_test(verify_finds_hard_links),
        exti_test(copy_names_differ_in_more_than_case),
        exti_test(names_in_text_are_found),
        exti_test(out_of_memory_leaks_nothing),
        exti_test(out_of_memory_copying_dependencies_leaks_nothing),
    };

    return cmocka_run_group_tests_name("store/verify_pe", tests, NULL, NULL);
}
