/* A private directory that disappears with the process. */
#ifndef RUNTIME_SCRATCH_H
#define RUNTIME_SCRATCH_H

#include <extisolate.h>

/* Makes a new directory in TMPDIR or /tmp.  A helper process removes it when this process ends, in
 * whatever way; only a SIGKILL that hits the helper too leaves it behind.  Call it before any
 * thread starts. */
struct pyrt_scratch;
int pyrt_scratch_new(struct pyrt_scratch **out, struct exti_error *err);
const char *pyrt_scratch_path(const struct pyrt_scratch *s);
/* Removes the directory and waits until it is gone.  NULL ok. */
void pyrt_scratch_free(struct pyrt_scratch *s);

#endif
