/* This room parses what several commands have in common: options with this program's messages, the
 * choice of shared libraries, rule files.  Commands call it; it uses output/. */
#ifndef CLI_ARGS_OPTION_H
#define CLI_ARGS_OPTION_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* getopt_long with this program's messages.  `shorts` begins with ":", or with "+:" to stop at the
 * first argument.  Returns the option, -1 at the end, or '?' after printing a usage error. */
int cli_getopt(const char *command, int argc, char **argv, const char *shorts,
               const struct option *longs);

/* Guesses which of the NULL-ended `names` was meant by a misspelled `word`; NULL if none is
 * close. */
const char *cli_nearest(const char *word, const char *const *names);

/* CLI_OK, or a usage error for the first empty argument from argv[from] on. */
int cli_no_empty(const char *command, int argc, char **argv, int from);

/* CLI_OK, or a usage error when the value of `option` ("--python") is empty. */
int cli_check_value(const char *command, const char *option, const char *value);

/* The values of an option that may be given several times. */
struct cli_values {
    const char **items; /* the array is owned, the strings are the command line's */
    size_t count;
};
/* CLI_OK, or the exit code after printing an error: usage when the value is empty. */
int cli_add_value(struct cli_values *v, const char *command, const char *option, const char *value);

/* Parses a number from 1 to CLI_CONTEXTS_MAX.  CLI_OK, or a usage error. */
#define CLI_CONTEXTS_MAX 10000
int cli_parse_count(const char *command, const char *option, const char *text, int *out);

/* Checks the value of --name, at most `most` characters.  CLI_OK, or a usage error. */
int cli_check_name(const char *command, const char *name, size_t most);

#endif
