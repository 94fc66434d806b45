/* An extension that needs twenty other libraries first, so that their ordinals come first. */
static int check_many(void);
#define EXT_CHECK check_many()
#include "ext.h"

#define TEN(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10)
#define TEN_MORE(X) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20)
#define EACH(X) TEN(X) TEN_MORE(X)
#define DECLARE(n) int extra_##n(void);
#define CHECK(n) MUST(extra_##n() == n);

EACH(DECLARE)

static int check_many(void)
{
    EACH(CHECK)
    return 0;
}

static int own;

int ext_own(void)
{
    return ++own;
}
