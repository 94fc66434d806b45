/* load DIR API FILE...: opens the context, loads each file, calls it, proves it, closes
 * all.  Prints what happened; an error ends it with status 1. */
#include <stdio.h>

#include <extisolate.h>

static int fail(const char *what, const struct exti_error *err)
{
    fprintf(stderr, "load: %s: %s: %s: %s\n", what, err->file, exti_code_name(err->code),
            err->message);
    return 1;
}

static int load(struct exti_ctx *ctx, const char *file)
{
    struct exti_error err;
    struct exti_module *m;
    void *next;

    if (exti_load(ctx, file, &m, &err))
        return fail("load", &err);
    if (exti_symbol(m, "ext_next", &next, &err))
        return fail("symbol", &err);
    printf("%s: %d", file, ((int (*)(void))next)());
    printf(" %d\n", ((int (*)(void))next)());
    return 0;
}

int main(int argc, char **argv)
{
    struct exti_ctx_opts opts = {
        .size = sizeof opts, .dir = argv[1], .name = "same", .api_library = argv[2]};
    struct exti_proof proof = {.size = sizeof proof};
    struct exti_error err;
    struct exti_ctx *ctx;
    int status = 0;

    if (argc < 4)
        return 2;
    if (exti_ctx_open(&ctx, &opts, &err))
        return fail("open", &err);
    for (int i = 3; i < argc && !status; i++)
        status = load(ctx, argv[i]);
    if (!status && exti_ctx_prove(ctx, NULL, NULL, &proof, &err))
        status = fail("prove", &err);
    if (!status)
        printf("leaks: %d\n", (int)proof.leaks);
    if (exti_ctx_close(ctx, &err) && !status)
        status = fail("close", &err);
    if (fflush(stdout))
        return 1;
    return status;
}
