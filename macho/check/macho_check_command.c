/* dyld's rules for load commands that exti__macho_open does not enforce (mach_o/Header.cpp: the
 * validSemantics functions), with the SDK from which dyld applies them.  A file that breaks
 * validStructureLoadCommands or validSemanticsInstallName cannot be opened. */
#include "macho/check/macho_check_command.h"

#include <string.h>

#include "macho/check/macho_check_report.h"

#define LAST_PLATFORM 24u /* the last one in mach-o/loader.h */

int exti__macho_rule_identity(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err)
{
    (void)err;
    for (size_t i = 0; i < f->command_count; i++)
        if (f->commands[i].cmd == LC_BUILD_VERSION && (!f->platform || f->platform > LAST_PLATFORM))
            exti__macho_broken(c, f, f->commands[i].at, "",
                               "dyld validSemanticsPlatform: unknown platform %u", f->platform);
    if (!f->uuid && exti__macho_gate(f, MACHO_SDK(12, 0)))
        exti__macho_broken(c, f, EXTI_NO_OFFSET, "",
                           "dyld validSemanticsUUID (SDK 12.0 and later): no LC_UUID");
    return 0;
}

/* ---- dependencies and search paths ----------------------------------------------------------- */

int exti__macho_rule_dylibs(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err)
{
    (void)err;
    if (!f->dylib_count && exti__macho_gate(f, MACHO_SDK(13, 0)))
        exti__macho_broken(
            c, f, EXTI_NO_OFFSET, "",
            "dyld validSemanticsLinkedDylibs (SDK 13.0 and later): no needed library");
    if (!exti__macho_gate(f, MACHO_SDK(26, 0)))
        return 0;
    for (size_t i = 0; i < f->dylib_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(f->dylibs[i].name, f->dylibs[j].name) == 0) {
                exti__macho_broken(c, f, f->commands[f->dylibs[i].command].at, f->dylibs[i].name,
                                   "dyld validSemanticsLinkedDylibs (SDK 26.0 and later): %s is "
                                   "needed twice",
                                   f->dylibs[i].name);
                break;
            }
    return 0;
}

int exti__macho_rule_rpaths(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err)
{
    (void)err;
    if (!exti__macho_gate(f, MACHO_SDK(26, 0)))
        return 0;
    for (size_t i = 0; i < f->rpath_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(f->rpaths[i], f->rpaths[j]) == 0) {
                exti__macho_broken(
                    c, f, EXTI_NO_OFFSET, f->rpaths[i],
                    "dyld validSemanticsRPath (SDK 26.0 and later): %s is searched twice",
                    f->rpaths[i]);
                break;
            }
    return 0;
}
