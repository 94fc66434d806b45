/* What a copy gets for the names and paths of libraries that it opens as it runs. */
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

/* An extension that uses the loader, in a folder of its own, with `flags` for the linker. */
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

static void *must_open(const struct opener *o, const char *file, int mode)
{
    void *handle = o->open(file, mode);

    if (!handle)
        fprintf(stderr, "%s\n", o->error());
    want(handle);
    return handle;
}

static int next(const struct opener *o, const char *file)
{
    int (*f)(void) = (int (*)(void))o->sym(must_open(o, file, RTLD_NOW | RTLD_GLOBAL), "own_next");

    want(f);
    return f();
}

static int host_next(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*f)(void) = handle ? (int (*)(void))dlsym(handle, "own_next") : NULL;

    want(f);
    return f();
}

/* Along the original's own path, whose $ORIGIN is the original's folder. */
static void opens_its_own(const char *file)
{
    struct opener x, y;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    x = open_opener(iso_open(NULL));
    y = open_opener(iso_open(NULL));
    want(chdir(iso_tmp) == 0);
    want(!x.open(file, RTLD_NOW | RTLD_NOLOAD));
    want_int(next(&x, file), 1);
    want_int(next(&x, file), 2);
    want_int(next(&y, file), 1);
    want_int(host_next(in_tmp("pkg.libs/libown.so")), 1);
    want_int(next(&x, in_tmp("pkg.libs/libown.so")), 3);
    want(must_open(&x, file, RTLD_NOW | RTLD_NOLOAD) == must_open(&x, file, RTLD_NOW));
    want(!dlsym(RTLD_DEFAULT, "own_next"));
    iso_prove_clean(x.ctx, 3);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

ISO_CASE(a_name_is_looked_for_as_for_the_original)
{
    opens_its_own("libown.so");
}

ISO_CASE(a_path_from_the_originals_folder_is_understood)
{
    opens_its_own("$ORIGIN/../pkg.libs/libown.so");
}

ISO_CASE(a_relative_path_is_understood)
{
    opens_its_own("pkg.libs/libown.so");
}

/* The control: without copies of libraries all of them are one. */
ISO_CASE(without_the_closure_what_is_opened_is_shared)
{
    struct opener x, y;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    x = open_opener(open_ctx(EXTI_CLOSURE_NONE, NULL, 0));
    y = open_opener(open_ctx(EXTI_CLOSURE_NONE, NULL, 0));
    want_int(next(&x, in_tmp("pkg.libs/libown.so")), 1);
    want_int(next(&y, in_tmp("pkg.libs/libown.so")), 2);
    want_int(next(&y, "libown.so"), 3);
    want_int(host_next(in_tmp("pkg.libs/libown.so")), 4);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

ISO_CASE(rules_hold_for_what_is_opened)
{
    static const struct exti_rule share = {"libown.so", 1};
    struct opener x, y;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    x = open_opener(open_ctx(EXTI_CLOSURE_ALL, &share, 1));
    y = open_opener(open_ctx(EXTI_CLOSURE_ALL, NULL, 0));
    want_int(next(&x, "libown.so"), 1);
    want_int(next(&y, "libown.so"), 1);
    want_int(host_next(in_tmp("pkg.libs/libown.so")), 2);
    want_int(next(&x, in_tmp("pkg.libs/libown.so")), 3);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

/* What one package ships, another opens by the name under which it has been loaded: its SONAME or, without
 * one, what its users need it by. */
static void opens_what_is_loaded(const char *soname)
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
    want_int(next(&o, "libown-1a2b.so"), 2);
    want_int(host_next(in_tmp("pkg.libs/libown-1a2b.so")), 1);
    iso_close_ctx(o.ctx);
}

ISO_CASE(a_loaded_library_answers_to_its_soname)
{
    opens_what_is_loaded("-Wl,-soname,libown-1a2b.so");
}

ISO_CASE(a_loaded_library_answers_to_the_name_it_is_needed_by)
{
    opens_what_is_loaded("");
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
    count = (int (*)(void))x.sym(must_open(&x, plugin, RTLD_NOW), "plug_next");
    want(count && count() == 2);
    count = (int (*)(void))y.sym(must_open(&y, plugin, RTLD_NOW), "plug_next");
    want(count && count() == 1);
    want_int(host_next(in_tmp("pkg.libs/libcore.so")), 1);
    iso_prove_clean(x.ctx, 5);
    iso_prove_clean(y.ctx, 4);
    iso_close_ctx(x.ctx);
    iso_close_ctx(y.ctx);
}

/* The finaliser of the toolkit's library destroys what its plug-ins, which need it, have made, as Qt does.
 * Both see the plug-ins' code still there, in whatever order the files go. */
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
        handles[i] = must_open(&o, in_tmp(names[i]), RTLD_NOW);
        make = (void (*)(int *))o.sym(handles[i], "plug_make");
        want(make);
        make(destroyed);
    }
    return o;
}

ISO_CASE(a_toolkit_can_destroy_what_its_plug_ins_have_made)
{
    int destroyed = 0;
    void *handles[2];
    struct opener o = open_plugins(&destroyed, handles);

    iso_close_ctx(o.ctx);
    want_int(destroyed, 2);
}

/* The control: one plug-in goes first. */
static void close_one_by_one(void *arg)
{
    void *handles[2];
    struct opener o = open_plugins(arg, handles);

    want_int(o.close(handles[0]), 0);
    exti_ctx_close(o.ctx, NULL);
}

ISO_CASE(a_plug_in_that_is_closed_before_is_missed)
{
    int destroyed = 0, status;
    pid_t pid = iso_spawn(close_one_by_one, &destroyed);

    want(waitpid(pid, &status, 0) == pid);
    want(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 99));
}

/* What it is told by dladdr, say. */
ISO_CASE(an_extension_that_opens_itself_gets_itself)
{
    struct opener o;
    void *handle;

    build_opener("");
    o = open_opener(iso_open(NULL));
    handle = must_open(&o, in_tmp("pkg/dl.so"), RTLD_NOW | RTLD_NOLOAD);
    want(o.sym(handle, "dl_next") == iso_sym(o.m, "dl_next"));
    handle = must_open(&o, exti_module_copy(o.m), RTLD_NOW);
    want(o.sym(handle, "dl_next") == iso_sym(o.m, "dl_next"));
    want_int(o.close(handle), 0);
    want_int(o.close(handle), 0);
    want_int(call_int(o.m, "dl_next"), 1);
    iso_close_ctx(o.ctx);
}

ISO_CASE(what_is_closed_goes)
{
    struct opener o;
    void *handle, *again;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    o = open_opener(iso_open(NULL));
    want_int(next(&o, "libown.so"), 1);
    handle = must_open(&o, "libown.so", RTLD_NOW);
    want_int(o.close(handle), 0);
    want_int(next(&o, "libown.so"), 2);
    want_int(o.close(handle), 0);
    want_int(o.close(handle), 0);
    want(!o.open("libown.so", RTLD_NOW | RTLD_NOLOAD));
    again = must_open(&o, "libown.so", RTLD_NOW);
    want_int(((int (*)(void))o.sym(again, "own_next"))(), 1);
    iso_close_ctx(o.ctx);
}

/* By `last`, where the name or path is found among what is loaded, too. */
static void stays_loaded(const char *file, int first, int last)
{
    struct opener o;
    void *handle;
    int (*f)(void);

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    o = open_opener(iso_open("x"));
    handle = must_open(&o, file, first);
    want(must_open(&o, file, last) == handle);
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

ISO_CASE(what_may_not_be_unloaded_stays_until_the_context_is_closed)
{
    stays_loaded("libown.so", RTLD_NOW | RTLD_NODELETE, RTLD_NOW);
}

ISO_CASE(what_is_loaded_can_be_told_to_stay_by_its_name)
{
    stays_loaded("libown.so", RTLD_NOW, RTLD_NOW | RTLD_NODELETE);
}

ISO_CASE(what_is_loaded_can_be_told_to_stay_by_its_path)
{
    stays_loaded(in_tmp("pkg.libs/libown.so"), RTLD_NOW, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

ISO_CASE(what_is_told_to_stay_twice_stays)
{
    stays_loaded("libown.so", RTLD_NOW | RTLD_NODELETE, RTLD_NOW | RTLD_NODELETE);
}

/* The system's loader says what is wrong with a file, in its own words. */
ISO_CASE(failures_are_told_in_the_loaders_words)
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

/* As the list of what is loaded has it. */
ISO_CASE(the_path_of_any_contexts_copy_means_the_callers)
{
    struct opener x, y;
    char *copy;
    void *own;

    build_opener("");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    x = open_opener(iso_open(NULL));
    y = open_opener(iso_open(NULL));
    copy = strdup(exti_module_copy(iso_load(x.ctx, in_tmp("pkg.libs/libown.so"))));
    own = must_open(&x, copy, RTLD_NOW | RTLD_NOLOAD);
    want(own == must_open(&x, in_tmp("pkg.libs/libown.so"), RTLD_NOW));
    want_int(next(&x, copy), 1);
    want(must_open(&y, copy, RTLD_NOW | RTLD_NOLOAD) != own);
    want_int(next(&y, copy), 1);
    iso_close_ctx(x.ctx);
    want(!y.open(iso_text("%s.not", copy), RTLD_NOW | RTLD_NOLOAD));
    iso_close_ctx(y.ctx);
    free(copy);
}

/* The program has the library globally. */
ISO_CASE(the_whole_programs_symbols_are_the_contexts_where_it_has_them)
{
    struct opener o;
    void *host;

    build_opener("-Wl,-rpath,'$ORIGIN/../pkg.libs'");
    iso_build(own_source, "pkg.libs/libown.so", "-Wl,-soname,libown.so");
    host = dlopen(in_tmp("pkg.libs/libown.so"), RTLD_NOW | RTLD_GLOBAL);
    want(host);
    o = open_opener(iso_open(NULL));
    want(o.sym_default("own_count") == dlsym(host, "own_count"));
    must_open(&o, "libown.so", RTLD_NOW);
    want(o.sym_default("own_count") ==
         iso_sym(iso_load(o.ctx, in_tmp("pkg.libs/libown.so")), "own_count"));
    want(o.sym_default("own_count") != dlsym(host, "own_count"));
    want(o.sym_default("malloc") == dlsym(RTLD_DEFAULT, "malloc"));
    iso_close_ctx(o.ctx);
}

/* Those of the base set are the process's. */
/* As wrappers ask for what they wrap; the control is the original. */
static void ask_for_the_next(void *handle_or_null, struct exti_module *m)
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

ISO_CASE(the_next_symbol_is_the_one_behind_the_caller)
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
    ask_for_the_next(original, NULL);
    ctx = open_ctx(EXTI_CLOSURE_ALL, NULL, 0);
    ask_for_the_next(NULL, iso_load(ctx, in_tmp("wrap.so")));
    iso_close_ctx(ctx);
    dlclose(original);
}

ISO_CASE(the_base_set_stays_shared)
{
    static const char *const names[] = {"libm.so.6", "libc.so.6", "libgcc_s.so.1", "libdl.so.2"};
    struct opener o;

    build_opener("");
    o = open_opener(iso_open(NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *handle = must_open(&o, names[i], RTLD_NOW), *host = dlopen(names[i], RTLD_NOW);

        want(host && handle == host);
        want_int(o.close(handle), 0);
        dlclose(host);
    }
    iso_close_ctx(o.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_looked_for_as_for_the_original),
        cmocka_unit_test(a_path_from_the_originals_folder_is_understood),
        cmocka_unit_test(a_relative_path_is_understood),
        cmocka_unit_test(without_the_closure_what_is_opened_is_shared),
        cmocka_unit_test(rules_hold_for_what_is_opened),
        cmocka_unit_test(a_loaded_library_answers_to_its_soname),
        cmocka_unit_test(a_loaded_library_answers_to_the_name_it_is_needed_by),
        cmocka_unit_test(a_plug_in_gets_the_libraries_of_its_context),
        cmocka_unit_test(a_toolkit_can_destroy_what_its_plug_ins_have_made),
#ifdef __GLIBC__ /* others unmap nothing */
        cmocka_unit_test(a_plug_in_that_is_closed_before_is_missed),
#endif
        cmocka_unit_test(an_extension_that_opens_itself_gets_itself),
        cmocka_unit_test(what_is_closed_goes),
        cmocka_unit_test(what_may_not_be_unloaded_stays_until_the_context_is_closed),
        cmocka_unit_test(what_is_loaded_can_be_told_to_stay_by_its_name),
        cmocka_unit_test(what_is_loaded_can_be_told_to_stay_by_its_path),
        cmocka_unit_test(what_is_told_to_stay_twice_stays),
        cmocka_unit_test(failures_are_told_in_the_loaders_words),
        cmocka_unit_test(the_path_of_any_contexts_copy_means_the_callers),
        cmocka_unit_test(the_whole_programs_symbols_are_the_contexts_where_it_has_them),
        cmocka_unit_test(the_next_symbol_is_the_one_behind_the_caller),
        cmocka_unit_test(the_base_set_stays_shared),
    };

    return cmocka_run_group_tests_name("isolation/run_open", tests, NULL, NULL);
}
