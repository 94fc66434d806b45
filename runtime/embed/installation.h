/* What the handle of an installation holds. */
#ifndef RUNTIME_EMBED_INSTALLATION_H
#define RUNTIME_EMBED_INSTALLATION_H

#include "runtime/python.h"
#include <extisolate/python.h>

struct extipy_python {
    struct pyrt_install install;
};

#endif
