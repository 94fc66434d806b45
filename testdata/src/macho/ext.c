/* An ordinary extension in C. */
#include "ext.h"

static int own;

int ext_own(void)
{
    return ++own;
}
