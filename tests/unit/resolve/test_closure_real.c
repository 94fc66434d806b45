/* Dependency sets of the system's extension modules, compared with what ld.so prints. */
#include "tests/unit/resolve/closure_elf.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The paths that ld.so prints, sorted, one per line; missing libraries appear as "!name". */
static char *traced_paths(struct test *t, char *trace, size_t *count)
{
    char *rows[2000], *line, *all = test_format(t, "%s", "");
    size_t n = 0;

    for (line = strtok(trace, "\n"); line; line = strtok(NULL, "\n")) {
        char *arrow = strstr(line, " => "), *address = strstr(line, " (0x");

        if (*line != '\t' || strncmp(line, "\tlinux-vdso", 11) == 0 ||
            strcmp(line, "\tstatically linked") == 0 || n == ARRAY_SIZE(rows))
            continue;
        if (address)
            *address = 0;
        if (arrow && strcmp(arrow, " => not found") == 0) {
            *arrow = 0;
            rows[n++] = test_format(t, "!%s", line + 1);
        } else {
            rows[n++] = arrow ? arrow + 4 : line + 1;
        }
    }
    qsort(rows, n, sizeof *rows, by_text);
    for (size_t i = 0; i < n; i++)
        if (!i || strcmp(rows[i], rows[i - 1]) != 0)
            all = test_format(t, "%s%s\n", all, rows[i]);
    *count += n;
    return all;
}

static char *closure_paths(struct fixture *f)
{
    char *rows[2000], *all = test_format(f->t, "%s", "");
    size_t n = 0;

    for (size_t i = 0; i < f->g.count; i++) {
        const struct exti_closure_node *node = &f->g.nodes[i];

        if (i && n < ARRAY_SIZE(rows))
            rows[n++] = node->path;
        for (size_t k = 0; k < node->need_count && n < ARRAY_SIZE(rows); k++)
            if (node->needs[k].node == EXTI_NO_NODE)
                rows[n++] = test_format(f->t, "!%s", node->needs[k].name);
    }
    qsort(rows, n, sizeof *rows, by_text);
    for (size_t i = 0; i < n; i++)
        if (!i || strcmp(rows[i], rows[i - 1]) != 0)
            all = test_format(f->t, "%s%s\n", all, rows[i]);
    return all;
}

/* Compares at most EXTI_CLOSURE_MODULES modules, by default 200, evenly spread. */
static void closures_of_real_modules_agree_with_ld_so(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *limit = getenv("EXTI_CLOSURE_MODULES");
    size_t most = limit ? strtoul(limit, NULL, 10) : 200, total = 0, done = 0, lines = 0, wrong = 0;
    char *list, *next;

    test_run(t, &list, "sh", "-c",
             "find /usr/lib/python3* $HOME/.pyenv/versions -name '*.so' -type f 2>/dev/null | sort",
             NULL);
    for (char *p = list; (p = strchr(p, '\n')); p++)
        total++;
    if (total < 20)
        skip_because("there are only %zu extension modules", total);
    for (size_t i = 0; i < total; i++, list = next + 1) {
        char *trace, *theirs, *ours;

        next = strchr(list, '\n');
        *next = 0;
        if (i * most / total == (i + 1) * most / total && most < total)
            continue;
        trace = toy_trace(t, NULL, list);
        if (strstr(trace, "error while loading"))
            continue; /* it is for another machine */
        theirs = traced_paths(t, trace, &lines);
        close_over(f, list, EXTI_CLOSURE_ALL);
        ours = closure_paths(f);
        done++;
        if (strcmp(ours, theirs) != 0) {
            print_error("%s\nld.so:\n%sours:\n%s", list, theirs, ours);
            wrong++;
        }
    }
    print_message("%zu of %zu modules compared, %zu paths, %zu differ\n", done, total, lines,
                  wrong);
    assert_int_equal(wrong, 0);
    assert_true(done > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        closure_test(closures_of_real_modules_agree_with_ld_so),
    };

    return cmocka_run_group_tests_name("closure_real", tests, NULL, NULL);
}
