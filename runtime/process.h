/* What one process has once, set up for all its contexts. */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

/* Does for the process what a stock interpreter does at its start and a context must not: takes the
 * LC_CTYPE locale from the environment (including PEP 538 coercion) and ignores SIGPIPE and
 * SIGXFSZ. With several contexts, it also divides the processors among the BLAS thread pools,
 * unless the environment sets their size.  Call it before any thread starts. */
void pyrt_process_setup(int contexts);

/* Non-zero if pyrt_process_setup found the C locale, which switches a stock interpreter to UTF-8
 * mode (PEP 540). */
int pyrt_process_utf8(void);

#endif
