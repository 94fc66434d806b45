/* Copies whose code and constants are mapped from their originals. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>

#include "tests/isolation/build.h"
#include "tests/isolation/maps.h"

/* A library with so much code and so many constants that they are left out. */
static const char large[] = "int count;\n"
                            "const char constants[40000] = \"constant\";\n"
                            "#define NOPS(n) __asm__(\".skip \" #n \", 0x90\")\n"
                            "int next(void) { NOPS(40000); return ++count; }\n"
                            "const char *constant(void) { return constants; }\n"
                            "void *where(void) { return (void *)next; }\n";

/* GNU ld does so by itself on x86, but not on arm64. */
#define SEPARATE "-Wl,-z,separate-code "

enum { LEFT_OUT = 64 << 10 }; /* of 80,000 bytes at least, as blocks are left out whole */

static struct exti_ctx *open_with(const char *dir, uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(dir ? in_tmp(dir) : NULL, NULL);

    opts.flags = flags;
    return iso_open_opts(&opts);
}

static const char *copy_of(struct exti_ctx *ctx, const char *original)
{
    const char *copy = NULL;
    struct exti_error err = {0};

    want_exti(exti_copy(ctx, original, &copy, &err), 0, &err);
    return copy;
}

/* Whether the module's code comes from its original, as its constants then do. */
static bool is_lean(struct exti_module *m, const char *original)
{
    const bool lean = strcmp(mapped_at(call_ptr(m, "where")), original) == 0;

    want((strcmp(mapped_at(call_ptr(m, "constant")), original) == 0) == lean);
    want_text(call_ptr(m, "constant"), "constant");
    return lean;
}

ISO_CASE(code_and_constants_come_from_the_original)
{
    struct exti_module *m[2];
    struct exti_ctx *ctx[2];

    iso_build(large, "large.so", SEPARATE);
    for (int i = 0; i < 2; i++) {
        ctx[i] = iso_open(i ? "b" : "a");
        m[i] = iso_load(ctx[i], in_tmp("large.so"));
        want(is_lean(m[i], in_tmp("large.so")));
        want(left_out(copy_of(ctx[i], in_tmp("large.so"))) >= LEFT_OUT);
        want_text(mapped_at(iso_sym(m[i], "count")), i ? "/b/" : "/a/");
    }
    want_int(call_int(m[0], "next"), 1);
    want_int(call_int(m[0], "next"), 2);
    want_int(call_int(m[1], "next"), 1);
    for (int i = 0; i < 2; i++) {
        iso_prove_clean(ctx[i], 2);
        iso_dir_clean(exti_ctx_dir(ctx[i]));
        iso_close_ctx(ctx[i]);
    }
}

/* The control of the case above. */
ISO_CASE(full_copies_have_code_and_constants_of_their_own)
{
    struct exti_module *m;
    struct exti_ctx *ctx;

    iso_build(large, "large.so", SEPARATE);
    ctx = open_with("a", EXTI_CTX_FULL_COPIES);
    m = iso_load(ctx, in_tmp("large.so"));
    want(!is_lean(m, in_tmp("large.so")));
    want(left_out(copy_of(ctx, in_tmp("large.so"))) < LEFT_OUT);
    want_int(call_int(m, "next"), 1);
    iso_close_ctx(ctx);
}

/* ---- tables, and constants behind code ---- */

/* With 5,000 relocations, symbols of a version of another library's, and a symbol that is unique in
 * its process: an edit of the copy's symbol table makes that the context's. */
static const char tables[] = "int provided(void);\n"
                             "__attribute__((weak)) int shared_by_all;\n"
                             "__asm__(\".type shared_by_all, @gnu_unique_object\");\n"
                             "#define FOUR(x) x, x, x, x\n"
                             "#define ALL(x) FOUR(FOUR(FOUR(FOUR(FOUR(FOUR(x))))))\n"
                             "void *table[] = {ALL(&shared_by_all)};\n"
                             "int call_provided(void) { return provided(); }\n";

static void build_with_tables(void)
{
    iso_write_text(in_tmp("versions"), "V1 { provided; };");
    iso_build("int provided(void); int provided(void) { return 5; }", "libdep.so",
              iso_text("-Wl,-soname,libdep.so -Wl,--version-script=%s", in_tmp("versions")));
    iso_build(iso_text("%s%s", large, tables), "tables.so",
              iso_text(SEPARATE "-L%s -l:libdep.so -Wl,-rpath,%s", iso_tmp, iso_tmp));
}

struct tables {
    uintptr_t headers, relocations;
};

static int find_tables(struct dl_phdr_info *info, size_t size, void *user)
{
    struct tables *t = user;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Dyn) *d = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC || info->dlpi_addr != t->headers)
            continue;
        for (; d->d_tag != DT_NULL; d++)
            if (d->d_tag == DT_RELA)
                t->relocations = d->d_un.d_ptr;
    }
    return 0;
}

static struct tables tables_of(struct exti_module *m)
{
    struct tables t = {0};
    Dl_info info;

    want(dladdr(call_ptr(m, "where"), &info));
    t.headers = (uintptr_t)info.dli_fbase;
    dl_iterate_phdr(find_tables, &t);
    want(t.relocations > t.headers);
    return t;
}

/* What the system's loader has bound by.  The proof reads the versions, and binding by name the
 * symbols, when they are the original's. */
ISO_CASE(tables_come_from_the_original_but_for_what_is_edited)
{
    struct exti_module *m[2];
    /* In a process of few contexts they do not. */
    struct exti_ctx *ctx[2], *others[2] = {iso_open("c"), iso_open("d")};

    build_with_tables();
    for (int i = 0; i < 2; i++) {
        struct tables t;

        ctx[i] = iso_open(i ? "b" : "a");
        m[i] = iso_load(ctx[i], in_tmp("tables.so"));
        t = tables_of(m[i]);
        want_text(mapped_at((void *)t.headers), i ? "/b/" : "/a/");
        want_text(mapped_at((void *)(t.relocations + (64 << 10))), "/tables.so");
        want_int(call_int(m[i], "call_provided"), 5);
        want(((void **)iso_sym(m[i], "table"))[4095] == iso_sym(m[i], "shared_by_all"));
    }
    want(iso_sym(m[0], "shared_by_all") != iso_sym(m[1], "shared_by_all"));
    iso_build("int call_provided(void); int again(void) { return call_provided(); }", "user.so",
              iso_text("-L%s -l:tables.so -Wl,-rpath,%s", iso_tmp, iso_tmp));
    for (int i = 0; i < 2; i++) {
        want_int(call_int(iso_load(ctx[i], in_tmp("user.so")), "again"), 5);
        iso_prove_clean(ctx[i], 4);
        iso_close_ctx(ctx[i]);
        iso_close_ctx(others[i]);
    }
}

ISO_CASE(few_contexts_have_tables_of_their_own)
{
    struct exti_ctx *ctx[3];

    build_with_tables();
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"};
        struct tables t;

        ctx[i] = iso_open(names[i]);
        t = tables_of(iso_load(ctx[i], in_tmp("tables.so")));
        want_text(mapped_at((void *)(t.relocations + (64 << 10))),
                  i == 2 ? "/tables.so" : iso_text("/%s/", names[i]));
    }
    for (int i = 0; i < 3; i++)
        iso_close_ctx(ctx[i]);
}

/* The control of the case above. */
ISO_CASE(full_copies_have_tables_of_their_own)
{
    struct exti_ctx *ctx[3] = {iso_open("c"), iso_open("d")};
    struct tables t;

    build_with_tables();
    ctx[2] = open_with("a", EXTI_CTX_FULL_COPIES);
    t = tables_of(iso_load(ctx[2], in_tmp("tables.so")));
    want_text(mapped_at((void *)(t.relocations + (64 << 10))), "/a/");
    for (int i = 0; i < 3; i++)
        iso_close_ctx(ctx[i]);
}

/* A process may have 65,530 mappings. */
ISO_CASE(few_constants_are_one_mapping_with_the_code_before_them)
{
    static const char few[] = "const char constants[8000] = \"constant\";\n"
                              "void *where(void) { __asm__(\".skip 80000, 0x90\"); "
                              "return (void *)where; }\n"
                              "const char *constant(void) { return constants; }\n";
    struct exti_ctx *ctx = iso_open("a");
    struct exti_module *m;
    struct map code, many;

    iso_build(iso_text("void *where(void); const char *constant(void);%s", few), "few.so",
              SEPARATE);
    m = iso_load(ctx, in_tmp("few.so"));
    want(is_lean(m, in_tmp("few.so")));
    code = map_at(call_ptr(m, "where"));
    want((uintptr_t)call_ptr(m, "constant") < code.to);
    want_text(code.access, "r-xp");
    /* Nobody can execute many. */
    iso_build(large, "large.so", SEPARATE);
    many = map_at(call_ptr(iso_load(ctx, in_tmp("large.so")), "constant"));
    want_text(many.access, "r--p");
    iso_prove_clean(ctx, 3);
    iso_close_ctx(ctx);
}

static void want_kind(uint32_t flags, bool lean)
{
    struct exti_ctx *ctx = open_with("a", flags);

    want_int(is_lean(iso_load(ctx, in_tmp("large.so")), in_tmp("large.so")), lean);
    iso_dir_clean(exti_ctx_dir(ctx));
    iso_close_ctx(ctx);
}

/* Who may use lean copies can use full ones. */
ISO_CASE(lean_copies_are_made_again_for_those_who_want_full_ones)
{
    iso_build(large, "large.so", SEPARATE);
    want_kind(0, true);
    want_kind(EXTI_CTX_FULL_COPIES, false);
    want_kind(0, false);
}

/* Copies for programs that load them themselves. */
ISO_CASE(copies_for_others_are_full)
{
    struct exti_ctx *ctx;

    iso_build(large, "large.so", SEPARATE);
    ctx = open_with("a", EXTI_CTX_COPY_ONLY);
    want(left_out(copy_of(ctx, in_tmp("large.so"))) < LEFT_OUT);
    iso_close_ctx(ctx);
    ctx = open_with("a", EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING);
    want(left_out(copy_of(ctx, in_tmp("large.so"))) >= LEFT_OUT);
    iso_close_ctx(ctx);
}

static int count_finding(void *user, const struct exti_error *finding)
{
    (void)finding;
    ++*(int *)user;
    return 0;
}

static int findings_in(const char *dir)
{
    struct exti_error err = {0};
    size_t findings = 0;
    int told = 0;

    want_exti(exti_dir_verify(dir, count_finding, &told, &findings, &err), 0, &err);
    want_int(told, (long)findings);
    return told;
}

/* A hole is part of the copy. */
ISO_CASE(what_is_written_into_a_hole_is_found)
{
    static const char byte = 1;
    char copy[1024];
    struct exti_ctx *ctx;
    int fd;

    iso_build(large, "large.so", SEPARATE);
    ctx = iso_open("a");
    snprintf(copy, sizeof copy, "%s", copy_of(ctx, in_tmp("large.so")));
    iso_dir_clean(exti_ctx_dir(ctx));
    iso_close_ctx(ctx);
    fd = open(copy, O_WRONLY);
    want(fd >= 0 && pwrite(fd, &byte, 1, lseek(fd, 0, SEEK_HOLE) + 100) == 1 && close(fd) == 0);
    want(findings_in(in_tmp("a")) > 0);
}

/* Changes the last digit of the first offset. */
static void change_left_out(const char *manifest)
{
    static char text[1 << 16];
    FILE *f = fopen(manifest, "r+");
    char *digits;
    size_t n = 0;

    want(f && (n = fread(text, 1, sizeof text - 1, f)) > 0);
    digits = strpbrk(strstr(text, "\"left_out\""), "0123456789");
    digits += strspn(digits, "0123456789") - 1;
    *digits = *digits == '1' ? '2' : '1';
    rewind(f);
    want(fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

/* What the manifest says of a copy must follow from its source. */
ISO_CASE(a_manifest_that_leaves_out_other_parts_is_found)
{
    struct exti_ctx *ctx;

    iso_build(large, "large.so", SEPARATE);
    ctx = iso_open("a");
    copy_of(ctx, in_tmp("large.so"));
    iso_close_ctx(ctx);
    change_left_out(in_tmp("a/manifest.json"));
    want(findings_in(in_tmp("a")) > 0);
}

/* Their functions are called while references are bound, which is before the original is mapped. */
ISO_CASE(libraries_whose_code_runs_early_are_full)
{
    static const char early[] = "static int one(void) { return 1; }\n"
                                "static void *choose(void) { return (void *)one; }\n"
                                "int chosen(void) __attribute__((ifunc(\"choose\")));\n";
    static const char hidden[] = "static int one(void) { return 1; }\n"
                                 "static void *choose(void) { return (void *)one; }\n"
                                 "static int chosen(void) __attribute__((ifunc(\"choose\")));\n"
                                 "int call(void) { return chosen(); }\n";
    static const char user[] = "int chosen(void);\n"
                               "int (*table[])(void) = {chosen};\n"
                               "int by_table(void) { return table[0](); }\n";
    struct exti_module *m;
    struct exti_ctx *ctx = iso_open("a");

    iso_build(iso_text("%s%s", large, early), "early.so", SEPARATE "-Wl,-soname,early.so");
    m = iso_load(ctx, in_tmp("early.so"));
    want(!is_lean(m, in_tmp("early.so")));
    want_int(call_int(m, "chosen"), 1);
    iso_build(iso_text("%s%s", large, user), "user.so",
              iso_text(SEPARATE "-L%s -l:early.so -Wl,-rpath,%s", iso_tmp, iso_tmp));
    m = iso_load(ctx, in_tmp("user.so"));
    want(is_lean(m, in_tmp("user.so")));
    want_int(call_int(m, "by_table"), 1);
    iso_build(iso_text("%s%s", large, hidden), "hidden.so", SEPARATE);
    m = iso_load(ctx, in_tmp("hidden.so"));
    want(!is_lean(m, in_tmp("hidden.so")));
    want_int(call_int(m, "call"), 1);
    iso_close_ctx(ctx);
}

ISO_CASE(libraries_with_text_relocations_are_full)
{
    struct exti_module *m;
    struct exti_ctx *ctx = iso_open("a");

    /* 64-bit code cannot have them without a relocation of 64 bits. */
    iso_build(iso_text("%s%s", large,
                       "extern int count; __attribute__((section(\".text\"))) int *const "
                       "pointer = &count;\n"),
              "text.so", SEPARATE "-Wl,-z,notext 2>/dev/null");
    want(system(iso_text("readelf -d '%s' | grep -q TEXTREL", in_tmp("text.so"))) == 0);
    m = iso_load(ctx, in_tmp("text.so"));
    want(!is_lean(m, in_tmp("text.so")));
    want(*(int **)iso_sym(m, "pointer") == iso_sym(m, "count"));
    iso_close_ctx(ctx);
}

/* ---- an original that is replaced ---- */

static int replacements;

/* A package manager would do that between the making of the copy and its loading. */
static int replace_original(void *user, struct exti_ctx *ctx, const char *original,
                            const char *copy)
{
    (void)user;
    (void)ctx;
    (void)copy;
    if (strcmp(original, in_tmp("large.so")) == 0 && replacements-- > 0) {
        copy_file(in_tmp("other.so"), in_tmp("new.so"));
        want(rename(in_tmp("new.so"), in_tmp("large.so")) == 0);
    }
    return 0;
}

static int load_replaced(int times, struct exti_error *err)
{
    struct exti_hooks hooks = {.size = sizeof hooks, .before_load = replace_original};
    struct exti_ctx_opts opts = iso_opts(in_tmp("a"), NULL);
    struct exti_module *m = NULL;
    struct exti_ctx *ctx;
    int rc;

    iso_build(large, "large.so", SEPARATE "-DMARK=1");
    iso_build(iso_text("%sint other(void) { return 7; }\n", large), "other.so", SEPARATE);
    opts.hooks = &hooks;
    replacements = times;
    ctx = iso_open_opts(&opts);
    rc = exti_load(ctx, in_tmp("large.so"), &m, err);
    if (!rc) {
        want(is_lean(m, in_tmp("large.so")));
        want_int(call_int(m, "other"), 7);
        want_int(call_int(m, "next"), 1);
        iso_prove_clean(ctx, 2);
    }
    iso_close_ctx(ctx);
    return rc;
}

ISO_CASE(the_copy_of_an_original_that_was_replaced_is_made_again)
{
    struct exti_error err = {0};

    want_exti(load_replaced(1, &err), 0, &err);
}

ISO_CASE(an_original_that_keeps_being_replaced_is_an_error)
{
    struct exti_error err = {0};

    want_exti(load_replaced(99, &err), EXTI_E_IO, &err);
    want_int(err.os_error, ESTALE);
    want_text(err.file, "large.so");
}

static void want_inspected(const char *link_with, const char *why)
{
    struct exti_image_info info = {.size = sizeof info};
    struct exti_image *image = NULL;
    struct exti_error err = {0};

    iso_build(large, "linked.so", link_with);
    want_exti(exti_inspect(in_tmp("linked.so"), &image, &err), 0, &err);
    want_int(exti_image_info(image, &info), 0);
    if (why)
        want_text(info.full, why);
    want_int(info.full == NULL, !why);
    want_int(info.shared_size >= LEFT_OUT, !why);
    exti_image_free(image);
}

ISO_CASE(inspect_says_what_keeps_a_file_full)
{
    want_inspected(SEPARATE, NULL);
    want_inspected("-Wl,-z,noseparate-code", "in one segment with its headers");
    want_inspected(SEPARATE "-Wl,-z,max-page-size=64", "in pages of memory with other segments");
}

/* ---- processes and file systems that need full copies ---- */

static void load_full(void *unused)
{
    struct exti_ctx *ctx;

    (void)unused;
    want(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
    ctx = iso_open("a");
    want(!is_lean(iso_load(ctx, in_tmp("large.so")), in_tmp("large.so")));
    iso_close_ctx(ctx);
    _exit(0); /* the leak sanitizer would trace the process, too */
}

/* A debugger's breakpoints are in pages that would be mapped over. */
ISO_CASE(a_traced_process_uses_full_copies)
{
    int status;
    pid_t pid;

    if (getenv("EXTI_EMULATED")) {
        fprintf(stderr, "the emulator of arm64 has no ptrace\n");
        _exit(0);
    }
    iso_build(large, "large.so", SEPARATE);
    want_kind(0, true);
    pid = iso_spawn(load_full, NULL);
    /* The child stops at each signal. */
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
        want(ptrace(PTRACE_CONT, pid, NULL, WSTOPSIG(status) == SIGCHLD ? 0 : WSTOPSIG(status)) ==
             0);
    want(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

ISO_CASE(originals_on_a_file_system_without_code_are_copied_whole)
{
    struct exti_ctx *ctx;

    want(mkdir(in_tmp("noexec"), 0700) == 0);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", in_tmp("noexec"), "tmpfs", MS_NOEXEC, NULL) != 0) {
        fprintf(stderr, "needs to be root and to mount\n");
        _exit(0);
    }
    iso_build(large, "noexec/large.so", SEPARATE);
    ctx = iso_open("a");
    want(!is_lean(iso_load(ctx, in_tmp("noexec/large.so")), in_tmp("noexec/large.so")));
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_and_constants_come_from_the_original),
        cmocka_unit_test(full_copies_have_code_and_constants_of_their_own),
        cmocka_unit_test(tables_come_from_the_original_but_for_what_is_edited),
        cmocka_unit_test(few_contexts_have_tables_of_their_own),
        cmocka_unit_test(full_copies_have_tables_of_their_own),
        cmocka_unit_test(few_constants_are_one_mapping_with_the_code_before_them),
        cmocka_unit_test(lean_copies_are_made_again_for_those_who_want_full_ones),
        cmocka_unit_test(copies_for_others_are_full),
        cmocka_unit_test(what_is_written_into_a_hole_is_found),
        cmocka_unit_test(a_manifest_that_leaves_out_other_parts_is_found),
        cmocka_unit_test(libraries_whose_code_runs_early_are_full),
        cmocka_unit_test(libraries_with_text_relocations_are_full),
        cmocka_unit_test(inspect_says_what_keeps_a_file_full),
        cmocka_unit_test(the_copy_of_an_original_that_was_replaced_is_made_again),
        cmocka_unit_test(an_original_that_keeps_being_replaced_is_an_error),
        cmocka_unit_test(a_traced_process_uses_full_copies),
        cmocka_unit_test(originals_on_a_file_system_without_code_are_copied_whole),
    };

    return cmocka_run_group_tests_name("lean", tests, NULL, NULL);
}
