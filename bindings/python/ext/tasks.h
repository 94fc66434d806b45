/* The class TaskQueue: what the threads of an executor take their tasks from, with the interface of
 * queue.SimpleQueue as far as executors use it. */
#ifndef BINDINGS_PYTHON_EXT_TASKS_H
#define BINDINGS_PYTHON_EXT_TASKS_H

#include "bindings/python/ext/python.h"

/* Adds it to the module; -1: with an exception. */
int pkg_tasks_add(PyObject *module);

#endif
