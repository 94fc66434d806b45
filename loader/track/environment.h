/* Environment variables of one context: what getenv, setenv and the like do, on a list of the
 * context's own.  As with the C library's, a value that a call has returned stays valid, and one
 * thread may read while another writes.  POSIX systems. */
#ifndef LOADER_TRACK_ENVIRONMENT_H
#define LOADER_TRACK_ENVIRONMENT_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/error.h"

struct exti_kept_list;

struct exti_environment {
    /* What copies see as `environ`, and may change and replace themselves. */
    char **list;
    atomic_uint changes; /* odd while a call takes an entry from the list */

    /* Guarded by the lock of all environments: */
    char **own; /* the list if the last call that added to it made it; else they differ */
    size_t room;
    struct exti_kept_list *lists; /* owned; all that were made, as threads may read them */
    void *texts;                  /* owned; a tree of all entries that were made: tsearch(3) */
};

/* Installs the fork handlers; 0 or an errno value.  To be called before any copy is loaded, whose
 * own may come here. */
int exti__environment_survive_forks(void);

/* Begins with a copy of the process's variables. */
int exti__environment_new(struct exti_environment **out, struct exti_error *err);
void exti__environment_free(struct exti_environment *e); /* NULL ok */

char *exti__environment_get(struct exti_environment *e, const char *name);

/* As the functions of the C library: -1 and errno if they fail. */
int exti__environment_set(struct exti_environment *e, const char *name, const char *value,
                          int overwrite);
int exti__environment_put(struct exti_environment *e, char *entry);
int exti__environment_unset(struct exti_environment *e, const char *name);
int exti__environment_clear(struct exti_environment *e);

#endif
