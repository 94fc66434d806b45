/* This room is what the program needs of the operating system beyond C11 and the library, in
 * system_posix.c and system_win32.c; it uses no other room.  On Windows, paths and arguments are
 * UTF-8 whatever the code page.  Functions that fail leave errno set. */
#ifndef CLI_SYSTEM_H
#define CLI_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef _WIN32
#define CLI_SEPARATORS "\\/" /* between the names in a path, the usual one first */
#define CLI_NATIVE "PE"      /* exti_image_info.format of programs that run here */
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

/* Converts the arguments to UTF-8 and sets up the standard streams; call it first.  False when out
 * of memory. */
bool cli_start(int *argc, char ***argv);

/* Opens the standard streams that are closed, so that none of the files opened later takes what
 * is meant for them.  Reading and writing fail all the same. */
void cli_hold_streams(void);

/* Keeps freed memory for what is allocated next: for commands that read many files and end soon. */
void cli_keep_memory(void);

/* Whether `f` is a terminal that obeys escape sequences. */
bool cli_is_terminal(FILE *f);

struct cli_stat {
    bool is_dir, is_file; /* neither for a device or a pipe */
    uint64_t size;        /* in bytes */
};
bool cli_stat(const char *path, struct cli_stat *out); /* follows symbolic links */
/* True for a dangling link too, and where only a permission or an error hides the answer. */
bool cli_exists(const char *path);
bool cli_is_link(const char *path);

FILE *cli_open(const char *path); /* to read bytes */
bool cli_remove_dir(const char *path);
/* Nobody else may write to it; succeeds if it exists.  `sync`: its name survives a power loss. */
bool cli_make_dir(const char *path, bool sync);
char *cli_full_path(const char *path); /* absolute, links resolved; the caller frees it */

size_t cli_processors(void); /* at least 1 */

/* What a directory entry tells without a look at the file. */
enum cli_type {
    CLI_TYPE_UNKNOWN, /* a symbolic link, for example; ask cli_stat */
    CLI_TYPE_FILE,
    CLI_TYPE_DIR
};
typedef bool (*cli_name_fn)(void *user, const char *name, enum cli_type type);

/* Calls `each` with every name in `dir` except . and .. until it returns false.  Returns false if
 * `dir` cannot be read, or not to its end. */
bool cli_each_name(const char *dir, cli_name_fn each, void *user);

/* Calls `each` with the folders in which the system looks for libraries until it returns true;
 * returns whether it did.  `from` is "LD_LIBRARY_PATH" for a folder from there, else NULL. */
bool cli_each_library_dir(bool (*each)(void *user, const char *dir, const char *from), void *user);

/* Runs a program found on PATH, without input and with its stderr discarded, and reads its stdout
 * into out[0..*n).  False if there is no such program (errno is ENOENT, ENOTDIR or EACCES), and
 * with another errno if it cannot be started, fails, takes longer than `ms` milliseconds or prints
 * `cap` bytes or more. */
bool cli_run_program(char *const *argv, int ms, char *out, size_t cap, size_t *n);

#endif
