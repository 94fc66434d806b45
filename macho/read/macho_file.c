/* Opening a thin Mach-O file: decodes the header and every load command, then checks them
 * against each other. */
#include "macho/read/macho_file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "macho/read/macho_arch.h"
#include "macho/read/macho_command.h"
#include "macho/read/macho_pieces.h"
#include "macho/read/macho_segments.h"

/* More than any linker writes; bounds the memory that a hostile count can request. */
enum { MAX_COMMANDS = 0x10000 };

/* Names of libraries and search paths are compared pairwise, so their number and size are
 * bounded. */
enum { MAX_NAMES = 8192, MAX_NAMES_SIZE = 2 << 20 };

/* ---- the header ------------------------------------------------------------------------------ */

static int check_magic(const struct macho_file *f, uint32_t magic, struct exti_error *err)
{
    switch (magic) {
    case MH_MAGIC_64:
        return 0;
    case MH_MAGIC:
        return exti__macho_fail(f, MACHO_HEADER, 0, EXTI_E_UNSUPPORTED, err,
                                "a 32-bit file; only 64-bit ones are handled");
    case MH_CIGAM:
    case MH_CIGAM_64:
        return exti__macho_fail(f, MACHO_HEADER, 0, EXTI_E_UNSUPPORTED, err,
                                "a big-endian file; only little-endian ones are handled");
    default:
        return exti__macho_fail(f, MACHO_HEADER, 0, EXTI_E_FORMAT, err,
                                "magic is 0x%" PRIx32 ", not 0x%x", magic, MH_MAGIC_64);
    }
}

static int check_filetype(const struct macho_file *f, struct exti_error *err)
{
    static const char *const kinds[] = {
        [1] = "an object file",
        [3] = "a fixed virtual memory library",
        [4] = "a core dump",
        [5] = "a preloaded program",
        [7] = "a dynamic linker",
        [9] = "a stub library, which has no contents",
        [10] = "a dSYM file, which has debug information alone",
        [11] = "a kernel extension",
        [12] = "a set of kernel extensions",
    };

    if (f->filetype == MH_DYLIB || f->filetype == MH_BUNDLE || f->filetype == MH_EXECUTE) {
        if (f->flags & MH_DYLIB_IN_CACHE)
            return exti__macho_fail(
                f, MACHO_HEADER, 24, EXTI_E_UNSUPPORTED, err,
                "extracted from dyld's shared cache, which does not restore all of a library");
        return 0;
    }
    if (f->filetype < sizeof kinds / sizeof *kinds && kinds[f->filetype])
        return exti__macho_fail(f, MACHO_HEADER, 12, EXTI_E_UNSUPPORTED, err,
                                "%s (filetype %" PRIu32 "), not a dylib or bundle",
                                kinds[f->filetype], f->filetype);
    return exti__macho_fail(f, MACHO_HEADER, 12, EXTI_E_FORMAT, err, "unknown filetype %" PRIu32,
                            f->filetype);
}

static int read_mach_header(struct macho_file *f, uint32_t *ncmds, struct exti_error *err)
{
    struct exti_cur c = exti__cur(f->file, false);
    uint32_t magic = exti__cur_u32(&c);
    int rc = exti__cur_end(&c, "Mach-O header", err);

    if (!rc)
        rc = check_magic(f, magic, err);
    if (rc)
        return rc;
    f->cputype = exti__cur_u32(&c);
    f->cpusubtype = exti__cur_u32(&c);
    f->filetype = exti__cur_u32(&c);
    *ncmds = exti__cur_u32(&c);
    f->sizeofcmds = exti__cur_u32(&c);
    f->flags = exti__cur_u32(&c);
    exti__cur_skip(&c, 4);
    rc = exti__cur_end(&c, "Mach-O header", err);
    if (rc)
        return rc;
    if (!exti__macho_arch_handled(f->cputype, f->cpusubtype))
        return exti__macho_fail(f, MACHO_HEADER, 4, EXTI_E_UNSUPPORTED, err,
                                "for %s (cputype 0x%" PRIx32 ", cpusubtype 0x%" PRIx32
                                "); x86-64 and arm64 are handled",
                                exti__macho_arch(f->cputype, f->cpusubtype), f->cputype,
                                f->cpusubtype);
    f->page = f->cputype == CPU_TYPE_ARM64 ? 0x4000 : 0x1000;
    f->commands_end = MACH_HEADER_64_SIZE + (uint64_t)f->sizeofcmds;
    return check_filetype(f, err);
}

/* ---- load commands --------------------------------------------------------------------------- */

static int walk_commands(struct macho_file *f, uint32_t ncmds, struct exti_error *err)
{
    struct exti_span all;
    uint64_t at = 0;
    int rc =
        exti__span_sub(f->file, MACH_HEADER_64_SIZE, f->sizeofcmds, "load commands", &all, err);

    if (rc)
        return rc;
    if (ncmds > f->sizeofcmds / 8 || ncmds > MAX_COMMANDS)
        return exti__macho_fail(f, MACHO_HEADER, 16, EXTI_E_FORMAT, err,
                                "%" PRIu32 " load commands do not fit into %" PRIu32 " bytes",
                                ncmds, f->sizeofcmds);
    f->commands = exti__calloc(ncmds, sizeof *f->commands);
    if (!f->commands)
        return exti__fail_nomem(err);
    for (uint32_t i = 0; i < ncmds; i++) {
        struct macho_command *c = &f->commands[i];
        uint32_t size;

        rc = exti__span_sub(all, at, 8, "load command", &c->s, err);
        if (rc)
            return rc;
        c->cmd = exti__macho_field(f, i, 0);
        c->at = MACH_HEADER_64_SIZE + at;
        size = exti__macho_field(f, i, 4);
        if (size < 8 || size % 8 || size > all.n - at)
            return exti__macho_fail(f, i, 4, EXTI_E_FORMAT, err,
                                    "cmdsize is %" PRIu32
                                    ", not a multiple of 8 from 8 to %" PRIu64,
                                    size, (all.n - at) / 8 * 8);
        rc = exti__span_sub(all, at, size, "load command", &c->s, err);
        if (rc)
            return rc;
        f->command_count++;
        at += size;
    }
    if (at != all.n)
        return exti__macho_fail(f, MACHO_HEADER, 20, EXTI_E_FORMAT, err,
                                "sizeofcmds is %" PRIu32 ", but the load commands take %" PRIu64,
                                f->sizeofcmds, at);
    return 0;
}

/* The string of the lc_str field at `at`.  It follows the command's structure of `least` bytes. */
static int read_string(const struct macho_file *f, size_t i, uint32_t at, uint32_t least,
                       const char **out, struct exti_error *err)
{
    struct exti_span s = f->commands[i].s;
    uint32_t offset = exti__macho_field(f, i, at);

    if (offset < least || offset >= s.n)
        return exti__macho_fail(f, i, at, EXTI_E_FORMAT, err,
                                "the string offset is %" PRIu32 ", not from %" PRIu32 " to %zu",
                                offset, least, s.n - 1);
    return exti__span_cstr(s, offset, exti__macho_name(f, i).text, out, err);
}

static int read_dylib(struct macho_file *f, size_t i, struct exti_error *err)
{
    struct macho_dylib d = {.command = i};
    int rc = read_string(f, i, 8, DYLIB_COMMAND_SIZE, &d.name, err);

    if (rc)
        return rc;
    d.timestamp = exti__macho_field(f, i, 12);
    d.current_version = exti__macho_field(f, i, 16);
    d.compatibility_version = exti__macho_field(f, i, 20);
    f->dylibs[f->dylib_count++] = d;
    return 0;
}

static int read_id(struct macho_file *f, size_t i, struct exti_error *err)
{
    if (f->id)
        return exti__macho_fail(f, i, 0, EXTI_E_FORMAT, err, "a second LC_ID_DYLIB");
    if (f->filetype != MH_DYLIB)
        return exti__macho_fail(f, i, 0, EXTI_E_FORMAT, err,
                                "dyld refuses it in a file that is not a dylib");
    return read_string(f, i, 8, DYLIB_COMMAND_SIZE, &f->id, err);
}

static int read_rpath(struct macho_file *f, size_t i, struct exti_error *err)
{
    int rc = read_string(f, i, 8, RPATH_COMMAND_SIZE, &f->rpaths[f->rpath_count], err);

    if (!rc)
        f->rpath_count++;
    return rc;
}

static int read_uuid(struct macho_file *f, size_t i, struct exti_error *err)
{
    struct exti_span s;
    int rc;

    if (f->uuid)
        return exti__macho_fail(f, i, 0, EXTI_E_FORMAT, err, "a second LC_UUID");
    rc = exti__span_sub(f->commands[i].s, 8, 16, "LC_UUID", &s, err);
    if (!rc)
        f->uuid = s.p;
    return rc;
}

/* A library for several platforms has several version commands; macOS takes precedence. */
static void set_version(struct macho_file *f, uint32_t platform, uint32_t minos, uint32_t sdk)
{
    if (f->platform && platform != PLATFORM_MACOS)
        return;
    f->platform = platform;
    f->minos = minos;
    f->sdk = sdk;
}

static void read_version_min(struct macho_file *f, size_t i)
{
    uint32_t cmd = f->commands[i].cmd;

    set_version(f,
                cmd == LC_VERSION_MIN_MACOSX     ? PLATFORM_MACOS
                : cmd == LC_VERSION_MIN_IPHONEOS ? PLATFORM_IOS
                : cmd == LC_VERSION_MIN_TVOS     ? PLATFORM_TVOS
                                                 : PLATFORM_WATCHOS,
                exti__macho_field(f, i, 8), exti__macho_field(f, i, 12));
}

static int read_build_version(struct macho_file *f, size_t i, struct exti_error *err)
{
    uint32_t ntools = exti__macho_field(f, i, 20);

    if (f->commands[i].s.n != 24 + 8 * (uint64_t)ntools)
        return exti__macho_fail(f, i, 20, EXTI_E_FORMAT, err,
                                "cmdsize is %zu, not 24 and 8 for each of %" PRIu32 " tools",
                                f->commands[i].s.n, ntools);
    set_version(f, exti__macho_field(f, i, 8), exti__macho_field(f, i, 12),
                exti__macho_field(f, i, 16));
    return 0;
}

static int refuse_command(const struct macho_file *f, size_t i, struct exti_error *err)
{
    return exti__macho_fail(f, i, 0, EXTI_E_UNSUPPORTED, err, "not handled: it %s",
                            f->commands[i].cmd == LC_NOTE ? "holds data outside all segments"
                            : f->commands[i].cmd == LC_FILESET_ENTRY
                                ? "is for sets of kernel extensions"
                                : "loads a library on first use");
}

static int check_size(const struct macho_file *f, size_t i, const struct macho_command_rule *r,
                      struct exti_error *err)
{
    size_t n = f->commands[i].s.n;

    if (r->exact && n != r->size)
        return exti__macho_fail(f, i, 4, EXTI_E_FORMAT, err, "cmdsize is %zu, not %" PRIu32, n,
                                r->size);
    if (n < r->size)
        return exti__macho_fail(f, i, 4, EXTI_E_FORMAT, err, "cmdsize is %zu, less than %" PRIu32,
                                n, r->size);
    return 0;
}

static int read_command(struct macho_file *f, size_t i, struct exti_error *err)
{
    const struct macho_command_rule *r = exti__macho_command_rule(f->commands[i].cmd);
    const char *unused;
    int rc;

    if (!r) {
        if (f->commands[i].cmd & LC_REQ_DYLD)
            return exti__macho_fail(
                f, i, 0, EXTI_E_UNSUPPORTED, err,
                "an unknown command that dyld must understand to load the file (LC_REQ_DYLD)");
        return 0;
    }
    rc = check_size(f, i, r, err);
    if (rc)
        return rc;
    switch (r->kind) {
    case COMMAND_PLAIN:
        return 0;
    case COMMAND_SEGMENT:
        return exti__macho_read_segment(f, i, err);
    case COMMAND_ID:
        return read_id(f, i, err);
    case COMMAND_DYLIB:
        return read_dylib(f, i, err);
    case COMMAND_RPATH:
        return read_rpath(f, i, err);
    case COMMAND_STRING:
        return read_string(f, i, 8, 12, &unused, err);
    case COMMAND_PIECES:
        return exti__macho_read_pieces(f, i, err);
    case COMMAND_UUID:
        return read_uuid(f, i, err);
    case COMMAND_VERSION_MIN:
        read_version_min(f, i);
        return 0;
    case COMMAND_BUILD_VERSION:
        return read_build_version(f, i, err);
    case COMMAND_ENCRYPTION:
        if (!exti__macho_field(f, i, 16))
            return 0;
        return exti__macho_fail(f, i, 16, EXTI_E_UNSUPPORTED, err, "the file is encrypted");
    case COMMAND_32_BIT:
        return exti__macho_fail(f, i, 0, EXTI_E_FORMAT, err, "a 32-bit command in a 64-bit file");
    case COMMAND_REFUSED:
        return refuse_command(f, i, err);
    }
    return 0;
}

static int check_name_sizes(const struct macho_file *f, size_t dylibs, size_t rpaths,
                            struct exti_error *err)
{
    uint64_t size = 0;

    for (size_t i = 0; i < f->command_count; i++) {
        const struct macho_command_rule *r = exti__macho_command_rule(f->commands[i].cmd);

        if (r && (r->kind == COMMAND_DYLIB || r->kind == COMMAND_RPATH))
            size += f->commands[i].s.n;
    }
    if (dylibs <= MAX_NAMES && rpaths <= MAX_NAMES && size <= MAX_NAMES_SIZE)
        return 0;
    return exti__macho_fail(f, MACHO_HEADER, 16, EXTI_E_UNSUPPORTED, err,
                            "%zu libraries and %zu LC_RPATHs of %" PRIu64
                            " bytes; at most %d of each are handled, of %d bytes together",
                            dylibs, rpaths, size, MAX_NAMES, MAX_NAMES_SIZE);
}

/* Allocates the arrays at their final size, because pointers into them are kept. */
static int make_arrays(struct macho_file *f, struct exti_error *err)
{
    size_t segments = 0, sections = 0, dylibs = 0, rpaths = 0;

    for (size_t i = 0; i < f->command_count; i++) {
        const struct macho_command_rule *r = exti__macho_command_rule(f->commands[i].cmd);

        if (!r)
            continue;
        segments += r->kind == COMMAND_SEGMENT;
        sections += r->kind == COMMAND_SEGMENT ? f->commands[i].s.n / SECTION_64_SIZE : 0;
        dylibs += r->kind == COMMAND_DYLIB;
        rpaths += r->kind == COMMAND_RPATH;
    }
    f->segments = exti__calloc(segments, sizeof *f->segments);
    f->sections = exti__calloc(sections, sizeof *f->sections);
    f->dylibs = exti__calloc(dylibs, sizeof *f->dylibs);
    f->rpaths = exti__calloc(rpaths, sizeof *f->rpaths);
    if (!f->segments || !f->sections || !f->dylibs || !f->rpaths)
        return exti__fail_nomem(err);
    return check_name_sizes(f, dylibs, rpaths, err);
}

static int read_file(struct macho_file *f, struct exti_error *err)
{
    uint32_t ncmds;
    int rc = read_mach_header(f, &ncmds, err);

    if (!rc)
        rc = walk_commands(f, ncmds, err);
    if (!rc)
        rc = make_arrays(f, err);
    for (size_t i = 0; !rc && i < f->command_count; i++)
        rc = read_command(f, i, err);
    if (!rc)
        rc = exti__macho_check_segments(f, err);
    if (!rc)
        rc = exti__macho_check_pieces(f, err);
    if (!rc && f->filetype == MH_DYLIB && !f->id)
        rc = exti__macho_fail(f, MACHO_HEADER, 12, EXTI_E_FORMAT, err,
                              "a dylib without LC_ID_DYLIB");
    return rc;
}

int exti__macho_open(struct exti_span file, struct macho_file *f, struct exti_error *err)
{
    int rc;

    *f = (struct macho_file){.file = file};
    rc = read_file(f, err);
    if (rc)
        exti__macho_close(f);
    return rc;
}

void exti__macho_close(struct macho_file *f)
{
    exti__free(f->commands);
    exti__free(f->segments);
    exti__free(f->sections);
    exti__free(f->dylibs);
    exti__free(f->rpaths);
    *f = (struct macho_file){0};
}
