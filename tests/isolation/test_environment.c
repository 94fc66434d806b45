/* Environment variables of contexts. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <pthread.h>

#include "tests/isolation/environment_toy.h"

static int same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static int is_listed(char **list, const char *entry)
{
    while (list && *list && strcmp(*list, entry) != 0)
        list++;
    return list && *list;
}

ISO_CASE(each_context_has_variables_of_its_own)
{
    struct env_user a, b, host;

    env_build();
    setenv("EXTI_A", "process", 1);
    a = env_in_context(0);
    b = env_in_context(0);
    host = env_by_itself();
    want(same(a.get("EXTI_A"), "process"));
    want_int(a.set("EXTI_A", "a", 1), 0);
    want_int(b.set("EXTI_A", "b", 1), 0);
    want_int(b.set("EXTI_A", "not this", 0), 0);
    want_int(b.set("EXTI_B", "b", 0), 0);
    want(same(a.get("EXTI_A"), "a") && same(a.found("EXTI_A"), "a"));
    want(same(a.secure("EXTI_A"), "a"));
    want(same(b.get("EXTI_A"), "b") && same(b.get("EXTI_B"), "b"));
    want(same(a.get("EXTI_B"), NULL));
    want(same(host.get("EXTI_A"), "process") && same(getenv("EXTI_A"), "process"));
    want(same(getenv("EXTI_B"), NULL));
    want(is_listed(*a.list, "EXTI_A=a") && is_listed(*b.list, "EXTI_A=b"));
    want(is_listed(environ, "EXTI_A=process") && *host.list == environ);
    /* What the program sets after a context was opened is not that one's. */
    setenv("EXTI_A", "later", 1);
    want(same(a.get("EXTI_A"), "a") && same(host.get("EXTI_A"), "later"));
    want_int(a.unset("EXTI_A"), 0);
    want(same(a.get("EXTI_A"), NULL) && same(b.get("EXTI_A"), "b"));
    want_int(a.clear(), 0);
    want(!*a.list && same(a.get("PATH"), NULL) && b.get("PATH") && getenv("PATH"));
    iso_prove_clean(a.ctx, 2);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(a_context_can_share_those_of_the_process)
{
    struct env_user a;

    env_build();
    setenv("EXTI_A", "process", 1);
    a = env_in_context(EXTI_CTX_PROCESS_ENVIRONMENT);
    want(a.list == &environ);
    want_int(a.set("EXTI_A", "a", 1), 0);
    want(same(getenv("EXTI_A"), "a"));
    iso_close_ctx(a.ctx);
}

ISO_CASE(a_program_replaces_the_list)
{
    static char entry[] = "EXTI_A=mine", *mine[] = {entry, NULL};
    struct env_user a, b;

    env_build();
    a = env_in_context(0);
    b = env_in_context(0);
    *a.list = mine;
    want(same(a.get("EXTI_A"), "mine") && same(a.get("PATH"), NULL));
    want_int(a.set("EXTI_B", "more", 1), 0);
    want(same(a.get("EXTI_A"), "mine") && same(a.get("EXTI_B"), "more") && !mine[1]);
    want(same(b.get("EXTI_A"), NULL) && b.get("PATH"));
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

/* In the C library's own list it would be a pointer to unmapped memory. */
ISO_CASE(nothing_of_a_context_is_in_the_processs_list_when_it_is_closed)
{
    static const char source[] = "#include <stdlib.h>\n"
                                 "static char entry[] = \"EXTI_PUT=copy\";\n"
                                 "int put(void) { int r = putenv(entry); return r; }\n"
                                 "char *get(void) { char *v = getenv(\"EXTI_PUT\"); return v; }\n";
    struct exti_ctx *ctx = iso_open(NULL);
    struct exti_module *m;

    iso_build(source, "put.so", "");
    m = iso_load(ctx, in_tmp("put.so"));
    want_int(call_int(m, "put"), 0);
    want(same(call_ptr(m, "get"), "copy"));
    iso_close_ctx(ctx);
    want(!getenv("EXTI_PUT"));
    for (char **p = environ; *p; p++)
        want(strchr(*p, '='));
}

static const char *const ways[ENV_WAYS] = {"execv", "execvp", "execvpe", "execl", "execlp",
                                           "spawn", "spawnp", "system",  "popen", "vfork"};

/* Whether a program that `u` starts in this way has EXTI_A=context. */
static int has_it(const struct env_user *u, enum env_way way, const char *program)
{
    const char *file = in_tmp("seen");
    int seen;

    unlink(file);
    u->run((int)way, program, file);
    seen = file_exists(file);
    if (!seen)
        fprintf(stderr, "%s did not\n", ways[way]);
    return seen;
}

ISO_CASE(programs_that_a_context_starts_get_its_variables)
{
    struct env_user a, b, host;

    env_build();
    setenv("EXTI_A", "process", 1);
    a = env_in_context(0);
    b = env_in_context(0);
    host = env_by_itself();
    want_int(a.set("EXTI_A", "context", 1), 0);
    for (int way = 0; way < ENV_WAYS; way++) {
        want(has_it(&a, (enum env_way)way, in_tmp("env-shower")));
        want(!has_it(&b, (enum env_way)way, in_tmp("env-shower")));
        want(!has_it(&host, (enum env_way)way, in_tmp("env-shower")));
    }
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(programs_are_looked_for_along_the_contexts_path)
{
    static const enum env_way by_name[] = {BY_EXECVP, BY_EXECVPE, BY_EXECLP,
                                           BY_SPAWNP, BY_SYSTEM,  BY_POPEN};
    struct env_user a, b;

    env_build();
    want_int(mkdir(in_tmp("none"), 0700), 0);
    a = env_in_context(0);
    b = env_in_context(0);
    want_int(a.set("EXTI_A", "context", 1), 0);
    want_int(b.set("EXTI_A", "context", 1), 0);
    want_int(a.set("PATH", iso_text("/nowhere:%s::%s:/bin", in_tmp("none"), iso_tmp), 1), 0);
    for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++) {
        want(has_it(&a, by_name[i], "env-shower"));
        want(!has_it(&b, by_name[i], "env-shower"));
    }
    /* As execvp(3): no PATH, a file that is no program, one that may not be run, none. */
    want_int(a.unset("PATH"), 0);
    want(!has_it(&a, BY_EXECVP, "env-shower"));
    want_int(WEXITSTATUS(a.run(BY_EXECVP, "true", "x")), 0);
    want_int(a.run(BY_SPAWNP, "true", "x"), 0);
    want_int(a.run(BY_SPAWNP, "no-such", "x"), -ENOENT);
    want_int(a.set("PATH", iso_tmp, 1), 0);
    iso_write_text(in_tmp("env-shower"), "[ \"$EXTI_A\" = context ] && : >\"$1\"\n");
    want(has_it(&a, BY_EXECVP, "env-shower"));
    want(has_it(&a, BY_EXECLP, in_tmp("env-shower")));
    want_int(chmod(in_tmp("env-shower"), 0600), 0);
    want_int(a.run(BY_SPAWNP, "env-shower", "x"), -EACCES);
    want_int(WEXITSTATUS(a.run(BY_EXECVP, "env-shower", "x")), 66);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

/* As system(3) has it, whose own is the oracle. */
ISO_CASE(system_returns_what_the_shell_does)
{
    static const char *const commands[] = {"exit 3", "kill -9 $$", "no-such-command-here",
                                           "",       "true",       "exit 300; #"};
    struct env_user a, host;

    env_build();
    a = env_in_context(0);
    host = env_by_itself();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        want_int(a.run(BY_SYSTEM, commands[i], "x' #"), host.run(BY_SYSTEM, commands[i], "x' #"));
    signal(SIGINT, SIG_DFL);
    want_int(a.run(BY_SYSTEM, "kill -INT $PPID $$; :", "x"), SIGINT);
    want(signal(SIGINT, SIG_DFL) == SIG_DFL);
    iso_close_ctx(a.ctx);
}

struct found {
    char *(*get)(const char *name);
    char *value;
};

static void *call_as_a_shared_library(void *arg)
{
    struct found *f = arg;

    f->value = f->get("EXTI_A");
    return NULL;
}

/* ctypes calls what dlsym has found from a library that contexts share. */
ISO_CASE(a_thread_inside_a_context_sees_its_variables_from_anywhere)
{
    static const char source[] =
        "#define _GNU_SOURCE\n"
        "#include <dlfcn.h>\n"
        "#include <pthread.h>\n"
        "void *look(void) { void *p = dlsym(RTLD_DEFAULT, \"getenv\"); return p; }\n"
        "int run(void *(*f)(void *), void *arg)\n"
        "{ pthread_t t; return pthread_create(&t, 0, f, arg) || pthread_join(t, 0); }\n";
    struct env_user a, b;
    struct exti_module *m;
    struct found f = {0};
    void *outside, *inside;

    env_build();
    setenv("EXTI_A", "process", 1);
    a = env_in_context(0);
    b = env_in_context(0);
    a.set("EXTI_A", "a", 1);
    b.set("EXTI_A", "b", 1);
    iso_build(source, "look.so", "");
    m = iso_load(a.ctx, in_tmp("look.so"));
    *(void **)&f.get = call_ptr(m, "look");
    want(f.get != getenv && same(f.get("EXTI_A"), "process"));
    outside = exti_ctx_enter(a.ctx);
    want(same(f.get("EXTI_A"), "a"));
    inside = exti_ctx_enter(b.ctx);
    want(same(f.get("EXTI_A"), "b") && same(a.get("EXTI_A"), "a"));
    exti_ctx_leave(inside);
    want(same(f.get("EXTI_A"), "a"));
    exti_ctx_leave(outside);
    want(same(f.get("EXTI_A"), "process"));
    want_int(((int (*)(void *(*)(void *), void *))iso_sym(m, "run"))(call_as_a_shared_library, &f),
             0);
    want(same(f.value, "a"));
    outside = exti_ctx_enter(NULL);
    exti_ctx_leave(outside);
    iso_close_ctx(b.ctx);
    iso_close_ctx(a.ctx);
}

/* ---- libraries that contexts share ---- */

struct shared_user {
    struct exti_ctx *ctx;
    char *(*get)(const char *name);   /* through a shared library */
    char *(*below)(const char *name); /* through one that it needs */
    int (*put)(char *entry);
    void *(*open)(const char *file);
};

/* user.so needs libover.so, that needs libunder.so, and both are shared. */
static void build_shared(void)
{
    static const char under[] =
        "#define _GNU_SOURCE\n"
        "#include <stdlib.h>\n"
        "static char *(*saved)(const char *) = getenv;\n"
        "char *under(const char *n) { char *v = secure_getenv(n); return v; }\n"
        "void *under_saved(void) { return &saved; }\n";
    static const char over[] = "#include <stdlib.h>\n"
                               "char *under(const char *);\n"
                               "char *over_under(const char *n) { char *v = under(n); return v; }\n"
                               "char *over(const char *n) { char *v = getenv(n); return v; }\n"
                               "int over_put(char *e) { int r = putenv(e); return r; }\n";
    static const char user[] = "#include <dlfcn.h>\n"
                               "char *over(const char *), *over_under(const char *);\n"
                               "int over_put(char *);\n"
                               "char *get(const char *n) { char *v = over(n); return v; }\n"
                               "char *below(const char *n) { char *v = over_under(n); return v; }\n"
                               "int put(char *e) { int r = over_put(e); return r; }\n"
                               "void *open_it(const char *f)\n"
                               "{ void *h = dlopen(f, RTLD_NOW); return h; }\n";
    const char *needs = iso_text("-L'%s' -Wl,-rpath,'%s'", iso_tmp, iso_tmp);

    iso_build(under, "libunder.so", "-Wl,-soname,libunder.so -Wl,-z,relro,-z,now");
    iso_build(over, "libover.so", iso_text("%s -lunder -Wl,-soname,libover.so -Wl,-z,lazy", needs));
    iso_build(user, "user.so", iso_text("%s -lover", needs));
}

static struct shared_user shared_in_context(unsigned flags)
{
    static const struct exti_rule rules[] = {
        {"libover.so", 1}, {"libunder.so", 1}, {"liblate.so", 1}};
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct shared_user u;
    struct exti_module *m;

    opts.flags |= flags;
    opts.rules = rules;
    opts.rule_count = sizeof rules / sizeof *rules;
    u.ctx = iso_open_opts(&opts);
    m = iso_load(u.ctx, in_tmp("user.so"));
    *(void **)&u.get = iso_sym(m, "get");
    *(void **)&u.below = iso_sym(m, "below");
    *(void **)&u.put = iso_sym(m, "put");
    *(void **)&u.open = iso_sym(m, "open_it");
    return u;
}

/* What the thread sees inside the context. */
static char *seen_inside(const struct shared_user *u, char *(*get)(const char *name))
{
    void *outside = exti_ctx_enter(u->ctx);
    char *value = get("EXTI_A");

    exti_ctx_leave(outside);
    return value;
}

static void set_inside(const struct shared_user *u, char *entry)
{
    void *outside = exti_ctx_enter(u->ctx);

    want_int(u->put(entry), 0);
    exti_ctx_leave(outside);
}

ISO_CASE(shared_libraries_see_the_variables_of_the_context_that_calls_them)
{
    static char of_a[] = "EXTI_A=a", of_b[] = "EXTI_A=b";
    struct shared_user a, b;

    build_shared();
    setenv("EXTI_A", "process", 1);
    a = shared_in_context(0);
    b = shared_in_context(0);
    want(same(seen_inside(&a, a.get), "process"));
    set_inside(&a, of_a);
    set_inside(&b, of_b);
    want(same(getenv("EXTI_A"), "process"));
    want(same(seen_inside(&a, a.get), "a") && same(seen_inside(&a, a.below), "a"));
    want(same(seen_inside(&b, b.get), "b") && same(seen_inside(&b, b.below), "b"));
    iso_prove_clean(a.ctx, 2);
    /* A thread of the process is in no context, whichever library it calls. */
    want(same(a.get("EXTI_A"), "process") && same(a.below("EXTI_A"), "process"));
    iso_close_ctx(a.ctx);
    want(same(seen_inside(&b, b.get), "b"));
    iso_close_ctx(b.ctx);
    want(same(getenv("EXTI_A"), "process"));
}

ISO_CASE(shared_libraries_that_the_process_or_a_copy_opened_do_too)
{
    static char of_a[] = "EXTI_A=a";
    char *(*get)(const char *name), *(*late)(const char *name);
    struct shared_user a;
    void *host;

    build_shared();
    setenv("EXTI_A", "process", 1);
    host = dlopen(in_tmp("libover.so"), RTLD_NOW);
    want(host);
    *(void **)&get = dlsym(host, "over");
    want(same(get("EXTI_A"), "process"));
    iso_build("#include <stdlib.h>\n"
              "char *late(const char *n) { char *v = getenv(n); return v; }\n",
              "liblate.so", "-Wl,-soname,liblate.so");
    /* The second time it is mapped anew, most likely where it was. */
    for (int again = 0; again < 2; again++) {
        void *opened;

        a = shared_in_context(0);
        set_inside(&a, of_a);
        want(same(seen_inside(&a, get), "a") && same(get("EXTI_A"), "process"));
        opened = a.open(in_tmp("liblate.so"));
        want(opened);
        *(void **)&late = dlsym(opened, "late");
        want(same(seen_inside(&a, late), "a") && same(late("EXTI_A"), "process"));
        want_int(dlclose(opened), 0);
        iso_close_ctx(a.ctx);
    }
    dlclose(host);
}

ISO_CASE(control_where_variables_are_the_processs_shared_libraries_are_left_alone)
{
    static char of_a[] = "EXTI_A=a";
    struct shared_user a;

    build_shared();
    setenv("EXTI_A", "process", 1);
    a = shared_in_context(EXTI_CTX_PROCESS_ENVIRONMENT);
    set_inside(&a, of_a);
    want(same(getenv("EXTI_A"), "a") && same(a.get("EXTI_A"), "a"));
    iso_close_ctx(a.ctx);
}

/* The module of an address is asked for once, and then known until a module comes or goes. */
ISO_CASE(a_thread_that_calls_several_contexts_in_turn_is_not_mistaken)
{
    struct env_user users[4];

    env_build();
    for (int i = 0; i < 4; i++) {
        users[i] = env_in_context(0);
        users[i].set("EXTI_A", iso_text("%d", i), 1);
    }
    for (int turn = 0; turn < 1000; turn++)
        want_int(atoi(users[turn * 7 % 4].get("EXTI_A")), turn * 7 % 4);
    iso_close_ctx(users[0].ctx);
    users[0] = env_in_context(0);
    for (int i = 1; i < 4; i++)
        want_int(atoi(users[i].get("EXTI_A")), i);
    want(!users[0].get("EXTI_A"));
    for (int i = 0; i < 4; i++)
        iso_close_ctx(users[i].ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_context_has_variables_of_its_own),
        cmocka_unit_test(a_context_can_share_those_of_the_process),
        cmocka_unit_test(a_program_replaces_the_list),
        cmocka_unit_test(nothing_of_a_context_is_in_the_processs_list_when_it_is_closed),
        cmocka_unit_test(programs_that_a_context_starts_get_its_variables),
        cmocka_unit_test(programs_are_looked_for_along_the_contexts_path),
        cmocka_unit_test(system_returns_what_the_shell_does),
        cmocka_unit_test(a_thread_inside_a_context_sees_its_variables_from_anywhere),
        cmocka_unit_test(a_thread_that_calls_several_contexts_in_turn_is_not_mistaken),
        cmocka_unit_test(shared_libraries_see_the_variables_of_the_context_that_calls_them),
        cmocka_unit_test(shared_libraries_that_the_process_or_a_copy_opened_do_too),
        cmocka_unit_test(control_where_variables_are_the_processs_shared_libraries_are_left_alone),
    };

    return cmocka_run_group_tests_name("isolation/environment", tests, NULL, NULL);
}
