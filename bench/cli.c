/* The whole program compared with patchelf, both as run from a shell. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

#define SECTION "extisolate copy against patchelf, whole programs"

enum { SONAME, NEEDED, API_SONAME, FRESH, MORE, KINDS };

static struct samples wall[KINDS], cpu[KINDS];

static void measure_command(int kind, char *const argv[])
{
    struct cost cost = run(argv);

    add_sample(&wall[kind], cost.wall);
    add_sample(&cpu[kind], cost.cpu);
}

static void copy_file(const char *from, const char *to)
{
    char *argv[] = {arg("cp"), arg(from), arg(to), NULL};

    run(argv);
}

/* Two calls, because patchelf 0.14 writes the wrong SONAME if one call makes both edits. */
static void by_patchelf(const struct bench *b, const char *file)
{
    char *soname[] = {arg("patchelf"), arg("--set-soname"), arg("other.so"), arg(file), NULL};
    char *needed[] = {arg("patchelf"), arg("--add-needed"), arg(b->api), arg(file), NULL};

    copy_file(b->extension, file);
    measure_command(SONAME, soname);
    measure_command(NEEDED, needed);
    copy_file(b->api, file);
    measure_command(API_SONAME, soname);
    unlink(file);
}

static void by_extisolate(const struct bench *b, const char *dir, const char *clear)
{
    /* --closure=none, because patchelf edits only these files and not the libraries they need. */
    char *fresh[] = {arg(b->program),    arg("copy"), arg("--closure=none"),
                     arg("--libpython"), arg(b->api), arg(b->extension),
                     arg(dir),           NULL};
    char *more[] = {arg(b->program), arg("copy"), arg(b->extension), arg(dir), NULL};

    measure_command(FRESH, fresh);
    /* Now the context has its libpython, as for every extension after the first. */
    if (system(clear) != 0)
        die("cannot clear %s", dir);
    measure_command(MORE, more);
    remove_tree(dir);
}

static void add_rows(const char *title, struct samples s[KINDS], bool claim)
{
    double patchelf = median(&s[SONAME]) + median(&s[NEEDED]);
    double both = patchelf + median(&s[API_SONAME]);

    add_row(title, "patchelf --set-soname, then --add-needed: the extension", patchelf * 1e3, "ms");
    add_row(title, "extisolate copy: the extension", median(&s[MORE]) * 1e3, "ms");
    add_row(title, "the same and patchelf --set-soname: the libpython", both * 1e3, "ms");
    add_row(title, "extisolate copy, new directory: the extension and the libpython",
            median(&s[FRESH]) * 1e3, "ms");
    if (claim)
        add_claim(title, "patchelf against extisolate, the extension", patchelf / median(&s[MORE]),
                  "x", false, 5);
    else
        add_row(title, "patchelf against extisolate, the extension", patchelf / median(&s[MORE]),
                "x");
    add_row(title, "patchelf against extisolate, both files", both / median(&s[FRESH]), "x");
    add_row(title, "patchelf on the extension alone against extisolate on both files",
            patchelf / median(&s[FRESH]), "x");
}

void bench_cli(const struct bench *all)
{
    struct bench here = *all;
    const struct bench *b = &here;
    char *file, *dir, *clear;
    int rounds = b->quick ? 7 : 41;

    if (system("command -v patchelf >/dev/null 2>&1") != 0) {
        add_skip(SECTION, "patchelf is not installed");
        return;
    }
    here.dir = all->memory;
    file = path_in(b, "patched.so");
    dir = path_in(b, "ctx");
    if (asprintf(&clear, "rm -f '%s'/_multiarray_umath*", dir) < 0)
        die("out of memory");
    for (int i = 0; i < rounds; i++) {
        by_patchelf(b, file);
        by_extisolate(b, dir, clear);
    }
    add_row(SECTION, "in a memory file system (1: yes)", strcmp(all->memory, all->dir) != 0, "");
    add_rows(SECTION ", time on the clock", wall, true);
    add_rows(SECTION ", processor time", cpu, false);
    free(clear);
    free(file);
    free(dir);
}
