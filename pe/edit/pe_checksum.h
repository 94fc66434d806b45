/* The image checksum. */
#ifndef PE_EDIT_PE_CHECKSUM_H
#define PE_EDIT_PE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* The image's checksum as ImageHlp's MapFileAndCheckSum computes it over `parts`, one behind the
 * other; `field` is where CheckSum stands, which counts as 0. */
uint32_t exti__pe_checksum(const struct exti_span *parts, size_t count, uint64_t field);

#endif
