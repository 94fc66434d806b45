#include "base/os/fs_replace.h"

#include <errno.h>

#include "base/mem.h"
#include "base/os/fs_random.h"
#include "base/os/fs_temp_name.h"
#include "base/os/fs_win32.h"

#define ATTEMPTS 12

static bool write_all(HANDLE h, const uint8_t *p, size_t n)
{
    while (n) {
        DWORD chunk = n < (1u << 30) ? (DWORD)n : 1u << 30, done;

        if (!WriteFile(h, p, chunk, &done, NULL))
            return false;
        p += done;
        n -= done;
    }
    return true;
}

/* Between the two renames there is no such file; whoever needs the copy then makes it again. */
static DWORD replace_in_use(const char *path, const struct exti_wide *temp,
                            const struct exti_wide *w)
{
    struct exti_wide aside;
    DWORD code;

    if (exti__win32_step_aside(path, w, &aside, NULL))
        return ERROR_ACCESS_DENIED;
    if (MoveFileExW(temp->text, w->text, 0)) {
        exti__win32_delete(&aside); /* else the directory's next cleaning does */
        return 0;
    }
    code = GetLastError();
    MoveFileExW(aside.text, w->text, 0);
    return code;
}

/* Tries several times, because virus scanners and indexers open new files for a moment. */
static int move_over(const char *path, const struct exti_wide *temp, const struct exti_wide *w,
                     uint32_t flags, struct exti_error *err)
{
    DWORD how = MOVEFILE_REPLACE_EXISTING | (flags & EXTI_FS_SYNC ? MOVEFILE_WRITE_THROUGH : 0);
    DWORD code = 0;

    for (DWORD i = 0; i < ATTEMPTS; i++) {
        if (MoveFileExW(temp->text, w->text, how))
            return 0;
        code = GetLastError();
        if (exti__win32_is_folder(w))
            return exti__fail_io(err, EISDIR, path, "cannot rename temporary file to its name");
        if (code != ERROR_ACCESS_DENIED && code != ERROR_SHARING_VIOLATION &&
            code != ERROR_USER_MAPPED_FILE)
            break;
        if (!replace_in_use(path, temp, w))
            return 0;
        Sleep(i * i);
    }
    return exti__fail_system(err, code, path, "cannot rename temporary file to its name");
}

/* The file inherits the folder's access list. */
static int write_temp(const char *path, const struct exti_wide *temp, const void *p, size_t n,
                      uint32_t flags, struct exti_error *err)
{
    HANDLE h = CreateFileW(temp->text, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                           CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    int rc = 0;

    if (h == INVALID_HANDLE_VALUE)
        return exti__fail_last(err, path, "cannot create temporary file beside it");
    if (!write_all(h, p, n))
        rc = exti__fail_system(err, GetLastError(), path, "cannot write %zu bytes", n);
    else if ((flags & EXTI_FS_SYNC) && !FlushFileBuffers(h))
        rc = exti__fail_last(err, path, "cannot sync file");
    CloseHandle(h);
    if (rc)
        exti__win32_delete(temp);
    return rc;
}

int exti__fs_replace(const char *path, const void *p, size_t n, uint32_t flags,
                     struct exti_error *err)
{
    uint8_t random[EXTI_TEMP_RANDOM];
    struct exti_wide w, temp;
    char *text = NULL;
    int rc = exti__wide_path(path, &w, err);

    if (!rc)
        rc = exti__fs_random(random, sizeof random, "a temporary name", err);
    if (!rc) {
        text = exti__fs_temp_path(path, random);
        rc = text ? exti__wide_path(text, &temp, err) : exti__fail_nomem(err);
    }
    if (!rc)
        rc = write_temp(path, &temp, p, n, flags, err);
    if (!rc) {
        rc = move_over(path, &temp, &w, flags, err);
        if (rc)
            exti__win32_delete(&temp);
    }
    exti__free(text);
    return rc;
}

/* Edited in memory: no other memory can follow a view of a file. */
int exti__fs_clone(const char *path, const struct exti_fs_source *source, size_t size,
                   uint32_t flags, struct exti_fs_clone *out, struct exti_error *err)
{
    struct exti_fs_clone c = {.size = size, .kept = source->kept, .fd = -1};
    const size_t n = source->bytes->n;
    int rc = exti__fs_map_image(source->bytes, size > n ? size - n : 0, &c.image, err);

    (void)path;
    (void)flags;
    if (!rc)
        *out = c;
    return rc;
}

int exti__fs_clone_replace(struct exti_fs_clone *c, const char *path,
                           const struct exti_range *changed, size_t changed_count, uint32_t flags,
                           struct exti_error *err)
{
    int rc = exti__fs_replace(path, c->image.p, c->size, flags, err);

    (void)changed;
    (void)changed_count;
    exti__fs_clone_drop(c);
    return rc;
}

void exti__fs_clone_drop(struct exti_fs_clone *c)
{
    exti__fs_unmap(&c->image);
}
