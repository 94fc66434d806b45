/* Load commands: their names and sizes, and errors that name them. */
#include "macho/read/macho_command.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "macho/read/macho_withheld.h"

/* dyld checks the sizes of most of these (UnsafeHeader::validStructureLoadCommands). */
static const struct macho_command_rule rules[] = {
    {LC_SEGMENT, "LC_SEGMENT", 56, false, COMMAND_32_BIT},
    {LC_SYMTAB, "LC_SYMTAB", SYMTAB_COMMAND_SIZE, true, COMMAND_PIECES},
    {LC_THREAD, "LC_THREAD", 16, false, COMMAND_PLAIN},
    {LC_UNIXTHREAD, "LC_UNIXTHREAD", 16, false, COMMAND_PLAIN},
    {LC_DYSYMTAB, "LC_DYSYMTAB", DYSYMTAB_COMMAND_SIZE, true, COMMAND_PIECES},
    {LC_LOAD_DYLIB, "LC_LOAD_DYLIB", DYLIB_COMMAND_SIZE, false, COMMAND_DYLIB},
    {LC_ID_DYLIB, "LC_ID_DYLIB", DYLIB_COMMAND_SIZE, false, COMMAND_ID},
    {LC_LOAD_DYLINKER, "LC_LOAD_DYLINKER", 12, false, COMMAND_STRING},
    {LC_ID_DYLINKER, "LC_ID_DYLINKER", 12, false, COMMAND_STRING},
    {LC_ROUTINES, "LC_ROUTINES", 40, false, COMMAND_32_BIT},
    {LC_SUB_FRAMEWORK, "LC_SUB_FRAMEWORK", 12, false, COMMAND_STRING},
    {LC_SUB_UMBRELLA, "LC_SUB_UMBRELLA", 12, false, COMMAND_STRING},
    {LC_SUB_CLIENT, "LC_SUB_CLIENT", 12, false, COMMAND_STRING},
    {LC_SUB_LIBRARY, "LC_SUB_LIBRARY", 12, false, COMMAND_STRING},
    {LC_TWOLEVEL_HINTS, "LC_TWOLEVEL_HINTS", 16, true, COMMAND_PIECES},
    {LC_PREBIND_CKSUM, "LC_PREBIND_CKSUM", 12, false, COMMAND_PLAIN},
    {LC_LOAD_WEAK_DYLIB, "LC_LOAD_WEAK_DYLIB", DYLIB_COMMAND_SIZE, false, COMMAND_DYLIB},
    {LC_SEGMENT_64, "LC_SEGMENT_64", SEGMENT_COMMAND_64_SIZE, false, COMMAND_SEGMENT},
    {LC_ROUTINES_64, "LC_ROUTINES_64", 72, true, COMMAND_PLAIN},
    {EXTI_LC_ROUTINES_64, "withheld LC_ROUTINES_64", 72, true, COMMAND_PLAIN},
    {LC_UUID, "LC_UUID", 24, true, COMMAND_UUID},
    {LC_RPATH, "LC_RPATH", RPATH_COMMAND_SIZE, false, COMMAND_RPATH},
    {LC_CODE_SIGNATURE, "LC_CODE_SIGNATURE", LINKEDIT_DATA_COMMAND_SIZE, true, COMMAND_PIECES},
    {LC_SEGMENT_SPLIT_INFO, "LC_SEGMENT_SPLIT_INFO", LINKEDIT_DATA_COMMAND_SIZE, true,
     COMMAND_PIECES},
    {LC_REEXPORT_DYLIB, "LC_REEXPORT_DYLIB", DYLIB_COMMAND_SIZE, false, COMMAND_DYLIB},
    {LC_LAZY_LOAD_DYLIB, "LC_LAZY_LOAD_DYLIB", DYLIB_COMMAND_SIZE, false, COMMAND_REFUSED},
    {LC_ENCRYPTION_INFO, "LC_ENCRYPTION_INFO", 20, false, COMMAND_ENCRYPTION},
    {LC_DYLD_INFO, "LC_DYLD_INFO", DYLD_INFO_COMMAND_SIZE, true, COMMAND_PIECES},
    {LC_DYLD_INFO_ONLY, "LC_DYLD_INFO_ONLY", DYLD_INFO_COMMAND_SIZE, true, COMMAND_PIECES},
    {LC_LOAD_UPWARD_DYLIB, "LC_LOAD_UPWARD_DYLIB", DYLIB_COMMAND_SIZE, false, COMMAND_DYLIB},
    {LC_VERSION_MIN_MACOSX, "LC_VERSION_MIN_MACOSX", 16, true, COMMAND_VERSION_MIN},
    {LC_VERSION_MIN_IPHONEOS, "LC_VERSION_MIN_IPHONEOS", 16, true, COMMAND_VERSION_MIN},
    {LC_FUNCTION_STARTS, "LC_FUNCTION_STARTS", LINKEDIT_DATA_COMMAND_SIZE, true, COMMAND_PIECES},
    {LC_DYLD_ENVIRONMENT, "LC_DYLD_ENVIRONMENT", 12, false, COMMAND_STRING},
    {LC_MAIN, "LC_MAIN", 24, true, COMMAND_PLAIN},
    {LC_DATA_IN_CODE, "LC_DATA_IN_CODE", LINKEDIT_DATA_COMMAND_SIZE, true, COMMAND_PIECES},
    {LC_SOURCE_VERSION, "LC_SOURCE_VERSION", 16, true, COMMAND_PLAIN},
    {LC_DYLIB_CODE_SIGN_DRS, "LC_DYLIB_CODE_SIGN_DRS", LINKEDIT_DATA_COMMAND_SIZE, true,
     COMMAND_PIECES},
    {LC_ENCRYPTION_INFO_64, "LC_ENCRYPTION_INFO_64", 24, true, COMMAND_ENCRYPTION},
    {LC_LINKER_OPTION, "LC_LINKER_OPTION", 12, false, COMMAND_PLAIN},
    {LC_LINKER_OPTIMIZATION_HINT, "LC_LINKER_OPTIMIZATION_HINT", LINKEDIT_DATA_COMMAND_SIZE, true,
     COMMAND_PIECES},
    {LC_VERSION_MIN_TVOS, "LC_VERSION_MIN_TVOS", 16, true, COMMAND_VERSION_MIN},
    {LC_VERSION_MIN_WATCHOS, "LC_VERSION_MIN_WATCHOS", 16, true, COMMAND_VERSION_MIN},
    {LC_NOTE, "LC_NOTE", 40, true, COMMAND_REFUSED},
    {LC_BUILD_VERSION, "LC_BUILD_VERSION", 24, false, COMMAND_BUILD_VERSION},
    {LC_DYLD_EXPORTS_TRIE, "LC_DYLD_EXPORTS_TRIE", LINKEDIT_DATA_COMMAND_SIZE, true,
     COMMAND_PIECES},
    {LC_DYLD_CHAINED_FIXUPS, "LC_DYLD_CHAINED_FIXUPS", LINKEDIT_DATA_COMMAND_SIZE, true,
     COMMAND_PIECES},
    {LC_FILESET_ENTRY, "LC_FILESET_ENTRY", 32, false, COMMAND_REFUSED},
    {LC_ATOM_INFO, "LC_ATOM_INFO", LINKEDIT_DATA_COMMAND_SIZE, true, COMMAND_PIECES},
    {LC_FUNCTION_VARIANTS, "LC_FUNCTION_VARIANTS", LINKEDIT_DATA_COMMAND_SIZE, true,
     COMMAND_PIECES},
    {LC_FUNCTION_VARIANT_FIXUPS, "LC_FUNCTION_VARIANT_FIXUPS", LINKEDIT_DATA_COMMAND_SIZE, true,
     COMMAND_PIECES},
    {LC_TARGET_TRIPLE, "LC_TARGET_TRIPLE", 12, false, COMMAND_STRING},
    {LC_LAZY_LOAD_DYLIB_INFO, "LC_LAZY_LOAD_DYLIB_INFO", LINKEDIT_DATA_COMMAND_SIZE, true,
     COMMAND_REFUSED},
};

const struct macho_command_rule *exti__macho_command_rule(uint32_t cmd)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].cmd == cmd)
            return &rules[i];
    return NULL;
}

struct macho_name exti__macho_name(const struct macho_file *f, size_t i)
{
    const struct macho_command_rule *known = exti__macho_command_rule(f->commands[i].cmd);
    struct macho_name name;
    int n;

    if (known)
        n = snprintf(name.text, sizeof name.text, "%s %zu", known->name, i);
    else
        n = snprintf(name.text, sizeof name.text, "load command 0x%" PRIx32 " %zu",
                     f->commands[i].cmd, i);
    for (size_t k = 0; k < f->segment_count; k++)
        if (f->segments[k].command == i)
            snprintf(name.text + n, sizeof name.text - (size_t)n, " %s", f->segments[k].name);
    return name;
}

int exti__macho_fail(const struct macho_file *f, size_t i, uint32_t at, int code,
                     struct exti_error *err, const char *fmt, ...)
{
    char what[256];
    uint64_t offset = f->file.base + at;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (i == MACHO_HEADER)
        return exti__fail(err, code, offset, "Mach-O header: %s", what);
    return exti__fail(err, code, f->commands[i].s.base + at, "%s: %s", exti__macho_name(f, i).text,
                      what);
}

uint32_t exti__macho_field(const struct macho_file *f, size_t i, uint32_t at)
{
    struct exti_cur c = exti__cur(f->commands[i].s, false);

    exti__cur_skip(&c, at);
    return exti__cur_u32(&c);
}
