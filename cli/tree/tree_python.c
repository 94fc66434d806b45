#include "cli/tree/tree_python.h"

#include <stdlib.h>

#include "cli/find/abi.h"
#include "cli/find/find_libpython.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/message.h"
#include "cli/tree/tree.h"

#define PARENTS 4 /* DIR/lib/python3.11/site-packages/package is four folders down */

/* The interpreter among the files of `dir`, or NULL.  A link to one that is gone counts if there is
 * no other: it says which Python is meant. */
static char *interpreter_in(const char *dir)
{
    static const char *const names[] = {"bin/python3", "bin/python", "Scripts/python.exe",
                                        "python.exe"};
    char *gone = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = cli_join(dir, names[i]);
        struct cli_stat st;
        bool is_there = path != NULL && cli_stat(path, &st);
        if (is_there && !st.is_dir) {
            free(gone);
            return path;
        }
        if (!is_there && path != NULL && gone == NULL && cli_exists(path))
            gone = path;
        else
            free(path);
    }
    return gone;
}

/* The interpreter in `dir`, or that of the virtual environment which `dir` is a folder of.  The
 * caller frees it; NULL if there is none. */
static char *find_interpreter(const char *dir)
{
    char *at = cli_full_path(dir), *found = NULL;

    for (int up = 0; at != NULL && found == NULL && up <= PARENTS; up++) {
        char *config = cli_join(at, "pyvenv.cfg"), *parent;
        if (up == 0 || (config != NULL && cli_exists(config)))
            found = interpreter_in(at);
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

/* Adds the files to the search. */
static int add_files(struct cli_libpython_search *s, char *const *files, size_t n)
{
    struct exti_error err;
    struct exti_image *im;

    for (size_t i = 0; i < n; i++) {
        if (exti_inspect(files[i], &im, &err) != 0)
            return cli_error(&err, files[i]);
        cli_libpython_for(s, files[i], im);
    }
    return CLI_OK;
}

int cli_tree_libpython(const struct cli_tree *t, const char *dir, char **out, struct cli_abi *abi)
{
    char *files[2];
    size_t n = choose_representatives(t, files);

    if (n == 0)
        return cli_fail(dir, "has no extension module that tells which libpython to copy; name it "
                             "with --libpython PATH");
    char *python = find_interpreter(dir);
    struct cli_libpython_search *s = cli_libpython_search();
    int status = add_files(s, files, n);
    if (status == CLI_OK)
        status = cli_libpython_find(s, python, out, abi);
    cli_libpython_search_free(s);
    free(python);
    return status;
}
