/* Every odd shape of shared object that build.sh can make here is either rewritten correctly, and
 * stays correct after the tools that people run on shared objects, or refused with a reason. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"
#include "tests/support/lief.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DYNAMIC_IS_LOST 7 /* the exit status of the selftest */

static char inputs[4096]; /* where build.sh puts them */

static const struct exti_needed add_first[] = {{NULL, "libextidep.so.1", EXTI_NEEDED_FIRST}};
static const struct exti_needed remove_libm[] = {{"libm.so.6", NULL, EXTI_NEEDED_LAST}};
static const struct exti_needed remove_absent[] = {{"libabsent.so", NULL, EXTI_NEEDED_LAST}};
static const struct exti_needed replace_libm[] = {{"libm.so.6", "libextim.so.6", EXTI_NEEDED_LAST}};
static const struct exti_rename renames[] = {
    {"selftest_answer", "selftest_reply2"}, {"selftest_data", "selftest_dato"}, {"cos", "sin"}};
/* "tD" and "se" have the same GNU hash, and so do names that differ only in them. */
static const struct exti_rename same_hash[] = {{"selftest_data", "tDlftest_data"}};

#define NEW_ID "libt-of-some-context-with-a-name-longer-than-the-old-one.so"

/* The edits for most inputs: everything that a copy of an extension gets. */
#define USUAL                                                                                      \
    {                                                                                              \
        .size = sizeof(struct exti_rewrite_opts), .id = NEW_ID, .needed = add_first,               \
        .needed_count = 1, .path_prepend = "/nonexistent/context", .origin = "/nonexistent/lib",   \
        .flags = EXTI_RW_CLEAR_NODELETE                                                            \
    }
static const struct exti_rewrite_opts usual = USUAL;
static const struct exti_rewrite_opts id_only = {.size = sizeof id_only, .id = NEW_ID};
/* Differs in one letter from libt.so.1, the name of most inputs: nothing has to move. */
static const struct exti_rewrite_opts same_length = {.size = sizeof same_length, .id = "libt.so.c"};
static const struct exti_rewrite_opts flags_only = {
    .size = sizeof flags_only,
    .flags = EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE};
static const struct exti_rewrite_opts no_path = {.size = sizeof no_path, .path_set = ""};
static const struct exti_rewrite_opts without_libm = {
    .size = sizeof without_libm, .needed = remove_libm, .needed_count = 1};
static const struct exti_rewrite_opts without_absent = {
    .size = sizeof without_absent, .needed = remove_absent, .needed_count = 1};
static const struct exti_rewrite_opts other_libm = {
    .size = sizeof other_libm, .id = NEW_ID, .needed = replace_libm, .needed_count = 1};
static const struct exti_rewrite_opts renamed = {
    .size = sizeof renamed, .id = NEW_ID, .renames = renames, .rename_count = ARRAY_SIZE(renames)};
static const struct exti_rewrite_opts renamed_same_hash = {
    .size = sizeof renamed_same_hash, .renames = same_hash, .rename_count = ARRAY_SIZE(same_hash)};

enum {
    NO_RUN = 1,     /* the system's loader does not take the input itself */
    FOREIGN = 2,    /* for another machine: the host's strip does not know it */
    KEEPS_SIZE = 4, /* the copy is no longer than the input */
    /* .dynamic moves.  Code that refers to _DYNAMIC uses its old place, which then belongs to no
     * section, so tools that write files section by section lose it. */
    OLD_DYNAMIC = 8,
    /* Tools move the program headers or take minutes. */
    NO_TOOLS = 16,
};

/* The expected results.  `code` is EXTI_OK where the copy must be right.  Otherwise the rewrite
 * must fail with `code` and a message that has `says` in it. */
static const struct row {
    const char *input, *arch;
    const struct exti_rewrite_opts *opts;
    int code;
    const char *says;
    unsigned flags;
} rows[] = {
    /* linkers and their options */
    {"bfd", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"bfd", "x86_64", &id_only, EXTI_OK, NULL, 0},
    {"bfd", "x86_64", &same_length, EXTI_OK, NULL, 0}, /* shared with its base version */
    {"plain", "x86_64", &same_length, EXTI_OK, NULL, KEEPS_SIZE},
    {"bfd", "x86_64", &flags_only, EXTI_OK, NULL, KEEPS_SIZE},
    {"bfd", "x86_64", &without_libm, EXTI_E_UNSUPPORTED, "libm.so.6", 0},
    {"bfd", "x86_64", &without_absent, EXTI_E_ARG, "libabsent.so", 0},
    {"bfd", "x86_64", &other_libm, EXTI_OK, NULL, 0},
    {"bfd", "x86_64", &renamed, EXTI_OK, NULL, NO_RUN},
    {"gold", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"gold", "x86_64", &renamed, EXTI_OK, NULL, NO_RUN},
    {"lld", "x86_64", &usual, EXTI_OK, NULL, OLD_DYNAMIC},
    {"lld", "x86_64", &id_only, EXTI_OK, NULL, 0},
    {"lld", "x86_64", &other_libm, EXTI_OK, NULL, 0},
    {"lld", "x86_64", &renamed, EXTI_OK, NULL, NO_RUN},
    {"mold", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"mold", "x86_64", &other_libm, EXTI_OK, NULL, 0},
    {"norelro", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"bind-now", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"noseparate-code", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"lld-separate", "x86_64", &usual, EXTI_OK, NULL, OLD_DYNAMIC},
    {"lld-no-rosegment", "x86_64", &usual, EXTI_OK, NULL, OLD_DYNAMIC},
    {"based", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"page-2m", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"gold-page-2m", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"page-64k", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"hash-sysv", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"hash-sysv", "x86_64", &renamed, EXTI_OK, NULL, NO_RUN},
    {"hash-gnu", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"hash-both", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"hash-both", "x86_64", &renamed, EXTI_OK, NULL, NO_RUN},
    {"no-spare", "x86_64", &usual, EXTI_OK, NULL, NO_RUN},
    {"execstack", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"no-build-id", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"relr", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"lld-relr", "x86_64", &usual, EXTI_OK, NULL, NO_RUN},
    {"lld-android-relocs", "x86_64", &usual, EXTI_OK, NULL, NO_RUN},
    {"emit-relocs", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"emit-relocs", "x86_64", &renamed, EXTI_OK, NULL, NO_RUN},
    {"nodelete", "x86_64", &flags_only, EXTI_OK, NULL, KEEPS_SIZE},
    {"rpath", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"rpath", "x86_64", &no_path, EXTI_OK, NULL, KEEPS_SIZE},
    {"runpath", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"runpath", "x86_64", &no_path, EXTI_OK, NULL, KEEPS_SIZE},
    {"own-init", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"cet", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"filter", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"rwx", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"shared-strings", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"shared-strings", "x86_64", &same_length, EXTI_OK, NULL, 0},
    {"shared-strings", "x86_64", &no_path, EXTI_OK, NULL, KEEPS_SIZE},
    {"small-bss", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"no-soname", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"gap-rodata", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"gap-init", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"many-sections", "x86_64", &usual, EXTI_OK, NULL, NO_TOOLS},
    {"bfd", "x86_64", &renamed_same_hash, EXTI_OK, NULL, KEEPS_SIZE | NO_RUN},
    /* made odd afterwards */
    {"patchelfed", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"patchelfed-lld", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"sectionless", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"sectionless-lld", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"stripped", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"renamed-section", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"unnamed", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"lying", "x86_64", &usual, EXTI_E_FORMAT, "but the loader finds DT_STRTAB", 0},
    {"move-headers", "x86_64", &usual, EXTI_OK, NULL, NO_TOOLS},
    {"no-stack", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"empty-note", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"align-0", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"overlay", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"bolted", "x86_64", &usual, EXTI_OK, NULL, 0},
    {"odd-align", "x86_64", &usual, EXTI_E_FORMAT, "p_align", 0},
    {"swap-loads", "x86_64", &usual, EXTI_E_UNSUPPORTED, "ascending", 0},
    {"xnum", "x86_64", &usual, EXTI_E_UNSUPPORTED, "extended numbering", 0},
    {"debug-only", "x86_64", &usual, EXTI_E_UNSUPPORTED, "debug file", 0},
    {"truncated", "x86_64", &usual, EXTI_E_FORMAT, NULL, 0},
    {"empty", "x86_64", &usual, EXTI_E_FORMAT, "empty", 0},
    {"pie", "x86_64", &usual, EXTI_E_UNSUPPORTED, NULL, 0},
    {"static-pie", "x86_64", &usual, EXTI_E_UNSUPPORTED, NULL, 0},
    {"object-file", "x86_64", &usual, EXTI_E_UNSUPPORTED, "relocatable", 0},
    {"archive", "x86_64", &usual, EXTI_E_UNSUPPORTED, "static library", 0},
    /* other C libraries and machines */
    {"musl", "musl", &usual, EXTI_OK, NULL, 0},
    {"i686", "i686", &usual, EXTI_OK, NULL, FOREIGN},
    {"s390x", "s390x", &usual, EXTI_OK, NULL, FOREIGN},
    {"s390x-sysv", "s390x", &usual, EXTI_OK, NULL, FOREIGN},
    {"s390x-sysv", "s390x", &renamed, EXTI_OK, NULL, FOREIGN | NO_RUN},
    {"mips", "mips", &usual, EXTI_OK, NULL, FOREIGN},
    {"mips", "mips", &renamed, EXTI_OK, NULL, FOREIGN | NO_RUN},
    {"mips-xhash", "mips", &usual, EXTI_OK, NULL, FOREIGN},
    {"riscv64", "riscv64", &usual, EXTI_OK, NULL, FOREIGN},
    {"aarch64", "aarch64", &usual, EXTI_OK, NULL, FOREIGN},
    {"arm", "arm", &usual, EXTI_OK, NULL, FOREIGN},
};

/* ---- running a shared object's selftest ------------------------------------------------------ */

static const struct machine {
    const char *arch, *emulator, *sysroot;
} machines[] = {
    {"x86_64", NULL, NULL},
    {"musl", NULL, NULL},
    {"i686", "qemu-i386", "/usr/i686-linux-gnu"},
    {"s390x", "qemu-s390x", "/usr/s390x-linux-gnu"},
    {"mips", "qemu-mips", "/usr/mips-linux-gnu"},
    {"riscv64", "qemu-riscv64", "/usr/riscv64-linux-gnu"},
    {"aarch64", "qemu-aarch64", "/usr/aarch64-linux-gnu"},
    {"arm", "qemu-arm", "/usr/arm-linux-gnueabihf"},
};

static const struct machine *machine(const char *arch)
{
    for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
        if (strcmp(machines[i].arch, arch) == 0)
            return &machines[i];
    fail_msg("no machine %s", arch);
    return NULL;
}

/* The selftest's exit status for the shared object at `path`; 0 is success. */
static int selftest(struct test *t, const char *arch, const char *path, char **out)
{
    const struct machine *m = machine(arch);
    char *driver = test_format(t, "%s/%s/driver", inputs, arch);
    char *libs = test_format(t, "LD_LIBRARY_PATH=%s/%s", inputs, arch);

    if (m->emulator)
        return test_run(t, out, m->emulator, "-L", m->sysroot, "-E", libs, driver, path, NULL);
    return test_run(t, out, "env", libs, driver, path, NULL);
}

static void skip_unless_runnable(const struct row *row)
{
    const struct machine *m = machine(row->arch);

    if (m->emulator && !test_have(m->emulator))
        skip_because("%s is not installed", m->emulator);
}

/* ---- independent readers --------------------------------------------------------------------- */

static void sees_edits(struct test *t, const struct row *row, const char *copy)
{
    char *out = test_must_run(t, "readelf", "-dW", copy, NULL);

    if (row->opts->id)
        assert_contains(out, test_format(t, "Library soname: [%s]", row->opts->id));
    for (size_t i = 0; i < row->opts->needed_count; i++)
        assert_contains(out, test_format(t, "Shared library: [%s]", row->opts->needed[i].to));
    if (row->opts->path_prepend)
        assert_contains(out, test_format(t, "path: [%s", row->opts->path_prepend));
}

/* LIEF must see the edits too, if it can read the input. */
static void lief_sees_edits(struct test *t, const struct row *row, const char *input,
                            const char *copy)
{
    char id[512], needed[4096], *line;

    if (!lief_found() || !lief_read(input, id, sizeof id, needed, sizeof needed))
        return;
    if (!lief_read(copy, id, sizeof id, needed, sizeof needed))
        fail_msg("LIEF reads the input, but not the copy");
    if (row->opts->id)
        assert_string_equal(id, row->opts->id);
    line = test_format(t, "\n%s", needed);
    for (size_t i = 0; i < row->opts->needed_count; i++)
        assert_contains(line, test_format(t, "\n%s\n", row->opts->needed[i].to));
}

/* Removes the digits: indices of headers and of dynamic entries differ. */
static char *without_numbers(char *text)
{
    char *to = text;

    for (const char *p = text; *p; p++)
        if (*p < '0' || *p > '9')
            *to++ = *p;
    *to = 0;
    return text;
}

/* The first line of `now` that is not in `was`.  Skips one mistake of elflint: it takes a
 * relocation to reach st_size bytes past its target, into a read-only segment that follows .bss. */
static const char *new_complaint(char *was, char *now)
{
    char *save = NULL;

    without_numbers(was);
    for (char *line = strtok_r(without_numbers(now), "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        /* A section with a wrong sh_link gets a complaint for each entry, including new entries. */
        const char *offset = strstr(line, " value must be valid offset in section");

        if (!strstr(was, offset ? offset : line) && !strstr(line, "text relocation flag not set"))
            return line;
    }
    return NULL;
}

static void lints_no_worse(struct test *t, const char *input, const char *copy)
{
    char *was, *now;
    const char *complaint;

    if (!test_have("eu-elflint"))
        return;
    test_run(t, &was, "eu-elflint", "--gnu-ld", input, NULL);
    test_run(t, &now, "eu-elflint", "--gnu-ld", copy, NULL);
    complaint = new_complaint(was, now);
    if (complaint)
        fail_msg("eu-elflint says of the copy only: %s", complaint);
}

/* ---- what people run on shared objects ------------------------------------------------------- */

static const struct tool {
    const char *name, *const argv[4]; /* without the file, which comes last and is changed */
} tools[] = {
    {"strip", {"strip", NULL}},           {"strip -g", {"strip", "-g", NULL}},
    {"objcopy", {"objcopy", NULL}},       {"eu-strip", {"eu-strip", NULL}},
    {"llvm-strip", {"llvm-strip", NULL}}, {"llvm-objcopy", {"llvm-objcopy", NULL}},
};

/* Runs the tool on `path`, a new copy of `from`; whether it succeeds. */
static bool run_tool(struct test *t, const struct tool *tool, const char *from, const char *path)
{
    char *argv[6];
    size_t n = 0;

    test_copy(t, from, path);
    for (; tool->argv[n]; n++)
        argv[n] = (char *)(uintptr_t)tool->argv[n];
    argv[n++] = (char *)(uintptr_t)path;
    argv[n] = NULL;
    return test_runv(t, NULL, argv) == 0;
}

/* A tool that leaves the input working must leave the copy working. */
static void survives(struct test *t, const struct row *row, const struct tool *tool,
                     const char *input, const char *copy)
{
    char *a = test_path(t, "tool-input.so"), *b = test_path(t, "tool-copy.so"), *out;
    int rc;

    if (!test_have(tool->argv[0]) || !run_tool(t, tool, input, a))
        return;
    if (!(row->flags & NO_RUN) && selftest(t, row->arch, a, NULL) != 0)
        return;
    if (!run_tool(t, tool, copy, b))
        fail_msg("%s takes the input, but not the copy", tool->name);
    if (row->flags & NO_RUN)
        return;
    rc = selftest(t, row->arch, b, &out);
    if (rc != 0 && !(row->flags & OLD_DYNAMIC && rc == DYNAMIC_IS_LOST))
        fail_msg("after %s the copy fails its selftest: %s", tool->name, out);
}

/* ---- the test -------------------------------------------------------------------------------- */

static int count_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    printf("finding at 0x%llx: %s\n", (unsigned long long)finding->offset, finding->message);
    return 0;
}

static void check_copy(struct test *t, const struct row *row, const char *input, const char *copy)
{
    size_t findings = 1, input_size, size;
    const char *was = test_read(t, input, &input_size);
    char *again = test_path(t, "again.so"), *bytes = test_read(t, copy, &size), *out;
    int before;

    assert_ok(exti_verify(copy, input, count_finding, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
    assert_true(size >= input_size && was != NULL);
    if (row->flags & KEEPS_SIZE)
        assert_int_equal(size, input_size);
    assert_ok(exti_rewrite(input, again, row->opts, &t->err), &t->err);
    assert_memory_equal(bytes, test_read(t, again, NULL), size);
    if (!(row->flags & FOREIGN))
        sees_edits(t, row, copy);
    lief_sees_edits(t, row, input, copy);
    lints_no_worse(t, input, copy);
    if (!(row->flags & NO_RUN)) {
        before = selftest(t, row->arch, input, NULL);
        if (selftest(t, row->arch, copy, &out) != before)
            fail_msg("the copy fails its selftest: %s", out);
    }
    for (size_t i = 0; !(row->flags & (FOREIGN | NO_TOOLS)) && i < ARRAY_SIZE(tools); i++)
        survives(t, row, &tools[i], input, copy);
}

static void input_is_rewritten_or_refused(void **state)
{
    const struct row *row = *state;
    struct test *t;
    void *fixture = NULL;

    assert_int_equal(test_setup(&fixture), 0);
    t = *state = fixture;
    char *input = test_format(t, "%s/%s.so", inputs, row->input), *copy = test_path(t, "copy.so");
    char *reason = test_format(t, "%s/%s.skip", inputs, row->input);
    int rc;

    if (access(reason, F_OK) == 0)
        skip_because("%s", test_read(t, reason, NULL));
    if (access(input, F_OK) != 0)
        fail_msg("build.sh made no %s and did not say why", row->input);
    if (!(row->flags & NO_RUN))
        skip_unless_runnable(row);
    rc = exti_rewrite(input, copy, row->opts, &t->err);
    assert_exti(rc, row->code, &t->err, ANY_OFFSET);
    if (!row->code) {
        check_copy(t, row, input, copy);
        return;
    }
    if (row->says)
        assert_says(&t->err, row->says);
    assert_int_not_equal(access(copy, F_OK), 0);
}

static int build_inputs(void **state)
{
    void *fixture = NULL;

    (void)state;
    test_setup(&fixture);
    test_build_inputs(fixture, "elf_inputs", inputs);
    test_run(
        fixture, NULL, "sh", "-c",
        test_format(fixture, "cp /lib/x86_64-linux-gnu/libm.so.6 %s/x86_64/libextim.so.6", inputs),
        NULL);
    return test_teardown(&fixture);
}

static const char *what_is_edited(const struct exti_rewrite_opts *o)
{
    static const struct {
        const struct exti_rewrite_opts *opts;
        const char *name;
    } names[] = {
        {&usual, "usual"},
        {&id_only, "id"},
        {&same_length, "same_length"},
        {&flags_only, "flags"},
        {&no_path, "no_path"},
        {&without_libm, "without_libm"},
        {&without_absent, "without_absent"},
        {&other_libm, "other_libm"},
        {&renamed, "renamed"},
        {&renamed_same_hash, "renamed_same_hash"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (names[i].opts == o)
            return names[i].name;
    return "";
}

int main(void)
{
    static struct CMUnitTest tests[ARRAY_SIZE(rows)];
    static char names[ARRAY_SIZE(rows)][80];
    static struct row initial[ARRAY_SIZE(rows)];

    memcpy(initial, rows, sizeof rows);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        snprintf(names[i], sizeof names[i], "%s:%s", rows[i].input, what_is_edited(rows[i].opts));
        tests[i] = (struct CMUnitTest){.name = names[i],
                                       .test_func = input_is_rewritten_or_refused,
                                       .teardown_func = test_teardown,
                                       .initial_state = &initial[i]};
    }
    return cmocka_run_group_tests_name("elf_inputs", tests, build_inputs, NULL);
}
