#include "pe/pe_format.h"

#include "base/span.h"
#include "pe/check/pe_check.h"
#include "pe/edit/pe_plan.h"
#include "pe/read/pe_defs.h"
#include "pe/read/pe_image.h"

static bool probe_pe(struct exti_span file)
{
    struct exti_cur c = exti__cur(file, false);

    return exti__cur_u16(&c) == IMAGE_DOS_SIGNATURE;
}

const struct exti_format_ops exti__pe_format = {
    .format = EXTI_FORMAT_PE,
    .probe = probe_pe,
    .read = exti__pe_read,
    .plan = exti__pe_plan,
    .check = exti__pe_check,
};
