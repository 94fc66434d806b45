/* The CheckSum field of the optional header. */
#ifndef PE_EDIT_PE_CHECKSUM_H
#define PE_EDIT_PE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* The checksum as ImageHlp's MapFileAndCheckSum computes it over the file that `parts` make up one
 * after the other.  `field` is the file offset of CheckSum itself, which counts as 0. */
uint32_t exti__pe_checksum(const struct exti_span *parts, size_t count, uint64_t field);

#endif
