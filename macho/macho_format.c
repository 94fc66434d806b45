#include "macho/macho_format.h"

#include "macho/check/macho_check.h"
#include "macho/edit/macho_plan.h"
#include "macho/read/macho_image.h"

/* Java class files have the same magic as universal files, with their version, which is at least
 * 45, in the place of nfat_arch. */
enum { FIRST_JAVA_VERSION = 45 };

static bool probe_macho(struct exti_span file)
{
    struct exti_cur c = exti__cur(file, true);
    uint32_t magic = exti__cur_u32(&c);

    switch (magic) {
    case MH_MAGIC:
    case MH_MAGIC_64:
    case MH_CIGAM:
    case MH_CIGAM_64:
    case FAT_MAGIC_64:
        return true;
    case FAT_MAGIC:
        return exti__cur_u32(&c) < FIRST_JAVA_VERSION;
    default:
        return false;
    }
}

const struct exti_format_ops exti__macho_format = {
    .format = EXTI_FORMAT_MACHO,
    .probe = probe_macho,
    .read = exti__macho_read,
    .plan = exti__macho_plan,
    .check = exti__macho_check,
};
