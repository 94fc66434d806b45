/* exti_inspect describes files as readelf does. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <glob.h>
#include <string.h>

#include "tests/isolation/iso.h"

/* Writes one line per fact, in the words of readelf, to compare as a whole. */
struct facts {
    char *text;
    size_t n, cap;
};

static struct facts facts_new(struct test *t)
{
    return (struct facts){test_alloc(t, (size_t)1 << 22), 0, (size_t)1 << 22};
}

__attribute__((format(printf, 2, 3))) static void fact(struct facts *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    f->n += (size_t)vsnprintf(f->text + f->n, f->cap - f->n, fmt, ap);
    va_end(ap);
    assert_true(f->n < f->cap);
}

static int order_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Symbols as sorted "name@version class" lines. */
static void sort_lines(struct test *t, struct facts *f)
{
    char **lines = test_alloc(t, 100000 * sizeof *lines);
    struct facts sorted = facts_new(t);
    size_t n = 0;

    for (char *s = strtok(f->text, "\n"); s; s = strtok(NULL, "\n")) {
        assert_true(n < 100000);
        lines[n++] = s;
    }
    qsort(lines, n, sizeof *lines, order_lines);
    for (size_t i = 0; i < n; i++)
        fact(&sorted, "%s\n", lines[i]);
    *f = sorted;
}

/* Gives the text between `open` and the next `close` in the line with `tag`. */
static char *between(struct test *t, const char *text, const char *tag, const char *open,
                     char close)
{
    const char *at = strstr(text, tag), *eol = at ? strchr(at, '\n') : NULL, *end;

    at = at ? strstr(at, open) : NULL;
    if (!at || !eol || at > eol)
        return NULL;
    at += strlen(open);
    end = strchr(at, close);
    return end ? test_format(t, "%.*s", (int)(end - at), at) : NULL;
}

static void same_text(const char *ours, const char *theirs)
{
    assert_int_equal(ours != NULL, theirs != NULL);
    if (ours)
        assert_string_equal(ours, theirs);
}

static void compare_dynamic(struct test *t, const char *path, const struct exti_image *im,
                            const struct exti_image_info *info)
{
    const char *text = test_must_run(t, "readelf", "-dW", path, NULL), *at = text;
    const char *relocs = test_must_run(t, "readelf", "-rW", path, NULL);
    char *needed;
    size_t i = 0;

    same_text(info->id, between(t, text, "(SONAME)", "[", ']'));
    same_text(info->rpath, between(t, text, "(RPATH)", "[", ']'));
    same_text(info->runpath, between(t, text, "(RUNPATH)", "[", ']'));
    while ((at = strstr(at, "(NEEDED)"))) {
        needed = between(t, at, "(NEEDED)", "[", ']');
        same_text(exti_image_needed(im, i++), needed);
        at++;
    }
    assert_int_equal(info->needed_count, i);
    assert_null(exti_image_needed(im, i));
    assert_null(exti_image_needed(im, SIZE_MAX));
    assert_int_equal(!!(info->flags & EXTI_IMAGE_BIND_NOW),
                     strstr(text, "BIND_NOW") || strstr(text, "Flags: NOW"));
    assert_int_equal(!!(info->flags & EXTI_IMAGE_NODELETE), strstr(text, "NODELETE") != NULL);
    assert_int_equal(!!(info->flags & EXTI_IMAGE_STATIC_TLS), strstr(text, "STATIC_TLS") ||
                                                                  strstr(relocs, "_TPREL") ||
                                                                  strstr(relocs, "_TPOFF"));
    assert_int_equal(!!(info->flags & EXTI_IMAGE_SYMBOLIC), strstr(text, "SYMBOLIC") != NULL);
    assert_int_equal(!!(info->flags & EXTI_IMAGE_TEXTREL), strstr(text, "TEXTREL") != NULL);
}

static void compare_headers(struct test *t, const char *path, const struct exti_image_info *info)
{
    const char *h = test_must_run(t, "readelf", "-hlW", path, NULL);
    const char *notes = test_must_run(t, "readelf", "-nW", path, NULL);
    char *id = between(t, notes, "Build ID:", "Build ID: ", '\n'), *tls;

    assert_string_equal(info->format, "ELF");
    assert_int_equal(info->bits, strstr(h, "ELF64") ? 64 : 32);
    assert_int_equal(info->big_endian, strstr(h, "big endian") != NULL);
    if (strstr(h, "X86-64"))
        assert_string_equal(info->machine, "x86-64");
    same_text(info->build_id, id);
    assert_int_equal(!!(info->flags & EXTI_IMAGE_INTERP), strstr(h, "  INTERP ") != NULL);
    tls = strstr(h, "\n  TLS ");
    if (tls) {
        unsigned long offset, vaddr, paddr, filesz, memsz;

        assert_int_equal(
            sscanf(tls, "\n  TLS %lx %lx %lx %lx %lx", &offset, &vaddr, &paddr, &filesz, &memsz),
            5);
        assert_int_equal(info->tls_size, memsz);
    } else {
        assert_int_equal(info->tls_size, 0);
    }
}

/* Gives the global symbols that readelf lists, without those that name a version. */
static struct facts readelf_symbols(struct test *t, const char *path)
{
    char *text = test_must_run(t, "readelf", "-W", "--dyn-syms", path, NULL), *save = NULL;
    struct facts f = facts_new(t);

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char type[32], bind[32], vis[32], ndx[32], name[8192];
        unsigned long value;
        char *version, *gnu = strstr(line, "<OS specific>: 10");

        /* readelf's words for STT_GNU_IFUNC and STB_GNU_UNIQUE in a file that does not declare the
         * GNU ABI; the loader accepts them anyway. */
        if (gnu)
            memcpy(gnu,
                   strstr(line, "OBJECT ") || strstr(line, "TLS ") ? "UNIQUE           "
                                                                   : "IFUNC            ",
                   17);
        if (sscanf(line, " %*d: %lx %*s %31s %31s %31s %31s %8191s", &value, type, bind, vis, ndx,
                   name) != 6 ||
            !strcmp(bind, "LOCAL"))
            continue;
        /* Names a version, not a symbol. */
        if (!strcmp(ndx, "ABS") && !value)
            continue;
        if (strcmp(ndx, "UND") != 0 && strcmp(vis, "DEFAULT") != 0 && strcmp(vis, "PROTECTED") != 0)
            continue;
        version = strchr(name, '@');
        if (version) {
            *version++ = 0;
            version += *version == '@';
        }
        fact(&f, "%s@%s%s%s%s%s%s\n", name, version ? version : "",
             strcmp(ndx, "UND") ? " export" : "", strcmp(bind, "WEAK") ? "" : " weak",
             strcmp(bind, "UNIQUE") ? "" : " unique", strcmp(type, "TLS") ? "" : " tls",
             strcmp(type, "FUNC") && strcmp(type, "IFUNC") ? "" : " function");
    }
    sort_lines(t, &f);
    return f;
}

static void compare_symbols(struct test *t, const char *path, const struct exti_image *im,
                            size_t count)
{
    struct facts ours = facts_new(t), theirs = readelf_symbols(t, path);

    for (size_t i = 0; i < count; i++) {
        struct exti_symbol_info s = {.size = sizeof s};

        assert_int_equal(exti_image_symbol(im, i, &s), 0);
        fact(&ours, "%s@%s%s%s%s%s%s\n", s.name, s.version ? s.version : "",
             s.flags & EXTI_SYM_EXPORT ? " export" : "", s.flags & EXTI_SYM_WEAK ? " weak" : "",
             s.flags & EXTI_SYM_UNIQUE ? " unique" : "", s.flags & EXTI_SYM_TLS ? " tls" : "",
             s.flags & EXTI_SYM_FUNCTION ? " function" : "");
    }
    sort_lines(t, &ours);
    if (strcmp(ours.text, theirs.text) != 0) {
        test_write(test_path(t, "ours"), ours.text, ours.n);
        test_write(test_path(t, "readelf"), theirs.text, theirs.n);
        test_run(t, &ours.text, "diff", test_path(t, "ours"), test_path(t, "readelf"), NULL);
        print_message("%s:\n%.2000s\n", path, ours.text);
        fail();
    }
}

static void assert_described_as_by_readelf(struct test *t, const char *path)
{
    struct exti_image_info info = {.size = sizeof info};
    struct exti_symbol_info s = {.size = sizeof s};
    struct exti_image *im = NULL;

    print_message("%s\n", path);
    assert_ok(exti_inspect(path, &im, &t->err), &t->err);
    assert_int_equal(exti_image_info(im, &info), 0);
    compare_headers(t, path, &info);
    compare_dynamic(t, path, im, &info);
    compare_symbols(t, path, im, info.symbol_count);
    assert_int_equal(exti_image_symbol(im, info.symbol_count, &s), EXTI_E_ARG);
    assert_int_equal(exti_image_symbol(NULL, 0, &s), EXTI_E_ARG);
    assert_int_equal(exti_image_symbol(im, 0, NULL), EXTI_E_ARG);
    exti_image_free(im);
}

static void toy_libraries_are_described_as_by_readelf(void **state)
{
    struct test *t = *state;
    glob_t found;

    assert_int_equal(glob(iso_text("%s/*/*.so*", iso_toys()), 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 30);
    for (size_t i = 0; i < found.gl_pathc; i++)
        assert_described_as_by_readelf(t, found.gl_pathv[i]);
    globfree(&found);
}

/* The system's libraries have versions, unique symbols, TLS, an interpreter, NODELETE. */
static void system_libraries_are_described_as_by_readelf(void **state)
{
    static const char *const names[] = {"libc.so.6",     "libstdc++.so.6",  "libm.so.6",
                                        "libelf.so.1",   "libpthread.so.0", "libz.so.1",
                                        "libcrypto.so.3"};
    struct test *t = *state;
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char *out, *path;

        test_run(t, &out, "gcc", test_format(t, "-print-file-name=%s", names[i]), NULL);
        path = between(t, out, "/", "", '\n');
        if (path && path[0] == '/' && file_exists(path)) {
            assert_described_as_by_readelf(t, path);
            n++;
        }
    }
    assert_true(n >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(toy_libraries_are_described_as_by_readelf),
        exti_test(system_libraries_are_described_as_by_readelf),
    };

    return cmocka_run_group_tests_name("api/inspect", tests, NULL, NULL);
}
