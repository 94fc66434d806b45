#include "loader/store/target.h"

#include "base/error.h"
#include "loader/image/machines.h"

struct exti_target exti__target_of(const struct exti_image *im)
{
    struct exti_target t = {
        .format = im->format, .bits = im->info.bits, .big_endian = im->info.big_endian != 0};

    exti__machines_of(im, t.machine);
    return t;
}

int exti__target_check(const struct exti_target *wanted, const struct exti_image *im,
                       struct exti_error *err)
{
    const struct exti_target t = exti__target_of(im);

    if (t.format != wanted->format)
        return exti__fail(err, EXTI_E_UNSUPPORTED, 0,
                          "is %s; the context's API library is %s, for %s", im->info.format,
                          exti__format_name(wanted->format), wanted->machine);
    if (exti__machines_meet(t.machine, wanted->machine) && t.bits == wanted->bits &&
        t.big_endian == wanted->big_endian)
        return 0;
    return exti__fail(
        err, EXTI_E_UNSUPPORTED, 0,
        "is for %d-bit %s, %s-endian; the context's API library is for %d-bit %s, %s-endian",
        t.bits, t.machine, t.big_endian ? "big" : "little", wanted->bits, wanted->machine,
        wanted->big_endian ? "big" : "little");
}
