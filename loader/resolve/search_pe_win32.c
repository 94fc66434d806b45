#include "loader/resolve/search_pe_system.h"

#include <stdio.h>
#include <windows.h>

#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/win32.h"
#include "base/path.h"

void exti__pe_system_folder(char out[EXTI_PATH_MAX])
{
    wchar_t folder[MAX_PATH];
    const UINT n = GetSystemDirectoryW(folder, MAX_PATH);

    if (!n || n >= MAX_PATH || exti__wide_to_utf8(folder, out, EXTI_PATH_MAX))
        snprintf(out, EXTI_PATH_MAX, "%s", "C:\\Windows\\System32");
}

bool exti__pe_system_has(const char *name)
{
    char folder[EXTI_PATH_MAX];
    struct exti_file_id id;
    char *path;
    bool has;

    exti__pe_system_folder(folder);
    path = exti__path_join(folder, name);
    has = path && !exti__fs_id(path, &id, NULL);
    exti__free(path);
    return has;
}
