/* Addends too large for some formats of chained imports: -DFAR=40000 makes format 2,
 * -DFAR=0x123456789 format 3. */
static int check_far(void);
#define EXT_CHECK check_far()
#include "ext.h"

static const char *volatile far_away = (const char *)_Py_Table + FAR;
static const char *volatile before = (const char *)_Py_Table - 8;

static int check_far(void)
{
    MUST(far_away == (const char *)Py_Address(1) + FAR);
    MUST(before == (const char *)Py_Address(1) - 8);
    if (FAR < sizeof _Py_Table)
        MUST(word((const char *)far_away) == 110);
    return 0;
}

static int own;

int ext_own(void)
{
    return ++own;
}
