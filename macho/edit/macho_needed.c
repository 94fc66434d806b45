/* The needed libraries, whose order defines the ordinals that bindings use. */
#include "macho/edit/macho_needed.h"

#include <string.h>

#include "base/error.h"
#include "macho/edit/macho_items.h"
#include "macho/edit/macho_paths.h"

#define LIBSYSTEM "/usr/lib/libSystem.B.dylib"

static size_t first_library(const struct macho_edit *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (exti__macho_is_library(e->items[i].cmd))
            return i;
    return e->count;
}

static size_t behind_libraries(const struct macho_edit *e)
{
    for (size_t i = e->count; i > 0; i--)
        if (exti__macho_is_library(e->items[i - 1].cmd))
            return i;
    return e->count;
}

static int insert_library(struct macho_edit *e, size_t at, const char *name, struct exti_error *err)
{
    return exti__macho_insert(e, at, (struct macho_item){.cmd = LC_LOAD_DYLIB, .text = name}, err);
}

/* bind_short names the same library as bind_name, so a file that has it needs no other. */
static bool is_there(const struct macho_edit *e, const char *name)
{
    const struct exti_rewrite_opts *opts = e->b->opts;

    return exti__macho_library(e, name) ||
           (opts->bind_short && strcmp(name, opts->bind_name) == 0 &&
            exti__macho_library(e, opts->bind_short));
}

/* dyld gives a file that names no library libSystem, as library 1. */
static int add_library(struct macho_edit *e, const struct exti_needed *op, struct exti_error *err)
{
    const bool implied = !e->b->f->dylib_count;
    int rc = 0;

    if (is_there(e, op->to))
        return 0;
    if (implied && !exti__macho_library(e, LIBSYSTEM))
        rc = insert_library(e, e->count, LIBSYSTEM, err);
    if (rc || strcmp(op->to, LIBSYSTEM) == 0)
        return rc;
    if (op->where == EXTI_NEEDED_FIRST)
        return insert_library(e, first_library(e) + implied, op->to, err);
    return insert_library(e, behind_libraries(e), op->to, err);
}

static int apply_needed(struct macho_edit *e, size_t at, struct exti_error *err)
{
    const struct exti_needed *op = &e->b->opts->needed[at];
    bool found = false;

    if (!op->from)
        return add_library(e, op, err);
    for (size_t i = 0; i < e->count; i++) {
        struct macho_item *item = &e->items[i];

        if (!exti__macho_is_library(item->cmd) || item->removed ||
            strcmp(item->text, op->from) != 0)
            continue;
        item->text = op->to;
        item->removed = !op->to;
        found = true;
    }
    /* Already replaced: editing a file twice must equal editing it once. */
    found = found || (op->to && is_there(e, op->to));
    if (e->b->found)
        e->b->found[at] = e->b->found[at] || found;
    if (found || e->b->found || e->b->opts->flags & EXTI_RW_ALLOW_ABSENT)
        return 0;
    return exti__macho_fail_needed(op, err);
}

int exti__macho_fail_needed(const struct exti_needed *op, struct exti_error *err)
{
    return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "LC_LOAD_DYLIB: there is no '%s' to %s",
                      op->from, op->to ? "replace" : "remove");
}

static bool is_requested(const struct exti_rewrite_opts *opts, const char *text)
{
    for (size_t i = 0; i < opts->needed_count; i++)
        if (opts->needed[i].to && strcmp(opts->needed[i].to, text) == 0)
            return true;
    return opts->bind_short && strcmp(opts->bind_short, text) == 0;
}

/* Resolves @loader_path in the names that no edit sets. */
static int translate_names(struct macho_edit *e, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < e->count; i++) {
        struct macho_item *item = &e->items[i];

        if (exti__macho_is_library(item->cmd) && !item->removed &&
            !is_requested(e->b->opts, item->text))
            rc = exti__macho_translate(e, &item->text, err);
    }
    return rc;
}

/* ---- libraries that got the same name -------------------------------------------------------- */

static int command_rank(uint32_t cmd)
{
    return cmd == LC_REEXPORT_DYLIB      ? 3
           : cmd == LC_LOAD_DYLIB        ? 2
           : cmd == LC_LOAD_UPWARD_DYLIB ? 1
                                         : 0;
}

static bool is_renamed_item(const struct macho_item *item)
{
    return !item->was || strcmp(item->was, item->text) != 0;
}

/* Whether the item is a dylib_use_command, whose flags add to its command. */
static bool has_flags(const struct macho_item *item)
{
    struct exti_cur c = exti__cur(item->old, false);

    exti__cur_skip(&c, 12);
    return item->old.n && exti__cur_u32(&c) == DYLIB_USE_MARKER;
}

/* One library replaces both, so it gets the stronger command. */
static int merge_items(struct macho_item *a, struct macho_item *b, struct exti_error *err)
{
    struct macho_item *gone = is_renamed_item(b) ? b : a, *kept = gone == b ? a : b;

    if (gone->cmd != kept->cmd && (has_flags(a) || has_flags(b)))
        return exti__fail(
            err, EXTI_E_UNSUPPORTED, b->old.base,
            "'%s' would be needed twice, in two ways that one load command cannot express",
            b->text);
    if (command_rank(gone->cmd) > command_rank(kept->cmd))
        kept->cmd = gone->cmd;
    gone->removed = true;
    return 0;
}

/* dyld refuses two libraries of the same name (SDK 26 and later). */
static int merge_duplicates(struct macho_edit *e, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < e->count; i++) {
        if (!exti__macho_is_library(e->items[i].cmd) || e->items[i].removed ||
            !is_renamed_item(&e->items[i]))
            continue;
        for (size_t k = 0; !rc && k < e->count && !e->items[i].removed; k++) {
            struct macho_item *other = &e->items[k];

            if (k != i && exti__macho_is_library(other->cmd) && !other->removed &&
                strcmp(other->text, e->items[i].text) == 0)
                rc = merge_items(k < i ? other : &e->items[i], k < i ? &e->items[i] : other, err);
        }
    }
    return rc;
}

int exti__macho_edit_needed(struct macho_edit *e, struct exti_error *err)
{
    const struct exti_rewrite_opts *opts = e->b->opts;
    const struct macho_file *f = e->b->f;
    int rc = 0;

    for (size_t i = 0; !rc && i < opts->needed_count; i++)
        rc = apply_needed(e, i, err);
    if (!rc)
        rc = translate_names(e, err);
    if (!rc)
        rc = merge_duplicates(e, err);
    if (rc || !f->dylib_count)
        return rc;
    for (size_t i = 0; i < e->count; i++)
        if (exti__macho_is_library(e->items[i].cmd) && !e->items[i].removed)
            return 0;
    return exti__fail(err, EXTI_E_UNSUPPORTED, f->file.base + MACH_HEADER_64_SIZE,
                      "LC_LOAD_DYLIB: the last library cannot be removed: dyld would put " LIBSYSTEM
                      " in its place");
}
