/* The CPython version and build that file names state: PEP 3149 and PEP 384 on POSIX,
 * PC/pyconfig.h on Windows. */
#ifndef CLI_FIND_ABI_H
#define CLI_FIND_ABI_H

#include <stdbool.h>

#include <extisolate.h>

struct cli_abi {
    int major, minor;  /* 0: any (abi3, or no tag) */
    char flags[8];     /* "t" free-threaded, "d" debug, ... */
    char platform[64]; /* "x86_64-linux-gnu", or "" */
};

/* Of an extension: "foo.cpython-313t-x86_64-linux-gnu.so", "foo.cp313t-win_amd64.pyd". */
struct cli_abi cli_abi_of(const char *path);
bool cli_is_abi3(const char *path); /* "foo.abi3.so" */

/* Of a libpython: "libpython3.13t.so.1.0", "python313t.dll"; major is 0 for any other name. */
struct cli_abi cli_abi_of_libpython(const char *path);

/* Reads the library's id, which tells the version even if the file is named "libpython3.so".  0, or
 * the error of exti_inspect. */
int cli_libpython_abi(const char *path, struct cli_abi *out, struct exti_error *err);

/* Whether a file built for `want` works with `have`; an unknown version fits any. */
bool cli_abi_fits(const struct cli_abi *want, const struct cli_abi *have);

/* Whether version and flags are equal. */
bool cli_abi_equal(const struct cli_abi *a, const struct cli_abi *b);

#endif
