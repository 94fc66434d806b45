/* Copies the files of a tree into several contexts at once. */
#ifndef CLI_TREE_TREE_COPY_H
#define CLI_TREE_TREE_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "cli/args/choice.h"
#include "cli/tree/tree_report.h"

/* Everything here belongs to the caller. */
struct cli_tree_job {
    struct cli_tree_report *report; /* names the contexts; takes what came of each file */
    const char *name; /* contexts become NAME-0, NAME-1...; NULL: the library's choice */
    const char *libpython;
    const struct cli_choice *choice;
    uint32_t flags; /* EXTI_CTX_* */
    size_t threads;

    const char **paths; /* modules, then libraries */
    size_t *results;    /* the index of each in report->results */
    size_t count, libraries;
};

#define CLI_TREE_NAME_MAX 24 /* characters of cli_tree_job.name */

/* Copies all files into all contexts, which stay open in the report.  Errors are in the report. */
void cli_tree_copy(const struct cli_tree_job *job);

#endif
