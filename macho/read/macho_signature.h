/* Reading and checking a code signature. */
#ifndef MACHO_READ_MACHO_SIGNATURE_H
#define MACHO_READ_MACHO_SIGNATURE_H

#include "macho/read/macho_file.h"

/* What a new signature keeps of the old one. */
struct macho_signature {
    bool present, linker_signed, has_cms;
    const char *identifier, *team;
    uint32_t code_dir_flags, page_shift;
    uint64_t code_limit;
    struct exti_span requirements, entitlements, der_entitlements; /* n 0: none */
    struct exti_span code_directory;
};

/* A file without a signature gives !out->present. */
int exti__macho_signature_read(const struct macho_file *f, struct macho_signature *out,
                               struct exti_error *err);

/* Checks the signature's structure and hashes as the kernel does.  *bad is the offset of the first
 * page whose hash differs, or EXTI_NO_OFFSET. */
int exti__macho_signature_check(const struct macho_file *f, uint64_t *bad, struct exti_error *err);

#endif
