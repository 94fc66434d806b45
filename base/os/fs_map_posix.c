#define _GNU_SOURCE /* F_SETLEASE */
#include "base/os/fs_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_posix.h"
#include "base/shareable.h"

static int check_mappable_size(const struct stat *st, const char *path, struct exti_error *err)
{
    uint64_t size = (uint64_t)st->st_size;
    int rc = 0;

    if (!size)
        rc = exti__fail(err, EXTI_E_FORMAT, 0, "file is empty");
    else if (size > EXTI_MAX_INPUT || size > SIZE_MAX / 2)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                        "file has %" PRIu64 " bytes, the limit is %" PRIu64, size, EXTI_MAX_INPUT);
    if (rc)
        exti__error_file(err, path);
    return rc;
}

static int open_mappable(const char *path, int *out, struct stat *st, struct exti_error *err)
{
    int rc = exti__posix_open_regular(path, 0, out, st, err);

    if (rc)
        return rc;
    rc = check_mappable_size(st, path, err);
    if (rc)
        close(*out);
    return rc;
}

/* Nothing of a file is mapped, since a mapping follows its file: if the file is truncated in place,
 * the first access past its new end raises SIGBUS, and a library cannot own the handler of a
 * signal. */

/* Larger memory is mapped rather than allocated: it is zeros already, and what is not read costs
 * nothing. */
#define ALLOC_LIMIT ((size_t)256 << 10)

#define HUGE_PAGE ((size_t)2 << 20)

/* Maps *size bytes and rounds that up to pages.  If it has several huge pages, it starts with one:
 * Linux aligns only mappings of whole huge pages by itself. */
static void *map_memory(size_t *size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (*size + page - 1) / page * page;
    const size_t slack = n >= 2 * HUGE_PAGE ? HUGE_PAGE : 0;
    uint8_t *p = mmap(NULL, n + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before;

    if (p == MAP_FAILED)
        return p;
    *size = n;
    before = slack ? (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE : 0;
    if (before)
        munmap(p, before);
    if (before < slack)
        munmap(p + before + n, slack - before);
    return p + before;
}

/* Gives memory for `size` bytes of a file, and `room` bytes of zeros. */
static int get_memory(size_t size, uint64_t room, struct exti_mapping *out, struct exti_error *err)
{
    uint64_t total;
    size_t mapped;
    void *p;

    if (!exti__add(size, room, &total) || total > SIZE_MAX / 2)
        return exti__fail(err, EXTI_E_NOMEM, EXTI_NO_OFFSET,
                          "%zu bytes and %" PRIu64 " more do not fit in memory", size, room);
    if (total <= ALLOC_LIMIT) {
        p = exti__alloc((size_t)total);
        if (!p)
            return exti__fail_nomem(err);
        memset((uint8_t *)p + size, 0, (size_t)room);
        *out = (struct exti_mapping){.p = p, .n = size};
        return 0;
    }
    mapped = (size_t)total;
    p = map_memory(&mapped);
    if (p == MAP_FAILED)
        return exti__fail_io(err, errno, NULL, "cannot reserve %" PRIu64 " bytes of memory", total);
    *out = (struct exti_mapping){.p = p, .n = size, .mapped = mapped};
    return 0;
}

/* Reads [at, end) to its place. */
static int read_range(int fd, const char *path, struct exti_mapping *m, size_t at, size_t end,
                      struct exti_error *err)
{
    return at < end ? exti__posix_read_at(fd, path, m->p + at, end - at, at, err) : 0;
}

/* Reads the tables that tell the unread parts, then sets these. */
static int find_parts(int fd, const char *path, const struct exti_unread_ops *unread,
                      struct exti_span head, struct exti_mapping *m, struct exti_error *err)
{
    struct exti_range at[EXTI_UNREAD_TABLES];
    struct exti_span table[EXTI_UNREAD_TABLES] = {{0}};
    const size_t count = unread->tables(head, m->n, at);
    size_t n = 0;
    uint8_t *p;
    int rc = 0;

    if (!count)
        return 0;
    for (size_t i = 0; i < count; i++)
        n += at[i].n;
    p = exti__alloc(n);
    if (!p)
        return exti__fail_nomem(err);
    n = 0;
    for (size_t i = 0; i < count && !rc; i++) {
        rc = exti__posix_read_at(fd, path, p + n, at[i].n, at[i].at, err);
        table[i] = exti__span(p + n, at[i].n);
        n += at[i].n;
    }
    if (!rc)
        unread->parts(head, table, m->n, &m->unread);
    exti__free(p);
    return rc;
}

/* Reads what tells the unread parts.  That goes to other memory, as a page of `m` that is in use
 * keeps the huge page around it from being one. */
static int find_unread(int fd, const char *path, const struct exti_unread_ops *unread,
                       struct exti_mapping *m, struct exti_error *err)
{
    uint8_t head[EXTI_UNREAD_HEAD];
    int rc = exti__posix_read_at(fd, path, head, sizeof head, 0, err);

    return rc ? rc : find_parts(fd, path, unread, exti__span(head, sizeof head), m, err);
}

/* The kernel clears each page before it is filled, one by one, which takes several times as long as
 * the filling.  So a huge page is used where at least half of it is filled. */
static void use_huge_pages(const struct exti_mapping *m)
{
#ifdef MADV_HUGEPAGE
    for (size_t i = 0; m->mapped >= 2 * HUGE_PAGE && i <= m->unread.count; i++) {
        const struct exti_range r = exti__parts_between(&m->unread, i, m->n);
        const size_t from = (r.at + HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE;
        const size_t to = (r.at + r.n + HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE;

        if (r.n >= HUGE_PAGE / 2 && from < to)
            madvise(m->p + from, (to < m->mapped ? to : m->mapped) - from, MADV_HUGEPAGE);
    }
#else
    (void)m;
#endif
}

/* Has the kernel give all pages of the range at once, which takes less time than a fault for each;
 * kernels before 5.14 refuse it, and give them one by one. */
static void populate(const struct exti_mapping *m, struct exti_range r)
{
#ifdef MADV_POPULATE_WRITE
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), from = r.at / page * page;

    if (m->mapped && r.n > page)
        madvise(m->p + from, r.at + r.n - from, MADV_POPULATE_WRITE);
#else
    (void)m;
    (void)r;
#endif
}

static int read_parts(int fd, const char *path, const struct exti_unread_ops *unread,
                      struct exti_mapping *m, struct exti_error *err)
{
    int rc = unread && m->n > ALLOC_LIMIT ? find_unread(fd, path, unread, m, err) : 0;

    use_huge_pages(m);
    for (size_t i = 0; i <= m->unread.count && !rc; i++) {
        const struct exti_range r = exti__parts_between(&m->unread, i, m->n);

        populate(m, r);
        rc = read_range(fd, path, m, r.at, r.at + r.n, err);
    }
    return rc;
}

/* Reads the file of an open descriptor, unless it changes meanwhile. */
static int read_version(int fd, const struct stat *st, const char *path,
                        const struct exti_unread_ops *unread, struct exti_mapping *out,
                        struct exti_error *err)
{
    const struct exti_file_id before = exti__posix_id_of(st);
    struct exti_file_id after;
    struct exti_mapping m;
    struct stat now;
    int rc = get_memory((size_t)st->st_size, 0, &m, err);

    if (rc)
        return rc;
    rc = read_parts(fd, path, unread, &m, err);
    if (!rc && fstat(fd, &now) != 0)
        rc = exti__fail_io(err, errno, path, "cannot look up file");
    if (!rc) {
        after = exti__posix_id_of(&now);
        if (!exti__fs_same_id(&before, &after))
            rc = exti__fail_io(err, ESTALE, path, "changed while it was read");
    }
    if (rc)
        exti__fs_unmap(&m);
    else
        *out = m;
    return rc;
}

/* The time between two ticks of a kernel with HZ=100, and some. */
#define TICK_NS ((int64_t)11000000)
/* A file that changed longer ago than this is not taken for one that is being written. */
#define RECENT_NS ((int64_t)10000000000)
/* How long a writer is waited for. */
#define PATIENCE_NS ((int64_t)1000000000)

/* A read lease is refused (EAGAIN) while somebody has the file open for writing, fcntl(2).  Only
 * the owner and root can ask; NFS refuses always.  A writer who opens the file before the lease
 * is given back sends a signal: SIGURG, which is ignored by default, as SIGIO is not. */
static bool is_open_for_writing(int fd)
{
#if defined F_SETLEASE && defined F_SETSIG
    if (fcntl(fd, F_SETSIG, SIGURG) != 0)
        return false;
    if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        return errno == EAGAIN;
    fcntl(fd, F_SETLEASE, F_UNLCK);
#else
    (void)fd;
#endif
    return false;
}

/* How long to wait before looking again whether the file is complete; 0: it seems to be.  A later
 * change shows only if the last one is older than a tick: before Linux 6.13 a file's times advance
 * with the kernel's clock.  They are set when a write begins, so a write may still be under way.
 * Times in the future, as servers give, are not waited for. */
static int64_t unsettled_ns(int fd, const struct stat *st)
{
    struct timespec t;
    int64_t age;

    if (clock_gettime(CLOCK_REALTIME, &t) != 0)
        return 0;
    age = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - exti__posix_id_of(st).ctime_ns;
    if (age < 0 || age > RECENT_NS)
        return 0;
    if (age <= TICK_NS)
        return TICK_NS - age + 1;
    return is_open_for_writing(fd) ? TICK_NS : 0;
}

static int wait_until_settled(int fd, struct stat *st, const char *path, struct exti_error *err)
{
    int64_t waited = 0, ns;

    while (waited < PATIENCE_NS && (ns = unsettled_ns(fd, st)) > 0) {
        const struct timespec t = {.tv_nsec = (long)ns};

        nanosleep(&t, NULL);
        waited += ns;
        if (fstat(fd, st) != 0)
            return exti__fail_io(err, errno, path, "cannot look up file");
    }
    return 0;
}

static int map_once(const char *path, const struct exti_unread_ops *unread,
                    struct exti_mapping *out, struct exti_file_id *id, struct exti_error *err)
{
    struct stat st;
    int fd, rc = open_mappable(path, &fd, &st, err);

    if (rc)
        return rc;
    if (unread)
        rc = wait_until_settled(fd, &st, path, err);
    if (!rc)
        rc = check_mappable_size(&st, path, err);
    if (!rc)
        rc = read_version(fd, &st, path, unread, out, err);
    if (rc)
        exti__error_file(err, path);
    close(fd);
    if (rc == 0 && id)
        *id = exti__posix_id_of(&st);
    return rc;
}

/* A file that is being written may be whole the next time. */
#define ATTEMPTS 3

int exti__fs_map_parts(const char *path, const struct exti_unread_ops *unread,
                       struct exti_mapping *out, struct exti_file_id *id, struct exti_error *err)
{
    struct exti_error e;
    int rc = 0;

    for (int i = 0; i < ATTEMPTS; i++) {
        e = (struct exti_error){0};
        rc = map_once(path, unread, out, id, &e);
        if (rc != EXTI_E_IO || e.os_error != ESTALE)
            break;
    }
    if (rc && err)
        *err = e;
    return rc;
}

int exti__fs_map(const char *path, struct exti_mapping *out, struct exti_file_id *id,
                 struct exti_error *err)
{
    return exti__fs_map_parts(path, NULL, out, id, err);
}

int exti__fs_map_head(const char *path, size_t max, struct exti_mapping *out,
                      struct exti_error *err)
{
    struct exti_mapping m;
    struct stat st;
    int fd, rc = open_mappable(path, &fd, &st, err);

    if (rc)
        return rc;
    if ((uint64_t)st.st_size < max)
        max = (size_t)st.st_size;
    rc = get_memory(max, 0, &m, err);
    if (!rc) {
        rc = read_range(fd, path, &m, 0, max, err);
        if (rc)
            exti__fs_unmap(&m);
        else
            *out = m;
    }
    close(fd);
    if (rc)
        exti__error_file(err, path);
    return rc;
}

int exti__fs_map_image(const struct exti_mapping *source, uint64_t room, struct exti_mapping *out,
                       struct exti_error *err)
{
    struct exti_mapping m;
    int rc = get_memory(source->n, room, &m, err);

    if (rc)
        return rc;
    m.unread = source->unread;
    use_huge_pages(&m);
    for (size_t i = 0; i <= m.unread.count; i++) {
        const struct exti_range r = exti__parts_between(&m.unread, i, m.n);

        populate(&m, r);
        memcpy(m.p + r.at, source->p + r.at, r.n);
    }
    *out = m;
    return 0;
}

void exti__fs_unmap(struct exti_mapping *m)
{
    if (m->mapped)
        munmap(m->p, m->mapped);
    else
        exti__free(m->p);
    *m = (struct exti_mapping){0};
}
