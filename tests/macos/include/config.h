/* What elfutils' configure would find on macOS. */
#include <stdlib.h>
#include <unistd.h>
#define HAVE_ERR_H 1
#define off64_t off_t
/* libelf never writes for us. */
#define posix_fallocate(fd, offset, size) 0
#include "tests/support/tdestroy.h"
#include <eu-config.h>
/* Mach-O has neither symbol versions nor aliases; what they name is deprecated. */
#undef NEW_VERSION
#undef OLD_VERSION
#undef COMPAT_VERSION
#undef COMPAT_VERSION_NEWPROTO
#undef strong_alias
#define strong_alias(name, alias)
