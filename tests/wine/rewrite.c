/* Rewrites a file with names that the program would not choose:
 *
 *   rewrite SRC DST [id=NAME] [bind=FILE] [FROM=TO]...
 */
#include <stdio.h>
#include <string.h>

#include <extisolate.h>

enum { MOST = 64 };

int main(int argc, char **argv)
{
    struct exti_rewrite_opts opts = {.size = sizeof opts};
    struct exti_needed needed[MOST];
    struct exti_error error;

    if (argc < 3 || argc > MOST) {
        fprintf(stderr, "usage: see the top of rewrite.c\n");
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        char *to = strchr(argv[i], '=');

        if (!to)
            return 2;
        *to++ = 0;
        if (strcmp(argv[i], "id") == 0)
            opts.id = to;
        else if (strcmp(argv[i], "bind") == 0)
            opts.bind_file = to;
        else
            needed[opts.needed_count++] = (struct exti_needed){.from = argv[i], .to = to};
    }
    opts.needed = needed;
    if (exti_rewrite(argv[1], argv[2], &opts, &error)) {
        fprintf(stderr, "%s: %s: %s\n", argv[1], exti_code_name(error.code), error.message);
        return 1;
    }
    return 0;
}
