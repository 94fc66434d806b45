/* runtime/ needs POSIX and is not built on Windows. */
#include "cli/command.h"

#include <getopt.h>
#include <stdio.h>

#include "cli/output/message.h"

static const char help[] =
    "usage: extisolate run [OPTION]... SCRIPT | -c CODE | -m MODULE [ARG]...\n"
    "\n"
    "Runs one program in several CPythons of one process, in parallel.  Not on Windows: it needs\n"
    "a POSIX system.  Programs that use the library can load the copies made here.\n"
    "\n"
    "examples:\n"
    "  extisolate run --contexts 4 app.py\n"
    "\n"
    "Exit status: on Windows 1.\n";

static int cmd_run(int argc, char **argv)
{
    static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

    opterr = 0;
    if (getopt_long(argc, argv, "+:h", longs, NULL) == 'h') {
        fputs(help, stdout);
        return CLI_OK;
    }
    cli_fail(NULL, "run needs a POSIX system, such as Linux: this is Windows");
    cli_hint("'extisolate copy' makes the copies here too, and a host loads them by extisolate.h");
    return CLI_FAILED;
}

const struct cli_command cli_command_run = {
    "run", "run a program in several CPythons of one process, in parallel", cmd_run};
