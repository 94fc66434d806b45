/* tests/support/exti_test.h for tests on Windows, where no other programs can be run. */
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "tests/support/exti_test.h"

/* So that a program that is ended has said how far it came. */
__attribute__((constructor)) static void say_all_at_once(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
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

    test_end(t);
    return rc;
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

static void CALLBACK end_late(void *unused, BOOLEAN fired)
{
    (void)unused;
    (void)fired;
    TerminateProcess(GetCurrentProcess(), 124);
}

void test_time_limit(unsigned seconds)
{
    static HANDLE timer;

    if (timer)
        DeleteTimerQueueTimer(NULL, timer, INVALID_HANDLE_VALUE);
    timer = NULL;
    if (seconds)
        CreateTimerQueueTimer(&timer, NULL, end_late, NULL, seconds * 1000, 0, WT_EXECUTEONLYONCE);
}
