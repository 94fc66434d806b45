/* References that the program's instance of a library interposes, although the context has a copy
 * of that library. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include "tests/isolation/build.h"

static const char dep_source[] = "#include <stddef.h>\n"
                                 "int dep_count = 1, dep_old_calls, dep_new_calls;\n"
                                 "__thread int dep_tls = 3;\n"
                                 "int dep_next(void) { return ++dep_count; }\n"
                                 "static int fast(void) { return ++dep_count; }\n"
                                 "static int (*choose(void))(void) { return fast; }\n"
                                 "int dep_fast(void) __attribute__((ifunc(\"choose\")));\n"
                                 "int dep_old(void) { return ++dep_old_calls; }\n"
                                 "int dep_new(void) { return ++dep_new_calls; }\n"
                                 "__asm__(\".symver dep_old, dep_versioned@DEP_1\");\n"
                                 "__asm__(\".symver dep_new, dep_versioned@@DEP_2\");\n";

static const char user_source[] =
    "extern int dep_count;\n"
    "int dep_next(void), dep_fast(void), dep_versioned(void);\n"
    "__asm__(\".symver dep_versioned, dep_versioned@DEP_1\");\n"
    "int *const table[] = {&dep_count, &dep_count + 1};\n"
    "int *writable = &dep_count, *at_init;\n"
    "int (*functions[])(void) = {dep_next, dep_fast, dep_versioned};\n"
    "__attribute__((constructor)) static void init(void) { at_init = &dep_count; }\n"
    "int *user_at_init(void) { return at_init; }\n"
    "int *user_count(void) { return &dep_count; }\n"
    "int *user_table(void) { return table[0]; }\n"
    "int *user_behind(void) { return table[1]; }\n"
    "int *user_writable(void) { return writable; }\n"
    "void *user_function(void) { return (void *)functions[0]; }\n"
    "int user_next(void) { return dep_next(); }\n"
    "int user_fast(void) { return dep_fast(); }\n"
    "int user_fast_by_pointer(void) { return functions[1](); }\n"
    "int user_versioned(void) { return dep_versioned() + functions[2](); }\n";

static void build_dep(void)
{
    iso_write_text(in_tmp("dep.map"), "DEP_1 { };\nDEP_2 { global: dep_*; local: *; } DEP_1;\n");
    iso_build(dep_source, "libdep.so.1",
              iso_text("-Wl,-soname,libdep.so.1 -Wl,--version-script='%s'", in_tmp("dep.map")));
}

/* Links the file with the library, so that its references have versions. */
static void build_user(const char *source, const char *file, const char *flags)
{
    iso_build(source, file,
              iso_text("%s '%s' -Wl,-rpath,'%s'", flags, in_tmp("libdep.so.1"), iso_tmp));
}

static void *open_global(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    want(handle);
    return handle;
}

static void want_user_patched(const char *flags)
{
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_module *dep, *user;
    void *host = open_global(in_tmp("libdep.so.1"));
    int *host_count = dlsym(host, "dep_count"), *count;

    build_user(user_source, "user.so", flags);
    dep = iso_load(ctx, in_tmp("libdep.so.1"));
    user = iso_load(ctx, in_tmp("user.so"));
    count = iso_sym(dep, "dep_count");
    want(count != host_count);
    want(call_ptr(user, "user_at_init") == count); /* patched before constructors ran */
    want(call_ptr(user, "user_count") == count);
    want(call_ptr(user, "user_table") == count);
    want(call_ptr(user, "user_behind") == count + 1);
    want(call_ptr(user, "user_writable") == count);
    want(call_ptr(user, "user_function") == iso_sym(dep, "dep_next"));
    want_int(call_int(user, "user_next"), 2);
    want_int(call_int(user, "user_fast"), 3);
    want_int(call_int(user, "user_fast_by_pointer"), 4);
    want_int(*host_count, 1);
    want_int(call_int(user, "user_versioned"), 3);
    want_int(*(int *)iso_sym(dep, "dep_old_calls"), 2);
    want_int(*(int *)iso_sym(dep, "dep_new_calls"), 0);
    want_int(*(int *)dlsym(host, "dep_old_calls"), 0);
    iso_prove_clean(ctx, 3);
    iso_close_ctx(ctx);
}

ISO_CASE(interposed_references_are_patched)
{
    static const char *const flags[] = {"-Wl,-z,now -Wl,-z,relro", "-Wl,-z,lazy -Wl,-z,relro",
                                        "-Wl,-z,lazy -Wl,-z,norelro", "-fno-plt"};

    build_dep();
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        want_user_patched(flags[i]);
}

/* The program loads the original through a symbolic link, as it loads most libraries of the
 * system. */
ISO_CASE(an_original_is_recognised_by_another_path)
{
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_module *dep, *user;
    void *host;

    build_dep();
    build_user(user_source, "user.so", "");
    want(mkdir(in_tmp("links"), 0777) == 0);
    want(symlink(in_tmp("libdep.so.1"), in_tmp("links/libdep.so.1")) == 0);
    host = open_global(in_tmp("links/libdep.so.1"));
    dep = iso_load(ctx, in_tmp("libdep.so.1"));
    user = iso_load(ctx, in_tmp("user.so"));
    want(call_ptr(user, "user_at_init") == iso_sym(dep, "dep_count"));
    want(call_ptr(user, "user_count") == iso_sym(dep, "dep_count"));
    want(iso_sym(dep, "dep_count") != dlsym(host, "dep_count"));
    iso_prove_clean(ctx, 3);
    iso_close_ctx(ctx);
}

/* The program has another library with the same file name and SONAME.  A module that does not name
 * the library as needed gets the program's. */
ISO_CASE(a_reference_to_a_namesake_stays_if_its_module_does_not_need_the_original)
{
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_module *user;
    void *host;

    build_dep();
    want(mkdir(in_tmp("other"), 0777) == 0);
    want(rename(in_tmp("libdep.so.1"), in_tmp("other/libdep.so.1")) == 0);
    build_dep();
    host = open_global(in_tmp("other/libdep.so.1"));
    iso_load(ctx, in_tmp("libdep.so.1"));
    iso_build("extern int dep_count; int *user_count(void) { return &dep_count; }", "loose.so", "");
    user = iso_load(ctx, in_tmp("loose.so"));
    want(call_ptr(user, "user_count") == dlsym(host, "dep_count"));
    iso_prove_clean(ctx, 3);
    iso_close_ctx(ctx);
}

/* A module that names the library as needed gets the context's copy. */
ISO_CASE(a_reference_to_a_namesake_is_patched_if_its_module_needs_the_original)
{
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_module *user;
    void *host;

    build_dep();
    build_user(user_source, "user.so", "");
    want(mkdir(in_tmp("other"), 0777) == 0);
    copy_file(in_tmp("libdep.so.1"), in_tmp("other/libdep.so.1"));
    host = open_global(in_tmp("other/libdep.so.1"));
    user = iso_load(ctx, in_tmp("user.so"));
    want(call_ptr(user, "user_at_init") ==
         iso_sym(iso_load(ctx, in_tmp("libdep.so.1")), "dep_count"));
    want(call_ptr(user, "user_count") ==
         iso_sym(iso_load(ctx, in_tmp("libdep.so.1")), "dep_count"));
    want_int(call_int(user, "user_next"), 2);
    want_int(*(int *)dlsym(host, "dep_count"), 1);
    iso_prove_clean(ctx, 3);
    iso_close_ctx(ctx);
}

static struct exti_error want_refused(struct exti_ctx *ctx, const char *path)
{
    struct exti_module *m = NULL;
    struct exti_error err = {0};

    want_exti(exti_load(ctx, path, &m, &err), EXTI_E_INTERPOSED, &err);
    fprintf(stderr, "%s: %s\n", err.file, err.message);
    want(!m);
    return err;
}

/* The directory has a copy of the library, but the context has not loaded it, since the module does
 * not name it as needed. */
ISO_CASE(a_reference_to_an_original_whose_copy_is_not_loaded_is_refused)
{
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_error err;
    struct exti_module *user;
    const char *copy;

    build_dep();
    open_global(in_tmp("libdep.so.1"));
    iso_build("extern int dep_count; int *user_count(void) { return &dep_count; }", "loose.so", "");
    want(exti_copy(ctx, in_tmp("libdep.so.1"), &copy, NULL) == 0);
    err = want_refused(ctx, in_tmp("loose.so"));
    want_text(err.message, "dep_count");
    want_text(err.message, "libdep.so.1");
    want_text(err.file, "loose.");
    iso_load(ctx, in_tmp("libdep.so.1"));
    user = iso_load(ctx, in_tmp("loose.so"));
    want(call_ptr(user, "user_count") ==
         iso_sym(iso_load(ctx, in_tmp("libdep.so.1")), "dep_count"));
    iso_close_ctx(ctx);
}

/* The control: with no original in the program, both TLS models load. */
ISO_CASE(control_thread_local_variables_of_copies_load)
{
    static const char *const models[] = {"global-dynamic", "initial-exec"};

    build_dep();
    for (size_t i = 0; i < 2; i++) {
        struct exti_ctx *ctx = iso_open(NULL);
        struct exti_module *user;

        build_user("extern __thread int mine; __thread int mine = 4;"
                   "int *user_tls(void) { return &mine; }",
                   iso_text("%s.so", models[i]), iso_text("-ftls-model=%s", models[i]));
        user = iso_load(ctx, in_tmp(iso_text("%s.so", models[i])));
        want_int(*(int *)call_ptr(user, "user_tls"), 4);
        iso_prove_clean(ctx, 2);
        iso_close_ctx(ctx);
    }
}

/* ---- slots that a test writes ---- */

/* The slot that the general relocations (DT_RELA) of a copy have for `name`. */
static void **slot_of(const char *copy, const char *name)
{
    void *handle = dlopen(copy, RTLD_NOW | RTLD_NOLOAD);
    const ElfW(Rela) *rela = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    struct link_map *map = NULL;
    size_t size = 0;

    want(handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_RELA)
            rela = (const void *)d->d_un.d_ptr;
        else if (d->d_tag == DT_RELASZ)
            size = d->d_un.d_val;
        else if (d->d_tag == DT_SYMTAB)
            symbols = (const void *)d->d_un.d_ptr;
        else if (d->d_tag == DT_STRTAB)
            strings = (const void *)d->d_un.d_ptr;
    }
    for (size_t i = 0; i < size / sizeof *rela; i++) {
        uintptr_t at = map->l_addr + rela[i].r_offset;

        if (strcmp(strings + symbols[ELF64_R_SYM(rela[i].r_info)].st_name, name) != 0)
            continue;
        want(mprotect((void *)(at & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE) == 0);
        return (void **)at;
    }
    fprintf(stderr, "%s has no slot of %s\n", copy, name);
    want(0);
    return NULL;
}

static int keep_finding(void *user, const struct exti_error *finding)
{
    *(struct exti_error *)user = *finding;
    return 0;
}

static void want_one_leak(struct exti_ctx *ctx, const char *symbol, const char *target)
{
    struct exti_error found = {0};

    want_int((long)iso_proof(ctx, keep_finding, &found).leaks, 1);
    want_int(found.code, EXTI_E_INTERPOSED);
    want_text(found.message, symbol);
    want_text(found.message, target);
}

/* The symbols belong to no API. */
ISO_CASE(the_proof_finds_slots_that_lead_outside)
{
    struct exti_ctx *x = iso_open("x"), *y = iso_open("y");
    struct exti_module *dep, *other, *user;
    void **slot, *inside, *shared;

    build_dep();
    iso_build("int dep_count;", "libshared.so", "");
    iso_build("extern int dep_count; int *user_count(void) { return &dep_count; }", "user.so",
              iso_text("'%s' -Wl,-rpath,'%s'", in_tmp("libdep.so.1"), iso_tmp));
    dep = iso_load(x, in_tmp("libdep.so.1"));
    user = iso_load(x, in_tmp("user.so"));
    other = iso_load(y, in_tmp("libdep.so.1"));
    slot = slot_of(exti_module_copy(user), "dep_count");
    inside = *slot;
    want(inside == iso_sym(dep, "dep_count"));
    iso_prove_clean(x, 3);
    *slot = iso_sym(other, "dep_count");
    want_one_leak(x, "dep_count", exti_module_copy(other));
    *slot = dlsym(open_global(in_tmp("libdep.so.1")), "dep_count");
    want_one_leak(x, "dep_count", in_tmp("libdep.so.1"));
    /* A library that no context has a copy of may be a reference target, but not of what means the
     * context's own. */
    shared = dlsym(dlopen(in_tmp("libshared.so"), RTLD_NOW), "dep_count");
    want(shared);
    *slot = shared;
    want_one_leak(x, "dep_count", in_tmp("libshared.so"));
    want_int((long)iso_proof(x, iso_print_finding, NULL).captured, 0);
    *slot = inside;
    iso_prove_clean(x, 3);
    iso_prove_clean(y, 2);
    iso_close_ctx(x);
    iso_close_ctx(y);
}

/* As with a C++ template that a shared library instantiates too. */
ISO_CASE(a_reference_may_lead_to_a_shared_library_that_defines_its_symbol_too)
{
    static const char source[] = "__attribute__((weak)) int both = 1;"
                                 "int *user_both(void) { return &both; }";
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_module *user;
    void **slot, *shared;

    iso_build(source, "user.so", "");
    iso_build(source, "libshared.so", "-DSHARED");
    user = iso_load(ctx, in_tmp("user.so"));
    slot = slot_of(exti_module_copy(user), "both");
    want(*slot == iso_sym(user, "both"));
    shared = dlsym(dlopen(in_tmp("libshared.so"), RTLD_NOW), "both");
    want(shared && shared != *slot);
    *slot = shared;
    iso_prove_clean(ctx, 2);
    *slot = dlsym(dlopen(in_tmp("user.so"), RTLD_NOW), "both");
    want_one_leak(ctx, "both", in_tmp("user.so"));
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interposed_references_are_patched),
        cmocka_unit_test(an_original_is_recognised_by_another_path),
        cmocka_unit_test(a_reference_to_a_namesake_stays_if_its_module_does_not_need_the_original),
        cmocka_unit_test(a_reference_to_a_namesake_is_patched_if_its_module_needs_the_original),
        cmocka_unit_test(a_reference_to_an_original_whose_copy_is_not_loaded_is_refused),
        cmocka_unit_test(control_thread_local_variables_of_copies_load),
        cmocka_unit_test(the_proof_finds_slots_that_lead_outside),
        cmocka_unit_test(a_reference_may_lead_to_a_shared_library_that_defines_its_symbol_too),
    };

    return cmocka_run_group_tests_name("isolation/interposed_references", tests, NULL, NULL);
}
