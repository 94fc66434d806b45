/* Space for the load commands, which must end where the first section starts.  Linkers leave at
 * least 32 bytes and usually about 50.  If the commands do not fit, these help, least harmful
 * first:
 *   1. the short name of the library to bind to;
 *   2. dropping duplicates and commands that neither dyld nor debuggers need;
 *   3. dropping commands that only tools read, function starts last, which symbolise stripped code;
 *   4. moving everything after the header by pages (macho_shift.c), with all commands kept.
 * The page shift makes two other ways unnecessary: replacing the libSystem entry by a library that
 * re-exports libSystem, and removing section headers.  LC_UUID stays, because dyld requires it. */
#include "macho/edit/macho_room.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "macho/edit/macho_items.h"
#include "macho/read/macho_arch.h"

enum { SHIFT = 0x4000, NO_PIECE = MACHO_PIECES };

static const struct {
    uint32_t cmd;
    int piece;
    bool if_empty;
} droppable[] = {
    {LC_DATA_IN_CODE, MACHO_DATA_IN_CODE, true},
    {LC_SOURCE_VERSION, NO_PIECE, false},
    {LC_DYLIB_CODE_SIGN_DRS, MACHO_CODE_SIGN_DRS, false},
    {LC_SEGMENT_SPLIT_INFO, MACHO_SPLIT_INFO, false},
    {LC_BUILD_VERSION, NO_PIECE, false}, /* only its tools */
    {LC_FUNCTION_STARTS, MACHO_FUNCTION_STARTS, false},
};

static uint64_t end_of_commands(const struct macho_edit *e)
{
    uint64_t end = MACH_HEADER_64_SIZE;

    for (size_t i = 0; i < e->count; i++)
        end += exti__macho_item_size(&e->items[i]);
    return end;
}

static bool commands_fit(const struct macho_edit *e)
{
    return end_of_commands(e) <= e->b->f->room_end;
}

static void use_short_name(struct macho_edit *e)
{
    const struct exti_rewrite_opts *opts = e->b->opts;
    struct macho_item *item;

    if (!opts->bind_name || !opts->bind_short || exti__macho_library(e, opts->bind_short))
        return;
    item = exti__macho_library(e, opts->bind_name);
    if (item)
        item->text = opts->bind_short;
}

/* Linkers write a handful at most; more would make the pairwise comparison slow. */
enum { FEW = 256 };

static void drop_second_paths(struct macho_edit *e)
{
    for (size_t i = 0; i < e->count && e->b->f->rpath_count <= FEW; i++)
        for (size_t k = 0; k < i && e->items[i].cmd == LC_RPATH && !e->items[i].dropped; k++)
            if (e->items[k].cmd == LC_RPATH && strcmp(e->items[i].text, e->items[k].text) == 0)
                e->items[i].dropped = true;
}

static void drop_unneeded(struct macho_edit *e)
{
    for (size_t d = 0; d < sizeof droppable / sizeof *droppable && !commands_fit(e); d++)
        for (size_t i = 0; i < e->count; i++) {
            struct macho_item *item = &e->items[i];

            if (item->cmd != droppable[d].cmd)
                continue;
            if (droppable[d].if_empty &&
                exti__macho_piece(e->b, (enum macho_piece_kind)droppable[d].piece).n)
                continue;
            if (item->cmd == LC_BUILD_VERSION)
                item->no_tools = true;
            else
                item->dropped = true;
        }
}

/* Removes the pieces whose commands were dropped. */
static void drop_pieces(struct macho_edit *e)
{
    for (size_t i = 0; i < e->count; i++)
        for (size_t d = 0; d < sizeof droppable / sizeof *droppable; d++)
            if (e->items[i].dropped && e->items[i].cmd == droppable[d].cmd &&
                droppable[d].piece != NO_PIECE)
                exti__macho_piece_new(e->b, (enum macho_piece_kind)droppable[d].piece, 0);
}

static void undo_drops(struct macho_edit *e)
{
    const struct exti_rewrite_opts *opts = e->b->opts;
    struct macho_item *item = opts->bind_short ? exti__macho_library(e, opts->bind_short) : NULL;

    for (size_t i = 0; i < e->count; i++)
        e->items[i].dropped = e->items[i].no_tools = false;
    /* The file itself may need the library under its short name. */
    if (item && (!item->was || strcmp(item->was, item->text) != 0) &&
        !exti__macho_library(e, opts->bind_name))
        item->text = opts->bind_name;
}

static int plan_shift(struct macho_edit *e, struct exti_error *err)
{
    const struct macho_file *f = e->b->f;
    const uint64_t end = end_of_commands(e);

    if (exti__macho_is_arm64e(f->cputype, f->cpusubtype))
        return exti__fail(err, EXTI_E_NOSPACE, f->file.base + f->commands_end,
                          "load commands: need %" PRIu64 " bytes more than the %" PRIu64
                          " that are free, and arm64e code cannot be moved; give shorter names, or "
                          "link the original with -headerpad",
                          end - f->room_end, f->room_end - f->commands_end);
    e->b->shift = (end + SHIFT - 1) / SHIFT * SHIFT;
    return 0;
}

int exti__macho_make_room(struct macho_edit *e, struct exti_error *err)
{
    if (commands_fit(e))
        return 0;
    use_short_name(e);
    if (!commands_fit(e))
        drop_second_paths(e);
    drop_unneeded(e);
    if (commands_fit(e)) {
        drop_pieces(e);
        return 0;
    }
    undo_drops(e);
    return plan_shift(e, err);
}
