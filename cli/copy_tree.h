/* What copy-tree has done, for cmd_copy_tree.c to fill and tree_report.c to tell. */
#ifndef CLI_COPY_TREE_H
#define CLI_COPY_TREE_H

#include "cli/cli.h"

/* One file that is to be copied, in all contexts. */
struct tree_result {
    struct cli_tree_file *file;
    const char **copies;      /* by context, into those; NULL: none */
    struct exti_error *error; /* owned; why it was refused, in the first context that did so */
    char *skipped;            /* owned; why it is none for these contexts */
    char *shared;             /* owned; why it has no copy */
    bool is_alone;            /* a library, but none of the report's: nothing needs it */
};

struct tree_context {
    char *dir; /* owned */
    struct exti_ctx *ctx;
    size_t made, fresh;
    struct exti_error err; /* of all of it; code 0: none */
};

struct tree_report {
    const char *dir; /* the contexts' */
    const struct cli_tree *tree;
    struct tree_result *results;
    size_t result_count;
    struct tree_context *contexts;
    size_t context_count;
    json_t *libraries; /* of the first context that could be opened; NULL: none could */
    bool why;          /* has the reasons */
};

/* Fills r->libraries, with the reasons if r->why.  CLI_OK, or CLI_FAILED with a message. */
int tree_report_libraries(struct tree_report *r);
/* On stderr what was refused, on stdout the rest. */
void tree_report_print(const struct tree_report *r);
int tree_report_json(const struct tree_report *r, const char *libpython);
size_t tree_report_refused(const struct tree_report *r);

#endif
