/* Compares descriptions of the files that build.sh makes with those of pefile, LLVM's and GNU's
 * tools. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "pe/edit/pe_checksum.h"
#include "pe/pe_format.h"
#include "pe/read/pe_file.h"

enum { NOT_HERE = 77 };

static char inputs[4096];
static struct exti_image image;
static struct pe_file file;
static char *text; /* of open_memstream */

static int clear(void **state)
{
    exti__image_clear(&image);
    exti__pe_close(&file);
    free(text);
    text = NULL;
    return test_teardown(state);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of `s`, sorted; overwrites `s`. */
static char *sorted(struct test *t, char *s)
{
    size_t n = 0, size = strlen(s) + 1;
    char **lines = test_alloc(t, size * sizeof *lines), *out = test_alloc(t, size), *rest = s;

    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line)
            lines[n++] = line;
    qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++)
        strcat(strcat(out, lines[i]), "\n");
    return out;
}

/* ---- what each tool prints -------------------------------------------------------------- */

static void say_symbols(FILE *out, bool code)
{
    for (size_t i = 0; i < image.info.symbol_count; i++) {
        const struct exti_image_symbol *s = &image.symbols[i];

        if (s->flags & EXTI_SYM_EXPORT)
            fprintf(out, "export %s%s\n", s->name,
                    code && s->flags & EXTI_SYM_FUNCTION ? " code" : "");
        else
            fprintf(out, "import %d %s\n", (int)s->library, s->name);
    }
}

static void say_needed(FILE *out, bool late)
{
    for (size_t i = 0; i < image.info.needed_count; i++) {
        const struct exti_image_needed *d = &image.needed[i];

        if (late || !(d->flags & EXTI_NEED_WEAK))
            fprintf(out, "needed %s%s\n", d->name, d->flags & EXTI_NEED_WEAK ? " late" : "");
    }
}

static void say_for_pefile(FILE *out)
{
    say_symbols(out, true);
    say_needed(out, true);
    fprintf(out, "checksum %x\n",
            (unsigned)exti__pe_checksum(&file.file, 1, file.optional_at + 64));
    if (image.info.id)
        fprintf(out, "id %s\n", image.info.id);
    if (image.info.build_id)
        fprintf(out, "build %s\n", image.info.build_id);
    if (file.directories[IMAGE_DIRECTORY_ENTRY_TLS].rva)
        fprintf(out, "tls %u\n", (unsigned)image.info.tls_size);
}

static void say_for_llvm(FILE *out)
{
    say_symbols(out, false);
    say_needed(out, true);
}

static void say_for_objdump(FILE *out)
{
    say_needed(out, false);
    if (image.info.id)
        fprintf(out, "id %s\n", image.info.id);
}

static void compare(struct test *t, const char *path, const char *how, void (*say)(FILE *out))
{
    char *theirs;
    size_t n;
    FILE *out;
    /* Only the system's Python has pefile. */
    int rc = test_run(t, &theirs, "/usr/bin/python3", "tests/pe_inputs/read.py", how, path, NULL);

    if (rc == NOT_HERE || rc == 127)
        skip_because("%s is not here", how);
    if (rc)
        fail_msg("%s: %s: exit status %d: %s", path, how, rc, theirs);
    free(text);
    text = NULL;
    out = open_memstream(&text, &n);
    assert_non_null(out);
    say(out);
    fclose(out);
    assert_string_equal(sorted(t, text), sorted(t, theirs));
}

/* ---- all files ------------------------------------------------------------------------------- */

/* Compares all files of the first `count` folders. */
static void each_input(struct test *t, const char *how, void (*say)(FILE *out), size_t count)
{
    static const char *const folders[] = {"gnu-x64", "gnu-x86", "lld-x64", "lld-x86", "lld-arm64"};
    static const char *const machines[] = {"x86-64", "i386", "x86-64", "i386", "arm64"};
    size_t compared = 0;

    for (size_t i = 0; i < count && i < ARRAY_SIZE(folders); i++) {
        char *folder = test_format(t, "%s/%s", inputs, folders[i]), *rest = test_list(t, folder);

        for (char *name; (name = strsep(&rest, "\n"));) {
            const char *path = test_format(t, "%s/%s", folder, name), *end = strrchr(name, '.');
            struct exti_span bytes;
            size_t n;
            char *p;

            if (!end || strcmp(end, ".dll") != 0)
                continue;
            p = test_read(t, path, &n);
            bytes = exti__span(p, n);
            exti__image_clear(&image);
            exti__pe_close(&file);
            assert_ok(exti__pe_format.read(bytes, &image, &t->err), &t->err);
            assert_ok(exti__pe_open(bytes, &file, &t->err), &t->err);
            assert_string_equal(image.info.machine, machines[i]);
            compare(t, path, how, say);
            compared++;
        }
    }
    if (!compared)
        skip_because("no DLL could be built here");
}

static void pefile_reads_the_same(void **state)
{
    each_input(*state, "pefile", say_for_pefile, SIZE_MAX);
}

static void llvm_reads_the_same(void **state)
{
    each_input(*state, "llvm", say_for_llvm, SIZE_MAX);
}

static void objdump_reads_the_same(void **state)
{
    each_input(*state, "objdump", say_for_objdump, 4); /* objdump does not know arm64 */
}

/* Files that cannot be built here are skipped with their reason. */
static void inputs_are_built(void **state)
{
    struct test *t = *state;
    char *found = test_must_run(t, "find", inputs, "-name", "*.skip", NULL);

    if (*found)
        skip_because(
            "not built: %s",
            test_must_run(t, "sh", "-c", "cat \"$1\"/*/*.skip | head -n 1", "sh", inputs, NULL));
}

static int build(void **state)
{
    const char *folder = getenv("EXTI_BUILD");
    void *fixture = NULL;

    (void)state;
    test_setup(&fixture);
    snprintf(inputs, sizeof inputs, "%s/pe_inputs", folder ? folder : "build");
    test_must_run(fixture, "tests/pe_inputs/build.sh", inputs, NULL);
    return test_teardown(&fixture);
}

#define input_test(f) cmocka_unit_test_setup_teardown(f, test_setup, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        input_test(inputs_are_built),
        input_test(pefile_reads_the_same),
        input_test(llvm_reads_the_same),
        input_test(objdump_reads_the_same),
    };

    return cmocka_run_group_tests_name("pe_inputs/describe", tests, build, NULL);
}
