/* The PE format's operations, for DLLs of x86-64, i386 and arm64.
 *
 * pe/ reads, plans and checks PE files as pure functions over memory: no file I/O, no globals.  It
 * uses base/ alone.  The loader includes this header and no other of pe/.  Inside, pe/edit and
 * pe/check both use pe/read and know nothing of each other. */
#ifndef PE_PE_FORMAT_H
#define PE_PE_FORMAT_H

#include "base/format.h"

extern const struct exti_format_ops exti__pe_format;

#endif
