/* Versions of files of which something is known, so that they need not be read again, and texts
 * likewise.  Any thread. */
#ifndef LOADER_IMAGE_FILE_MEMO_H
#define LOADER_IMAGE_FILE_MEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Known by hash, zeroed at first.  When more than EXTI_FILE_MEMO_WAYS files share their slots, one
 * drives out another.  When two share a hash, one passes for the other. */
enum { EXTI_FILE_MEMO_WAYS = 4 };
struct exti_file_memo {
    _Atomic uint64_t slots[512];
};

/* A hash of the file's path, inode and time of change; never 0. */
uint64_t exti__file_version(const char *path);

/* A hash of what `version` is one of and the text: what is known of the file depends on that,
 * too; never 0. */
uint64_t exti__file_version_with(uint64_t version, const char *text);

bool exti__file_memo_has(struct exti_file_memo *m, uint64_t version);
void exti__file_memo_add(struct exti_file_memo *m, uint64_t version);

#endif
