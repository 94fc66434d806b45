/* This interpreter's objects, as a table of links reaches them. */
#ifndef BINDINGS_PYTHON_EXT_NATIVES_H
#define BINDINGS_PYTHON_EXT_NATIVES_H

#include <extisolate/link.h>

/* Opens a table of which the words are handles (object.h).  With the GIL, as what uses it. */
int pkg_natives_open(struct exti_links **out);

#endif
