/* What elfutils' configure would find on Windows. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#define HAVE_ERR_H 1
/* libelf reads memory for us, never files. */
#define posix_fallocate(fd, offset, size) 0
#define pread(fd, p, n, offset) ((ssize_t)-1)
#define pwrite(fd, p, n, offset) ((ssize_t)-1)
#define fchmod(fd, mode) (-1)
#define sysconf(name) 4096
#define fcntl(fd, request) 0
#define F_GETFD 1
/* malloc aligns for every type that ELF knows. */
#define posix_memalign(p, align, n) ((*(p) = malloc(n)) ? 0 : ENOMEM)
#define S_ISUID 0
#define S_ISGID 0
#include "tests/support/tdestroy.h"
#include <eu-config.h>
/* PE has neither symbol versions nor aliases; what they name is deprecated. */
#undef NEW_VERSION
#undef OLD_VERSION
#undef COMPAT_VERSION
#undef COMPAT_VERSION_NEWPROTO
#undef strong_alias
#define strong_alias(name, alias)
