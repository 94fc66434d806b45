/* Editing the load commands.  Commands that no edit names keep their bytes. */
#include "macho/edit/macho_commands.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_items.h"
#include "macho/edit/macho_needed.h"
#include "macho/edit/macho_paths.h"
#include "macho/edit/macho_room.h"
#include "macho/edit/macho_withhold.h"

/* More than any linker writes; bounds the work on hostile files. */
enum { MOST_NAMES = 4096 };

static int collect_items(struct macho_edit *e, struct exti_error *err)
{
    const struct macho_file *f = e->b->f;
    size_t dylib = 0, rpath = 0;
    int rc = 0;

    if (f->dylib_count > MOST_NAMES || f->rpath_count > MOST_NAMES)
        return exti__fail(err, EXTI_E_UNSUPPORTED, f->file.base + MACH_HEADER_64_SIZE,
                          "load commands: %zu libraries and %zu LC_RPATHs; at most %d are handled",
                          f->dylib_count, f->rpath_count, MOST_NAMES);
    for (size_t i = 0; !rc && i < f->command_count; i++) {
        struct macho_item item = {.cmd = f->commands[i].cmd, .old = f->commands[i].s};

        if (dylib < f->dylib_count && f->dylibs[dylib].command == i) {
            item.was = f->dylibs[dylib].name;
            item.ordinal = ++dylib;
        } else if (item.cmd == LC_RPATH) {
            item.was = f->rpaths[rpath++];
        } else if (item.cmd == LC_ID_DYLIB) {
            item.was = f->id;
        }
        item.text = item.was;
        rc = exti__macho_insert(e, e->count, item, err);
    }
    return rc;
}

/* Bundles have no id: dyld refuses one. */
static void set_id(struct macho_edit *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->items[i].cmd == LC_ID_DYLIB && e->b->opts->id)
            e->items[i].text = e->b->opts->id;
}

/* arm64 code needs a signature.  On x86-64 only a stale signature does harm. */
static int edit_signature(struct macho_edit *e, struct exti_error *err)
{
    const struct macho_file *f = e->b->f;
    const bool present = f->pieces[MACHO_SIGNATURE].present;

    e->b->resign = present || f->cputype == CPU_TYPE_ARM64;
    if (present || !e->b->resign)
        return 0;
    return exti__macho_insert(e, e->count, (struct macho_item){.cmd = LC_CODE_SIGNATURE}, err);
}

static int32_t ordinal_of(const struct macho_edit *e, const char *name)
{
    int32_t n = 0;

    for (size_t i = 0; i < e->count; i++) {
        const struct macho_item *item = &e->items[i];

        if (!exti__macho_is_library(item->cmd) || item->removed)
            continue;
        n++;
        if (strcmp(item->text, name) == 0)
            return n;
    }
    return 0;
}

static int find_bind_ordinal(struct macho_edit *e, struct exti_error *err)
{
    const char *name = e->b->opts->bind_name;

    e->b->bind_ordinal = BIND_SPECIAL_DYLIB_SELF;
    if (!name)
        return 0;
    e->b->bind_ordinal = ordinal_of(e, name);
    if (!e->b->bind_ordinal && e->b->opts->bind_short)
        e->b->bind_ordinal = ordinal_of(e, e->b->opts->bind_short);
    if (e->b->bind_ordinal)
        return 0;
    return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                      "bind_name '%s' is not among the libraries that the copy needs", name);
}

/* A library that was merged into another gets the other's ordinal: both have the same name. */
static int number_libraries(struct macho_edit *e, struct exti_error *err)
{
    struct macho_build *b = e->b;
    int32_t n = 0;

    b->ordinals = exti__calloc(b->f->dylib_count, sizeof *b->ordinals);
    if (!b->ordinals)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < e->count; i++) {
        const struct macho_item *item = &e->items[i];

        if (!exti__macho_is_library(item->cmd))
            continue;
        n += !item->removed;
        if (item->ordinal)
            b->ordinals[item->ordinal - 1] = !item->removed ? n
                                             : item->text   ? ordinal_of(e, item->text)
                                                            : 0;
    }
    return 0;
}

static int put_items(struct macho_edit *e, struct exti_error *err)
{
    struct macho_build *b = e->b;
    int rc = 0;

    b->command_count = 0;
    for (size_t i = 0; !rc && i < e->count; i++) {
        if (!exti__macho_item_size(&e->items[i]))
            continue;
        rc = exti__macho_put_item(&e->items[i], &b->commands, err);
        b->command_count++;
    }
    return rc;
}

int exti__macho_edit_commands(struct macho_build *b, struct exti_error *err)
{
    struct macho_edit e = {.b = b};
    int rc = collect_items(&e, err);

    b->header_flags = b->f->flags;
    if (!rc) {
        set_id(&e);
        rc = exti__macho_edit_needed(&e, err);
    }
    if (!rc)
        rc = exti__macho_edit_paths(&e, err);
    if (!rc)
        rc = edit_signature(&e, err);
    if (!rc)
        rc = find_bind_ordinal(&e, err);
    if (!rc)
        rc = number_libraries(&e, err);
    if (!rc)
        rc = exti__macho_make_room(&e, err);
    if (!rc)
        rc = put_items(&e, err);
    if (!rc)
        rc = exti__macho_withhold(b, err);
    for (size_t i = 0; i < e.owned_count; i++)
        exti__free(e.owned[i]);
    exti__free(e.owned);
    exti__free(e.items);
    return rc;
}
