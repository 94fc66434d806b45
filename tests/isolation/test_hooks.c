/* Hooks and redirects: the order of hooks, and the effects of a refusal. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include "tests/isolation/pair.h"

/* A log of the hooks' calls, and how they are to answer. */
struct script {
    char log[2048];
    const char *refuse; /* the hook that fails for ext_a.so */
    int logs;
};

static void log_call(struct script *s, const char *hook, const char *path)
{
    const char *base = strrchr(path, '/');
    size_t n = strlen(s->log);

    snprintf(s->log + n, sizeof s->log - n, "%s(%s) ", hook, base ? base + 1 : path);
}

static int answer(const struct script *s, const char *hook, const char *path)
{
    return s->refuse && !strcmp(s->refuse, hook) && strstr(path, "ext_a.so") ? -7 : 0;
}

static int copy_name(void *user, const char *original, char *out, size_t cap)
{
    struct script *s = user;

    want(cap > 32 && out[0] && !strchr(out, '/'));
    if (strstr(original, "ext_b.so"))
        snprintf(out, cap, "chosen-b.so");
    return answer(s, "copy_name", original);
}

static int before_load(void *user, struct exti_ctx *ctx, const char *original, const char *copy)
{
    want(strstr(copy, exti_ctx_dir(ctx)) == copy);
    want(file_exists(copy));
    log_call(user, "before", original);
    return answer(user, "before_load", original);
}

static int after_load(void *user, struct exti_ctx *ctx, struct exti_module *m)
{
    want(ctx != NULL);
    if (strstr(exti_module_original(m), "ext_"))
        want(*(int *)call_ptr(m, "ext_count") > 0);
    log_call(user, "after", exti_module_original(m));
    return answer(user, "after_load", exti_module_original(m));
}

static void before_close(void *user, struct exti_ctx *ctx, struct exti_module *m)
{
    want(ctx != NULL);
    if (strstr(exti_module_original(m), "ext_"))
        call_int(m, "ext_next");
    log_call(user, "close", exti_module_original(m));
}

static void log_line(void *user, enum exti_log_level level, const char *message)
{
    struct script *s = user;

    want(level <= EXTI_LOG_WARN && message[0] && !strchr(message, '\n'));
    s->logs++;
}

static const struct exti_hooks all_hooks = {.size = sizeof all_hooks,
                                            .copy_name = copy_name,
                                            .before_load = before_load,
                                            .after_load = after_load,
                                            .before_close = before_close,
                                            .log = log_line};

static struct exti_ctx *open_with(struct script *s)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);

    opts.hooks = &all_hooks;
    opts.user = s;
    return iso_open_opts(&opts);
}

static int refuse_api(void *user, struct exti_ctx *ctx, struct exti_module *m)
{
    (void)ctx;
    return *(bool *)user && strstr(exti_module_original(m), "libtoy") ? -1 : 0;
}

/* An API library that a hook refuses after it was loaded is closed, and can be loaded later. */
ISO_CASE(a_refused_api_library_can_be_loaded_later)
{
    const struct exti_hooks hooks = {.size = sizeof hooks, .after_load = refuse_api};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_error err = {0};
    struct exti_module *m = NULL;
    struct exti_ctx *ctx;
    bool refuse = true;

    opts.hooks = &hooks;
    opts.user = &refuse;
    ctx = iso_open_opts(&opts);
    want_exti(exti_api(ctx, &m, &err), EXTI_E_HOOK, &err);
    want_text(err.message, "after_load hook refused it");
    want_exti(exti_load(ctx, toy("ext_a.so"), &m, &err), EXTI_E_HOOK, &err);
    want(!m);
    refuse = false;
    want_int(call_int(iso_load(ctx, toy("ext_a.so")), "ext_next"), 2);
    iso_prove_clean(ctx, 2);
    iso_close_ctx(ctx);
}

ISO_CASE(hooks_run_in_order)
{
    struct script s = {.refuse = NULL};
    struct exti_ctx *ctx = open_with(&s);
    struct exti_module *a, *b;

    want_int(strcmp(s.log, ""), 0);
    a = iso_load(ctx, toy("ext_a.so"));
    b = iso_load(ctx, toy("ext_b.so"));
    want(iso_load(ctx, toy("ext_b.so")) == b);
    want_text(exti_module_copy(b), "/chosen-b.so");
    want(exti_close(b, NULL) == 0);
    want(exti_close(a, NULL) == 0);
    iso_close_ctx(ctx);
    fprintf(stderr, "hooks: %s\n", s.log);
    want_text(s.log, "before(ext_a.so) after(ext_a.so) before(ext_b.so) after(ext_b.so) "
                     "close(ext_a.so) close(ext_b.so) ");
    want_int(strncmp(s.log, "before(libtoy.so.1) after(libtoy.so.1) ", 39), 0);
    want(strcmp(s.log + strlen(s.log) - 19, "close(libtoy.so.1) ") == 0);
}

ISO_CASE(modules_close_newest_first)
{
    struct script s = {.refuse = NULL};
    struct exti_ctx *ctx = open_with(&s);

    iso_load(ctx, toy("ext_a.so"));
    iso_load(ctx, toy("ext_b.so"));
    iso_close_ctx(ctx);
    want_text(s.log, "close(ext_b.so) close(ext_a.so) close(libtoy.so.1) ");
}

/* A refused load leaves the context unchanged: the same load works once the hook allows it. */
static void refuse_in(const char *hook)
{
    struct script s = {.refuse = hook};
    struct exti_ctx *ctx = open_with(&s);
    struct exti_error err = {0};
    struct exti_module *m = (void *)&s;

    want_exti(exti_load(ctx, toy("ext_a.so"), &m, &err), EXTI_E_HOOK, &err);
    want(m == (void *)&s);
    want_text(err.message, hook);
    want_int(call_int(iso_load(ctx, toy("ext_b.so")), "ext_next") > 0, 1);
    s.refuse = NULL;
    m = iso_load(ctx, toy("ext_a.so"));
    want(call_ptr(m, "ext_count") == iso_sym(iso_api(ctx), "toy_count"));
    iso_prove_clean(ctx, 3);
    iso_close_ctx(ctx);
    iso_dir_clean(in_tmp("x"));
}

ISO_CASE(a_refused_copy_name_fails_the_load)
{
    refuse_in("copy_name");
}

ISO_CASE(a_refusal_before_load_fails_the_load)
{
    refuse_in("before_load");
}

ISO_CASE(a_refusal_after_load_closes_the_module)
{
    refuse_in("after_load");
}

static int bad_name(void *user, const char *original, char *out, size_t cap)
{
    if (strstr(original, "ext_a.so"))
        snprintf(out, cap, "%s", (const char *)user);
    return 0;
}

/* A name is refused if it lies outside the directory or belongs to another file. */
ISO_CASE(bad_copy_names_are_refused)
{
    static const char *const names[] = {"../x.so", "/tmp/x.so",    "", ".", "..",
                                        "a/b.so",  "manifest.json"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct exti_hooks hooks = {.size = sizeof hooks, .copy_name = bad_name};
        struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
        struct exti_error err = {0};
        struct exti_module *m;
        struct exti_ctx *ctx;

        opts.hooks = &hooks;
        opts.user = (void *)(uintptr_t)names[i];
        ctx = iso_open_opts(&opts);
        if (exti_load(ctx, toy("ext_a.so"), &m, &err) != EXTI_E_HOOK) {
            fprintf(stderr, "copy name \"%s\": code %s\n", names[i], exti_code_name(err.code));
            want(err.code == EXTI_E_ARG);
        }
        want(!file_exists(in_tmp("x.so")));
        iso_close_ctx(ctx);
    }
    want(!file_exists("/tmp/x.so"));
    iso_dir_clean(in_tmp("x"));
}

/* Two files may not get the same name. */
static int same_name(void *user, const char *original, char *out, size_t cap)
{
    (void)user;
    if (strstr(original, "ext_"))
        snprintf(out, cap, "same.so");
    return 0;
}

ISO_CASE(two_files_do_not_share_a_copy_name)
{
    struct exti_hooks hooks = {.size = sizeof hooks, .copy_name = same_name};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_error err = {0};
    struct exti_module *a, *b;
    struct exti_ctx *ctx;

    opts.hooks = &hooks;
    ctx = iso_open_opts(&opts);
    a = iso_load(ctx, toy("ext_a.so"));
    if (exti_load(ctx, toy("ext_b.so"), &b, &err) == 0)
        want(strcmp(exti_module_copy(a), exti_module_copy(b)) != 0);
    else
        want_text(err.message, "same.so");
    want_int(call_int(a, "ext_own_by_call"), 6);
    iso_close_ctx(ctx);
    iso_dir_clean(in_tmp("x"));
}

/* A hook may call the library, for the same context too. */
static int load_another(void *user, struct exti_ctx *ctx, struct exti_module *m)
{
    (void)user;
    if (strstr(exti_module_original(m), "ext_a.so"))
        iso_load(ctx, toy("ext_b.so"));
    return 0;
}

ISO_CASE(a_hook_may_load)
{
    struct exti_hooks hooks = {.size = sizeof hooks, .after_load = load_another};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_ctx *ctx;

    opts.hooks = &hooks;
    ctx = iso_open_opts(&opts);
    iso_load(ctx, toy("ext_a.so"));
    iso_prove_clean(ctx, 3);
    iso_close_ctx(ctx);
}

static int our_next(void)
{
    return -1;
}

static void *our_open(const char *path, int flags)
{
    (void)path, (void)flags;
    return (void *)(uintptr_t)our_next;
}

/* Redirects apply to all copies, and to symbols of the API and of other libraries. */
ISO_CASE_EACH(redirects_apply_to_all_copies)
{
    const struct exti_redirect redirects[] = {{"toy_fast", (void *)(uintptr_t)our_next},
                                              {"dlopen", (void *)(uintptr_t)our_open}};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_module *a, *d;
    struct exti_ctx *ctx, *plain = iso_open("y");
    void *(*open_fn)(const char *, int);

    opts.redirects = redirects;
    opts.redirect_count = 2;
    ctx = iso_open_opts(&opts);
    a = iso_load(ctx, toy("ext_a.so"));
    d = iso_load(ctx, toy("ext_dl.so"));
    want_int(call_int(a, "ext_fast"), -1);
    open_fn = (void *(*)(const char *, int))iso_sym(d, "dl_open");
    want(open_fn("anything", 0) == (void *)(uintptr_t)our_next);
    want_int(call_int(iso_load(plain, toy("ext_a.so")), "ext_fast"), 42);
    iso_close_ctx(ctx);
    iso_close_ctx(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks_run_in_order),
        cmocka_unit_test(a_refused_api_library_can_be_loaded_later),
        cmocka_unit_test(modules_close_newest_first),
        cmocka_unit_test(a_refused_copy_name_fails_the_load),
        cmocka_unit_test(a_refusal_before_load_fails_the_load),
        cmocka_unit_test(a_refusal_after_load_closes_the_module),
        cmocka_unit_test(bad_copy_names_are_refused),
        cmocka_unit_test(two_files_do_not_share_a_copy_name),
        cmocka_unit_test(a_hook_may_load),
        cmocka_unit_test(redirects_apply_to_all_copies),
    };

    return cmocka_run_group_tests_name("isolation/hooks", tests, NULL, NULL);
}
