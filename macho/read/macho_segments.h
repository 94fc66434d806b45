/* Segments and sections. */
#ifndef MACHO_READ_MACHO_SEGMENTS_H
#define MACHO_READ_MACHO_SEGMENTS_H

#include "macho/read/macho_file.h"

/* For exti__macho_open: decodes the LC_SEGMENT_64 at index `i` and its sections. */
int exti__macho_read_segment(struct macho_file *f, size_t i, struct exti_error *err);

/* For exti__macho_open: checks all segments against each other; sets f->text, f->linkedit and
 * f->room_end. */
int exti__macho_check_segments(struct macho_file *f, struct exti_error *err);

/* The `len` bytes of the file that are mapped at `vmaddr`, all in one segment. */
int exti__macho_at(const struct macho_file *f, uint64_t vmaddr, uint64_t len, const char *what,
                   struct exti_span *out, struct exti_error *err);

#endif
