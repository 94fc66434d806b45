/* Descriptions of the files that build.sh makes, compared with the output of LLVM's tools. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "macho/macho_format.h"

static char inputs[4096];
static struct exti_image image;

static int clear(void **state)
{
    exti__image_clear(&image);
    return test_teardown(state);
}

/* ---- one list of lines against another ------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of `text`, sorted and without duplicates; changes `text`. */
static char **sorted(struct test *t, char *text, size_t *count)
{
    char **lines, *line, *rest = text;
    size_t n = 0, kept = 0;

    for (char *p = text; *p; p++)
        n += *p == '\n';
    lines = test_alloc(t, (n + 1) * sizeof *lines);
    for (n = 0; (line = strsep(&rest, "\n"));)
        if (*line)
            lines[n++] = line;
    qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++)
        if (!kept || strcmp(lines[kept - 1], lines[i]) != 0)
            lines[kept++] = lines[i];
    *count = kept;
    return lines;
}

static void assert_same_lines(struct test *t, const char *file, const char *what, char *ours,
                              char *theirs)
{
    size_t our_count, their_count;
    char **a = sorted(t, ours, &our_count), **b = sorted(t, theirs, &their_count);

    for (size_t i = 0; i < our_count && i < their_count; i++)
        if (strcmp(a[i], b[i]) != 0)
            fail_msg("%s: %s: %s is read, LLVM says %s", file, what, a[i], b[i]);
    if (our_count != their_count)
        fail_msg("%s: %zu %s are read, LLVM finds %zu", file, our_count, what, their_count);
}

/* ---- a file ---------------------------------------------------------------------------------- */

struct text {
    char *p;
    size_t n, cap;
};

/* Adds the line `before` `value` `after`. */
static void add_line(struct test *t, struct text *out, const char *before, const char *value,
                     const char *after)
{
    size_t need = strlen(before) + strlen(value) + strlen(after) + 2;

    if (out->n + need > out->cap) {
        char *p = test_alloc(t, (out->n + need) * 2);

        if (out->n)
            memcpy(p, out->p, out->n);
        out->p = p;
        out->cap = (out->n + need) * 2;
    }
    out->n += (size_t)snprintf(out->p + out->n, need, "%s%s%s\n", before, value, after);
}

static char *version(struct test *t, uint32_t v)
{
    return v & 0xff ? test_format(t, "%u.%u.%u", v >> 16, v >> 8 & 0xff, v & 0xff)
                    : test_format(t, "%u.%u", v >> 16, v >> 8 & 0xff);
}

static char *our_commands(struct test *t, const struct exti_image *im)
{
    struct text out = {0};

    add_line(t, &out, "uuid ", im->info.build_id ? im->info.build_id : "none", "");
    add_line(t, &out, "minos ", version(t, im->info.min_os), "");
    add_line(t, &out, "sdk ", version(t, im->info.sdk), "");
    if (im->info.id)
        add_line(t, &out, "LC_ID_DYLIB ", im->info.id, "");
    for (size_t i = 0; i < im->info.needed_count; i++)
        add_line(t, &out,
                 im->needed[i].flags & EXTI_NEED_WEAK       ? "LC_LOAD_WEAK_DYLIB "
                 : im->needed[i].flags & EXTI_NEED_REEXPORT ? "LC_REEXPORT_DYLIB "
                                                            : "LC_LOAD_DYLIB ",
                 im->needed[i].name, "");
    for (size_t i = 0; i < im->path_count; i++)
        add_line(t, &out, "LC_RPATH ", im->paths[i], "");
    return out.p;
}

static const char commands_of[] =
    "llvm-objdump --macho --private-headers --arch=%s '%s' | awk '"
    "$1 == \"cmd\" { cmd = $2 }"
    "$1 == \"uuid\" { gsub(\"-\", \"\", $2); print \"uuid\", tolower($2) }"
    "$1 == \"minos\" || $1 == \"sdk\" { print $1, $2 }"
    "$1 == \"version\" && cmd ~ /VERSION_MIN/ { print \"minos\", $2 }"
    "$1 == \"name\" && /offset/ && cmd !~ /DYLINKER/ || $1 == \"path\" { print cmd, $2 }'";

static bool is_exported(const struct exti_image *im, const char *name)
{
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if (im->symbols[i].flags & EXTI_SYM_EXPORT && strcmp(im->symbols[i].name, name) == 0)
            return true;
    return false;
}

/* lld leaves it undefined in files that no longer bind to it. */
#define BINDER "dyld_stub_binder"

/* Exports, or imports that the file does not define itself. */
static char *our_symbols(struct test *t, const struct exti_image *im, bool exports)
{
    struct text out = {0};

    add_line(t, &out, "", "", "");
    for (size_t i = 0; i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *s = &im->symbols[i];
        bool exported = s->flags & EXTI_SYM_EXPORT;

        if (exports && exported)
            add_line(t, &out, "", s->name,
                     s->flags & EXTI_SYM_WEAK  ? " [weak_def]"
                     : s->flags & EXTI_SYM_TLS ? " [per-thread]"
                                               : "");
        if (!exports && !exported && !is_exported(im, s->name) && strcmp(s->name, BINDER) != 0)
            add_line(t, &out, "", s->name, "");
    }
    return out.p;
}

static void assert_as_llvm_says(struct test *t, const char *file, const struct exti_image *im)
{
    const char *arch = strcmp(im->info.machine, "x86-64") == 0 ? "x86_64" : im->info.machine;
    char *theirs;

    theirs = test_must_run(t, "sh", "-c", test_format(t, commands_of, arch, file), NULL);
    assert_same_lines(t, file, "commands", our_commands(t, im), theirs);
    theirs = test_must_run(t, "sh", "-c",
                           test_format(t,
                                       "llvm-objdump --macho --exports-trie --arch=%s '%s' |"
                                       "sed -n 's/^0x[0-9A-F]*  //p'",
                                       arch, file),
                           NULL);
    assert_same_lines(t, file, "exports", our_symbols(t, im, true), theirs);
    theirs = test_must_run(
        t, "sh", "-c",
        test_format(t,
                    "llvm-nm -u -j --arch=%s '%s' | grep '^[^/]' | grep -v -e ':$' -e '^" BINDER
                    "$' || :",
                    arch, file),
        NULL);
    assert_same_lines(t, file, "imports", our_symbols(t, im, false), theirs);
}

static void assert_read(struct test *t, const char *file)
{
    size_t n;
    const char *p = test_read(t, file, &n);
    struct exti_image *im = &image;
    int rc;

    exti__image_clear(im);
    rc = exti__macho_format.read(exti__span(p, n), im, &t->err);
    assert_ok(rc, &t->err);
    if (!im->info.slice_count)
        assert_as_llvm_says(t, file, im);
    for (size_t i = 0; i < im->info.slice_count; i++)
        if (im->slices[i].info.needed_count)
            assert_as_llvm_says(t, file, &im->slices[i]);
}

static void every_input_is_read_as_llvm_reads_it(void **state)
{
    struct test *t = *state;
    size_t count = 0;
    char *files, *file;

    if (!test_have("llvm-objdump") || !test_have("llvm-nm"))
        skip_because("llvm-objdump and llvm-nm are not installed");
    files = test_must_run(t, "find", inputs, "(", "-name", "*.so", "-o", "-name", "*.dylib", "-o",
                          "-name", "program", ")", "-type", "f", NULL);
    while ((file = strsep(&files, "\n"))) {
        if (!*file || strstr(file, "libextra"))
            continue;
        assert_read(t, file);
        count++;
    }
    if (!count)
        skip_because("nothing could be built");
    assert_true(count >= 40);
}

static int build_inputs(void **state)
{
    void *fixture = NULL;

    (void)state;
    test_setup(&fixture);
    test_build_inputs(fixture, "macho_inputs", inputs);
    return test_teardown(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_input_is_read_as_llvm_reads_it, test_setup, clear),
    };

    return cmocka_run_group_tests_name("macho_describe", tests, build_inputs, NULL);
}
