/* What copy-tree did, and how it is reported. */
#ifndef CLI_TREE_TREE_REPORT_H
#define CLI_TREE_TREE_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include <extisolate.h>

#include "cli/tree/tree.h"

/* What came of one file in all contexts. */
struct cli_tree_result {
    struct cli_tree_file *file;
    const char **copies;      /* owned; by context, the contexts' strings; NULL: none */
    struct exti_error *error; /* owned; the first context's reason to refuse it, or NULL */
    char *skipped;            /* owned; why it is not for these contexts, or NULL */
    char *shared;             /* owned; why it has no copy, or NULL */
    bool is_alone;            /* a library that no module needs, so not among report.libraries */
};

struct cli_tree_context {
    char *dir; /* owned */
    struct exti_ctx *ctx;
    size_t made, fresh;
    struct exti_error err; /* of the context as a whole; code 0: none */
};

struct cli_tree_report {
    const char *dir; /* that contains the contexts */
    struct cli_tree_result *results;
    size_t result_count;
    struct cli_tree_context *contexts;
    size_t context_count;
    json_t *libraries; /* of the first context that could be opened; NULL: none could */
    bool why;          /* libraries have their reasons, which takes a look at each */
};

/* Fills r->libraries.  CLI_OK, or CLI_FAILED with a message. */
int cli_tree_report_libraries(struct cli_tree_report *r);
/* Prints refused files on stderr, all else on stdout. */
void cli_tree_report_print(const struct cli_tree_report *r);
/* CLI_OK, or CLI_FAILED with a message. */
int cli_tree_report_json(const struct cli_tree_report *r, const char *libpython);
size_t cli_tree_report_refused(const struct cli_tree_report *r);

#endif
