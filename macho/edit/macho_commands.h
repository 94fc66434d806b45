/* The load commands of a copy while they are edited: shared by macho_commands.c, macho_needed.c,
 * macho_paths.c and macho_room.c alone. */
#ifndef MACHO_EDIT_MACHO_COMMANDS_H
#define MACHO_EDIT_MACHO_COMMANDS_H

#include "macho/read/macho_priv.h"

struct macho_item {
    uint32_t cmd;
    struct exti_span old;   /* as the file has it; n 0: a new command */
    const char *was;        /* the old name of a library or path; NULL: new, or another kind */
    const char *text;       /* its name now */
    size_t ordinal;         /* of a library that the file has, from 1; else 0 */
    bool removed;           /* by an edit */
    bool dropped, no_tools; /* for the room: left out; LC_BUILD_VERSION without its tools */
};

struct macho_edit {
    struct macho_build *b;
    struct macho_item *items;
    size_t count, cap;
    char **owned; /* strings made on the way */
    size_t owned_count, owned_cap;
};

bool exti__macho_is_library(uint32_t cmd);

/* macho_commands.c */
int exti__macho_insert(struct macho_edit *e, size_t at, struct macho_item item,
                       struct exti_error *err);
/* Hands `text` over to the edit; NULL is EXTI_E_NOMEM. */
int exti__macho_own(struct macho_edit *e, char *text, struct exti_error *err);
uint64_t exti__macho_item_size(const struct macho_item *item);
/* The library called `name` in the new list; NULL: none. */
struct macho_item *exti__macho_library(const struct macho_edit *e, const char *name);

/* macho_needed.c: the libraries. */
int exti__macho_edit_needed(struct macho_edit *e, struct exti_error *err);

/* macho_paths.c: LC_RPATH; and a name's @loader_path made to mean the original's folder. */
int exti__macho_edit_paths(struct macho_edit *e, struct exti_error *err);
int exti__macho_translate(struct macho_edit *e, const char **text, struct exti_error *err);

/* macho_room.c: makes the commands fit, or plans the shift. */
int exti__macho_make_room(struct macho_edit *e, struct exti_error *err);

#endif
