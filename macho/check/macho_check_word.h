/* Addresses in the original's segments. */
#ifndef MACHO_CHECK_MACHO_CHECK_WORD_H
#define MACHO_CHECK_MACHO_CHECK_WORD_H

#include "macho/check/macho_check_state.h"

/* A number of 4 or 8 bytes that holds an address and moves with a page shift. */
struct macho_word {
    uint64_t at; /* slice offset */
    uint8_t size;
};
struct macho_words {
    struct macho_word *v;
    size_t n, cap;
};

int exti__macho_words(struct macho_check *c, struct macho_words *out, struct exti_error *err);

#endif
