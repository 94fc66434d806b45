/* Writes the handmade part of the Mach-O corpus: small sound files, and files with a lie in one
 * structure that sends a reader out of bounds or into a loop.
 *
 *   hostile_macho DIR */
#include "tests/fuzz/hostile.h"
#include "tests/unit/macho/macho_toy.h"

static struct macho_toy t, arm;
static struct macho_toy_fat fat;
static unsigned count;

static void write_file(const char *name, const void *p, size_t n)
{
    hostile_write(name, (uint8_t)(count++ % 10), p, n);
}

static void opcodes(void)
{
    macho_toy_make(&t, (struct macho_toy_opts){0});
}

static void chained(void)
{
    macho_toy_make(&t, (struct macho_toy_opts){.chained = true});
}

static void bytes(size_t at, const char *p, size_t n)
{
    memcpy(t.b + at, p, n);
}

#define BYTES(at, s) bytes((at), (s), sizeof(s) - 1)
#define KEEP(name) write_file((name), t.b, t.n)

static void sound(void)
{
    opcodes();
    KEEP("toy-opcodes");
    chained();
    KEEP("toy-chained");
    for (uint32_t i = 2; i < 4; i++) {
        macho_toy_make(&t, (struct macho_toy_opts){.chained = true, .imports = i, .bundle = true});
        KEEP(i == 2 ? "toy-imports2" : "toy-imports3");
    }
    macho_toy_make(&t, (struct macho_toy_opts){.bundle = true, .naked = true, .room = 512});
    KEEP("toy-roomy");
    mtoy_put(&t, 12, 4, MH_EXECUTE);
    KEEP("toy-program");
}

static void tries(void)
{
    opcodes();
    BYTES(t.trie + 8, "\x01"); /* a child that is its parent's second byte */
    KEEP("trie-overlap");
    opcodes();
    BYTES(t.trie, "\0\x02"
                  "a\0\x08"
                  "b\0\x08\0\0");
    KEEP("trie-two-edges-one-node");
    opcodes();
    BYTES(t.trie + 9, "\0\x01x\0\x09");
    KEEP("trie-own-child");
    opcodes();
    BYTES(t.trie + 1, "\xff");
    KEEP("trie-255-children");
    opcodes();
    BYTES(t.trie, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    KEEP("trie-endless-number");
    opcodes();
    BYTES(t.trie, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
    KEEP("trie-huge-terminal");
    opcodes(); /* a chain of nodes, each one letter deeper, all with exports */
    for (size_t at = 0, i = 0; at + 7 < t.trie_n && i < 9; i++, at += 7)
        bytes(t.trie + at, (const char[]){2, 0, 1, 1, 'x', 0, (char)(at + 7)}, 7);
    KEEP("trie-deep");
}

static void streams(void)
{
    opcodes();
    BYTES(t.bind, "\x3e\x40x\0\x51\x71\0\xc0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0");
    KEEP("bind-without-end");
    opcodes();
    BYTES(t.bind, "\x3e\x40x\0\x51\x71\xf8\xff\xff\xff\xff\xff\xff\xff\xff\x01\x90");
    KEEP("bind-far-away");
    opcodes();
    BYTES(t.bind, "\x3e\x40x\0\x51\x7f\0\x90");
    KEEP("bind-no-segment");
    opcodes();
    BYTES(t.bind, "\x20\xff\xff\xff\xff\x0f\x40x\0\x51\x71\0\x90");
    KEEP("bind-no-library");
    opcodes();
    BYTES(t.bind, "\xd0\x08\xd1");
    KEEP("bind-threaded");
    opcodes();
    BYTES(t.lazy, "\xa0\xff\xff\x03\xb7\xc0\x05\x08");
    KEEP("lazy-no-symbol");
    opcodes();
    memset(t.b + t.weak, 0x40, t.weak_n);
    KEEP("weak-no-end");
    opcodes();
    BYTES(t.rebase, "\x11\x21\0\x60\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    KEEP("rebase-without-end");
    opcodes();
    BYTES(t.rebase, "\x11\x21\0\x80\xff\xff\x03\xf8\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    KEEP("rebase-backwards");
    opcodes();
    mtoy_put(&t, t.symbols, 4, UINT32_MAX);
    KEEP("symbol-no-name");
    opcodes();
    memset(t.b + t.strings, 'x', t.strings_n);
    KEEP("strings-no-end");
}

static void chains(void)
{
    static const struct {
        const char *name;
        size_t at, width;
        uint64_t value;
    } lies[] = {
        {"chained-version", 0, 4, 1},
        {"chained-starts", 4, 4, UINT32_MAX},
        {"chained-imports-far", 8, 4, UINT32_MAX - 3},
        {"chained-names-far", 12, 4, 0x10000},
        {"chained-imports-many", 16, 4, 0x1000000},
        {"chained-imports-format", 20, 4, 4},
        {"chained-zipped", 24, 4, 1},
        {"chained-segments", 32, 4, UINT32_MAX},
        {"chained-segment-far", 40, 4, 0xfffffff0},
        {"chained-page-size", 52, 2, 0},
        {"chained-format-arm64e", 54, 2, 12},
        {"chained-format-unknown", 54, 2, 77},
        {"chained-segment-offset", 56, 8, UINT64_MAX - 7},
        {"chained-pages", 68, 2, 0xffff},
        {"chained-start-multi", 70, 2, 0x8000},
        {"chained-start-outside", 70, 2, 0xffc},
        {"chained-name", 80, 4, UINT32_MAX},
    };

    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        chained();
        mtoy_put(&t, t.chained + lies[i].at, lies[i].width, lies[i].value);
        KEEP(lies[i].name);
    }
    chained(); /* to the page's end and past it */
    mtoy_put(&t, t.data + 40, 8, (uint64_t)0xfff << 51);
    KEEP("chained-next-outside");
    chained();
    mtoy_put(&t, t.data, 8, UINT64_C(1) << 63 | 0xffffff);
    KEEP("chained-import-outside");
    chained();
    mtoy_put(&t, t.data + 32, 8, UINT64_C(2) << 51 | 0xfffffffff);
    KEEP("chained-target-outside");
}

static void signatures(void)
{
    static const struct {
        const char *name;
        size_t at;
        uint8_t bytes[4];
    } lies[] = {
        {"signature-length", 4, {0xff, 0xff, 0xff, 0xff}},
        {"signature-blobs", 8, {0x7f, 0xff, 0xff, 0xff}},
        {"signature-blob-far", 16, {0xff, 0xff, 0xff, 0xf0}},
        {"signature-blob-itself", 16, {0, 0, 0, 0}},
        {"signature-directory-length", 24, {0xff, 0xff, 0xff, 0xff}},
        {"signature-hashes-far", 36, {0xff, 0xff, 0xff, 0xff}},
        {"signature-special", 44, {0xff, 0xff, 0xff, 0xff}},
        {"signature-pages", 48, {0x7f, 0xff, 0xff, 0xff}},
        {"signature-limit", 52, {0xff, 0xff, 0xff, 0xff}},
        {"signature-page-size", 56, {0x20, 2, 0, 0xff}},
    };

    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        opcodes();
        bytes(t.signature + lies[i].at, (const char *)lies[i].bytes, 4);
        KEEP(lies[i].name);
    }
}

static void universal(void)
{
    opcodes();
    macho_toy_make(&arm, (struct macho_toy_opts){.arm = true, .chained = true});
    for (int wide = 0; wide < 2; wide++) {
        mtoy_fat_start(&fat, wide);
        mtoy_fat_add_toy(&fat, &t);
        mtoy_fat_add_toy(&fat, &arm);
        write_file(wide ? "toy-fat64" : "toy-fat", fat.b, fat.n);
    }
    mtoy_fat_start(&fat, false);
    for (uint32_t i = 0; i < 16; i++)
        mtoy_fat_add(&fat, CPU_TYPE_I386, i, "\xce\xfa\xed\xfe\x07\0\0\0", 8);
    for (uint32_t i = 0; i < 16; i++) {
        mtoy_fat_put(&fat, mtoy_fat_entry(&fat, i) + 8, 4, 0x4000);
        mtoy_fat_put(&fat, mtoy_fat_entry(&fat, i) + 12, 4, 0x1000);
    }
    write_file("fat-one-slice-16-times", fat.b, 0x5000);
    mtoy_fat_start(&fat, true);
    mtoy_fat_add_toy(&fat, &t);
    mtoy_fat_put(&fat, 16, 8, UINT64_MAX - 0xfff);
    write_file("fat64-far-away", fat.b, fat.n);
    mtoy_fat_start(&fat, false);
    mtoy_fat_add_toy(&fat, &t);
    mtoy_fat_add_toy(&fat, &arm);
    mtoy_fat_put(&fat, 4, 4, 1);
    write_file("toy-fat-hidden", fat.b, fat.n);
}

int main(int argc, char **argv)
{
    hostile_begin(argc, argv);
    sound();
    tries();
    streams();
    chains();
    signatures();
    universal();
    return 0;
}
