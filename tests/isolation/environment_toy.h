/* A library that reads and changes environment variables and starts programs, in contexts or opened
 * by itself. */
#ifndef TESTS_ISOLATION_ENVIRONMENT_TOY_H
#define TESTS_ISOLATION_ENVIRONMENT_TOY_H

#include <dlfcn.h>

#include "tests/isolation/build.h"

enum env_way {
    BY_EXECV,
    BY_EXECVP,
    BY_EXECVPE,
    BY_EXECL,
    BY_EXECLP,
    BY_SPAWN,
    BY_SPAWNP,
    BY_SYSTEM,
    BY_POPEN,
    BY_VFORK,
    ENV_WAYS
};

struct env_user {
    struct exti_ctx *ctx; /* NULL: the original */
    char *(*get)(const char *name);
    int (*set)(const char *name, const char *value, int overwrite);
    int (*put)(char *entry);
    int (*unset)(const char *name);
    int (*clear)(void);
    char ***list; /* environ, as the library sees it */
    char *(*secure)(const char *name);
    char *(*found)(const char *name); /* by what dlsym tells */
    int (*run)(int way, const char *program, const char *file);
};

static inline void env_build(void)
{
    static const char source[] =
        "#define _GNU_SOURCE\n"
        "#include <dlfcn.h>\n"
        "#include <spawn.h>\n"
        "#include <stdio.h>\n"
        "#include <stdlib.h>\n"
        "#include <sys/wait.h>\n"
        "#include <unistd.h>\n"
        "extern char **environ;\n"
        "char *e_get(const char *n) { char *v = getenv(n); return v; }\n"
        "char *e_secure(const char *n) { char *v = secure_getenv(n); return v; }\n"
        "int e_set(const char *n, const char *v, int o) { int r = setenv(n, v, o); return r; }\n"
        "int e_put(char *s) { int r = putenv(s); return r; }\n"
        "int e_unset(const char *n) { int r = unsetenv(n); return r; }\n"
        "int e_clear(void) { int r = clearenv(); return r; }\n"
        "char ***e_list(void) { return &environ; }\n"
        "char *e_found(const char *n)\n"
        "{ char *v = ((char *(*)(const char *))dlsym(RTLD_DEFAULT, \"getenv\"))(n); return v; }\n"
        "static int await(int pid)\n"
        "{ int s; return pid > 0 && waitpid(pid, &s, 0) == pid ? s : -1; }\n"
        "static int spawn(int way, const char *program, char **argv)\n"
        "{\n"
        "    pid_t pid;\n"
        "    int r = way == 5 ? posix_spawn(&pid, program, 0, 0, argv, environ)\n"
        "                     : posix_spawnp(&pid, program, 0, 0, argv, environ);\n"
        "    return r ? -r : await(pid);\n"
        "}\n"
        "static int ask(const char *program, const char *file)\n"
        "{\n"
        "    char line[4096], c;\n"
        "    FILE *f;\n"
        "    snprintf(line, sizeof line, \"%s '%s' && echo y\", program, file);\n"
        "    f = popen(line, \"r\");\n"
        "    if (!f) return -1;\n"
        "    c = fgetc(f) == 'y' && fgetc(f) == '\\n' && fgetc(f) == EOF;\n"
        "    return pclose(f) || !c;\n"
        "}\n"
        "int e_run(int way, const char *program, const char *file)\n"
        "{\n"
        "    char *argv[] = {\"program\", (char *)file, 0}, line[4096];\n"
        "    int pid;\n"
        "    if (way == 5 || way == 6) return spawn(way, program, argv);\n"
        "    if (way == 8) return ask(program, file);\n"
        "    snprintf(line, sizeof line, \"%s '%s'\", program, file);\n"
        "    if (way == 7) return system(line);\n"
        "    pid = way == 9 ? vfork() : fork();\n"
        "    if (pid) return await(pid);\n"
        "    if (way == 0 || way == 9) execv(program, argv);\n"
        "    if (way == 1) execvp(program, argv);\n"
        "    if (way == 2) execvpe(program, argv, environ);\n"
        "    if (way == 3) execl(program, \"program\", file, (char *)0);\n"
        "    if (way == 4) execlp(program, \"program\", file, (char *)0);\n"
        "    _exit(66);\n"
        "}\n";

    iso_build(source, "env.so", "-O1");
    /* Each program says whether it has EXTI_A=context. */
    iso_write_text(in_tmp("env-shower"), "#!/bin/sh\n[ \"$EXTI_A\" = context ] && : >\"$1\"\n");
    want_int(chmod(in_tmp("env-shower"), 0755), 0);
}

static inline void *env_function(struct exti_ctx *ctx, void *lib, const char *name)
{
    return ctx ? iso_sym(lib, name) : dlsym(lib, name);
}

static inline struct env_user env_find(struct exti_ctx *ctx, void *lib)
{
    struct env_user u = {.ctx = ctx};

    *(void **)&u.get = env_function(ctx, lib, "e_get");
    *(void **)&u.secure = env_function(ctx, lib, "e_secure");
    *(void **)&u.set = env_function(ctx, lib, "e_set");
    *(void **)&u.put = env_function(ctx, lib, "e_put");
    *(void **)&u.unset = env_function(ctx, lib, "e_unset");
    *(void **)&u.clear = env_function(ctx, lib, "e_clear");
    *(void **)&u.found = env_function(ctx, lib, "e_found");
    *(void **)&u.run = env_function(ctx, lib, "e_run");
    u.list = ((char ***(*)(void))env_function(ctx, lib, "e_list"))();
    return u;
}

static inline struct env_user env_in_context(uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct exti_ctx *ctx;

    opts.flags = flags;
    ctx = iso_open_opts(&opts);
    return env_find(ctx, iso_load(ctx, in_tmp("env.so")));
}

static inline struct env_user env_by_itself(void)
{
    void *lib = dlopen(in_tmp("env.so"), RTLD_NOW | RTLD_LOCAL);

    want(lib);
    return env_find(NULL, lib);
}

#endif
