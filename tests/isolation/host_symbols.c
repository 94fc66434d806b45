/* A host whose definitions a context's module meets, or those of preloaded and global libraries.
 * test_program_symbols.sh builds it in several ways, and runs it as
 *     host_symbols MODULE FROM CAPTURED [global LIB | share GLOB | isolate GLOB]...
 * where FROM says whose var_count and var_next the module has: "host", "library" (shared with the
 * host), "context", or "other" for neither's.  It exits with 0 if that and the number of captured
 * references are so. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>

#include "tests/isolation/iso.h"

#if defined(DEFINE_VAR)
extern int var_count;
int var_next(void);
int var_count = 100;

int var_next(void)
{
    return ++var_count;
}
#elif defined(COPY_VAR)
extern int var_count;
#elif defined(CHOOSE_VAR)
int var_next(void);

static int next(void)
{
    return 1000;
}

static int (*choose(void))(void)
{
    return next;
}

int var_next(void) __attribute__((ifunc("choose")));
#elif defined(ADDRESS_VAR)
int var_next(void);
int (*volatile host_next)(void);
#endif

/* The host's variable, by R_*_COPY one of the library's. */
static int *host_count(void)
{
#if defined(DEFINE_VAR) || defined(COPY_VAR)
    return &var_count;
#else
    return NULL;
#endif
}

/* Whether the variable is in a copy of this context. */
static bool is_in_context(const int *count)
{
    Dl_info info;

    return dladdr(count, &info) && strncmp(info.dli_fname, iso_tmp, strlen(iso_tmp)) == 0;
}

static void check_owner(struct exti_module *m, const char *from)
{
    void *shared = dlopen("libvar.so.1", RTLD_NOW | RTLD_NOLOAD);
    int *count = call_ptr(m, "user_count");
    const char *owner = "other";

#if defined(ADDRESS_VAR)
    host_next = var_next;
#endif
    if (count == host_count())
        owner = "host";
    else if (shared && count == dlsym(shared, "var_count"))
        owner = "library";
    else if (is_in_context(count) && call_int(m, "user_next") == 2 && *count == 2)
        owner = "context";
    if (strcmp(owner, from) == 0)
        return;
    fprintf(stderr, "the module's variable is of: %s\n", owner);
    exit(1);
}

int main(int argc, char **argv)
{
    struct exti_rule rules[8];
    struct exti_ctx_opts opts;
    struct exti_proof proof;
    struct exti_module *m;
    struct exti_ctx *ctx;
    size_t count = 0;

    want(argc >= 4);
    for (int i = 4; i + 1 < argc && count < 8; i += 2)
        if (strcmp(argv[i], "global") != 0)
            rules[count++] = (struct exti_rule){argv[i + 1], !strcmp(argv[i], "share")};
        else
            want(dlopen(argv[i + 1], RTLD_NOW | RTLD_GLOBAL));
    snprintf(iso_tmp, sizeof iso_tmp, "/tmp/exti-host.XXXXXX");
    want(mkdtemp(iso_tmp));
    opts = iso_opts(iso_tmp, NULL);
    opts.rules = rules;
    opts.rule_count = count;
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, argv[1]);
    proof = iso_proof(ctx, iso_print_finding, NULL);
    check_owner(m, argv[2]);
    want_int((long)proof.leaks, 0);
    want_int((long)proof.captured, atol(argv[3]));
    iso_close_ctx(ctx);
    want(system(iso_text("rm -rf %s", iso_tmp)) == 0);
    return 0;
}
