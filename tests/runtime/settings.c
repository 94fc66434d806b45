/* Runs one program in several contexts at once, each with options of its own.
 *
 *   settings PYTHON CODE [KIND:NAME=VALUE]... [-- [KIND:NAME=VALUE]...]...
 *
 * KIND is int, text or list; `:` parts the items of a list.  `arg:=VALUE` is an argument of the
 * program.  Each `--` begins another context.  It prints "context N status S", or "context N:
 * MESSAGE" for one that did not start. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/process.h"
#include "runtime/python.h"
#include "runtime/scratch.h"

#define CONTEXTS_MAX 4
#define SETTINGS_MAX 16
#define ITEMS_MAX 32

static struct options {
    struct pyrt_setting settings[SETTINGS_MAX];
    const char *items[SETTINGS_MAX][ITEMS_MAX];
    size_t count;
    struct pyrt_program program;
    char *argv[ITEMS_MAX];
    char dir[PATH_MAX];
} options[CONTEXTS_MAX];

static void add_items(struct options *o, struct pyrt_setting *s, char *value)
{
    s->kind = PYRT_SET_LIST;
    s->list = o->items[o->count];
    for (char *item = strtok(value, ":"); item && s->count < ITEMS_MAX; item = strtok(NULL, ":"))
        o->items[o->count][s->count++] = item;
}

static int add_setting(struct options *o, char *arg)
{
    struct pyrt_setting *s = &o->settings[o->count];
    char *name = strchr(arg, ':'), *value = strchr(arg, '=');

    if (!name || !value || value < name || o->count == SETTINGS_MAX)
        return -1;
    *name++ = *value++ = '\0';
    if (strcmp(arg, "arg") == 0) {
        o->argv[o->program.argc++] = value;
        return o->program.argc < ITEMS_MAX ? 0 : -1;
    }
    s->name = name;
    if (strcmp(arg, "int") == 0) {
        s->number = atol(value);
    } else if (strcmp(arg, "text") == 0) {
        s->kind = PYRT_SET_TEXT;
        s->text = value;
    } else {
        add_items(o, s, value);
    }
    o->count++;
    return 0;
}

/* Returns how many contexts there are to be, 0 for wrong usage. */
static int parse(int argc, char **argv)
{
    int n = 0;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            if (++n == CONTEXTS_MAX)
                return 0;
        } else if (add_setting(&options[n], argv[i]) != 0) {
            return 0;
        }
    }
    return n + 1;
}

static int start_all(struct pyrt_context **contexts, int n, const struct pyrt_install *python,
                     const char *code, const char *base)
{
    struct exti_error err;

    for (int i = 0; i < n; i++) {
        struct pyrt_opts o = {.python = python,
                              .program = &options[i].program,
                              .dir = options[i].dir,
                              .index = i,
                              .count = n,
                              .settings = options[i].settings,
                              .setting_count = options[i].count};
        options[i].program.kind = PYRT_CODE;
        options[i].program.what = code;
        options[i].program.argv = options[i].argv;
        snprintf(options[i].dir, sizeof options[i].dir, "%s/%d", base, i);
        if (pyrt_start(&contexts[i], &o, &err) != 0) {
            fprintf(stderr, "settings: %s\n", err.message);
            return -1;
        }
    }
    return 0;
}

static int join_all(struct pyrt_context **contexts, int n)
{
    struct pyrt_result result;
    int worst = 0;

    for (int i = 0; i < n; i++) {
        pyrt_join(contexts[i], &result);
        if (result.started)
            printf("context %d status %d\n", i, result.status);
        else
            printf("context %d: %s\n", i, result.error.message);
        worst |= result.status;
    }
    for (int i = 0; i < n; i++)
        worst |= pyrt_close(contexts[i], NULL, NULL) != 0;
    return worst;
}

int main(int argc, char **argv)
{
    struct pyrt_context *contexts[CONTEXTS_MAX];
    struct pyrt_scratch *scratch;
    struct pyrt_install python;
    struct exti_error err = {0};
    int n = argc < 3 ? 0 : parse(argc - 3, argv + 3), rc;

    if (n == 0 || pyrt_install_find(&python, argv[1], &err) != 0 ||
        pyrt_scratch_new(&scratch, &err) != 0) {
        fprintf(stderr, "settings: wrong usage, or %s\n", err.message);
        return 2;
    }
    pyrt_process_setup(n);
    rc = start_all(contexts, n, &python, argv[2], pyrt_scratch_path(scratch));
    if (rc == 0)
        rc = join_all(contexts, n);
    pyrt_scratch_free(scratch);
    pyrt_install_free(&python);
    return rc ? 1 : 0;
}
