/* Proof of isolation. */
#ifndef BINDINGS_PYTHON_EXT_PROOF_H
#define BINDINGS_PYTHON_EXT_PROOF_H

#include "bindings/python/ext/state.h"

/* prove(id) -> (modules, references, leaks, captured): what exti_ctx_prove examined and found, with
 * the interpreter's GIL held.  InterpreterError: it is the main interpreter, or not provable. */
PyObject *pkg_proof_prove(PyObject *module, PyObject *args);

#endif
