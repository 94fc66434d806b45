/* Reads the files that the Windows loader has mapped.  It has validated them, so they are trusted,
 * unlike files on disk. */
#include "loader/process/linkmap.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "base/error.h"
#include "base/os/fs_id.h"
#include "base/os/win32.h"
#include "base/path.h"
#include "loader/process/linkmap_path.h"

#define BY_ORDINAL ((uintptr_t)1 << (sizeof(uintptr_t) * 8 - 1))

/* One library that another imports from. */
struct import {
    const char *library;
    const uintptr_t *names; /* by name, RVAs; 0 ends */
    uintptr_t *slots;
};

static const void *at(const struct exti_loaded *lib, uintptr_t rva)
{
    return (const void *)(lib->base + rva);
}

static const IMAGE_NT_HEADERS *headers(const struct exti_loaded *lib)
{
    const IMAGE_DOS_HEADER *dos = at(lib, 0);

    return at(lib, (uintptr_t)dos->e_lfanew);
}

/* A directory of the file, or NULL. */
static const void *directory(const struct exti_loaded *lib, unsigned i)
{
    const IMAGE_OPTIONAL_HEADER *h = &headers(lib)->OptionalHeader;

    if (i >= h->NumberOfRvaAndSizes || !h->DataDirectory[i].VirtualAddress)
        return NULL;
    return at(lib, h->DataDirectory[i].VirtualAddress);
}

int exti__loaded_from_handle(void *handle, struct exti_loaded *out, struct exti_error *err)
{
    /* Loaded as data, not as code: the two lowest bits say so. */
    if ((uintptr_t)handle & 3)
        return exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "is loaded as data only");
    *out = (struct exti_loaded){
        .handle = handle, .base = (uintptr_t)handle, .inside = (uintptr_t)handle};
    return 0;
}

static void module_path(HMODULE h, char *out, size_t cap)
{
    struct exti_wide w;
    DWORD n = GetModuleFileNameW(h, w.text, sizeof w.text / sizeof *w.text);

    if (!n || exti__wide_to_utf8(exti__wide_plain(w.text), out, cap))
        snprintf(out, cap, "%s", "");
}

static HMODULE module_at(uintptr_t address)
{
    HMODULE h;

    return GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                  GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                              (const wchar_t *)address, &h)
               ? h
               : NULL;
}

bool exti__loaded_at(uintptr_t address, struct exti_loaded *out, struct exti_layout *layout)
{
    HMODULE h = module_at(address);

    if (!h || exti__loaded_from_handle(h, out, NULL))
        return false;
    *layout = exti__loaded_layout(out);
    return true;
}

void exti__loaded_path(const struct exti_loaded *lib, char *out, size_t cap)
{
    module_path(lib->handle, out, cap);
}

/* Compares the files: their names may differ in case, or by links. */
bool exti__loaded_is_file(const struct exti_loaded *lib, const char *path)
{
    struct exti_file_id a, b;
    char own[EXTI_PATH_MAX];

    module_path(lib->handle, own, sizeof own);
    return strcmp(own, path) == 0 || (!exti__fs_id(own, &a, NULL) && !exti__fs_id(path, &b, NULL) &&
                                      exti__fs_same_id(&a, &b));
}

/* ---- symbols ---- */

const char *exti__c_name(const char *file_name)
{
    return file_name;
}

/* The names are sorted (PE/COFF, "Export Name Pointer Table"). */
bool exti__loaded_defines(const struct exti_loaded *lib, const char *name)
{
    const IMAGE_EXPORT_DIRECTORY *d = directory(lib, IMAGE_DIRECTORY_ENTRY_EXPORT);
    const DWORD *names = d ? at(lib, d->AddressOfNames) : NULL;
    DWORD lo = 0, hi = d ? d->NumberOfNames : 0;

    while (lo < hi) {
        DWORD mid = lo + (hi - lo) / 2;
        int order = strcmp(name, at(lib, names[mid]));

        if (order == 0)
            return true;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return false;
}

bool exti__address_is_symbol(uintptr_t address, const char *name)
{
    HMODULE h = module_at(address);

    return h && (uintptr_t)GetProcAddress(h, name) == address;
}

void exti__address_file(uintptr_t address, char *out, size_t cap)
{
    HMODULE h = module_at(address);

    if (h)
        module_path(h, out, cap);
    else
        snprintf(out, cap, "%s", "");
}

bool exti__loaded_has(const struct exti_loaded *lib, const char *name, uintptr_t address)
{
    return (uintptr_t)GetProcAddress(lib->handle, name) == address;
}

/* Windows ignores the name that a file gives itself. */
const char *exti__loaded_id(const struct exti_loaded *lib)
{
    (void)lib;
    return NULL;
}

/* A copy's import names its library, so none can be bound to another file. */
uintptr_t exti__loaded_counterpart(const struct exti_loaded *from, const struct exti_loaded *to,
                                   const char *name, uintptr_t address)
{
    (void)from;
    (void)to;
    (void)name;
    (void)address;
    return 0;
}

/* ---- references ---- */

/* The i-th library that it imports from: first the import directory, then the delay-load
 * directory. */
static bool find_import(const struct exti_loaded *lib, size_t i, struct import *out)
{
    const IMAGE_IMPORT_DESCRIPTOR *d = directory(lib, IMAGE_DIRECTORY_ENTRY_IMPORT);
    const IMAGE_DELAYLOAD_DESCRIPTOR *delayed = directory(lib, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT);

    for (; d && d->Name; d++)
        if (i-- == 0) {
            /* PE/COFF, "Import Directory Table": without a lookup table the names were where the
             * addresses are now. */
            *out = (struct import){at(lib, d->Name),
                                   d->OriginalFirstThunk ? at(lib, d->OriginalFirstThunk) : NULL,
                                   (uintptr_t *)at(lib, d->FirstThunk)};
            return true;
        }
    for (; delayed && delayed->DllNameRVA; delayed++) {
        bool rva = delayed->Attributes.RvaBased; /* else addresses: old x86 files */

        if (i-- == 0) {
            const struct exti_loaded *from = rva ? lib : &(const struct exti_loaded){0};

            *out = (struct import){at(from, delayed->DllNameRVA),
                                   rva ? at(lib, delayed->ImportNameTableRVA) : NULL,
                                   (uintptr_t *)at(from, delayed->ImportAddressTableRVA)};
            return true;
        }
    }
    return false;
}

/* Whether a library is one of the system's own, which never import from an interpreter. */
static bool is_system_dll(const char *library)
{
    wchar_t folder[MAX_PATH], path[MAX_PATH + 1], name[MAX_PATH];
    UINT n = GetSystemDirectoryW(folder, MAX_PATH);
    HMODULE h;

    if (strncmp(library, "api-", 4) == 0 || strncmp(library, "ext-", 4) == 0)
        return true;
    if (!n || n >= MAX_PATH || !MultiByteToWideChar(CP_UTF8, 0, library, -1, name, MAX_PATH) ||
        !GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, name, &h))
        return false;
    return GetModuleFileNameW(h, path, MAX_PATH) > n && _wcsnicmp(path, folder, n) == 0 &&
           path[n] == L'\\';
}

/* Skips the system's own. */
const char *exti__loaded_needed(const struct exti_loaded *lib, size_t i)
{
    struct import im;

    for (size_t k = 0; find_import(lib, k, &im); k++)
        if (!is_system_dll(im.library) && i-- == 0)
            return im.library;
    return NULL;
}

/* A PE file names no folder to search. */
const char *exti__loaded_search_path(const struct exti_loaded *lib)
{
    (void)lib;
    return NULL;
}

int exti__loaded_references(const struct exti_loaded *lib, struct exti_passed *passed,
                            int (*each)(void *user, const struct exti_reference *ref), void *user,
                            struct exti_error *err)
{
    struct import im;
    int rc = 0;

    (void)passed, (void)err;
    for (size_t i = 0; !rc && find_import(lib, i, &im); i++) {
        struct exti_reference ref = {.kind = EXTI_REF_ADDRESS, .system = is_system_dll(im.library)};

        for (size_t k = 0; !rc && im.names && im.names[k]; k++) {
            if (im.names[k] & BY_ORDINAL)
                continue;
            ref.name = (const char *)at(lib, im.names[k]) + 2; /* behind the hint */
            ref.slot = &im.slots[k];
            rc = each(user, &ref);
        }
    }
    return 0;
}

/* A PE file imports no thread-local storage. */
size_t exti__loaded_tls_module(const struct exti_loaded *lib)
{
    (void)lib;
    return 0;
}

struct exti_layout exti__loaded_layout(const struct exti_loaded *lib)
{
    return (struct exti_layout){.lo = lib->base,
                                .hi = lib->base + headers(lib)->OptionalHeader.SizeOfImage};
}
