/* The whole program against patchelf, as it would be used from a shell. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"

#define SECTION "extisolate copy against patchelf, as programs"

/* patchelf 0.14 writes the wrong SONAME when both edits are asked for in one call. */
static double two_patchelf_calls(const struct bench *b, const char *file)
{
    char *soname[] = {arg("patchelf"), arg("--set-soname"), arg("numpy-bench.so"), arg(file), NULL};
    char *needed[] = {arg("patchelf"), arg("--add-needed"), arg(b->api), arg(file), NULL};

    return run(soname) + run(needed);
}

static void copy_file(const char *from, const char *to)
{
    char *cp[] = {arg("cp"), arg(from), arg(to), NULL};

    run(cp);
}

static bool have_patchelf(void)
{
    return system("command -v patchelf >/dev/null 2>&1") == 0;
}

void bench_cli(const struct bench *b)
{
    static struct samples patchelf, fresh, told, more;
    char *file = path_in(b, "patched.so"), *dir = path_in(b, "ctx");
    char *plain[] = {arg(b->program), arg("copy"), arg(b->extension), dir, NULL};
    char *with_api[] = {arg(b->program),
                        arg("copy"),
                        arg("--libpython"),
                        arg(b->api),
                        arg(b->extension),
                        dir,
                        NULL};
    int rounds = b->quick ? 7 : 41;
    char *clear;

    if (asprintf(&clear, "rm -f '%s'/_multiarray_umath*", dir) < 0)
        die("out of memory");
    if (!have_patchelf()) {
        add_skip(SECTION, "patchelf is not installed");
        goto out;
    }
    for (int i = 0; i < rounds; i++) {
        copy_file(b->extension, file);
        add_sample(&patchelf, two_patchelf_calls(b, file));
        unlink(file);
        add_sample(&fresh, run(plain));
        remove_tree(dir);
        add_sample(&told, run(with_api));
        /* Again, as for the second and every later extension of a context. */
        if (system(clear) != 0)
            die("cannot clear %s", dir);
        add_sample(&more, run(plain));
        remove_tree(dir);
    }
    add_row(SECTION, "patchelf --set-soname, then --add-needed, on a fresh copy",
            median(&patchelf) * 1e3, "ms");
    add_row(SECTION, "extisolate copy, new directory, libpython found and copied too",
            median(&fresh) * 1e3, "ms");
    add_row(SECTION, "extisolate copy --libpython, new directory", median(&told) * 1e3, "ms");
    add_row(SECTION, "extisolate copy, directory that has its libpython", median(&more) * 1e3,
            "ms");
    add_claim(SECTION, "patchelf against extisolate copy, new directory",
              median(&patchelf) / median(&fresh), "x", false, 5);
    add_row(SECTION, "patchelf against extisolate copy --libpython, new directory",
            median(&patchelf) / median(&told), "x");
    add_row(SECTION, "patchelf against extisolate copy, file for file",
            median(&patchelf) / median(&more), "x");
out:
    free(clear);
    free(file);
    free(dir);
}
