/* Editing the load commands of a copy. */
#include "tests/unit/macho/macho_commands.h"
#include "tests/unit/macho/macho_link.h"

/* Followed by the ordinals for the bindings. */
static char *facts(struct test *t, const struct macho_build *b)
{
    char *text = test_format(t, "ordinals");

    for (size_t i = 0; i < b->f->dylib_count; i++)
        text = test_format(t, "%s %d", text, b->ordinals[i]);
    return test_format(t, "%s bind %d", text, b->bind_ordinal);
}

#define TOY_LIBS "load " MTOY_SYSTEM "\nweak " MTOY_WEAK_LIB "\nreexport " MTOY_REEXPORT "\n"
#define TOY_RPATH "rpath " MTOY_RPATH "\n"
#define TOY "id " MTOY_ID "\n" TOY_LIBS TOY_RPATH

/* Edits, checks the whole copy, and returns the text. */
static char *edited_file(struct test *t, struct exti_span file,
                         const struct exti_rewrite_opts *opts, char **told)
{
    struct macho_making m;
    char *text;

    making_open(t, &m, file);
    m.opts = *opts;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    text = command_names(t, &m.b);
    if (told)
        *told = facts(t, &m.b);
    assert_int_equal(m.b.shift, 0);
    making_check(t, making_put_together(t, &m));
    making_close(&m);
    return text;
}

static char *edited(struct test *t, const struct exti_rewrite_opts *opts, char **told)
{
    return edited_file(t, toy_span(make_toy(t, (struct macho_toy_opts){0})), opts, told);
}

static void refused(struct test *t, struct exti_span file, const struct exti_rewrite_opts *opts,
                    int code, const char *says)
{
    struct macho_making m;

    making_open(t, &m, file);
    m.opts = *opts;
    assert_exti(exti__macho_edit_commands(&m.b, &t->err), code, &t->err, ANY_OFFSET);
    assert_says(&t->err, says);
    making_close(&m);
}

/* ---- edits that come to nothing -------------------------------------------------------------- */

static void repeated_edits_change_nothing(void **state)
{
    static const struct exti_needed there[] = {{NULL, MTOY_SYSTEM, EXTI_NEEDED_FIRST},
                                               {NULL, MTOY_REEXPORT, EXTI_NEEDED_LAST},
                                               {"/gone.dylib", MTOY_WEAK_LIB, EXTI_NEEDED_LAST},
                                               {MTOY_SYSTEM, MTOY_SYSTEM, EXTI_NEEDED_LAST}};
    const struct exti_rewrite_opts opts[] = {
        {.size = sizeof *opts},
        {.id = MTOY_ID},
        {.needed = there, .needed_count = ARRAY_SIZE(there)},
        {.path_set = "$ORIGIN/../lib"},
        {.path_prepend = "${ORIGIN}/../lib"},
        {.path_prepend = ""},
        {.path_prepend = "::"},
        {.bind_name = MTOY_WEAK_LIB, .bind_short = "/p"},
    };
    struct test *t = *state;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(opts); i++) {
        struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.arm = i % 2});
        struct macho_making m;

        making_open(t, &m, toy_span(toy));
        m.opts = opts[i / 2];
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        assert_int_equal(m.b.command_count, toy->ncmds);
        assert_int_equal(m.b.header_flags, m.f.flags);
        assert_int_equal(m.b.commands.n, m.f.sizeofcmds);
        assert_memory_equal(m.b.commands.p, toy->b + MACH_HEADER_64_SIZE, m.f.sizeofcmds);
        assert_string_equal(facts(t, &m.b),
                            i / 2 == 7 ? "ordinals 1 2 3 bind 2" : "ordinals 1 2 3 bind 0");
        assert_true(m.b.resign && !m.b.shift);
        making_close(&m);
    }
}

/* ---- id -------------------------------------------------------------------------------------- */

static void id_changes_in_dylibs_only(void **state)
{
    static const char long_id[] = "@rpath/a/much/longer/name/than/it/was/libtoy.dylib";
    struct exti_rewrite_opts opts = {.id = "/x"};
    struct test *t = *state;
    struct macho_toy *bundle = make_toy(t, (struct macho_toy_opts){.bundle = true});

    assert_string_equal(edited(t, &opts, NULL), "id /x\n" TOY_LIBS TOY_RPATH);
    opts.id = long_id;
    assert_string_equal(edited(t, &opts, NULL),
                        test_format(t, "id %s\n" TOY_LIBS TOY_RPATH, long_id));
    assert_string_equal(edited_file(t, toy_span(bundle), &opts, NULL), TOY_LIBS TOY_RPATH);
}

/* ---- libraries ------------------------------------------------------------------------------- */

#define NEW " 2/0/0\n"

static const struct {
    struct exti_needed ops[3];
    const char *libs, *told;
} needed_edits[] = {
    {{{NULL, "/p1", EXTI_NEEDED_LAST}}, TOY_LIBS "load /p1" NEW, "ordinals 1 2 3 bind 0"},
    {{{NULL, "/p1", EXTI_NEEDED_FIRST}, {NULL, "/p2", EXTI_NEEDED_FIRST}},
     "load /p2" NEW "load /p1" NEW TOY_LIBS,
     "ordinals 3 4 5 bind 0"},
    {{{NULL, "/p1", EXTI_NEEDED_LAST}, {NULL, "/p2", EXTI_NEEDED_LAST}, {NULL, "/p1", 0}},
     TOY_LIBS "load /p1" NEW "load /p2" NEW,
     "ordinals 1 2 3 bind 0"},
    {{{MTOY_WEAK_LIB, NULL, EXTI_NEEDED_LAST}},
     "load " MTOY_SYSTEM "\nreexport " MTOY_REEXPORT "\n",
     "ordinals 1 0 2 bind 0"},
    /* Kind and versions stay. */
    {{{MTOY_WEAK_LIB, "/a/longer/name/libw.dylib", EXTI_NEEDED_LAST}},
     "load " MTOY_SYSTEM "\nweak /a/longer/name/libw.dylib\nreexport " MTOY_REEXPORT "\n",
     "ordinals 1 2 3 bind 0"},
    {{{MTOY_WEAK_LIB, "/w", EXTI_NEEDED_LAST}, {"/w", "/v", EXTI_NEEDED_LAST}},
     "load " MTOY_SYSTEM "\nweak /v\nreexport " MTOY_REEXPORT "\n",
     "ordinals 1 2 3 bind 0"},
    /* Two libraries that get the same name become one with the stronger command. */
    {{{MTOY_WEAK_LIB, MTOY_SYSTEM, EXTI_NEEDED_LAST}},
     "load " MTOY_SYSTEM "\nreexport " MTOY_REEXPORT "\n",
     "ordinals 1 1 2 bind 0"},
    {{{MTOY_SYSTEM, MTOY_WEAK_LIB, EXTI_NEEDED_LAST}},
     "load " MTOY_WEAK_LIB "\nreexport " MTOY_REEXPORT "\n",
     "ordinals 1 1 2 bind 0"},
    {{{MTOY_REEXPORT, "/y", EXTI_NEEDED_LAST}, {MTOY_WEAK_LIB, "/y", EXTI_NEEDED_LAST}},
     "load " MTOY_SYSTEM "\nreexport /y\n",
     "ordinals 1 2 2 bind 0"},
    {{{NULL, "/y", EXTI_NEEDED_FIRST}, {MTOY_WEAK_LIB, "/y", EXTI_NEEDED_LAST}},
     "load /y" NEW "load " MTOY_SYSTEM "\nreexport " MTOY_REEXPORT "\n",
     "ordinals 2 1 3 bind 0"},
    {{{MTOY_REEXPORT, NULL, EXTI_NEEDED_LAST}, {NULL, MTOY_REEXPORT, EXTI_NEEDED_FIRST}},
     "load " MTOY_REEXPORT NEW "load " MTOY_SYSTEM "\nweak " MTOY_WEAK_LIB "\n",
     "ordinals 2 3 0 bind 0"},
};

static void needed_libraries_change_as_asked(void **state)
{
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(needed_edits); i++) {
        struct exti_rewrite_opts opts = {.needed = needed_edits[i].ops};
        char *told;

        while (opts.needed_count < 3 && (needed_edits[i].ops[opts.needed_count].from ||
                                         needed_edits[i].ops[opts.needed_count].to))
            opts.needed_count++;
        assert_string_equal(edited(t, &opts, &told),
                            test_format(t, "id " MTOY_ID "\n%s" TOY_RPATH, needed_edits[i].libs));
        assert_string_equal(told, needed_edits[i].told);
    }
}

static void missing_libraries_are_reported(void **state)
{
    static const struct exti_needed replace = {"/no", "/p", 0}, remove = {"/no", NULL, 0};
    static const struct exti_needed all[] = {
        {MTOY_SYSTEM, NULL, 0}, {MTOY_WEAK_LIB, NULL, 0}, {MTOY_REEXPORT, NULL, 0}};
    struct exti_rewrite_opts opts = {.needed = &replace, .needed_count = 1};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){0});

    refused(t, toy_span(toy), &opts, EXTI_E_ARG, "no '/no' to replace");
    opts.needed = &remove;
    refused(t, toy_span(toy), &opts, EXTI_E_ARG, "no '/no' to remove");
    opts.needed = all;
    opts.needed_count = 3;
    refused(t, toy_span(toy), &opts, EXTI_E_UNSUPPORTED, "last library cannot be removed");
}

/* Cuts a load command out of a toy. */
static void cut(struct macho_toy *toy, uint32_t cmd)
{
    const size_t at = mtoy_find(toy, cmd, 0), size = (size_t)mtoy_get(toy, at + 4, 4);
    const size_t end = MACH_HEADER_64_SIZE + (size_t)mtoy_get(toy, 20, 4);

    memmove(toy->b + at, toy->b + at + size, end - at - size);
    memset(toy->b + end - size, 0, size);
    mtoy_put(toy, 16, 4, --toy->ncmds);
    mtoy_put(toy, 20, 4, end - size - MACH_HEADER_64_SIZE);
}

/* dyld gives a file without libraries libSystem, as library 1.  Once the file names a library,
 * it must name libSystem too. */
static void first_library_follows_implied_libsystem(void **state)
{
    static const struct exti_needed ops[][2] = {
        {{NULL, "/p1", EXTI_NEEDED_LAST}, {NULL, "/p2", EXTI_NEEDED_LAST}},
        {{NULL, "/p2", EXTI_NEEDED_FIRST}, {NULL, "/p1", EXTI_NEEDED_FIRST}},
        {{NULL, MTOY_SYSTEM, EXTI_NEEDED_LAST}, {NULL, MTOY_SYSTEM, EXTI_NEEDED_FIRST}}};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        struct exti_rewrite_opts opts = {.needed = ops[i], .needed_count = 2};
        struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.naked = true});
        char *text, *told;

        cut(toy, LC_LOAD_DYLIB);
        cut(toy, LC_LOAD_WEAK_DYLIB);
        cut(toy, LC_REEXPORT_DYLIB);
        if (i < 2)
            opts.bind_name = "/p1";
        text = edited_file(t, toy_span(toy), &opts, &told);
        assert_contains(text, i < 2 ? "load " MTOY_SYSTEM NEW "load /p1" NEW "load /p2" NEW
                                    : "load " MTOY_SYSTEM NEW);
        assert_string_equal(told, i < 2 ? "ordinals bind 2" : "ordinals bind 0");
    }
}

/* The newer command has flags after the versions, and its name at another offset. */
static void flags_of_a_library_stay(void **state)
{
    static const struct exti_needed rename = {MTOY_WEAK_LIB, "@rpath/a/longer/libw.dylib", 0};
    static const struct exti_needed merge = {MTOY_WEAK_LIB, MTOY_SYSTEM, 0};
    struct exti_rewrite_opts opts = {.needed = &rename, .needed_count = 1};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){0});
    const size_t at = mtoy_find(toy, LC_LOAD_WEAK_DYLIB, 0);
    struct macho_making m;
    const uint8_t *p;

    memmove(toy->b + at + 28, toy->b + at + 24, strlen(MTOY_WEAK_LIB) + 1);
    mtoy_put(toy, at + 8, 4, 28);
    mtoy_put(toy, at + 12, 4, DYLIB_USE_MARKER);
    mtoy_put(toy, at + 24, 4, 9);
    making_open(t, &m, toy_span(toy));
    m.opts = opts;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    p = m.b.commands.p + at - MACH_HEADER_64_SIZE;
    assert_int_equal(command_u32(p), LC_LOAD_WEAK_DYLIB);
    assert_int_equal(command_u32(p + 4), 56);
    assert_memory_equal(p + 8, toy->b + at + 8, 20);
    assert_string_equal((const char *)p + 28, rename.to);
    making_close(&m);
    opts.needed = &merge;
    refused(t, toy_span(toy), &opts, EXTI_E_UNSUPPORTED, "needed twice");
}

/* ---- search path ----------------------------------------------------------------------------- */

static const struct {
    const char *set, *prepend, *origin, *rpaths;
} path_edits[] = {
    {"", NULL, NULL, ""},
    {"/a:/b", NULL, NULL, "rpath /a\nrpath /b\n"},
    {"/a::/b:/a:", NULL, NULL, "rpath /a\nrpath /b\n"},
    {"/a", "/b", NULL, "rpath /b\nrpath /a\n"},
    {"", "/b", NULL, "rpath /b\n"},
    {NULL, "/b:/c", NULL, "rpath /b\nrpath /c\n" TOY_RPATH},
    {NULL, "$ORIGIN", NULL, "rpath @loader_path\n" TOY_RPATH},
    {NULL, "${ORIGIN}/x", NULL, "rpath @loader_path/x\n" TOY_RPATH},
    {NULL, "$ORIGINAL/x:/y$ORIGIN", NULL, "rpath $ORIGINAL/x\nrpath /y$ORIGIN\n" TOY_RPATH},
    {NULL, "/b:$ORIGIN/../lib", NULL, "rpath /b\n" TOY_RPATH},
    {NULL, NULL, "/o", "rpath /o/../lib\n"},
    {NULL, "$ORIGIN/../lib", "/o", TOY_RPATH "rpath /o/../lib\n"},
    {NULL, "/o/../lib", "/o", "rpath /o/../lib\n"},
    {"$ORIGIN/z", NULL, "/o", "rpath @loader_path/z\n"},
};

static void search_path_changes_as_asked(void **state)
{
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(path_edits); i++) {
        struct exti_rewrite_opts opts = {.path_set = path_edits[i].set,
                                         .path_prepend = path_edits[i].prepend,
                                         .origin = path_edits[i].origin};

        assert_string_equal(
            edited(t, &opts, NULL),
            test_format(
                t, "id " MTOY_ID "\nload " MTOY_SYSTEM "\nweak " MTOY_WEAK_LIB "\nreexport %s\n%s",
                opts.origin ? "/o/libr.dylib" : MTOY_REEXPORT, path_edits[i].rpaths));
    }
}

/* A file without an LC_RPATH gets it after its libraries. */
static void first_path_follows_the_libraries(void **state)
{
    struct exti_rewrite_opts opts = {.path_prepend = "$ORIGIN"};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){0});

    cut(toy, LC_RPATH);
    assert_string_equal(edited_file(t, toy_span(toy), &opts, NULL),
                        "id " MTOY_ID "\n" TOY_LIBS "rpath @loader_path\n");
    cut(toy, LC_LOAD_DYLIB);
    cut(toy, LC_LOAD_WEAK_DYLIB);
    cut(toy, LC_REEXPORT_DYLIB);
    assert_string_equal(edited_file(t, toy_span(toy), &opts, NULL),
                        "id " MTOY_ID "\nrpath @loader_path\n");
}

/* @loader_path means the copy's folder in names from the caller, and the original's in names
 * that stay. */
static void loader_path_in_kept_names_means_the_originals_folder(void **state)
{
    static const struct exti_needed ours = {MTOY_WEAK_LIB, "@loader_path/libw.dylib", 0};
    static const struct exti_needed same = {MTOY_WEAK_LIB, "/o/libr.dylib", 0};
    struct exti_rewrite_opts opts = {.origin = "/o", .needed = &ours, .needed_count = 1};
    struct test *t = *state;
    char *told;

    assert_string_equal(
        edited(t, &opts, &told),
        "id " MTOY_ID "\nload " MTOY_SYSTEM
        "\nweak @loader_path/libw.dylib\nreexport /o/libr.dylib\nrpath /o/../lib\n");
    opts.needed = &same;
    assert_string_equal(edited(t, &opts, &told), "id " MTOY_ID "\nload " MTOY_SYSTEM
                                                 "\nreexport /o/libr.dylib\nrpath /o/../lib\n");
    assert_string_equal(told, "ordinals 1 2 2 bind 0");
}

static void bindings_go_to_a_needed_library(void **state)
{
    static const struct exti_needed add = {NULL, "/p1", EXTI_NEEDED_FIRST};
    struct exti_rewrite_opts opts = {
        .needed = &add, .needed_count = 1, .bind_name = "/p1", .bind_short = "/q"};
    struct test *t = *state;
    char *told;

    edited(t, &opts, &told);
    assert_string_equal(told, "ordinals 2 3 4 bind 1");
    opts.bind_name = MTOY_REEXPORT;
    edited(t, &opts, &told);
    assert_string_equal(told, "ordinals 2 3 4 bind 4");
    opts.bind_name = "/p2";
    refused(t, toy_span(make_toy(t, (struct macho_toy_opts){0})), &opts, EXTI_E_ARG,
            "'/p2' is not among");
}

/* ---- limits and memory ----------------------------------------------------------------------- */

static void too_many_names_are_refused(void **state)
{
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){0});
    struct macho_making m;

    for (int paths = 0; paths < 2; paths++) {
        making_open(t, &m, toy_span(toy));
        *(paths ? &m.f.rpath_count : &m.f.dylib_count) = 4097;
        assert_exti(exti__macho_edit_commands(&m.b, &t->err), EXTI_E_UNSUPPORTED, &t->err,
                    MACH_HEADER_64_SIZE);
        assert_says(&t->err, "4097");
        making_close(&m);
    }
}

static void fails_cleanly_without_memory(void **state)
{
    static const struct exti_needed ops[] = {{NULL, "/p1", EXTI_NEEDED_FIRST},
                                             {MTOY_WEAK_LIB, "/w", EXTI_NEEDED_LAST}};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.arm = true, .naked = true});
    int rc = EXTI_E_NOMEM;
    long n = 0;

    for (; rc; n++) {
        struct macho_making m;

        making_open(t, &m, toy_span(toy));
        m.opts =
            (struct exti_rewrite_opts){.id = "@rpath/new",
                                       .needed = ops,
                                       .needed_count = 2,
                                       .origin = "/o",
                                       .bind_name = "/p1",
                                       .path_prepend = "1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16"};
        exti__mem_fail_after(n);
        rc = exti__macho_edit_commands(&m.b, &t->err);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &t->err, ANY_OFFSET);
        making_close(&m);
    }
    assert_true(n > 20);
}

/* ---- with other readers ---------------------------------------------------------------------- */

static void llvm_reads_the_edited_commands(void **state)
{
    static const struct exti_needed add = {NULL, "/p1", EXTI_NEEDED_FIRST};
    const struct exti_rewrite_opts opts = {
        .id = "@rpath/y.dylib", .needed = &add, .needed_count = 1, .path_prepend = "$ORIGIN/a:/b"};
    struct test *t = *state;
    struct macho_making m;
    struct exti_span s;
    char *text;

    macho_skip_without_tools();
    if (!test_have("llvm-otool"))
        skip_because("llvm-otool is not installed");
    for (size_t i = 0; i < 2; i++) {
        s = macho_link(t, macho_archs[i], "ext.dylib",
                       MACHO_DYLIB "-headerpad_max_install_names -rpath /b -rpath @loader_path/..");
        making_open(t, &m, s);
        m.opts = opts;
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        s = making_put_together(t, &m);
        making_close(&m);
        making_check(t, s);
        test_write(test_path(t, "copy.dylib"), s.p, s.n);
        text = test_must_run(t, "llvm-otool", "-D", test_path(t, "copy.dylib"), NULL);
        assert_contains(text, ":\n@rpath/y.dylib\n");
        text = test_must_run(t, "llvm-otool", "-L", test_path(t, "copy.dylib"), NULL);
        assert_contains(text,
                        "\t@rpath/y.dylib (compatibility version 0.0.0, current version 0.0.0)"
                        "\n\t/p1 (compatibility version 0.0.0, current version 0.0.0)"
                        "\n\t" MTOY_SYSTEM
                        " (compatibility version 1.0.0, current version 1345.100.2)\n");
        text = test_must_run(t, "llvm-otool", "-l", test_path(t, "copy.dylib"), NULL);
        text = strstr(text, "path @loader_path/a (offset 12)");
        assert_non_null(text);
        text = strstr(text, "path /b (offset 12)");
        assert_non_null(text);
        assert_contains(text, "path @loader_path/.. (offset 12)");
        assert_null(strstr(text + 1, "path /b "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(repeated_edits_change_nothing),
        exti_test(id_changes_in_dylibs_only),
        exti_test(needed_libraries_change_as_asked),
        exti_test(missing_libraries_are_reported),
        exti_test(first_library_follows_implied_libsystem),
        exti_test(flags_of_a_library_stay),
        exti_test(search_path_changes_as_asked),
        exti_test(first_path_follows_the_libraries),
        exti_test(loader_path_in_kept_names_means_the_originals_folder),
        exti_test(bindings_go_to_a_needed_library),
        exti_test(too_many_names_are_refused),
        exti_test(fails_cleanly_without_memory),
        exti_test(llvm_reads_the_edited_commands),
    };

    return cmocka_run_group_tests_name("macho/macho_commands", tests, NULL, NULL);
}
