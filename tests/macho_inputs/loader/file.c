#include "tests/macho_inputs/loader/load.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LC_SYMTAB = 0x2,
    LC_DYSYMTAB = 0xb,
    LC_LOAD_DYLIB = 0xc,
    LC_ID_DYLIB = 0xd,
    LC_SEGMENT_64 = 0x19,
    LC_UUID = 0x1b,
    LC_RPATH = 0x1c,
    LC_CODE_SIGNATURE = 0x1d,
    LC_SEGMENT_SPLIT_INFO = 0x1e,
    LC_DYLD_INFO = 0x22,
    LC_VERSION_MIN_MACOSX = 0x24,
    LC_FUNCTION_STARTS = 0x26,
    LC_DATA_IN_CODE = 0x29,
    LC_BUILD_VERSION = 0x32,
    /* without LC_REQ_DYLD */
    LC_LOAD_WEAK_DYLIB = 0x18,
    LC_REEXPORT_DYLIB = 0x1f,
    LC_LOAD_UPWARD_DYLIB = 0x23,
    LC_DYLD_EXPORTS_TRIE = 0x33,
    LC_DYLD_CHAINED_FIXUPS = 0x34,
};

void die(const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fprintf(stderr, "macho: ");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

/* Everything that was allocated, so that leak checkers can reach it. */
static struct held {
    struct held *next;
    max_align_t bytes[];
} *all_held;

void *take_memory(size_t n)
{
    struct held *h = calloc(1, sizeof *h + n);

    if (!h)
        die("no memory");
    h->next = all_held;
    all_held = h;
    return h->bytes;
}

/* ---- reading --------------------------------------------------------------------------------- */

const uint8_t *bytes_at(const struct macho *m, uint64_t off, uint64_t len)
{
    if (off > m->n || len > m->n - off)
        die("%s: 0x%llx bytes at 0x%llx are past the end", m->path, (unsigned long long)len,
            (unsigned long long)off);
    return m->p + off;
}

uint16_t get16(const struct macho *m, uint64_t off)
{
    uint16_t v;

    memcpy(&v, bytes_at(m, off, sizeof v), sizeof v);
    return v;
}

uint32_t get32(const struct macho *m, uint64_t off)
{
    uint32_t v;

    memcpy(&v, bytes_at(m, off, sizeof v), sizeof v);
    return v;
}

uint64_t get64(const struct macho *m, uint64_t off)
{
    uint64_t v;

    memcpy(&v, bytes_at(m, off, sizeof v), sizeof v);
    return v;
}

const char *string_at(const struct macho *m, uint64_t off, uint64_t end)
{
    if (off > end || !memchr(bytes_at(m, off, end - off), 0, end - off))
        die("%s: the string at 0x%llx has no end", m->path, (unsigned long long)off);
    return (const char *)m->p + off;
}

uint64_t offset_of(const struct macho *m, uint64_t vmaddr)
{
    for (size_t i = 0; i < m->segment_count; i++) {
        const struct segment *s = &m->segments[i];

        if (vmaddr >= s->vmaddr && vmaddr - s->vmaddr < s->filesize)
            return s->fileoff + (vmaddr - s->vmaddr);
    }
    die("%s: no part of the file is at address 0x%llx", m->path, (unsigned long long)vmaddr);
}

struct reader read_blob(const struct macho *m, struct blob b)
{
    bytes_at(m, b.off, b.size);
    return (struct reader){m, b.off, (uint64_t)b.off + b.size};
}

uint8_t read8(struct reader *r)
{
    if (r->at >= r->end)
        die("%s: reading on past 0x%llx", r->m->path, (unsigned long long)r->end);
    return r->m->p[r->at++];
}

uint64_t read_uleb(struct reader *r)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t b;

    do {
        b = read8(r);
        if (shift > 63)
            die("%s: a ULEB128 is too long", r->m->path);
        v |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
    } while (b & 0x80);
    return v;
}

int64_t read_sleb(struct reader *r)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t b;

    do {
        b = read8(r);
        if (shift > 63)
            die("%s: an SLEB128 is too long", r->m->path);
        v |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
    } while (b & 0x80);
    if (b & 0x40 && shift < 64)
        v |= ~(uint64_t)0 << shift;
    return (int64_t)v;
}

const char *read_string(struct reader *r)
{
    const char *s = string_at(r->m, r->at, r->end);

    r->at += strlen(s) + 1;
    return s;
}

/* ---- load commands --------------------------------------------------------------------------- */

static void read_name(const struct macho *m, uint64_t off, char *to)
{
    memcpy(to, bytes_at(m, off, 16), 16);
    to[16] = 0;
}

static void parse_segment(struct macho *m, uint64_t at, uint32_t size)
{
    struct segment *s = &m->segments[m->segment_count];
    uint32_t n = get32(m, at + 64);

    if (m->segment_count++ >= 32 || m->section_count + n > 128)
        die("%s: more segments or sections than this loader expects", m->path);
    if (size != 72 + 80 * (uint64_t)n)
        die("%s: LC_SEGMENT_64 of %u bytes with %u sections", m->path, size, n);
    read_name(m, at + 8, s->name);
    s->vmaddr = get64(m, at + 24);
    s->vmsize = get64(m, at + 32);
    s->fileoff = get64(m, at + 40);
    s->filesize = get64(m, at + 48);
    s->initprot = get32(m, at + 60);
    s->flags = get32(m, at + 68);
    for (uint32_t i = 0; i < n; i++) {
        struct section *x = &m->sections[m->section_count++];
        uint64_t o = at + 72 + 80 * (uint64_t)i;

        read_name(m, o, x->name);
        read_name(m, o + 16, x->segment);
        x->addr = get64(m, o + 32);
        x->size = get64(m, o + 40);
        x->offset = get32(m, o + 48);
        x->flags = get32(m, o + 64);
        x->reserved1 = get32(m, o + 68);
    }
}

static void parse_dylib(struct macho *m, uint64_t at, uint32_t size, enum dylib_kind kind)
{
    if (m->dylib_count >= 255)
        die("%s: more libraries than this loader expects", m->path);
    m->dylibs[m->dylib_count++] =
        (struct dylib){string_at(m, at + get32(m, at + 8), at + size), kind};
}

static struct blob blob_at(const struct macho *m, uint64_t at)
{
    return (struct blob){get32(m, at), get32(m, at + 4)};
}

static void exact(const struct macho *m, uint32_t cmd, uint32_t size, uint32_t wanted)
{
    if (size != wanted)
        die("%s: load command 0x%x has %u bytes, not %u", m->path, cmd, size, wanted);
}

static void parse_symbols(struct macho *m, uint64_t at, uint32_t cmd, uint32_t size)
{
    if (cmd == LC_SYMTAB) {
        exact(m, cmd, size, 24);
        m->symbol_count = get32(m, at + 12);
        m->symbols = (struct blob){get32(m, at + 8), m->symbol_count * 16};
        m->strings = blob_at(m, at + 16);
        return;
    }
    exact(m, cmd, size, 80);
    m->local_symbols = get32(m, at + 12);
    m->defined_symbols = get32(m, at + 20);
    m->undefined_symbols = get32(m, at + 28);
    if (get32(m, at + 8) != 0 || get32(m, at + 16) != m->local_symbols ||
        get32(m, at + 24) != m->local_symbols + m->defined_symbols)
        die("%s: LC_DYSYMTAB's groups do not follow one another", m->path);
    m->indirect = (struct blob){get32(m, at + 56), get32(m, at + 60) * 4};
}

static void parse_dyld_info(struct macho *m, uint64_t at, uint32_t size)
{
    exact(m, LC_DYLD_INFO, size, 48);
    m->has_dyld_info = true;
    m->rebase = blob_at(m, at + 8);
    m->bind = blob_at(m, at + 16);
    m->weak_bind = blob_at(m, at + 24);
    m->lazy_bind = blob_at(m, at + 32);
    m->trie = blob_at(m, at + 40);
}

static bool parse_linkedit(struct macho *m, uint64_t at, uint32_t cmd, uint32_t size)
{
    struct blob *b;

    switch (cmd) {
    case LC_CODE_SIGNATURE:
        b = &m->signature;
        break;
    case LC_SEGMENT_SPLIT_INFO:
        b = &m->split_info;
        break;
    case LC_FUNCTION_STARTS:
        b = &m->function_starts;
        break;
    case LC_DATA_IN_CODE:
        b = &m->data_in_code;
        break;
    case LC_DYLD_EXPORTS_TRIE:
        b = &m->trie;
        break;
    case LC_DYLD_CHAINED_FIXUPS:
        b = &m->chained;
        m->has_chained = true;
        break;
    default:
        return false;
    }
    exact(m, cmd, size, 16);
    *b = blob_at(m, at + 8);
    return true;
}

static void parse_command(struct macho *m, uint64_t at, uint32_t cmd, uint32_t size)
{
    if (parse_linkedit(m, at, cmd, size))
        return;
    switch (cmd) {
    case LC_SEGMENT_64:
        parse_segment(m, at, size);
        break;
    case LC_SYMTAB:
    case LC_DYSYMTAB:
        parse_symbols(m, at, cmd, size);
        break;
    case LC_LOAD_DYLIB:
        parse_dylib(m, at, size, LOAD);
        break;
    case LC_LOAD_WEAK_DYLIB:
        parse_dylib(m, at, size, LOAD_WEAK);
        break;
    case LC_REEXPORT_DYLIB:
        parse_dylib(m, at, size, REEXPORT);
        break;
    case LC_LOAD_UPWARD_DYLIB:
        parse_dylib(m, at, size, UPWARD);
        break;
    case LC_ID_DYLIB:
        m->id = string_at(m, at + get32(m, at + 8), at + size);
        m->id_count++;
        break;
    case LC_RPATH:
        if (m->rpath_count >= 64)
            die("%s: more LC_RPATHs than this loader expects", m->path);
        m->rpaths[m->rpath_count++] = string_at(m, at + get32(m, at + 8), at + size);
        break;
    case LC_UUID:
        m->uuid_count++;
        break;
    case LC_DYLD_INFO:
        parse_dyld_info(m, at, size);
        break;
    case LC_VERSION_MIN_MACOSX:
        m->sdk = get32(m, at + 12);
        break;
    case LC_BUILD_VERSION:
        m->sdk = get32(m, at + 16);
        break;
    default:
        break;
    }
}

const char *arch_name(const struct macho *m)
{
    return m->cputype == X86_64 ? "x86_64" : "arm64";
}

static void parse(struct macho *m)
{
    uint64_t at = 32, end;

    m->filetype = get32(m, 12);
    m->ncmds = get32(m, 16);
    m->sizeofcmds = get32(m, 20);
    m->flags = get32(m, 24);
    m->page = m->cputype == ARM64 ? 0x4000 : 0x1000;
    end = at + m->sizeofcmds;
    bytes_at(m, 0, end);
    for (uint32_t i = 0; i < m->ncmds; i++) {
        uint32_t size;

        if (end - at < 8)
            die("%s: load command %u is past the end of all", m->path, i);
        size = get32(m, at + 4);
        if (size < 8 || size % 8 || size > end - at)
            die("%s: load command %u has a wrong size, %u", m->path, i, size);
        parse_command(m, at, get32(m, at) & 0x7fffffff, size);
        at += size;
    }
    if (at != end)
        die("%s: the load commands end at 0x%llx, by the header at 0x%llx", m->path,
            (unsigned long long)at, (unsigned long long)end);
    for (size_t i = 0; i < m->segment_count; i++)
        if (m->segments[i].fileoff == 0 && m->segments[i].filesize)
            m->start = m->segments[i].vmaddr;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static uint64_t big(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    while (n--)
        v = v << 8 | *p++;
    return v;
}

static void one_slice(struct macho *m, const char *arch, void (*each)(struct macho *m, void *user),
                      void *user)
{
    if (m->n < 32 || get32(m, 0) != 0xfeedfacf)
        return;
    m->cputype = get32(m, 4);
    m->cpusubtype = get32(m, 8) & 0xffffff;
    if ((m->cputype != X86_64 && m->cputype != ARM64) || (arch && strcmp(arch, arch_name(m)) != 0))
        return;
    parse(m);
    each(m, user);
}

/* The rules of Universal::valid (mach_o/Universal.cpp). */
static void fat_slice(const struct macho *file, uint64_t entry, bool wide, uint64_t *end,
                      struct macho *m)
{
    const uint8_t *e = bytes_at(file, entry, wide ? 32 : 20);
    uint64_t align;

    m->path = file->path;
    m->cputype = (uint32_t)big(e, 4);
    m->at = wide ? big(e + 8, 8) : big(e + 8, 4);
    m->n = wide ? big(e + 16, 8) : big(e + 12, 4);
    align = m->cputype == ARM64 ? 0x4000 : 0x1000;
    m->p = bytes_at(file, m->at, m->n);
    if ((m->cputype == ARM64 || m->cputype == X86_64) && m->at % align)
        die("%s: the slice at 0x%llx is not on a page", m->path, (unsigned long long)m->at);
    if (m->at < *end)
        die("%s: the slice at 0x%llx begins before the one before ends", m->path,
            (unsigned long long)m->at);
    *end = m->at + m->n;
    if ((m->cputype == ARM64 || m->cputype == X86_64) && get32(m, 4) != m->cputype)
        die("%s: a slice is for another machine than the table says", m->path);
}

static void map_file(const char *path, struct macho *file)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0)
        die("%s: cannot be opened", path);
    file->path = path;
    file->n = (uint64_t)st.st_size;
    file->p = mmap(NULL, file->n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file->p == MAP_FAILED)
        die("%s: cannot be read", path);
    close(fd);
}

void each_slice(const char *path, const char *arch, void (*each)(struct macho *m, void *user),
                void *user)
{
    struct macho *file = take_memory(sizeof *file);
    uint64_t magic, count, end;
    bool wide;

    map_file(path, file);
    magic = big(bytes_at(file, 0, 8), 4);
    wide = magic == 0xcafebabf;
    if (!wide && magic != 0xcafebabe) {
        one_slice(file, arch, each, user);
        return;
    }
    count = big(file->p + 4, 4);
    end = 8 + count * (wide ? 32 : 20);
    bytes_at(file, 0, end);
    for (uint64_t i = 0; i < count; i++) {
        struct macho *m = take_memory(sizeof *m);

        fat_slice(file, 8 + i * (wide ? 32 : 20), wide, &end, m);
        one_slice(m, arch, each, user);
    }
    if (end != file->n)
        die("%s: the last slice ends at 0x%llx, the file later", path, (unsigned long long)end);
}
