/* Which arenas are parts of huge pages, by what the kernel says of their mappings. */
#include "tests/support/exti_test.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/arenas.h"

#define ARENA ((size_t)1 << 20)
#define ARENA_OF_3_9 (ARENA / 4)
#define HUGE_PAGE (2 * ARENA)
#define LARGE (16 * ARENA)

enum { FEW = 32, MORE = 8 }; /* arenas */

/* The "hg" in VmFlags of proc_pid_smaps(5): "huge page advise flag". */
static bool huge_pages_are_asked_for(const void *at)
{
    FILE *smaps = fopen("/proc/self/smaps", "re");
    uintptr_t from, to;
    bool within = false, asked = false;
    char line[4096];

    assert_non_null(smaps);
    while (fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            within = from <= (uintptr_t)at && (uintptr_t)at < to;
        else if (within && strncmp(line, "VmFlags:", 8) == 0)
            asked = strstr(line, " hg") != NULL;
    }
    fclose(smaps);
    return asked;
}

static void need_huge_pages(void)
{
    if (test_is_emulated() || access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0)
        skip_because("the system has no huge pages to ask for");
}

static void take(char **arena, int n, size_t size, size_t has)
{
    for (int i = 0; i < n; i++) {
        assert_non_null(arena[i] = pyrt_arena_take(size, has));
        memset(arena[i], 1, size);
    }
}

static void give(char **arena, int n, size_t size)
{
    for (int i = 0; i < n; i++)
        pyrt_arena_give(arena[i], size);
}

static int count_asked(char **arena, int n)
{
    int asked = 0;

    for (int i = 0; i < n; i++)
        asked += huge_pages_are_asked_for(arena[i]);
    return asked;
}

/* ---- tests ---- */

/* CPython's arenas have 1 MB, and 256 KB before 3.10. */
static void arenas_share_huge_pages(void **state)
{
    char *arena[HUGE_PAGE / ARENA_OF_3_9];

    (void)state;
    for (size_t size = ARENA_OF_3_9; size <= ARENA; size *= 4) {
        const int n = (int)(HUGE_PAGE / size);

        take(arena, n, size, 0);
        assert_int_equal((uintptr_t)arena[0] % HUGE_PAGE, 0);
        for (int i = 1; i < n; i++)
            assert_ptr_equal(arena[i], arena[0] + (size_t)i * size);
        give(arena, n, size);
    }
}

static void a_few_arenas_are_of_huge_pages(void **state)
{
    char *arena[FEW + MORE];

    (void)state;
    need_huge_pages();
    take(arena, FEW + MORE, ARENA, 0);
    assert_int_equal(count_asked(arena, FEW), FEW);
    assert_int_equal(count_asked(arena + FEW, MORE), 0);
    give(arena, FEW + MORE, ARENA);
    take(arena, MORE, ARENA, 0);
    assert_int_equal(count_asked(arena, MORE), MORE);
    give(arena, MORE, ARENA);
}

static void a_large_heap_has_huge_pages_among_many(void **state)
{
    char *others[FEW], *arena[2][MORE];

    (void)state;
    need_huge_pages();
    take(others, FEW, ARENA, 0);
    take(arena[0], MORE, ARENA, LARGE - 1);
    take(arena[1], MORE, ARENA, LARGE);
    assert_int_equal(count_asked(arena[0], MORE), 0);
    assert_int_equal(count_asked(arena[1], MORE), MORE);
    give(others, FEW, ARENA);
    give(arena[0], MORE, ARENA);
    give(arena[1], MORE, ARENA);
}

/* Stacks of frames have any size. */
static void what_does_not_fill_a_huge_page_has_none(void **state)
{
    const size_t size = ARENA / 4 * 3;
    char *stack[2];

    (void)state;
    need_huge_pages();
    take(stack, 2, size, 0);
    assert_int_equal(count_asked(stack, 2), 0);
    give(stack, 2, size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arenas_share_huge_pages),
        cmocka_unit_test(a_few_arenas_are_of_huge_pages),
        cmocka_unit_test(a_large_heap_has_huge_pages_among_many),
        cmocka_unit_test(what_does_not_fill_a_huge_page_has_none),
    };

    return cmocka_run_group_tests_name("runtime/arenas", tests, NULL, NULL);
}
