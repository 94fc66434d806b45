/* Toy libraries, built by the compiler, for tests of look-ups; and what ld.so finds for them. */
#ifndef TESTS_UNIT_SEARCH_TOY_H
#define TESTS_UNIT_SEARCH_TOY_H

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "loader/resolve/search_host.h"
#include "tests/support/exti_test.h"

/* Makes the folder dir/name, parents first. */
static inline const char *toy_dir(struct test *t, const char *name)
{
    const char *path = test_path(t, name);

    test_must_run(t, "mkdir", "-p", path, NULL);
    return path;
}

static inline void toy_text(struct test *t, const char *path, const char *text)
{
    test_write(test_path(t, path), text, strlen(text));
}

/* Compiles dir/path.  `flags` are separated by blanks, and a % in them stands for the test's
 * folder.  The library needs everything that it is linked with. */
static inline const char *toy_build(struct test *t, const char *path, const char *kind,
                                    const char *flags)
{
    const char *out = test_path(t, path), *cc = getenv("CC");
    char *copy = test_format(t, "%s", flags), *word, *args[40], *slash;
    char *folder = test_format(t, "%s", out);
    size_t n = 0;
    char *output;

    slash = strrchr(folder, '/');
    *slash = 0;
    test_must_run(t, "mkdir", "-p", folder, NULL);
    toy_text(t, "toy.c", "int toy;");
    args[n++] = test_format(t, "%s", cc && *cc ? cc : "cc");
    args[n++] = test_format(t, "%s", kind);
    args[n++] = "-fPIC";
    args[n++] = "-nostdlib";
    args[n++] = "-Wl,--no-as-needed,--allow-shlib-undefined";
    args[n++] = "-o";
    args[n++] = test_format(t, "%s", out);
    if (!strstr(flags, ".c"))
        args[n++] = test_path(t, "toy.c");
    for (word = strtok(copy, " "); word && n < 39; word = strtok(NULL, " ")) {
        for (char *percent; (percent = strchr(word, '%'));) {
            *percent = 0;
            word = test_format(t, "%s%s%s", word, t->dir, percent + 1);
        }
        args[n++] = word;
    }
    args[n] = NULL;
    if (test_runv(t, &output, args) != 0)
        fail_msg("cannot build %s: %s", path, output);
    return out;
}

static inline const char *toy_lib(struct test *t, const char *path, const char *flags)
{
    return toy_build(t, path, "-shared", flags);
}

/* What ld.so prints about a file's libraries with the given LD_LIBRARY_PATH, or NULL if it cannot
 * be asked. */
static inline char *toy_trace(struct test *t, const char *library_path, const char *file)
{
    char **out = test_alloc(t, sizeof *out), *found = NULL, *loader;

    assert_ok(exti__host_loader(&found, &t->err), &t->err);
    assert_non_null(found);
    loader = test_format(t, "%s", found);
    exti__free(found);

    test_run(t, out, "env", test_format(t, "LD_LIBRARY_PATH=%s", library_path ? library_path : ""),
             "LD_TRACE_LOADED_OBJECTS=1", loader, file, NULL);
    return *out;
}

/* The path in the line "NAME => PATH (ADDRESS)", "" if that is "not found", NULL if there is no
 * such line. */
static inline const char *toy_traced(struct test *t, const char *trace, const char *name)
{
    const char *line = strstr(trace, test_format(t, "\t%s => ", name)), *path, *end;

    if (!line)
        return NULL;
    path = strstr(line, "=> ") + 3;
    if (strncmp(path, "not found", 9) == 0)
        return "";
    end = strstr(path, " (0x");
    return end ? test_format(t, "%.*s", (int)(end - path), path) : NULL;
}

#endif
