/* A copy of one slice while it is put together.
 *
 * edit/ turns a request into an edit list.  It uses read/ and base/; macho_plan.c is its top,
 * called through macho_format.c.  Load commands, __LINKEDIT pieces and, when a page shift moves
 * it, the body between them are edited separately and laid out last. */
#ifndef MACHO_EDIT_MACHO_BUILD_H
#define MACHO_EDIT_MACHO_BUILD_H

#include "base/buf.h"
#include "base/format.h"
#include "macho/read/macho_signature.h"

struct macho_build {
    const struct macho_file *f;
    const struct exti_rewrite_opts *opts;
    /* The slices for this architecture of opts->bind_file and of the libraries that it re-exports.
     * None: references keep their targets. */
    const struct exti_span *bind;
    size_t bind_count;
    bool *found; /* universal files: by opts->needed, whether some slice names it; otherwise NULL */

    struct macho_signature signature; /* the original slice's */
    const char *identifier;           /* of the new signature */

    /* Set by macho_commands.c. */
    struct exti_buf commands; /* the new load commands, without the header */
    uint32_t command_count, header_flags;
    int32_t bind_ordinal; /* of opts->bind_name in the new list; SELF for the file itself */
    int32_t *ordinals;    /* owned: new ordinal of old ordinal i+1; 0 if it was removed */
    bool resign;          /* the copy gets a signature */

    /* Pieces that changed; the others are the file's own. */
    struct {
        bool replaced;
        struct exti_buf data;
    } pieces[MACHO_PIECES];

    /* Set by macho_room.c: how far everything after the header moves, a multiple of 0x4000.  0:
     * nothing moves. */
    uint64_t shift;
    /* With a shift: the slice from room_end to __LINKEDIT, edited.  The copy then is the header
     * and commands padded to `shift` bytes, the second header padded to room_end bytes, this, and
     * the new __LINKEDIT. */
    struct exti_buf body;
};

/* Makes piece `kind` an empty buffer of at most `max` bytes, for the caller to fill. */
struct exti_buf *exti__macho_piece_new(struct macho_build *b, enum macho_piece_kind kind,
                                       size_t max);

/* The piece's current bytes. */
struct exti_span exti__macho_piece(const struct macho_build *b, enum macho_piece_kind kind);

#endif
