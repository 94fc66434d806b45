/* Copies every installed extension module of the distribution, or those in the folders given as
 * arguments: checks each copy, reads it with an independent reader, loads it, strips it and loads
 * it again.  EXTI_CORPUS_QUICK skips the parts done by other programs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "tests/corpus/corpus.h"
#include "tests/support/lief.h"

static char tmp[64];        /* the test's own folder */
static char libpython[512]; /* the original */
static char dir[128];       /* of the context */
static uint32_t flags;      /* of the context */
static char api_copy[512];
static char tool_dir[128], tool_command[160];
static struct exti_ctx *ctx;

__attribute__((format(printf, 1, 2))) static const char *text(const char *fmt, ...)
{
    static char buf[4][2048];
    static unsigned next;
    char *p = buf[next++ % 4];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p, sizeof buf[0], fmt, ap);
    va_end(ap);
    return p;
}

static int fail_err(struct corpus_file *f, const char *what, const struct exti_error *err)
{
    return corpus_fail(f, "%s: %s: %s: %s", what, exti_code_name(err->code), err->file,
                       err->message);
}

/* ---- copying and checking ---- */

static void open_worker_ctx(void)
{
    /* Copies each file by itself, so that tools and readers see it without its neighbours. */
    struct exti_ctx_opts opts = {
        .size = sizeof opts, .dir = dir, .api_library = libpython, .closure = EXTI_CLOSURE_NONE};
    struct exti_error err = {0};

    opts.flags = flags;
    if (exti_ctx_open(&ctx, &opts, &err)) {
        printf("not ok open: %s: %s\n", err.file, err.message);
        exit(1);
    }
}

static void copy_module(struct corpus_file *f)
{
    struct exti_error err = {0};
    const char *copy;

    f->copied = !exti_copy(ctx, f->path, &copy, &err);
    if (f->copied)
        snprintf(f->copy, sizeof f->copy, "%s", copy);
    else
        fail_err(f, "copy", &err);
}

static int keep_finding(void *user, const struct exti_error *finding)
{
    struct corpus_file *f = user;

    corpus_fail(f, "0x%llx: %s", (unsigned long long)finding->offset, finding->message);
    return 1;
}

static void verify_one(struct corpus_file *f)
{
    struct exti_error err = {0};

    if (f->copied && exti_verify(f->copy, f->path, keep_finding, f, NULL, &err))
        fail_err(f, "verify", &err);
}

static void phase_copy(const char *phase)
{
    double began = corpus_now();
    struct exti_error err = {0};

    open_worker_ctx();
    corpus->checked = corpus->count;
    for (size_t i = 0; i < corpus->count; i++)
        copy_module(&corpus->files[i]);
    if (exti_ctx_close(ctx, &err))
        fail_err(&corpus->files[0], "close", &err);
    ctx = NULL;
    corpus_report(phase, began);
}

static void find_api_copy(void)
{
    struct exti_copy_info info = {.size = sizeof info};
    struct exti_dir *d = NULL;

    for (size_t i = 0; !exti_dir_read(dir, &d, NULL) && i < exti_dir_count(d); i++) {
        exti_dir_copy(d, i, &info);
        if (info.is_api)
            snprintf(api_copy, sizeof api_copy, "%s", info.copy);
        exti_dir_free(d);
        if (info.is_api)
            return;
    }
}

static int report_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    printf("# %s: %s\n", finding->file, finding->message);
    return 0;
}

static void verify_dir(const char *phase)
{
    double began = corpus_now();
    struct exti_error err = {0};
    size_t findings = 0;

    if (exti_dir_verify(dir, report_finding, NULL, &findings, &err) || findings) {
        printf("not ok %s: %zu findings %s\n", phase, findings, err.message);
        corpus->failures++;
    } else {
        printf("ok %s (%.1f s)\n", phase, corpus_now() - began);
    }
}

/* ---- the independent reader ---- */

/* Gives LIEF's description of the file, with "libpython" for either libpython. */
static bool read_facts(const char *path, char *needed, size_t cap, char *id, size_t id_cap)
{
    char seen[4096], *save = NULL;
    size_t n = 0;

    needed[0] = 0;
    if (!lief_read(path, id, id_cap, seen, sizeof seen))
        return false;
    for (char *name = strtok_r(seen, "\n", &save); name; name = strtok_r(NULL, "\n", &save)) {
        bool api =
            strcmp(name, base_name(libpython)) == 0 || strcmp(name, base_name(api_copy)) == 0;

        if (n < cap)
            n += (size_t)snprintf(needed + n, cap - n, "%s\n", api ? "libpython" : name);
    }
    return true;
}

static void read_one(struct corpus_file *f)
{
    char before[4096], after[4096], expected[4200], id[256];

    if (!f->copied)
        return;
    if (!read_facts(f->path, before, sizeof before, id, sizeof id) ||
        !read_facts(f->copy, after, sizeof after, id, sizeof id)) {
        corpus_fail(f, "LIEF cannot read it");
        return;
    }
    snprintf(expected, sizeof expected, "%s%s", strstr(before, "libpython\n") ? "" : "libpython\n",
             before);
    if (strcmp(after, expected) != 0)
        corpus_fail(f, "needs \"%s\" instead of \"%s\"", after, expected);
    else if (strcmp(id, base_name(f->copy)) != 0)
        corpus_fail(f, "its id is \"%s\" instead of \"%s\"", id, base_name(f->copy));
}

static void phase_read(const char *phase)
{
    if (getenv("EXTI_CORPUS_QUICK"))
        return;
    if (lief_found())
        corpus_phase(phase, NULL, read_one);
    else
        printf("skip %s: LIEF is not installed (package liblief-dev)\n", phase);
}

/* ---- loading ---- */

static void preload_original(void)
{
    if (!dlopen(libpython, RTLD_NOW | RTLD_GLOBAL)) {
        printf("not ok preload: %s\n", dlerror());
        exit(1);
    }
}

static int load_original(struct corpus_file *f)
{
    if (dlopen(f->path, RTLD_NOW | RTLD_LOCAL))
        return 0;
    snprintf(f->text, sizeof f->text, "%s", dlerror());
    return 1;
}

static void load_original_one(struct corpus_file *f)
{
    f->original_loads = corpus_isolated(f, load_original) == 0;
    f->failed = 0;
}

static void preload_copy(void)
{
    struct exti_module *api;
    struct exti_error err = {0};

    open_worker_ctx();
    if (exti_api(ctx, &api, &err)) {
        printf("not ok preload: %s: %s\n", err.file, err.message);
        exit(1);
    }
}

static int load_copy(struct corpus_file *f)
{
    struct exti_error err = {0};
    struct exti_module *m;
    struct exti_proof proof = {.size = sizeof proof};

    if (exti_load(ctx, f->path, &m, &err))
        return fail_err(f, "load", &err);
    if (strcmp(exti_module_copy(m), f->copy) != 0)
        return corpus_fail(f, "is loaded from %s", exti_module_copy(m));
    if (exti_ctx_prove(ctx, keep_finding, f, &proof, &err))
        return fail_err(f, "prove", &err);
    return proof.leaks != 0;
}

static void load_copy_one(struct corpus_file *f)
{
    if (f->copied && corpus_isolated(f, load_copy) && !f->original_loads)
        f->failed = 0;
}

/* ---- other tools on the copies ---- */

static int load_stripped(struct corpus_file *f)
{
    const char *path = text("%s/%s", tool_dir, base_name(f->copy));

    return dlopen(path, RTLD_NOW | RTLD_LOCAL) ? 0 : corpus_fail(f, "%s", dlerror());
}

static int run_tool(struct corpus_file *f, const char *in)
{
    setenv("IN", in, 1);
    setenv("OUT", text("%s/%s", tool_dir, base_name(f->copy)), 1);
    return system(tool_command) ? corpus_fail(f, "%s ended badly", tool_command) : 0;
}

static int load_stripped_original(struct corpus_file *f)
{
    preload_original();
    return load_stripped(f);
}

/* A tool may break even the original, if other tools have edited it.  If it breaks the copy with
 * the same message, the copy is not to blame. */
static void strip_one(struct corpus_file *f)
{
    char said[sizeof f->text];

    if (!f->copied || !f->original_loads)
        return;
    if (!run_tool(f, f->copy))
        corpus_isolated(f, load_stripped);
    if (f->failed) {
        memcpy(said, f->text, sizeof said);
        f->failed = 0;
        if (!run_tool(f, f->path))
            corpus_isolated(f, load_stripped_original);
        f->failed = !f->failed || strcmp(said, f->text) != 0;
        if (f->failed)
            memcpy(f->text, said, sizeof said);
        else
            printf("# breaks the original too: %s\n", f->path);
    }
    unlink(text("%s/%s", tool_dir, base_name(f->copy)));
}

static void strip_all(const char *name, const char *program, const char *command)
{
    if (system(text("command -v %s >/dev/null 2>&1", program)) != 0) {
        printf("skip %s: no %s here\n", name, program);
        return;
    }
    snprintf(tool_dir, sizeof tool_dir, "%s/%s", tmp, name);
    snprintf(tool_command, sizeof tool_command, "%s", command);
    if (mkdir(tool_dir, 0700) || symlink(api_copy, text("%s/%s", tool_dir, base_name(api_copy)))) {
        perror(tool_dir);
        exit(1);
    }
    corpus_phase(name, NULL, strip_one);
}

/* Gives eu-elflint's messages about the copy that it did not print for the original. */
static void lint_one(struct corpus_file *f)
{
    char command[2600];
    FILE *p;
    size_t n;

    if (!f->copied || (size_t)(f - corpus->files) % (1 + corpus->count / 100))
        return;
    snprintf(command, sizeof command, "tests/corpus/elflint.bash \"%s\" \"%s\"", f->path, f->copy);
    p = popen(command, "r");
    n = p ? fread(f->text, 1, sizeof f->text - 1, p) : 0;
    f->text[n] = 0;
    f->failed = !p || pclose(p) || n > 0;
}

/* ---- all of it ---- */

/* Tools and the system's loader want the whole file. */
static void in_context(const char *kind, uint32_t ctx_flags)
{
    flags = ctx_flags | EXTI_CTX_FULL_COPIES;
    snprintf(dir, sizeof dir, "%s/%s", tmp, kind);
    phase_copy(text("%s_copy", kind));
    find_api_copy();
    corpus_phase(text("%s_verify", kind), NULL, verify_one);
    verify_dir(text("%s_verify_directory", kind));
    phase_read(text("%s_read_by_lief", kind));
    corpus_phase(text("%s_load_where_the_original_loads", kind), preload_copy, load_copy_one);
}

/* For tools that read headers and tables, the same file. */
static void lean(void)
{
    flags = 0;
    snprintf(dir, sizeof dir, "%s/lean", tmp);
    phase_copy("lean_copy");
    find_api_copy();
    verify_dir("lean_verify_directory");
    phase_read("lean_read_by_lief");
}

static void other_tools(void)
{
    if (getenv("EXTI_CORPUS_QUICK")) {
        printf("skip other_tools: EXTI_CORPUS_QUICK is set\n");
        return;
    }
    strip_all("strip", "strip", "strip -o \"$OUT\" \"$IN\"");
    strip_all("strip_debug", "strip", "strip -g -o \"$OUT\" \"$IN\"");
    strip_all("objcopy", "objcopy", "objcopy \"$IN\" \"$OUT\"");
    strip_all("eu_strip", "eu-strip", "eu-strip -o \"$OUT\" \"$IN\"");
    strip_all("llvm_strip", "llvm-strip", "llvm-strip -o \"$OUT\" \"$IN\"");
    strip_all("llvm_objcopy", "llvm-objcopy", "llvm-objcopy \"$IN\" \"$OUT\"");
    if (system("command -v eu-elflint >/dev/null 2>&1") == 0)
        corpus_phase("elflint_says_no_more_than_of_the_original", NULL, lint_one);
    else
        printf("skip elflint: eu-elflint is not installed (package elfutils)\n");
}

static void count_loading(void)
{
    size_t n = 0;

    for (size_t i = 0; i < corpus->count; i++)
        n += (size_t)corpus->files[i].original_loads;
    printf("# %zu of %zu originals load\n", n, corpus->count);
}

int main(int argc, char **argv)
{
    const char *given = getenv("EXTI_LIBPYTHON");
    size_t fewest = argc > 1 ? 1 : 200;

    corpus_start();
    if (argc < 2)
        /* Modules whose libraries use the API load only with copies of these: tests/packages tests
         * that. */
        corpus_add("find /usr/lib/python3 /usr/lib/python3.[0-9]* -name '*.so' -type f |"
                   " grep -vE '/(torch|functorch|PySide2|shiboken2|pysam)/' | sort");
    for (int i = 1; i < argc; i++)
        corpus_add(text("find '%s' -name '*.cpython-*.so' -o -name '*.abi3.so'", argv[i]));
    if (given) {
        snprintf(libpython, sizeof libpython, "%s", given);
    } else {
        /* A user's PATH may lack /sbin, and so ldconfig. */
        FILE *p = popen("PATH=$PATH:/sbin; ldconfig -p | "
                        "sed -n 's/.*libpython3\\.[0-9]*\\.so\\.1\\.0.* => //p'",
                        "r");

        if (!p || fscanf(p, "%511s", libpython) != 1)
            libpython[0] = 0;
        if (p)
            pclose(p);
    }
    if (!libpython[0] || corpus->count < fewest) {
        printf("skip modules: %zu extension modules and libpython \"%s\"; needs %zu (make deps)\n",
               corpus->count, libpython, fewest);
        return 0;
    }
    snprintf(tmp, sizeof tmp, "/tmp/exti-corpus.XXXXXX");
    if (!mkdtemp(tmp)) {
        perror(tmp);
        return 1;
    }
    printf("# %zu extension modules, %s\n", corpus->count, libpython);
    corpus_phase("originals", preload_original, load_original_one);
    count_loading();
    in_context("plain", 0);
    other_tools();
    lean();
    in_context("renamed", EXTI_CTX_RENAME);
    if (system(text("rm -rf '%s'", tmp)) != 0)
        return 1;
    return corpus->failures != 0;
}
