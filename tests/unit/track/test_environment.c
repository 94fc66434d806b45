/* The environment of a context, held against the C library's functions on the process's. */
#include "tests/support/exti_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "loader/track/environment.h"

extern char **environ;

static struct exti_environment *begin(void)
{
    struct exti_environment *e = NULL;

    assert_int_equal(exti__environment_new(&e, NULL), 0);
    return e;
}

static void assert_same(const char *ours, const char *theirs)
{
    assert_int_equal(!ours, !theirs);
    if (ours)
        assert_string_equal(ours, theirs);
}

static size_t count(char **list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static void begins_as_the_process_has_it(void **state)
{
    struct exti_environment *e;

    (void)state;
    setenv("EXTI_A", "1=2", 1);
    e = begin();
    assert_int_equal(count(e->list), count(environ));
    for (size_t i = 0; environ[i]; i++)
        assert_string_equal(e->list[i], environ[i]);
    setenv("EXTI_A", "later", 1);
    assert_string_equal(exti__environment_get(e, "EXTI_A"), "1=2");
    unsetenv("EXTI_A");
    exti__environment_free(e);
}

/* One of a few names, some of which the functions refuse. */
static const char *pick_name(unsigned n)
{
    static const char *const names[] = {"EXTI_A", "EXTI_AB",  "EXTI_", "E",
                                        "",       "EXTI_A=B", "EXTI_C"};

    return names[n % (sizeof names / sizeof *names)];
}

static void step(struct exti_environment *e, unsigned r)
{
    static char entries[4][32] = {"EXTI_A=put", "EXTI_P=put", "EXTI_C", "EXTI_AB="};
    static const char *const values[] = {"", "x", "a=b", "long long long long long"};
    const char *name = pick_name(r >> 4), *value = values[(r >> 8) % 4];
    int ours, theirs, error;

    errno = 0;
    switch (r % 8) {
    case 0:
        ours = exti__environment_unset(e, name);
        error = errno;
        errno = 0;
        theirs = unsetenv(name);
        break;
    case 1:
        ours = exti__environment_put(e, entries[(r >> 8) % 4]);
        error = errno;
        errno = 0;
        theirs = putenv(entries[(r >> 8) % 4]);
        break;
    default:
        ours = exti__environment_set(e, name, value, (int)(r >> 12) % 2);
        error = errno;
        errno = 0;
        theirs = setenv(name, value, (int)(r >> 12) % 2);
    }
    assert_int_equal(ours, theirs);
    assert_int_equal(error, errno);
}

static void does_what_the_c_library_does(void **state)
{
    struct exti_environment *e = begin();
    unsigned r = 1;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        r = r * 1103515245u + 12345u;
        if (i == 10000) {
            assert_int_equal(exti__environment_clear(e), 0);
            environ = NULL;
            assert_null(exti__environment_get(e, "EXTI_A"));
        }
        step(e, r >> 8);
        for (unsigned n = 0; n < 7; n++)
            assert_same(exti__environment_get(e, pick_name(n)), getenv(pick_name(n)));
        assert_int_equal(count(e->list), count(environ));
    }
    exti__environment_free(e);
}

static void a_list_of_the_programs_own_is_read_and_not_written(void **state)
{
    static char one[] = "EXTI_OWN=1", other[] = "EXTI_OTHER=2";
    char *own[] = {one, other, NULL};
    struct exti_environment *e = begin();

    (void)state;
    e->list = own;
    assert_string_equal(exti__environment_get(e, "EXTI_OTHER"), "2");
    assert_int_equal(exti__environment_set(e, "EXTI_NEW", "3", 1), 0);
    assert_true(e->list != own && !own[2]);
    assert_string_equal(exti__environment_get(e, "EXTI_OWN"), "1");
    assert_string_equal(exti__environment_get(e, "EXTI_NEW"), "3");
    exti__environment_free(e);
}

/* Each entry is as long as its text, so that a sanitizer sees what is read beyond. */
static char **copy_list(char *const *entries)
{
    size_t count = 0;
    char **list;

    while (entries[count])
        count++;
    list = calloc(count + 1, sizeof *list);
    assert_non_null(list);
    for (size_t i = 0; i < count; i++)
        assert_non_null(list[i] = strdup(entries[i]));
    return list;
}

static void free_list(char **list)
{
    for (size_t i = 0; list[i]; i++)
        free(list[i]);
    free(list);
}

/* Programs may make an `environ` of whatever they like. */
static void finds_in_any_list_what_the_c_library_finds(void **state)
{
    static char entries[][16] = {
        "",      "E",      "EX",        "A=",      "E=1",       "=",         "==1",     "EX=2",
        "EX=no", "EXTI_A", "EXTI_AB=3", "A=later", "EXTI_A=4=", "EXTI_A=no", "EXTI_=5", "E=no"};
    static const char *const names[] = {
        "E", "EX", "EXT", "A", "=", "==", "", "B", "EXTI_A", "EXTI_AB", "EXTI_A=", "EXTI_ABC"};
    enum { COUNT = sizeof entries / sizeof *entries, NAMES = sizeof names / sizeof *names };
    struct exti_environment *e = begin();
    char **own = e->list, **before = environ, *list[COUNT + 1];
    const char *theirs[NAMES];

    (void)state;
    for (size_t from = 0; from < COUNT; from++)
        for (size_t count = 0; count <= COUNT - from; count++) {
            for (size_t i = 0; i < count; i++)
                list[i] = entries[from + i];
            list[count] = NULL;
            environ = list;
            for (size_t n = 0; n < NAMES; n++)
                theirs[n] = getenv(names[n]);
            environ = before; /* where a failed assertion leaves it */
            e->list = copy_list(list);
            for (size_t n = 0; n < NAMES; n++)
                assert_same(exti__environment_get(e, names[n]), theirs[n]);
            free_list(e->list);
        }
    e->list = own;
    exti__environment_free(e);
}

/* A program may set a variable in turns for ever. */
static void values_that_come_again_take_no_more_memory(void **state)
{
    struct exti_environment *e = begin();
    const char *first, *second;

    (void)state;
    assert_int_equal(exti__environment_set(e, "EXTI_A", "1", 1), 0);
    first = exti__environment_get(e, "EXTI_A");
    assert_int_equal(exti__environment_set(e, "EXTI_A", "2", 1), 0);
    second = exti__environment_get(e, "EXTI_A");
    assert_string_equal(first, "1");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(exti__environment_set(e, "EXTI_A", i % 2 ? "2" : "1", 1), 0);
        assert_ptr_equal(exti__environment_get(e, "EXTI_A"), i % 2 ? second : first);
        assert_int_equal(exti__environment_unset(e, "EXTI_A"), 0);
    }
    exti__environment_free(e);
}

static void without_memory_nothing_changes(void **state)
{
    struct exti_environment *e = NULL;
    size_t before;
    int rc;

    (void)state;
    for (long n = 0; !e; n++) {
        exti__mem_fail_after(n);
        rc = exti__environment_new(&e, NULL);
        exti__mem_fail_after(-1);
        assert_int_equal(rc, e ? 0 : EXTI_E_NOMEM);
    }
    assert_int_equal(exti__environment_clear(e), 0);
    for (long n = 0, done = 0; !done; n++) {
        before = count(e->list);
        exti__mem_fail_after(n);
        errno = 0;
        done = exti__environment_set(e, "EXTI_A", "1", 1) == 0;
        exti__mem_fail_after(-1);
        assert_int_equal(errno, done ? 0 : ENOMEM);
        assert_int_equal(count(e->list), before + (size_t)done);
        assert_true(n < 3);
    }
    exti__environment_free(e);
}

static _Atomic int no_more;

static void *change(void *arg)
{
    struct exti_environment *e = arg;

    while (!no_more) {
        exti__environment_unset(e, "EXTI_A");
        exti__environment_set(e, "EXTI_A", "1", 1);
        exti__environment_set(e, "EXTI_B", "2", 0);
        exti__environment_unset(e, "EXTI_B");
    }
    return NULL;
}

/* In a forked child. */
static bool can_write(struct exti_environment *e)
{
    bool can;

    alarm(20); /* where the lock stayed taken */
    can = exti__environment_set(e, "EXTI_A", "child", 1) == 0 &&
          strcmp(exti__environment_get(e, "EXTI_A"), "child") == 0;
    exti__environment_free(e);
    return can;
}

/* An entry that stays is found whatever moves it. */
static void readers_find_what_stays_while_others_write(void **state)
{
    struct exti_environment *e;
    pthread_t writers[2];

    (void)state;
    assert_int_equal(exti__environment_survive_forks(), 0);
    setenv("EXTI_A", "0", 1);
    setenv("EXTI_STAYS", "here", 1);
    e = begin();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, change, e), 0);
    for (int i = 0; i < 1000000; i++)
        assert_string_equal(exti__environment_get(e, "EXTI_STAYS"), "here");
    for (int i = 0, status; i < 200; i++) {
        const pid_t pid = fork();

        assert_true(pid >= 0);
        if (!pid) {
            _exit(!can_write(e));
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    no_more = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    exti__environment_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_as_the_process_has_it),
        cmocka_unit_test(a_list_of_the_programs_own_is_read_and_not_written),
        cmocka_unit_test(finds_in_any_list_what_the_c_library_finds),
        cmocka_unit_test(values_that_come_again_take_no_more_memory),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(readers_find_what_stays_while_others_write),
        cmocka_unit_test(does_what_the_c_library_does),
    };

    return cmocka_run_group_tests_name("track/environment", tests, NULL, NULL);
}
