/* The program, which uses only the public header <extisolate.h> of the library.  Here are the
 * commands; what they share is in rooms below, each of which uses only the ones after it:
 *
 *     tree/    copy-tree: finds a folder's libraries, copies them with threads, reports
 *     report/  describes files and hazards, for people and as JSON
 *     find/    looks things up: libpython, context directories, what a file name says
 *     args/    options that several commands have
 *     output/  messages, escaped text, JSON, the progress bar
 *     os/      files, paths and processes of the operating system
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

struct cli_command {
    const char *name, *summary;
    /* argv[0] is the command's name.  Returns the exit code. */
    int (*run)(int argc, char **argv);
};

/* Each is defined in cmd_<name>.c. */
extern const struct cli_command cli_command_copy, cli_command_copy_tree, cli_command_inspect,
    cli_command_rewrite, cli_command_verify, cli_command_run, cli_command_list, cli_command_clean,
    cli_command_quirks;

#endif
