/* Writes the hand-made part of the PE corpus: small sound files, and files that each lie in one
 * structure so as to send a reader far away, out of bounds, or round and round.
 *
 * hostile_pe DIR */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/pe/pe_toy.h"

static struct pe_toy t;
static const char *dir;
static unsigned count;

/* Behind the four bytes that fuzz_pe.c reads. */
static void keep(const char *name)
{
    const uint8_t prefix[4] = {(uint8_t)(count++ % 8), 0x11, 0x22, 1};
    char path[4096];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "wb");
    if (!f || fwrite(prefix, 1, 4, f) != 4 || fwrite(t.b, 1, t.n, f) != t.n || fclose(f)) {
        perror(path);
        exit(1);
    }
}

static void plain(void)
{
    pe_toy_make(&t, (struct pe_toy_opts){0});
}

static void put_directory(unsigned i, uint32_t rva, uint32_t size)
{
    ptoy_put(&t, ptoy_directory(&t, i), 4, rva);
    ptoy_put(&t, ptoy_directory(&t, i) + 4, 4, size);
}

static void sound(void)
{
    static const char *const names[] = {"PyLong_Type", "PyModule_Create2", "Py_BuildValue", NULL};
    static const struct {
        const char *name;
        struct pe_toy_opts o;
    } kinds[] = {
        {"toy", {0}},
        {"toy-i386", {.narrow = true}},
        {"toy-arm64", {.arm = true}},
        {"toy-low", {.low = true}},
        {"toy-no-lookup", {.no_lookup = true}},
        {"toy-bound", {.bound = true, .checksum = true}},
        {"toy-addresses", {.narrow = true, .by_address = true}},
        {"toy-symbols", {.symbols = true}},
        {"toy-certified", {.certified = true, .checksum = true}},
        {"toy-behind-all", {.symbols = true, .certified = true}},
        {"toy-full", {.full = true}},
        {"toy-full-symbols", {.full = true, .symbols = true}},
        {"toy-no-room", {.full = true, .room = 8}},
        {"toy-no-room-stub", {.full = true, .room = 40}},
        {"toy-abi3", {.api = "python3.dll"}},
        {"toy-abi3-ordinal", {.api = "python3.dll", .by_ordinal = true}},
        {"toy-delayed", {.api = "a.dll", .delayed = "python311.dll"}},
        {"toy-forwards", {.id = "python3.dll", .exports = names, .forward = "python311"}},
        {"toy-forwards-full",
         {.id = "python3.dll", .exports = names, .forward = "python311", .full = true}},
        {"toy-python", {.id = "python311.dll", .exports = names}},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        pe_toy_make(&t, kinds[i].o);
        keep(kinds[i].name);
    }
}

static void headers(void)
{
    plain();
    ptoy_put(&t, DOS_E_LFANEW, 4, 0xfffffffc);
    keep("header-far");
    plain();
    ptoy_put(&t, DOS_E_LFANEW, 4, t.n - 24);
    memcpy(t.b + t.n - 24, t.b + t.nt, 24);
    keep("header-at-end");
    plain();
    memcpy(t.b + 4, t.b + t.nt, 0x2c);
    ptoy_put(&t, DOS_E_LFANEW, 4, 4);
    keep("header-overlap");
    plain();
    ptoy_put(&t, t.nt + 6, 2, 96);
    keep("sections-96");
    plain();
    ptoy_put(&t, t.directories - 4, 4, 0xffffffff);
    keep("directories-many");
    plain();
    ptoy_put(&t, t.directories - 4, 4, 0);
    keep("directories-none");
    plain();
    ptoy_put(&t, ptoy_section(&t, PTOY_RELOC) + 8, 4, 0xfffff000);
    keep("section-wrap");
    plain();
    ptoy_put(&t, ptoy_section(&t, PTOY_DATA) + 20, 4, t.start[PTOY_RDATA]);
    keep("section-twice");
    plain();
    ptoy_put(&t, t.nt + 12, 4, 0xffffffff);
    ptoy_put(&t, t.nt + 16, 4, 0xffffffff);
    keep("symbols-far");
    pe_toy_make(&t, (struct pe_toy_opts){.symbols = true});
    ptoy_put(&t, t.nt + 12, 4, 0x400);
    keep("symbols-in-code");
}

static void imports(void)
{
    plain();
    put_directory(1, ptoy_rva(&t, t.imports) - 8, 0xffff0000);
    keep("imports-wrap");
    plain();
    put_directory(1, 0x3c, 20);
    keep("imports-in-header");
    plain(); /* no end: the descriptors are the lookup tables */
    ptoy_put(&t, t.imports, 4, ptoy_rva(&t, t.imports));
    keep("imports-own-lookup");
    plain();
    ptoy_put(&t, t.imports + 20, 4, ptoy_get(&t, t.imports, 4));
    ptoy_put(&t, t.imports + 32, 4, ptoy_get(&t, t.imports + 12, 4));
    keep("imports-shared");
    plain(); /* the name of a DLL is the end of another's, and what is exported */
    ptoy_put(&t, t.imports + 32, 4, ptoy_rva(&t, t.name[0]) + 6);
    ptoy_put(&t, t.names, 4, ptoy_rva(&t, t.name[0]));
    keep("imports-tail-name");
    plain();
    ptoy_put(&t, t.imports + 12, 4, ptoy_rva(&t, t.lookup[0]));
    keep("imports-name-in-table");
    plain();
    ptoy_put(&t, t.delay + 4, 4, ptoy_rva(&t, t.name[0]));
    keep("imports-name-twice");
    plain();
    memset(t.b + t.imports, 0xff, 60);
    keep("imports-ones");
    pe_toy_make(&t, (struct pe_toy_opts){.narrow = true, .by_address = true});
    ptoy_put(&t, t.delay + 16, 4, 0);
    keep("delay-below-base");
    pe_toy_make(&t, (struct pe_toy_opts){.no_lookup = true, .bound = true});
    keep("bound-no-lookup");
    pe_toy_make(&t, (struct pe_toy_opts){.bound = true});
    ptoy_put(&t, t.bound + 4, 2, 0xffff);
    keep("bound-name-far");
    plain();
    put_directory(11, 0x30, 8);
    keep("bound-in-header");
}

static void exports(void)
{
    plain();
    ptoy_put(&t, t.exports + 20, 8, 0x0001000000010000);
    keep("exports-many");
    plain();
    ptoy_put(&t, t.exports + 16, 4, 0xffffffff);
    keep("exports-base");
    plain();
    memset(t.b + t.ordinals, 0xff, 8);
    keep("exports-ordinals");
    plain(); /* all three tables are the directory itself */
    for (size_t at = 28; at < 40; at += 4)
        ptoy_put(&t, t.exports + at, 4, ptoy_rva(&t, t.exports));
    keep("exports-self");
    plain(); /* everything is a forwarder */
    put_directory(0, ptoy_rva(&t, t.exports), 0xfffffff);
    keep("exports-range");
    plain();
    put_directory(0, ptoy_rva(&t, t.exports), 0x3d0 - (uint32_t)(t.exports - t.start[PTOY_RDATA]));
    ptoy_put(&t, t.functions, 4, ptoy_rva(&t, t.exports));
    keep("forwarder-header");
    plain();
    memcpy(t.b + t.forwarder, "python311.c4.PyLong_T", 21);
    keep("forwarder-dots");
    plain();
    memset(t.b + t.forwarder, '.', 21);
    keep("forwarder-only-dots");
    plain();
    memcpy(t.b + t.forwarder, "toy.toy_forward\0\0\0\0\0", 21);
    keep("forwarder-own");
}

static void others(void)
{
    plain();
    ptoy_put(&t, t.load_config, 4, 0xffffffff);
    keep("load-config-large");
    plain();
    ptoy_put(&t, t.load_config + 200, 8, 0x180003000);
    keep("load-config-chpe");
    plain();
    ptoy_put(&t, t.debug + DEBUG_DIRECTORY_SIZE + 16, 4, 23);
    keep("codeview-short");
    plain();
    put_directory(6, ptoy_rva(&t, t.debug), 0x1fffffff);
    keep("debug-large");
    plain();
    ptoy_put(&t, t.tls, 8, UINT64_MAX);
    keep("tls-backwards");
    plain();
    put_directory(14, 0x3000, 72);
    keep("net");
    pe_toy_make(&t, (struct pe_toy_opts){.certified = true});
    t.n += 24;
    keep("certificate-in-the-middle");
    pe_toy_make(&t, (struct pe_toy_opts){.certified = true});
    ptoy_put(&t, t.certificates, 4, 0xffffffff);
    keep("certificate-large");
    pe_toy_make(&t, (struct pe_toy_opts){.certified = true});
    put_directory(4, 0, 0xffffffff);
    keep("certificate-nowhere");
    plain();
    put_directory(5, 0x3000, 0x10);
    keep("relocs-elsewhere");
    plain(); /* a block of no size */
    ptoy_put(&t, t.start[PTOY_RELOC] + 4, 4, 0);
    keep("relocs-empty-block");
    plain();
    memset(t.b + t.start[PTOY_RELOC] + 8, 0xff, 8);
    keep("relocs-ones");
    plain();
    ptoy_put(&t, t.nt + 22, 2, 0x2003);
    keep("relocs-stripped");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: hostile_pe DIR\n");
        return 2;
    }
    dir = argv[1];
    sound();
    headers();
    imports();
    exports();
    others();
    return 0;
}
