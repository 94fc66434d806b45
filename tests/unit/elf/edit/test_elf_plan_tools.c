/* Where moved structures go: readelf shows the program headers, and the copy must load and work
 * before and after the tools that people run on shared objects. */
#include "tests/unit/elf/elf_copy.h"

#include <elf.h>

#define OPTS .size = sizeof(struct exti_rewrite_opts)

/* Enough symbols that the hash table leaves room when it moves. */
static const char source[] =
    "int a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16;\n"
    "#include <stdlib.h>\n"
    "static int zeros[2500]; int set = 41;\n"
    "static __thread int local = 1;\n"
    "int answer(void)\n"
    "{\n"
    "    for (int i = 0; i < 2500; i++)\n"
    "        if (zeros[i]) return -1;\n"
    "    return set + local + abs(0);\n"
    "}\n";

static const struct exti_needed one_more[] = {{NULL, "libm.so.6", EXTI_NEEDED_LAST}};
static const struct exti_needed many_more[] = {
    {NULL, "libm.so.6", 0},    {NULL, "libdl.so.2", 0}, {NULL, "libpthread.so.0", 0},
    {NULL, "libutil.so.1", 0}, {NULL, "librt.so.1", 0}, {NULL, "libresolv.so.2", 0},
};
static const struct exti_rewrite_opts plain = {OPTS, .id = "a-name-that-is-nowhere-in-the-file.so",
                                               .needed = one_more, .needed_count = 1};
static const struct exti_rewrite_opts crowded = {
    OPTS, .id = "a-name-that-is-nowhere-in-the-file.so", .needed = many_more, .needed_count = 6,
    .path_prepend = "/nonexistent"};

static int count(const char *text, const char *what)
{
    int n = 0;

    for (const char *p = strstr(text, what); p; p = strstr(p + 1, what))
        n++;
    return n;
}

/* The copy works as it is and after each tool. */
static void assert_works(struct test *t, const char *path)
{
    static const char *const tools[] = {"strip",    "strip -g",   "objcopy",
                                        "eu-strip", "llvm-strip", "llvm-objcopy"};
    void *h = load_object(path);

    assert_int_equal(call(h, "answer"), 42);
    dlclose(h);
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
        char *out = test_format(t, "%s.%zu", path, i);
        char *program = test_format(t, "%.*s", (int)strcspn(tools[i], " "), tools[i]);
        bool copies = strstr(program, "objcopy");

        if (!test_have(program))
            continue;
        test_must_run(t, "sh", "-c",
                      copies ? test_format(t, "%s '%s' '%s'", tools[i], path, out)
                             : test_format(t, "%s -o '%s' '%s'", tools[i], out, path),
                      NULL);
        h = load_object(out);
        assert_int_equal(call(h, "answer"), 42);
        dlclose(h);
    }
}

struct layout {
    int loads, notes, headers;
    bool grown;
};

static struct layout layout_of(struct test *t, const char *path, bool grown)
{
    char *text = readelf(t, "-lW", path);

    return (struct layout){count(text, "\n  LOAD "), count(text, "\n  NOTE "),
                           atoi(strstr(text, "There are ") + 10), grown};
}

/* Edits the file and returns how many more segments, notes and headers the copy has. */
static struct layout placed(struct test *t, const char *path, const struct exti_rewrite_opts *opts)
{
    struct layout was = layout_of(t, path, false), is;
    struct edited e = edit(t, path, opts);

    is = layout_of(t, e.path, e.grown);
    assert_contains(dynamic_strings(t, e.path), "SONAME a-name-that-is-nowhere-in-the-file.so\n");
    assert_works(t, e.path);
    is.loads -= was.loads;
    is.notes -= was.notes;
    is.headers -= was.headers;
    return is;
}

static void strings_go_into_the_unused_end_of_a_segment(void **state)
{
    struct test *t = *state;
    struct layout l = placed(t, build(t, "slack.so", source, "-Wl,-z,separate-code"), &plain);

    assert_false(l.grown);
    assert_int_equal(l.loads, 0);
    assert_int_equal(l.headers, 0);
}

/* Writable entries cannot go into a read-only segment. */
static void dynamic_section_moves_to_a_segment_of_its_own(void **state)
{
    struct test *t = *state;
    struct layout l = placed(t, build(t, "moved.so", source, ""), &crowded);

    assert_true(l.grown);
    assert_int_equal(l.loads, 1);
    assert_int_equal(l.notes, 0); /* the build-id stays where core files show it */
    assert_int_equal(l.headers, 1);
}

static void duplicate_note_gives_up_its_header(void **state)
{
    struct test *t = *state;
#ifdef __aarch64__
    char *path = build(t, "bti.so", source, "-mbranch-protection=standard -nostartfiles");
#else
    char *path = build(t, "cet.so", source, "-fcf-protection=full -Wl,-z,ibt -Wl,-z,shstk");
#endif
    struct layout l;

    if (!strstr(readelf(t, "-lW", path), "GNU_PROPERTY"))
        skip_because("this linker makes no PT_GNU_PROPERTY");
    l = placed(t, path, &crowded);
    assert_int_equal(l.loads, 1);
    assert_int_equal(l.notes, -1);
    assert_int_equal(l.headers, 0);
}

static void program_header_table_grows_over_the_hash_table(void **state)
{
    struct test *t = *state;
    struct layout l = placed(
        t, build(t, "no-note.so", source, "-Wl,--build-id=none -Wl,--hash-style=gnu"), &crowded);

    assert_int_equal(l.loads, 1);
    assert_int_equal(l.headers, 1);
}

/* In a library that is also a program, like libc.so.6, PT_PHDR stays and gets the table's new size.
 * llvm-strip breaks such files even as the linker makes them, so no tool runs on the copy. */
static void program_headers_of_a_program_stay(void **state)
{
    struct test *t = *state;
    char *interp = test_format(t,
                               "%sconst char interp[] __attribute__((section(\".interp\"))) = "
                               "\"/lib64/ld-linux-x86-64.so.2\";\n",
                               source);
    char *path = build(t, "both.so", interp, "");
    int was = layout_of(t, path, false).headers;
    struct edited e = edit(t, path, &crowded);
    const char *phdr = strstr(readelf(t, "-lW", e.path), "\n  PHDR ");
    unsigned long offset, vaddr, paddr, filesz;
    void *h = load_object(e.path);

    assert_int_equal(layout_of(t, e.path, true).headers, was + 1);
    assert_non_null(phdr);
    assert_int_equal(sscanf(phdr, " PHDR %lx %lx %lx %lx", &offset, &vaddr, &paddr, &filesz), 4);
    assert_int_equal(filesz, (unsigned)(was + 1) * sizeof(Elf64_Phdr));
    assert_int_equal(call(h, "answer"), 42);
    dlclose(h);
}

/* The segments differ only in the page size of the linker option. */
static void large_pages_need_no_padding(void **state)
{
    struct test *t = *state;
    char *path = build(t, "large.so", source, "-Wl,-z,max-page-size=0x200000");
    struct edited e = edit(t, path, &crowded);

    assert_in_range(e.size - e.was, 1, 4096);
    assert_works(t, e.path);
}

static void file_without_sections_is_edited(void **state)
{
    struct test *t = *state;
    char *path = build(t, "bare.so", source, "");
    struct edited e;
    void *h;

    if (!test_have("eu-strip"))
        skip_because("eu-strip is not installed");
    test_must_run(t, "eu-strip", "--strip-sections", path, NULL);
    e = edit(t, path, &crowded);
    h = load_object(e.path);
    assert_int_equal(call(h, "answer"), 42);
    dlclose(h);
}

/* The count of relocations only saves loaders work, so a new entry may replace it. */
static void relocation_count_makes_room_for_an_entry(void **state)
{
    static const struct exti_rewrite_opts add = {OPTS, .needed = one_more, .needed_count = 1};
    struct test *t = *state;
    char *path = build(t, "full.so", source, "-Wl,--spare-dynamic-tags=1");
    char *was = readelf(t, "-dW", path), *is;
    struct edited e;

    assert_non_null(strstr(was, "RELACOUNT"));
    e = edit(t, path, &add);
    is = readelf(t, "-dW", e.path);
    assert_null(strstr(is, "RELACOUNT"));
    assert_int_equal(strtoul(strstr(was, "offset ") + 7, NULL, 16),
                     strtoul(strstr(is, "offset ") + 7, NULL, 16));
    assert_works(t, e.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(strings_go_into_the_unused_end_of_a_segment),
        exti_test(dynamic_section_moves_to_a_segment_of_its_own),
        exti_test(duplicate_note_gives_up_its_header),
        exti_test(program_header_table_grows_over_the_hash_table),
        exti_test(program_headers_of_a_program_stay),
        exti_test(large_pages_need_no_padding),
        exti_test(file_without_sections_is_edited),
        exti_test(relocation_count_makes_room_for_an_entry),
    };

    return cmocka_run_group_tests_name("elf/edit/elf_plan_tools", tests, NULL, NULL);
}
