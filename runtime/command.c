#include "runtime/command.h"

#include <stdlib.h>

#include "runtime/fail.h"

int pyrt_command_new(struct pyrt_command *out, const struct pyrt_install *python,
                     const struct pyrt_program *program, struct exti_error *err)
{
    static const char *const flags[] = {[PYRT_CODE] = "-c", [PYRT_MODULE] = "-m"};
    size_t given = (size_t)program->argc;
    const char **words = calloc(2 * given + 4, sizeof *words), *first = program->what;
    size_t n = 0;

    if (!words)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    words[n++] = python->executable;
    if (program->kind != PYRT_SCRIPT)
        first = words[n++] = flags[program->kind];
    words[n++] = program->what;
    for (size_t i = 0; i < given; i++)
        words[n++] = program->argv[i];
    *out = (struct pyrt_command){
        .words = words, .word_count = n, .argv = words + n, .argc = given + 1};
    words[n++] = first;
    for (size_t i = 0; i < given; i++)
        words[n++] = program->argv[i];
    return 0;
}

void pyrt_command_free(struct pyrt_command *c)
{
    free(c->words);
    *c = (struct pyrt_command){0};
}
