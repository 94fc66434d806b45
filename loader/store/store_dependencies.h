/* The copies and shared libraries that opening one copy brings with it. */
#ifndef LOADER_STORE_STORE_DEPENDENCIES_H
#define LOADER_STORE_STORE_DEPENDENCIES_H

#include "loader/store/store.h"

/* All strings live as long as the store. */
struct exti_dependency {
    const char *source, *copy;
    bool symbolic;
    struct exti_file_id id;      /* the source's */
    struct exti_unread left_out; /* is to be mapped from it */
    size_t *needs;               /* owned; indices into the set, the firm ones first */
    size_t need_count; /* of these the copy does not load without the first `firm_count` */
    size_t firm_count;
    bool optional; /* the copy asked about loads without it */
};
struct exti_dependency_set {
    struct exti_dependency *copies; /* owned; the one asked about first, users before their needs */
    size_t count, cap;
    const char **shared; /* owned; files that are not copied */
    size_t shared_count, shared_cap;
};

/* The set for `source`, which has an up-to-date copy or is the API library.  Takes the mutex. */
int exti__store_dependencies(struct exti_store *s, const char *source,
                             struct exti_dependency_set *out, struct exti_error *err);
void exti__dependencies_free(struct exti_dependency_set *set);

#endif
