/* The environment cannot be changed once interpreters run in threads, so the rules that apply are
 * determined beforehand, from all libraries that an interpreter could import. */
#define _GNU_SOURCE
#include "cli/find/quirk_env.h"

#include <ftw.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/option.h"
#include "cli/args/quirks.h"
#include "cli/os/memory.h"
#include "cli/os/system.h"
#include "cli/output/message.h"

#define SEARCH_PATH_MAX ((size_t)1 << 20)
#define ASK_MS 30000
#define OPEN_FOLDERS 16

/* nftw(3) has no argument for its callback. */
static struct {
    const struct exti_quirks *quirks;
    bool *applies;  /* rule by rule */
    size_t unknown; /* rules with an environment that no file has matched yet */
} walk;

static json_t *environment_of(const struct exti_quirks *q, size_t i)
{
    struct exti_quirk_info info = {.size = sizeof info};
    json_t *rule = NULL, *environment = NULL;

    if (exti_quirks_info(q, i, &info) == 0 && info.disabled_by == NULL)
        rule = json_loads(info.rule, 0, NULL);
    environment = json_incref(json_object_get(rule, "environment"));
    json_decref(rule);
    return environment;
}

static bool is_named_library(const char *name)
{
    return strstr(name, ".so") != NULL || strstr(name, ".dylib") != NULL;
}

static int visit_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    struct exti_image *im = NULL;
    char *real;

    (void)st;
    if ((type != FTW_F && type != FTW_SL) || !is_named_library(path + at->base) ||
        (real = cli_full_path(path)) == NULL)
        return 0;
    if (cli_worked(exti_inspect(real, &im, NULL))) {
        const size_t count = exti_quirks_count(walk.quirks);

        for (size_t i = exti_quirks_next(walk.quirks, real, im, 0); i < count;
             i = exti_quirks_next(walk.quirks, real, im, i + 1)) {
            json_t *environment = walk.applies[i] ? NULL : environment_of(walk.quirks, i);

            walk.unknown -= environment != NULL;
            walk.applies[i] = true;
            json_decref(environment);
        }
    }
    exti_image_free(im);
    free(real);
    return walk.unknown == 0;
}

/* The sys.path of the interpreter as an array, NULL if it cannot be run. */
static json_t *ask_search_path(const char *python)
{
    static char code[] = "import json, sys; print(json.dumps([p for p in sys.path if p]))";
    static char dash_c[] = "-c";
    char *argv[] = {(char *)python, dash_c, code, NULL}, *out = cli_alloc(SEARCH_PATH_MAX);
    json_t *list = NULL;
    size_t n = 0;

    if (cli_run_program(argv, ASK_MS, out, SEARCH_PATH_MAX, &n))
        list = json_loadb(out, n, 0, NULL);
    free(out);
    return list;
}

/* Later rules win over earlier ones, variables that are set already over all rules. */
static int set_variables(void)
{
    int status = CLI_OK;

    for (size_t i = exti_quirks_count(walk.quirks); i-- > 0;) {
        json_t *environment = walk.applies[i] ? environment_of(walk.quirks, i) : NULL;
        const char *name;
        json_t *value;

        json_object_foreach(environment, name,
                            value) if (setenv(name, json_string_value(value), 0) != 0) status =
            cli_fail(NULL, "out of memory");
        json_decref(environment);
    }
    return status;
}

static int walk_search_path(const char *python)
{
    json_t *path = ask_search_path(python);
    const json_t *dir;
    size_t i;

    json_array_foreach(path, i, dir) if (walk.unknown > 0 && json_is_string(dir))
        nftw(json_string_value(dir), visit_file, OPEN_FOLDERS, FTW_PHYS);
    json_decref(path);
    return set_variables();
}

int cli_set_quirk_environment(const struct cli_values *files, const char *python)
{
    struct exti_error err;
    struct exti_quirks *q;
    int status = cli_open_quirks(files, &q, &err);

    if (status != CLI_OK)
        return status;
    walk.quirks = q;
    walk.unknown = 0;
    walk.applies = cli_zeroed(exti_quirks_count(q) + 1, sizeof *walk.applies);
    for (size_t i = 0; i < exti_quirks_count(q); i++) {
        json_t *environment = environment_of(q, i);

        walk.unknown += environment != NULL;
        json_decref(environment);
    }
    if (status == CLI_OK && walk.unknown > 0)
        status = walk_search_path(python);
    free(walk.applies);
    exti_quirks_free(q);
    return status;
}
