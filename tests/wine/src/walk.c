/* Prints where the imports of loaded modules lead.  Reads memory, which shows how the loader
 * resolved them, forwarders included. */
#include "tests/wine/src/host.h"

#include <psapi.h>
#include <wchar.h>

enum { MOST_MODULES = 4096, MOST_LEAKS = 20 };

struct walk {
    struct command *c;
    wchar_t dir[1024], root[1024];
    HMODULE all[MOST_MODULES];
    size_t count;
    unsigned modules, references, leaks, unresolved;
    const char *module; /* the current one */
    HMODULE self;
};

static const IMAGE_NT_HEADERS *headers(const void *base)
{
    return (const void *)((const char *)base + ((const IMAGE_DOS_HEADER *)base)->e_lfanew);
}

static bool lies_below(const wchar_t *path, const wchar_t *folder)
{
    size_t n = wcslen(folder);

    return _wcsnicmp(path, folder, n) == 0 && path[n] == '\\';
}

/* The module that contains an address, by the images' own sizes. */
static HMODULE owner(const struct walk *w, const void *p)
{
    for (size_t i = 0; i < w->count; i++) {
        const char *base = (const char *)w->all[i];

        if ((const char *)p >= base &&
            (const char *)p < base + headers(base)->OptionalHeader.SizeOfImage)
            return w->all[i];
    }
    return NULL;
}

static const char *symbol_name(const char *base, const IMAGE_THUNK_DATA *t, char *number,
                               size_t cap)
{
    if (IMAGE_SNAP_BY_ORDINAL(t->u1.Ordinal)) {
        snprintf(number, cap, "#%u", (unsigned)IMAGE_ORDINAL(t->u1.Ordinal));
        return number;
    }
    return (const char *)((const IMAGE_IMPORT_BY_NAME *)(base + t->u1.AddressOfData))->Name;
}

static void reference(struct walk *w, const char *symbol, const void *address)
{
    HMODULE m = owner(w, address);
    wchar_t path[1024];

    w->references++;
    if (!m) {
        w->unresolved++;
        report(w->c, "unresolved %s %s\n", w->module, symbol);
        return;
    }
    GetModuleFileNameW(m, path, 1024);
    if (lies_below(path, w->dir) || !lies_below(path, w->root))
        return;
    if (w->leaks++ < MOST_LEAKS)
        report(w->c, "leak %s %s %ls\n", w->module, symbol, wcsrchr(path, '\\') + 1);
}

static void thunks(struct walk *w, const char *base, DWORD names, DWORD addresses, bool late)
{
    const IMAGE_THUNK_DATA *n = (const void *)(base + names);
    const IMAGE_THUNK_DATA *a = (const void *)(base + addresses);
    char number[16];

    for (; n->u1.AddressOfData; n++, a++) {
        const void *p = (const void *)(ULONG_PTR)a->u1.Function;

        /* A delay import that was not called yet leads to its loading stub. */
        if (!late || owner(w, p) != w->self)
            reference(w, symbol_name(base, n, number, sizeof number), p);
    }
}

static void walk_module(struct walk *w, HMODULE m)
{
    const char *base = (const char *)m;
    const IMAGE_DATA_DIRECTORY *d = headers(base)->OptionalHeader.DataDirectory;
    const IMAGE_IMPORT_DESCRIPTOR *i;
    const IMAGE_DELAYLOAD_DESCRIPTOR *l;

    w->self = m;
    if (d[IMAGE_DIRECTORY_ENTRY_IMPORT].Size)
        for (i = (const void *)(base + d[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress); i->Name;
             i++)
            if (i->OriginalFirstThunk)
                thunks(w, base, i->OriginalFirstThunk, i->FirstThunk, false);
    if (d[IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT].Size)
        for (l = (const void *)(base + d[IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT].VirtualAddress);
             l->DllNameRVA; l++)
            thunks(w, base, l->ImportNameTableRVA, l->ImportAddressTableRVA, true);
}

void walk(struct command *c)
{
    static struct walk w;
    static char name[1024];
    DWORD size = 0;

    w = (struct walk){.c = c, .module = name};
    windows_path(c->word[1], w.dir, 1024);
    windows_path(c->word[2], w.root, 1024);
    if (!EnumProcessModules(GetCurrentProcess(), w.all, sizeof w.all, &size))
        report(c, "EnumProcessModules: error %lu\n", GetLastError());
    w.count = size / sizeof *w.all;
    for (size_t i = 0; i < w.count; i++) {
        wchar_t path[1024];

        GetModuleFileNameW(w.all[i], path, 1024);
        if (!lies_below(path, w.dir))
            continue;
        w.modules++;
        snprintf(name, sizeof name, "%ls", wcsrchr(path, '\\') + 1);
        walk_module(&w, w.all[i]);
    }
    report(c, "modules %u references %u leaks %u unresolved %u\n", w.modules, w.references, w.leaks,
           w.unresolved);
}
