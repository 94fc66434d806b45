/* Whose memory a context's reference leads to. */
#ifndef LOADER_LOAD_REFERENCE_TARGET_H
#define LOADER_LOAD_REFERENCE_TARGET_H

#include "loader/track/module.h"

enum exti_ref_target_kind {
    EXTI_TARGET_SHARED,   /* shared with the rest of the process */
    EXTI_TARGET_CONTEXT,  /* the context's own */
    EXTI_TARGET_FOREIGN,  /* another context's copy */
    EXTI_TARGET_ORIGINAL, /* the source of one of the context's copies */
    EXTI_TARGET_NAMESAKE  /* another file, with the SONAME of such a source */
};

/* A loaded file. */
struct exti_ref_target {
    enum exti_ref_target_kind kind;
    struct exti_loaded lib; /* no handle */
    struct exti_layout layout;
    struct exti_module copy; /* ORIGINAL, NAMESAKE: the context's copy; ctx NULL if not loaded */
};

/* The files that a context's references were found to lead to, so that each is looked up once.
 * Zeroed but for `ctx`.  One thread at a time; nothing may be unloaded meanwhile. */
struct exti_ref_targets {
    struct exti_ctx *ctx;
    struct exti_ref_target *list; /* owned; by ascending address */
    size_t count, cap;
};

/* Finds the file that a reference is bound into, valid until the next call.  *out is NULL if there
 * is none, or if the program has changed the reference since.  It is always NULL on macOS, where a
 * reference names the library that it is bound to. */
int exti__ref_target_find(struct exti_ref_targets *o, const struct exti_reference *ref,
                          const struct exti_ref_target **out, struct exti_error *err);

/* What the words of a reference's slot must hold to lead elsewhere; no words if it cannot. */
struct exti_ref_cure {
    uintptr_t words[2];
    size_t count;
};

/* For a reference of `lib` that is bound into `w`, an ORIGINAL or NAMESAKE: to the same symbol in
 * the context's copy.  No words if the copy lacks it or is not loaded, or if `lib` did not ask for
 * that library. */
int exti__ref_target_counterpart(const struct exti_ref_target *w, const struct exti_loaded *lib,
                                 const struct exti_reference *ref, struct exti_ref_cure *out,
                                 struct exti_error *err);

/* For a reference of `lib` that is bound into `w`, the program: to the symbol of the context that
 * it would be bound to if the program did not define it.  No words if there is none, or if `w` is
 * not the program or its definition is meant for the whole process. */
int exti__ref_target_own(const struct exti_ref_target *w, const struct exti_ctx *ctx,
                         const struct exti_loaded *lib, const struct exti_reference *ref,
                         struct exti_ref_cure *out, struct exti_error *err);

/* What `lib` is to get for the name of a thread-local variable, by which the system's loader has
 * found `variable`: that of the context's copy if it is an ORIGINAL's or a NAMESAKE's. */
void *exti__ref_target_variable(struct exti_ref_targets *o, const struct exti_loaded *lib,
                                const char *name, void *variable);

void exti__ref_targets_free(struct exti_ref_targets *o);

#endif
