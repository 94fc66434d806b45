/* Whose memory a reference of a context leads to. */
#ifndef LOADER_LOAD_REFERENCE_TARGET_H
#define LOADER_LOAD_REFERENCE_TARGET_H

#include "loader/track/module.h"

enum exti_ref_target_kind {
    EXTI_TARGET_SHARED,   /* shared with the rest of the process */
    EXTI_TARGET_CONTEXT,  /* the context's own */
    EXTI_TARGET_FOREIGN,  /* another context's copy */
    EXTI_TARGET_ORIGINAL, /* the file that one of the context's copies was made of */
    EXTI_TARGET_NAMESAKE  /* a file whose SONAME such an original has too */
};

/* A loaded file. */
struct exti_ref_target {
    enum exti_ref_target_kind kind;
    struct exti_loaded lib; /* no handle */
    struct exti_layout layout;
    struct exti_module
        copy; /* of an original or namesake, the context's; no ctx: it is not loaded */
};

/* Those that references of one context were found to lead to, so that each is looked up once.  One
 * thread at a time; nothing may be unloaded meanwhile. */
struct exti_ref_targets {
    struct exti_ctx *ctx;
    struct exti_ref_target *list; /* owned; by ascending address */
    size_t count, cap;
};

/* The file that a reference is bound into; *out is NULL if it is no file's, or has been changed since,
 * and valid until the next call.  On macOS it always is: there a reference names the library that it is
 * bound to. */
int exti__ref_target_find(struct exti_ref_targets *o, const struct exti_reference *ref,
                          const struct exti_ref_target **out, struct exti_error *err);

/* What a reference of `lib` that is bound into `w`, an original or its namesake, would be bound to in the
 * context's copy of that; 0: it has no such thing, or `lib` did not ask for it. */
uintptr_t exti__ref_target_counterpart(const struct exti_ref_target *w,
                                       const struct exti_loaded *lib,
                                       const struct exti_reference *ref);

/* What such a reference that is bound into `w` would be bound to if that, the program, did not define it: a
 * symbol of the context's.  0: none, or the program means it. */
uintptr_t exti__ref_target_own(const struct exti_ref_target *w, const struct exti_ctx *ctx,
                               const struct exti_loaded *lib, const struct exti_reference *ref);

void exti__ref_targets_free(struct exti_ref_targets *o);

#endif
