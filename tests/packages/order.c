/* Opens a file in a context, and prints the originals in the order in which their copies'
 * constructors ran: order LIBPYTHON FILE. */
#include <stdio.h>
#include <string.h>

#include <extisolate.h>

static int failed(const struct exti_error *err)
{
    fprintf(stderr, "%s: %s\n", err->file, err->message);
    return 1;
}

/* Modules are announced in the order of their constructors: "loaded ORIGINAL from COPY". */
static void print_loaded(void *user, enum exti_log_level level, const char *message)
{
    const char *end = strstr(message, " from ");

    (void)user;
    if (level == EXTI_LOG_DEBUG && strncmp(message, "loaded ", 7) == 0 && end)
        printf("%.*s\n", (int)(end - message - 7), message + 7);
}

int main(int argc, char **argv)
{
    struct exti_hooks hooks = {.size = sizeof hooks, .log = print_loaded};
    struct exti_ctx_opts opts = {.size = sizeof opts, .hooks = &hooks};
    struct exti_module *m;
    struct exti_error err;
    struct exti_ctx *ctx;

    if (argc != 3)
        return 2;
    opts.api_library = argv[1];
    if (exti_ctx_open(&ctx, &opts, &err) || exti_load(ctx, argv[2], &m, &err) ||
        exti_ctx_close(ctx, &err))
        return failed(&err);
    return fflush(stdout) != 0;
}
