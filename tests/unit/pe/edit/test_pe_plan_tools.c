/* Rewrites files that lld linked and compares what an independent reader prints before and
 * after. */
#include <stdlib.h>

#include "tests/unit/pe/pe_copy.h"

#define CC "clang"
#define LINK "lld-link"
#define READER "llvm-readobj"

static const char api_source[] = "int Py_State = 1;\n"
                                 "int Py_Next(void) { return ++Py_State; }\n";
static const char ext_source[] =
    "__declspec(dllimport) int Py_Next(void);\n"
    "__declspec(dllimport) extern int Py_State;\n"
    "__declspec(dllimport) int late(void);\n"
    "void *__stdcall __delayLoadHelper2(void *d, void *a) { return d == a ? d : 0; }\n"
    "static int own;\n"
    "int *table[] = {&own, &own};\n"
    "int ext_next(void) { return Py_Next() + Py_State + *table[0] + late(); }\n";
static const char *const machines[][3] = {
    {"x86_64", "x64", ""}, {"i686", "x86", "-safeseh:no"}, {"aarch64", "arm64", ""}};

static void link_dll(struct test *t, size_t machine, const char *name, const char *source,
                     const char *options)
{
    const char *c = test_path(t, "source.c"), *o = test_path(t, "source.obj");
    char *argv[32] = {LINK, "-dll", "-noentry", "-nodefaultlib", "-release", "-Brepro"}, *text;
    size_t n = 6;
    int rc;

    test_write(c, source, strlen(source));
    test_must_run(t, CC, test_format(t, "--target=%s-pc-windows-msvc", machines[machine][0]), "-O1",
                  "-c", c, "-o", o, (char *)NULL);
    argv[n++] = test_format(t, "-machine:%s", machines[machine][1]);
    argv[n++] = test_format(t, "-out:%s", test_path(t, name));
    argv[n++] = test_format(t, "-libpath:%s", t->dir);
    if (*machines[machine][2])
        argv[n++] = (char *)machines[machine][2];
    for (char *p = strtok(test_format(t, "%s", options), " "); p; p = strtok(NULL, " "))
        argv[n++] = p;
    argv[n++] = (char *)o;
    argv[n] = NULL;
    rc = test_runv(t, &text, argv);
    if (rc)
        fail_msg("%s: status %d\n%s", LINK, rc, text);
}

/* python311.dll; python3.dll, which forwards to it; ext.pyd, which imports python311.dll and
 * delay-loads late.dll. */
static void link_all(struct test *t, size_t machine)
{
    link_dll(t, machine, "python311.dll", api_source, "-export:Py_Next -export:Py_State,DATA");
    link_dll(t, machine, "late.dll", "int late(void) { return 1; }\n", "-export:late");
    link_dll(t, machine, "ext.pyd", ext_source,
             "-export:ext_next python311.lib late.lib -delayload:late.dll");
    link_dll(
        t, machine, "python3.dll", "",
        "-export:Py_Next=python311.Py_Next -export:Py_State=python311.Py_State,DATA python311.lib");
}

/* Asserts that the file's checksum is right. */
static void assert_checksum(struct test *t, const char *p, size_t n)
{
    struct pe_file f;

    assert_ok(exti__pe_open(exti__span(p, n), &f, &t->err), &t->err);
    assert_int_equal(f.checksum, ptoy_checksum((const uint8_t *)p, n, (size_t)f.optional_at + 64));
    exti__pe_close(&f);
}

/* Rewrites dir/from into dir/to with the edits of `opts`. */
static void rewrite_linked(struct test *t, const char *from, const char *to,
                           const struct exti_rewrite_opts *opts)
{
    const struct exti_request req = {.opts = opts};
    struct exti_plan plan;
    size_t size, n;
    char *bytes = test_read(t, test_path(t, from), &size), *copy;
    int rc;

    exti__plan_init(&plan, size * 4 + ((size_t)1 << 20));
    rc = exti__pe_plan(exti__span(bytes, size), &req, &plan, &t->err);
    n = (size_t)exti__plan_size(&plan, size);
    copy = test_alloc(t, n > size ? n : size);
    memcpy(copy, bytes, size);
    if (!rc)
        exti__plan_apply(&plan, (uint8_t *)copy, size);
    exti__plan_free(&plan);
    assert_ok(rc, &t->err);
    assert_checksum(t, bytes, size);
    assert_checksum(t, copy, n);
    test_write(test_path(t, to), copy, n);
}

static int line_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct lines {
    char *line[8192];
    size_t count;
};

/* The lines that the reader prints for dir/name, sorted. */
static void read_lines(struct test *t, const char *name, struct lines *out)
{
    char *text =
        test_must_run(t, READER, "--file-headers", "--sections", "--coff-imports", "--coff-exports",
                      "--coff-basereloc", "--coff-debug-directory", "--coff-tls-directory",
                      "--coff-load-config", test_path(t, name), (char *)NULL);

    out->count = 0;
    for (char *p = strtok(text, "\n"); p; p = strtok(NULL, "\n")) {
        p += strspn(p, " ");
        if (strncmp(p, "File: ", 6) == 0 || strncmp(p, "CheckSum: ", 10) == 0)
            continue;
        assert_true(out->count < ARRAY_SIZE(out->line));
        out->line[out->count++] = p;
    }
    qsort(out->line, out->count, sizeof *out->line, line_order);
}

/* "-line\n" for each line that only the first has, "+line\n" for each that only the second has. */
static const char *differences(struct test *t, const char *first, const char *second)
{
    struct lines *a = test_alloc(t, sizeof *a), *b = test_alloc(t, sizeof *b);
    char *text = test_alloc(t, 65536);
    size_t n = 0;

    read_lines(t, first, a);
    read_lines(t, second, b);
    for (size_t i = 0, k = 0; i < a->count || k < b->count;) {
        int order = i == a->count ? 1 : k == b->count ? -1 : strcmp(a->line[i], b->line[k]);

        if (order)
            n += (size_t)snprintf(text + n, 65536 - n, "%c%s\n", order < 0 ? '-' : '+',
                                  order < 0 ? a->line[i] : b->line[k]);
        assert_true(n < 65536);
        i += order <= 0;
        k += order >= 0;
    }
    return text;
}

static void skip_without_tools(void)
{
    if (!test_have(CC) || !test_have(LINK) || !test_have(READER))
        skip_because(CC ", " LINK " or " READER " is not installed");
}

static void names_in_place_change_nothing_else(void **state)
{
    const struct exti_needed needed[] = {{"python311.dll", "k3x9q2m4f.dll", 0},
                                         {"late.dll", "l8te.dll", 0}};
    const struct exti_needed stable = {"python311", "k3x9q2m4f.dll", 0};
    const struct exti_rewrite_opts ext = {.id = "e8t.pyd", .needed = needed, .needed_count = 2};
    const struct exti_rewrite_opts abi = {.id = "p3.dll", .needed = &stable, .needed_count = 1};
    struct test *t = *state;

    skip_without_tools();
    for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
        link_all(t, i);
        rewrite_linked(t, "ext.pyd", "copy.pyd", &ext);
        assert_string_equal(differences(t, "ext.pyd", "copy.pyd"),
                            "+Name: k3x9q2m4f.dll\n"
                            "+Name: l8te.dll\n-Name: late.dll\n-Name: python311.dll\n");
        rewrite_linked(t, "python3.dll", "copy.dll", &abi);
        assert_string_equal(differences(t, "python3.dll", "copy.dll"),
                            "+ForwardedTo: k3x9q2m4f.Py_Next\n+ForwardedTo: k3x9q2m4f.Py_State\n"
                            "-ForwardedTo: python311.Py_Next\n-ForwardedTo: python311.Py_State\n"
                            "");
    }
}

/* Asserts that each line is about a name or its place. */
static void assert_only(struct test *t, const char *text, const char *const *keys)
{
    char *save;

    for (char *p = strtok_r(test_format(t, "%s", text), "\n", &save); p;
         p = strtok_r(NULL, "\n", &save)) {
        size_t i = 0;

        while (keys[i] && strncmp(p + 1, keys[i], strlen(keys[i])) != 0)
            i++;
        if (!keys[i])
            fail_msg("%s", p);
    }
}

static void longer_names_move_and_nothing_else_does(void **state)
{
    static const char *const in_slack[] = {
        "Name: ", "ForwardedTo: ", "VirtualSize: ", "ExportTableRVA: ", "ExportTableSize: ", NULL};
    static const char *const in_section[] = {
        "Name: ", "ForwardedTo: ", "SectionCount: ", "SizeOfImage: ", "SizeOfInitializedData: ",
        "ExportTableRVA: ", "ExportTableSize: ",
        /* the new section */
        "Section {", "Number: ", "VirtualSize: ", "VirtualAddress: ", "RawDataSize: ",
        "PointerToRawData: ", "PointerToRelocations: 0x0", "PointerToLineNumbers: 0x0",
        "RelocationCount: 0", "LineNumberCount: 0", "Characteristics [ (0x40000040)",
        "IMAGE_SCN_CNT_INITIALIZED_DATA", "IMAGE_SCN_MEM_READ", "]", "}", NULL};
    char longest[2][251];
    struct exti_needed needed[] = {{"python311.dll", LONGER, 0},
                                   {"late.dll", "late-of-4711.dll", 0}};
    struct exti_needed stable = {"python311", LONGER, 0};
    struct exti_rewrite_opts ext = {
        .id = "ext-of-context-4711.pyd", .needed = needed, .needed_count = 2};
    struct exti_rewrite_opts abi = {.id = "python3-4711.dll", .needed = &stable, .needed_count = 1};
    struct test *t = *state;

    skip_without_tools();
    for (size_t i = 0; i < 2; i++) {
        memset(longest[i], 'p', sizeof longest[i] - 1);
        strcpy(longest[i] + sizeof longest[i] - 6, i ? "1.dll" : "0.dll");
    }
    for (size_t i = 0; i < 2 * ARRAY_SIZE(machines); i++) {
        const char *diff;

        if (i == ARRAY_SIZE(machines)) {
            needed[0].to = stable.to = longest[0];
            ext.id = abi.id = needed[1].to = longest[1];
        }
        link_all(t, i % ARRAY_SIZE(machines));
        rewrite_linked(t, "ext.pyd", "copy.pyd", &ext);
        diff = differences(t, "ext.pyd", "copy.pyd");
        assert_only(t, diff, i < ARRAY_SIZE(machines) ? in_slack : in_section);
        assert_contains(diff, test_format(t, "+Name: %s\n", needed[0].to));
        assert_contains(diff, test_format(t, "+Name: %s\n", needed[1].to));
        rewrite_linked(t, "python3.dll", "copy.dll", &abi);
        diff = differences(t, "python3.dll", "copy.dll");
        assert_only(t, diff, i < ARRAY_SIZE(machines) ? in_slack : in_section);
        assert_contains(diff, test_format(t, "+ForwardedTo: %.*s.Py_Next\n",
                                          (int)strlen(stable.to) - 4, stable.to));
        assert_contains(diff, test_format(t, "+ForwardedTo: %.*s.Py_State\n",
                                          (int)strlen(stable.to) - 4, stable.to));
    }
}

/* Windows maps 96 sections at most. */
static void no_section_is_added_to_96(void **state)
{
    char longest[2][251], *source;
    struct exti_needed needed[] = {{"python311.dll", longest[0], 0}};
    struct exti_rewrite_opts opts = {.id = longest[1], .needed = needed, .needed_count = 1};
    struct exti_request req = {.opts = &opts};
    struct test *t = *state;
    struct exti_plan plan;
    size_t n = 0, size;

    skip_without_tools();
    source = test_alloc(t, 65536);
    n = (size_t)snprintf(source, 65536,
                         "__declspec(dllimport) int Py_Next(void);\n"
                         "int ext_next(void) { return Py_Next(); }\n");
    for (int i = 0; i < 94; i++)
        n += (size_t)snprintf(
            source + n, 65536 - n,
            "__attribute__((section(\".s%02d\"), used)) char s%02d[500] = \"x\";\n", i, i);
    assert_true(n < 65536);
    for (size_t i = 0; i < 2; i++) {
        memset(longest[i], 'p', sizeof longest[i] - 1);
        strcpy(longest[i] + sizeof longest[i] - 6, i ? "1.dll" : "0.dll");
    }
    link_dll(t, 0, "python311.dll", api_source, "-export:Py_Next");
    link_dll(t, 0, "ext.pyd", source, "-export:ext_next python311.lib");
    source = test_read(t, test_path(t, "ext.pyd"), &size);
    if (!strstr(test_must_run(t, READER, "--file-headers", test_path(t, "ext.pyd"), (char *)NULL),
                "SectionCount: 96"))
        fail_msg("%s",
                 test_must_run(t, READER, "--sections", test_path(t, "ext.pyd"), (char *)NULL));
    for (size_t i = 0; i < 2; i++) {
        exti__plan_init(&plan, (size_t)1 << 24);
        assert_exti(exti__pe_plan(exti__span(source, size + i), &req, &plan, &t->err),
                    i ? EXTI_E_NOSPACE : EXTI_OK, &t->err, ANY_OFFSET);
        /* The last section is extended unless anything follows it, even one NUL. */
        assert_int_equal(plan.tail_offset, i ? 0 : size);
        exti__plan_free(&plan);
    }
    assert_says(&t->err, "there are 96 sections");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(names_in_place_change_nothing_else),
        exti_test(longer_names_move_and_nothing_else_does),
        exti_test(no_section_is_added_to_96),
    };

    return cmocka_run_group_tests_name("pe/pe_plan_tools", tests, NULL, NULL);
}
