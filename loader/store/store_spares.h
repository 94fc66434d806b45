/* Spare files: copies by pattern whose contexts have ended.  A copy by the same pattern differs in
 * nothing but its context's name, so a spare file becomes the next context's.  That spares the
 * copying, and a file system the work of making one file and removing another: ext4 passes over
 * inodes that were freed just now, one by one.
 *
 * They are for one-shot directories alone, where nobody asks for a file's mode or group.  glibc
 * tells libraries apart by inode, and a forked child has the pages of its parent's mappings: only
 * files that nobody has mapped may be spare.  What fork(3) does not know of, as _Fork(3) and
 * clone(2), is not seen; such a child would see another context's name in a copy.  Any thread may
 * call these. */
#ifndef LOADER_STORE_STORE_SPARES_H
#define LOADER_STORE_STORE_SPARES_H

#include "loader/store/pattern.h"
#include "loader/store/store.h"

/* Call it once, before the others; 0 or an errno value.  At the end of the process no spare file is
 * left.  In a forked child, whose end may be no exit, nothing is spare. */
int exti__spares_prepare(void);

/* Takes over the folder and the entries of a store that is being closed, if it was one context's
 * alone and has copies by pattern, and no process was forked while it was open.  The folder is
 * removed later if the store would have removed it now.  False: it has nothing to spare. */
bool exti__spares_give(struct exti_store *s);

/* Makes a spare copy by `p` the file `path`, where there is none: with `bytes`, the pattern's for
 * the new name.  False: there is none, or it cannot be used. */
bool exti__spares_use(const struct exti_pattern *p, const char *path, const uint8_t *bytes);

/* Removes the oldest until no more than `most` folders are left. */
void exti__spares_trim(size_t most);

#endif
