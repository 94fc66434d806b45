/* Hazards: properties of a file that matter when a process has several copies of it. */
#ifndef LOADER_IMAGE_HAZARDS_H
#define LOADER_IMAGE_HAZARDS_H

#include "base/format.h"

/* Fills in im->hazards; the rest of the description must be complete. */
void exti__hazards_find(struct exti_image *im);

/* glibc's ld.so fits each block in below the last (arm64: above it), at its alignment, and refuses
 * one whose alignment is larger than the thread control block's.  That is what this returns for the
 * file's machine. */
uint64_t exti__static_tls_align(const struct exti_image *im);

/* How many bytes of the static TLS block one copy takes. */
uint64_t exti__static_tls(const struct exti_image *im);

#endif
