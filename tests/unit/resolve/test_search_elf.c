/* Look-ups of libraries, compared with what ld.so finds for the same toys. */
#define _GNU_SOURCE /* dlinfo */
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "base/os/fs_id.h"
#include "loader/resolve/search_host.h"
#include "tests/unit/resolve/search_elf_toy.h"

/* Asserts that ld.so and the library give the same: the file `expected`, or nothing if it is
 * NULL. */
static void assert_finds(struct fixture *f, const char *library_path, const char *file,
                         const char *name, const char *expected)
{
    const char *traced, *found;

    open_search(f, (struct exti_elf_search_opts){.library_path = library_path});
    found = find_for(f, file, name);
    traced = toy_traced(f->t, toy_trace(f->t, library_path, file), name);
    assert_non_null(traced);
    if (expected) {
        assert_string_equal(traced, test_path(f->t, expected));
        assert_non_null(found);
        assert_string_equal(found, traced);
    } else {
        assert_string_equal(traced, "");
        assert_null(found);
    }
}

static void folders_are_searched_in_order(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *path = test_format(t, "%s/env", t->dir), *old, *new;

    make_leaf(f, "tag");
    make_leaf(f, "env");
    old = toy_lib(t, "old.so", "-L%/tag -lleaf -Wl,--disable-new-dtags,-rpath,%/tag");
    new = toy_lib(t, "new.so", "-L%/tag -lleaf -Wl,--enable-new-dtags,-rpath,%/tag");
    assert_finds(f, path, old, "libleaf.so", "tag/libleaf.so"); /* DT_RPATH, LD_LIBRARY_PATH */
    assert_finds(f, path, new, "libleaf.so", "env/libleaf.so"); /* LD_LIBRARY_PATH, DT_RUNPATH */
    assert_finds(f, NULL, new, "libleaf.so", "tag/libleaf.so");
    assert_finds(f, "", new, "libleaf.so", "tag/libleaf.so");
    path = test_format(t, "/nowhere;%s/env///:", t->dir);
    assert_finds(f, path, new, "libleaf.so", "env/libleaf.so");
    unlink(test_path(t, "tag/libleaf.so"));
    assert_finds(f, NULL, new, "libleaf.so", NULL);
    assert_finds(f, NULL, old, "libleaf.so", NULL);
}

static void tokens_have_two_spellings(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    static const char *const texts[] = {"$ORIGIN/o",
                                        "${ORIGIN}/o",
                                        "$ORIGINAL:$ORIGIN/o",
                                        "$ORIGIN/p/$PLATFORM",
                                        "${ORIGIN}/p/${PLATFORM}x:%/o",
                                        "$ORIGIN/$LIB",
                                        "${ORIGIN}/${LIB}",
                                        "$ORIGIN_:$ORIGIN/o//"};

    skip_under_valgrind();
    open_search(f, (struct exti_elf_search_opts){0});
    make_leaf(f, "o");
    make_leaf(f, test_format(t, "p/%s", f->s->platform));
    make_leaf(f, f->s->lib);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        const char *flags = test_format(t, "-L%%/o -lleaf -Wl,-rpath,%s", texts[i]);
        const char *file = toy_lib(t, test_format(t, "r%zu.so", i), flags), *found, *traced;

        traced = toy_traced(t, toy_trace(t, NULL, file), "libleaf.so");
        found = find_for(f, file, "libleaf.so");
        assert_non_null(traced);
        assert_non_null(found);
        assert_string_equal(found, traced);
    }
}

static void names_with_a_slash_are_not_searched_for(void **state)
{
    struct fixture *f = *state;
    const char *file = toy_lib(f->t, "a.so", "");

    make_leaf(f, "sub");
    open_search(f, (struct exti_elf_search_opts){.library_path = test_path(f->t, "sub")});
    assert_string_equal(find_for(f, file, "${ORIGIN}/sub/libleaf.so"),
                        test_path(f->t, "sub/libleaf.so"));
    assert_null(find_for(f, file, "$ORIGIN/libleaf.so"));
    assert_string_equal(find_for(f, file, "libleaf.so"), test_path(f->t, "sub/libleaf.so"));
    assert_null(find_for(f, file, ""));
}

static void rpaths_of_loading_files_count_up_to_a_runpath(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    static const char *const flags[] = {"", "-Wl,--enable-new-dtags,-rpath,/nowhere",
                                        "-Wl,--disable-new-dtags,-rpath,/nowhere"};

    make_leaf(f, "d");
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        struct exti_image *top = NULL;
        const char *mid, *root;
        struct exti_requester chain[2];
        int rc;

        mid = toy_lib(t, "d/libmid.so", test_format(t, "-L%%/d -lleaf %s", flags[i]));
        root = toy_lib(t, "root.so", "-L%/d -lmid -Wl,--disable-new-dtags,-rpath,%/d");
        open_search(f, (struct exti_elf_search_opts){0});
        assert_string_equal(find_for(f, root, "libmid.so"), mid);
        find_for(f, mid, "libleaf.so");
        exti__free(f->found);
        f->found = NULL;
        assert_ok(exti_inspect(root, &top, &t->err), &t->err);
        chain[1] = requester(f, root, top);
        chain[0] = requester(f, mid, f->im);
        chain[0].loader = &chain[1];
        rc = exti__elf_search_find(f->s, chain, "libleaf.so", &f->found, &t->err);
        exti_image_free(top);
        assert_ok(rc, &t->err);
        assert_string_equal(f->found ? f->found : "",
                            toy_traced(t, toy_trace(t, NULL, root), "libleaf.so"));
        assert_int_equal(f->found != NULL, i != 1);
    }
}

static void the_rpath_of_the_program_comes_last(void **state)
{
    static const struct {
        const char *kind, *flags;
        bool counts;
    } rows[] = {
        {"-no-pie", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/p", false},
        {"-static", "", false},
        {"-no-pie", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/p", true},
        {"-pie", "-Wl,--disable-new-dtags,-rpath,$ORIGIN/p", true},
    };
    struct fixture *f = *state;
    const char *program, *file = toy_lib(f->t, "a.so", "");

    make_leaf(f, "p");
    toy_lib(f->t, "libneeded.so", "");
    toy_text(f->t, "program.c", "void _start(void) {}");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        program = toy_build(f->t, "program", rows[i].kind,
                            test_format(f->t, "%%/program.c %s %s", rows[i].flags,
                                        strcmp(rows[i].kind, "-static") ? "-L% -lneeded" : ""));
        open_search(f, (struct exti_elf_search_opts){.program = program});
        find_for(f, file, "libleaf.so");
        assert_string_equal(f->found ? f->found : "",
                            rows[i].counts ? test_path(f->t, "p/libleaf.so") : "");
    }
    file = toy_lib(f->t, "b.so", "-Wl,--enable-new-dtags,-rpath,/nowhere");
    assert_null(find_for(f, file, "libleaf.so"));
}

static bool keeps_name(struct fixture *f, const char *path, const char *name, const char *file)
{
    struct exti_requester from;
    struct exti_file_id id;
    bool keeps;

    exti_image_free(f->im);
    f->im = NULL;
    assert_ok(exti_inspect(path, &f->im, &f->t->err), &f->t->err);
    assert_ok(exti__fs_id(file, &id, &f->t->err), &f->t->err);
    from = requester(f, path, f->im);
    assert_ok(exti__elf_search_by_name(f->s, &from, name, &id, &keeps, &f->t->err), &f->t->err);
    return keeps;
}

static void names_that_find_the_same_file_from_anywhere_may_stay(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *const dirs[] = {test_path(t, "default"), NULL};
    const char *here, *there, *leaf = test_path(t, "default/libleaf.so"), *other;

    make_leaf(f, "default");
    make_leaf(f, "other");
    other = test_path(t, "other/libleaf.so");
    here = toy_lib(t, "here.so", "");
    there = toy_lib(t, "there.so", "-Wl,-rpath,$ORIGIN/other");
    open_search(f, (struct exti_elf_search_opts){.dirs = dirs, .cache_file = ""});
    assert_true(keeps_name(f, here, "libleaf.so", leaf));
    assert_false(
        keeps_name(f, here, "libleaf.so", other)); /* for example by a loading file's DT_RPATH */
    assert_false(keeps_name(f, there, "libleaf.so", other));
    assert_false(keeps_name(f, there, "libleaf.so", leaf)); /* for example because it is loaded */
    assert_true(keeps_name(f, here, leaf, leaf));
    assert_false(keeps_name(f, here, "$ORIGIN/libleaf.so", leaf));
    assert_false(keeps_name(f, here, "./libleaf.so", leaf));
    assert_false(keeps_name(f, here, "libnone.so", leaf));
    open_search(f, (struct exti_elf_search_opts){
                       .dirs = dirs, .cache_file = "", .library_path = test_path(t, "other")});
    assert_false(keeps_name(f, here, "libleaf.so", leaf));
    assert_false(keeps_name(f, here, "libleaf.so", other));
    toy_lib(t, "here.so", "-Wl,-z,nodefaultlib");
    open_search(f, (struct exti_elf_search_opts){.dirs = dirs, .cache_file = ""});
    assert_false(keeps_name(f, here, "libleaf.so", leaf));
}

static void files_for_another_machine_are_skipped(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *root, *first = test_path(t, "first/libleaf.so");
    static const struct {
        size_t at;
        char byte;
    } changes[] = {{4, 1}, {18, 40}}; /* EI_CLASS, e_machine */

    make_leaf(f, "second");
    root = toy_lib(t, "root.so", "-L%/second -lleaf -Wl,-rpath,%/first:%/second");
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        size_t n;
        char *bytes;

        make_leaf(f, "first");
        bytes = test_read(t, first, &n);
        bytes[changes[i].at] = changes[i].byte;
        test_write(first, bytes, n);
        assert_finds(f, NULL, root, "libleaf.so", "second/libleaf.so");
    }
}

static void other_files_end_the_search(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    struct exti_requester from;
    const char *first, *root;

    make_leaf(f, "second");
    root = toy_lib(t, "root.so", "-L%/second -lleaf -Wl,-rpath,%/first:%/second");
    toy_dir(t, "first");
    first = test_path(t, "first/libleaf.so");
    toy_text(t, "first/libleaf.so",
             "/* GNU ld script */\nGROUP ( /lib/libleaf.so.1 /lib/libleaf_nonshared.a )\n");
    open_search(f, (struct exti_elf_search_opts){0});
    assert_ok(exti_inspect(root, &f->im, &t->err), &t->err);
    from = requester(f, root, f->im);
    assert_exti(exti__elf_search_find(f->s, &from, "libleaf.so", &f->found, &t->err), EXTI_E_FORMAT,
                &t->err, 0);
    assert_string_equal(t->err.file, first);
    assert_contains(toy_trace(t, NULL, root), "invalid ELF header");
    test_write(first, "\177ELF\2\1", 6);
    assert_exti(exti__elf_search_find(f->s, &from, "libleaf.so", &f->found, &t->err), EXTI_E_FORMAT,
                &t->err, 0);
    unlink(first);
    mkdir(first, 0777);
    assert_int_equal(exti__elf_search_find(f->s, &from, "libleaf.so", &f->found, &t->err),
                     EXTI_E_IO);
    assert_int_equal(t->err.os_error, EISDIR);
    assert_contains(toy_trace(t, NULL, root), "cannot read file data");
}

static void hwcaps_come_before_the_folder_itself(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *const *h = exti__host_hwcaps();
    const char *root;

    make_leaf(f, "d");
    root = toy_lib(t, "root.so", "-L%/d -lleaf -Wl,-rpath,%/d");
    make_leaf(f, "d/glibc-hwcaps/x86-64-v9");
    assert_finds(f, NULL, root, "libleaf.so", "d/libleaf.so");
    if (!*h)
        skip_because("this processor has no glibc-hwcaps");
    while (h[1])
        h++;
    for (;; h--) { /* from the worst to the best */
        const char *dir = test_format(t, "d/glibc-hwcaps/%s", *h);

        make_leaf(f, dir);
        assert_finds(f, NULL, root, "libleaf.so", test_format(t, "%s/libleaf.so", dir));
        if (h == exti__host_hwcaps())
            break;
    }
}

/* From the worst to the best, even if this loader or this processor does not know them. */
static void subfolders_of_older_loaders_come_before_the_folder(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
#ifdef __aarch64__
    const char *const subs[] = {"atomics", exti__host_platform(), "tls"};
#else
    const char *const subs[] = {"x86_64", "avx512_1", exti__host_platform(), "tls"};
#endif
    const char *root, *traced;

    skip_under_valgrind();
    make_leaf(f, "d");
    root = toy_lib(t, "root.so", "-L%/d -lleaf -Wl,-rpath,%/d");
    for (int set = 1; set < 1 << ARRAY_SIZE(subs); set++) {
        const char *dir = "d";

        for (int i = (int)ARRAY_SIZE(subs) - 1; i >= 0; i--)
            if (set >> i & 1)
                dir = test_format(t, "%s/%s", dir, subs[i]);
        make_leaf(f, dir);
        open_search(f, (struct exti_elf_search_opts){0});
        traced = toy_traced(t, toy_trace(t, NULL, root), "libleaf.so");
        assert_non_null(traced);
        assert_string_equal(find_for(f, root, "libleaf.so"), traced);
    }
}

/* dlinfo gives a file's search path as expanded by the loader of the process. */
static void the_platform_is_that_of_the_loader(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    Dl_serinfo size, *paths;
    unsigned i = 0;
    void *handle;

    skip_under_valgrind();
    handle = dlopen(toy_lib(t, "a.so", "-Wl,-rpath,%/$PLATFORM"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    assert_int_equal(dlinfo(handle, RTLD_DI_SERINFOSIZE, &size), 0);
    paths = test_alloc(t, size.dls_size);
    assert_int_equal(dlinfo(handle, RTLD_DI_SERINFOSIZE, paths), 0);
    assert_int_equal(dlinfo(handle, RTLD_DI_SERINFO, paths), 0);
    open_search(f, (struct exti_elf_search_opts){0});
    while (i < paths->dls_cnt &&
           strncmp(paths->dls_serpath[i].dls_name, t->dir, strlen(t->dir)) != 0)
        i++;
    assert_true(i < paths->dls_cnt);
    print_message("platform %s\n", f->s->platform);
    assert_string_equal(paths->dls_serpath[i].dls_name, test_path(t, f->s->platform));
    dlclose(handle);
}

/* qemu emulates other processors, but cannot run sanitizers, whose memory does not fit. */
static void look_ups_agree_with_ld_so_on_other_processors(void **state)
{
    static const struct {
        const char *model, *platform;
    } processors[] = {{"Nehalem", "x86_64"}, {"Haswell", "haswell"}, {"EPYC", "x86_64"}};
    struct fixture *f = *state;
    struct test *t = f->t;
    char *out;

#if !defined(__x86_64__) || !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) ||                \
    defined(__SANITIZE_THREAD__)
    skip_because("this program is not for qemu's processors");
#endif
    skip_under_valgrind();
    assert_ok(exti__fs_realpath("/proc/self/exe", &f->found, &t->err), &t->err);
    for (size_t i = 0; i < ARRAY_SIZE(processors); i++) {
        int status = test_run(t, &out, "qemu-x86_64", "-cpu", processors[i].model, f->found,
                              "the_platform_is_that_of_the_loader", NULL);

        if (status == 127)
            skip_because("qemu-x86_64 is not installed");
        assert_contains(out, test_format(t, "platform %s\n", processors[i].platform));
        assert_int_equal(status, 0);
    }
}

static void nodeflib_excludes_the_default_folders(void **state)
{
    struct fixture *f = *state;
    const char *dirs[] = {toy_dir(f->t, "usual"), NULL};
    const char *plain = toy_lib(f->t, "a.so", ""),
               *no = toy_lib(f->t, "b.so", "-Wl,-z,nodefaultlib");

    make_leaf(f, "usual");
    open_search(f, (struct exti_elf_search_opts){.dirs = dirs, .cache_file = ""});
    assert_string_equal(find_for(f, plain, "libleaf.so"), test_path(f->t, "usual/libleaf.so"));
    assert_null(find_for(f, no, "libleaf.so"));
    assert_true(f->im->info.flags & EXTI_IMAGE_NODEFLIB);
    open_search(f, (struct exti_elf_search_opts){0});
    assert_non_null(find_for(f, plain, "libc.so.6"));
    assert_null(find_for(f, no, "libc.so.6")); /* the cache has it, in a default folder */
}

static void a_library_that_was_removed_is_looked_for_again(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *const dirs[] = {toy_dir(t, "first"), toy_dir(t, "second"), NULL};
    const char *user, *none;

    make_leaf(f, "first");
    make_leaf(f, "second");
    user = toy_lib(t, "user.so", "-L%/first -lleaf");
    none = toy_lib(t, "none.so", "-L%/first -lleaf -Wl,-z,nodefaultlib");
    open_search(f, (struct exti_elf_search_opts){.dirs = dirs, .cache_file = ""});
    for (int i = 0; i < 2; i++) {
        assert_string_equal(find_for(f, user, "libleaf.so"), test_path(t, "first/libleaf.so"));
        assert_null(find_for(f, none, "libleaf.so"));
    }
    unlink(test_path(t, "first/libleaf.so"));
    for (int i = 0; i < 2; i++)
        assert_string_equal(find_for(f, user, "libleaf.so"), test_path(t, "second/libleaf.so"));
    unlink(test_path(t, "second/libleaf.so"));
    assert_null(find_for(f, user, "libleaf.so"));
}

static void every_allocation_may_fail(void **state)
{
    struct fixture *f = *state;
    struct exti_elf_search_opts o = {.library_path = "/nowhere"};
    struct exti_requester from;
    const char *root;
    long n;
    int rc = EXTI_E_NOMEM;

    make_leaf(f, "d");
    root = toy_lib(f->t, "root.so", "-L%/d -lleaf -Wl,-rpath,$ORIGIN/d");
    o.program = root;
    for (n = 0; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__elf_search_open(&o, &f->s, &f->t->err);
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || rc == EXTI_E_NOMEM);
    }
    assert_true(n > 10);
    assert_ok(exti_inspect(root, &f->im, &f->t->err), &f->t->err);
    from = requester(f, root, f->im);
    for (n = 0, rc = EXTI_E_NOMEM; rc; n++) {
        exti__mem_fail_after(n);
        rc = exti__elf_search_find(f->s, &from, "libleaf.so", &f->found, &f->t->err);
        exti__mem_fail_after(-1);
        assert_true(rc == 0 || rc == EXTI_E_NOMEM);
    }
    assert_true(n > 5);
    assert_string_equal(f->found, test_path(f->t, "d/libleaf.so"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        search_test(folders_are_searched_in_order),
        search_test(tokens_have_two_spellings),
        search_test(names_with_a_slash_are_not_searched_for),
        search_test(rpaths_of_loading_files_count_up_to_a_runpath),
        search_test(the_rpath_of_the_program_comes_last),
        search_test(names_that_find_the_same_file_from_anywhere_may_stay),
        search_test(files_for_another_machine_are_skipped),
        search_test(other_files_end_the_search),
        search_test(hwcaps_come_before_the_folder_itself),
        search_test(subfolders_of_older_loaders_come_before_the_folder),
        search_test(the_platform_is_that_of_the_loader),
        search_test(look_ups_agree_with_ld_so_on_other_processors),
        search_test(nodeflib_excludes_the_default_folders),
        search_test(a_library_that_was_removed_is_looked_for_again),
        search_test(every_allocation_may_fail),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("resolve/search_elf", tests, NULL, NULL);
}
