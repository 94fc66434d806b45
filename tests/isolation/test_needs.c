/* Libraries that modules need: each context has copies of its own, which are loaded and unloaded
 * with the modules that need them. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include "tests/isolation/build.h"

static const char leaf_source[] = "static int n;\n"
                                  "int leaf_next(void) { return ++n; }\n";
static const char mid_source[] = "int leaf_next(void);\n"
                                 "int mid_next(void) { return leaf_next(); }\n";
static const char ext_source[] = "int mid_next(void), toy_next(void);\n"
                                 "int ext_next(void) { return mid_next(); }\n"
                                 "int ext_toy(void) { return toy_next(); }\n";

/* A file finds its needed libraries by its own search path. */
static const char *link_with(const char *libraries, const char *soname)
{
    return iso_text("-Wl,-soname,%s -L'%s' %s -Wl,-rpath,'%s'", soname, iso_tmp, libraries,
                    iso_tmp);
}

/* ext.so -> libmid.so -> libleaf.so */
static void build_chain(void)
{
    iso_build(leaf_source, "libleaf.so", link_with("", "libleaf.so"));
    iso_build(mid_source, "libmid.so", link_with("-lleaf", "libmid.so"));
    iso_build(ext_source, "ext.so", link_with("-lmid", "ext.so"));
}

static struct exti_ctx *open_with(const char *dir, enum exti_closure closure,
                                  const struct exti_rule *rules, size_t count)
{
    struct exti_ctx_opts opts = iso_opts(dir ? in_tmp(dir) : NULL, NULL);

    opts.closure = closure;
    opts.rules = rules;
    opts.rule_count = count;
    return iso_open_opts(&opts);
}

static int call_original(void)
{
    void *handle = dlopen(in_tmp("libleaf.so"), RTLD_NOW | RTLD_LOCAL);
    int (*next)(void);

    want(handle);
    next = (int (*)(void))(uintptr_t)dlsym(handle, "leaf_next");
    want(next);
    return next();
}

/* The path of the copy, or NULL if the directory has none. */
static const char *copy_of(const char *dir, const char *source, const char **edits)
{
    struct exti_copy_info info = {.size = sizeof info};
    struct exti_error err = {0};
    struct exti_dir *d = NULL;
    const char *found = NULL;

    want_exti(exti_dir_read(dir, &d, &err), 0, &err);
    for (size_t i = 0; i < exti_dir_count(d) && !found; i++) {
        want(exti_dir_copy(d, i, &info) == 0);
        if (strcmp(info.source, in_tmp(source)) != 0)
            continue;
        found = iso_text("%s", info.copy);
        if (edits)
            *edits = iso_text("%s", info.edits);
    }
    exti_dir_free(d);
    return found;
}

static bool is_loaded(const char *path)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

    if (handle)
        dlclose(handle);
    return handle != NULL;
}

ISO_CASE(each_context_has_its_own_libraries)
{
    struct exti_ctx *x, *y;
    struct exti_module *a, *b;

    build_chain();
    x = iso_open(NULL);
    y = iso_open(NULL);
    a = iso_load(x, in_tmp("ext.so"));
    b = iso_load(y, in_tmp("ext.so"));
    want_int(call_int(a, "ext_next"), 1);
    want_int(call_int(a, "ext_next"), 2);
    want_int(call_int(b, "ext_next"), 1);
    want_int(call_original(), 1);
    want_int((long)iso_proof(x, iso_print_finding, NULL).modules, 4);
    iso_prove_clean(x, 4);
    iso_prove_clean(y, 4);
    /* Loading it by its path returns the same module. */
    want_int(call_int(iso_load(x, in_tmp("libmid.so")), "mid_next"), 3);
    want_int((long)iso_proof(x, iso_print_finding, NULL).modules, 4);
    iso_close_ctx(x);
    iso_close_ctx(y);
}

/* The library's references to its own symbols do not lead to the program's instance either. */
ISO_CASE(a_library_that_the_api_needs_is_not_the_programs)
{
    static const char source[] = "static int n;\n"
                                 "int leaf_step(void) { return ++n; }\n"
                                 "int leaf_next(void) { return leaf_step(); }\n";
    char api[512];
    struct exti_ctx_opts opts;
    struct exti_ctx *ctx;

    iso_build(source, "libleaf.so", link_with("", "libleaf.so"));
    iso_build("int leaf_next(void);\nint api_next(void) { return leaf_next(); }\n", "libapi.so",
              link_with("-lleaf", "libapi.so"));
    want(dlopen(in_tmp("libleaf.so"), RTLD_NOW | RTLD_GLOBAL));
    snprintf(api, sizeof api, "%s", in_tmp("libapi.so"));
    opts = iso_opts(NULL, NULL);
    opts.api_library = api;
    ctx = iso_open_opts(&opts);
    want_int(call_int(iso_api(ctx), "api_next"), 1);
    want_int(call_int(iso_api(ctx), "api_next"), 2);
    want_int(call_original(), 1);
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).leaks, 0);
    iso_close_ctx(ctx);
}

static const char *path_of_loader(void)
{
    Dl_info info;

    want(dladdr((const void *)getauxval(AT_BASE), &info) && info.dli_fname);
    return info.dli_fname;
}

/* Counts, when it is opened, how many loaders there are.  It asks to be shared. */
static const char watch_source[] =
    "#define _GNU_SOURCE\n"
    "#include <link.h>\n"
    "#include <string.h>\n"
    "static int loaders;\n"
    "static int look(struct dl_phdr_info *i, size_t n, void *p)\n"
    "{ (void)n; (void)p; loaders += strstr(i->dlpi_name, LOADER) != 0; return 0; }\n"
    "__attribute__((constructor)) static void begin(void) { dl_iterate_phdr(look, 0); }\n"
    "int watch_loaders(void) { return loaders; }\n";

/* Many libraries with thread-local variables name ld.so, for __tls_get_addr.  The search may find it
 * by another path than the program's. */
ISO_CASE(the_loader_is_mapped_once)
{
    struct exti_ctx *ctx = iso_open(NULL);
    const char *name = strrchr(path_of_loader(), '/');

    want(symlink(path_of_loader(), in_tmp(name + 1)) == 0);
    iso_build(watch_source, "libwatch.so",
              link_with(iso_text("-Wl,-z,nodelete -DLOADER='\"%s\"'", name), "libwatch.so"));
    iso_build(
        "int watch_loaders(void); int leaf_loaders(void) { return watch_loaders(); }", "libleaf.so",
        link_with(iso_text("-Wl,--no-as-needed '%s' -lwatch", path_of_loader()), "libleaf.so"));
    iso_build("int leaf_loaders(void); int ext_loaders(void) { return leaf_loaders(); }", "ext.so",
              link_with("-lleaf", "ext.so"));
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_loaders"), 1);
    iso_close_ctx(ctx);
}

/* The control: with EXTI_CLOSURE_NONE contexts and program share the needed libraries. */
ISO_CASE(control_libraries_are_shared_without_a_closure)
{
    struct exti_ctx *x, *y;

    build_chain();
    x = open_with(NULL, EXTI_CLOSURE_NONE, NULL, 0);
    y = open_with(NULL, EXTI_CLOSURE_NONE, NULL, 0);
    want_int(call_int(iso_load(x, in_tmp("ext.so")), "ext_next"), 1);
    want_int(call_int(iso_load(y, in_tmp("ext.so")), "ext_next"), 2);
    want_int(call_original(), 3);
    iso_close_ctx(x);
    iso_close_ctx(y);
}

ISO_CASE(closure_api_copies_libraries_that_use_the_api)
{
    struct exti_ctx *ctx;
    const char *dir = NULL;

    iso_build(leaf_source, "libleaf.so", link_with("", "libleaf.so"));
    iso_build("int toy_next(void);\nint uses(void) { return toy_next(); }\n", "libuses.so",
              "-Wl,-soname,libuses.so");
    iso_build("int uses(void);\nint mid_next(void) { return uses(); }\n", "libmid.so",
              link_with("-luses -lleaf -Wl,--allow-shlib-undefined", "libmid.so"));
    iso_build("int mid_next(void), leaf_next(void);\n"
              "int ext_next(void) { return mid_next(); }\n"
              "int ext_leaf(void) { return leaf_next(); }\n",
              "ext.so", link_with("-lmid -lleaf -Wl,--allow-shlib-undefined", "ext.so"));
    ctx = open_with("x", EXTI_CLOSURE_API, NULL, 0);
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_next"), 1);
    want_int(*(int *)iso_sym(iso_api(ctx), "toy_count"), 1);
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_leaf"), 1);
    want_int(call_original(), 2);
    iso_prove_clean(ctx, 4);
    iso_close_ctx(ctx);
    dir = in_tmp("x");
    want(copy_of(dir, "libuses.so", NULL) && copy_of(dir, "libmid.so", NULL));
    want(!copy_of(dir, "libleaf.so", NULL));
    iso_dir_clean(dir);
}

ISO_CASE(rules_decide_which_libraries_are_shared)
{
    static const struct exti_rule rules[] = {{"lib*", 1}, {"libm?d.so", 0}};
    struct exti_ctx *ctx;
    const char *edits = NULL;

    build_chain();
    ctx = open_with("x", EXTI_CLOSURE_ALL, rules, 2);
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_next"), 1);
    want_int(call_original(), 2);
    iso_prove_clean(ctx, 3);
    iso_close_ctx(ctx);
    want(!copy_of(in_tmp("x"), "libleaf.so", NULL));
    want(copy_of(in_tmp("x"), "libmid.so", &edits));
    /* The copy needs it by path, since its name alone would not find it. */
    want_text(edits, "\"replace\":\"libleaf.so\"");
    want_text(edits, iso_text("\"by\":\"%s\"", in_tmp("libleaf.so")));
    iso_dir_clean(in_tmp("x"));
}

ISO_CASE(shared_libraries_are_unloaded_with_their_last_user)
{
    static const struct exti_rule rules[] = {{"libleaf*", 1}};
    struct exti_module *m;
    struct exti_ctx *x, *y;

    build_chain();
    x = open_with("x", EXTI_CLOSURE_ALL, rules, 1);
    y = open_with("y", EXTI_CLOSURE_ALL, rules, 1);
    m = iso_load(x, in_tmp("ext.so"));
    want(is_loaded(in_tmp("libleaf.so")));
    want_int(exti_close(m, NULL), 0);
    want(!is_loaded(in_tmp("libleaf.so")));
    want_int(call_int(iso_load(x, in_tmp("ext.so")), "ext_next"), 1);
    want_int(call_int(iso_load(y, in_tmp("ext.so")), "ext_next"), 2);
    iso_close_ctx(x);
    want(is_loaded(in_tmp("libleaf.so")));
    iso_close_ctx(y);
    want(!is_loaded(in_tmp("libleaf.so")));
}

/* glibc runs the finalisers of all libraries that one dlclose unloads before it unmaps the first. */
static void load_called_back_by_shared(const char *dir, struct exti_ctx **ctx,
                                       struct exti_module **m)
{
    static const struct exti_rule rules[] = {{"libdep*", 1}};

    iso_build_called_back();
    *ctx = open_with(dir, EXTI_CLOSURE_ALL, rules, 1);
    *m = iso_load(*ctx, in_tmp("mod.so"));
    want(!copy_of(in_tmp(dir), "libdep.so", NULL));
    want(!file_exists(in_tmp("called")));
}

ISO_CASE(a_module_stays_mapped_for_a_shared_librarys_finaliser)
{
    struct exti_module *m;
    struct exti_ctx *ctx;

    load_called_back_by_shared("x", &ctx, &m);
    want_int(exti_close(m, NULL), 0);
    want(file_exists(in_tmp("called")));
    unlink(in_tmp("called"));
    iso_close_ctx(ctx);
    load_called_back_by_shared("y", &ctx, &m);
    iso_close_ctx(ctx);
    want(file_exists(in_tmp("called")));
}

ISO_CASE(a_directory_keeps_its_closure_and_rules)
{
    static const struct exti_rule rules[] = {{"libleaf*", 1}}, others[] = {{"libleaf*", 0}};
    char dir[512];
    struct exti_ctx_opts opts;
    struct exti_ctx *ctx = NULL;
    struct exti_error err = {0};

    snprintf(dir, sizeof dir, "%s", in_tmp("x"));
    build_chain();
    iso_close_ctx(open_with("x", EXTI_CLOSURE_ALL, rules, 1));
    ctx = open_with("x", EXTI_CLOSURE_DEFAULT, NULL, 0);
    iso_load(ctx, in_tmp("ext.so"));
    iso_close_ctx(ctx);
    want(!copy_of(in_tmp("x"), "libleaf.so", NULL));
    iso_close_ctx(open_with("x", EXTI_CLOSURE_ALL, rules, 1));
    ctx = NULL;
    opts = iso_opts(dir, NULL);
    opts.closure = EXTI_CLOSURE_API;
    want_exti(exti_ctx_open(&ctx, &opts, &err), EXTI_E_ARG, &err);
    want_text(err.message, "was made with --closure=all; omit --closure");
    want_text(err.file, "/x");
    opts.closure = EXTI_CLOSURE_ALL;
    opts.rules = others;
    opts.rule_count = 1;
    want_exti(exti_ctx_open(&ctx, &opts, &err), EXTI_E_ARG, &err);
    want(!ctx);
    iso_dir_clean(in_tmp("x"));
}

ISO_CASE(libraries_are_unloaded_with_their_last_user)
{
    struct exti_error err = {0};
    struct exti_module *a, *b;
    struct exti_ctx *ctx;
    const char *mid, *leaf;

    build_chain();
    iso_build("int mid_next(void);\nint other_next(void) { return mid_next(); }\n", "other.so",
              link_with("-lmid", "other.so"));
    ctx = iso_open("x");
    a = iso_load(ctx, in_tmp("ext.so"));
    b = iso_load(ctx, in_tmp("other.so"));
    want_int(call_int(a, "ext_next"), 1);
    want_int(call_int(b, "other_next"), 2);
    iso_close_ctx(iso_open("y")); /* another context does not change that */
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).modules, 5);
    want_exti(exti_close(a, &err), 0, &err);
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).modules, 4);
    want_int(call_int(b, "other_next"), 3);
    want_exti(exti_close(b, &err), 0, &err);
    want_int((long)iso_proof(ctx, iso_print_finding, NULL).modules, 1);
    iso_close_ctx(iso_open("y"));
    b = iso_load(ctx, in_tmp("other.so"));
    want_int(call_int(b, "other_next"), 1);
    iso_close_ctx(ctx);
    mid = copy_of(in_tmp("x"), "libmid.so", NULL);
    leaf = copy_of(in_tmp("x"), "libleaf.so", NULL);
    want(mid && !is_loaded(mid));
    want(leaf && !is_loaded(leaf));
    iso_dir_clean(in_tmp("x"));
    iso_dir_clean(in_tmp("y"));
}

ISO_CASE(circular_needs_load_and_are_unloaded_with_the_context)
{
    struct exti_ctx *ctx;
    struct exti_module *ext;

    iso_build("int two(void) { return 1; }\n", "libtwo.so", "-Wl,-soname,libtwo.so");
    iso_build("int two(void);\nint one(void) { return two(); }\n", "libone.so",
              link_with("-Wl,--no-as-needed -ltwo -Wl,--allow-shlib-undefined", "libone.so"));
    iso_build("int one(void);\nint two(void) { return 2; }\nint again(void) { return one(); }\n",
              "libtwo.so", link_with("-Wl,--no-as-needed -lone", "libtwo.so"));
    iso_build("int again(void);\nint ext_next(void) { return again(); }\n", "ext.so",
              link_with("-ltwo", "ext.so"));
    ctx = iso_open("x");
    ext = iso_load(ctx, in_tmp("ext.so"));
    want_int(call_int(ext, "ext_next"), 2);
    iso_prove_clean(ctx, 4);
    iso_close_ctx(ctx);
    want(!is_loaded(copy_of(in_tmp("x"), "libone.so", NULL)));
    want(!is_loaded(copy_of(in_tmp("x"), "libtwo.so", NULL)));
    iso_dir_clean(in_tmp("x"));
}

ISO_CASE(the_error_names_a_missing_library)
{
    struct exti_module *m = NULL;
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    build_chain();
    want(unlink(in_tmp("libleaf.so")) == 0);
    ctx = iso_open(NULL);
    want_exti(exti_load(ctx, in_tmp("ext.so"), &m, &err), EXTI_E_LOAD, &err);
    want_text(err.message, "libleaf.so: cannot open shared object file");
    /* A new context looks for it again. */
    iso_build(leaf_source, "libleaf.so", link_with("", "libleaf.so"));
    iso_close_ctx(ctx);
    ctx = iso_open(NULL);
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_next"), 1);
    iso_close_ctx(ctx);
}

/* Its path is not UTF-8, so no manifest can hold it. */
ISO_CASE(a_library_that_cannot_be_recorded_is_refused)
{
    struct exti_module *m = NULL;
    struct exti_error err = {0};
    struct exti_ctx *ctx;

    want(mkdir(in_tmp("b\xff"), 0777) == 0);
    iso_build(leaf_source, "b\xff/libleaf.so", link_with("", "libleaf.so"));
    iso_build(mid_source, "libmid.so",
              iso_text("-Wl,-soname,libmid.so '%s' -Wl,-rpath,'%s'", in_tmp("b\xff/libleaf.so"),
                       in_tmp("b\xff")));
    iso_build(ext_source, "ext.so", link_with("-lmid -Wl,--allow-shlib-undefined", "ext.so"));
    ctx = iso_open(NULL);
    want_exti(exti_load(ctx, in_tmp("ext.so"), &m, &err), EXTI_E_UNSUPPORTED, &err);
    want_text(err.file, "libmid.so");
    want_text(err.message, "its needed library's path is not UTF-8");
    want_text(err.message, "; needed by ext.so (use --share to share it instead)");
    want(!m);
    iso_close_ctx(ctx);
}

ISO_CASE(a_changed_library_is_copied_again)
{
    const char *copy;
    struct exti_ctx *ctx;
    struct stat first, second;

    build_chain();
    ctx = iso_open("x");
    iso_load(ctx, in_tmp("ext.so"));
    iso_close_ctx(ctx);
    want((copy = copy_of(in_tmp("x"), "libleaf.so", NULL)) && stat(copy, &first) == 0);
    ctx = iso_open("x");
    iso_load(ctx, in_tmp("ext.so"));
    iso_close_ctx(ctx);
    want(stat(copy, &second) == 0 && first.st_ino == second.st_ino);
    want(unlink(in_tmp("libleaf.so")) == 0);
    iso_build("int leaf_next(void) { return 70; }", "libleaf.so", link_with("", "libleaf.so"));
    ctx = iso_open("x");
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_next"), 70);
    iso_close_ctx(ctx);
    want(unlink(copy) == 0);
    ctx = iso_open("x");
    want_int(call_int(iso_load(ctx, in_tmp("ext.so")), "ext_next"), 70);
    iso_close_ctx(ctx);
    iso_dir_clean(in_tmp("x"));
}

static int add_finding(void *user, const struct exti_error *finding)
{
    char *seen = user;
    const size_t n = strlen(seen);

    snprintf(seen + n, 1024 - n, "%s: %s\n", finding->file, finding->message);
    return 0;
}

ISO_CASE(verify_finds_a_library_that_is_not_recorded)
{
    struct exti_error err = {0};
    char dir[512], seen[1024] = "";
    struct exti_ctx *ctx;
    size_t findings = 0;

    build_chain();
    snprintf(dir, sizeof dir, "%s", in_tmp("x"));
    ctx = iso_open("x");
    iso_load(ctx, in_tmp("ext.so"));
    iso_close_ctx(ctx);
    want_int(system(iso_text("sed -i 's/\"to\": \"libleaf[^\"]*\"/\"to\": \"libgone.so\"/' "
                             "'%s/manifest.json'",
                             dir)),
             0);
    want_exti(exti_dir_verify(dir, add_finding, seen, &findings, &err), 0, &err);
    want_int((long)findings, 2); /* the edits of the copy differ too */
    want_text(seen, "/libmid.");
    want_text(seen, "needs a copy of libleaf.so, which the context does not have");
}

/* Copies ext.so in a process that starts with the folder in LD_LIBRARY_PATH. */
static void copy_with(const char *dir)
{
    const char *program = iso_text("%s/extisolate", iso_build_dir());

    want_int(
        system(iso_text("LD_LIBRARY_PATH='%s' '%s' copy --libpython '%s' '%s' '%s' >/dev/null",
                        in_tmp(dir), program, toy("libtoy.so.1"), in_tmp("ext.so"), in_tmp("x"))),
        0);
    want_int(system(iso_text("'%s' verify '%s' >/dev/null", program, in_tmp("x"))), 0);
    want(copy_of(in_tmp("x"), iso_text("%s/libleaf.so", dir), NULL));
}

ISO_CASE(another_search_path_finds_other_libraries)
{
    static const char *const dirs[] = {"one", "two"};
    const char *edits = NULL, *second = NULL;
    char *first;

    for (int i = 0; i < 2; i++) {
        want(mkdir(in_tmp(dirs[i]), 0777) == 0);
        iso_build(iso_text("int leaf_next(void) { return %d; }", i + 1),
                  iso_text("%s/libleaf.so", dirs[i]), "-Wl,-soname,libleaf.so");
    }
    iso_build("int leaf_next(void);\nint ext_next(void) { return leaf_next(); }\n", "ext.so",
              iso_text("-L'%s' -lleaf", in_tmp("one")));
    copy_with("one");
    want(copy_of(in_tmp("x"), "ext.so", &edits));
    first = strdup(edits);
    copy_with("two");
    want(copy_of(in_tmp("x"), "ext.so", &second));
    want(strcmp(first, second) != 0);
    copy_with("one");
    want(copy_of(in_tmp("x"), "ext.so", &second));
    want(strcmp(first, second) == 0);
    free(first);
    iso_dir_clean(in_tmp("x"));
}

struct hook_log {
    char text[512];
};

static void log_hook(struct hook_log *h, char what, const char *original)
{
    const char *slash = strrchr(original, '/');
    const size_t n = strlen(h->text);

    snprintf(h->text + n, sizeof h->text - n, "%c%s ", what, slash + 1);
}

static int on_before_load(void *user, struct exti_ctx *ctx, const char *original, const char *copy)
{
    (void)ctx;
    (void)copy;
    log_hook(user, '(', original);
    return 0;
}

static int on_after_load(void *user, struct exti_ctx *ctx, struct exti_module *m)
{
    (void)ctx;
    log_hook(user, '+', exti_module_original(m));
    return 0;
}

static void on_before_close(void *user, struct exti_ctx *ctx, struct exti_module *m)
{
    (void)ctx;
    log_hook(user, '-', exti_module_original(m));
}

ISO_CASE(hooks_run_for_libraries_before_their_users)
{
    static const struct exti_hooks hooks = {.size = sizeof hooks,
                                            .before_load = on_before_load,
                                            .after_load = on_after_load,
                                            .before_close = on_before_close};
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct exti_error err = {0};
    struct hook_log h = {""};
    struct exti_ctx *ctx;
    struct exti_module *m;

    build_chain();
    opts.hooks = &hooks;
    opts.user = &h;
    ctx = iso_open_opts(&opts);
    iso_api(ctx);
    h.text[0] = 0;
    m = iso_load(ctx, in_tmp("ext.so"));
    want_text(h.text, "(libleaf.so (libmid.so (ext.so +libleaf.so +libmid.so +ext.so ");
    h.text[0] = 0;
    want_exti(exti_close(m, &err), 0, &err);
    want_text(h.text, "-ext.so -libmid.so -libleaf.so ");
    iso_load(ctx, in_tmp("ext.so"));
    h.text[0] = 0;
    iso_close_ctx(ctx);
    want_text(h.text, "-ext.so -libmid.so -libleaf.so -libtoy.so.1 ");
}

/* ---- finalisers of files that are unloaded together ----------------------------------------- */

ISO_CASE(a_closed_module_stays_mapped_for_its_librarys_finaliser)
{
    struct exti_error err = {0};
    struct exti_module *m;
    struct exti_ctx *ctx;
    const char *copy;

    iso_build_called_back();
    ctx = iso_open("x");
    m = iso_load(ctx, in_tmp("mod.so"));
    copy = exti_module_copy(m);
    want(is_loaded(copy));
    want_exti(exti_close(m, &err), 0, &err);
    want(file_exists(in_tmp("called")));
    want(!is_loaded(copy));
    iso_prove_clean(ctx, 1);
    iso_close_ctx(ctx);
}

ISO_CASE(a_module_that_a_copy_closes_stays_mapped_for_its_librarys_finaliser)
{
    void *(*open_fn)(const char *, int);
    int (*close_fn)(void *);
    struct exti_module *m;
    struct exti_ctx *ctx;
    void *handle;

    iso_build_called_back();
    ctx = iso_open("x");
    m = iso_load(ctx, toy("ext_dl.so"));
    open_fn = (void *(*)(const char *, int))iso_sym(m, "dl_open");
    close_fn = (int (*)(void *))iso_sym(m, "dl_close");
    handle = open_fn(in_tmp("mod.so"), RTLD_NOW);
    want(handle);
    want_int(close_fn(handle), 0);
    want(file_exists(in_tmp("called")));
    iso_close_ctx(ctx);
}

static int refuse_module(void *user, struct exti_ctx *ctx, struct exti_module *m)
{
    (void)user, (void)ctx;
    return strstr(exti_module_original(m), "mod.so") ? -1 : 0;
}

ISO_CASE(a_refused_module_stays_mapped_for_its_librarys_finaliser)
{
    static const struct exti_hooks hooks = {.size = sizeof hooks, .after_load = refuse_module};
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct exti_error err = {0};
    struct exti_module *m = NULL;
    struct exti_ctx *ctx;

    iso_build_called_back();
    opts.hooks = &hooks;
    ctx = iso_open_opts(&opts);
    want_exti(exti_load(ctx, in_tmp("mod.so"), &m, &err), EXTI_E_HOOK, &err);
    want(file_exists(in_tmp("called")));
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_context_has_its_own_libraries),
        cmocka_unit_test(a_library_that_the_api_needs_is_not_the_programs),
        cmocka_unit_test(the_loader_is_mapped_once),
        cmocka_unit_test(control_libraries_are_shared_without_a_closure),
        cmocka_unit_test(closure_api_copies_libraries_that_use_the_api),
        cmocka_unit_test(rules_decide_which_libraries_are_shared),
        cmocka_unit_test(shared_libraries_are_unloaded_with_their_last_user),
        cmocka_unit_test(a_module_stays_mapped_for_a_shared_librarys_finaliser),
        cmocka_unit_test(a_directory_keeps_its_closure_and_rules),
        cmocka_unit_test(libraries_are_unloaded_with_their_last_user),
        cmocka_unit_test(circular_needs_load_and_are_unloaded_with_the_context),
        cmocka_unit_test(the_error_names_a_missing_library),
        cmocka_unit_test(a_library_that_cannot_be_recorded_is_refused),
        cmocka_unit_test(a_changed_library_is_copied_again),
        cmocka_unit_test(verify_finds_a_library_that_is_not_recorded),
        cmocka_unit_test(another_search_path_finds_other_libraries),
        cmocka_unit_test(hooks_run_for_libraries_before_their_users),
        cmocka_unit_test(a_closed_module_stays_mapped_for_its_librarys_finaliser),
        cmocka_unit_test(a_module_that_a_copy_closes_stays_mapped_for_its_librarys_finaliser),
        cmocka_unit_test(a_refused_module_stays_mapped_for_its_librarys_finaliser),
    };

    return cmocka_run_group_tests_name("isolation/needs", tests, NULL, NULL);
}
