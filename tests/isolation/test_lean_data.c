/* Initialised data that copies have not, but read from their originals when they are loaded. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <pthread.h>

#include "tests/isolation/build.h"
#include "tests/isolation/maps.h"

/* Code and constants that are left out. */
static const char large[] = "const char constants[40000] = \"constant\";\n"
                            "const char *constant(void) { return constants; }\n"
                            "#ifndef CODE\n"
                            "#define CODE \"40000\"\n"
                            "#endif\n"
                            "void *where(void) { __asm__(\".skip \" CODE \", 0x90\"); "
                            "return (void *)where; }\n";

/* Variables, among them words that relocations write: addresses of what the library has, at places
 * of any alignment, and of another library's variable. */
static const char data[] =
    "extern int provided;\n"
    "static int own(void) { return 7; }\n"
    "char bytes[40000] = {[0 ... 39999] = 'x'};\n"
    "int *others[3000] = {[0 ... 2999] = &provided};\n"
    "int (*owns[3000])(void) = {[0 ... 2999] = own};\n"
    "int (*const once[3000])(void) = {[0 ... 2999] = own};\n"
    "struct __attribute__((packed)) { char c; char *p; } odd[3000] =\n"
    "    {[0 ... 2999] = {'c', bytes + 3}};\n"
    "int changed = 5;\n"
    "int change(void) { bytes[0] = 'y'; return ++changed; }\n"
    "int changes(void) { return changed; }\n"
    "int is_right(void)\n"
    "{\n"
    "    for (int i = 1; i < 40000; i++)\n"
    "        if (bytes[i] != 'x') return 0;\n"
    "    for (int i = 0; i < 3000; i++)\n"
    "        if (others[i] != &provided || owns[i]() != 7 || once[i]() != 7 || odd[i].c != 'c' ||\n"
    "            odd[i].p != bytes + 3) return 0;\n"
    "    return 1;\n"
    "}\n";

#define SEPARATE "-Wl,-z,separate-code "

/* Of the 80,000 bytes of code and constants, and the 115,000 of data, whole blocks are left out. */
enum { WITHOUT_DATA = 100000, WITH_DATA = 160000 };

static void build(const char *more, const char *flags)
{
    iso_build("int provided = 9;", "libdep.so", "-Wl,-soname,libdep.so");
    iso_build(iso_text("%s%s%s", large, data, more), "data.so",
              iso_text(SEPARATE "-L'%s' -l:libdep.so -Wl,-rpath,'%s' %s", iso_tmp, iso_tmp, flags));
}

static long left_out_of(struct exti_module *m)
{
    return left_out(exti_module_copy(m));
}

ISO_CASE(data_comes_from_the_original)
{
    struct exti_module *m[2];
    struct exti_ctx *ctx[2];

    build("", "");
    for (int i = 0; i < 2; i++) {
        ctx[i] = iso_open(i ? "b" : "a");
        m[i] = iso_load(ctx[i], in_tmp("data.so"));
        want(left_out_of(m[i]) > WITH_DATA);
    }
    want_int(call_int(m[0], "change"), 6);
    want_int(call_int(m[0], "change"), 7);
    for (int i = 0; i < 2; i++) {
        want_int(call_int(m[i], "is_right"), 1);
        want_int(call_int(m[i], "changes"), i ? 5 : 7);
        iso_prove_clean(ctx[i], 3);
        iso_dir_clean(exti_ctx_dir(ctx[i]));
        iso_close_ctx(ctx[i]);
    }
}

ISO_CASE(what_is_read_only_once_it_is_relocated_is_so_again)
{
    struct exti_ctx *ctx = iso_open("a");
    struct exti_module *m;

    build("", "-Wl,-z,relro");
    m = iso_load(ctx, in_tmp("data.so"));
    want(left_out_of(m) > WITH_DATA);
    want_text(map_at(iso_sym(m, "once")).access, "r--p");
    want_text(map_at(iso_sym(m, "owns")).access, "rw-p");
    want_int(call_int(m, "is_right"), 1);
    iso_close_ctx(ctx);
}

/* Its copy is made by the system, and edited in a page that has some of the data: that of the
 * section headers, which follow it in a stripped library. */
ISO_CASE(little_data_of_a_large_library_comes_from_the_original)
{
    struct exti_ctx *ctx = iso_open("a");
    struct exti_module *m;

    iso_build(iso_text("%s"
                       "char bytes[9000] = {[0 ... 8999] = 'x'};\n"
                       "char *table[20] = {[0 ... 19] = bytes + 3};\n"
                       "int check(void) { return table[19] - bytes + bytes[8999]; }\n",
                       large),
              "little.so", SEPARATE "-s -Wl,-soname,little.so -DCODE='\"400000\"'");
    m = iso_load(ctx, in_tmp("little.so"));
    want(map_at((char *)iso_sym(m, "bytes") + 8999).path[0] == 0);
    want_int(call_int(m, "check"), 3 + 'x');
    iso_dir_clean(exti_ctx_dir(ctx));
    iso_close_ctx(ctx);
}

/* The control of the first case. */
ISO_CASE(full_copies_have_data_of_their_own)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("a"), NULL);
    struct exti_module *m;
    struct exti_ctx *ctx;

    build("", "");
    opts.flags = EXTI_CTX_FULL_COPIES;
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, in_tmp("data.so"));
    want(left_out_of(m) < WITHOUT_DATA / 2);
    want_int(call_int(m, "is_right"), 1);
    iso_close_ctx(ctx);
}

static void copy_full(void *unused)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("a"), NULL);
    struct exti_error err = {0};
    struct exti_ctx *ctx;
    const char *copy;

    (void)unused;
    opts.flags = EXTI_CTX_FULL_COPIES | EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING;
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, in_tmp("data.so"), &copy, &err), 0, &err);
    iso_close_ctx(ctx);
}

static int make_full(void *unused, struct exti_ctx *ctx, const char *original, const char *copy)
{
    (void)unused, (void)ctx, (void)copy;
    if (strcmp(original, in_tmp("data.so")) == 0)
        want(iso_join(iso_spawn(copy_full, NULL)));
    return 0;
}

/* Another process, which is traced perhaps, makes the copy full when it is about to be loaded. */
ISO_CASE(a_copy_that_has_become_full_has_its_data)
{
    const struct exti_hooks hooks = {.size = sizeof hooks, .before_load = make_full};
    struct exti_ctx_opts opts = iso_opts(in_tmp("a"), NULL);
    struct exti_module *m;
    struct exti_ctx *ctx;

    build("", "");
    opts.hooks = &hooks;
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, in_tmp("data.so"));
    want(left_out_of(m) < WITHOUT_DATA / 2);
    want_int(call_int(m, "is_right"), 1);
    iso_close_ctx(ctx);
}

/* Makes the copy as an earlier version made it: with its data. */
static const char add_data[] =
    "import json, struct, sys\n"
    "folder, source = sys.argv[1:]\n"
    "m = json.load(open(folder + '/manifest.json'))\n"
    "entry, = [e for e in m['copies'] if e['source'] == source]\n"
    "at, n = entry['left_out'].pop()\n"
    "m['extisolate'] = 3\n"
    "with open(source, 'rb') as s, open(folder + '/' + entry['copy'], 'r+b') as c:\n"
    "    for f, is_copy in (s, False), (c, True):\n"
    "        f.seek(0x20)\n"
    "        headers, = struct.unpack('<Q', f.read(8))\n"
    "        f.seek(0x38)\n"
    "        for i in range(struct.unpack('<H', f.read(2))[0]):\n"
    "            f.seek(headers + i * 56)\n"
    "            kind, access, offset = struct.unpack('<IIQ', f.read(16))\n"
    "            if (kind, access) == (1, 6) and is_copy:\n"
    "                f.seek(headers + i * 56 + 32)\n"
    "                f.write(struct.pack('<Q', at + n - offset))\n"
    "    s.seek(at)\n"
    "    c.seek(at)\n"
    "    c.write(s.read(n))\n"
    "json.dump(m, open(folder + '/manifest.json', 'w'))\n";

ISO_CASE(copies_of_earlier_versions_are_sound)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("a"), NULL);
    struct exti_ctx *ctx;
    const char *copy;

    build("", "");
    opts.flags = EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING;
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, in_tmp("data.so"), &copy, NULL), 0, NULL);
    want(left_out(copy) > WITH_DATA);
    iso_close_ctx(ctx);
    iso_write_text(in_tmp("add.py"), add_data);
    want(system(iso_text("/usr/bin/python3 '%s' '%s' '%s'", in_tmp("add.py"), in_tmp("a"),
                         in_tmp("data.so"))) == 0);
    iso_dir_clean(in_tmp("a"));
}

/* ---- data that stays in the copy ---- */

/* `most`: of what is left out of code and constants. */
static void want_kept(const char *more, const char *flags, long most, int result)
{
    struct exti_ctx *ctx = iso_open("a");
    struct exti_module *m;

    iso_build(iso_text("%s%s", large, more), "kept.so", iso_text(SEPARATE "%s", flags));
    m = iso_load(ctx, in_tmp("kept.so"));
    want(left_out_of(m) > WITHOUT_DATA / 2 && left_out_of(m) < most);
    want_int(call_int(m, "check"), result);
    iso_close_ctx(ctx);
}

/* Relative relocations that are packed have their addends where they write. */
ISO_CASE(data_with_addends_in_place_stays)
{
    iso_build("int one; int *pointer = &one;", "packed.so", "-Wl,-z,pack-relative-relocs");
    if (system(iso_text("readelf -d '%s' | grep -q RELR", in_tmp("packed.so"))) != 0) {
        fprintf(stderr, "needs a linker that packs relocations\n");
        _exit(0);
    }
    want_kept("char bytes[40000] = {[0 ... 39999] = 'x'};\n"
              "char *table[6000] = {[0 ... 5999] = bytes + 3};\n"
              "int check(void) { return table[5999] - bytes + bytes[39999]; }\n",
              "-Wl,-z,pack-relative-relocs", WITHOUT_DATA, 3 + 'x');
}

/* The system's loader copies it for threads. */
ISO_CASE(thread_local_data_stays)
{
    want_kept("__thread char bytes[40000] = {[0 ... 39999] = 'x'};\n"
              "int check(void) { return bytes[39999]; }\n",
              "", WITHOUT_DATA, 'x');
}

/* It would be read when the copy is loaded, however little of it is used. */
ISO_CASE(very_much_data_stays)
{
    want_kept("char bytes[3 << 20] = {[0 ... (3 << 20) - 1] = 'x'};\n"
              "int check(void) { return bytes[(3 << 20) - 1]; }\n",
              "", WITHOUT_DATA, 'x');
}

/* What is bound when it is called first: the system's loader adds the load address to what is
 * there. */
ISO_CASE(tables_of_calls_stay)
{
    enum { CALLS = 2200 };
    static char library[CALLS * 48], calls[CALLS * 48 + 200];
    size_t n = 0, k = 0;

    k += (size_t)snprintf(calls, sizeof calls, "int check(void)\n{\n    int n = 0;\n");
    for (int i = 0; i < CALLS; i++) {
        n += (size_t)snprintf(library + n, sizeof library - n, "int f%d(void) { return 1; }\n", i);
        k += (size_t)snprintf(calls + k, sizeof calls - k, "    n += f%d();\n", i);
    }
    snprintf(calls + k, sizeof calls - k, "    return n;\n}\n");
    iso_build(library, "libcalled.so", "-Wl,-soname,libcalled.so");
    iso_write_text(in_tmp("calls.c"), calls);
    want_kept("",
              iso_text("-g0 -Wl,-z,lazy -Wl,-z,norelro -Wno-implicit-function-declaration '%s' "
                       "-L'%s' -l:libcalled.so -Wl,-rpath,'%s'",
                       in_tmp("calls.c"), iso_tmp, iso_tmp),
              2 * WITHOUT_DATA, CALLS);
}

/* The system's loader calls the resolver before anything is read. */
ISO_CASE(data_that_a_resolver_looks_at_stays)
{
    static const char resolved[] =
        "extern int level;\n"
        "static int fast(void) { return 1; }\n"
        "static int slow(void) { return 2; }\n"
        "static int (*choose(void))(void) { return level == 3 ? fast : slow; }\n"
        "int chosen(void) __attribute__((ifunc(\"choose\")));\n"
        "int check(void) { return chosen(); }\n";
    struct exti_ctx *ctx = iso_open("a");
    struct exti_module *m;

    iso_build(iso_text("%schar bytes[40000] = {1}; int level = 3;\n", large), "liblevel.so",
              SEPARATE "-Wl,-soname,liblevel.so");
    iso_build(resolved, "resolved.so",
              iso_text("-L'%s' -l:liblevel.so -Wl,-rpath,'%s'", iso_tmp, iso_tmp));
    m = iso_load(ctx, in_tmp("resolved.so"));
    want_int(call_int(m, "check"), 1);
    iso_dir_clean(exti_ctx_dir(ctx));
    iso_close_ctx(ctx);
}

/* ---- segments ---- */

/* Loads a library that a linker script lays out. */
static void want_laid_out(const char *source, const char *script, int result)
{
    struct exti_ctx *ctx = iso_open("a");
    struct exti_module *m;

    iso_write_text(in_tmp("layout.ld"), script);
    iso_build(iso_text("%s%s", large, source), "laid.so",
              iso_text("-Wl,-T,'%s' -Wl,--no-eh-frame-hdr -nostartfiles", in_tmp("layout.ld")));
    m = iso_load(ctx, in_tmp("laid.so"));
    want_int(call_int(m, "check"), result);
    iso_prove_clean(ctx, 2);
    iso_dir_clean(exti_ctx_dir(ctx));
    iso_close_ctx(ctx);
}

#define LAYOUT(segments, sections)                                                                 \
    "PHDRS { a PT_LOAD FILEHDR PHDRS FLAGS(4); b PT_LOAD FLAGS(5); c PT_LOAD FLAGS(4);\n" segments \
    " dyn PT_DYNAMIC FLAGS(6); stack PT_GNU_STACK FLAGS(6); }\n"                                   \
    "SECTIONS { . = SIZEOF_HEADERS;\n"                                                             \
    ".hash : { *(.gnu.hash .hash) } :a .dynsym : { *(.dynsym) } .dynstr : { *(.dynstr) }\n"        \
    ".gnu.version : { *(.gnu.version*) } .rela.dyn : { *(.rela.dyn .rela.*) }\n"                   \
    ". = ALIGN(0x10000); .text : { *(.text .text.*) } :b .plt : { *(.plt .plt.*) }\n"              \
    ". = ALIGN(0x10000); .rodata : { *(.rodata .rodata.*) *(.eh_frame) } :c\n" sections            \
    "/DISCARD/ : { *(.note.* .comment) } }\n"

/* What the first of two writable segments has in memory alone could be the second's file part, by
 * its offsets. */
ISO_CASE(data_goes_to_the_segment_that_lacks_it)
{
    want_laid_out("char zeros[80000];\n"
                  "__attribute__((section(\".late\"))) char late[30000] = {[0 ... 29999] = 'x'};\n"
                  "int check(void)\n"
                  "{\n"
                  "    for (int i = 0; i < 80000; i++) if (zeros[i]) return 0;\n"
                  "    for (int i = 0; i < 30000; i++) if (late[i] != 'x') return 0;\n"
                  "    return 1;\n"
                  "}\n",
                  LAYOUT("d PT_LOAD FLAGS(6); e PT_LOAD FLAGS(6);",
                         ". = ALIGN(0x10000); .dynamic : { *(.dynamic) } :d :dyn\n"
                         ".got : { *(.got .got.plt) } :d .data : { *(.data .data.*) }\n"
                         ".bss : { *(.bss) }\n"
                         ". = ALIGN(0x10000); .late : { *(.late) } :e\n"),
                  1);
}

/* The copy of an extension that lld has linked has a writable segment more behind its data: it has no
 * SONAME, and no room for one in its dynamic section, which moves. */
ISO_CASE(data_before_a_moved_dynamic_section_comes_from_the_original)
{
    struct exti_module *m;
    struct exti_ctx *ctx;

    /* gcc looks for "ld.lld" in the folder of -B first. */
    if (system(iso_text("ln -s \"$(command -v ld.lld)\" '%s'", in_tmp("ld.lld"))) != 0) {
        fprintf(stderr, "lld is not installed\n");
        _exit(0);
    }
    build("", iso_text("-B'%s' -fuse-ld=lld -Wl,-z,now", iso_tmp));
    ctx = iso_open("a");
    m = iso_load(ctx, in_tmp("data.so"));
    want(left_out_of(m) > WITHOUT_DATA); /* constants are with tables */
    want_int(call_int(m, "is_right"), 1);
    want_int(call_int(m, "change"), 6);
    iso_dir_clean(exti_ctx_dir(ctx));
    iso_close_ctx(ctx);
}

/* Its pages would be mapped without the right to execute them. */
ISO_CASE(executable_data_stays)
{
    want_laid_out("char many[200000] = {1};\n"
                  "__attribute__((section(\".code\"))) int check(void) { return 7; }\n"
                  "__attribute__((section(\".after\"))) char after[9000] = {1};\n",
                  LAYOUT("d PT_LOAD FLAGS(7);",
                         ". = ALIGN(0x10000); .dynamic : { *(.dynamic) } :d :dyn\n"
                         ".got : { *(.got .got.plt) } :d .data : { *(.data) *(.code) *(.after) }\n"
                         ".bss : { *(.bss) }\n"),
                  7);
}

/* ---- once ---- */

static struct exti_ctx *shared;
static pthread_barrier_t start;

static void *load_data(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&start);
    return iso_load(shared, in_tmp("data.so"));
}

/* The data that a constructor has changed is not read again. */
ISO_CASE(threads_that_load_a_copy_at_once_read_its_data_once)
{
    build("__attribute__((constructor)) static void begin(void) { change(); }\n", "");
    for (int i = 0; i < 40; i++) {
        struct exti_module *m[2];
        pthread_t thread;
        void *other;

        shared = iso_open(NULL);
        iso_api(shared);
        want(pthread_barrier_init(&start, NULL, 2) == 0);
        want(pthread_create(&thread, NULL, load_data, NULL) == 0);
        m[0] = load_data(NULL);
        want(pthread_join(thread, &other) == 0);
        m[1] = other;
        want(m[0] == m[1]);
        want_int(call_int(m[0], "changes"), 6);
        want_int(call_int(m[0], "is_right"), 1);
        pthread_barrier_destroy(&start);
        iso_close_ctx(shared);
    }
}

/* A copy that is opened again while it is mapped goes on, as with the system's loader. */
ISO_CASE(a_copy_that_has_stayed_mapped_keeps_its_data)
{
    static const char opener[] = "#include <dlfcn.h>\n"
                                 "void *open_it(const char *path) { return dlopen(path, 2); }\n"
                                 "int close_it(void *handle) { return dlclose(handle); }\n"
                                 "int call_it(void *handle, const char *name)\n"
                                 "{ return ((int (*)(void))dlsym(handle, name))(); }\n";
    struct exti_ctx *ctx = iso_open("a");
    void *(*open_it)(const char *);
    int (*close_it)(void *), (*call_it)(void *, const char *);
    struct exti_module *m;
    const char *copy = NULL;
    void *handle, *ours;

    build("", "");
    iso_build(opener, "opener.so", "");
    m = iso_load(ctx, in_tmp("opener.so"));
    *(void **)&open_it = iso_sym(m, "open_it");
    *(void **)&close_it = iso_sym(m, "close_it");
    *(void **)&call_it = iso_sym(m, "call_it");
    handle = open_it(in_tmp("data.so"));
    want(handle);
    want_int(call_it(handle, "change"), 6);
    want_exti(exti_copy(ctx, in_tmp("data.so"), &copy, NULL), 0, NULL);
    ours = dlopen(copy, RTLD_NOW | RTLD_NOLOAD);
    want(ours);
    want_int(close_it(handle), 0);
    handle = open_it(in_tmp("data.so"));
    want(handle);
    want_int(call_it(handle, "changes"), 6);
    want_int(call_it(handle, "is_right"), 1);
    want(dlclose(ours) == 0);
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_comes_from_the_original),
        cmocka_unit_test(little_data_of_a_large_library_comes_from_the_original),
        cmocka_unit_test(full_copies_have_data_of_their_own),
        cmocka_unit_test(a_copy_that_has_become_full_has_its_data),
        cmocka_unit_test(copies_of_earlier_versions_are_sound),
        cmocka_unit_test(data_with_addends_in_place_stays),
        cmocka_unit_test(data_before_a_moved_dynamic_section_comes_from_the_original),
        cmocka_unit_test(what_is_read_only_once_it_is_relocated_is_so_again),
        cmocka_unit_test(thread_local_data_stays),
        cmocka_unit_test(very_much_data_stays),
        cmocka_unit_test(tables_of_calls_stay),
        cmocka_unit_test(data_that_a_resolver_looks_at_stays),
        cmocka_unit_test(data_goes_to_the_segment_that_lacks_it),
        cmocka_unit_test(executable_data_stays),
        cmocka_unit_test(threads_that_load_a_copy_at_once_read_its_data_once),
        cmocka_unit_test(a_copy_that_has_stayed_mapped_keeps_its_data),
    };

    return cmocka_run_group_tests_name("lean_data", tests, NULL, NULL);
}
