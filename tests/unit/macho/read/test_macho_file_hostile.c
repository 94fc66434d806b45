/* Every corrupt field is reported, with its offset. */
#include "base/buf.h"
#include "tests/unit/macho/macho_corruption.h"

static void corrupt_headers_are_reported(void **state)
{
    struct fixture *f = *state;
    const struct corruption table[] = {
        {"Mach-O header: magic is 0x7f", 0, 4, 0x7f, EXTI_E_FORMAT, 0},
        {"magic is 0xbebafeca", 0, 4, 0xbebafeca, EXTI_E_FORMAT, 0},
        {"a 32-bit file", 0, 4, MH_MAGIC, EXTI_E_UNSUPPORTED, 0},
        {"a big-endian file", 0, 4, MH_CIGAM, EXTI_E_UNSUPPORTED, 0},
        {"a big-endian file", 0, 4, MH_CIGAM_64, EXTI_E_UNSUPPORTED, 0},
        {"for i386", 4, 4, CPU_TYPE_I386, EXTI_E_UNSUPPORTED, 4},
        {"for PowerPC64", 4, 4, CPU_TYPE_POWERPC64, EXTI_E_UNSUPPORTED, 4},
        {"for PowerPC ", 4, 4, CPU_TYPE_POWERPC, EXTI_E_UNSUPPORTED, 4},
        {"for arm ", 4, 4, CPU_TYPE_ARM, EXTI_E_UNSUPPORTED, 4},
        {"for arm64_32", 4, 4, CPU_TYPE_ARM64_32, EXTI_E_UNSUPPORTED, 4},
        {"for unknown", 4, 4, 0x01000077, EXTI_E_UNSUPPORTED, 4},
        {"cpusubtype 0x63", 8, 4, 0x63, EXTI_E_UNSUPPORTED, 4},
        {"an object file", 12, 4, 1, EXTI_E_UNSUPPORTED, 12},
        {"fixed virtual memory", 12, 4, 3, EXTI_E_UNSUPPORTED, 12},
        {"core dump", 12, 4, 4, EXTI_E_UNSUPPORTED, 12},
        {"preloaded program", 12, 4, 5, EXTI_E_UNSUPPORTED, 12},
        {"dynamic linker", 12, 4, 7, EXTI_E_UNSUPPORTED, 12},
        {"stub library", 12, 4, 9, EXTI_E_UNSUPPORTED, 12},
        {"dSYM", 12, 4, 10, EXTI_E_UNSUPPORTED, 12},
        {"a kernel extension", 12, 4, 11, EXTI_E_UNSUPPORTED, 12},
        {"set of kernel extensions", 12, 4, 12, EXTI_E_UNSUPPORTED, 12},
        {"unknown filetype 13", 12, 4, 13, EXTI_E_FORMAT, 12},
        {"unknown filetype 0", 12, 4, 0, EXTI_E_FORMAT, 12},
        {"do not fit", 16, 4, 0x10000, EXTI_E_FORMAT, 16},
        {"sizeofcmds is", 16, 4, 3, EXTI_E_FORMAT, 20},
        {"load commands: needs", 20, 4, 0x100000, EXTI_E_FORMAT, 32},
        {"do not fit", 20, 4, 8, EXTI_E_FORMAT, 16},
        {"LC_SEGMENT_64 0: cmdsize is 152", 20, 4, 17 * 8, EXTI_E_FORMAT, 36},
        {"shared cache", 24, 4, MH_DYLIB_IN_CACHE, EXTI_E_UNSUPPORTED, 24},
    };

    assert_corruptions(f, (struct macho_toy_opts){0}, table, ARRAY_SIZE(table));
    macho_toy_make(&f->toy, (struct macho_toy_opts){0});
    mtoy_put(&f->toy, 16, 4, f->toy.ncmds + 1);
    assert_exti(open_toy(f), EXTI_E_FORMAT, &f->err, 32 + mtoy_get(&f->toy, 20, 4));
    assert_says(&f->err, "load command: needs 8 bytes, 0 left");
}

/* No command may be smaller than its structure, and commands of fixed size must have that size. */
static void commands_of_wrong_size_are_reported(void **state)
{
    static const struct {
        uint32_t cmd, size; /* the command put in place of the toy's */
        const char *what;
    } table[] = {
        {LC_SYMTAB, 16, "LC_SYMTAB 7: cmdsize is 16, not 24"},
        {LC_DYSYMTAB, 16, "LC_DYSYMTAB 7: cmdsize is 16, not 80"},
        {LC_TWOLEVEL_HINTS, 24, "LC_TWOLEVEL_HINTS 7: cmdsize is 24, not 16"},
        {LC_ROUTINES_64, 16, "not 72"},
        {LC_UUID, 16, "not 24"},
        {LC_CODE_SIGNATURE, 24, "not 16"},
        {LC_SEGMENT_SPLIT_INFO, 24, "not 16"},
        {LC_DYLD_INFO, 16, "not 48"},
        {LC_DYLD_INFO_ONLY, 16, "not 48"},
        {LC_VERSION_MIN_MACOSX, 24, "not 16"},
        {LC_VERSION_MIN_IPHONEOS, 24, "not 16"},
        {LC_VERSION_MIN_TVOS, 24, "not 16"},
        {LC_VERSION_MIN_WATCHOS, 24, "not 16"},
        {LC_FUNCTION_STARTS, 24, "not 16"},
        {LC_MAIN, 16, "not 24"},
        {LC_DATA_IN_CODE, 24, "not 16"},
        {LC_SOURCE_VERSION, 24, "not 16"},
        {LC_DYLIB_CODE_SIGN_DRS, 24, "not 16"},
        {LC_ENCRYPTION_INFO_64, 16, "not 24"},
        {LC_LINKER_OPTIMIZATION_HINT, 24, "not 16"},
        {LC_NOTE, 16, "not 40"},
        {LC_DYLD_EXPORTS_TRIE, 24, "not 16"},
        {LC_DYLD_CHAINED_FIXUPS, 24, "not 16"},
        {LC_ATOM_INFO, 24, "not 16"},
        {LC_FUNCTION_VARIANTS, 24, "not 16"},
        {LC_FUNCTION_VARIANT_FIXUPS, 24, "not 16"},
        {LC_LAZY_LOAD_DYLIB_INFO, 24, "not 16"},
        {LC_SEGMENT_64, 16, "LC_SEGMENT_64 7: cmdsize is 16, less than 72"},
        {LC_LOAD_DYLIB, 16, "less than 24"},
        {LC_ID_DYLIB, 16, "less than 24"},
        {LC_LOAD_WEAK_DYLIB, 16, "less than 24"},
        {LC_REEXPORT_DYLIB, 16, "less than 24"},
        {LC_LOAD_UPWARD_DYLIB, 16, "less than 24"},
        {LC_LAZY_LOAD_DYLIB, 16, "less than 24"},
        {LC_RPATH, 8, "less than 12"},
        {LC_BUILD_VERSION, 16, "less than 24"},
        {LC_ENCRYPTION_INFO, 16, "less than 20"},
        {LC_LOAD_DYLINKER, 8, "less than 12"},
        {LC_ID_DYLINKER, 8, "less than 12"},
        {LC_SUB_FRAMEWORK, 8, "less than 12"},
        {LC_SUB_UMBRELLA, 8, "less than 12"},
        {LC_SUB_CLIENT, 8, "less than 12"},
        {LC_SUB_LIBRARY, 8, "less than 12"},
        {LC_DYLD_ENVIRONMENT, 8, "less than 12"},
        {LC_LINKER_OPTION, 8, "less than 12"},
        {LC_TARGET_TRIPLE, 8, "less than 12"},
        {LC_PREBIND_CKSUM, 8, "less than 12"},
        {LC_THREAD, 8, "less than 16"},
        {LC_UNIXTHREAD, 8, "less than 16"},
        {LC_FILESET_ENTRY, 24, "less than 32"},
        {LC_SEGMENT, 16, "less than 56"},
        {LC_ROUTINES, 16, "less than 40"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        size_t at;

        macho_toy_make(&f->toy, (struct macho_toy_opts){0});
        at = mtoy_find(&f->toy, LC_UUID, 0);
        mtoy_put(&f->toy, at, 4, table[i].cmd);
        mtoy_put(&f->toy, at + 4, 4, table[i].size);
        if (table[i].size < 24) { /* a plain command takes the rest */
            mtoy_put(&f->toy, at + table[i].size, 4, 0x7f);
            mtoy_put(&f->toy, at + table[i].size + 4, 4, 24 - table[i].size);
            mtoy_put(&f->toy, 16, 4, f->toy.ncmds + 1);
        }
        assert_exti(open_toy(f), EXTI_E_FORMAT, &f->err, at + 4);
        assert_says(&f->err, table[i].what);
    }
}

static void corrupt_commands_are_reported(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;

    macho_toy_make(t, (struct macho_toy_opts){0});
    const size_t uuid = mtoy_find(t, LC_UUID, 0), build = mtoy_find(t, LC_BUILD_VERSION, 0),
                 source = mtoy_find(t, LC_SOURCE_VERSION, 0), id = mtoy_find(t, LC_ID_DYLIB, 0),
                 load = mtoy_find(t, LC_LOAD_DYLIB, 0), rpath = mtoy_find(t, LC_RPATH, 0),
                 weak = mtoy_find(t, LC_LOAD_WEAK_DYLIB, 0),
                 starts = mtoy_find(t, LC_FUNCTION_STARTS, 0);
    const struct corruption table[] = {
        {"LC_UUID 7: cmdsize is 0,", uuid + 4, 4, 0, EXTI_E_FORMAT, uuid + 4},
        {"LC_UUID 7: cmdsize is 25,", uuid + 4, 4, 25, EXTI_E_FORMAT, uuid + 4},
        {"LC_UUID 7: cmdsize is 65536,", uuid + 4, 4, 0x10000, EXTI_E_FORMAT, uuid + 4},
        {"load command 0x80000099 9: an unknown command that dyld must", source, 4, 0x80000099,
         EXTI_E_UNSUPPORTED, source},
        {"LC_BUILD_VERSION 8: cmdsize is 32, not 24 and 8 for each of 2 tools", build + 20, 4, 2,
         EXTI_E_FORMAT, build + 20},
        {"LC_BUILD_VERSION 8", build + 20, 4, 0x20000001, EXTI_E_FORMAT, build + 20},
        {"LC_ID_DYLIB 3: the string offset is 23, not from 24 to 47", id + 8, 4, 23, EXTI_E_FORMAT,
         id + 8},
        {"LC_ID_DYLIB 3: the string offset is 48", id + 8, 4, 48, EXTI_E_FORMAT, id + 8},
        {"LC_ID_DYLIB 3: string has no end", id + 40, 8, UINT64_MAX, EXTI_E_FORMAT, id + 24},
        {"LC_LOAD_DYLIB 10: the string offset is 23", load + 8, 4, 23, EXTI_E_FORMAT, load + 8},
        {"LC_LOAD_DYLIB 10: the string offset is 56", load + 8, 4, 56, EXTI_E_FORMAT, load + 8},
        {"LC_LOAD_DYLIB 10: string has no end", load + 48, 8, UINT64_MAX, EXTI_E_FORMAT, load + 24},
        {"LC_LOAD_WEAK_DYLIB 11: the string", weak + 8, 4, 0, EXTI_E_FORMAT, weak + 8},
        {"LC_RPATH 13: the string offset is 11, not from 12 to 31", rpath + 8, 4, 11, EXTI_E_FORMAT,
         rpath + 8},
        {"LC_RPATH 13: the string offset is 32", rpath + 8, 4, 32, EXTI_E_FORMAT, rpath + 8},
        {"LC_RPATH 13: string has no end", rpath + 24, 8, UINT64_MAX, EXTI_E_FORMAT, rpath + 12},
        {"LC_ID_DYLIB 11: a second LC_ID_DYLIB", weak, 4, LC_ID_DYLIB, EXTI_E_FORMAT, weak},
        {"a dylib without LC_ID_DYLIB", id, 4, LC_LOAD_DYLIB, EXTI_E_FORMAT, 12},
        {"in a file that is not a dylib", 12, 4, MH_BUNDLE, EXTI_E_FORMAT, id},
        {"LC_SEGMENT 6: a 32-bit command", mtoy_find(t, LC_DYSYMTAB, 0), 4, LC_SEGMENT,
         EXTI_E_FORMAT, mtoy_find(t, LC_DYSYMTAB, 0)},
        {"LC_ROUTINES 6: a 32-bit command", mtoy_find(t, LC_DYSYMTAB, 0), 4, LC_ROUTINES,
         EXTI_E_FORMAT, mtoy_find(t, LC_DYSYMTAB, 0)},
        {"LC_ENCRYPTION_INFO_64 7: the file is encrypted", uuid, 4, LC_ENCRYPTION_INFO_64,
         EXTI_E_UNSUPPORTED, uuid + 16},
        {"LC_ENCRYPTION_INFO 7: the file is encrypted", uuid, 4, LC_ENCRYPTION_INFO,
         EXTI_E_UNSUPPORTED, uuid + 16},
        {"LC_FILESET_ENTRY 8: not handled: it is for sets", build, 4, LC_FILESET_ENTRY,
         EXTI_E_UNSUPPORTED, build},
        {"LC_LAZY_LOAD_DYLIB 10: not handled: it loads", load, 4, LC_LAZY_LOAD_DYLIB,
         EXTI_E_UNSUPPORTED, load},
        {"LC_LAZY_LOAD_DYLIB_INFO 14: not handled", starts, 4, LC_LAZY_LOAD_DYLIB_INFO,
         EXTI_E_UNSUPPORTED, starts},
    };

    assert_corruptions(f, (struct macho_toy_opts){0}, table, ARRAY_SIZE(table));

    macho_toy_make(t, (struct macho_toy_opts){0});
    mtoy_put(t, uuid, 4, LC_UUID);
    mtoy_put(t, build, 4, LC_UUID); /* 24 of its 32 bytes, then 8 arbitrary ones */
    mtoy_put(t, build + 4, 4, 24);
    mtoy_put(t, build + 24, 4, 0x7f);
    mtoy_put(t, build + 28, 4, 8);
    mtoy_put(t, 16, 4, t->ncmds + 1);
    assert_exti(open_toy(f), EXTI_E_FORMAT, &f->err, build);
    assert_says(&f->err, "LC_UUID 8: a second LC_UUID");

    macho_toy_make(t, (struct macho_toy_opts){0});
    mtoy_put(t, build, 4, LC_NOTE); /* 40 of 48 bytes */
    mtoy_put(t, build + 4, 4, 40);
    mtoy_put(t, source + 8, 4, 0x7f);
    mtoy_put(t, source + 12, 4, 8);
    assert_exti(open_toy(f), EXTI_E_UNSUPPORTED, &f->err, build);
    assert_says(&f->err, "LC_NOTE 8: not handled: it holds data outside all segments");
}

static void corrupt_segments_are_reported(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;

    macho_toy_make(t, (struct macho_toy_opts){0});
    const size_t text = mtoy_find(t, LC_SEGMENT_64, 0), data = mtoy_find(t, LC_SEGMENT_64, 1),
                 linkedit = mtoy_find(t, LC_SEGMENT_64, 2), code = text + 72, got = data + 72,
                 bss = got + 3 * 80;
    const uint64_t vm = MTOY_BASE;
    const struct corruption table[] = {
        {"LC_SEGMENT_64 0 __TEXT: cmdsize is 152, not 72 and 80 for each of 2", text + NSECTS, 4, 2,
         EXTI_E_FORMAT, text + NSECTS},
        {"LC_SEGMENT_64 0 __TEXT: cmdsize", text + NSECTS, 4, 0x33333334, EXTI_E_FORMAT,
         text + NSECTS},
        {"LC_SEGMENT_64 1 __DATA: 0x1000 bytes from 0xfffffffffffff000 end past", data + VMADDR, 8,
         UINT64_MAX << 12, EXTI_E_FORMAT, data + VMADDR},
        {"LC_SEGMENT_64 1 __DATA: 0xfffff", data + VMSIZE, 8, UINT64_MAX, EXTI_E_FORMAT,
         data + VMADDR},
        {"LC_SEGMENT_64 1 __DATA: filesize 0x1000 exceeds vmsize 0xfff", data + VMSIZE, 8, 0xfff,
         EXTI_E_FORMAT, data + FILESIZE},
        {"LC_SEGMENT_64 1 __DATA: filesize 0x1000 exceeds vmsize 0x0", data + VMSIZE, 8, 0,
         EXTI_E_FORMAT, data + FILESIZE},
        {"LC_SEGMENT_64 1 __DATA: initprot is 0x8", data + INITPROT, 4, 8, EXTI_E_FORMAT,
         data + INITPROT},
        {"LC_SEGMENT_64 1 __DATA: vmaddr 0x11001 is not", data + VMADDR, 8, vm + 0x1001,
         EXTI_E_FORMAT, data + VMADDR},
        {"LC_SEGMENT_64 1 __DATA: fileoff 0x1001 is not", data + FILEOFF, 8, 0x1001, EXTI_E_FORMAT,
         data + FILEOFF},
        {"LC_SEGMENT_64 1 __DATA: 0x1000 bytes at 0x100000 do not fit", data + FILEOFF, 8, 0x100000,
         EXTI_E_FORMAT, data + FILEOFF},
        {"LC_SEGMENT_64 1 __DATA: 0x1000 bytes at 0xfffffffffffff000", data + FILEOFF, 8,
         UINT64_MAX << 12, EXTI_E_FORMAT, data + FILEOFF},
        {"section __DATA,__got: has relocations", got + S_NRELOC, 4, 1, EXTI_E_UNSUPPORTED,
         got + S_NRELOC},
        {"section __DATA,__got: is outside of its segment", got + S_ADDR, 8, vm, EXTI_E_FORMAT,
         got + S_ADDR},
        {"section __DATA,__got: is outside of its segment", got + S_ADDR, 8, UINT64_MAX,
         EXTI_E_FORMAT, got + S_ADDR},
        {"section __DATA,__got: ends outside of its segment", got + S_SIZE, 8, 0x1001,
         EXTI_E_FORMAT, got + S_SIZE},
        {"section __DATA,__bss: ends outside of its segment", bss + S_SIZE, 8, UINT64_MAX,
         EXTI_E_FORMAT, bss + S_SIZE},
        {"section __DATA,__got: its offset does not match", got + S_OFFSET, 4, 0x1008,
         EXTI_E_FORMAT, got + S_OFFSET},
        {"section __DATA,__bss: its offset does not match", bss + S_FLAGS, 4, 0, EXTI_E_FORMAT,
         bss + S_OFFSET},
        {"no segment __TEXT", text + 8, 8, 0x585858585f5f, EXTI_E_FORMAT, 16},
        {"no segment __LINKEDIT", linkedit + 8, 1, 'X', EXTI_E_FORMAT, 16},
        {"a second segment of that name", data + 8, 8, 0x545845545f5f, EXTI_E_FORMAT, data + 8},
        {"LC_SEGMENT_64 1 __DATA: shares bytes of the file with LC_SEGMENT_64 0 __TEXT",
         data + FILEOFF, 8, 0, EXTI_E_FORMAT, data + FILEOFF},
        {"LC_SEGMENT_64 0 __TEXT: fileoff is 0x1000; it must be 0, to map the header",
         text + FILEOFF, 8, 0x1000, EXTI_E_FORMAT, text + FILEOFF},
        {"LC_SEGMENT_64 0 __TEXT: filesize 0x100 does not hold", text + FILESIZE, 8, 0x100,
         EXTI_E_FORMAT, text + FILESIZE},
        {"LC_SEGMENT_64 1 __DATA: follows __LINKEDIT", linkedit + FILEOFF, 8, 0, EXTI_E_FORMAT,
         data + FILEOFF},
        {"section __TEXT,__text: ends outside of its segment's contents", text + FILESIZE, 8, 0x4c8,
         EXTI_E_FORMAT, code + S_SIZE},
        {"LC_SEGMENT_64 2 __LINKEDIT: shares addresses with LC_SEGMENT_64 1 __DATA", data + VMSIZE,
         8, 0x2000, EXTI_E_FORMAT, linkedit + VMADDR},
        {"LC_SEGMENT_64 1 __DATA: has addresses above those of __LINKEDIT", data + VMADDR, 8,
         vm + 0x100000, EXTI_E_UNSUPPORTED, data + VMADDR},
        {"LC_SEGMENT_64 1 __DATA: vmaddr 0x8000 is below __TEXT's", data + VMADDR, 8, 0x8000,
         EXTI_E_UNSUPPORTED, data + VMADDR},
        {"bytes follow it", linkedit + FILESIZE, 8, t->end - t->linkedit - 1, EXTI_E_UNSUPPORTED,
         linkedit + FILESIZE},
        {"__LINKEDIT: 0x", linkedit + FILESIZE, 8, t->end - t->linkedit + 1, EXTI_E_FORMAT,
         linkedit + FILEOFF},
    };

    assert_corruptions(f, (struct macho_toy_opts){0}, table, ARRAY_SIZE(table));

    macho_toy_make(t, (struct macho_toy_opts){0});
    mtoy_put(t, linkedit + FILEOFF, 8, 0x10000); /* nothing at all, past the end */
    mtoy_put(t, linkedit + FILESIZE, 8, 0);
    assert_exti(open_toy(f), EXTI_E_FORMAT, &f->err, linkedit + FILEOFF);
    assert_says(&f->err, "LC_SEGMENT_64 2 __LINKEDIT: fileoff is 0x10000, not from");

    macho_toy_make(t, (struct macho_toy_opts){0});
    mtoy_put(t, code + S_ADDR, 8, vm + 0x40);
    mtoy_put(t, code + S_OFFSET, 4, 0x40);
    assert_exti(open_toy(f), EXTI_E_FORMAT, &f->err, code + S_OFFSET);
    assert_says(&f->err, "section __TEXT,__text: starts within the load commands");
}

/* Corruptions of several fields: sections in __LINKEDIT, and too many segments. */
static void odd_segments_are_reported(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;
    size_t data, linkedit, at;

    macho_toy_make(t, (struct macho_toy_opts){.room = 0x200});
    linkedit = mtoy_find(t, LC_SEGMENT_64, 2);
    at = linkedit + SEGMENT_COMMAND_64_SIZE;
    memmove(t->b + at + SECTION_64_SIZE, t->b + at, 0x400 - 0x200);
    memset(t->b + at, 0, SECTION_64_SIZE);
    mtoy_put(t, linkedit + 4, 4, SEGMENT_COMMAND_64_SIZE + SECTION_64_SIZE);
    mtoy_put(t, linkedit + NSECTS, 4, 1);
    mtoy_put(t, 16, 4, 3);
    mtoy_put(t, 20, 4, at + SECTION_64_SIZE - 32);
    assert_exti(open_toy(f), EXTI_E_UNSUPPORTED, &f->err, linkedit + NSECTS);
    assert_says(&f->err, "LC_SEGMENT_64 2 __LINKEDIT: has sections");

    macho_toy_make(t, (struct macho_toy_opts){.arm = true});
    for (int i = 0; i < 260; i++) {
        at = MACH_HEADER_64_SIZE + (size_t)i * SEGMENT_COMMAND_64_SIZE;
        memset(t->b + at, 0, SEGMENT_COMMAND_64_SIZE);
        mtoy_put(t, at, 4, LC_SEGMENT_64);
        mtoy_put(t, at + 4, 4, SEGMENT_COMMAND_64_SIZE);
    }
    mtoy_put(t, 16, 4, 260);
    mtoy_put(t, 20, 4, 260 * SEGMENT_COMMAND_64_SIZE);
    assert_exti(open_toy(f), EXTI_E_UNSUPPORTED, &f->err, 32 + 256 * SEGMENT_COMMAND_64_SIZE);
    assert_says(&f->err, "more than 256 segments");

    macho_toy_make(t, (struct macho_toy_opts){.arm = true}); /* as many sections as an object file
                                                           * may have */
    memset(t->b + 32, 0, 0x8000);
    mtoy_put(t, 32, 4, LC_SEGMENT_64);
    mtoy_put(t, 36, 4, SEGMENT_COMMAND_64_SIZE + 256 * SECTION_64_SIZE);
    mtoy_put(t, 32 + NSECTS, 4, 256);
    mtoy_put(t, 16, 4, 1);
    mtoy_put(t, 20, 4, SEGMENT_COMMAND_64_SIZE + 256 * SECTION_64_SIZE);
    assert_exti(open_toy(f), EXTI_E_UNSUPPORTED, &f->err, 32 + NSECTS);
    assert_says(&f->err, "more than 255 sections");

    macho_toy_make(t, (struct macho_toy_opts){0});
    data = mtoy_find(t, LC_SEGMENT_64, 1);
    t->b[data + 8] = 7; /* a name with control characters, which messages must not print */
    mtoy_put(t, data + INITPROT, 4, 8);
    assert_exti(open_toy(f), EXTI_E_FORMAT, &f->err, data + INITPROT);
    assert_says(&f->err, "LC_SEGMENT_64 1 ?_DATA: initprot");
}

/* `count` commands of `size` bytes after a header, with names that differ in their last bytes. */
static size_t put_names(uint8_t *b, uint32_t cmd, uint32_t count, uint32_t size)
{
    const uint32_t header[] = {MH_MAGIC_64, CPU_TYPE_X86_64, 3, MH_BUNDLE, count, count * size};
    uint8_t *p = b + MACH_HEADER_64_SIZE;

    for (size_t i = 0; i < ARRAY_SIZE(header); i++)
        exti__put_u32(b + 4 * i, header[i], false);
    for (uint32_t i = 0; i < count; i++, p += size) {
        exti__put_u32(p, cmd, false);
        exti__put_u32(p + 4, size, false);
        exti__put_u32(p + 8, cmd == LC_RPATH ? RPATH_COMMAND_SIZE : DYLIB_COMMAND_SIZE, false);
        memset(p + DYLIB_COMMAND_SIZE, 'x', size - DYLIB_COMMAND_SIZE);
        snprintf((char *)p + size - 12, 12, "%u", i);
    }
    return (size_t)(p - b);
}

/* Comparing all pairs would take too long. */
static void too_many_names_are_refused(void **state)
{
    static const struct {
        uint32_t cmd, count, size;
        int code;
    } files[] = {
        {LC_LOAD_DYLIB, 8192, 40, EXTI_E_FORMAT}, /* it has no segments */
        {LC_LOAD_DYLIB, 8193, 40, EXTI_E_UNSUPPORTED}, {LC_RPATH, 8193, 40, EXTI_E_UNSUPPORTED},
        {LC_RPATH, 256, 8192, EXTI_E_FORMAT},          {LC_RPATH, 257, 8192, EXTI_E_UNSUPPORTED},
    };
    static uint8_t b[MACH_HEADER_64_SIZE + (3 << 20)];
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        size_t n = put_names(b, files[i].cmd, files[i].count, files[i].size);

        assert_exti(exti__macho_open(exti__span(b, n), &f->file, &f->err), files[i].code, &f->err,
                    ANY_OFFSET);
        if (files[i].code == EXTI_E_UNSUPPORTED)
            assert_says(&f->err, "are handled");
    }
}

static void files_cut_short_or_lengthened_are_refused(void **state)
{
    struct fixture *f = *state;
    struct macho_toy *t = &f->toy;
    size_t end;

    macho_toy_make(t, (struct macho_toy_opts){0});
    end = t->n;
    for (t->n = 0; t->n < end; t->n += t->n < 0x600 ? 1 : 61) {
        int rc = open_toy(f);

        assert_exti(rc, EXTI_E_FORMAT, &f->err, ANY_OFFSET);
    }
    t->n = end + 1;
    assert_exti(open_toy(f), EXTI_E_UNSUPPORTED, &f->err,
                mtoy_find(t, LC_SEGMENT_64, 2) + FILESIZE);
    assert_says(&f->err, "LC_SEGMENT_64 2 __LINKEDIT: 1 bytes follow it");
}

static void every_failed_allocation_is_reported(void **state)
{
    struct fixture *f = *state;
    int n = 0, rc;

    macho_toy_make(&f->toy, (struct macho_toy_opts){0});
    do {
        exti__mem_fail_after(n++);
        rc = open_toy(f);
        exti__mem_fail_after(-1);
        if (rc)
            assert_exti(rc, EXTI_E_NOMEM, &f->err, ANY_OFFSET);
    } while (rc);
    assert_int_equal(n, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(corrupt_headers_are_reported),
        read_test(commands_of_wrong_size_are_reported),
        read_test(corrupt_commands_are_reported),
        read_test(corrupt_segments_are_reported),
        read_test(odd_segments_are_reported),
        read_test(too_many_names_are_refused),
        read_test(files_cut_short_or_lengthened_are_refused),
        read_test(every_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests_name("macho/macho_read_hostile", tests, NULL, NULL);
}
