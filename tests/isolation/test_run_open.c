/* A copy that calls dlopen with a name or a path gets the library of its context. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>

#include "tests/isolation/build.h"

static const char own_source[] = "static int n;\n"
                                 "int own_next(void) { return ++n; }\n"
                                 "int own_count;\n";

struct opener {
    struct exti_ctx *ctx;
    struct exti_module *m;
    void *(*open)(const char *, int);
    void *(*sym)(void *, const char *);
    void *(*sym_default)(const char *);
    int (*close)(void *);
    const char *(*error)(void);
};

/* Builds an extension that calls the loader, in a folder of its own, with `flags` for the
 * linker. */
static void build_opener(const char *flags)
{
    want(mkdir(in_tmp("pkg"), 0777) == 0 && mkdir(in_tmp("pkg.libs"), 0777) == 0);
    want(system(iso_text("gcc -O1 -fPIC -shared testdata/src/toy/toy_dl.c -o '%s' %s",
                         in_tmp("pkg/dl.so"), flags)) == 0);
}

static struct opener open_opener(struct exti_ctx *ctx)
{
    struct opener o = {.ctx = ctx, .m = iso_load(ctx, in_tmp("pkg/dl.so"))};

    o.open = (void *(*)(const char *, int))iso_sym(o.m, "dl_open");
    o.sym = (void *(*)(void *, const char *))iso_sym(o.m, "dl_sym");
    o.sym_default = (void *(*)(const char *))iso_sym(o.m, "dl_sym_default");
    o.close = (int (*)(void *))iso_sym(o.m, "dl_close");
    o.error = (const char *(*)(void))iso_sym(o.m, "dl_error");
    return o;
}

static struct exti_ctx *open_ctx(enum exti_closure closure, const struct exti_rule *rules,
                                 size_t count)
{
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);

    opts.closure = closure;
    opts.rules = rules;
    opts.rule_count = count;
    return iso_open_opts(&opts);
}

static void *want_open(const struct opener *o, const char *file, int mode)
{
    void *handle = o->open(file, mode);

    if (!handle)
        fprintf(stderr, "%s\n", o->error());
    want(handle);
    return handle;
}

static int call_next(const struct opener *o, const char *file)
{
    int (*f)(void) = (int (*)(void))o->sym(want_open(o, file, RTLD_NOW | RTLD_GLOBAL), "own_next");

    want(f);
    return f();
}

static int call_next_in_host(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*f)(void) = handle ? (int (*)(void))dlsym(handle, "own_next") : NULL;

    want(f);
    return f();
}

/* Both the search path and $ORIGIN are those of the original. */
static void want_own_library(const char *file)
{
    struct opener x, y;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    x = open_opener(iso_open(NULL));
    y = open_opener(iso_open(NULL));
    want(chdir(iso_tmp) == 0);
    want(!x.open(file, RTLD_NOW | RTLD_NOLOAD));
    want_int(call_next(&x, file), 1);
    want_int(call_next(&x, file), 2);
    want_int(call_next(&y, file), 1);
    want_int(call_next_in_host(in_tmp("pkg.libs/libown.so")), 1);
    want_int(call_next(&x, in_tmp("pkg.libs/libown.so")), 3);
    want(want_open(&x, file, RTLD_NOW | RTLD_NOLOAD) == want_open(&x, file, RTLD_NOW));
    want(!dlsym(RTLD_DEFAULT, "own_next"));
    iso_prove_clean(x.ctx, 3);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

ISO_CASE(a_name_is_searched_along_the_originals_path)
{
    want_own_library("libown.so");
}

ISO_CASE(ORIGIN_in_a_path_is_the_originals_folder)
{
    want_own_library("$ORIGIN/../pkg.libs/libown.so");
}

ISO_CASE(a_relative_path_opens_the_contexts_copy)
{
    want_own_library("pkg.libs/libown.so");
}

/* The control: without copies of libraries contexts and program share one. */
ISO_CASE(control_an_opened_library_is_shared_without_a_closure)
{
    struct opener x, y;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    x = open_opener(open_ctx(EXTI_CLOSURE_NONE, NULL, 0));
    y = open_opener(open_ctx(EXTI_CLOSURE_NONE, NULL, 0));
    want_int(call_next(&x, in_tmp("pkg.libs/libown.so")), 1);
    want_int(call_next(&y, in_tmp("pkg.libs/libown.so")), 2);
    want_int(call_next(&y, "libown.so"), 3);
    want_int(call_next_in_host(in_tmp("pkg.libs/libown.so")), 4);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

ISO_CASE(rules_apply_to_opened_libraries)
{
    static const struct exti_rule share = {"libown.so", 1};
    struct opener x, y;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    x = open_opener(open_ctx(EXTI_CLOSURE_ALL, &share, 1));
    y = open_opener(open_ctx(EXTI_CLOSURE_ALL, NULL, 0));
    want_int(call_next(&x, "libown.so"), 1);
    want_int(call_next(&y, "libown.so"), 1);
    want_int(call_next_in_host(in_tmp("pkg.libs/libown.so")), 2);
    want_int(call_next(&x, in_tmp("pkg.libs/libown.so")), 3);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

/* One package ships a library, and another one opens it by the name under which it is loaded: its
 * SONAME or, without one, the name in its users' DT_NEEDED. */
static void want_loaded_library(const char *soname)
{
    struct opener o;
    struct exti_module *user;

    build_opener("");
    iso_build(own_source, "pkg.libs/libown-1a2b.so", soname);
    iso_build(
        "int own_next(void); int user_next(void) { return own_next(); }", "pkg/user.so",
        iso_text("-L'%s' -l:libown-1a2b.so -Wl,-rpath,'$ORIGIN/../pkg.libs'", in_tmp("pkg.libs")));
    o = open_opener(iso_open(NULL));
    want(!o.open("libown-1a2b.so", RTLD_NOW));
    want_text(o.error(), "libown-1a2b.so");
    user = iso_load(o.ctx, in_tmp("pkg/user.so"));
    want_int(call_int(user, "user_next"), 1);
    want_int(call_next(&o, "libown-1a2b.so"), 2);
    want_int(call_next_in_host(in_tmp("pkg.libs/libown-1a2b.so")), 1);
    iso_close_ctx(o.ctx);
}

ISO_CASE(a_loaded_library_is_opened_by_its_soname)
{
    want_loaded_library("-Wl,-soname,libown-1a2b.so");
}

ISO_CASE(a_loaded_library_is_opened_by_the_name_that_needs_it)
{
    want_loaded_library("");
}

/* A toolkit's module opens plug-ins, which need the toolkit's library. */
ISO_CASE(a_plug_in_gets_the_libraries_of_its_context)
{
    struct opener x, y;
    struct exti_module *user;
    char plugin[512];
    int (*count)(void);

    build_opener("");
    iso_build(own_source, "pkg.libs/libcore.so", "-Wl,-soname,libcore.so");
    iso_build("int own_next(void); int plug_next(void) { return own_next(); }",
              "pkg.libs/plugin.so",
              iso_text("-L'%s' -lcore -Wl,-rpath,'$ORIGIN'", in_tmp("pkg.libs")));
    iso_build("int own_next(void); int user_next(void) { return own_next(); }", "pkg/user.so",
              iso_text("-L'%s' -lcore -Wl,-rpath,'$ORIGIN/../pkg.libs'", in_tmp("pkg.libs")));
    snprintf(plugin, sizeof plugin, "%s", in_tmp("pkg.libs/plugin.so"));
    x = open_opener(iso_open(NULL));
    y = open_opener(iso_open(NULL));
    user = iso_load(x.ctx, in_tmp("pkg/user.so"));
    want_int(call_int(user, "user_next"), 1);
    count = (int (*)(void))x.sym(want_open(&x, plugin, RTLD_NOW), "plug_next");
    want(count && count() == 2);
    count = (int (*)(void))y.sym(want_open(&y, plugin, RTLD_NOW), "plug_next");
    want(count && count() == 1);
    want_int(call_next_in_host(in_tmp("pkg.libs/libcore.so")), 1);
    iso_prove_clean(x.ctx, 5);
    iso_prove_clean(y.ctx, 4);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

/* As with Qt, the finaliser of the toolkit's library destroys the objects of the plug-ins, which
 * need the library.  The code of both plug-ins must still be mapped then, in any order of
 * unloading. */
static struct opener open_plugins(int *destroyed, void *handles[2])
{
    static const char core[] = "static void (*destroy[2])(int *);\n"
                               "static int count, *where;\n"
                               "void core_made(void (*f)(int *), int *p)\n"
                               "{ destroy[count++] = f; where = p; }\n"
                               "__attribute__((destructor)) static void core_end(void)\n"
                               "{ while (count) destroy[--count](where); }\n";
    static const char plugin[] = "void core_made(void (*f)(int *), int *p);\n"
                                 "static void destroy(int *p) { ++*p; }\n"
                                 "void plug_make(int *p) { core_made(destroy, p); }\n";
    static const char *const names[] = {"pkg.libs/one.so", "pkg.libs/two.so"};
    struct opener o;

    build_opener("");
    iso_build(core, "pkg.libs/libcore.so", "-Wl,-soname,libcore.so");
    o = open_opener(iso_open(NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void (*make)(int *);

        iso_build(plugin, names[i],
                  iso_text("-L'%s' -lcore -Wl,-rpath,'$ORIGIN'", in_tmp("pkg.libs")));
        handles[i] = want_open(&o, in_tmp(names[i]), RTLD_NOW);
        make = (void (*)(int *))o.sym(handles[i], "plug_make");
        want(make);
        make(destroyed);
    }
    return o;
}

ISO_CASE(plug_ins_stay_mapped_for_their_toolkits_finaliser)
{
    int destroyed = 0;
    void *handles[2];
    struct opener o = open_plugins(&destroyed, handles);

    iso_close_ctx(o.ctx);
    want_int(destroyed, 2);
}

/* The control: one plug-in is closed before the others. */
static void close_one_by_one(void *arg)
{
    void *handles[2];
    struct opener o = open_plugins(arg, handles);

    want_int(o.close(handles[0]), 0);
    exti_ctx_close(o.ctx, NULL);
}

ISO_CASE(control_a_plug_in_closed_earlier_crashes_the_finaliser)
{
    int destroyed = 0, status;
    pid_t pid = iso_spawn(close_one_by_one, &destroyed);

    want(waitpid(pid, &status, 0) == pid);
    want(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 99));
}

/* By the path that dladdr gives it, for example. */
ISO_CASE(an_extension_that_opens_itself_gets_itself)
{
    struct opener o;
    void *handle;

    build_opener("");
    o = open_opener(iso_open(NULL));
    handle = want_open(&o, in_tmp("pkg/dl.so"), RTLD_NOW | RTLD_NOLOAD);
    want(o.sym(handle, "dl_next") == iso_sym(o.m, "dl_next"));
    handle = want_open(&o, exti_module_copy(o.m), RTLD_NOW);
    want(o.sym(handle, "dl_next") == iso_sym(o.m, "dl_next"));
    want_int(o.close(handle), 0);
    want_int(o.close(handle), 0);
    want_int(call_int(o.m, "dl_next"), 1);
    iso_close_ctx(o.ctx);
}

ISO_CASE(a_library_is_unloaded_with_its_last_handle)
{
    struct opener o;
    void *handle, *again;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    o = open_opener(iso_open(NULL));
    want_int(call_next(&o, "libown.so"), 1);
    handle = want_open(&o, "libown.so", RTLD_NOW);
    want_int(o.close(handle), 0);
    want_int(call_next(&o, "libown.so"), 2);
    want_int(o.close(handle), 0);
    want_int(o.close(handle), 0);
    want(!o.open("libown.so", RTLD_NOW | RTLD_NOLOAD));
    again = want_open(&o, "libown.so", RTLD_NOW);
    want_int(((int (*)(void))o.sym(again, "own_next"))(), 1);
    iso_close_ctx(o.ctx);
}

/* Opens the file with mode `first` and, when it is loaded, with `last`; one of them has
 * RTLD_NODELETE. */
static void want_kept_until_close(const char *file, int first, int last)
{
    struct opener o;
    void *handle;
    int (*f)(void);

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    o = open_opener(iso_open("x"));
    handle = want_open(&o, file, first);
    want(want_open(&o, file, last) == handle);
    f = (int (*)(void))o.sym(handle, "own_next");
    want(f && f() == 1);
    want_int(o.close(handle), 0);
    want_int(o.close(handle), 0);
    want(o.open(file, RTLD_NOW | RTLD_NOLOAD) == handle);
    want_int(f(), 2);
    want_int(o.close(handle), 0);
    want_int(f(), 3);
    iso_close_ctx(o.ctx);
    want(system(iso_text("! grep -q '%s/x/libown' /proc/%ld/maps", iso_tmp, (long)getpid())) == 0);
}

ISO_CASE(RTLD_NODELETE_keeps_a_library_until_the_context_is_closed)
{
    want_kept_until_close("libown.so", RTLD_NOW | RTLD_NODELETE, RTLD_NOW);
}

ISO_CASE(RTLD_NODELETE_keeps_a_loaded_library_opened_by_name)
{
    want_kept_until_close("libown.so", RTLD_NOW, RTLD_NOW | RTLD_NODELETE);
}

ISO_CASE(RTLD_NODELETE_keeps_a_loaded_library_opened_by_path)
{
    want_kept_until_close(in_tmp("pkg.libs/libown.so"), RTLD_NOW,
                          RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

ISO_CASE(RTLD_NODELETE_may_be_given_twice)
{
    want_kept_until_close("libown.so", RTLD_NOW | RTLD_NODELETE, RTLD_NOW | RTLD_NODELETE);
}

/* dlerror gives the text of the system's loader. */
ISO_CASE(dlerror_gives_the_loaders_text)
{
    struct opener o;

    build_opener("");
    iso_write_text(in_tmp("broken.so"), "no library at all, but long enough to be read as one ...");
    o = open_opener(iso_open(NULL));
    want(!o.open("libnowhere.so.7", RTLD_NOW));
    want_text(o.error(), "libnowhere.so.7: cannot open shared object file");
    want(!o.error());
    want(!o.open(in_tmp("broken.so"), RTLD_NOW));
    want_text(o.error(), "broken.so: ");
    want(!o.error());
    want(!o.open("./nowhere/libnowhere.so", RTLD_NOW));
    want_text(o.error(), "./nowhere/libnowhere.so: cannot open shared object file");
    want(!o.open("libnowhere.so.7", RTLD_NOW | RTLD_NOLOAD));
    iso_close_ctx(o.ctx);
}

/* The loader's list of loaded files has such paths. */
ISO_CASE(the_path_of_another_contexts_copy_opens_the_callers_copy)
{
    struct opener x, y;
    char *copy;
    void *own;

    build_opener("");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    x = open_opener(iso_open(NULL));
    y = open_opener(iso_open(NULL));
    copy = strdup(exti_module_copy(iso_load(x.ctx, in_tmp("pkg.libs/libown.so"))));
    own = want_open(&x, copy, RTLD_NOW | RTLD_NOLOAD);
    want(own == want_open(&x, in_tmp("pkg.libs/libown.so"), RTLD_NOW));
    want_int(call_next(&x, copy), 1);
    want(want_open(&y, copy, RTLD_NOW | RTLD_NOLOAD) != own);
    want_int(call_next(&y, copy), 1);
    iso_close_ctx(x.ctx);
    want(!y.open(iso_text("%s.not", copy), RTLD_NOW | RTLD_NOLOAD));
    iso_close_ctx(y.ctx);
    free(copy);
}

/* The program has the library in its global scope. */
ISO_CASE(RTLD_DEFAULT_finds_the_contexts_symbols_before_the_programs)
{
    struct opener o;
    void *host;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    host = dlopen(in_tmp("pkg.libs/libown.so"), RTLD_NOW | RTLD_GLOBAL);
    want(host);
    o = open_opener(iso_open(NULL));
    want(o.sym_default("own_count") == dlsym(host, "own_count"));
    want_open(&o, "libown.so", RTLD_NOW);
    want(o.sym_default("own_count") ==
         iso_sym(iso_load(o.ctx, in_tmp("pkg.libs/libown.so")), "own_count"));
    want(o.sym_default("own_count") != dlsym(host, "own_count"));
    want(o.sym_default("malloc") == dlsym(RTLD_DEFAULT, "malloc"));
    iso_close_ctx(o.ctx);
}

/* Wrappers look up the wrapped function with RTLD_NEXT.  The original is the control. */
static void want_next_symbols(void *handle_or_null, struct exti_module *m)
{
    int (*own)(void), (*other)(void);
    void *(*none)(void);

    *(void **)&own = handle_or_null ? dlsym(handle_or_null, "dep") : (void *)iso_sym(m, "dep");
    *(void **)&other = handle_or_null ? dlsym(handle_or_null, "far") : (void *)iso_sym(m, "far");
    *(void **)&none = handle_or_null ? dlsym(handle_or_null, "none") : (void *)iso_sym(m, "none");
    want_int(own(), 105);
    want_int(other(), 7);
    want(!none());
}

ISO_CASE(RTLD_NEXT_finds_the_next_symbol_after_the_callers)
{
    struct exti_ctx *ctx;
    void *original;

    iso_build("int far_away(void) { return 7; }\n", "libfar.so", "-Wl,-soname,libfar.so");
    iso_build("int dep(void) { return 5; }\n", "libdep.so",
              iso_text("-Wl,-soname,libdep.so -L'%s' -Wl,--no-as-needed -lfar -Wl,-rpath,'%s'",
                       iso_tmp, iso_tmp));
    iso_build("#define _GNU_SOURCE\n"
              "#include <dlfcn.h>\n"
              "int dep(void) { return 100 + ((int (*)(void))dlsym(RTLD_NEXT, \"dep\"))(); }\n"
              "int far(void) { return ((int (*)(void))dlsym(RTLD_NEXT, \"far_away\"))(); }\n"
              "void *none(void) { return dlsym(RTLD_NEXT, \"there_is_no_such\"); }\n",
              "wrap.so",
              iso_text("-Wl,-soname,wrap.so -L'%s' -Wl,--no-as-needed -ldep -Wl,-rpath,'%s'",
                       iso_tmp, iso_tmp));
    original = dlopen(in_tmp("wrap.so"), RTLD_NOW | RTLD_LOCAL);
    want(original);
    want_next_symbols(original, NULL);
    ctx = open_ctx(EXTI_CLOSURE_ALL, NULL, 0);
    want_next_symbols(NULL, iso_load(ctx, in_tmp("wrap.so")));
    iso_close_ctx(ctx);
    dlclose(original);
}

/* Libraries of the base set are those of the process. */
ISO_CASE(the_base_set_stays_shared)
{
    static const char *const names[] = {"libm.so.6", "libc.so.6", "libgcc_s.so.1", "libdl.so.2"};
    struct opener o;

    build_opener("");
    o = open_opener(iso_open(NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *handle = want_open(&o, names[i], RTLD_NOW), *host = dlopen(names[i], RTLD_NOW);

        want(host && handle == host);
        want_int(o.close(handle), 0);
        dlclose(host);
    }
    iso_close_ctx(o.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_searched_along_the_originals_path),
        cmocka_unit_test(ORIGIN_in_a_path_is_the_originals_folder),
        cmocka_unit_test(a_relative_path_opens_the_contexts_copy),
        cmocka_unit_test(control_an_opened_library_is_shared_without_a_closure),
        cmocka_unit_test(rules_apply_to_opened_libraries),
        cmocka_unit_test(a_loaded_library_is_opened_by_its_soname),
        cmocka_unit_test(a_loaded_library_is_opened_by_the_name_that_needs_it),
        cmocka_unit_test(a_plug_in_gets_the_libraries_of_its_context),
        cmocka_unit_test(plug_ins_stay_mapped_for_their_toolkits_finaliser),
#ifdef __GLIBC__ /* other C libraries unmap nothing */
        cmocka_unit_test(control_a_plug_in_closed_earlier_crashes_the_finaliser),
#endif
        cmocka_unit_test(an_extension_that_opens_itself_gets_itself),
        cmocka_unit_test(a_library_is_unloaded_with_its_last_handle),
        cmocka_unit_test(RTLD_NODELETE_keeps_a_library_until_the_context_is_closed),
        cmocka_unit_test(RTLD_NODELETE_keeps_a_loaded_library_opened_by_name),
        cmocka_unit_test(RTLD_NODELETE_keeps_a_loaded_library_opened_by_path),
        cmocka_unit_test(RTLD_NODELETE_may_be_given_twice),
        cmocka_unit_test(dlerror_gives_the_loaders_text),
        cmocka_unit_test(the_path_of_another_contexts_copy_opens_the_callers_copy),
        cmocka_unit_test(RTLD_DEFAULT_finds_the_contexts_symbols_before_the_programs),
        cmocka_unit_test(RTLD_NEXT_finds_the_next_symbol_after_the_callers),
        cmocka_unit_test(the_base_set_stays_shared),
    };

    return cmocka_run_group_tests_name("isolation/run_open", tests, NULL, NULL);
}
