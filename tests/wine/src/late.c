/* Loads delay imports as the compiler's own library does: on first use, by bare name, without
 * flags. */
typedef unsigned long word;
typedef unsigned long long wide;

struct descriptor {
    word attributes, name, module, addresses, names, bound, unload, timestamp;
};

__declspec(dllimport) void *__stdcall LoadLibraryExA(const char *name, void *file, word flags);
__declspec(dllimport) void *__stdcall GetProcAddress(void *module, const char *name);
extern char __ImageBase;

void *__stdcall __delayLoadHelper2(const struct descriptor *d, void **slot)
{
    char *const base = &__ImageBase;
    void **addresses = (void **)(base + d->addresses), **module = (void **)(base + d->module);
    const wide *names = (const wide *)(base + d->names);
    const wide name = names[slot - addresses];

    if (!*module)
        *module = LoadLibraryExA(base + d->name, 0, 0);
    *slot = GetProcAddress(*module, name >> 63 ? (const char *)(name & 0xffff) : base + name + 2);
    return *slot;
}
