#define _GNU_SOURCE /* ST_NOEXEC */
#include "loader/process/original_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/fs_pieces.h"

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

/* mmap(2) maps whole pages, as the system's loader has. */
static int map_segment(const struct exti_segment *s, int fd, struct exti_error *err)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (size_t)(s->at % page);

    if (s->address % page != before)
        return exti__fail(err, EXTI_E_CHECK, s->at, "is not mapped by whole pages");
    if (mmap((void *)(s->address - before), s->size + before, s->protection,
             MAP_PRIVATE | MAP_FIXED, fd, (off_t)(s->at - before)) == MAP_FAILED)
        return exti__fail_io(err, errno, NULL, "cannot map code and constants from the original");
    return 0;
}

static bool has_part(const struct exti_segment *s, const struct exti_range *part)
{
    return part->at >= s->at && part->at - s->at < s->size &&
           part->n <= s->size - (part->at - s->at);
}

static int map_segments(const struct exti_loaded *lib, int fd, const struct exti_unread *left_out,
                        struct exti_error *err)
{
    struct exti_segment s = {.size = 0};
    int rc = 0;

    for (size_t i = 0; i < left_out->count && !rc; i++) {
        const struct exti_range *part = &left_out->part[i];

        if (has_part(&s, part))
            continue;
        if (!exti__loaded_segment(lib, part->at, &s) || !has_part(&s, part) ||
            (s.protection & PROT_WRITE))
            return exti__fail(err, EXTI_E_CHECK, part->at,
                              "has no read-only segment there, as its manifest says");
        rc = map_segment(&s, fd, err);
    }
    return rc;
}

int exti__map_original(const struct exti_loaded *lib, const char *original,
                       const struct exti_file_id *id, const struct exti_unread *left_out,
                       struct exti_error *err)
{
    struct exti_pieces f;
    int rc = exti__fs_pieces_open(original, &f, err);

    if (rc)
        return rc;
    if (!exti__fs_same_version(&f.id, id))
        rc = exti__fail_io(err, ESTALE, original, "has changed since its copy was made");
    else
        rc = map_segments(lib, (int)f.handle, left_out, err);
    exti__fs_pieces_close(&f);
    return rc;
}
