/* Context directories, as `copy` and `copy-tree` make them. */
#ifndef CLI_FIND_CONTEXTS_H
#define CLI_FIND_CONTEXTS_H

#include <stdbool.h>

#include <extisolate.h>

#define CLI_MANIFEST "manifest.json" /* in each context directory */

/* Whether `dir` has a manifest. */
bool cli_is_context(const char *dir);

/* Whether `copy`, in the folder `dir`, is a copy that leaves code and constants to its original. */
bool cli_is_lean(const char *copy, const char *dir);

/* Prints a warning if others can change the context directory, which the commands that load and
 * copy refuse. */
void cli_warn_untrusted(const char *dir);

/* Calls `each` with `dir` if it is a context directory, else with every context directory in it, in
 * natural order (2 before 10).  Returns the highest exit code, or CLI_FAILED with a message if
 * there is no context directory. */
int cli_each_context(const char *dir, int (*each)(void *user, const char *dir), void *user);

/* Finds the API library's copy; 0 or a code of the library's.  The caller frees *d with
 * exti_dir_free in any case; the strings in *out live as long. */
int cli_context_api(const char *dir, struct exti_dir **d, struct exti_copy_info *out,
                    struct exti_error *err);

#endif
