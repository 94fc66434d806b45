#include <string.h>

#include "macho/edit/macho_commands.h"
#include "tests/unit/macho/macho_edit.h"
#include "tests/unit/macho/macho_link.h"
#include "tests/unit/macho/macho_toy.h"

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static struct exti_span toy_span(const struct macho_toy *toy)
{
    return exti__span(toy->b, toy->n);
}

static struct macho_toy *make_toy(struct test *t, struct macho_toy_opts o)
{
    struct macho_toy *toy = test_alloc(t, sizeof *toy);

    if (!o.room)
        o.room = 1024;
    macho_toy_make(toy, o);
    return toy;
}

/* ---- load commands as text ------------------------------------------------------------------- */

static const char *kind_of(uint32_t cmd)
{
    return cmd == LC_LOAD_DYLIB          ? "load"
           : cmd == LC_LOAD_WEAK_DYLIB   ? "weak"
           : cmd == LC_REEXPORT_DYLIB    ? "reexport"
           : cmd == LC_LOAD_UPWARD_DYLIB ? "upward"
           : cmd == LC_ID_DYLIB          ? "id"
           : cmd == LC_RPATH             ? "rpath"
                                         : NULL;
}

/* One line per command with a name, with a library's versions if they differ from the toy's. */
static char *names(struct test *t, const struct macho_build *b)
{
    const uint8_t *p = b->commands.p;
    char *text = test_format(t, "%s", "");

    for (uint32_t i = 0; i < b->command_count; i++, p += get32(p + 4)) {
        const char *kind = kind_of(get32(p));

        assert_int_equal(get32(p + 4) % 8, 0);
        if (!kind)
            continue;
        text = test_format(t, "%s%s %s", text, kind, (const char *)p + get32(p + 8));
        if (get32(p) != LC_RPATH && (get32(p + 12) != 2 || get32(p + 16) != 0x10203))
            text = test_format(t, "%s %x/%x/%x", text, get32(p + 12), get32(p + 16), get32(p + 20));
        text = test_format(t, "%s\n", text);
    }
    assert_ptr_equal(p, b->commands.p + b->commands.n);
    return text;
}

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
    text = names(t, &m.b);
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

static void what_is_there_already_changes_nothing(void **state)
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

static void id_is_a_dylibs(void **state)
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

static void needed_libraries_that_are_not_there(void **state)
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
static void first_library_comes_behind_libsystem(void **state)
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
    assert_int_equal(get32(p), LC_LOAD_WEAK_DYLIB);
    assert_int_equal(get32(p + 4), 56);
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
static void first_path_comes_behind_the_libraries(void **state)
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
static void loader_path_of_what_stays_is_the_originals(void **state)
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

/* ---- room ------------------------------------------------------------------------------------ */

/* How much shorter the file gets without its 8 bytes of function starts: the signature is
 * aligned. */
enum { STARTS = 16 };

#define LONG_NAME "/a/name/for/libpython3.11.dylib" /* a command of 56 bytes */

static bool has(const struct macho_build *b, uint32_t cmd)
{
    const uint8_t *p = b->commands.p;

    for (uint32_t i = 0; i < b->command_count; i++, p += get32(p + 4))
        if (get32(p) == cmd)
            return cmd != LC_BUILD_VERSION || get32(p + 20);
    return false;
}

/* How the commands were made to fit. */
static char *sacrifices(struct test *t, const struct macho_build *b)
{
    static const struct {
        uint32_t cmd;
        const char *name;
    } droppable[] = {{LC_DATA_IN_CODE, "data"},       {LC_SOURCE_VERSION, "source"},
                     {LC_DYLIB_CODE_SIGN_DRS, "drs"}, {LC_SEGMENT_SPLIT_INFO, "split"},
                     {LC_BUILD_VERSION, "tools"},     {LC_FUNCTION_STARTS, "starts"}};
    char *text = strstr(names(t, b), "load /p1") ? "short" : "";

    for (size_t i = 0; i < ARRAY_SIZE(droppable); i++) {
        bool had = false;

        for (size_t k = 0; k < b->f->command_count; k++)
            had = had || b->f->commands[k].cmd == droppable[i].cmd;
        if (had && !has(b, droppable[i].cmd))
            text = test_format(t, "%s -%s", text, droppable[i].name);
    }
    assert_true(has(b, LC_UUID));
    return b->shift ? test_format(t, "%s shift %llx", text, (unsigned long long)b->shift) : text;
}

static const struct {
    size_t room;
    const char *brief, *made;
} ladder[] = {
    {56, "/p1", ""},
    {48, "/p1", "short"},
    {32, "/p1", "short"},
    {24, "/p1", "short -data"},
    {16, "/p1", "short -data"},
    {8, "/p1", "short -data -source"},
    {48, NULL, " -data"},
    {24, NULL, " -data -source"},
    {16, NULL, " -data -source -tools"},
    {8, NULL, " -data -source -tools -starts"},
};

static void room_is_made_by_the_least_harm(void **state)
{
    static const struct exti_needed add = {NULL, LONG_NAME, EXTI_NEEDED_LAST};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ladder); i++) {
        struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = ladder[i].room});
        struct macho_making m;
        struct exti_span s;

        making_open(t, &m, toy_span(toy));
        m.opts.needed = &add;
        m.opts.needed_count = 1;
        m.opts.bind_name = LONG_NAME;
        m.opts.bind_short = ladder[i].brief;
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        assert_string_equal(sacrifices(t, &m.b), ladder[i].made);
        assert_int_equal(m.b.bind_ordinal, 4);
        s = making_put_together(t, &m);
        assert_int_equal(m.f.pieces[MACHO_SIGNATURE].s.base - m.fileoff - m.linkedit.n,
                         strstr(ladder[i].made, "starts") ? STARTS : 0);
        making_close(&m);
        making_check(t, s);
    }
}

/* A copy that has the short name instead of the long one already is as requested. */
static void short_name_is_not_joined_by_the_long_one(void **state)
{
    static const struct exti_needed ops[] = {{NULL, LONG_NAME, EXTI_NEEDED_LAST},
                                             {"/gone.dylib", LONG_NAME, EXTI_NEEDED_LAST}};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
        struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = 8});
        struct macho_making m;

        making_open(t, &m, toy_span(toy));
        m.opts.needed = &ops[i];
        m.opts.needed_count = 1;
        m.opts.bind_name = LONG_NAME;
        m.opts.bind_short = MTOY_WEAK_LIB;
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        assert_int_equal(m.b.bind_ordinal, 2);
        assert_int_equal(m.b.commands.n, m.f.sizeofcmds);
        assert_memory_equal(m.b.commands.p, toy->b + MACH_HEADER_64_SIZE, m.b.commands.n);
        making_close(&m);
    }
}

/* Even if the full name would fit in the end. */
static void short_name_of_the_file_itself_stays(void **state)
{
    static const struct exti_needed add[] = {{NULL, LONG_NAME, EXTI_NEEDED_LAST},
                                             {NULL, "/x", EXTI_NEEDED_LAST}};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = 8});
    struct macho_making m;
    char *id = test_alloc(t, 301);

    making_open(t, &m, toy_span(toy));
    m.opts.id = memset(id, 'i', 300);
    m.opts.needed = add;
    m.opts.needed_count = ARRAY_SIZE(add);
    m.opts.bind_name = LONG_NAME;
    m.opts.bind_short = MTOY_WEAK_LIB;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    assert_int_equal(m.b.shift, 0x4000);
    assert_contains(names(t, &m.b), "weak " MTOY_WEAK_LIB "\n");
    assert_null(strstr(names(t, &m.b), LONG_NAME));
    making_close(&m);
}

/* If dropping everything does not suffice, nothing is dropped. */
static void else_all_moves_and_nothing_is_lost(void **state)
{
    const size_t lengths[] = {200, 10000, 30000};
    const char *const made[] = {" shift 4000", " shift 4000", " shift 8000"};
    struct test *t = *state;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
        char *name = test_alloc(t, lengths[i / 2] + 1), *brief = test_alloc(t, 151);
        const struct exti_needed add = {NULL, memset(name, 'x', lengths[i / 2]), EXTI_NEEDED_FIRST};
        struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.arm = true, .room = 16});
        struct macho_making m;

        making_open(t, &m, toy_span(toy));
        m.opts.needed = &add;
        m.opts.needed_count = 1;
        m.opts.bind_name = name;
        m.opts.bind_short = memset(brief, 'y', 150);
        if (i % 2) {
            m.f.cpusubtype = 0x80000000u | CPU_SUBTYPE_ARM64E;
            assert_exti(exti__macho_edit_commands(&m.b, &t->err), EXTI_E_NOSPACE, &t->err,
                        m.f.commands_end);
            assert_says(&t->err, "arm64e");
        } else {
            assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
            assert_string_equal(sacrifices(t, &m.b), made[i / 2]);
            assert_contains(names(t, &m.b), test_format(t, "load %s", name));
            assert_true(MACH_HEADER_64_SIZE + m.b.commands.n <= m.b.shift);
        }
        making_close(&m);
    }
}

/* The new signature's command takes 16 bytes of the room. */
static void signature_needs_room_too(void **state)
{
    static const struct exti_needed add = {NULL, "/p2", EXTI_NEEDED_LAST};
    struct test *t = *state;

    for (size_t room = 40; room <= 48; room += 8) {
        struct macho_toy *toy =
            make_toy(t, (struct macho_toy_opts){.arm = true, .naked = true, .room = room});
        struct macho_making m;

        making_open(t, &m, toy_span(toy));
        m.opts.needed = &add;
        m.opts.needed_count = 1;
        assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
        assert_true(has(&m.b, LC_CODE_SIGNATURE));
        assert_string_equal(sacrifices(t, &m.b), room < 48 ? " -data" : "");
        making_check(t, making_put_together(t, &m));
        making_close(&m);
    }
}

static void rarer_commands_are_left_out_too(void **state)
{
    static const struct exti_needed add = {NULL, LONG_NAME, EXTI_NEEDED_LAST};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = 8});
    struct macho_making m;
    struct exti_span s;

    mtoy_put(toy, mtoy_find(toy, LC_SOURCE_VERSION, 0), 4, LC_RPATH);
    mtoy_put(toy, mtoy_find(toy, LC_RPATH, 0) + 8, 4, 12);
    memcpy(toy->b + mtoy_find(toy, LC_RPATH, 0) + 12, "/a", 3);
    mtoy_put(toy, mtoy_find(toy, LC_FUNCTION_STARTS, 0), 4, LC_SEGMENT_SPLIT_INFO);
    mtoy_put(toy, mtoy_find(toy, LC_DATA_IN_CODE, 0), 4, LC_DYLIB_CODE_SIGN_DRS);
    memcpy(toy->b + mtoy_find(toy, LC_RPATH, 1) + 12, "/a", 3);
    making_open(t, &m, toy_span(toy));
    m.opts.needed = &add;
    m.opts.needed_count = 1;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    /* The second path, of 32 bytes, goes first, then these. */
    assert_string_equal(sacrifices(t, &m.b), " -drs");
    assert_null(strstr(strstr(names(t, &m.b), "\nrpath /a\n") + 1, "\nrpath"));
    making_close(&m);

    mtoy_put(toy, mtoy_find(toy, LC_RPATH, 1) + 13, 1, 'b');
    making_open(t, &m, toy_span(toy));
    m.opts.needed = &add;
    m.opts.needed_count = 1;
    m.opts.id = "@rpath/longer/than/libtoy.dylib";
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    assert_string_equal(sacrifices(t, &m.b), " shift 4000");
    making_close(&m);

    making_open(t, &m, toy_span(toy));
    m.opts.needed = &(struct exti_needed){NULL, "/p2/and/some", EXTI_NEEDED_LAST};
    m.opts.needed_count = 1;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    assert_string_equal(sacrifices(t, &m.b), " -drs -split");
    s = making_put_together(t, &m);
    assert_int_equal(m.f.pieces[MACHO_SIGNATURE].s.base - m.fileoff - m.linkedit.n, STARTS);
    making_close(&m);
    making_check(t, s);
}

/* Readers of the code need LC_DATA_IN_CODE unless it is empty. */
static void data_in_code_stays_if_there_is_any(void **state)
{
    static const struct exti_needed add = {NULL, "/p2", EXTI_NEEDED_LAST};
    struct test *t = *state;
    struct macho_toy *toy = make_toy(t, (struct macho_toy_opts){.room = 16});
    struct macho_making m;

    mtoy_put(toy, mtoy_find(toy, LC_FUNCTION_STARTS, 0) + 12, 4, 0);
    mtoy_put(toy, mtoy_find(toy, LC_DATA_IN_CODE, 0) + 8, 4, toy->starts);
    mtoy_put(toy, mtoy_find(toy, LC_DATA_IN_CODE, 0) + 12, 4, 8);
    making_open(t, &m, toy_span(toy));
    m.opts.needed = &add;
    m.opts.needed_count = 1;
    assert_ok(exti__macho_edit_commands(&m.b, &t->err), &t->err);
    assert_string_equal(sacrifices(t, &m.b), " -source");
    making_close(&m);
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

static void llvm_reads_what_was_asked_for(void **state)
{
    static const struct exti_needed add = {NULL, "/p1", EXTI_NEEDED_FIRST};
    const struct exti_rewrite_opts opts = {
        .id = "@rpath/y.dylib", .needed = &add, .needed_count = 1, .path_prepend = "$ORIGIN/a:/b"};
    struct test *t = *state;
    struct macho_making m;
    struct exti_span s;
    char *text;

    macho_skip_without_tools();
    if (!test_have("llvm-otool-16"))
        skip_because("llvm-otool-16 is not installed");
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
        text = test_must_run(t, "llvm-otool-16", "-D", test_path(t, "copy.dylib"), NULL);
        assert_contains(text, ":\n@rpath/y.dylib\n");
        text = test_must_run(t, "llvm-otool-16", "-L", test_path(t, "copy.dylib"), NULL);
        assert_contains(text,
                        "\t@rpath/y.dylib (compatibility version 0.0.0, current version 0.0.0)"
                        "\n\t/p1 (compatibility version 0.0.0, current version 0.0.0)"
                        "\n\t" MTOY_SYSTEM
                        " (compatibility version 1.0.0, current version 1345.100.2)\n");
        text = test_must_run(t, "llvm-otool-16", "-l", test_path(t, "copy.dylib"), NULL);
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
        exti_test(what_is_there_already_changes_nothing),
        exti_test(id_is_a_dylibs),
        exti_test(needed_libraries_change_as_asked),
        exti_test(needed_libraries_that_are_not_there),
        exti_test(first_library_comes_behind_libsystem),
        exti_test(flags_of_a_library_stay),
        exti_test(search_path_changes_as_asked),
        exti_test(first_path_comes_behind_the_libraries),
        exti_test(loader_path_of_what_stays_is_the_originals),
        exti_test(bindings_go_to_a_needed_library),
        exti_test(room_is_made_by_the_least_harm),
        exti_test(short_name_is_not_joined_by_the_long_one),
        exti_test(short_name_of_the_file_itself_stays),
        exti_test(else_all_moves_and_nothing_is_lost),
        exti_test(signature_needs_room_too),
        exti_test(rarer_commands_are_left_out_too),
        exti_test(data_in_code_stays_if_there_is_any),
        exti_test(too_many_names_are_refused),
        exti_test(fails_cleanly_without_memory),
        exti_test(llvm_reads_what_was_asked_for),
    };

    return cmocka_run_group_tests_name("macho/macho_commands", tests, NULL, NULL);
}
