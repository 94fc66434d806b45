#include "cli/report/macho_shared.h"

#include <string.h>

#include "cli/find/format.h"
#include "cli/os/memory.h"
#include "cli/output/json.h"
#include "cli/output/text.h"

/* Slices have most names in common, so names already added are skipped; `seen` has them as keys. */
static void add_once(json_t *names, json_t *seen, const char *name)
{
    json_t *text = cli_json_text(name);
    const char *key = json_string_value(text);

    if (json_object_get(seen, key) == NULL) {
        json_object_set_new(seen, key, json_true());
        json_array_append(names, text);
    }
    json_decref(text);
}

static void add_flat(struct cli_shared *s, json_t *seen, const struct exti_image *im)
{
    struct exti_symbol_info symbol = {.size = sizeof symbol};

    for (size_t i = 0; exti_image_symbol(im, i, &symbol) == 0; i++)
        if (!(symbol.flags & EXTI_SYM_EXPORT) && symbol.library == EXTI_BIND_FLAT)
            add_once(s->flat, seen, symbol.name);
}

/* A rewritten slice needs the API copy, so its libraries differ from those of the original. */
static bool same_needed(const struct exti_image *a, const struct exti_image *b)
{
    const char *x, *y;

    for (size_t i = 0;; i++) {
        x = exti_image_needed(a, i);
        y = exti_image_needed(b, i);
        if (x == NULL || y == NULL)
            return x == y;
        if (strcmp(x, y) != 0)
            return false;
    }
}

static void add_slices(struct cli_shared *s, const struct exti_image *original,
                       const struct exti_image *copy)
{
    json_t *seen = json_object(), *seen_machines = json_object();
    const struct exti_image *slice, *was;

    if (exti_image_slice(copy, 0) == NULL)
        add_flat(s, seen, copy);
    for (size_t i = 0; (slice = exti_image_slice(copy, i)) != NULL; i++) {
        struct exti_image_info info = {.size = sizeof info};

        was = exti_image_slice(original, i);
        exti_image_info(slice, &info);
        if (was != NULL && same_needed(was, slice))
            add_once(s->carried, seen_machines, info.machine);
        else
            add_flat(s, seen, slice);
    }
    json_decref(seen);
    json_decref(seen_machines);
}

struct cli_shared cli_shared_of(const char *original, const char *copy)
{
    struct cli_shared s = {json_array(), json_array()};
    struct exti_image *before = NULL, *after = NULL;

    if (cli_magic_of(copy) == CLI_MAGIC_MACHO && cli_worked(exti_inspect(copy, &after, NULL)) &&
        cli_is_macho(after) && cli_worked(exti_inspect(original, &before, NULL)))
        add_slices(&s, before, after);
    exti_image_free(before);
    exti_image_free(after);
    return s;
}

static void print_list(const char *what, const json_t *names)
{
    json_t *name;
    size_t i;

    if (json_array_size(names) == 0)
        return;
    printf("  %s%s:%s", cli_style(stdout, CLI_YELLOW), what, cli_style(stdout, CLI_PLAIN));
    json_array_foreach(names, i, name)
    {
        fputs(i == 0 ? " " : ", ", stdout);
        cli_put(stdout, json_string_value(name));
    }
    putchar('\n');
}

void cli_shared_print(const struct cli_shared *s)
{
    print_list("still looked up in every library", s->flat);
    print_list("copied unchanged", s->carried);
}

void cli_shared_free(struct cli_shared *s)
{
    json_decref(s->flat);
    json_decref(s->carried);
}
