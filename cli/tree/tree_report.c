#include "cli/tree/tree_report.h"

#include <stdlib.h>
#include <string.h>

#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/output/json.h"
#include "cli/output/message.h"
#include "cli/output/text.h"
#include "cli/tree/tree.h"

#define NAMES_SHOWN 6

/* ---- libraries ------------------------------------------------------------------------------- */

static const char *const states[] = {[EXTI_LIBRARY_MISSING] = "missing",
                                     [EXTI_LIBRARY_SHARED] = "shared",
                                     [EXTI_LIBRARY_ISOLATED] = "isolated"};

static int add_library(void *user, const struct exti_library_info *l)
{
    json_array_append_new(user,
                          json_pack("{s:o, s:o, s:s, s:o, s:o, s:I}", "name",
                                    cli_json_text(l->name), "file", cli_json_text(l->file), "state",
                                    states[l->state], "why", cli_json_text(l->why), "user",
                                    cli_json_text(l->user), "users", (json_int_t)l->users));
    return 0;
}

static bool is_needed(const struct cli_tree_report *r, const struct cli_tree_result *t)
{
    json_t *file = cli_json_text(t->file->real), *l;
    bool found = false;
    size_t i;

    json_array_foreach(r->libraries, i, l)
    {
        found = found || json_equal(json_object_get(l, "file"), file);
    }
    json_decref(file);
    return found;
}

int cli_tree_report_libraries(struct cli_tree_report *r)
{
    const struct cli_tree_context *c = r->contexts, *end = c + r->context_count;
    struct exti_error err;

    while (c < end && c->ctx == NULL)
        c++;
    if (c == end)
        return CLI_OK;
    r->libraries = json_array();
    int rc = r->why ? exti_ctx_libraries(c->ctx, add_library, r->libraries, &err)
                    : exti_ctx_library_states(c->ctx, add_library, r->libraries, &err);
    for (size_t i = 0; i < r->result_count; i++)
        r->results[i].is_alone =
            r->results[i].file->kind == CLI_TREE_LIBRARY && !is_needed(r, &r->results[i]);
    return rc == 0 ? CLI_OK : cli_error(&err, c->dir);
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text != NULL ? text : "";
}

static bool has_copy(const struct cli_tree_report *r, const struct cli_tree_result *t)
{
    for (size_t k = 0; k < r->context_count; k++)
        if (t->copies[k] != NULL)
            return true;
    return false;
}

/* Whether a library that nothing needs, so that r->libraries lacks it, is in that state. */
static bool is_alone(const struct cli_tree_report *r, const struct cli_tree_result *t,
                     enum exti_library_state state)
{
    return t->is_alone && ((state == EXTI_LIBRARY_SHARED && t->shared != NULL) ||
                           (state == EXTI_LIBRARY_ISOLATED && has_copy(r, t)));
}

static size_t count_state(const struct cli_tree_report *r, enum exti_library_state state)
{
    size_t n = 0, i;
    json_t *l;

    for (i = 0; i < r->result_count; i++)
        n += is_alone(r, &r->results[i], state);

    json_array_foreach(r->libraries, i, l)
    {
        n += strcmp(text_of(l, "state"), states[state]) == 0;
    }
    return n;
}

/* ---- groups of names with the same reason -------------------------------------- */

/* {reason: [name, ...]} */
static void add_to_group(json_t *groups, const char *why, const char *name)
{
    const char *glob = strstr(why, " (");
    const size_t n = strlen(why);
    char *cut = cli_copy_text(why);

    /* Drops the glob of the base set that matched, as it says no more than the name. */
    if (glob != NULL && n > 0 && why[n - 1] == ')')
        cut[glob - why] = '\0';
    json_t *key = cli_json_text(cut);
    json_t *names = json_object_get(groups, json_string_value(key));

    if (names == NULL) {
        names = json_array();
        json_object_set_new(groups, json_string_value(key), names);
    }
    json_array_append_new(names, cli_json_text(name));
    json_decref(key);
    free(cut);
}

static void print_names(const json_t *names)
{
    size_t n = json_array_size(names);

    for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) {
        fputs(i > 0 ? ", " : "", stdout);
        cli_put(stdout, json_string_value(json_array_get(names, i)));
    }
    if (n > NAMES_SHOWN)
        printf(" and %zu more", n - NAMES_SHOWN);
    putchar('\n');
}

static void print_groups(const char *title, json_t *groups)
{
    const char *why;
    json_t *names;

    if (json_object_size(groups) > 0)
        printf("%s\n", title);
    json_object_foreach(groups, why, names)
    {
        fputs("  ", stdout);
        cli_put(stdout, why);
        fputs(": ", stdout);
        print_names(names);
    }
    json_decref(groups);
}

static void print_state(const struct cli_tree_report *r, enum exti_library_state state)
{
    char title[32];
    json_t *groups = json_object(), *l;
    size_t i;

    json_array_foreach(r->libraries, i, l)
    {
        if (strcmp(text_of(l, "state"), states[state]) == 0)
            add_to_group(groups, text_of(l, "why"), text_of(l, "name"));
    }
    for (i = 0; state == EXTI_LIBRARY_ISOLATED && i < r->result_count; i++)
        if (is_alone(r, &r->results[i], state))
            add_to_group(groups, "modules may open it at run time",
                         cli_base_name(r->results[i].file->path));
    snprintf(title, sizeof title, "%s libraries", states[state]);
    print_groups(title, groups);
}

static void print_missing(const struct cli_tree_report *r)
{
    json_t *l;
    size_t i;
    bool any = false;

    json_array_foreach(r->libraries, i, l)
    {
        if (strcmp(text_of(l, "state"), states[EXTI_LIBRARY_MISSING]) != 0)
            continue;
        if (!any)
            puts("missing libraries");
        any = true;
        fputs("  ", stdout);
        cli_put(stdout, text_of(l, "name"));
        fputs(", needed by ", stdout);
        cli_put(stdout, cli_base_name(text_of(l, "user")));
        fputs(": ", stdout);
        cli_put(stdout, text_of(l, "why"));
        putchar('\n');
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *skipped_why(const struct cli_tree_result *t)
{
    return t->skipped != NULL ? t->skipped : t->file->skipped;
}

static json_t *skipped_groups(const struct cli_tree_report *r, bool shared)
{
    json_t *groups = json_object();

    for (size_t i = 0; i < r->result_count; i++) {
        const struct cli_tree_result *t = &r->results[i];
        const char *why = !shared                               ? skipped_why(t)
                          : is_alone(r, t, EXTI_LIBRARY_SHARED) ? t->shared
                                                                : NULL;
        if (why != NULL)
            add_to_group(groups, why, cli_base_name(t->file->path));
    }
    return groups;
}

static size_t count_skipped(const struct cli_tree_report *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->result_count; i++)
        n += skipped_why(&r->results[i]) != NULL;
    return n;
}

size_t cli_tree_report_refused(const struct cli_tree_report *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->result_count; i++)
        n += r->results[i].error != NULL;
    return n;
}

static void print_table(const struct cli_tree_report *r)
{
    size_t made = 0, fresh = 0;

    for (size_t k = 0; k < r->context_count; k++) {
        made += r->contexts[k].made;
        fresh += r->contexts[k].fresh;
    }
    printf("contexts    %zu in ", r->context_count);
    cli_put(stdout, r->dir);
    printf("\ncopied      %zu\nup to date  %zu\n", made, fresh);
    if (r->libraries != NULL) {
        size_t missing = count_state(r, EXTI_LIBRARY_MISSING);
        printf("isolated    %zu libraries\nshared      %zu libraries\n",
               count_state(r, EXTI_LIBRARY_ISOLATED), count_state(r, EXTI_LIBRARY_SHARED));
        if (missing != 0)
            printf("missing     %zu libraries\n", missing);
    }
    printf("skipped     %zu\n", count_skipped(r));
    size_t refused = cli_tree_report_refused(r);
    printf("%srefused     %zu%s\n", refused != 0 ? cli_style(stdout, CLI_RED) : "", refused,
           refused != 0 ? cli_style(stdout, CLI_PLAIN) : "");
}

void cli_tree_report_print(const struct cli_tree_report *r)
{
    for (size_t i = 0; i < r->result_count; i++)
        if (r->results[i].error != NULL)
            cli_error(r->results[i].error, r->results[i].file->path);
    print_table(r);
    if (r->why) {
        print_state(r, EXTI_LIBRARY_ISOLATED);
        print_state(r, EXTI_LIBRARY_SHARED);
        print_missing(r);
        print_groups("libraries that nothing needs, shared", skipped_groups(r, true));
    }
    print_groups("skipped files", skipped_groups(r, false));
    if (!r->why && r->libraries != NULL)
        puts("--why lists which libraries are isolated or shared, and why");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *result_json(const struct cli_tree_report *r, const struct cli_tree_result *t)
{
    json_t *copies = json_array();

    for (size_t k = 0; k < r->context_count; k++)
        json_array_append_new(copies, cli_json_text(t->copies != NULL ? t->copies[k] : NULL));
    return json_pack("{s:o, s:o}", "source", cli_json_text(t->file->path), "copies", copies);
}

static void add_results(const struct cli_tree_report *r, json_t *o)
{
    json_t *files = json_array(), *skipped = json_array(), *shared = json_array(),
           *refused = json_array();

    for (size_t i = 0; i < r->result_count; i++) {
        const struct cli_tree_result *t = &r->results[i];
        if (t->error != NULL)
            json_array_append_new(refused, cli_json_error(t->error, t->file->path));
        else if (skipped_why(t) != NULL)
            json_array_append_new(skipped,
                                  json_pack("{s:o, s:o}", "file", cli_json_text(t->file->path),
                                            "why", cli_json_text(skipped_why(t))));
        else if (t->shared != NULL)
            json_array_append_new(shared,
                                  json_pack("{s:o, s:o}", "file", cli_json_text(t->file->path),
                                            "why", cli_json_text(t->shared)));
        else
            json_array_append_new(files, result_json(r, t));
    }
    json_object_set_new(o, "files", files);
    json_object_set_new(o, "shared", shared);
    json_object_set_new(o, "skipped", skipped);
    json_object_set_new(o, "refused", refused);
}

int cli_tree_report_json(const struct cli_tree_report *r, const char *libpython)
{
    json_t *contexts = json_array();

    for (size_t k = 0; k < r->context_count; k++) {
        const struct cli_tree_context *c = &r->contexts[k];
        json_array_append_new(
            contexts,
            json_pack("{s:o, s:o, s:I, s:I, s:o}", "dir",
                      cli_json_text(c->ctx != NULL ? exti_ctx_dir(c->ctx) : c->dir), "name",
                      cli_json_text(c->ctx != NULL ? exti_ctx_name(c->ctx) : NULL), "copied",
                      (json_int_t)c->made, "up_to_date", (json_int_t)c->fresh, "error",
                      c->err.code != 0 ? cli_json_error(&c->err, c->dir) : json_null()));
    }
    json_t *libraries = r->libraries != NULL ? json_incref(r->libraries) : json_array();
    json_t *o = json_pack("{s:o, s:o, s:o}", "contexts", contexts, "api_library",
                          cli_json_text(libpython), "libraries", libraries);
    add_results(r, o);
    return cli_json_print(o);
}
