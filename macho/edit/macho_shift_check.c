/* What the page shift can move.  Everything else is refused, because an address that was missed
 * makes a copy that loads and fails later.
 *
 * Sections that need nothing beyond their rebases:
 *   __text, __stubs, __stub_helper   position independent; lazy binding offsets refer to the stream
 *   __const, __cstring, __literal*   data; jump tables and relative pointers hold distances
 *   __eh_frame, __gcc_except_tab     relative to the pc or to the function's start
 *   __objc_methlist, __objc_methname
 *                                    relative method lists hold distances to selector references
 *   __swift5_*, __constg_swiftt      relative pointers
 *   __info_plist, __LLVM,__bundle    text and bitcode
 *   __got, __la_symbol_ptr, __data, __mod_init_func, __mod_term_func, __cfstring, __objc_*,
 *   __interpose                      pointers that are bound or rebased
 *   __thread_vars, __thread_data     offsets in the thread-local template
 *   __data, __noptrdata of Go        moduledata's pointers are rebased; its function offsets count
 *                                    from runtime.text
 * Sections whose contents the shift edits: __init_offsets, __unwind_info. */
#include "macho/edit/macho_shift_check.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "macho/read/macho_arch.h"
#include "macho/read/macho_withheld.h"

#define S_DTRACE_DOF 0xfu
#define S_ATTR_DEBUG 0x02000000u
#define SG_NORELOC 0x4u
#define SHIFT_UNIT 0x4000u /* the larger of the two page sizes */

/* Load commands without addresses or file offsets, apart from those of pieces in __LINKEDIT. */
static bool is_known_command(uint32_t cmd)
{
    switch (cmd) {
    case LC_SEGMENT_64:
    case LC_SYMTAB:
    case LC_DYSYMTAB:
    case LC_LOAD_DYLIB:
    case LC_ID_DYLIB:
    case LC_LOAD_WEAK_DYLIB:
    case LC_REEXPORT_DYLIB:
    case LC_LOAD_UPWARD_DYLIB:
    case LC_SUB_FRAMEWORK:
    case LC_SUB_UMBRELLA:
    case LC_SUB_CLIENT:
    case LC_SUB_LIBRARY:
    case LC_RPATH:
    case LC_TWOLEVEL_HINTS:
    case LC_PREBIND_CKSUM:
    case LC_ROUTINES_64:
    case EXTI_LC_ROUTINES_64:
    case LC_UUID:
    case LC_CODE_SIGNATURE:
    case LC_SEGMENT_SPLIT_INFO:
    case LC_ENCRYPTION_INFO:
    case LC_ENCRYPTION_INFO_64:
    case LC_DYLD_INFO:
    case LC_DYLD_INFO_ONLY:
    case LC_VERSION_MIN_MACOSX:
    case LC_VERSION_MIN_IPHONEOS:
    case LC_VERSION_MIN_TVOS:
    case LC_VERSION_MIN_WATCHOS:
    case LC_FUNCTION_STARTS:
    case LC_DATA_IN_CODE:
    case LC_SOURCE_VERSION:
    case LC_DYLIB_CODE_SIGN_DRS:
    case LC_LINKER_OPTION:
    case LC_LINKER_OPTIMIZATION_HINT:
    case LC_BUILD_VERSION:
    case LC_DYLD_EXPORTS_TRIE:
    case LC_DYLD_CHAINED_FIXUPS:
    case LC_ATOM_INFO:
    case LC_FUNCTION_VARIANTS:
    case LC_FUNCTION_VARIANT_FIXUPS:
    case LC_TARGET_TRIPLE:
        return true;
    default:
        return false;
    }
}

/* Pieces whose addresses the shift does not update; only empty ones are accepted. */
static const struct {
    enum macho_piece_kind kind;
    const char *name;
} unmoved[] = {
    {MACHO_LOCAL_RELOCS, "local relocations"},
    {MACHO_EXTERNAL_RELOCS, "external relocations"},
    {MACHO_MODULES, "a module table"},
    {MACHO_OPTIMIZATION_HINT, "linker optimization hints"},
    {MACHO_ATOM_INFO, "atom info"},
    {MACHO_FUNCTION_VARIANTS, "function variants"},
    {MACHO_FUNCTION_VARIANT_FIXUPS, "function variants' fixups"},
};

static int check_command_moves(const struct macho_build *b, const struct macho_command *c,
                               struct exti_error *err)
{
    struct exti_cur cur = exti__cur(c->s, false);
    uint32_t cryptid;

    if (!is_known_command(c->cmd))
        return exti__fail(err, EXTI_E_UNSUPPORTED, b->f->file.base + c->at,
                          "load command 0x%" PRIx32 " cannot be moved", c->cmd);
    if (c->cmd != LC_ENCRYPTION_INFO && c->cmd != LC_ENCRYPTION_INFO_64)
        return 0;
    exti__cur_skip(&cur, 16);
    cryptid = exti__cur_u32(&cur);
    if (cryptid)
        return exti__fail(err, EXTI_E_UNSUPPORTED, b->f->file.base + c->at,
                          "an encrypted file cannot be moved");
    return exti__cur_end(&cur, "LC_ENCRYPTION_INFO", err);
}

static int check_section_moves(const struct macho_build *b, const struct macho_section *s,
                               struct exti_error *err)
{
    static const char *const from_image_start[] = {"__thread_starts", "__chain_starts"};
    const uint32_t type = s->flags & SECTION_TYPE;
    const uint64_t at = b->f->file.base + s->at;

    if (type > S_INIT_FUNC_OFFSETS || type == S_LAZY_DYLIB_SYMBOL_POINTERS || type == S_DTRACE_DOF)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "section %s,%s of type 0x%" PRIx32 " cannot be moved", s->segment,
                          s->name, type);
    if (s->flags & S_ATTR_DEBUG)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "section %s,%s has debugging information, which cannot be moved",
                          s->segment, s->name);
    if (s->nreloc)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "section %s,%s has relocations, which cannot be moved", s->segment,
                          s->name);
    for (size_t i = 0; i < sizeof from_image_start / sizeof *from_image_start; i++)
        if (!strcmp(s->name, from_image_start[i]))
            return exti__fail(err, EXTI_E_UNSUPPORTED, at, "section %s,%s cannot be moved",
                              s->segment, s->name);
    return 0;
}

/* All segments must follow __TEXT, which grows, and move together. */
static int check_segment_moves(const struct macho_build *b, const struct macho_segment *s,
                               struct exti_error *err)
{
    const struct macho_segment *text = b->f->text;
    const uint64_t at = b->f->file.base + b->f->commands[s->command].at;

    if (s->flags & ~(SG_NORELOC | SG_READ_ONLY))
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "segment %s with flags 0x%" PRIx32 " cannot be moved", s->name, s->flags);
    if (s == text)
        return 0;
    if (!strcmp(s->name, "__TEXT"))
        return exti__fail(err, EXTI_E_FORMAT, at, "a second segment __TEXT");
    if (s->vmaddr < text->vmaddr || s->vmaddr - text->vmaddr < text->vmsize)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "segment %s at 0x%" PRIx64 " does not follow __TEXT and cannot be moved",
                          s->name, s->vmaddr);
    if (s->filesize && s->fileoff < b->f->room_end)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "segment %s at offset 0x%" PRIx64
                          " does not follow the load commands and cannot be moved",
                          s->name, s->fileoff);
    return 0;
}

int exti__macho_shift_check(const struct macho_build *b, struct exti_error *err)
{
    const struct macho_file *f = b->f;
    int rc = 0;

    if (!b->shift || b->shift % SHIFT_UNIT)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "shift of 0x%" PRIx64 ", not a multiple of 0x%x", b->shift, SHIFT_UNIT);
    if (exti__macho_is_arm64e(f->cputype, f->cpusubtype))
        return exti__fail(err, EXTI_E_UNSUPPORTED, f->file.base,
                          "arm64e's signed pointers cannot be moved");
    for (size_t i = 0; !rc && i < f->command_count; i++)
        rc = check_command_moves(b, &f->commands[i], err);
    for (size_t i = 0; !rc && i < f->segment_count; i++)
        rc = check_segment_moves(b, &f->segments[i], err);
    for (size_t i = 0; !rc && i < f->section_count; i++)
        rc = check_section_moves(b, &f->sections[i], err);
    for (size_t i = 0; !rc && i < sizeof unmoved / sizeof *unmoved; i++) {
        const struct macho_piece *piece = &f->pieces[unmoved[i].kind];

        if (piece->s.n)
            rc = exti__fail(err, EXTI_E_UNSUPPORTED, piece->s.base, "%s cannot be moved",
                            unmoved[i].name);
    }
    return rc;
}
