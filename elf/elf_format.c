#include "elf/elf_format.h"

#include <string.h>

#include "elf/check/elf_check.h"
#include "elf/edit/elf_plan.h"
#include "elf/read/elf_image.h"
#include "elf/read/elf_open.h"
#include "elf/read/elf_unread.h"

static bool has_elf_magic(struct exti_span file)
{
    return file.n >= SELFMAG && memcmp(file.p, ELFMAG, SELFMAG) == 0;
}

int exti__elf_program_rpath(struct exti_span file, const char **out, struct exti_error *err)
{
    const GElf_Dyn *rpath;
    struct elf_file f;
    int rc = exti__elf_open_program(file, &f, err);

    if (rc)
        return rc;
    *out = NULL;
    rpath = exti__elf_tag(&f, DT_RUNPATH) ? NULL : exti__elf_tag(&f, DT_RPATH);
    if (rpath)
        rc = exti__elf_string(&f, rpath->d_un.d_val, "DT_RPATH", out, err);
    exti__elf_close(&f);
    return rc;
}

const struct exti_format_ops exti__elf_format = {
    .format = EXTI_FORMAT_ELF,
    .probe = has_elf_magic,
    .read = exti__elf_read,
    .plan = exti__elf_plan,
    .check = exti__elf_check,
    .unread = &exti__elf_unread,
};
