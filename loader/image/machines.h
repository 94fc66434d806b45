/* Lists of the machines that files have code for, as text: "x86_64,arm64".  Pure; any thread. */
#ifndef LOADER_IMAGE_MACHINES_H
#define LOADER_IMAGE_MACHINES_H

#include "base/format.h"

#define EXTI_MACHINES_MAX 96 /* of a list, with its NUL */

/* Writes the machines that a file has code for, separated by commas, into the EXTI_MACHINES_MAX
 * bytes at `out`. */
void exti__machines_of(const struct exti_image *im, char *out);

/* Whether two such lists have a machine in common. */
bool exti__machines_meet(const char *a, const char *b);

#endif
