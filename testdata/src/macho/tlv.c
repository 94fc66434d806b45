/* Thread-local variables: initialised, zero, and larger than a register. */
static int check_tlv(void);
#define EXT_CHECK check_tlv()
#include "ext.h"

static __thread int forty_two = 42;
static __thread int zero;
static __thread struct {
    long a, b;
} pair = {1, 2};
__thread int ext_exported_tlv = 5;

static int check_tlv(void)
{
    MUST(pair.a == 1 && pair.b == 2);
    MUST(forty_two >= 42 && ext_exported_tlv == 5);
    return 0;
}

/* Counts calls on this thread; copies that share the variables would share the count. */
int ext_own(void)
{
    zero++;
    return ++forty_two - 42 == zero ? zero : -1;
}
