/* Whose memory a reference of a context leads to. */
#ifndef LOADER_OWNER_H
#define LOADER_OWNER_H

#include "loader/track/module.h"

enum exti_ownership {
    EXTI_OWNER_ELSE,     /* shared with the rest of the process */
    EXTI_OWNER_CONTEXT,  /* the context's own */
    EXTI_OWNER_FOREIGN,  /* another context's copy */
    EXTI_OWNER_ORIGINAL, /* the file that one of the context's copies was made of */
    EXTI_OWNER_NAMESAKE  /* a file whose SONAME such an original has too */
};

/* A loaded file. */
struct exti_owner {
    enum exti_ownership kind;
    struct exti_loaded lib; /* no handle */
    struct exti_layout layout;
    struct exti_module
        copy; /* of an original or namesake, the context's; no ctx: it is not loaded */
};

/* Those that references of one context were found to lead to, so that each is looked up once.  One
 * thread at a time; nothing may be unloaded meanwhile. */
struct exti_owners {
    struct exti_ctx *ctx;
    struct exti_owner *list; /* owned; by ascending address */
    size_t count, cap;
};

/* The file that a reference is bound into; *out is NULL if it is no file's, or has been changed since,
 * and valid until the next call.  On macOS it always is: there a reference names the library that it is
 * bound to. */
int exti__owner_find(struct exti_owners *o, const struct exti_reference *ref,
                     const struct exti_owner **out, struct exti_error *err);

/* What a reference of `lib` that is bound into `w`, an original or its namesake, would be bound to in the
 * context's copy of that; 0: it has no such thing, or `lib` did not ask for it. */
uintptr_t exti__owner_counterpart(const struct exti_owner *w, const struct exti_loaded *lib,
                                  const struct exti_reference *ref);

/* What such a reference that is bound into `w` would be bound to if that, the program, did not define it: a
 * symbol of the context's.  0: none, or the program means it. */
uintptr_t exti__owner_own(const struct exti_owner *w, const struct exti_ctx *ctx,
                          const struct exti_loaded *lib, const struct exti_reference *ref);

void exti__owners_free(struct exti_owners *o);

#endif
