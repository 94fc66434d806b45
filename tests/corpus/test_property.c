/* Makes random sequences of edits on a library that tests itself, linked by several linkers with
 * many options.  After each edit the result is read, linted, loaded and run.  EXTI_SEED and
 * EXTI_ROUNDS change the run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "tests/corpus/corpus.h"

enum { MAX_NEEDED = 12 };

/* The expected contents of the file. */
struct model {
    char id[64];
    char needed[MAX_NEEDED][32];
    int needed_count;
    char extra[3][16]; /* the names of self_extra_* */
    int refused, edits;
};

static char tmp[64];
static char build[1024]; /* how the library was linked, for messages */
static char history[2048];
static unsigned long long state;

static unsigned rnd(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 33) % n);
}

__attribute__((format(printf, 1, 2))) static const char *text(const char *fmt, ...)
{
    static char buf[8][4096];
    static unsigned next;
    char *p = buf[next++ % 8];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(p, sizeof buf[0], fmt, ap);
    va_end(ap);
    return p;
}

static int quiet;

static int bad(const char *what, const char *detail)
{
    if (!quiet)
        printf("# %s: %s\n# %s\n# after:%s\n", what, detail, build, history);
    fflush(stdout);
    return 1;
}

static const char *output_of(const char *command)
{
    static char out[1 << 16];
    FILE *f = popen(command, "r");
    size_t n = f ? fread(out, 1, sizeof out - 1, f) : 0;

    out[n] = 0;
    if (f)
        pclose(f);
    return out;
}

/* ---- building ---- */

/* The same option for both linkers; "" for none. */
static const char *const wishes[][4] = {
    {"", "-Wl,--hash-style=sysv", "-Wl,--hash-style=gnu", "-Wl,--hash-style=both"},
    {"", "-Wl,-z,now", "-Wl,-z,norelro", "-Wl,-z,lazy"},
    {"", "-Wl,-z,separate-code", "-Wl,-z,noseparate-code", ""},
    {"", "-Wl,--build-id=none", "-Wl,--build-id=sha1", "-Wl,--build-id=md5"},
    {"", "-Wl,-rpath,/some/where", "-Wl,-rpath,$ORIGIN/../x", ""},
    {"", "-Wl,-z,max-page-size=0x10000", "-Wl,-z,max-page-size=0x200000", ""},
    {"", "-s", "-Wl,--gc-sections", "-Wl,--emit-relocs"},
    {"", "-Wl,-z,nodelete", "-Wl,-Bsymbolic", "-Wl,-z,execstack"},
};
static const char *const linkers[] = {"bfd", "gold", "lld", "mold"};

static int have_linker(const char *name)
{
    return system(text("command -v ld.%s >/dev/null 2>&1", name)) == 0;
}

static const char *linker_option(const char *name)
{
    if (strcmp(name, "lld") != 0)
        return text("g++ -fuse-ld=%s", name);
    return "clang++ -fuse-ld=lld";
}

/* Links $tmp/0.so again and describes it in the model. */
static int link_one(struct model *m, const char *linker)
{
    char flags[600] = "";

    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        const char *wish = wishes[i][rnd(4)];

        if (*wish)
            snprintf(flags + strlen(flags), sizeof flags - strlen(flags), " '%s'", wish);
    }
    *m = (struct model){.extra = {"self_extra_1", "self_extra_2", "self_extra_3"}};
    if (rnd(2))
        strcpy(m->id, "libself.so.1");
    snprintf(build, sizeof build, "%s -shared %s/self.o -o %s/0.so %s%s", linker_option(linker),
             tmp, tmp, m->id[0] ? "-Wl,-soname,libself.so.1" : "", flags);
    return system(text("%s 2>/dev/null", build));
}

/* Puts the initial needed libraries into the model. */
static void read_needed(struct model *m)
{
    FILE *f =
        popen(text("readelf -dW %s/0.so | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p'", tmp), "r");

    while (f && m->needed_count < 6 && fscanf(f, "%31s", m->needed[m->needed_count]) == 1)
        m->needed_count++;
    if (f)
        pclose(f);
}

/* ---- one edit ---- */

static struct exti_rewrite_opts opts;
static struct exti_needed needed;
static struct exti_rename renames[1];
static char new_id[64], new_name[16];
static struct model next;

static void log_edit(const char *what)
{
    snprintf(history + strlen(history), sizeof history - strlen(history), " %s", what);
}

static void random_id(void)
{
    static const char *const ids[] = {"libself.so.c", "x.so", "libself.so.1",
                                      "a-rather-longer-name-than-before.k3x9q2m4.so.1.2.3"};

    strcpy(new_id, ids[rnd(4)]);
    opts.id = new_id;
    strcpy(next.id, new_id);
    log_edit(text("id=%s", new_id));
}

static void random_needed(void)
{
    static const char *const libs[] = {"libz.so.1", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                                       "libutil.so.1"};
    const char *lib = libs[rnd(5)];
    int at = -1;

    for (int i = 0; i < next.needed_count; i++)
        if (!strcmp(next.needed[i], lib))
            at = i;
    opts.needed = &needed;
    opts.needed_count = 1;
    if (at >= 0) {
        needed = (struct exti_needed){lib, NULL, EXTI_NEEDED_LAST};
        memmove(next.needed[at], next.needed[at + 1],
                sizeof next.needed[0] * (size_t)(MAX_NEEDED - at - 1));
        next.needed_count--;
        log_edit(text("-%s", lib));
        return;
    }
    if (next.needed_count == MAX_NEEDED - 1)
        return;
    needed = (struct exti_needed){NULL, lib, rnd(2) ? EXTI_NEEDED_FIRST : EXTI_NEEDED_LAST};
    if (needed.where == EXTI_NEEDED_FIRST) {
        memmove(next.needed[1], next.needed[0], sizeof next.needed[0] * (size_t)next.needed_count);
        strcpy(next.needed[0], lib);
    } else {
        strcpy(next.needed[next.needed_count], lib);
    }
    next.needed_count++;
    log_edit(text("+%s%s", lib, needed.where == EXTI_NEEDED_FIRST ? "(first)" : ""));
}

static void random_path(void)
{
    static const char *const paths[] = {"/a", "$ORIGIN/lib:/b/c", "/a/long/path/to/nowhere/at/all"};

    if (rnd(2))
        opts.path_prepend = paths[rnd(3)];
    else
        opts.path_set = rnd(3) ? paths[rnd(3)] : "";
    log_edit(opts.path_set ? text("path=%s", opts.path_set) : text("path+%s", opts.path_prepend));
}

/* Changes two characters and keeps the GNU hash: 33*a + b equals 33*(a+1) + (b-33). */
static void random_name(void)
{
    unsigned i = rnd(3);

    strcpy(new_name, next.extra[i]);
    renames[0] = (struct exti_rename){NULL, NULL};
    if (new_name[0] == 's')
        new_name[0] = 't', new_name[1] = 'e' - 33;
    else
        new_name[0] = 's', new_name[1] = 'e';
    static char from[16];
    strcpy(from, next.extra[i]);
    renames[0] = (struct exti_rename){from, new_name};
    opts.renames = renames;
    opts.rename_count = 1;
    strcpy(next.extra[i], new_name);
    log_edit(text("%s=%s", from, new_name));
}

static void random_flags(void)
{
    opts.flags = 1u + rnd(7);
    log_edit(text("flags=%u", opts.flags));
}

static void choose_edits(const struct model *m)
{
    static void (*const edits[])(void) = {random_id, random_needed, random_path, random_name,
                                          random_flags};

    opts = (struct exti_rewrite_opts){.size = sizeof opts};
    next = *m;
    log_edit(";");
    for (unsigned i = 0; i < 5; i++)
        if (rnd(3) == 0)
            edits[i]();
}

/* ---- checks ---- */

static int print_finding(void *user, const struct exti_error *finding)
{
    ++*(int *)user;
    printf("# %s\n", finding->message);
    return 0;
}

static int check_dynamic(const char *file)
{
    char want[1024] = "";
    const char *got;

    got = output_of(text("readelf -dW %s 2>&1 | sed -n 's/.*(NEEDED).*\\[\\(.*\\)\\]/\\1/p; "
                         "s/.*(SONAME).*\\[\\(.*\\)\\]/id \\1/p' | sort",
                         file));
    for (int i = 0; i < next.needed_count; i++)
        snprintf(want + strlen(want), sizeof want - strlen(want), "%s\n", next.needed[i]);
    if (next.id[0])
        snprintf(want + strlen(want), sizeof want - strlen(want), "id %s\n", next.id);
    setenv("WANT", want, 1);
    setenv("GOT", got, 1);
    if (system("test \"$(printf %s \"$WANT\" | sort)\" = \"$(printf %s \"$GOT\")\"") != 0)
        return bad("dynamic section", text("\"%s\" instead of \"%s\"", got, want));
    got =
        output_of(text("readelf -dW %s 2>&1 | sed -n 's/.*(NEEDED).*\\[\\(.*\\)\\]/\\1/p'", file));
    for (int i = 0; i < next.needed_count; i++) {
        const char *at = strstr(got, next.needed[i]);

        if (!at)
            return bad("order of needed libraries", got);
        got = at;
    }
    return 0;
}

/* Tools may report only faults that the original has too. */
static int check_tools(const char *file)
{
    const char *said = output_of(
        text("bash -c 'comm -13 <(sed \"s/[0-9]/N/g\" %s/said | sort -u) <({ readelf -aW %s "
             "2>&1 >/dev/null | sed \"s|.*: Warning|Warning|\"; eu-elflint --gnu-ld %s 2>&1; } | "
             "sed \"s/[0-9]/N/g\" | sort -u)' | grep -v -e '^No errors$' "
             "-e 'read-only section modified but text relocation flag not set'",
             tmp, file, file));

    return said[0] ? bad("readelf or eu-elflint", said) : 0;
}

static int run_self(const char *file)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    int (*test)(void) = handle ? (int (*)(void))dlsym(handle, "self_test") : NULL;
    int rc;

    if (!test)
        return bad("dlopen", dlerror());
    rc = test();
    /* Strippers drop bytes in no section, such as the old _DYNAMIC if lld left no room for the
     * new. */
    if (rc && !(rc == 10 && strstr(file, "stripped")))
        return bad("self_test", text("check %d failed", rc));
    for (int i = 0; i < 3; i++) {
        int (*extra)(void) = (int (*)(void))dlsym(handle, next.extra[i]);

        if (!extra || extra() != i + 1)
            return bad("dlsym", next.extra[i]);
    }
    return dlclose(handle) ? bad("dlclose", dlerror()) : 0;
}

static int check_run(const char *file)
{
    pid_t pid;
    int status;

    fflush(NULL);
    pid = fork();
    if (!pid) {
        alarm(600);
        _exit(run_self(file));
    }
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        return bad("run", text("died of signal %d", WTERMSIG(status)));
    return status != 0;
}

/* Whether the tool keeps the original intact: GNU strip breaks some files of lld and mold. */
static int spares_original(const char *tool, const char *out)
{
    static const char *const names[] = {"self_extra_1", "self_extra_2", "self_extra_3"};
    struct model keep = next;
    int rc;

    for (int i = 0; i < 3; i++)
        strcpy(next.extra[i], names[i]);
    quiet = 1;
    rc = system(text("%s -o %s %s/0.so 2>/dev/null", tool, out, tmp)) || check_run(out);
    quiet = 0;
    next = keep;
    return !rc;
}

static int check_stripped(const char *file)
{
    static const char *const tools[] = {"strip", "strip -g", "eu-strip", "llvm-strip"};
    const char *tool = tools[rnd(4)];
    char out[100];
    struct stat st;

    snprintf(out, sizeof out, "%s/stripped.so", tmp);
    if (stat(text("/usr/bin/%.*s", (int)strcspn(tool, " "), tool), &st))
        return 0;
    if (!spares_original(tool, out))
        return 0;
    if (system(text("%s -o %s %s", tool, out, file)) != 0)
        return bad(tool, "ended badly");
    return check_run(out) ? bad(tool, "broke it") : 0;
}

/* Each edit works on the result of the last, so nothing may degrade. */
static int one_edit(struct model *m, int step)
{
    char from[100], to[100];
    struct exti_error err = {0};
    int found = 0, rc;
    size_t findings;

    snprintf(from, sizeof from, "%s/%d.so", tmp, step);
    snprintf(to, sizeof to, "%s/%d.so", tmp, step + 1);
    choose_edits(m);
    rc = exti_rewrite(from, to, &opts, &err);
    if (rc == EXTI_E_UNSUPPORTED || rc == EXTI_E_NOSPACE) {
        m->refused++;
        log_edit(text("(refused: %s)", err.message));
        next = *m;
        return system(text("cp %s %s", from, to));
    }
    if (rc)
        return bad("exti_rewrite", text("%s: %s", exti_code_name(rc), err.message));
    rc = exti_verify(to, from, print_finding, &found, &findings, &err);
    if (rc || found)
        return bad("exti_verify", text("%d findings, %s", found, err.message));
    next.edits++;
    *m = next;
    return check_dynamic(to) || check_tools(to) || check_run(to) || check_stripped(to);
}

static int one_library(const char *linker, struct model *m)
{
    history[0] = 0;
    if (link_one(m, linker))
        return -1;
    read_needed(m);
    if (system(text("{ readelf -aW %s/0.so 2>&1 >/dev/null | sed 's|.*: Warning|Warning|'; "
                    "eu-elflint --gnu-ld %s/0.so 2>&1; } >%s/said",
                    tmp, tmp, tmp)) < 0)
        return 1;
    next = *m;
    if (check_run(text("%s/0.so", tmp)))
        return bad("the original", "does not work");
    for (int step = 0, steps = 1 + (int)rnd(9); step < steps; step++)
        if (one_edit(m, step))
            return 1;
    return 0;
}

static int all_of(const char *linker, int rounds)
{
    int failed = 0, refused = 0, edits = 0, built = 0;
    struct model m;

    for (int i = 0; i < rounds && failed < 5; i++) {
        int rc = one_library(linker, &m);

        if (rc < 0)
            continue;
        built++;
        refused += m.refused;
        edits += m.edits;
        if (rc) {
            printf("# in round %d\n", i);
            failed++;
        }
    }
    printf("%s %s (%d libraries, %d edits, %d refused)\n",
           failed || !built || refused > edits / 4 ? "not ok" : "ok", linker, built, edits,
           refused);
    fflush(stdout);
    return failed || !built;
}

int main(void)
{
    const char *seed = getenv("EXTI_SEED"), *rounds = getenv("EXTI_ROUNDS");
    int failed = 0;

    state = seed ? strtoull(seed, NULL, 0) : 20240229;
    state = state ? state : 1;
    printf("# seed %llu\n", state);
    snprintf(tmp, sizeof tmp, "/tmp/exti-property.XXXXXX");
    if (!mkdtemp(tmp) ||
        system(text("g++ -std=c++17 -O1 -g -fPIC -c testdata/src/toy/toy_self.cc -o %s/self.o",
                    tmp)) != 0) {
        printf("not ok build: %s/self.o\n", tmp);
        return 1;
    }
    for (size_t i = 0; i < sizeof linkers / sizeof *linkers; i++) {
        if (have_linker(linkers[i]))
            failed |= all_of(linkers[i], rounds ? atoi(rounds) : 30);
        else
            printf("skip %s: this linker is not installed\n", linkers[i]);
    }
    if (system(text("rm -rf %s", tmp)) != 0)
        return 1;
    return failed;
}
