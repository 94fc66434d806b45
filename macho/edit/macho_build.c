/* The pieces of __LINKEDIT in a copy. */
#include "macho/edit/macho_build.h"

struct exti_buf *exti__macho_piece_new(struct macho_build *b, enum macho_piece_kind kind,
                                       size_t max)
{
    exti__buf_free(&b->pieces[kind].data);
    b->pieces[kind].data = exti__buf(max);
    b->pieces[kind].replaced = true;
    return &b->pieces[kind].data;
}

struct exti_span exti__macho_piece(const struct macho_build *b, enum macho_piece_kind kind)
{
    const struct exti_buf *data = &b->pieces[kind].data;

    return b->pieces[kind].replaced ? exti__span(data->p, data->n) : b->f->pieces[kind].s;
}
