/* A library bundled with an extension; it uses libpython itself and has state. */
#include "pystub.h"

int helper_own(void);
int helper_modules(void);
int helper_state;

int helper_own(void)
{
    return ++helper_state;
}

int helper_modules(void)
{
    return Py_Modules + Py_Twice(0);
}
