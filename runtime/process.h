/* What one process has once, set up for all its contexts. */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

/* What a stock interpreter does once to its process and a context must not: takes the LC_CTYPE
 * locale from the environment (PEP 538 coercion included) and ignores SIGPIPE and SIGXFSZ.  With
 * more than one context, BLAS thread pools get their share of the processors unless the environment
 * says otherwise.  Before any thread starts. */
void pyrt_process_setup(int contexts);

/* Non-zero if pyrt_process_setup found the C locale, which switches a stock interpreter to UTF-8
 * mode (PEP 540). */
int pyrt_process_utf8(void);

#endif
