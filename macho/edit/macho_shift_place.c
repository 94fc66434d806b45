/* Editing numbers and bytes in place for a page shift. */
#include "macho/edit/macho_shift_place.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/error.h"
#include "macho/read/macho_word.h"

int exti__macho_shift_u32(uint8_t *p, uint64_t shift, uint64_t at, const char *what,
                          struct exti_error *err)
{
    const uint64_t v = exti__macho_u32(p) + shift;

    if (v > UINT32_MAX)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at, "%s: 0x%" PRIx64 " would not fit 32 bits",
                          what, v);
    exti__put_u32(p, (uint32_t)v, false);
    return 0;
}

int exti__macho_shift_u64(uint8_t *p, uint64_t shift, const char *what, struct exti_error *err)
{
    uint64_t v = exti__macho_u64(p);

    if (!exti__add(v, shift, &v))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "%s: 0x%" PRIx64 " would overflow",
                          what, v);
    exti__put_u64(p, v, false);
    return 0;
}

int exti__macho_shift_body(struct macho_build *b, uint64_t offset, uint64_t n, const char *what,
                           uint8_t **out, struct exti_error *err)
{
    const uint64_t start = b->f->room_end;

    if (offset < start || offset - start > b->body.n || b->body.n - (offset - start) < n)
        return exti__fail(err, EXTI_E_FORMAT, b->f->file.base + offset,
                          "%s: not between the load commands and __LINKEDIT", what);
    *out = b->body.p + (offset - start);
    return 0;
}

int exti__macho_shift_piece(struct macho_build *b, enum macho_piece_kind kind,
                            struct exti_buf **out, struct exti_error *err)
{
    const struct exti_span s = exti__macho_piece(b, kind);

    if (b->pieces[kind].replaced) {
        *out = &b->pieces[kind].data;
        return 0;
    }
    *out = exti__macho_piece_new(b, kind, s.n);
    return exti__buf_append(*out, s.p, s.n, err);
}
