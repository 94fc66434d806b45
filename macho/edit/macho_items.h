/* The load commands of a copy while they are edited. */
#ifndef MACHO_EDIT_MACHO_ITEMS_H
#define MACHO_EDIT_MACHO_ITEMS_H

#include "macho/edit/macho_build.h"

/* One load command. */
struct macho_item {
    uint32_t cmd;
    struct exti_span old;   /* as in the file; n 0: a new command */
    const char *was;        /* the old name of a library or path; NULL: new, or another kind */
    const char *text;       /* its name now */
    size_t ordinal;         /* of a library in the file, from 1; otherwise 0 */
    bool removed;           /* by an edit */
    bool dropped, no_tools; /* to make room: omitted; LC_BUILD_VERSION without its tools */
};

struct macho_edit {
    struct macho_build *b;
    struct macho_item *items;
    size_t count, cap;
    char **owned; /* strings that items point to */
    size_t owned_count, owned_cap;
};

/* Whether dyld numbers the command's library (mach_o/UnsafeHeader.cpp, forEachLinkedDylib). */
bool exti__macho_is_library(uint32_t cmd);

int exti__macho_insert(struct macho_edit *e, size_t at, struct macho_item item,
                       struct exti_error *err);

/* Takes ownership of `text`, also on failure; NULL is EXTI_E_NOMEM. */
int exti__macho_own(struct macho_edit *e, char *text, struct exti_error *err);

/* The library called `name` in the new list; NULL if there is none. */
struct macho_item *exti__macho_library(const struct macho_edit *e, const char *name);

/* Size of the command in the copy; 0 if the copy does not have it. */
uint64_t exti__macho_item_size(const struct macho_item *item);

/* Appends the command's bytes; those of a command that no edit changes are the file's. */
int exti__macho_put_item(const struct macho_item *item, struct exti_buf *out,
                         struct exti_error *err);

#endif
