/* An extension with a private library. */
static int check_helper(void);
#define EXT_CHECK check_helper()
#include "ext.h"

int helper_own(void);
int helper_modules(void);
extern int helper_state;

static int *volatile state = &helper_state;

/* The helper must use our libpython. */
static int check_helper(void)
{
    MUST(helper_modules() == Py_Modules);
    MUST(state == &helper_state);
    return 0;
}

int ext_own(void)
{
    return helper_own() == *state ? *state : -1;
}
