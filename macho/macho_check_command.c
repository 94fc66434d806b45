/* dyld's rules for load commands (mach_o/Header.cpp: validStructureLoadCommands and the
 * validSemantics functions beside it), with the SDK from which dyld applies them. */
#include <inttypes.h>
#include <string.h>

#include "macho/macho_check_priv.h"

static uint32_t field(const struct macho_command *cmd, size_t at)
{
    return at + 4 <= cmd->s.n ? exti__macho_u32(cmd->s.p + at) : 0;
}

/* ---- structure ------------------------------------------------------------------------------------- */

/* dyld refuses a command that it must understand and does not. */
static bool known_to_dyld(uint32_t cmd)
{
    switch (cmd) {
    case LC_LOAD_WEAK_DYLIB:
    case LC_RPATH:
    case LC_REEXPORT_DYLIB:
    case LC_DYLD_INFO_ONLY:
    case LC_LOAD_UPWARD_DYLIB:
    case LC_MAIN:
    case LC_DYLD_EXPORTS_TRIE:
    case LC_DYLD_CHAINED_FIXUPS:
    case LC_FILESET_ENTRY:
        return true;
    default:
        return !(cmd & LC_REQ_DYLD);
    }
}

/* The size that a command must have; 0: any. */
static uint64_t exact_size(const struct macho_command *cmd)
{
    switch (cmd->cmd) {
    case LC_SYMTAB:
        return SYMTAB_COMMAND_SIZE;
    case LC_DYSYMTAB:
        return DYSYMTAB_COMMAND_SIZE;
    case LC_DYLD_INFO:
    case LC_DYLD_INFO_ONLY:
        return DYLD_INFO_COMMAND_SIZE;
    case LC_UUID:
        return 24;
    case LC_VERSION_MIN_MACOSX:
    case LC_VERSION_MIN_IPHONEOS:
    case LC_VERSION_MIN_TVOS:
    case LC_VERSION_MIN_WATCHOS:
    case LC_SOURCE_VERSION:
        return 16;
    case LC_BUILD_VERSION:
        return 24 + (uint64_t)field(cmd, 20) * 8;
    case LC_SEGMENT_64:
        return SEGMENT_COMMAND_64_SIZE + (uint64_t)field(cmd, 64) * SECTION_64_SIZE;
    case LC_CODE_SIGNATURE:
    case LC_SEGMENT_SPLIT_INFO:
    case LC_FUNCTION_STARTS:
    case LC_DATA_IN_CODE:
    case LC_DYLIB_CODE_SIGN_DRS:
    case LC_LINKER_OPTIMIZATION_HINT:
    case LC_DYLD_EXPORTS_TRIE:
    case LC_DYLD_CHAINED_FIXUPS:
    case LC_ATOM_INFO:
    case LC_FUNCTION_VARIANTS:
    case LC_FUNCTION_VARIANT_FIXUPS:
        return LINKEDIT_DATA_COMMAND_SIZE;
    default:
        return 0;
    }
}

static bool has_string(uint32_t cmd)
{
    switch (cmd) {
    case LC_ID_DYLIB:
    case LC_LOAD_DYLIB:
    case LC_LOAD_WEAK_DYLIB:
    case LC_REEXPORT_DYLIB:
    case LC_LOAD_UPWARD_DYLIB:
    case LC_RPATH:
    case LC_SUB_FRAMEWORK:
    case LC_SUB_UMBRELLA:
    case LC_SUB_CLIENT:
    case LC_SUB_LIBRARY:
        return true;
    default:
        return false;
    }
}

int exti__macho_rule_structure(struct macho_check *c, const struct macho_file *f,
                               struct exti_error *err)
{
    (void)err;
    for (size_t i = 0; i < f->command_count; i++) {
        const struct macho_command *cmd = &f->commands[i];
        const uint64_t size = exact_size(cmd);
        const uint32_t text = field(cmd, 8);

        if (!known_to_dyld(cmd->cmd))
            exti__macho_broken(c, f, cmd->at, "",
                               "dyld validStructureLoadCommands: unknown command 0x%x that dyld "
                               "must understand",
                               cmd->cmd);
        if (size && cmd->s.n != size)
            exti__macho_broken(c, f, cmd->at, "",
                               "dyld validStructureLoadCommands: command 0x%x has %zu bytes, not "
                               "%" PRIu64,
                               cmd->cmd, cmd->s.n, size);
        if (cmd->s.n % 8)
            exti__macho_broken(c, f, cmd->at, "", "command 0x%x: cmdsize %zu is no multiple of 8",
                               cmd->cmd, cmd->s.n);
        if (has_string(cmd->cmd) &&
            (text < 12 || text >= cmd->s.n || !memchr(cmd->s.p + text, 0, cmd->s.n - text)))
            exti__macho_broken(c, f, cmd->at, "",
                               "dyld validStructureLoadCommands: command 0x%x: its string at %u "
                               "does not end within its %zu bytes",
                               cmd->cmd, text, cmd->s.n);
    }
    return 0;
}

/* ---- identity: platform, UUID, install name -------------------------------------------------------- */

static size_t count_of(const struct macho_file *f, uint32_t cmd)
{
    size_t n = 0;

    for (size_t i = 0; i < f->command_count; i++)
        n += f->commands[i].cmd == cmd;
    return n;
}

int exti__macho_rule_identity(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err)
{
    const size_t uuids = count_of(f, LC_UUID), ids = count_of(f, LC_ID_DYLIB);

    (void)err;
    for (size_t i = 0; i < f->command_count; i++) {
        const uint32_t platform = field(&f->commands[i], 8);

        if (f->commands[i].cmd == LC_BUILD_VERSION && (platform == 0 || platform > 24))
            exti__macho_broken(c, f, f->commands[i].at, "",
                               "dyld validSemanticsPlatform: unknown platform %u", platform);
    }
    if (uuids > 1)
        exti__macho_broken(c, f, EXTI_NO_OFFSET, "", "dyld validSemanticsUUID: %zu LC_UUIDs, not 1",
                           uuids);
    if (!uuids && exti__macho_gate(f, MACHO_SDK(12, 0)))
        exti__macho_broken(c, f, EXTI_NO_OFFSET, "",
                           "dyld validSemanticsUUID (SDK 12.0 and later): no LC_UUID");
    if (f->filetype == MH_DYLIB && ids != 1)
        exti__macho_broken(c, f, EXTI_NO_OFFSET, "",
                           "dyld validSemanticsInstallName: %zu LC_ID_DYLIBs in an MH_DYLIB, not 1",
                           ids);
    if (f->filetype != MH_DYLIB && ids)
        exti__macho_broken(c, f, EXTI_NO_OFFSET, "",
                           "dyld validSemanticsInstallName: LC_ID_DYLIB in a file that is no "
                           "MH_DYLIB");
    return 0;
}

/* ---- dependencies and search paths ----------------------------------------------------------------- */

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
