/* Who can change files and folders.
 *
 * A file or folder can be trusted if it belongs to this process's effective user or to root, and
 * nobody else may write to it.  Write permission for a group is accepted if the group is the
 * owner's private one: the owner's primary group, with the owner's name and no other member.  Many
 * systems make such groups together with umask 002.  POSIX ACLs that let others write count,
 * because the mode shows them; ACLs of other kinds (NFSv4, macOS) are not looked at.
 *
 * On Windows everything is trusted. */
#ifndef BASE_OS_FS_OWNER_H
#define BASE_OS_FS_OWNER_H

#include <stdbool.h>

#include "base/os/fs_id.h"
#include <extisolate.h>

/* EXTI_E_TRUST, which names the folder or link at fault, unless the folder `path` can be trusted,
 * and the folders above it too: what lies above may also be sticky, as /tmp is, or belong to
 * whoever owns the root folder.  All links in the path are followed; they must belong to trusted
 * users, as must the folders that hold them. */
int exti__fs_check_folder(const char *path, struct exti_error *err);

/* EXTI_E_TRUST unless `path` is a file that can be trusted, and no link. */
int exti__fs_check_file(const char *path, struct exti_error *err);

/* Like exti__fs_id, but a link is EXTI_E_IO with os_error ELOOP.  *trusted: whether
 * exti__fs_check_file accepts the file. */
int exti__fs_own_id(const char *path, struct exti_file_id *out, bool *trusted,
                    struct exti_error *err);

#endif
