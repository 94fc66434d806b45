/* Editing the load commands: those that no edit names stay as they are, byte for byte. */
#include "macho/edit/macho_commands.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

static uint32_t get32(struct exti_span s, size_t at)
{
    struct exti_cur c = exti__cur(s, false);

    exti__cur_skip(&c, at);
    return exti__cur_u32(&c);
}

/* The commands that dyld numbers (mach_o/UnsafeHeader.cpp, forEachLinkedDylib). */
bool exti__macho_is_library(uint32_t cmd)
{
    return cmd == LC_LOAD_DYLIB || cmd == LC_LOAD_WEAK_DYLIB || cmd == LC_REEXPORT_DYLIB ||
           cmd == LC_LOAD_UPWARD_DYLIB;
}

int exti__macho_insert(struct macho_edit *e, size_t at, struct macho_item item,
                       struct exti_error *err)
{
    if (e->count == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 64;
        struct macho_item *p = exti__realloc_array(e->items, cap, sizeof *p);

        if (!p)
            return exti__fail_nomem(err);
        e->items = p;
        e->cap = cap;
    }
    memmove(e->items + at + 1, e->items + at, (e->count - at) * sizeof *e->items);
    e->items[at] = item;
    e->count++;
    return 0;
}

int exti__macho_own(struct macho_edit *e, char *text, struct exti_error *err)
{
    char **p;

    if (!text)
        return exti__fail_nomem(err);
    if (e->owned_count == e->owned_cap) {
        size_t cap = e->owned_cap ? e->owned_cap * 2 : 16;

        p = exti__realloc_array(e->owned, cap, sizeof *p);
        if (!p) {
            exti__free(text);
            return exti__fail_nomem(err);
        }
        e->owned = p;
        e->owned_cap = cap;
    }
    e->owned[e->owned_count++] = text;
    return 0;
}

struct macho_item *exti__macho_library(const struct macho_edit *e, const char *name)
{
    for (size_t i = 0; i < e->count; i++)
        if (exti__macho_is_library(e->items[i].cmd) && !e->items[i].removed &&
            strcmp(e->items[i].text, name) == 0)
            return &e->items[i];
    return NULL;
}

/* ---- one command's bytes -------------------------------------------------------------------------- */

static bool is_kept(const struct macho_item *item)
{
    return item->old.n && item->cmd == get32(item->old, 0) && !item->no_tools &&
           (!item->text || strcmp(item->text, item->was) == 0);
}

/* What stands before the name: a dylib_use_command is longer than a dylib_command. */
static size_t head_size(const struct macho_item *item)
{
    if (item->old.n)
        return get32(item->old, 8);
    return item->cmd == LC_RPATH ? RPATH_COMMAND_SIZE : DYLIB_COMMAND_SIZE;
}

enum { BUILD_VERSION_SIZE = 24, BUILD_VERSION_NTOOLS = 20 };

uint64_t exti__macho_item_size(const struct macho_item *item)
{
    if (item->removed || item->dropped)
        return 0;
    if (is_kept(item))
        return item->old.n;
    if (item->text)
        return ((uint64_t)head_size(item) + strlen(item->text) + 1 + 7) / 8 * 8;
    return item->no_tools ? BUILD_VERSION_SIZE : LINKEDIT_DATA_COMMAND_SIZE;
}

/* A new library's versions are zero: dyld before macOS 12 refuses a library older than the compatibility
 * version asked for.  The timestamp is the one that linkers write. */
static void fill_head(const struct macho_item *item, uint8_t *p)
{
    if (item->old.n) {
        memcpy(p, item->old.p, item->text ? head_size(item) : BUILD_VERSION_SIZE);
    } else if (item->text) {
        exti__put_u32(p + 8, (uint32_t)head_size(item), false);
        if (item->cmd != LC_RPATH)
            exti__put_u32(p + 12, 2, false);
    }
    if (item->no_tools)
        exti__put_u32(p + BUILD_VERSION_NTOOLS, 0, false);
}

static int put_item(const struct macho_item *item, struct exti_buf *out, struct exti_error *err)
{
    const size_t size = (size_t)exti__macho_item_size(item);
    uint8_t *p;
    int rc;

    if (is_kept(item))
        return exti__buf_append(out, item->old.p, item->old.n, err);
    rc = exti__buf_zeros(out, size, err);
    if (rc)
        return rc;
    p = out->p + (out->n - size);
    fill_head(item, p);
    exti__put_u32(p, item->cmd, false);
    exti__put_u32(p + 4, (uint32_t)size, false);
    if (item->text)
        memcpy(p + head_size(item), item->text, strlen(item->text));
    return 0;
}

/* ---- all of them ------------------------------------------------------------------------------------- */

/* More than a linker can number many times over; keeps the work on a hostile file in bounds. */
enum { MOST_NAMES = 4096 };

static int collect(struct macho_edit *e, struct exti_error *err)
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

/* A bundle has no id: dyld refuses one. */
static void edit_id(struct macho_edit *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->items[i].cmd == LC_ID_DYLIB && e->b->opts->id)
            e->items[i].text = e->b->opts->id;
}

/* arm64 code does not run unsigned; elsewhere only a stale signature does harm. */
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

/* A library merged with another goes by that one's number: it has its name. */
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

static int put_all(struct macho_edit *e, struct exti_error *err)
{
    struct macho_build *b = e->b;
    int rc = 0;

    b->command_count = 0;
    for (size_t i = 0; !rc && i < e->count; i++) {
        if (!exti__macho_item_size(&e->items[i]))
            continue;
        rc = put_item(&e->items[i], &b->commands, err);
        b->command_count++;
    }
    return rc;
}

int exti__macho_edit_commands(struct macho_build *b, struct exti_error *err)
{
    struct macho_edit e = {.b = b};
    int rc = collect(&e, err);

    b->header_flags = b->f->flags;
    if (!rc) {
        edit_id(&e);
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
        rc = put_all(&e, err);
    for (size_t i = 0; i < e.owned_count; i++)
        exti__free(e.owned[i]);
    exti__free(e.owned);
    exti__free(e.items);
    return rc;
}
