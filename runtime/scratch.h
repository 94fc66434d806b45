/* A private directory that disappears with the process. */
#ifndef RUNTIME_SCRATCH_H
#define RUNTIME_SCRATCH_H

#include <extisolate.h>

/* A fresh directory in TMPDIR or /tmp that disappears with this process, however it ends: a helper
 * process waits for that.  Only a SIGKILL that reaches the helper too leaves the directory behind.
 * Before any thread starts. */
struct pyrt_scratch;
int pyrt_scratch_new(struct pyrt_scratch **out, struct exti_error *err);
const char *pyrt_scratch_path(const struct pyrt_scratch *s);
/* Removes the directory and waits until it is gone.  NULL ok. */
void pyrt_scratch_free(struct pyrt_scratch *s);

#endif
