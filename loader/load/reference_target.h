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
    bool judged, for_all;    /* SHARED: defines what it does for the whole process; once judged */
    const void *asker;       /* SHARED: the library that was last asked whether it needs this one */
    bool needed;             /* the answer */
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
                          struct exti_ref_target **out, struct exti_error *err);

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

/* What a reference means that leads elsewhere. */
struct exti_ref_meant {
    bool captured;             /* it does */
    bool own;                  /* it means the context's own copy */
    struct exti_loaded lib;    /* the library that it means; no handle */
    struct exti_ref_cure cure; /* leads it there if that is the context's, and it can be led */
};

/* For a reference of `lib` that is bound into `w`, which is SHARED.  The program, or a library that
 * is open globally, captures it if `lib` does not need that, but needs a library that defines the
 * symbol.  What means the whole process does not count: functions that allocate, symbols of the C
 * library, the C++ run-time library and the like, and whatever is preloaded; nor do variables of a
 * shared library that the program has copied (R_*_COPY), as the ABI has it. */
int exti__ref_target_meant(struct exti_ref_target *w, const struct exti_ctx *ctx,
                           const struct exti_loaded *lib, const struct exti_reference *ref,
                           struct exti_ref_meant *out, struct exti_error *err);

/* What `lib` is to get for the name of a thread-local variable, by which the system's loader has
 * found `variable`: that of the context's copy if it is an ORIGINAL's or a NAMESAKE's. */
void *exti__ref_target_variable(struct exti_ref_targets *o, const struct exti_loaded *lib,
                                const char *name, void *variable);

void exti__ref_targets_free(struct exti_ref_targets *o);

#endif
