/* Writes the handmade part of the PE corpus: small sound files, and files with a lie in one
 * structure that sends a reader out of bounds or into a loop.
 *
 *   hostile_pe DIR */
#include "tests/fuzz/hostile.h"
#include "tests/unit/pe/pe_toy.h"

static struct pe_toy t;
static unsigned count;

static void write_input(const char *name)
{
    hostile_write(name, (uint8_t)(count++ % 8), t.b, t.n);
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
        write_input(kinds[i].name);
    }
}

static void headers(void)
{
    plain();
    ptoy_put(&t, DOS_E_LFANEW, 4, 0xfffffffc);
    write_input("header-far");
    plain();
    ptoy_put(&t, DOS_E_LFANEW, 4, t.n - 24);
    memcpy(t.b + t.n - 24, t.b + t.nt, 24);
    write_input("header-at-end");
    plain();
    memcpy(t.b + 4, t.b + t.nt, 0x2c);
    ptoy_put(&t, DOS_E_LFANEW, 4, 4);
    write_input("header-overlap");
    plain();
    ptoy_put(&t, t.nt + 6, 2, 96);
    write_input("sections-96");
    plain();
    ptoy_put(&t, t.directories - 4, 4, 0xffffffff);
    write_input("directories-many");
    plain();
    ptoy_put(&t, t.directories - 4, 4, 0);
    write_input("directories-none");
    plain();
    ptoy_put(&t, ptoy_section(&t, PTOY_RELOC) + 8, 4, 0xfffff000);
    write_input("section-wrap");
    plain();
    ptoy_put(&t, ptoy_section(&t, PTOY_DATA) + 20, 4, t.start[PTOY_RDATA]);
    write_input("section-twice");
    plain();
    ptoy_put(&t, t.nt + 12, 4, 0xffffffff);
    ptoy_put(&t, t.nt + 16, 4, 0xffffffff);
    write_input("symbols-far");
    pe_toy_make(&t, (struct pe_toy_opts){.symbols = true});
    ptoy_put(&t, t.nt + 12, 4, 0x400);
    write_input("symbols-in-code");
}

static void imports(void)
{
    plain();
    put_directory(1, ptoy_rva(&t, t.imports) - 8, 0xffff0000);
    write_input("imports-wrap");
    plain();
    put_directory(1, 0x3c, 20);
    write_input("imports-in-header");
    plain(); /* endless: the descriptors are the lookup tables */
    ptoy_put(&t, t.imports, 4, ptoy_rva(&t, t.imports));
    write_input("imports-own-lookup");
    plain();
    ptoy_put(&t, t.imports + 20, 4, ptoy_get(&t, t.imports, 4));
    ptoy_put(&t, t.imports + 32, 4, ptoy_get(&t, t.imports + 12, 4));
    write_input("imports-shared");
    plain(); /* the name of a DLL is the end of another's, and also the exported name */
    ptoy_put(&t, t.imports + 32, 4, ptoy_rva(&t, t.name[0]) + 6);
    ptoy_put(&t, t.names, 4, ptoy_rva(&t, t.name[0]));
    write_input("imports-tail-name");
    plain();
    ptoy_put(&t, t.imports + 12, 4, ptoy_rva(&t, t.lookup[0]));
    write_input("imports-name-in-table");
    plain();
    ptoy_put(&t, t.delay + 4, 4, ptoy_rva(&t, t.name[0]));
    write_input("imports-name-twice");
    plain();
    memset(t.b + t.imports, 0xff, 60);
    write_input("imports-ones");
    pe_toy_make(&t, (struct pe_toy_opts){.narrow = true, .by_address = true});
    ptoy_put(&t, t.delay + 16, 4, 0);
    write_input("delay-below-base");
    pe_toy_make(&t, (struct pe_toy_opts){.no_lookup = true, .bound = true});
    write_input("bound-no-lookup");
    pe_toy_make(&t, (struct pe_toy_opts){.bound = true});
    ptoy_put(&t, t.bound + 4, 2, 0xffff);
    write_input("bound-name-far");
    plain();
    put_directory(11, 0x30, 8);
    write_input("bound-in-header");
}

static void exports(void)
{
    plain();
    ptoy_put(&t, t.exports + 20, 8, 0x0001000000010000);
    write_input("exports-many");
    plain();
    ptoy_put(&t, t.exports + 16, 4, 0xffffffff);
    write_input("exports-base");
    plain();
    memset(t.b + t.ordinals, 0xff, 8);
    write_input("exports-ordinals");
    plain(); /* all three tables are the directory itself */
    for (size_t at = 28; at < 40; at += 4)
        ptoy_put(&t, t.exports + at, 4, ptoy_rva(&t, t.exports));
    write_input("exports-self");
    plain(); /* everything is a forwarder */
    put_directory(0, ptoy_rva(&t, t.exports), 0xfffffff);
    write_input("exports-range");
    plain();
    put_directory(0, ptoy_rva(&t, t.exports), 0x3d0 - (uint32_t)(t.exports - t.start[PTOY_RDATA]));
    ptoy_put(&t, t.functions, 4, ptoy_rva(&t, t.exports));
    write_input("forwarder-header");
    plain();
    memcpy(t.b + t.forwarder, "python311.c4.PyLong_T", 21);
    write_input("forwarder-dots");
    plain();
    memset(t.b + t.forwarder, '.', 21);
    write_input("forwarder-only-dots");
    plain();
    memcpy(t.b + t.forwarder, "toy.toy_forward\0\0\0\0\0", 21);
    write_input("forwarder-own");
}

static void others(void)
{
    plain();
    ptoy_put(&t, t.load_config, 4, 0xffffffff);
    write_input("load-config-large");
    plain();
    ptoy_put(&t, t.load_config + 200, 8, 0x180003000);
    write_input("load-config-chpe");
    plain();
    ptoy_put(&t, t.debug + DEBUG_DIRECTORY_SIZE + 16, 4, 23);
    write_input("codeview-short");
    plain();
    put_directory(6, ptoy_rva(&t, t.debug), 0x1fffffff);
    write_input("debug-large");
    plain();
    ptoy_put(&t, t.tls, 8, UINT64_MAX);
    write_input("tls-backwards");
    plain();
    put_directory(14, 0x3000, 72);
    write_input("net");
    pe_toy_make(&t, (struct pe_toy_opts){.certified = true});
    t.n += 24;
    write_input("certificate-in-the-middle");
    pe_toy_make(&t, (struct pe_toy_opts){.certified = true});
    ptoy_put(&t, t.certificates, 4, 0xffffffff);
    write_input("certificate-large");
    pe_toy_make(&t, (struct pe_toy_opts){.certified = true});
    put_directory(4, 0, 0xffffffff);
    write_input("certificate-nowhere");
    plain();
    put_directory(5, 0x3000, 0x10);
    write_input("relocs-elsewhere");
    plain(); /* a block of size 0 */
    ptoy_put(&t, t.start[PTOY_RELOC] + 4, 4, 0);
    write_input("relocs-empty-block");
    plain();
    memset(t.b + t.start[PTOY_RELOC] + 8, 0xff, 8);
    write_input("relocs-ones");
    plain();
    ptoy_put(&t, t.nt + 22, 2, 0x2003);
    write_input("relocs-stripped");
}

int main(int argc, char **argv)
{
    hostile_begin(argc, argv);
    sound();
    headers();
    imports();
    exports();
    others();
    return 0;
}
