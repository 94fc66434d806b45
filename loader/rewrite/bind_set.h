/* The files that tell which symbols a copy's references may be bound to: opts.bind_file and the
 * libraries that it re-exports, for as long as they can be found. */
#ifndef LOADER_REWRITE_BIND_SET_H
#define LOADER_REWRITE_BIND_SET_H

#include "base/os/fs_map.h"
#include "base/span.h"

struct exti_bind_set {
    struct exti_mapping *files; /* owned */
    struct exti_span *spans;    /* owned; of the files' bytes */
    size_t count;
};

/* Maps `file` and, breadth first, the libraries that it and they re-export.  A missing one is
 * skipped, as macOS has no files for its own libraries.  `file` NULL gives an empty set. */
int exti__bind_set_open(struct exti_bind_set *out, const char *file, struct exti_error *err);
void exti__bind_set_close(struct exti_bind_set *set);

#endif
