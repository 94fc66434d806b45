#include "base/os/fs_folder.h"

#include <errno.h>
#include <string.h>

#include "base/os/fs_win32.h"

static bool wide_join(struct exti_wide *w, const wchar_t *name)
{
    size_t n = wcslen(w->text), more = wcslen(name);

    if (n + 1 + more >= sizeof w->text / sizeof *w->text)
        return false;
    w->text[n] = L'\\';
    wmemcpy(w->text + n + 1, name, more + 1);
    return true;
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
        return exti__fail_last(err, path, "cannot make folder");
    if (!exti__win32_is_folder(&w))
        return exti__fail_io(err, ENOTDIR, path, "cannot make folder: a file has this name");
    return 0;
}

/* Windows keeps permissions in lists, which only an attempt can tell about. */
bool exti__fs_folder_can_write(const char *path)
{
    (void)path;
    return true;
}

int exti__fs_sync_parent(const char *path, struct exti_error *err)
{
    (void)path;
    (void)err;
    return 0;
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
        return exti__fail_last(err, dir, "cannot open folder");
    do {
        if (wcscmp(found.cFileName, L".") != 0 && wcscmp(found.cFileName, L"..") != 0 &&
            !exti__wide_to_utf8(found.cFileName, name, sizeof name))
            rc = each(user, name);
    } while (!rc && FindNextFileW(h, &found));
    if (!rc && GetLastError() != ERROR_NO_MORE_FILES)
        rc = exti__fail_last(err, dir, "cannot read folder");
    FindClose(h);
    return rc;
}
