#include "cli/tree/tree_python.h"

#include <stdlib.h>

#include "cli/find/abi.h"
#include "cli/find/find_libpython.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/message.h"
#include "cli/tree/tree.h"

#define PARENTS 4 /* DIR/lib/python3.11/site-packages/package is four folders down */

/* The interpreter in `dir`, or that of the virtual environment which `dir` is a folder of.  The
 * caller frees it; NULL if there is none. */
static char *find_interpreter(const char *dir)
{
    static const char *const names[] = {"bin/python3", "bin/python", "Scripts/python.exe",
                                        "python.exe"};
    char *at = cli_full_path(dir), *found = NULL;

    for (int up = 0; at != NULL && found == NULL && up <= PARENTS; up++) {
        char *config = cli_join(at, "pyvenv.cfg"), *parent;
        bool is_here = up == 0 || (config != NULL && cli_exists(config));
        for (size_t i = 0; is_here && found == NULL && i < sizeof names / sizeof *names; i++) {
            found = cli_join(at, names[i]);
            struct cli_stat st;
            if (found != NULL && (!cli_stat(found, &st) || st.is_dir)) {
                free(found);
                found = NULL;
            }
        }
        free(config);
        parent = cli_folder_of(at);
        free(at);
        at = parent;
    }
    free(at);
    return found;
}

/* Chooses up to two files that state which Python is meant: one built for the version that most
 * files are built for, and one that states no version.  Returns their number. */
static size_t choose_representatives(const struct cli_tree *t, char **out)
{
    size_t best = 0, most = 0, any = t->count, n = 0;

    for (size_t i = 0; i < t->count; i++) {
        const struct cli_tree_file *f = &t->files[i];
        size_t same = 0;
        if (f->skipped != NULL || f->kind != CLI_TREE_EXTENSION)
            continue;
        if (f->abi.major == 0) {
            any = any == t->count || (f->abi3 && !t->files[any].abi3) ? i : any;
            continue;
        }
        /* Counted already. */
        if (most > 0 && cli_abi_equal(&f->abi, &t->files[best].abi))
            continue;
        for (size_t k = i; k < t->count; k++)
            same += cli_abi_equal(&f->abi, &t->files[k].abi);
        if (same > most) {
            most = same;
            best = i;
        }
    }
    if (most > 0)
        out[n++] = t->files[best].path;
    if (any < t->count)
        out[n++] = t->files[any].path;
    return n;
}

int cli_tree_libpython(const struct cli_tree *t, const char *dir, char **out)
{
    char *files[2];
    size_t n = choose_representatives(t, files);

    if (n == 0)
        return cli_fail(dir, "has no extension module that tells which libpython to copy; name it "
                             "with --libpython PATH");
    char *python = find_interpreter(dir);
    int status = cli_find_libpython(files, n, python, out);
    free(python);
    return status;
}
