/* tests/support/exti_test.h for programs that are tested on Windows, where nothing else can be run. */
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "tests/support/exti_test.h"

struct test_owned {
    struct test_owned *next;
    max_align_t bytes[];
};

void test_assert_exti(int rc, int code, const struct exti_error *err, uint64_t offset,
                      const char *call, const char *file, int line)
{
    if (rc != code) {
        print_error("%s\n  gives %s, not %s\n", call, exti_code_name(rc), exti_code_name(code));
        if (rc && err)
            print_error("  \"%s\", file \"%s\", offset %lld\n", err->message, err->file,
                        (long long)err->offset);
        _fail(file, line);
    }
    if (!rc || !err)
        return;
    if (err->code != code || !err->message[0]) {
        print_error("%s\n  gives %s but the error has %s, \"%s\"\n", call, exti_code_name(rc),
                    exti_code_name(err->code), err->message);
        _fail(file, line);
    }
    if (offset != ANY_OFFSET && err->offset != offset) {
        print_error("%s\n  \"%s\" is at offset %lld, not %lld\n", call, err->message,
                    (long long)err->offset, (long long)offset);
        _fail(file, line);
    }
}

void test_assert_contains(const char *whole, const char *text, const char *file, int line)
{
    if (whole && strstr(whole, text))
        return;
    print_error("\"%s\" does not contain \"%s\"\n", whole ? whole : "(null)", text);
    _fail(file, line);
}

int test_setup(void **state)
{
    static LONG count;
    struct test *t = calloc(1, sizeof *t);
    char base[MAX_PATH];

    if (!t || !GetTempPathA(sizeof base, base))
        return -1;
    snprintf(t->dir, sizeof t->dir, "%sexti-test-%lx-%lx", base, GetCurrentProcessId(),
             InterlockedIncrement(&count));
    *state = t;
    return CreateDirectoryA(t->dir, NULL) ? 0 : -1;
}

static int remove_folder(const char *dir)
{
    WIN32_FIND_DATAA found;
    char path[1024];
    HANDLE h;

    snprintf(path, sizeof path, "%s\\*", dir);
    h = FindFirstFileA(path, &found);
    if (h == INVALID_HANDLE_VALUE)
        return -1;
    do {
        if (!strcmp(found.cFileName, ".") || !strcmp(found.cFileName, ".."))
            continue;
        snprintf(path, sizeof path, "%s\\%s", dir, found.cFileName);
        if (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)
            remove_folder(path);
        else
            DeleteFileA(path);
    } while (FindNextFileA(h, &found));
    FindClose(h);
    return RemoveDirectoryA(dir) ? 0 : -1;
}

int test_teardown(void **state)
{
    struct test *t = *state;
    int rc = remove_folder(t->dir);

    while (t->owned) {
        struct test_owned *next = t->owned->next;

        free(t->owned);
        t->owned = next;
    }
    free(t);
    return rc;
}

void *test_alloc(struct test *t, size_t n)
{
    struct test_owned *o = calloc(1, sizeof *o + n);

    assert_non_null(o);
    o->next = t->owned;
    t->owned = o;
    return o->bytes;
}

char *test_format(struct test *t, const char *fmt, ...)
{
    va_list ap;
    char *text;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    assert_true(n >= 0);
    text = test_alloc(t, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}

char *test_path(struct test *t, const char *name)
{
    return test_format(t, "%s/%s", t->dir, name);
}

char *test_read(struct test *t, const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p;
    long size;

    if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
        fail_msg("cannot open %s", path);
    p = test_alloc(t, (size_t)size + 1);
    if (fread(p, 1, (size_t)size, f) != (size_t)size)
        fail_msg("cannot read %s", path);
    fclose(f);
    if (n)
        *n = (size_t)size;
    return p;
}

void test_write(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    bool done = f && fwrite(p, 1, n, f) == n;

    if (!f || fclose(f) != 0 || !done)
        fail_msg("cannot write %s", path);
}

void test_copy(struct test *t, const char *from, const char *to)
{
    size_t n;
    char *p = test_read(t, from, &n);

    test_write(to, p, n);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

char *test_list(struct test *t, const char *dir)
{
    enum { MOST = 256 };
    char(*names)[MAX_PATH] = test_alloc(t, MOST * sizeof *names), *text;
    WIN32_FIND_DATAA found;
    HANDLE h = FindFirstFileA(test_format(t, "%s\\*", dir), &found);
    size_t count = 0, size = 1;

    if (h == INVALID_HANDLE_VALUE)
        fail_msg("cannot open folder %s", dir);
    do {
        if (!strcmp(found.cFileName, ".") || !strcmp(found.cFileName, ".."))
            continue;
        assert_true(count < MOST);
        size += strlen(found.cFileName) + 1;
        strcpy(names[count++], found.cFileName);
    } while (FindNextFileA(h, &found));
    FindClose(h);
    qsort(names, count, sizeof *names, by_name);
    text = test_alloc(t, size);
    for (size_t i = 0; i < count; i++)
        strcat(strcat(text, names[i]), "\n");
    return text;
}

static int cannot_run(const char *program)
{
    skip_because("%s is not run on Windows", program);
    return 127;
}

int test_run(struct test *t, char **out, const char *program, ...)
{
    (void)t;
    (void)out;
    return cannot_run(program);
}

int test_runv(struct test *t, char **out, char *const argv[])
{
    (void)t;
    (void)out;
    return cannot_run(argv[0]);
}

char *test_must_run(struct test *t, const char *program, ...)
{
    cannot_run(program);
    return test_format(t, "%s", "");
}

bool test_have(const char *program)
{
    (void)program;
    return false;
}

double test_now(void)
{
    return (double)GetTickCount64() / 1000;
}
