#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/os/fs_priv.h"
#include "base/os/win32.h"

#define SHARE_ALL (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)
#define ATTEMPTS 12

/* ---- looking ---- */

static int fail(struct exti_error *err, const char *path, const char *what)
{
    return exti__fail_system(err, GetLastError(), path, "%s", what);
}

static uint64_t join_dwords(DWORD high, DWORD low)
{
    return (uint64_t)high << 32 | low;
}

static struct exti_file_id id_of(const BY_HANDLE_FILE_INFORMATION *info)
{
    /* FILETIME counts 100 ns since 1601. */
    uint64_t t =
        join_dwords(info->ftLastWriteTime.dwHighDateTime, info->ftLastWriteTime.dwLowDateTime);

    return (struct exti_file_id){
        .size = join_dwords(info->nFileSizeHigh, info->nFileSizeLow),
        .inode = join_dwords(info->nFileIndexHigh, info->nFileIndexLow),
        .device = info->dwVolumeSerialNumber,
        .mtime_ns = ((int64_t)t - 116444736000000000) * 100,
        .mode = info->dwFileAttributes & FILE_ATTRIBUTE_READONLY ? 0555 : 0777,
    };
}

static int check_regular(HANDLE h, const BY_HANDLE_FILE_INFORMATION *info, const char *path,
                         struct exti_error *err)
{
    bool folder = (info->dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;

    if (!folder && GetFileType(h) == FILE_TYPE_DISK)
        return 0;
    exti__fail(err, EXTI_E_IO, EXTI_NO_OFFSET, "%s, not a regular file",
               folder ? "a directory" : "a device");
    if (err && folder)
        err->os_error = EISDIR;
    exti__error_file(err, path);
    return EXTI_E_IO;
}

static HANDLE open_wide(const struct exti_wide *w, DWORD access)
{
    /* Without this flag a folder is merely "access denied". */
    return CreateFileW(w->text, access, SHARE_ALL, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS,
                       NULL);
}

static int open_regular(const char *path, DWORD access, HANDLE *out, struct exti_file_id *id,
                        struct exti_error *err)
{
    BY_HANDLE_FILE_INFORMATION info = {0};
    struct exti_wide w;
    int rc = exti__wide_path(path, &w, err);
    HANDLE h;

    if (rc)
        return rc;
    h = open_wide(&w, access);
    if (h == INVALID_HANDLE_VALUE)
        return fail(err, path, "cannot open file");
    if (GetFileType(h) == FILE_TYPE_DISK && !GetFileInformationByHandle(h, &info))
        rc = fail(err, path, "cannot look up file");
    else
        rc = check_regular(h, &info, path, err);
    if (rc) {
        CloseHandle(h);
        return rc;
    }
    *id = id_of(&info);
    *out = h;
    return 0;
}

int exti__fs_id(const char *path, struct exti_file_id *out, struct exti_error *err)
{
    struct exti_file_id id;
    HANDLE h;
    int rc = open_regular(path, FILE_READ_ATTRIBUTES, &h, &id, err);

    if (rc)
        return rc;
    CloseHandle(h);
    *out = id;
    return 0;
}

/* ---- mappings ---- */

static int open_mappable(const char *path, HANDLE *out, struct exti_file_id *id,
                         struct exti_error *err)
{
    int rc = open_regular(path, GENERIC_READ, out, id, err);

    if (rc)
        return rc;
    if (!id->size)
        rc = exti__fail(err, EXTI_E_FORMAT, 0, "file is empty");
    else if (id->size > EXTI_MAX_INPUT || id->size > SIZE_MAX / 2)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                        "file has %" PRIu64 " bytes, the limit is %" PRIu64, id->size,
                        EXTI_MAX_INPUT);
    if (rc) {
        exti__error_file(err, path);
        CloseHandle(*out);
    }
    return rc;
}

/* While a file is mapped no one can truncate it, so that no access faults but for a network's or a
 * disk's failure. */
int exti__fs_map(const char *path, struct exti_mapping *out, struct exti_file_id *id,
                 struct exti_error *err)
{
    struct exti_file_id now;
    HANDLE h, section;
    void *p = NULL;
    int rc = open_mappable(path, &h, &now, err);

    if (rc)
        return rc;
    section = CreateFileMappingW(h, NULL, PAGE_READONLY, 0, 0, NULL);
    if (section)
        p = MapViewOfFile(section, FILE_MAP_READ, 0, 0, (size_t)now.size);
    if (!p)
        rc = fail(err, path, "cannot map file");
    if (section)
        CloseHandle(section);
    CloseHandle(h);
    if (rc)
        return rc;
    *out = (struct exti_mapping){.p = p, .n = (size_t)now.size};
    if (id)
        *id = now;
    return 0;
}

/* Reads until `n` bytes are there or the file ends; *got tells how many. */
static bool read_upto(HANDLE h, uint8_t *p, size_t n, size_t *got)
{
    *got = 0;
    while (*got < n) {
        DWORD chunk = n - *got < (1u << 30) ? (DWORD)(n - *got) : 1u << 30, done;

        if (!ReadFile(h, p + *got, chunk, &done, NULL))
            return false;
        if (!done)
            break;
        *got += done;
    }
    return true;
}

/* A view of a file cannot be followed by memory of another kind, so the bytes are read. */
static int read_image(HANDLE h, uint64_t size, uint64_t room, const char *path,
                      struct exti_mapping *out, struct exti_error *err)
{
    uint64_t total;
    uint8_t *p;
    size_t got;
    int rc = 0;

    if (!exti__add(size, room, &total) || total > SIZE_MAX / 2)
        return exti__fail(err, EXTI_E_NOMEM, EXTI_NO_OFFSET,
                          "%" PRIu64 " bytes and %" PRIu64 " more do not fit in memory", size,
                          room);
    p = VirtualAlloc(NULL, (size_t)total, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!p)
        return exti__fail_system(err, GetLastError(), path,
                                 "cannot reserve %" PRIu64 " bytes of memory", total);
    if (!read_upto(h, p, (size_t)size, &got))
        rc = fail(err, path, "cannot read file");
    else if (got < size)
        rc = exti__fail_io(err, ESTALE, path, "changed while it was read");
    if (rc)
        VirtualFree(p, 0, MEM_RELEASE);
    else
        *out = (struct exti_mapping){p, (size_t)size, (size_t)total};
    return rc;
}

int exti__fs_map_copy(const char *path, const struct exti_file_id *id, uint64_t room,
                      struct exti_mapping *out, struct exti_error *err)
{
    struct exti_file_id now;
    HANDLE h;
    int rc = open_mappable(path, &h, &now, err);

    if (rc)
        return rc;
    if (exti__fs_same_id(&now, id))
        rc = read_image(h, now.size, room, path, out, err);
    else
        rc = exti__fail_io(err, ESTALE, path, "changed while it was read");
    if (rc)
        exti__error_file(err, path);
    CloseHandle(h);
    return rc;
}

/* `mapped` is 0 for a view, which goes as a whole. */
void exti__fs_unmap(struct exti_mapping *m)
{
    if (m->p && m->mapped)
        VirtualFree(m->p, 0, MEM_RELEASE);
    else if (m->p)
        UnmapViewOfFile(m->p);
    *m = (struct exti_mapping){0};
}

int exti__fs_read(const char *path, size_t max, char **out, size_t *n, struct exti_error *err)
{
    struct exti_file_id id;
    size_t cap, have = 0;
    uint8_t *buf;
    HANDLE h;
    int rc = open_regular(path, GENERIC_READ, &h, &id, err);

    if (rc)
        return rc;
    /* One more than there should be tells a file that has grown; its next reader sees the rest. */
    cap = id.size < max ? (size_t)id.size : max + 1;
    buf = exti__alloc(cap + 1);
    if (!buf)
        rc = exti__fail_nomem(err);
    else if (!read_upto(h, buf, cap, &have))
        rc = fail(err, path, "cannot read file");
    else if (have > max)
        rc = exti__fail(err, EXTI_E_FORMAT, max, "file has more than %zu bytes", max);
    CloseHandle(h);
    if (rc) {
        exti__error_file(err, path);
        exti__free(buf);
        return rc;
    }
    buf[have] = 0;
    *out = (char *)buf;
    *n = have;
    return 0;
}

/* ---- names ---- */

static bool wide_join(struct exti_wide *w, const wchar_t *name)
{
    size_t n = wcslen(w->text), more = wcslen(name);

    if (n + 1 + more >= sizeof w->text / sizeof *w->text)
        return false;
    w->text[n] = L'\\';
    wmemcpy(w->text + n + 1, name, more + 1);
    return true;
}

/* Removes the name at once where the file system can (NTFS of Windows 10 and later): what others
 * have open, as the holder of a lock does, would else keep it, and the folder with it, until they
 * close. */
static DWORD delete_file(const struct exti_wide *w)
{
    struct {
        DWORD flags;
    } how = {0x1 | 0x2 | 0x10}; /* FILE_DISPOSITION_DELETE, _POSIX_SEMANTICS, _IGNORE_READONLY */
    const FILE_INFO_BY_HANDLE_CLASS disposition_ex = 21; /* FileDispositionInfoEx */
    HANDLE h = CreateFileW(w->text, DELETE, SHARE_ALL, NULL, OPEN_EXISTING,
                           FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    DWORD attributes;
    bool done;

    if (h == INVALID_HANDLE_VALUE)
        return GetLastError();
    done = SetFileInformationByHandle(h, disposition_ex, &how, sizeof how);
    CloseHandle(h);
    if (done)
        return 0;
    attributes = GetFileAttributesW(w->text);
    if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_READONLY)
        SetFileAttributesW(w->text, attributes & ~(DWORD)FILE_ATTRIBUTE_READONLY);
    return DeleteFileW(w->text) ? 0 : GetLastError();
}

static bool is_folder(const struct exti_wide *w)
{
    DWORD attributes = GetFileAttributesW(w->text);

    return attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY;
}

/* "Access denied" is what the system also says of a file that some process has loaded. */
static bool is_in_use(const struct exti_wide *w, DWORD code)
{
    HANDLE h;

    if (code == ERROR_SHARING_VIOLATION || code == ERROR_USER_MAPPED_FILE)
        return true;
    if (code != ERROR_ACCESS_DENIED || is_folder(w))
        return false;
    h = CreateFileW(w->text, DELETE, SHARE_ALL, NULL, OPEN_EXISTING, 0, NULL);
    if (h == INVALID_HANDLE_VALUE)
        return GetLastError() == ERROR_SHARING_VIOLATION;
    CloseHandle(h);
    return true;
}

int exti__fs_remove(const char *path, struct exti_error *err)
{
    struct exti_wide w;
    int rc = exti__wide_path(path, &w, err);
    DWORD code;

    if (rc)
        return rc;
    code = delete_file(&w);
    if (!code || code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND)
        return 0;
    if (!is_in_use(&w, code))
        return exti__fail_system(err, code, path, "cannot remove file");
    rc = exti__fail(err, EXTI_E_IO, EXTI_NO_OFFSET,
                    "cannot remove file: a process has it loaded or open; remove it once that has "
                    "ended");
    if (err)
        err->os_error = EBUSY;
    exti__error_file(err, path);
    return rc;
}

int exti__fs_rmdir(const char *path, bool *removed, struct exti_error *err)
{
    struct exti_wide w;
    int rc = exti__wide_path(path, &w, err);

    if (rc)
        return rc;
    *removed = RemoveDirectoryW(w.text);
    if (*removed || GetLastError() == ERROR_DIR_NOT_EMPTY ||
        GetLastError() == ERROR_SHARING_VIOLATION || exti__errno_of(GetLastError()) == ENOENT)
        return 0;
    return fail(err, path, "cannot remove folder");
}

int exti__fs_mkdir(const char *path, bool *made, struct exti_error *err)
{
    struct exti_wide w;
    int rc = exti__wide_path(path, &w, err);

    if (rc)
        return rc;
    *made = CreateDirectoryW(w.text, NULL);
    if (*made)
        return 0;
    if (GetLastError() != ERROR_ALREADY_EXISTS)
        return fail(err, path, "cannot make folder");
    if (!is_folder(&w))
        return exti__fail_io(err, ENOTDIR, path, "cannot make folder, a file has its name");
    return 0;
}

int exti__fs_realpath(const char *path, char **out, struct exti_error *err)
{
    struct exti_wide w, final;
    const size_t cap = sizeof final.text / sizeof *final.text;
    char text[EXTI_PATH_MAX];
    int rc = exti__wide_path(path, &w, err);
    DWORD n = 0;
    HANDLE h;

    if (rc)
        return rc;
    h = open_wide(&w, FILE_READ_ATTRIBUTES);
    if (h == INVALID_HANDLE_VALUE)
        return fail(err, path, "cannot resolve path");
    n = GetFinalPathNameByHandleW(h, final.text, (DWORD)cap, 0);
    CloseHandle(h);
    /* Drivers of RAM disks and the like may not know their volume's name. */
    if (!n || n >= cap)
        n = GetFullPathNameW(w.text, (DWORD)cap, final.text, NULL);
    if (!n || n >= cap || exti__wide_to_utf8(exti__wide_plain(final.text), text, sizeof text))
        return fail(err, path, "cannot resolve path");
    *out = exti__strdup(text);
    return *out ? 0 : exti__fail_nomem(err);
}

bool exti__fs_is_named_itself(const char *path)
{
    (void)path;
    return false;
}

int exti__fs_list(const char *dir, int (*each)(void *user, const char *name), void *user,
                  struct exti_error *err)
{
    WIN32_FIND_DATAW found;
    struct exti_wide w;
    char name[3 * MAX_PATH];
    HANDLE h;
    int rc = exti__wide_path(dir, &w, err);

    if (rc)
        return rc;
    if (!wide_join(&w, L"*"))
        return exti__fail_io(err, ENAMETOOLONG, dir, "cannot open folder");
    h = FindFirstFileExW(w.text, FindExInfoBasic, &found, FindExSearchNameMatch, NULL, 0);
    if (h == INVALID_HANDLE_VALUE)
        return fail(err, dir, "cannot open folder");
    do {
        if (wcscmp(found.cFileName, L".") != 0 && wcscmp(found.cFileName, L"..") != 0 &&
            !exti__wide_to_utf8(found.cFileName, name, sizeof name))
            rc = each(user, name);
    } while (!rc && FindNextFileW(h, &found));
    if (!rc && GetLastError() != ERROR_NO_MORE_FILES)
        rc = fail(err, dir, "cannot read folder");
    FindClose(h);
    return rc;
}

/* ---- writing ---- */

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

/* Gives the file `path` a temporary name beside it.  A loaded library can be renamed, though not
 * removed or overwritten. */
static int step_aside(const char *path, const struct exti_wide *w, struct exti_wide *aside,
                      struct exti_error *err)
{
    uint8_t random[EXTI_TEMP_RANDOM];
    int rc = exti__fs_random(random, sizeof random, "a temporary name", err);
    char *temp = rc ? NULL : exti__fs_temp_path(path, random);

    if (!rc)
        rc = temp ? exti__wide_path(temp, aside, err) : exti__fail_nomem(err);
    exti__free(temp);
    if (!rc && !MoveFileExW(w->text, aside->text, 0))
        rc = fail(err, path, "cannot move the old file aside");
    return rc;
}

void exti__fs_discard(const char *path)
{
    struct exti_wide w, aside;

    if (!exti__wide_path(path, &w, NULL) && delete_file(&w))
        step_aside(path, &w, &aside, NULL);
}

/* Between the two renames the file is not there, as if it had been removed: a copy is then made
 * anew. */
static DWORD replace_in_use(const char *path, const struct exti_wide *temp,
                            const struct exti_wide *w)
{
    struct exti_wide aside;
    DWORD code;

    if (step_aside(path, w, &aside, NULL))
        return ERROR_ACCESS_DENIED;
    if (MoveFileExW(temp->text, w->text, 0)) {
        delete_file(&aside); /* or at the directory's next cleaning */
        return 0;
    }
    code = GetLastError();
    MoveFileExW(aside.text, w->text, 0);
    return code;
}

/* Virus scanners and indexers open what is new for a moment, hence the attempts. */
static int move_over(const char *path, const struct exti_wide *temp, const struct exti_wide *w,
                     uint32_t flags, struct exti_error *err)
{
    DWORD how = MOVEFILE_REPLACE_EXISTING | (flags & EXTI_FS_SYNC ? MOVEFILE_WRITE_THROUGH : 0);
    DWORD code = 0;

    for (DWORD i = 0; i < ATTEMPTS; i++) {
        if (MoveFileExW(temp->text, w->text, how))
            return 0;
        code = GetLastError();
        if (is_folder(w))
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

/* The folder's access list is the file's. */
static int write_temp(const char *path, const struct exti_wide *temp, const void *p, size_t n,
                      uint32_t flags, struct exti_error *err)
{
    HANDLE h = CreateFileW(temp->text, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL,
                           CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    int rc = 0;

    if (h == INVALID_HANDLE_VALUE)
        return fail(err, path, "cannot create temporary file beside it");
    if (!write_all(h, p, n))
        rc = exti__fail_system(err, GetLastError(), path, "cannot write %zu bytes", n);
    else if ((flags & EXTI_FS_SYNC) && !FlushFileBuffers(h))
        rc = fail(err, path, "cannot sync file");
    CloseHandle(h);
    if (rc)
        delete_file(temp);
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
            delete_file(&temp);
    }
    exti__free(text);
    return rc;
}

int exti__fs_replace_from(const char *path, const void *p, size_t n,
                          const struct exti_fs_source *from, uint32_t flags, struct exti_error *err)
{
    (void)from;
    return exti__fs_replace(path, p, n, flags, err);
}
