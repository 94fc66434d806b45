#include <errno.h>
#include <string.h>

#include "cli/args/option.h"
#include "cli/command.h"
#include "cli/os/system.h"
#include "cli/output/json.h"
#include "cli/output/message.h"
#include "cli/output/text.h"

static const struct cli_command *const commands[] = {
    &cli_command_copy,    &cli_command_copy_tree, &cli_command_inspect,
    &cli_command_rewrite, &cli_command_verify,    &cli_command_run,
    &cli_command_list,    &cli_command_clean,     &cli_command_quirks,
};
static const size_t command_count = sizeof commands / sizeof *commands;

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void print_help(FILE *f)
{
    fputs("usage: extisolate COMMAND [OPTION]... [ARGUMENT]...\n"
          "\n"
          "Gives every interpreter in a process its own copy of native extension modules and of\n"
          "libpython, so that each has its own C globals and its own GIL.\n"
          "\n"
          "commands:\n",
          f);
    for (size_t i = 0; i < command_count; i++)
        fprintf(f, "  %-9s  %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help       explain a command, as in: extisolate help copy\n"
          "\n"
          "options:\n"
          "  -h, --help     show this\n"
          "  -V, --version  show the version\n"
          "\n"
          "examples:\n"
          "  extisolate run --contexts 2 app.py\n"
          "  extisolate copy foo.cpython-311-x86_64-linux-gnu.so ctx\n"
          "  extisolate verify ctx\n"
          "\n"
          "Exit status: 0 done, 1 failed, 2 wrong usage (nothing was done).\n",
          f);
}

static int unknown_command(const char *word)
{
    const char *names[sizeof commands / sizeof *commands + 2];
    size_t n = 0;

    for (; n < command_count; n++)
        names[n] = commands[n]->name;
    names[n++] = "help";
    names[n] = NULL;

    const char *near = cli_nearest(word, names);
    fputs("extisolate: unknown command '", stderr);
    cli_put(stderr, word);
    if (near != NULL)
        fprintf(stderr, "'; did you mean '%s'?\n", near);
    else
        fputs("'; 'extisolate help' lists the commands\n", stderr);
    return CLI_USAGE;
}

static int help_command(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0) {
        puts("usage: extisolate help [COMMAND]\n\nShows what COMMAND does, with examples.");
        return CLI_OK;
    }
    const struct cli_command *c = find_command(argv[1]);
    if (c == NULL)
        return unknown_command(argv[1]);

    char ask[] = "--help";
    char *args[] = {argv[1], ask, NULL};
    return c->run(2, args);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        fputs("extisolate: missing command\n\n", stderr);
        print_help(stderr);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help(stdout);
        return CLI_OK;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("extisolate %s\n", exti_version());
        return CLI_OK;
    }
    if (strcmp(word, "help") == 0)
        return help_command(argc - 1, argv + 1);
    const struct cli_command *c = find_command(word);
    if (c == NULL)
        return unknown_command(word);
    /* Python goes by which streams are closed. */
    if (c != &cli_command_run) {
        cli_hold_streams();
        cli_keep_memory();
    }
    return c->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    if (!cli_start(&argc, &argv))
        return cli_fail(NULL, "out of memory");
    cli_json_start();
    int status = dispatch(argc, argv);

    if (status == CLI_HELPED)
        status = CLI_OK;
    /* Buffered output meets a full disk or a closed pipe only here. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == CLI_OK)
        status = cli_fail("standard output", "cannot write: %s", strerror(errno));
    return status;
}
