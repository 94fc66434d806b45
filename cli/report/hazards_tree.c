/* Collects the hazards of all libraries in a folder. */
#include "cli/os/memory.h"
#include "cli/report/hazards.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/find/format.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/message.h"

#define DEPTH_MAX 64

struct tree {
    struct cli_hazards *hazards;
    const char *dir; /* being read */
    char **names;    /* in it */
    size_t count;
    int status;
};

static bool add_entry_path(void *user, const char *name, enum cli_type type)
{
    (void)type;
    struct tree *t = user;
    t->names = cli_resize(t->names, (t->count + 1) * sizeof *t->names);
    t->names[t->count++] = cli_join(t->dir, name);
    return true;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_file_hazards(struct cli_hazards *h, const char *path, size_t *count)
{
    struct exti_error err;
    struct exti_image *im = NULL;
    int rc;

    /* Most of the files in a folder are not libraries. */
    if (cli_magic_of(path) < CLI_MAGIC_ELF)
        return CLI_OK;
    rc = exti_inspect(path, &im, &err);
    /* Object files, programs and the like. */
    if (rc == EXTI_E_UNSUPPORTED)
        return CLI_OK;
    if (rc != 0)
        return cli_error(&err, path);
    ++*count;
    cli_hazards_add(h, path, im);
    exti_image_free(im);
    return CLI_OK;
}

static int add_folder_hazards(struct cli_hazards *h, const char *dir, size_t *count, int depth)
{
    struct tree t = {h, dir, NULL, 0, CLI_OK};

    if (!cli_each_name(dir, add_entry_path, &t))
        t.status = cli_fail(dir, "cannot read the directory");
    if (t.count > 0)
        qsort(t.names, t.count, sizeof *t.names, compare_paths);
    for (size_t i = 0; i < t.count; i++) {
        struct cli_stat st;
        int one = CLI_OK;

        if (cli_is_link(t.names[i]) || !cli_stat(t.names[i], &st))
            ;
        else if (!st.is_dir)
            one = add_file_hazards(h, t.names[i], count);
        else if (depth < DEPTH_MAX)
            one = add_folder_hazards(h, t.names[i], count, depth + 1);
        if (one != CLI_OK)
            t.status = one;
        free(t.names[i]);
    }
    free(t.names);
    return t.status;
}

int cli_hazards_add_tree(struct cli_hazards *h, const char *dir, size_t *count)
{
    *count = 0;
    return add_folder_hazards(h, dir, count, 0);
}
