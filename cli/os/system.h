/* What the program asks of the system beyond C11 and the library, fulfilled by system_posix.c and
 * system_win32.c.  Paths and arguments are UTF-8 on Windows, whatever its code page is.  What fails
 * leaves errno set. */
#ifndef CLI_SYSTEM_H
#define CLI_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef _WIN32
#define CLI_SEPARATORS "\\/" /* between the names of a path, the usual one first */
#define CLI_NATIVE "PE"      /* the format, as exti_image_info tells it, of what runs here */
#define CLI_PYTHON "python"  /* on PATH */
#define CLI_PYTHON_OF_VERSION "py -%d.%d%s"
#define CLI_LIBRARY_DIRS "the folders of PATH"
#else
#define CLI_SEPARATORS "/"
#define CLI_NATIVE "ELF"
#define CLI_PYTHON "python3"
#define CLI_PYTHON_OF_VERSION "python%d.%d%s"
#define CLI_LIBRARY_DIRS "the linker's folders (/etc/ld.so.conf, /usr/lib and the like)"
#endif

/* First of all: the arguments as UTF-8, the standard streams as they are meant to be. */
bool cli_start(int *argc, char ***argv);

/* Whether `f` is a terminal that obeys escape sequences. */
bool cli_is_terminal(FILE *f);

struct cli_stat {
    bool is_dir, is_file; /* or neither: a device, a pipe */
    uint64_t size;
};
bool cli_stat(const char *path, struct cli_stat *out); /* of what a link leads to */
bool cli_exists(const char *path);                     /* a link that leads nowhere does */
bool cli_is_link(const char *path);                    /* whatever it leads to */

FILE *cli_open(const char *path); /* for reading bytes */
bool cli_remove_dir(const char *path);
bool cli_make_dir(const char *path);   /* one that is there will do */
char *cli_full_path(const char *path); /* without links where there are any; to be freed */

size_t cli_processors(void); /* at least 1 */

/* What a folder says of its names, which takes no look at the files. */
enum cli_type {
    CLI_TYPE_UNKNOWN, /* a link, say; cli_stat tells */
    CLI_TYPE_FILE,
    CLI_TYPE_DIR
};
typedef bool (*cli_name_fn)(void *user, const char *name, enum cli_type type);

/* Calls `each` with every name in `dir` but . and .. until it returns false. */
bool cli_each_name(const char *dir, cli_name_fn each, void *user);

/* Calls `each` with the folders where the system looks for libraries until it returns true, which is
 * passed on.  `from` is the variable of the environment that names the folder, if one for this alone
 * does. */
bool cli_each_library_dir(bool (*each)(void *user, const char *dir, const char *from), void *user);

/* Runs a program of PATH that gets no input and whose messages nobody sees, and takes what it prints.
 * False if there is none such, if it fails, takes longer than `ms` or prints `cap` bytes or more. */
bool cli_run_program(char *const *argv, int ms, char *out, size_t cap, size_t *n);

#endif
