/* Mach-O dylibs and bundles, thin or universal, for x86-64 and arm64: the one header of macho/
 * that loader/ includes.  Pure functions over memory, in three rooms: read/ decodes files; edit/
 * plans rewrites; check/ judges rewritten copies.  edit/ and check/ use read/ and do not know each
 * other. */
#ifndef MACHO_MACHO_FORMAT_H
#define MACHO_MACHO_FORMAT_H

#include "base/format.h"
#include "macho/read/macho_functions.h"
#include "macho/read/macho_slots.h"

extern const struct exti_format_ops exti__macho_format;

#endif
