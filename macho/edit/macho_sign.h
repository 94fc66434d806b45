/* Ad hoc code signatures. */
#ifndef MACHO_EDIT_MACHO_SIGN_H
#define MACHO_EDIT_MACHO_SIGN_H

#include "base/buf.h"
#include "macho/read/macho_signature.h"

/* Size of the signature that exti__macho_sign appends for a slice of `code_limit` bytes;
 * UINT64_MAX if it cannot be signed. */
uint64_t exti__macho_signature_size(const struct macho_signature *old, const char *identifier,
                                    uint64_t code_limit);

/* The slice to sign. */
struct macho_signable {
    const struct exti_span *parts; /* its bytes, in order; they may lie in the output buffer */
    size_t count;
    uint64_t exec_seg_limit; /* size of __TEXT in the file */
    uint32_t exec_seg_flags;
};

/* Appends the signature of `slice`, which keeps what it can of `old`. */
int exti__macho_sign(const struct macho_signature *old, const char *identifier,
                     const struct macho_signable *slice, struct exti_buf *out,
                     struct exti_error *err);

#endif
