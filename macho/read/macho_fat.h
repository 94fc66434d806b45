/* Universal files. */
#ifndef MACHO_READ_MACHO_FAT_H
#define MACHO_READ_MACHO_FAT_H

#include "macho/read/macho_file.h"

struct macho_slice {
    uint32_t cputype, cpusubtype, align; /* align: a power of two's exponent */
    uint64_t offset, size;
    struct exti_span s; /* base is the offset in the universal file */
};

struct macho_fat {
    bool wide;       /* FAT_MAGIC_64 */
    bool hidden;     /* nfat_arch does not count the last slice: dyld peeks past the table */
    uint64_t at_end; /* end of the table; 0 for a thin file */
    struct macho_slice *slices;
    size_t count;
};

/* Checks what dyld's Universal::valid checks.  A thin file gives one slice. */
int exti__macho_fat_open(struct exti_span file, struct macho_fat *fat, struct exti_error *err);
void exti__macho_fat_close(struct macho_fat *fat);

/* The slice that a process running code for this architecture loads; NULL if there is none.  Intel
 * processors since 2013 prefer x86-64h slices and also load x86-64 ones into the same process. */
const struct macho_slice *exti__macho_slice_for(const struct macho_fat *fat, uint32_t cputype,
                                                uint32_t cpusubtype);

/* Whether the slice can be rewritten: 64-bit, little-endian, x86-64 or arm64 (arm64e without a page
 * shift).  Other slices are copied unchanged. */
bool exti__macho_slice_handled(const struct macho_slice *slice);

#endif
