/* From the path that a caller gives to the file that is copied. */
#ifndef LOADER_STORE_STORE_TRACE_H
#define LOADER_STORE_STORE_TRACE_H

#include "loader/store/store.h"

/* The pristine file behind `path`, for exti__free: itself without links or, when it is a copy in
 * some context directory, that copy's source.  Copies are never copied again.  Takes the mutex. */
int exti__store_trace(struct exti_store *s, const char *path, char **out, struct exti_error *err);

/* The folder of the last path traced, if no context's: as it was given and without links.  Saves
 * look-ups for many files that follow each other folder by folder.  Zeroed to begin with. */
struct exti_tracer {
    char *given, *real; /* owned; each ends in a slash */
};
int exti__store_trace_next(struct exti_store *s, struct exti_tracer *t, const char *path,
                           char **out, struct exti_error *err);
void exti__tracer_end(struct exti_tracer *t);

/* Makes an error about the file `real` name it as the caller did, `original`. */
void exti__error_name_original(const char *original, const char *real, struct exti_error *err);

#endif
