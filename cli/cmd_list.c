#include "cli/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/option.h"
#include "cli/find/contexts.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/json.h"
#include "cli/output/message.h"
#include "cli/output/text.h"

static const char help[] =
    "usage: extisolate list [--json] CTXDIR...\n"
    "\n"
    "Lists the copies in a context directory, or in each context directory in CTXDIR.\n"
    "\n"
    "The state of a copy:\n"
    "  fresh    up to date\n"
    "  stale    its source has changed since; 'extisolate copy' replaces it\n"
    "  missing  it is gone, is a link or was changed; 'extisolate copy' makes it again\n"
    "  orphan   its source is gone\n"
    "  unknown  the system does not let us look at it or at its source; the exit status is 1\n"
    "\n"
    "SHARED is what a lean copy leaves to its source: code and constants, which extisolate maps\n"
    "from there; '-' stands for a full copy.\n"
    "\n"
    "options:\n"
    "  --json      print an array of objects, one for each context\n"
    "  -h, --help  show this\n"
    "\n"
    "examples:\n"
    "  extisolate list ctx\n"
    "  extisolate list --json ctx | jq -r '.[].copies[] | select(.state != \"fresh\") | .source'\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

struct list {
    json_t *contexts; /* NULL: for people */
    bool printed;
    int status; /* CLI_FAILED if something could not be looked at */
};

static const struct state {
    const char *name;
    enum cli_style style;
} states[] = {{"fresh", CLI_GREEN},
              {"stale", CLI_YELLOW},
              {"missing", CLI_RED},
              {"orphan", CLI_YELLOW},
              {"unknown", CLI_RED}};

static const struct state *state_of(const struct exti_copy_info *info)
{
    static const struct state unknown = {"unknown", CLI_RED};
    size_t i = (size_t)info->state;

    return i < sizeof states / sizeof *states ? &states[i] : &unknown;
}

struct row {
    struct exti_copy_info info;
    uint64_t size; /* the copy's own */
    bool has_size;
};

/* What is known of copy `i`; false if there is none of that number. */
static bool look_up(struct list *l, const struct exti_dir *d, size_t i, struct row *out)
{
    struct exti_copy_info *info = &out->info;
    struct cli_stat st;

    *out = (struct row){.info = {.size = sizeof out->info}};
    if (exti_dir_copy(d, i, info) != 0)
        return false;
    if ((out->has_size = cli_stat(info->copy, &st)))
        out->size = st.size;
    else if (info->state == EXTI_COPY_FRESH && errno == ENOENT)
        info->state = EXTI_COPY_MISSING; /* another process has removed it since */
    else if (info->state == EXTI_COPY_FRESH)
        l->status = cli_fail(info->copy, "cannot look up its size: %s", strerror(errno));
    if (info->state == EXTI_COPY_UNKNOWN)
        l->status =
            cli_fail(info->copy, "cannot be looked up, or its source cannot: %s", info->source);
    return true;
}

/* ---- for programs ---------------------------------------------------------------------------- */

static json_t *copy_json(const struct row *row)
{
    const struct exti_copy_info *info = &row->info;
    json_t *copy_size = row->has_size ? json_integer((json_int_t)row->size) : json_null();
    json_t *edits = info->edits != NULL ? json_loads(info->edits, 0, NULL) : NULL;

    return json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:b, s:o}", "state",
                     state_of(info)->name, "copy", cli_json_text(info->copy), "source",
                     cli_json_text(info->source), "copy_size", copy_size, "shared_size",
                     (json_int_t)info->shared_size, "source_size", (json_int_t)info->source_size,
                     "source_mtime_ns", (json_int_t)info->source_mtime_ns, "source_inode",
                     (json_int_t)info->source_inode, "build_id", cli_json_text(info->build_id),
                     "is_api", info->is_api, "edits", edits != NULL ? edits : json_null());
}

static json_t *context_json(struct list *l, const char *dir, const struct exti_dir *d)
{
    json_t *copies = json_array();

    for (size_t i = 0; i < exti_dir_count(d); i++) {
        struct row row;
        if (look_up(l, d, i, &row))
            json_array_append_new(copies, copy_json(&row));
    }
    return json_pack("{s:o, s:o, s:b, s:o}", "dir", cli_json_text(dir), "name",
                     cli_json_text(exti_dir_name(d)), "renamed", exti_dir_renamed(d), "copies",
                     copies);
}

/* ---- for people ------------------------------------------------------------------------------ */

/* The number of columns of the text if every character takes one. */
static size_t width(const char *safe)
{
    size_t n = 0;

    for (; *safe != '\0'; safe++)
        n += ((unsigned char)*safe & 0xc0) != 0x80;
    return n;
}

static void print_size(uint64_t size)
{
    if (size < 1000000)
        printf("%6.1f kB", (double)size / 1e3);
    else
        printf("%6.1f MB", (double)size / 1e6);
}

static void print_sizes(const struct row *row)
{
    if (row->has_size)
        print_size(row->size);
    else
        printf("%9s", "-");
    fputs("  ", stdout);
    if (row->info.shared_size != 0)
        print_size(row->info.shared_size);
    else
        printf("%9s", "-");
}

static void print_row(const struct row *row, size_t column)
{
    const struct exti_copy_info *info = &row->info;
    const struct state *state = state_of(info);
    char *name = cli_safe(cli_base_name(info->copy));

    printf("  %s%-7s%s  ", cli_style(stdout, state->style), state->name,
           cli_style(stdout, CLI_PLAIN));
    print_sizes(row);
    printf("  %s%*s  ", name, (int)(column - width(name)), "");
    cli_put(stdout, info->source);
    fputs(info->is_api ? "  (API library)\n" : "\n", stdout);
    free(name);
}

static void print_context(struct list *l, const char *dir, const struct exti_dir *d)
{
    size_t count = exti_dir_count(d), column = 4;

    for (size_t i = 0; i < count; i++) {
        struct exti_copy_info info = {.size = sizeof info};
        char *name = exti_dir_copy(d, i, &info) == 0 ? cli_safe(cli_base_name(info.copy)) : NULL;
        if (name != NULL && width(name) > column)
            column = width(name);
        free(name);
    }
    fputs(cli_style(stdout, CLI_BOLD), stdout);
    cli_put(stdout, dir);
    printf("%s: context %s, %zu cop%s%s\n", cli_style(stdout, CLI_PLAIN), exti_dir_name(d), count,
           count == 1 ? "y" : "ies", exti_dir_renamed(d) ? ", API symbols renamed" : "");
    printf("  %s%-7s  %9s  %9s  %-*s  %s%s\n", cli_style(stdout, CLI_DIM), "STATE", "SIZE",
           "SHARED", (int)column, "COPY", "SOURCE", cli_style(stdout, CLI_PLAIN));
    for (size_t i = 0; i < count; i++) {
        struct row row;
        if (look_up(l, d, i, &row))
            print_row(&row, column);
    }
}

static int list_one(void *user, const char *dir)
{
    struct list *l = user;
    struct exti_error err;
    struct exti_dir *d = NULL;

    if (exti_dir_read(dir, &d, &err) != 0)
        return cli_error(&err, dir);
    cli_warn_untrusted(dir);
    if (l->contexts != NULL) {
        json_array_append_new(l->contexts, context_json(l, dir, d));
    } else {
        if (l->printed)
            putchar('\n');
        print_context(l, dir, d);
        l->printed = true;
    }
    exti_dir_free(d);
    return l->status;
}

static int cmd_list(int argc, char **argv)
{
    struct list l = {NULL, false, CLI_OK};
    bool json = false;
    const struct cli_option options[] = {{.name = "json", .flag = &json}, {0}};
    int status = cli_parse("list", argc, argv, options, help);

    if (status != CLI_OK)
        return status;
    if (optind == argc)
        return cli_usage("list", "missing CTXDIR");
    if (json)
        l.contexts = json_array();
    for (int i = optind; i < argc; i++) {
        int one = cli_each_context(argv[i], list_one, &l);
        if (one > status)
            status = one;
    }
    if (json && cli_json_print(l.contexts) != CLI_OK)
        status = CLI_FAILED;
    return status;
}

const struct cli_command cli_command_list = {"list", "list the copies in a context directory",
                                             cmd_list};
