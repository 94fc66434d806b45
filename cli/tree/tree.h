/* This room is copy-tree: it finds the libraries of a folder (tree.c), the libpython they need
 * (tree_python.c), copies them into several contexts at once (tree_copy.c) and reports
 * (tree_report.c).  Only cmd_copy_tree.c uses it. */
#ifndef CLI_TREE_TREE_H
#define CLI_TREE_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include <extisolate.h>

#include "cli/find/abi.h"
#include "cli/output/progress.h"

enum cli_tree_kind {
    CLI_TREE_EXTENSION, /* a Python extension module */
    CLI_TREE_LIBRARY    /* a library that modules may need, or open at run time */
};
struct cli_tree_file {
    char *path; /* owned */
    char *real; /* owned; without symbolic links */
    enum cli_tree_kind kind;
    bool abi3; /* works with any Python 3 */
    struct cli_abi abi;
    char *skipped;            /* owned; why it is not copied, or NULL */
    struct exti_error *error; /* owned; why it is not known what it is, or NULL */
};
struct cli_tree {
    struct cli_tree_file *files; /* owned; extensions before libraries, each by path */
    size_t count;
    size_t unread; /* what could not be looked at; a message was printed for each */
};

/* Finds the files in `dir` and below it that are named like libraries.  Each file appears once,
 * however many links lead to it.  Skips context directories and the folder `except`, which may be
 * NULL.  CLI_OK, or CLI_FAILED with a message; free the tree in any case. */
int cli_tree_find(struct cli_tree *t, const char *dir, const char *except,
                  struct cli_progress *bar);
void cli_tree_free(struct cli_tree *t);

#endif
