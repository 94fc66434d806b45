/* PE DLLs: x86-64, i386 and arm64. */
#ifndef PE_PE_FORMAT_H
#define PE_PE_FORMAT_H

#include "base/format.h"

extern const struct exti_format_ops exti__pe_format;

#endif
