/* A toy whose __DATA holds what dyld runs: two pointers to initialisers, two offsets of others, and
 * two pointers to terminators; and an LC_ROUTINES_64. */
#ifndef TESTS_UNIT_MACHO_RUNS_H
#define TESTS_UNIT_MACHO_RUNS_H

#include "tests/unit/macho/macho_toy.h"

/* Offset of the flags of section `i` of __DATA. */
static inline size_t runs_flags(const struct macho_toy *t, size_t i)
{
    return mtoy_find(t, LC_SEGMENT_64, 1) + SEGMENT_COMMAND_64_SIZE + i * SECTION_64_SIZE + 64;
}

/* Offset of the LC_ROUTINES_64, which is the last command. */
static inline size_t runs_routines(const struct macho_toy *t)
{
    return MACH_HEADER_64_SIZE + mtoy_get(t, 20, 4) - 72;
}

static inline void runs_make(struct macho_toy *t, struct macho_toy_opts o)
{
    size_t at;

    o.room = 72 + 64;
    macho_toy_make(t, o);
    mtoy_put(t, runs_flags(t, 0), 4, S_MOD_INIT_FUNC_POINTERS);
    mtoy_put(t, runs_flags(t, 1), 4, S_INIT_FUNC_OFFSETS);
    mtoy_put(t, runs_flags(t, 2), 4, S_MOD_TERM_FUNC_POINTERS);
    mtoy_put(t, runs_flags(t, 2) - 24, 8, 16);
    mtoy_put(t, 16, 4, ++t->ncmds);
    mtoy_put(t, 20, 4, mtoy_get(t, 20, 4) + 72);
    at = runs_routines(t);
    mtoy_put(t, at, 4, LC_ROUTINES_64);
    mtoy_put(t, at + 4, 4, 72);
    mtoy_put(t, at + 8, 8, MTOY_BASE + t->text);
}

#endif
