/* A descriptor of our own for a file that a copy has open.  Linux. */
#ifndef LOADER_TRACK_KEPT_FILE_H
#define LOADER_TRACK_KEPT_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

struct exti_kept_file {
    dev_t dev;
    ino_t ino;
    int fd;
    int mode; /* O_RDONLY, O_WRONLY or O_RDWR */
};

/* Whether the file of `fd` is the same.  False too if `fd` is not open. */
bool exti__kept_file_is(const struct exti_kept_file *f, int fd);

/* Opens another description of the file that `fd` has open in the access mode `mode` and that `st`
 * describes: for reading alone if `mode` is that, otherwise for writing and, if possible, reading.
 * Where that is impossible, the description is shared with `fd`.  Returns 0 or an errno. */
int exti__kept_file_open(struct exti_kept_file *f, int fd, int mode, const struct stat *st);

/* Whether closing the descriptor leaves the process the locks that it has on the file itself, those
 * of the program or of a shared library for example.  True if it is not open any more. */
bool exti__kept_file_can_close(const struct exti_kept_file *f);

/* Closes the descriptor, if it can. */
bool exti__kept_file_close(const struct exti_kept_file *f);

/* Moves the descriptor to another number; the old one stays open.  Returns 0 or an errno. */
int exti__kept_file_move(struct exti_kept_file *f);

#endif
