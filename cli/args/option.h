/* This room parses what several commands have in common: options with this program's messages, the
 * choice of shared libraries, rule files.  Commands call it; it uses output/. */
#ifndef CLI_ARGS_OPTION_H
#define CLI_ARGS_OPTION_H

#include <getopt.h> /* optind */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values of an option that may be given several times. */
struct cli_values {
    const char **items; /* the array is owned, the strings are the command line's */
    size_t count;
};

/* One option of a command.  The first of the pointers that is set says what becomes of it. */
struct cli_option {
    const char *name; /* without "--"; may be NULL if there is a letter */
    char letter;      /* without "-"; 0: none */
    bool last;        /* what follows it, or else the first argument, is no option */

    bool *flag;                /* set */
    uint32_t *bits, bit;       /* set in *bits */
    const char **text;         /* its value */
    const char **file;         /* its value, which must not be empty */
    int *count;                /* its value, from 1 to CLI_CONTEXTS_MAX */
    struct cli_values *values; /* its value, which must not be empty, is added */
    /* Takes its value: CLI_OK, or the exit code after printing an error. */
    int (*take)(void *to, const char *command, const char *value);
    void *to;
};

#define CLI_HELPED (-1) /* an exit code: help was printed, which is all that was asked for */

/* Reads the options, to the end of the table: {0}.  The arguments begin at argv[optind], and must
 * not be empty unless options may be `last`.  CLI_OK; CLI_HELPED after --help; or the exit code
 * after printing an error. */
int cli_parse(const char *command, int argc, char **argv, const struct cli_option *options,
              const char *help);

/* Guesses which of the NULL-ended `names` was meant by a misspelled `word`; NULL if none is
 * close. */
const char *cli_nearest(const char *word, const char *const *names);

#define CLI_CONTEXTS_MAX 10000

/* Checks the value of --name, at most `most` characters.  CLI_OK, or a usage error. */
int cli_check_name(const char *command, const char *name, size_t most);

#endif
