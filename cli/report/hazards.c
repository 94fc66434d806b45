#include "cli/report/hazards.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/os/memory.h"
#include "cli/output/json.h"
#include "cli/output/label.h"
#include "cli/output/text.h"

/* One kind of hazard. */
struct row {
    struct exti_hazard_info
        info;      /* of many files, `count` is the sum and `most` holds for all together */
    json_t *files; /* of many files: names in the order they were added */
    uint64_t room; /* of many files: bytes of static TLS on the machine with the least */
};

struct cli_hazards {
    struct row *rows; /* by kind */
    size_t count;
};

/* ---- one kind of hazard ---------------------------------------------------------------- */

static const struct {
    const char *key, *text;
    enum cli_style style;
} outcomes[] = {
    [EXTI_OUTCOME_COPY] = {"cured-in-copies", "cured in copies", CLI_GREEN},
    [EXTI_OUTCOME_LOAD] = {"cured-when-loaded", "cured as copies are loaded", CLI_GREEN},
    [EXTI_OUTCOME_LIMIT] = {"limits-contexts", "limits the number of contexts", CLI_YELLOW},
    [EXTI_OUTCOME_SHARED] = {"shared", "shared by all contexts", CLI_YELLOW},
    [EXTI_OUTCOME_UNLOAD] = {"matters-on-unload", "matters when a copy is unloaded", CLI_YELLOW},
};

static bool is_static_tls(const struct exti_hazard_info *h)
{
    return h->kind == EXTI_HAZARD_STATIC_TLS;
}

/* Whether there is too little room for the contexts, and a setting can make more. */
static bool wants_room(const struct exti_hazard_info *h, int contexts)
{
    return is_static_tls(h) && h->most > 0 && (uint64_t)contexts > h->most;
}

/* Bytes of static TLS that let so many contexts load it. */
static uint64_t room_for(const struct exti_hazard_info *h, int contexts)
{
    return h->count > UINT64_MAX / (uint64_t)contexts ? UINT64_MAX : h->count * (uint64_t)contexts;
}

static void print_outcome(const struct exti_hazard_info *h)
{
    printf("%s%s%s: %s", cli_style(stdout, outcomes[h->outcome].style), h->name,
           cli_style(stdout, CLI_PLAIN), outcomes[h->outcome].text);
    if (h->most != EXTI_NO_LIMIT)
        printf(", to %" PRIu64, h->most);
}

/* Prints the amount, in the unit of its kind. */
static void print_count(const struct exti_hazard_info *h)
{
    if (is_static_tls(h))
        printf("%" PRIu64 " bytes", h->count);
    else
        printf("%" PRIu64, h->count);
}

static void print_advice(const struct exti_hazard_info *h, int contexts, const char *indent)
{
    printf("%s%s%s%s\n", indent, cli_style(stdout, CLI_DIM), h->advice,
           cli_style(stdout, CLI_PLAIN));
    if (wants_room(h, contexts))
        printf("%sfor %d contexts: GLIBC_TUNABLES=glibc.rtld.optional_static_tls=%" PRIu64 "\n",
               indent, contexts, room_for(h, contexts));
}

static json_t *info_json(const struct exti_hazard_info *h, int contexts)
{
    json_t *o =
        json_pack("{s:s, s:s, s:I, s:s}", "kind", h->name, "outcome", outcomes[h->outcome].key,
                  "count", (json_int_t)h->count, "advice", h->advice);

    if (h->most != EXTI_NO_LIMIT)
        json_object_set_new(o, "contexts", json_integer((json_int_t)h->most));
    if (wants_room(h, contexts)) {
        char text[80];

        snprintf(text, sizeof text, "glibc.rtld.optional_static_tls=%" PRIu64,
                 room_for(h, contexts));
        json_object_set_new(o, "tunables", json_string(text));
    }
    return o;
}

/* ---- one file -------------------------------------------------------------------------------- */

void cli_hazards_print(const struct exti_image *im, int contexts)
{
    struct exti_hazard_info h = {.size = sizeof h};
    size_t i;

    for (i = 0; exti_image_hazard(im, i, &h) == 0; i++) {
        cli_label(i == 0 ? "hazards" : "");
        print_outcome(&h);
        fputs(" (", stdout);
        if (is_static_tls(&h) || h.kind == EXTI_HAZARD_UNIQUE || h.kind == EXTI_HAZARD_HOST_API) {
            print_count(&h);
            fputs(", ", stdout);
        }
        cli_put(stdout, h.evidence);
        fputs(")\n", stdout);
        print_advice(&h, contexts, "              ");
    }
    if (i == 0)
        cli_line("hazards", NULL, "none");
}

json_t *cli_hazards_json(const struct exti_image *im, int contexts)
{
    struct exti_hazard_info h = {.size = sizeof h};
    json_t *all = json_array();

    for (size_t i = 0; exti_image_hazard(im, i, &h) == 0; i++) {
        json_t *one = info_json(&h, contexts);

        json_object_set_new(one, "evidence", cli_json_text(h.evidence));
        json_array_append_new(all, one);
    }
    return all;
}

/* ---- many ------------------------------------------------------------------------------------ */

struct cli_hazards *cli_hazards_new(void)
{
    return cli_zeroed(1, sizeof(struct cli_hazards));
}

void cli_hazards_free(struct cli_hazards *h)
{
    if (h == NULL)
        return;
    for (size_t i = 0; i < h->count; i++)
        json_decref(h->rows[i].files);
    free(h->rows);
    free(h);
}

/* The row of that kind, inserted in order if new. */
static struct row *row_of(struct cli_hazards *h, const struct exti_hazard_info *info)
{
    size_t at = 0;

    while (at < h->count && h->rows[at].info.kind < info->kind)
        at++;
    if (at < h->count && h->rows[at].info.kind == info->kind)
        return &h->rows[at];
    struct row *rows = cli_resize(h->rows, (h->count + 1) * sizeof *rows);
    h->rows = rows;
    memmove(&rows[at + 1], &rows[at], (h->count - at) * sizeof *rows);
    h->count++;
    rows[at] = (struct row){*info, json_array(), EXTI_STATIC_TLS_ROOM};
    rows[at].info.count = 0;
    return &rows[at];
}

/* On all machines but these, compilers use TLS descriptors by default. */
static uint64_t room_on(const char *machine)
{
    const bool x86 = strcmp(machine, "x86-64") == 0 || strcmp(machine, "i386") == 0;

    return x86 ? EXTI_STATIC_TLS_ROOM : EXTI_STATIC_TLS_ROOM - 512;
}

/* A file that can never be loaded does not count against the others. */
static uint64_t most_of(const struct row *all, const struct exti_hazard_info *one)
{
    if (!is_static_tls(&all->info) || one->most == 0)
        return all->info.most;
    return all->room / all->info.count;
}

static void add_info(struct cli_hazards *h, const char *file, const struct exti_hazard_info *info,
                     uint64_t room)
{
    struct row *r = row_of(h, info);

    if (r == NULL)
        return;
    json_array_append_new(r->files, cli_json_text(file));
    r->info.count =
        r->info.count > UINT64_MAX - info->count ? UINT64_MAX : r->info.count + info->count;
    r->room = room < r->room ? room : r->room;
    r->info.most = most_of(r, info);
}

void cli_hazards_add(struct cli_hazards *h, const char *file, const struct exti_image *im)
{
    struct exti_hazard_info info = {.size = sizeof info};
    struct exti_image_info image = {.size = sizeof image};

    exti_image_info(im, &image);
    for (size_t i = 0; exti_image_hazard(im, i, &info) == 0; i++)
        add_info(h, file, &info, room_on(image.machine));
}

static void print_file_count(const struct row *r)
{
    size_t n = json_array_size(r->files);

    printf("%zu file%s", n, n == 1 ? "" : "s");
    if (is_static_tls(&r->info)) {
        fputs(", ", stdout);
        print_count(&r->info);
    }
}

#define FILES_PRINTED 5

void cli_hazards_print_all(const struct cli_hazards *h, int contexts)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct row *r = &h->rows[i];
        size_t n = json_array_size(r->files);

        cli_label(i == 0 ? "hazards" : "");
        print_outcome(&r->info);
        fputs(" (", stdout);
        print_file_count(r);
        fputs(")\n", stdout);
        print_advice(&r->info, contexts, "              ");
        for (size_t k = 0; k < n && k < FILES_PRINTED; k++) {
            fputs("              ", stdout);
            cli_put(stdout, json_string_value(json_array_get(r->files, k)));
            putchar('\n');
        }
        if (n > FILES_PRINTED)
            printf("              and %zu more; --json lists all\n", n - FILES_PRINTED);
    }
    if (h->count == 0)
        cli_line("hazards", NULL, "none");
}

static json_t *row_json(const struct row *r, int contexts)
{
    json_t *one = info_json(&r->info, contexts);

    json_object_set(one, "files", r->files);
    return one;
}

json_t *cli_hazards_all_json(const struct cli_hazards *h, int contexts)
{
    json_t *all = json_array();

    for (size_t i = 0; i < h->count; i++)
        json_array_append_new(all, row_json(&h->rows[i], contexts));
    return all;
}

void cli_hazards_note(const struct cli_hazards *h, const char *dir, json_t *notes)
{
    for (size_t i = 0; i < h->count; i++) {
        const struct row *r = &h->rows[i];

        if (r->info.outcome != EXTI_OUTCOME_LIMIT && r->info.outcome != EXTI_OUTCOME_UNLOAD)
            continue;
        if (notes != NULL) {
            json_t *one = row_json(r, 0);

            json_object_set_new(one, "file", cli_json_text(dir));
            json_array_append_new(notes, one);
            continue;
        }
        cli_put(stdout, dir);
        printf(": %snote%s: ", cli_style(stdout, CLI_YELLOW), cli_style(stdout, CLI_PLAIN));
        print_outcome(&r->info);
        fputs(" (", stdout);
        print_file_count(r);
        printf("): %s\n", r->info.advice);
    }
}
