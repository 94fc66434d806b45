/* Contexts of the system's CPython for tests of the public header <extisolate/python.h>. */
#ifndef TESTS_PYTHON_SUPPORT_HOST_H
#define TESTS_PYTHON_SUPPORT_HOST_H

#include "tests/support/exti_test.h"
#include <extisolate/python.h>

/* The interpreter that EXTI_PYTHON names, or the system's; found once.  Skips the test if there is
 * none that can be run in contexts. */
const struct extipy_python *host_python(void);

/* Opens a context; on any error fails the test. */
struct extipy_ctx *host_open(void);
/* Closes it, and fails the test unless all is unloaded and no thread was attached. */
void host_close(struct extipy_ctx *c);

/* Looks up a function of the context's libpython, and stores its address in `slot`. */
void host_symbol(struct extipy_ctx *c, const char *name, void *slot);

/* Enters, runs the source in __main__, and leaves.  Fails the test if it raises. */
void host_run(struct extipy_ctx *c, const char *source);
/* Runs the source on a thread that is inside.  Returns 0, or -1 after an exception, which Python
 * prints. */
int host_run_inside(struct extipy_ctx *c, const char *source);
/* Enters, evaluates the expression, an int, and leaves. */
long host_long(struct extipy_ctx *c, const char *expression);

/* Ends the program, with a message, if a call failed.  For threads other than the test's own, which
 * may not jump out of it. */
void host_must(int rc);

/* Submits function(n) of __main__; on any error ends the program. */
struct extipy_job *host_submit(struct extipy_ctx *c, const char *function, long n,
                               const struct extipy_job_opts *opts);
/* Waits for the job, and gives its code; *out, unless that is NULL, gets its result if it is an
 * int.  Releases the job. */
int host_end(struct extipy_job *job, long *out);

/* Defines block(n) in __main__, which waits, without the GIL, until host_unblock is called, and
 * returns n.  One thread at a time may be in it. */
void host_define_block(struct extipy_ctx *c);
void host_await_blocked(void); /* until a thread is in it */
void host_unblock(void);

/* The address of a function as a decimal number, for ctypes. */
#define host_address(f) ((unsigned long)(uintptr_t)(f))

#endif
