#define _GNU_SOURCE /* ST_NOEXEC */
#include "loader/process/original_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_pieces.h"
#include "loader/process/original_data_elf.h"

/* proc(5): "TracerPid: 0" where nobody traces the process. */
bool exti__can_map_originals(void)
{
    static const char key[] = "\nTracerPid:\t";
    char text[4096];
    const char *tracer;
    ssize_t n = 0;
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        n = read(fd, text, sizeof text - 1);
        close(fd);
    }
    text[n > 0 ? n : 0] = 0;
    tracer = strstr(text, key);
    return !tracer || tracer[sizeof key - 1] == '0';
}

bool exti__can_map_code(const char *path)
{
#ifdef ST_NOEXEC
    struct statvfs v;

    return statvfs(path, &v) != 0 || !(v.f_flag & ST_NOEXEC);
#else
    (void)path;
    return true;
#endif
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- code and constants ---- */

/* Constants of at most this size are mapped with the code before them, by one mapping, as they are
 * of libraries that were linked without -z separate-code: a process may have 65,530 mappings. */
#define FEW_CONSTANTS ((size_t)32 << 10)

/* What is compared at once. */
#define PIECE ((size_t)64 << 10)

/* The original, open, and a buffer of PIECE bytes. */
struct original {
    const struct exti_pieces *file;
    const struct exti_unread *left_out;
    uint8_t *piece;
};

/* mmap(2) maps whole pages, as the system's loader has. */
static int map_segment(const struct exti_segment *s, const struct original *o,
                       struct exti_error *err)
{
    const size_t before = (size_t)(s->at % page_size());

    if (s->address % page_size() != before)
        return exti__fail(err, EXTI_E_CHECK, s->at, "is not mapped by whole pages");
    if (mmap((void *)(s->address - before), s->size + before, s->protection,
             MAP_PRIVATE | MAP_FIXED, (int)o->file->handle, (off_t)(s->at - before)) == MAP_FAILED)
        return exti__fail_io(err, errno, NULL, "cannot map code and constants from the original");
    return 0;
}

static bool has_part(const struct exti_segment *s, const struct exti_range *part)
{
    return part->at >= s->at && part->at - s->at < s->size &&
           part->n <= s->size - (part->at - s->at);
}

static bool leaves_out(const struct original *o, const struct exti_segment *s)
{
    for (size_t i = 0; i < o->left_out->count; i++)
        if (has_part(s, &o->left_out->part[i]))
            return true;
    return false;
}

static bool is_alike(const struct original *o, const struct exti_segment *s)
{
    return s->size <= PIECE && !exti__fs_pieces_read(o->file, s->at, o->piece, s->size, NULL) &&
           memcmp(o->piece, (const void *)s->address, s->size) == 0;
}

/* Whether the segment has its last page in memory for itself. */
static bool ends_apart(const struct exti_loaded *lib, const struct exti_segment *s)
{
    const uintptr_t last = s->address + s->size - 1;
    struct exti_segment after;

    return !exti__loaded_next_segment(lib, s, &after) ||
           after.address / page_size() > last / page_size();
}

/* Whether the original has what follows `s`, and what lies between, at the same distance, so that
 * one mapping can hold both. */
static bool can_join(const struct exti_loaded *lib, const struct original *o,
                     const struct exti_segment *s, const struct exti_segment *next)
{
    if (next->address - s->address != next->at - s->at || !ends_apart(lib, next))
        return false;
    if (leaves_out(o, next))
        return next->protection == s->protection;
    return next->protection == PROT_READ && (s->protection & PROT_READ) &&
           next->size <= FEW_CONSTANTS && is_alike(o, next);
}

static int map_segments(const struct exti_loaded *lib, const struct original *o,
                        struct exti_error *err)
{
    struct exti_segment s = {.size = 0}, last, next;
    int rc = 0;

    for (size_t i = 0; i < o->left_out->count && !rc; i++) {
        const struct exti_range *part = &o->left_out->part[i];

        if (has_part(&s, part))
            continue;
        /* Data: original_data_elf.h.  Another process may have made a full copy, which has it. */
        if (!exti__loaded_segment(lib, part->at, &s) || (s.protection & PROT_WRITE)) {
            s.size = 0;
            continue;
        }
        if (!has_part(&s, part))
            return exti__fail(err, EXTI_E_CHECK, part->at,
                              "has no read-only segment there, as its manifest says");
        for (last = s; exti__loaded_next_segment(lib, &last, &next) && can_join(lib, o, &s, &next);
             last = next)
            s.size = (size_t)(next.at - s.at) + next.size;
        rc = map_segment(&s, o, err);
    }
    return rc;
}

/* ---- tables ---- */

/* What the system's loader binds by, symbols and relocations, has to be in the copy.  From then on
 * its pages can be the original's, but for those that an edit has changed: at most so many mappings
 * more, of at least so many pages. */
#define TABLE_RUNS 2
#define TABLE_PAGES 8

/* The segment with the headers and tables, by whole pages. */
static bool find_tables(const struct exti_loaded *lib, const struct original *o,
                        struct exti_segment *out)
{
    const size_t page = page_size();

    if (!exti__loaded_segment(lib, 0, out) || out->protection != PROT_READ || out->address % page ||
        !ends_apart(lib, out))
        return false;
    out->size = (out->size + page - 1) / page * page;
    if (out->size > o->file->id.size)
        out->size -= page;
    return out->size >= TABLE_PAGES * page;
}

/* The versions that a library needs say which library they are of: in a copy, the context's.  The
 * system's loader has looked that up (glibc's dl-version.c), and nobody does again.  So it makes no
 * page differ: the `n` bytes of the original at `address` get the copy's. */
static void put_file_names(const struct exti_loaded *lib, uintptr_t address, uint8_t *bytes,
                           size_t n)
{
    for (const ElfW(Verneed) *need = lib->needed_versions; need;
         need = need->vn_next ? (const void *)((const char *)need + need->vn_next) : NULL) {
        const uintptr_t name = (uintptr_t)&need->vn_file;

        if (name >= address && name - address < n) /* as aligned as a page's end */
            memcpy(bytes + (name - address), &need->vn_file, sizeof need->vn_file);
    }
}

/* The size of the run of pages from `at` on that the original has too. */
static int measure_run(const struct exti_loaded *lib, const struct original *o,
                       const struct exti_segment *tables, size_t at, size_t *size,
                       struct exti_error *err)
{
    const size_t page = page_size();
    size_t n = 0, same = 0;
    int rc = 0;

    for (*size = 0; same == n && at < tables->size && !rc; at += n, *size += same) {
        n = tables->size - at < PIECE ? tables->size - at : PIECE;
        rc = exti__fs_pieces_read(o->file, tables->at + at, o->piece, n, err);
        if (rc)
            break;
        put_file_names(lib, tables->address + at, o->piece, n);
        for (same = 0;
             same < n && memcmp(o->piece + same, (void *)(tables->address + at + same), page) == 0;)
            same += page;
    }
    return rc;
}

static int map_tables(const struct exti_loaded *lib, const struct original *o,
                      struct exti_error *err)
{
    const size_t page = page_size();
    size_t run, runs = 0;
    struct exti_segment tables;
    int rc = 0;

    if (!find_tables(lib, o, &tables))
        return 0;
    for (size_t at = 0; at < tables.size && runs < TABLE_RUNS && !rc; at += run + page) {
        rc = measure_run(lib, o, &tables, at, &run, err);
        if (rc || run < TABLE_PAGES * page)
            continue;
        rc = map_segment(&(struct exti_segment){.address = tables.address + at,
                                                .at = tables.at + at,
                                                .size = run,
                                                .protection = tables.protection},
                         o, err);
        runs++;
    }
    return rc;
}

static int map_parts(const struct exti_loaded *lib, const struct original *o, bool tables,
                     struct exti_error *err)
{
    int rc = map_segments(lib, o, err);

    if (!rc)
        rc = exti__original_data(lib, o->file, o->left_out, err);
    return rc || !tables ? rc : map_tables(lib, o, err);
}

int exti__map_original(const struct exti_loaded *lib, const char *original,
                       const struct exti_file_id *id, const struct exti_unread *left_out,
                       bool tables, struct exti_error *err)
{
    struct exti_pieces f;
    struct original o = {&f, left_out, NULL};
    int rc = exti__fs_pieces_open(original, &f, err);

    if (rc)
        return rc;
    o.piece = exti__alloc(PIECE);
    if (!o.piece)
        rc = exti__fail_nomem(err);
    else if (!exti__fs_same_version(&f.id, id))
        rc = exti__fail_io(err, ESTALE, original, "has changed since its copy was made");
    else
        rc = map_parts(lib, &o, tables, err);
    exti__free(o.piece);
    exti__fs_pieces_close(&f);
    return rc;
}
