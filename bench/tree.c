/* All extension modules of the distribution: copy-tree compared with plain copies of the same
 * files, and with three runs of patchelf per module. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"

#define SECTION "extisolate copy-tree of the distribution's extension modules"
#define QUICK 20 /* a quick run measures patchelf on one of this many modules */

enum { TREE, ALONE, PLAIN, PLAIN_MANY, PATCHELF, KINDS };

struct tree {
    const struct bench *b;
    char *modules;      /* a folder with links to all modules */
    char *ctx, *copies; /* the context directory, and plain copies */
    char *sources;      /* a list of the copied files */
    const char *disk;   /* a folder in which nothing is deleted during measurements */
    size_t count;       /* number of modules */
};

static struct samples wall[KINDS], cpu[KINDS];

static void measure_command(int kind, char *const argv[])
{
    const struct cost cost = run(argv);

    add_sample(&wall[kind], cost.wall);
    add_sample(&cpu[kind], cost.cpu);
}

static void copy_tree(const struct tree *t, int kind, const char *closure, char *ctx)
{
    char *argv[] = {arg(t->b->program),
                    arg("copy-tree"),
                    arg("--libpython"),
                    arg(t->b->api),
                    arg(closure),
                    t->modules,
                    ctx,
                    NULL};

    measure_command(kind, argv);
}

/* Lists the sources of the files that copy-tree has just copied. */
static void list_sources(const struct tree *t)
{
    char *command;

    if (asprintf(&command,
                 "'%s' -c 'import json, sys\n"
                 "m = json.load(open(sys.argv[1]))\n"
                 "for e in m[\"copies\"] + [m[\"api\"]]: print(e[\"source\"], end=\"\\0\")' "
                 "'%s/0/manifest.json' >'%s'",
                 t->b->python, t->ctx, t->sources) < 0 ||
        system(command) != 0)
        die("cannot list what has been copied");
    free(command);
}

/* Makes the folders beforehand: parallel processes of cp --parents would collide in making them. */
static void make_folders(const struct tree *t)
{
    char *command;

    if (asprintf(&command,
                 "mkdir '%s' && cd '%s' && xargs -0 dirname -z <'%s' | sort -zu | "
                 "sed -z 's,^/,,' | xargs -0 mkdir -p",
                 t->copies, t->copies, t->sources) < 0 ||
        system(command) != 0)
        die("cannot make the folders of what is to be copied");
    free(command);
}

static void copy_plainly(const struct tree *t)
{
    char *one, *many;
    char *shell[] = {arg("sh"), arg("-c"), NULL, NULL};

    if (asprintf(&one, "mkdir '%s' && xargs -0 cp --parents -t '%s' <'%s'", t->copies, t->copies,
                 t->sources) < 0 ||
        asprintf(&many, "xargs -0 -n 64 -P \"$(nproc)\" cp --parents -t '%s' <'%s'", t->copies,
                 t->sources) < 0)
        die("out of memory");
    list_sources(t);
    remove_tree(t->copies);
    shell[2] = one;
    measure_command(PLAIN, shell);
    remove_tree(t->copies);
    make_folders(t);
    shell[2] = many;
    measure_command(PLAIN_MANY, shell);
    remove_tree(t->copies);
    free(one);
    free(many);
}

static void add_cost(struct cost *sum, struct cost one)
{
    sum->wall += one.wall;
    sum->cpu += one.cpu;
}

static void patch_one(const char *module, char *file, struct cost *sum)
{
    char *copy[] = {arg("cp"), arg(module), file, NULL};
    char *soname[] = {arg("patchelf"), arg("--set-soname"), arg("other.so"), file, NULL};
    char *needed[] = {arg("patchelf"), arg("--add-needed"), arg("libpython.so"), file, NULL};
    char *rpath[] = {arg("patchelf"), arg("--set-rpath"), arg("$ORIGIN"), file, NULL};

    run(copy);
    add_cost(sum, run(soname));
    add_cost(sum, run(needed));
    add_cost(sum, run(rpath));
}

/* Opens a list of the modules, one per line; the caller closes it. */
static FILE *list_modules(const struct tree *t)
{
    char *command;
    FILE *f;

    if (asprintf(&command,
                 "find -L '%s' -name '*.cpython-*.so' -o -name '*.abi3.so' | LC_ALL=C sort",
                 t->modules) < 0)
        die("out of memory");
    f = popen(command, "r");
    free(command);
    if (!f)
        die("cannot list the modules: %s", strerror(errno));
    return f;
}

static void copy_alone(const struct tree *t, size_t round)
{
    char *ctx;

    if (asprintf(&ctx, "%s/alone-%zu", t->disk, round) < 0)
        die("out of memory");
    copy_tree(t, ALONE, "--closure=none", ctx);
    free(ctx);
}

/* A quick run measures a different sample in each round and extrapolates. */
static void patch_modules(const struct tree *t, size_t round)
{
    const size_t step = t->b->quick ? QUICK : 1;
    char path[4096], *file;
    FILE *f = list_modules(t);
    struct cost sum = {0};
    size_t n = 0;

    if (asprintf(&file, "%s/patched.so", t->disk) < 0)
        die("out of memory");
    for (size_t i = 0; fgets(path, sizeof path, f); i++) {
        path[strcspn(path, "\n")] = '\0';
        if (i % step != round % step)
            continue;
        patch_one(path, file, &sum);
        n++;
    }
    pclose(f);
    free(file);
    if (!n)
        return;
    add_sample(&wall[PATCHELF], sum.wall / (double)n * (double)t->count);
    add_sample(&cpu[PATCHELF], sum.cpu / (double)n * (double)t->count);
}

/* Makes links to the system's folders of modules. */
static bool find_modules(struct tree *t)
{
    char path[4096], *command;
    FILE *f;

    if (asprintf(
            &command,
            "mkdir '%s' && ln -s /usr/lib/python3/dist-packages '%s'/packages && ln -s \"$('%s' "
            "-c 'import sysconfig; print(sysconfig.get_path(\"platstdlib\"))')\"/lib-dynload "
            "'%s'/dynload",
            t->modules, t->modules, t->b->python, t->modules) < 0 ||
        system(command) != 0)
        return false;
    free(command);
    f = list_modules(t);
    while (fgets(path, sizeof path, f))
        t->count++;
    pclose(f);
    return t->count > 0;
}

static void add_ratio(const char *title, const char *what, double ratio, bool claim, bool at_most,
                      double limit)
{
    if (claim)
        add_claim(title, what, ratio, "x", at_most, limit);
    else
        add_row(title, what, ratio, "x");
}

static void add_rows(const char *title, struct samples s[KINDS], bool patchelf, bool claim)
{
    const double tree = median(&s[TREE]), plain = median(&s[PLAIN]), alone = median(&s[ALONE]);

    add_row(title, "copy-tree, with the libraries they need", tree * 1e3, "ms");
    add_row(title, "cp of the same files", plain * 1e3, "ms");
    add_row(title, "the same by as many processes as processors, into folders",
            median(&s[PLAIN_MANY]) * 1e3, "ms");
    add_ratio(title, "copy-tree against cp", tree / plain, claim, true, 1.3);
    add_row(title, "copy-tree --closure=none, the modules alone", alone * 1e3, "ms");
    if (!patchelf)
        return;
    add_row(title, "three runs of patchelf on each module", median(&s[PATCHELF]) * 1e3, "ms");
    add_ratio(title, "patchelf against copy-tree --closure=none", median(&s[PATCHELF]) / alone,
              claim, false, 20);
}

void bench_tree(const struct bench *all)
{
    struct bench here = *all;
    const struct bench *b = &here;
    struct tree t = {.b = b, .disk = all->dir};
    const bool patchelf = system("command -v patchelf >/dev/null 2>&1") == 0;
    const size_t rounds = b->quick ? 3 : 7;

    here.dir = all->memory;
    t.modules = path_in(b, "modules");
    t.ctx = path_in(b, "tree");
    t.copies = path_in(b, "plain");
    t.sources = path_in(b, "sources");
    if (!find_modules(&t)) {
        add_skip(SECTION, "there are none");
        return;
    }
    for (size_t i = 0; i <= rounds; i++) {
        if (i == 1) /* the first round only reads the files into the cache */
            for (size_t k = 0; k < KINDS; k++)
                wall[k].n = cpu[k].n = 0;
        sync(); /* no measurement pays for earlier writes */
        copy_alone(&t, i);
        sync();
        if (patchelf)
            patch_modules(&t, i);
        remove_tree(t.ctx);
        copy_tree(&t, TREE, "--closure=all", t.ctx);
        copy_plainly(&t);
    }
    add_row(SECTION, "modules", (double)t.count, "");
    add_row(SECTION, "with libraries: copied to a memory file system (1: yes)",
            strcmp(all->memory, all->dir) != 0, "");
    add_rows(SECTION ", time on the clock", wall, patchelf, true);
    add_rows(SECTION ", processor time", cpu, patchelf, false);
    remove_tree(t.ctx);
    remove_tree(t.modules);
    free(t.modules);
    free(t.ctx);
    free(t.copies);
    free(t.sources);
}
