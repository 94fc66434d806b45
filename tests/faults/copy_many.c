/* copy_many THREADS DIR API FILE...: copies the files by that many threads, as another program
 * would. */
#include <stdio.h>
#include <stdlib.h>

#include <extisolate.h>

static int fail(const struct exti_error *err)
{
    fprintf(stderr, "copy_many: %s: %s\n", err->file, err->message);
    return 1;
}

int main(int argc, char **argv)
{
    struct exti_ctx_opts opts = {.size = sizeof opts, .name = "fixed", .flags = EXTI_CTX_COPY_ONLY};
    struct exti_copy_opts many = {.size = sizeof many};
    struct exti_error err;
    struct exti_ctx *ctx;
    int status = 0;

    if (argc < 5)
        return 2;
    many.threads = strtoul(argv[1], NULL, 10);
    opts.dir = argv[2];
    opts.api_library = argv[3];
    if (exti_ctx_open(&ctx, &opts, &err))
        return fail(&err);
    if (exti_copy_many(ctx, (const char *const *)argv + 4, (size_t)argc - 4, &many, &err))
        status = fail(&err);
    if (exti_ctx_close(ctx, &err) && !status)
        status = fail(&err);
    return status;
}
