/* The libpython that the extension modules of a folder need. */
#ifndef CLI_TREE_TREE_PYTHON_H
#define CLI_TREE_TREE_PYTHON_H

#include "cli/tree/tree.h"

/* Asks the Python in `dir`, the tree's folder, or in the virtual environment around it; without
 * one, searches as cli_libpython_find does.  The caller frees *out.  CLI_OK, or CLI_FAILED with a
 * message. */
int cli_tree_libpython(const struct cli_tree *t, const char *dir, char **out, struct cli_abi *abi);

#endif
