/* Each edit of exti_rewrite, checked with readelf; and exti_verify on good and bad copies. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/isolation/iso.h"

static struct exti_rewrite_opts opts_new(void)
{
    return (struct exti_rewrite_opts){.size = sizeof(struct exti_rewrite_opts)};
}

/* Rewrites and verifies; returns the output of readelf -dW for the result. */
static char *rewrite_and_read(struct test *t, const char *src, const char *dst,
                              const struct exti_rewrite_opts *opts)
{
    size_t findings = 99;

    assert_ok(exti_rewrite(src, dst, opts, &t->err), &t->err);
    assert_ok(exti_verify(dst, src, iso_print_finding, NULL, &findings, &t->err), &t->err);
    assert_int_equal(findings, 0);
    return test_must_run(t, "readelf", "-dW", dst, NULL);
}

/* Counts the differences in the first `n` bytes. */
static size_t differing(const char *a, const char *b, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += a[i] != b[i];
    return count;
}

static int before(const char *text, const char *first, const char *second)
{
    const char *a = strstr(text, first), *b = strstr(text, second);

    return a && b && a < b;
}

typedef void (*flavour_fn)(struct test *t);

static void in_each_flavour(struct test *t, flavour_fn f)
{
    for (size_t i = 0; iso_flavour_at(i); i++) {
        iso_flavour = iso_flavour_at(i);
        print_message("flavour %s\n", iso_flavour);
        f(t);
    }
    iso_flavour = "gcc";
}

static void id_in(struct test *t)
{
    struct exti_rewrite_opts opts = opts_new();
    char *d;

    opts.id = "libnew-name-of-some-length.so";
    d = rewrite_and_read(t, toy("libtoy.so.1"), test_path(t, "x.so"), &opts);
    assert_contains(d, "Library soname: [libnew-name-of-some-length.so]");
    d = rewrite_and_read(t, toy("ext_a.so"), test_path(t, "x.so"), &opts);
    assert_contains(d, "Library soname: [libnew-name-of-some-length.so]");
}

static void an_id_is_set_and_added(void **state)
{
    in_each_flavour(*state, id_in);
}

/* A name of the same length overwrites the old one: a few bytes differ and none are added. */
static void an_id_of_the_same_length_is_set_in_place(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = opts_new();
    size_t n, m;
    char *a, *b;

    opts.id = "libtoy.so.c";
    rewrite_and_read(t, toy("libtoy.so.1"), test_path(t, "x.so"), &opts);
    a = test_read(t, toy("libtoy.so.1"), &n);
    b = test_read(t, test_path(t, "x.so"), &m);
    assert_int_equal(n, m);
    assert_int_equal(differing(a, b, n), 1);
}

static void needed_in(struct test *t)
{
    const struct exti_needed first = {NULL, "libfirst.so", EXTI_NEEDED_FIRST};
    const struct exti_needed last = {NULL, "liblast.so", EXTI_NEEDED_LAST};
    const struct exti_needed both[] = {{NULL, "libone.so", EXTI_NEEDED_FIRST},
                                       {NULL, "libtwo.so", EXTI_NEEDED_FIRST},
                                       {NULL, "libthree.so", EXTI_NEEDED_LAST}};
    const struct exti_needed replace = {"libtoydep.so", "libother.so.5", EXTI_NEEDED_LAST};
    const struct exti_needed removed = {"libtoydep.so", NULL, EXTI_NEEDED_LAST};
    const struct exti_needed there = {NULL, "libtoydep.so", EXTI_NEEDED_FIRST};
    struct exti_rewrite_opts opts = opts_new();
    const char *src = toy("ext_dep.so"), *dst = test_path(t, "x.so");
    char *d;

    opts.needed_count = 1;
    opts.needed = &first;
    assert_true(before(rewrite_and_read(t, src, dst, &opts), "[libfirst.so]", "[libtoydep.so]"));
    opts.needed = &last;
    d = rewrite_and_read(t, src, dst, &opts);
    assert_true(before(d, "[libtoydep.so]", "[liblast.so]"));
    opts.needed = both;
    opts.needed_count = 3;
    d = rewrite_and_read(t, src, dst, &opts);
    assert_true(before(d, "[libtwo.so]", "[libtoydep.so]"));
    assert_true(before(d, "[libone.so]", "[libtoydep.so]"));
    assert_true(before(d, "[libtoydep.so]", "[libthree.so]"));
    opts.needed_count = 1;
    opts.needed = &replace;
    d = rewrite_and_read(t, src, dst, &opts);
    assert_contains(d, "[libother.so.5]");
    assert_null(strstr(d, "[libtoydep.so]"));
    opts.needed = &removed;
    assert_null(strstr(rewrite_and_read(t, src, dst, &opts), "[libtoydep.so]"));
    opts.needed = &there;
    d = rewrite_and_read(t, src, dst, &opts);
    assert_null(strstr(strstr(d, "[libtoydep.so]") + 1, "[libtoydep.so]"));
}

static void needed_libraries_are_edited_in_order(void **state)
{
    in_each_flavour(*state, needed_in);
}

static void path_in(struct test *t)
{
    struct exti_rewrite_opts opts = opts_new();
    const char *src = toy("ext_dep.so"), *dst = test_path(t, "x.so");

    opts.origin = "/original/place";
    assert_contains(rewrite_and_read(t, src, dst, &opts), "[/original/place]");
    opts.path_prepend = "$ORIGIN:/first";
    assert_contains(rewrite_and_read(t, src, dst, &opts), "[$ORIGIN:/first:/original/place]");
    opts = opts_new();
    opts.path_set = "/only/this";
    assert_contains(rewrite_and_read(t, src, dst, &opts), "[/only/this]");
    opts.path_set = "";
    assert_null(strstr(rewrite_and_read(t, src, dst, &opts), "PATH)"));
    opts = opts_new();
    opts.path_prepend = "$ORIGIN";
    assert_contains(rewrite_and_read(t, toy("ext_a.so"), dst, &opts), "(RUNPATH)");
}

static void search_paths_are_edited(void **state)
{
    in_each_flavour(*state, path_in);
}

static void an_rpath_stays_an_rpath(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = opts_new();
    const char *src = test_path(t, "rpath.so"), *dst = test_path(t, "x.so");
    char *d;

    test_must_run(t, "gcc", "-shared", "-fPIC", "-Wl,--disable-new-dtags",
                  "-Wl,-rpath,$ORIGIN/../lib:/keep", "testdata/src/toy/toy_dl.c", "-o", src, NULL);
    opts.path_prepend = "/new";
    opts.origin = "/o";
    d = rewrite_and_read(t, src, dst, &opts);
    assert_contains(d, "Library rpath: [/new:/o/../lib:/keep]");
    assert_null(strstr(d, "RUNPATH"));
}

static void flags_in(struct test *t)
{
    struct exti_rewrite_opts opts = opts_new();
    const char *dst = test_path(t, "x.so");

    opts.flags = EXTI_RW_SYMBOLIC;
    assert_contains(rewrite_and_read(t, toy("ext_a.so"), dst, &opts), "SYMBOLIC");
    opts.flags = EXTI_RW_CLEAR_UNIQUE;
    rewrite_and_read(t, toy("ext_cxx.so"), dst, &opts);
    assert_null(strstr(test_must_run(t, "readelf", "-W", "--dyn-syms", dst, NULL), " UNIQUE "));
}

static void flags_are_set_and_cleared(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = opts_new();
    const char *src = test_path(t, "nodelete.so"), *dst = test_path(t, "x.so");

    in_each_flavour(t, flags_in);
    test_must_run(t, "gcc", "-shared", "-fPIC", "-Wl,-z,nodelete", "testdata/src/toy/toy_dl.c",
                  "-o", src, NULL);
    assert_contains(test_must_run(t, "readelf", "-dW", src, NULL), "NODELETE");
    opts.flags = EXTI_RW_CLEAR_NODELETE;
    assert_null(strstr(rewrite_and_read(t, src, dst, &opts), "NODELETE"));
}

static void renames_in(struct test *t)
{
    /* "to" and "uN" have the same GNU hash, 33*'t' + 'o'. */
    const struct exti_rename renames[] = {
        {"toy_next", "uNy_next"}, {"toy_count", "uNy_count"}, {"not_there", "elsewhere"}};
    struct exti_rewrite_opts opts = opts_new();
    const char *lib = test_path(t, "lib.so"), *ext = test_path(t, "ext.so");
    const char *loaded = test_path(t, test_format(t, "lib-%s.so", iso_flavour));
    char *names;
    void *handle;

    opts.renames = renames;
    opts.rename_count = 3;
    opts.id = "x.so";
    rewrite_and_read(t, toy("libtoy.so.1"), lib, &opts);
    names = test_must_run(t, "nm", "-D", lib, NULL);
    assert_contains(names, " uNy_next");
    assert_contains(names, " uNy_count");
    assert_null(strstr(names, " toy_next\n"));
    assert_contains(names, " toy_get");
    rewrite_and_read(t, toy("ext_a.so"), ext, &opts);
    names = test_must_run(t, "nm", "-D", ext, NULL);
    assert_contains(names, " U uNy_next");
    assert_null(strstr(names, " U toy_next\n"));
    /* Valgrind 3.19 crashes if a file is loaded where the same file was mapped for reading. */
    test_copy(t, lib, loaded);
    handle = dlopen(loaded, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    assert_non_null(dlsym(handle, "uNy_next"));
    assert_non_null(dlsym(handle, "uNy_count"));
    assert_non_null(dlsym(handle, "toy_get"));
    assert_null(dlsym(handle, "toy_next"));
    dlclose(handle);
}

static void symbols_are_renamed(void **state)
{
    in_each_flavour(*state, renames_in);
}

/* Makes all edits at once, twice: the bytes are the same, and a second rewrite does not grow the
 * file. */
static void all_edits_together(struct test *t)
{
    const struct exti_needed needed = {NULL, "libtoy.so.k3x9q2m4", EXTI_NEEDED_FIRST};
    struct exti_rewrite_opts opts = opts_new();
    const char *src = toy("ext_dep.so"), *one = test_path(t, "1.so"), *two = test_path(t, "2.so");
    size_t n, m;
    char *d, *a, *b;

    opts.id = "ext_dep.k3x9q2m4.so";
    opts.needed = &needed;
    opts.needed_count = 1;
    opts.path_prepend = "$ORIGIN";
    opts.origin = "/where/it/was";
    opts.flags = EXTI_RW_SYMBOLIC | EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE;
    d = rewrite_and_read(t, src, one, &opts);
    assert_contains(d, "Library soname: [ext_dep.k3x9q2m4.so]");
    assert_true(before(d, "[libtoy.so.k3x9q2m4]", "[libtoydep.so]"));
    assert_contains(d, "[$ORIGIN:/where/it/was]");
    assert_contains(d, "SYMBOLIC");
    rewrite_and_read(t, src, two, &opts);
    a = test_read(t, one, &n);
    b = test_read(t, two, &m);
    assert_true(n == m && !memcmp(a, b, n));
    opts.origin = NULL;
    opts.path_prepend = NULL;
    assert_ok(exti_rewrite(one, two, &opts, &t->err), &t->err);
    b = test_read(t, two, &m);
    assert_true(n == m && !memcmp(a, b, n));
}

static void edits_together_are_deterministic_and_idempotent(void **state)
{
    in_each_flavour(*state, all_edits_together);
}

static void no_edits_give_the_same_file(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = opts_new();
    size_t n, m;
    char *a, *b;

    rewrite_and_read(t, toy("ext_a.so"), test_path(t, "x.so"), &opts);
    a = test_read(t, toy("ext_a.so"), &n);
    b = test_read(t, test_path(t, "x.so"), &m);
    assert_true(n == m && !memcmp(a, b, n));
}

/* A failed rewrite leaves the old target and no other file. */
static int take_finding(void *user, const struct exti_error *finding)
{
    *(struct exti_error *)user = *finding;
    return 0;
}

static void a_failed_rewrite_leaves_the_target_alone(void **state)
{
    struct test *t = *state;
    const struct exti_needed absent = {"libabsent.so", NULL, EXTI_NEEDED_LAST};
    struct exti_rewrite_opts opts = opts_new();
    const char *dst = test_path(t, "x.so");

    test_write(dst, "precious", 8);
    opts.needed = &absent;
    opts.needed_count = 1;
    assert_true(exti_rewrite(toy("ext_a.so"), dst, &opts, &t->err) < 0);
    assert_contains(t->err.message, "libabsent.so");
    assert_contains(t->err.file, "ext_a.so");
    assert_true(exti_rewrite("/nowhere.so", dst, &opts, &t->err) < 0);
    opts.needed_count = 0;
    opts.id = "y.so";
    assert_exti(exti_rewrite("/bin/sh", dst, &opts, &t->err), EXTI_E_UNSUPPORTED, &t->err,
                ANY_OFFSET);
    assert_string_equal(test_read(t, dst, NULL), "precious");
    assert_string_equal(test_list(t, t->dir), "x.so\n");
}

static void verify_wants_a_format_that_it_knows(void **state)
{
    struct test *t = *state;
    char *text = test_path(t, "text");
    struct exti_error finding = {0};
    size_t findings = 7;

    test_write(text, "just text, of some length", 25);
    assert_exti(exti_verify(toy("ext_a.so"), text, NULL, NULL, &findings, &t->err), EXTI_E_FORMAT,
                &t->err, 0);
    assert_string_equal(t->err.file, text);
    assert_int_equal(findings, 7);
    assert_ok(exti_verify(text, toy("ext_a.so"), take_finding, &finding, &findings, &t->err),
              &t->err);
    assert_int_equal(findings, 1);
    assert_int_equal(finding.code, EXTI_E_CHECK);
    assert_says(&finding, "is not ELF, as the original is");
    assert_string_equal(finding.file, text);
}

/* Root could otherwise replace /dev/null. */
static void what_is_no_file_is_not_replaced(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = {.size = sizeof opts, .id = "x.so"};
    char *fifo = test_path(t, "fifo"), *link = test_path(t, "link");
    struct stat st;

    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_exti(exti_rewrite(toy("ext_a.so"), fifo, &opts, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_says(&t->err, "FIFO");
    assert_int_equal(symlink("/dev/null", link), 0);
    assert_exti(exti_rewrite(toy("ext_a.so"), link, &opts, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(stat(fifo, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

static void the_target_may_be_a_file_in_use(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = opts_new();
    const char *dst = test_path(t, "x.so");
    void *handle;
    int (*next)(void);

    opts.id = "one.so";
    rewrite_and_read(t, toy("libtoy.so.1"), dst, &opts);
    handle = dlopen(dst, RTLD_NOW);
    assert_non_null(handle);
    next = (int (*)(void))dlsym(handle, "toy_next");
    opts.id = "another-and-longer-one.so";
    rewrite_and_read(t, toy("libtoy.so.1"), dst, &opts);
    assert_int_equal(next(), 1);
    dlclose(handle);
}

/* ---- exti_verify ---- */

struct seen {
    int count, stop_at;
    char text[4096];
};

static int collect_messages(void *user, const struct exti_error *finding)
{
    struct seen *s = user;
    size_t n = strlen(s->text);

    assert_true(finding->code < 0 && finding->message[0]);
    snprintf(s->text + n, sizeof s->text - n, "[%s: %s]", finding->file, finding->message);
    return ++s->count == s->stop_at;
}

/* The section that the byte is in, or NULL. */
static const ElfW(Shdr) * section_at(const char *file, size_t at)
{
    const ElfW(Ehdr) *eh = (const void *)file;
    const ElfW(Shdr) *sh = (const void *)(file + eh->e_shoff);

    for (unsigned i = 0; i < eh->e_shnum; i++)
        if (at >= sh[i].sh_offset && at < sh[i].sh_offset + sh[i].sh_size)
            return &sh[i];
    return NULL;
}

static bool is_null_tag(const char *tags, size_t offset)
{
    return ((const ElfW(Dyn) *)(const void *)tags)[offset / sizeof(ElfW(Dyn))].d_tag == DT_NULL;
}

/* Whether exti_verify, which does not know the edits, may accept another byte at `at` of the copy:
 * edits change the names of symbols and libraries, and DT_NULL may become DT_SYMBOLIC; no loader
 * reads some other bytes. */
static bool may_differ(const char *copy, size_t at)
{
    const ElfW(Ehdr) *eh = (const void *)copy;
    const ElfW(Phdr) *ph = (const void *)(copy + eh->e_phoff);
    const ElfW(Shdr) *sh = section_at(copy, at);

    if (at >= eh->e_phoff && at < eh->e_phoff + eh->e_phnum * sizeof *ph) {
        const size_t i = (at - eh->e_phoff) / sizeof *ph, field = (at - eh->e_phoff) % sizeof *ph;

        return ph[i].p_type == PT_GNU_STACK
                   ? field >= offsetof(ElfW(Phdr), p_offset)
                   : field - offsetof(ElfW(Phdr), p_paddr) < sizeof ph->p_paddr;
    }
    if (!sh)
        return false;
    switch (sh->sh_type) {
    case SHT_STRTAB:
        return sh->sh_flags & SHF_ALLOC;
    case SHT_GNU_HASH: /* one more bit in the bloom filter */
        return true;
    case SHT_DYNAMIC:
        return is_null_tag(copy + sh->sh_offset, at - sh->sh_offset);
    case SHT_DYNSYM:
        return (at - sh->sh_offset) % sizeof(ElfW(Sym)) < sizeof(ElfW(Word));
    default:
        return false;
    }
}

/* Whether the original has its strings or hash table there, which the copy may have elsewhere. */
static bool has_left(const char *original, size_t at)
{
    const ElfW(Shdr) *sh = section_at(original, at);

    return sh && sh->sh_flags & SHF_ALLOC &&
           (sh->sh_type == SHT_STRTAB || sh->sh_type == SHT_GNU_HASH);
}

static void verify_finds_changed_bytes(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = opts_new();
    const char *src = toy("ext_a.so"), *dst = test_path(t, "x.so"), *bad = test_path(t, "bad.so");
    size_t n, size, tried = 0, missed = 0;
    char *bytes, *original;

    opts.id = "ext_a.k3x9q2m4.so";
    rewrite_and_read(t, src, dst, &opts);
    original = test_read(t, src, &size);
    bytes = test_read(t, dst, &n);
    for (size_t at = 0x40; at < size; at += 17) {
        size_t findings = 0;
        int rc;

        if (may_differ(bytes, at) || has_left(original, at))
            continue;
        bytes[at] = (char)(bytes[at] ^ 0x10);
        test_write(bad, bytes, n);
        rc = exti_verify(bad, src, NULL, NULL, &findings, &t->err);
        if (!rc && !findings) {
            missed++;
            print_message("a changed byte at 0x%zx is not found\n", at);
        }
        bytes[at] = (char)(bytes[at] ^ 0x10);
        tried++;
    }
    print_message("%zu of %zu changed bytes are not found\n", missed, tried);
    assert_true(tried > 500);
    assert_int_equal(missed, 0);
}

static void verify_finds_what_another_tool_did(void **state)
{
    struct test *t = *state;
    struct exti_rewrite_opts opts = opts_new();
    const char *src = toy("ext_cxx.so"), *dst = test_path(t, "x.so");
    struct seen seen = {.count = 0};
    size_t findings = 0;

    opts.id = "x.so";
    rewrite_and_read(t, src, dst, &opts);
    /* A different original. */
    assert_ok(exti_verify(dst, toy("ext_a.so"), collect_messages, &seen, &findings, &t->err),
              &t->err);
    assert_true(findings > 0 && (size_t)seen.count == findings);
    seen = (struct seen){.stop_at = 1};
    assert_ok(exti_verify(dst, toy("ext_a.so"), collect_messages, &seen, &findings, &t->err),
              &t->err);
    assert_int_equal(seen.count, 1);
    /* A truncated copy. */
    {
        size_t n;
        char *bytes = test_read(t, dst, &n);

        test_write(dst, bytes, n / 2);
        findings = 0;
        if (exti_verify(dst, src, NULL, NULL, &findings, &t->err) == 0)
            assert_true(findings > 0);
    }
    assert_exti(exti_verify("/nowhere", src, NULL, NULL, &findings, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
}

static void a_private_file_stays_private(void **state)
{
    struct test *t = *state;
    const struct exti_rewrite_opts opts = opts_new();
    const char *src = test_path(t, "src.so"), *dst = test_path(t, "dst.so");
    struct stat st;

    test_copy(t, toy("ext_a.so"), src);
    assert_int_equal(chmod(src, 0600), 0);
    assert_ok(exti_rewrite(src, dst, &opts, &t->err), &t->err);
    assert_int_equal(stat(dst, &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    assert_int_equal(chmod(src, 0644), 0);
    assert_ok(exti_rewrite(src, dst, &opts, &t->err), &t->err);
    assert_int_equal(stat(dst, &st), 0);
    assert_int_not_equal(st.st_mode & 044, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(an_id_is_set_and_added),
        exti_test(an_id_of_the_same_length_is_set_in_place),
        exti_test(needed_libraries_are_edited_in_order),
        exti_test(search_paths_are_edited),
        exti_test(an_rpath_stays_an_rpath),
        exti_test(flags_are_set_and_cleared),
        exti_test(symbols_are_renamed),
        exti_test(edits_together_are_deterministic_and_idempotent),
        exti_test(no_edits_give_the_same_file),
        exti_test(a_failed_rewrite_leaves_the_target_alone),
        exti_test(verify_wants_a_format_that_it_knows),
        exti_test(what_is_no_file_is_not_replaced),
        exti_test(the_target_may_be_a_file_in_use),
        exti_test(a_private_file_stays_private),
        exti_test(verify_finds_changed_bytes),
        exti_test(verify_finds_what_another_tool_did),
    };

    return cmocka_run_group_tests_name("api/rewrite", tests, NULL, NULL);
}
