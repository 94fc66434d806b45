/* The load commands of a copy while they are edited. */
#include "macho/edit/macho_items.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/read/macho_word.h"

bool exti__macho_is_library(uint32_t cmd)
{
    return cmd == LC_LOAD_DYLIB || cmd == LC_LOAD_WEAK_DYLIB || cmd == LC_REEXPORT_DYLIB ||
           cmd == LC_LOAD_UPWARD_DYLIB;
}

int exti__macho_insert(struct macho_edit *e, size_t at, struct macho_item item,
                       struct exti_error *err)
{
    struct macho_item *items = exti__array_room(e->items, e->count, &e->cap, sizeof *items);

    if (!items)
        return exti__fail_nomem(err);
    e->items = items;
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
    p = exti__array_room(e->owned, e->owned_count, &e->owned_cap, sizeof *p);
    if (!p) {
        exti__free(text);
        return exti__fail_nomem(err);
    }
    e->owned = p;
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

static bool is_kept(const struct macho_item *item)
{
    return item->old.n && item->cmd == exti__macho_u32(item->old.p) && !item->no_tools &&
           (!item->text || strcmp(item->text, item->was) == 0);
}

/* Size before the name: a dylib_use_command is longer than a dylib_command. */
static size_t head_size(const struct macho_item *item)
{
    if (item->old.n)
        return exti__macho_u32(item->old.p + 8);
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

/* A new library's versions are 0, because dyld before macOS 12 refuses a library older than the
 * requested compatibility version.  Linkers write the timestamp 2. */
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

int exti__macho_put_item(const struct macho_item *item, struct exti_buf *out,
                         struct exti_error *err)
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
