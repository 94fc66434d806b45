/* For libelf: of the C libraries that it is built with, GNU's alone has it. */
#ifndef TDESTROY_H
#define TDESTROY_H

#include <search.h>

/* Whatever is looked for, the root is found. */
static inline int is_root(const void *key, const void *other)
{
    return (void)key, (void)other, 0;
}

static inline void tdestroy(void *root, void (*free_node)(void *))
{
    while (root) {
        void *key = *(void **)root;

        tdelete(key, &root, is_root);
        free_node(key);
    }
}

#endif
