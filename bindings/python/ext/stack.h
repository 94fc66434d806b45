/* How much of its stack a thread has left. */
#ifndef BINDINGS_PYTHON_EXT_STACK_H
#define BINDINGS_PYTHON_EXT_STACK_H

/* Whether less than a quarter is left, which the interpreter that is called next may need for
 * itself: each counts its own frames alone, and so many of them end the process before one says
 * that the recursion is too deep.  0 on a stack that is not the thread's own. */
int pkg_stack_is_low(void);

#endif
