/* Every kind of Mach-O file that build.sh makes, run by this folder's loader in two contexts of
 * one process: files that are not rewritten share their state and libpython's, rewritten ones do
 * not. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char inputs[4096]; /* where build.sh puts them */

enum {
    ONE_PER_PROCESS = 1, /* its state stays one per process: C++ definitions, a helper library */
    HELPED = 2,          /* needs libhelper.dylib */
    MANY = 4,            /* and libextra1.dylib to libextra20.dylib, by @loader_path */
    MAIN = 8,            /* binds to the main program */
    EXPLICIT = 16,       /* names libpystub.dylib */
    THREADS = 32,        /* its state is one per thread */
    UNSIGNED = 64,       /* so that it does not count for arm64 */
    FAT = 128,           /* also built as a universal file */
    FAT_ONLY = 256,
    CHAINED = 512, /* only with chained fixups */
    ROOM = 1024,   /* with space for long names */
    NO_ROOM = 2048,
    UMBRELLA = 4096, /* its libpython is libumbrella.dylib, which re-exports libpystub.dylib */
    WITHHOLD = 8192, /* also copied without initialisers for dyld */
};

static const struct input {
    const char *name;
    unsigned flags;
} all_inputs[] = {
    {"ext", FAT | WITHHOLD},
    {"direct", 0},
    {"far2", 0},
    {"far3", 0},
    {"tlv", THREADS | FAT | WITHHOLD},
    {"weak", ONE_PER_PROCESS | FAT},
    {"dead-strip", ONE_PER_PROCESS},
    {"explicit", EXPLICIT},
    {"loader", MAIN},
    {"many", MANY},
    {"reexport", UMBRELLA},
    {"flat", 0},
    {"frames", 0},
    {"pad0", NO_ROOM | FAT | WITHHOLD},
    {"pad0-weak", NO_ROOM | ONE_PER_PROCESS},
    {"pad0-tlv", NO_ROOM | THREADS},
    {"padmax", ROOM},
    {"init-offsets", WITHHOLD},
    {"unsigned", UNSIGNED | WITHHOLD},
    {"signed", 0},
    {"pointers6", CHAINED | UNSIGNED | WITHHOLD},
    {"helped", HELPED | ONE_PER_PROCESS | FAT},
    {"sdk-11", 0},
    {"sdk-10.9", WITHHOLD},
    {"dylib", WITHHOLD},
    {"fat64", FAT_ONLY},
    {"odd", FAT_ONLY},
};

struct row {
    const struct input *input;
    const char *arch;   /* that runs it */
    const char *fixups; /* chained or opcodes */
    bool fat;
    char cells[3][64]; /* indexed as the table: which were found */
};

static char *folder(struct test *t, const struct row *row)
{
    return test_format(t, "%s/%s/%s", inputs, row->fat ? "fat" : row->arch, row->fixups);
}

/* ---- running --------------------------------------------------------------------------------- */

struct command {
    char *argv[64];
    size_t n;
};

static void add_argument(struct command *c, const char *arg)
{
    assert_true(c->n + 1 < ARRAY_SIZE(c->argv));
    c->argv[c->n++] = (char *)(uintptr_t)arg;
}

static void add_loader(struct test *t, struct command *c, const char *arch)
{
    char *reason = test_format(t, "%s/%s/macho_load.skip", inputs, arch);

    if (access(reason, F_OK) == 0)
        skip_because("the loader for %s %s", arch, test_read(t, reason, NULL));
    if (strcmp(arch, "arm64") == 0) {
        if (!test_have("qemu-aarch64"))
            skip_because("qemu-aarch64 is not installed");
        add_argument(c, "qemu-aarch64");
    }
    add_argument(c, test_format(t, "%s/%s/macho_load", inputs, arch));
}

/* The results of the calls, in one line. */
static char *output(struct test *t, struct command *c)
{
    char *out;
    int rc = test_runv(t, &out, c->argv);

    if (rc != 0)
        fail_msg("the loader ends with %d: %s", rc, out);
    for (char *p = out; *p; p++)
        if (*p == '\n')
            *p = p[1] ? ' ' : 0;
    return out;
}

/* One context: its libpython, the extension's libraries, the extension, and calls into it. */
static void add_context(struct test *t, struct command *c, const struct input *in, const char *dir,
                        bool local)
{
    const char *const files[] = {
        "libpystub.dylib", in->flags & UMBRELLA ? "libumbrella.dylib" : NULL,
        in->flags & HELPED ? "libhelper.dylib" : NULL, test_format(t, "%s.so", in->name)};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        if (!files[i])
            continue;
        if (local)
            add_argument(c, "-local");
        add_argument(c, test_format(t, "%s/%s", dir, files[i]));
    }
    add_argument(c, ":_ext_init");
    add_argument(c, ":_ext_check");
    add_argument(c, ":_ext_modules");
    add_argument(c, ":_ext_own");
    if (in->flags & THREADS) {
        add_argument(c, "@_ext_own");
        add_argument(c, ":_ext_own");
    }
}

/* Runs the input in the two contexts; asks each libpython for its modules last. */
static char *run_both(struct test *t, const struct row *row, const char *one, const char *two,
                      bool local)
{
    struct command c = {.n = 0};

    add_loader(t, &c, row->arch);
    if (row->input->flags & MAIN) {
        add_argument(&c, "--main");
        add_argument(&c, test_format(t, "%s/%s/%s/program", inputs, row->arch, row->fixups));
    }
    add_context(t, &c, row->input, one, local);
    add_context(t, &c, row->input, two, local);
    add_argument(&c, test_format(t, "%s/libpystub.dylib", one));
    add_argument(&c, ":_py_modules");
    add_argument(&c, test_format(t, "%s/libpystub.dylib", two));
    add_argument(&c, ":_py_modules");
    return output(t, &c);
}

/* ---- files that were not rewritten ----------------------------------------------------------- */

static const char *const libraries[] = {"libpystub.dylib", "libhelper.dylib", "libumbrella.dylib"};

/* Copies the input and its libraries byte for byte. */
static char *plain_copy(struct test *t, const struct row *row, const char *name)
{
    char *dir = test_path(t, name), *from = folder(t, row);

    assert_int_equal(mkdir(dir, 0777), 0);
    for (size_t i = 0; i < ARRAY_SIZE(libraries) - row->fat; i++)
        test_copy(t, test_format(t, "%s/%s", from, libraries[i]),
                  test_format(t, "%s/%s", dir, libraries[i]));
    for (unsigned n = 1; row->input->flags & MANY && n <= 20; n++)
        test_copy(t, test_format(t, "%s/libextra%u.dylib", from, n),
                  test_format(t, "%s/libextra%u.dylib", dir, n));
    test_copy(t, test_format(t, "%s/%s.so", from, row->input->name),
              test_format(t, "%s/%s.so", dir, row->input->name));
    return dir;
}

/* The results of the calls in the first context, in the second, and in the two libpythons. */
static char *shared_numbers(struct test *t, const struct input *in)
{
    if (in->flags & THREADS)
        return test_format(t, "1 0 1 1 1 2 2 0 2 1 1 2 2 0");
    return test_format(t, "1 0 1 1 2 0 2 %d %s", in->flags & ONE_PER_PROCESS ? 2 : 1,
                       in->flags & MAIN ? "0 0" : "2 0");
}

static void skip_or_fail_unless_built(struct test *t, const struct row *row)
{
    char *reason = test_format(t, "%s/%s.skip", folder(t, row), row->input->name);

    if (access(reason, F_OK) == 0)
        skip_because("%s", test_read(t, reason, NULL));
    if (access(test_format(t, "%s/%s.so", folder(t, row), row->input->name), F_OK) != 0)
        fail_msg("build.sh made no %s and did not say why", row->input->name);
}

static void contexts_share_what_is_not_rewritten(struct test *t, struct row *row)
{
    char *one = plain_copy(t, row, "one"), *two = plain_copy(t, row, "two");
    char *numbers = run_both(t, row, one, two, false);

    snprintf(row->cells[0], sizeof row->cells[0], "%s", numbers);
    assert_string_equal(numbers, shared_numbers(t, row->input));
}

/* ---- rewritten files ------------------------------------------------------------------------- */

/* The names by which the files of one context find each other. */
struct names {
    char *library, *umbrella, *helper, *own;
};

/* A long name fits only into headers with space for it. */
static struct names names_of(struct test *t, unsigned context, bool is_long)
{
    static char filler[301];

    memset(filler, 'x', sizeof filler - 1);
    return (struct names){
        .library = test_format(t, "/%s%u", is_long ? filler : "p", context),
        .umbrella = test_format(t, "/%s%u", is_long ? filler + 1 : "u", context),
        .helper = test_format(t, "/%s%u", is_long ? filler + 2 : "h", context),
        .own = test_format(t, "/%s%u", is_long ? filler + 3 : "e", context),
    };
}

static int print_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    printf("finding at 0x%llx: %s\n", (unsigned long long)finding->offset, finding->message);
    return 0;
}

static char *checker(struct test *t)
{
    const char *build = getenv("EXTI_BUILD");

    return test_format(t, "%s/tests/macho_check", build ? build : "build");
}

/* The copy passes every check of single files. */
static void rewrite(struct test *t, const char *from, const char *to,
                    const struct exti_rewrite_opts *opts)
{
    char *again = test_path(t, "again");
    size_t findings = 1, n;
    char *bytes;

    assert_ok(exti_rewrite(from, to, opts, &t->err), &t->err);
    assert_ok(exti_verify(to, from, print_finding, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
    assert_ok(exti_rewrite(from, again, opts, &t->err), &t->err);
    bytes = test_read(t, to, &n);
    assert_memory_equal(bytes, test_read(t, again, NULL), n);
    test_must_run(t, checker(t), "--whole", to, NULL);
}

/* The file name of libpython's stand-in. */
static const char *api_name(const struct row *row, struct names names)
{
    return row->input->flags & UMBRELLA ? names.umbrella : names.library;
}

static char *api_file(struct test *t, const struct row *row)
{
    return test_format(t, "%s/%s", folder(t, row),
                       row->input->flags & UMBRELLA ? "libumbrella.dylib" : "libpystub.dylib");
}

static void rewrite_file(struct test *t, const struct row *row, const char *dir, const char *file,
                         const struct exti_rewrite_opts *opts)
{
    rewrite(t, test_format(t, "%s/%s", folder(t, row), file), test_format(t, "%s/%s", dir, file),
            opts);
}

static void rewrite_libraries(struct test *t, const struct row *row, const char *dir,
                              struct names names)
{
    struct exti_needed add_api[] = {{NULL, names.library, EXTI_NEEDED_LAST}};
    struct exti_needed replace_api[] = {
        {"@rpath/libpystub.dylib", names.library, EXTI_NEEDED_LAST}};
    struct exti_rewrite_opts library = {.size = sizeof library, .id = names.library};
    struct exti_rewrite_opts umbrella = {.size = sizeof umbrella,
                                         .id = names.umbrella,
                                         .needed = replace_api,
                                         .needed_count = 1,
                                         .origin = folder(t, row)};
    struct exti_rewrite_opts helper = {.size = sizeof helper,
                                       .id = names.helper,
                                       .needed = add_api,
                                       .needed_count = 1,
                                       .bind_file = api_file(t, row),
                                       .bind_name = names.library,
                                       .origin = folder(t, row),
                                       .flags = EXTI_RW_CLEAR_UNIQUE};

    rewrite_file(t, row, dir, "libpystub.dylib", &library);
    if (row->input->flags & UMBRELLA)
        rewrite_file(t, row, dir, "libumbrella.dylib", &umbrella);
    if (row->input->flags & HELPED)
        rewrite_file(t, row, dir, "libhelper.dylib", &helper);
}

/* Makes a context's copies and returns their folder. */
static char *rewritten(struct test *t, const struct row *row, const char *name, struct names names)
{
    char *dir = test_path(t, name);
    struct exti_needed needed[] = {{NULL, api_name(row, names), EXTI_NEEDED_LAST},
                                   {"@rpath/libhelper.dylib", names.helper, EXTI_NEEDED_LAST}};
    struct exti_rewrite_opts opts = {
        .size = sizeof opts,
        .needed = needed,
        .needed_count = row->input->flags & HELPED ? 2 : 1,
        .bind_file = api_file(t, row),
        .bind_name = api_name(row, names),
        .origin = folder(t, row),
        .flags = EXTI_RW_CLEAR_UNIQUE,
    };

    if (row->input->flags & EXPLICIT)
        needed[0].from = "@rpath/libpystub.dylib";
    if (strcmp(row->input->name, "dylib") == 0)
        opts.id = names.own;
    assert_int_equal(mkdir(dir, 0777), 0);
    rewrite_libraries(t, row, dir, names);
    rewrite_file(t, row, dir, test_format(t, "%s.so", row->input->name), &opts);
    return dir;
}

/* Where the first slice's code starts. */
static unsigned long text_offset(struct test *t, const char *file)
{
    char *out = test_must_run(t, checker(t), "--layout", file, NULL);
    unsigned long at, text;

    assert_int_equal(sscanf(out, "%*s %lx %lx", &at, &text), 2);
    return text;
}

static char *isolated_numbers(struct test *t, const struct input *in)
{
    return test_format(t, "%s 1 1",
                       in->flags & THREADS ? "1 0 1 1 1 2 1 0 1 1 1 2" : "1 0 1 1 1 0 1 1");
}

/* Every reference to the library binds to its copy; the others are unchanged. */
static void binds_to_the_copy_only(struct test *t, const struct row *row, const char *dir,
                                   struct names names)
{
    char *copy = test_format(t, "%s/%s.so", dir, row->input->name);
    char *library = test_format(t, "%s/libpystub.dylib", dir);

    assert_true(atoi(test_must_run(t, checker(t), "--bound", library, api_name(row, names), copy,
                                   NULL)) > 0);
    if (test_have("llvm-objdump"))
        test_must_run(t, "llvm-objdump", "--macho", "--arch=all", "--private-headers", "--bind",
                      "--lazy-bind", "--weak-bind", "--rebase", "--exports-trie", "--unwind-info",
                      "--function-starts", copy, NULL);
}

/* The copy keeps what the rewriter does not know. */
static void keeps_old_slices(struct test *t, const char *copy)
{
    static const char *const archs[] = {"i386", "ppc"};
    char *slice = test_path(t, "slice"), *bytes;
    size_t n;

    for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
        test_must_run(t, "llvm-lipo", "-thin", archs[i], copy, "-output", slice, NULL);
        bytes = test_read(t, test_format(t, "%s/%s.slice", inputs, archs[i]), &n);
        assert_memory_equal(test_read(t, slice, NULL), bytes, n);
    }
}

static void contexts_are_apart(struct test *t, struct row *row, bool is_long)
{
    struct names a = names_of(t, 1, is_long), b = names_of(t, 2, is_long);
    char *one = rewritten(t, row, is_long ? "long-one" : "short-one", a);
    char *two = rewritten(t, row, is_long ? "long-two" : "short-two", b);
    char *numbers = run_both(t, row, one, two, false), *cell = row->cells[is_long ? 2 : 1];
    const char *name = row->input->name;
    unsigned long shift = text_offset(t, test_format(t, "%s/%s.so", one, name)) -
                          text_offset(t, test_format(t, "%s/%s.so", folder(t, row), name));

    snprintf(cell, sizeof row->cells[0], "%s, moved by 0x%lx", numbers, shift);
    assert_string_equal(numbers, isolated_numbers(t, row->input));
    assert_string_equal(run_both(t, row, one, two, true), numbers);
    /* A copy's definitions are hidden from other images; those of its libpython are not, unless
     * it is opened with RTLD_LOCAL. */
    if (!is_long && row->input->flags & ONE_PER_PROCESS)
        assert_string_equal(run_both(t, row, one, plain_copy(t, row, "outside"), false),
                            "1 0 1 1 2 0 2 1 2 0");
    binds_to_the_copy_only(t, row, one, a);
    if (strcmp(name, "odd") == 0)
        keeps_old_slices(t, test_format(t, "%s/odd.so", one));
    if (is_long)
        assert_int_equal(shift > 0, !(row->input->flags & ROOM));
    else if (!(row->input->flags & (NO_ROOM | MANY)))
        assert_int_equal(shift, 0);
}

/* ---- withheld initialisers ------------------------------------------------------------------- */

static unsigned count_sections(struct test *t, const char *copy, const char *line)
{
    char *text = test_must_run(t, "llvm-otool", "-arch", "all", "-lv", copy, NULL);
    unsigned n = 0;

    while ((text = strstr(text, line))) {
        text++;
        n++;
    }
    return n;
}

/* dyld runs nothing of such a copy, and whoever loads it can run the initialisers later; even if
 * `from` was withheld before, and the copy moves its contents. */
static void initialisers_wait(struct test *t, struct row *row, const char *from, bool is_long)
{
    const struct names a = names_of(t, 3, is_long);
    const char *file = test_format(t, "%s.so", row->input->name), *copy, *numbers;
    struct command c = {.n = 0};
    struct exti_needed needed = {NULL, a.library, EXTI_NEEDED_LAST};
    const struct exti_rewrite_opts library = {.size = sizeof library, .id = a.library};
    const struct exti_rewrite_opts opts = {.size = sizeof opts,
                                           .needed = &needed,
                                           .needed_count = 1,
                                           .bind_file = api_file(t, row),
                                           .bind_name = a.library,
                                           .origin = folder(t, row),
                                           .flags = EXTI_RW_WITHHOLD};
    char *dir = test_path(t, is_long ? "long-withheld" : "withheld");

    assert_int_equal(mkdir(dir, 0777), 0);
    rewrite_file(t, row, dir, "libpystub.dylib", &library);
    copy = test_format(t, "%s/%s", dir, file);
    rewrite(t, from, copy, &opts);
    add_loader(t, &c, row->arch);
    add_argument(&c, test_format(t, "%s/libpystub.dylib", dir));
    add_argument(&c, copy);
    add_argument(&c, ":_ext_check");
    add_argument(&c, "+");
    add_argument(&c, ":_ext_check");
    numbers = output(t, &c);
    if (atoi(numbers) == 0 || strcmp(strchr(numbers, ' '), " 0") != 0)
        fail_msg("ext_check finds lines %s", numbers);
    if (test_have("llvm-otool")) {
        assert_int_equal(count_sections(t, copy, "type S_MOD_INIT_FUNC_POINTERS"), 0);
        assert_int_equal(count_sections(t, copy, "type S_INIT_FUNC_OFFSETS"), 0);
    }
}

static void input_withholds_its_initialisers(void **state)
{
    static const struct exti_rewrite_opts only_withhold = {.size = sizeof only_withhold,
                                                           .flags = EXTI_RW_WITHHOLD};
    struct row *row = *state;
    const char *from, *withheld;
    struct test *t;
    void *fixture = NULL;

    assert_int_equal(test_setup(&fixture), 0);
    t = *state = fixture;
    skip_or_fail_unless_built(t, row);
    from = test_format(t, "%s/%s.so", folder(t, row), row->input->name);
    withheld = test_path(t, "withheld-before");
    rewrite(t, from, withheld, &only_withhold);
    initialisers_wait(t, row, from, false);
    initialisers_wait(t, row, withheld, true);
}

static void input_runs_in_two_contexts(void **state)
{
    struct row *row = *state;
    struct test *t;
    void *fixture = NULL;

    assert_int_equal(test_setup(&fixture), 0);
    t = *state = fixture;
    skip_or_fail_unless_built(t, row);
    contexts_share_what_is_not_rewritten(t, row);
    contexts_are_apart(t, row, false);
    contexts_are_apart(t, row, true);
}

/* ---- the loader and the checker themselves --------------------------------------------------- */

static char *ext(struct test *t, const char *name)
{
    return test_format(t, "%s/x86_64/chained/%s", inputs, name);
}

/* Runs the loader, which must fail, and returns its message. */
static char *refused(struct test *t, const char *a, const char *b, const char *c, const char *d)
{
    struct command command = {.n = 0};
    char *out;

    add_loader(t, &command, "x86_64");
    add_argument(&command, a);
    if (b)
        add_argument(&command, b);
    if (c)
        add_argument(&command, c);
    if (d)
        add_argument(&command, d);
    assert_int_equal(test_runv(t, &out, command.argv), 1);
    return out;
}

static void flat_lookup_passes_over_local_images(void **state)
{
    struct test *t = *state;

    assert_contains(refused(t, "-local", ext(t, "libpystub.dylib"), ext(t, "ext.so"), NULL),
                    "Symbol not found");
    assert_contains(refused(t, ext(t, "ext.so"), NULL, NULL, NULL), "the flat namespace");
}

static void weak_lookup_passes_over_local_images(void **state)
{
    struct test *t = *state;
    struct command c = {.n = 0};
    char *two = test_path(t, "two.so");

    test_copy(t, ext(t, "weak.so"), two);
    add_loader(t, &c, "x86_64");
    add_argument(&c, ext(t, "libpystub.dylib"));
    add_argument(&c, "-local");
    add_argument(&c, ext(t, "weak.so"));
    add_argument(&c, ":_ext_own");
    add_argument(&c, "-local");
    add_argument(&c, two);
    add_argument(&c, ":_ext_own");
    assert_string_equal(output(t, &c), "1 1");
}

static void one_file_by_two_names_is_one_image(void **state)
{
    struct test *t = *state;
    struct command c = {.n = 0};
    char *hard = test_format(t, "%s/x86_64/chained/hard-link.so", inputs);
    char *soft = test_path(t, "soft.so"), *again = test_path(t, "again.so");

    unlink(hard);
    assert_int_equal(link(ext(t, "ext.so"), hard), 0);
    assert_int_equal(symlink(ext(t, "ext.so"), soft), 0);
    test_copy(t, ext(t, "ext.so"), again);
    add_loader(t, &c, "x86_64");
    add_argument(&c, ext(t, "libpystub.dylib"));
    add_argument(&c, ext(t, "ext.so"));
    add_argument(&c, ":_ext_own");
    add_argument(&c, hard);
    add_argument(&c, ":_ext_own");
    add_argument(&c, soft);
    add_argument(&c, ":_ext_own");
    add_argument(&c, again);
    add_argument(&c, ":_ext_own");
    assert_string_equal(output(t, &c), "1 2 3 1");
    unlink(hard);
}

/* Asserts that the checker finds a flipped bit at `at`, which counts from the end if negative. */
static void assert_noticed(struct test *t, const char *file, long at, const char *says)
{
    size_t n;
    char *bytes = test_read(t, file, &n), *path = test_path(t, "broken.so"), *out;

    bytes[at < 0 ? (long)n + at : at] ^= 1;
    test_write(path, bytes, n);
    assert_int_equal(test_run(t, &out, checker(t), "--sound", path, NULL), 1);
    assert_contains(out, says);
}

static void checker_finds_damage(void **state)
{
    struct test *t = *state;
    char *file = test_format(t, "%s/arm64/opcodes/ext.so", inputs);

    test_must_run(t, checker(t), "--whole", file, NULL);
    assert_noticed(t, file, 0x2000, "the digest of the page at 0x2000 is wrong");
    assert_noticed(t, file, -1, "the digest of the page");
    assert_noticed(t, file, 32 + 8, "has no __TEXT");
    assert_noticed(t, file, 20, "the load commands end at");
    assert_noticed(t, test_format(t, "%s/fat/opcodes/ext.so", inputs), 8 + 10, "not on a page");
}

static void every_input_is_sound(void **state)
{
    struct test *t = *state;
    char *out;

    for (size_t i = 0; i < ARRAY_SIZE(all_inputs); i++) {
        for (unsigned n = 0; n < 6; n++) {
            char *file = test_format(t, "%s/%s/%s/%s.so", inputs,
                                     (const char *[]){"x86_64", "arm64", "fat"}[n / 2],
                                     n % 2 ? "chained" : "opcodes", all_inputs[i].name);
            int signed_or_need_not = !(all_inputs[i].flags & UNSIGNED && n / 2 == 1);

            if (access(file, F_OK) == 0 &&
                (test_run(t, &out, checker(t), "--whole", file, NULL) == 0) != signed_or_need_not)
                fail_msg("%s", out);
        }
    }
}

static void bindings_are_printed_with_their_library(void **state)
{
    struct test *t = *state;
    char *out = test_must_run(t, checker(t), "--bindings", ext(t, "weak.so"), NULL);

    assert_contains(out, "x86_64 _PyModule_Create flat\n");
    assert_contains(out, "x86_64 _malloc /usr/lib/libSystem.B.dylib\n");
    assert_contains(out, "x86_64 __ZN7counterIlE1nE weak\n");
    out = test_must_run(t, checker(t), "--bindings", ext(t, "loader.so"), NULL);
    assert_contains(out, "x86_64 _PyModule_Create main\n");
    out = test_must_run(t, checker(t), "--bindings", ext(t, "explicit.so"), NULL);
    assert_contains(out, "x86_64 _PyModule_Create @rpath/libpystub.dylib\n");
    out = test_must_run(t, checker(t), "--bindings",
                        test_format(t, "%s/fat/opcodes/ext.so", inputs), NULL);
    assert_contains(out, "x86_64 __Py_Table flat\n");
    assert_contains(out, "arm64 __Py_Table flat\n");
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int build_inputs(void **state)
{
    void *fixture = NULL;

    (void)state;
    test_setup(&fixture);
    test_build_inputs(fixture, "macho_inputs", inputs);
    return test_teardown(&fixture);
}

static const char *const archs[] = {"x86_64", "arm64"}, *const fixups[] = {"chained", "opcodes"};

#define MOST_ROWS (ARRAY_SIZE(all_inputs) * 8)

static struct row rows[MOST_ROWS];

/* Every input, for every architecture and kind of fixups. */
static size_t all_rows(void)
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(all_inputs); i++) {
        const struct input *in = &all_inputs[i];

        for (unsigned c = 0; c < 8; c++) {
            struct row row = {
                .input = in, .arch = archs[c / 2 % 2], .fixups = fixups[c % 2], .fat = c / 4};

            if (row.fat ? !(in->flags & (FAT | FAT_ONLY)) : in->flags & FAT_ONLY)
                continue;
            if (in->flags & CHAINED && c % 2)
                continue;
            rows[n++] = row;
        }
    }
    return n;
}

static int print_table(void **state)
{
    (void)state;
    printf("%-39s | %-27s | %-43s | %s\n", "input", "as it is", "rewritten", "with long names");
    for (size_t i = 0; i < MOST_ROWS && rows[i].input; i++)
        printf("%-12s %-6s %-7s %-11s | %-27s | %-43s | %s\n", rows[i].input->name, rows[i].arch,
               rows[i].fixups, rows[i].fat ? "of fat file" : "", rows[i].cells[0], rows[i].cells[1],
               rows[i].cells[2]);
    return 0;
}

/* Runs the tests whose names match the argument, or all. */
int main(int argc, char **argv)
{
    static const struct CMUnitTest others[] = {
        exti_test(flat_lookup_passes_over_local_images),
        exti_test(weak_lookup_passes_over_local_images),
        exti_test(one_file_by_two_names_is_one_image),
        exti_test(checker_finds_damage),
        exti_test(every_input_is_sound),
        exti_test(bindings_are_printed_with_their_library),
    };
    static struct CMUnitTest tests[2 * MOST_ROWS + ARRAY_SIZE(others)];
    static char names[MOST_ROWS][80], withheld[MOST_ROWS][90];
    const size_t count = all_rows();
    size_t n = count;

    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%s:%s%s:%s", rows[i].input->name,
                 rows[i].fat ? "fat-" : "", rows[i].arch, rows[i].fixups);
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = input_runs_in_two_contexts,
                                       .teardown_func = test_teardown,
                                       .initial_state = &rows[i]};
        if (!(rows[i].input->flags & WITHHOLD))
            continue;
        snprintf(withheld[i], sizeof withheld[i], "withheld:%.79s", names[i]);
        tests[n] = tests[i];
        tests[n].name = withheld[i];
        tests[n++].test_func = input_withholds_its_initialisers;
    }
    memcpy(tests + n, others, sizeof others);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests("macho_inputs", tests, n + ARRAY_SIZE(others), build_inputs,
                                   print_table);
}
