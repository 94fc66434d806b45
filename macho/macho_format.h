#ifndef MACHO_MACHO_FORMAT_H
#define MACHO_MACHO_FORMAT_H

#include "loader/base/format.h"

/* Mach-O dylibs and bundles, thin or universal; x86-64 and arm64. */
extern const struct exti_format_ops exti__macho_format;

#endif
