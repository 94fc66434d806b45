/* Debug sections, which copies leave to their originals. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include "tests/isolation/build.h"
#include "tests/isolation/maps.h"

/* Constants that are left out, and variables without file part: in the file, debug sections come
 * where memory has these. */
#define CODE                                                                                       \
    "const char constants[40000] = \"constant\";\n"                                                \
    "char zeros[4000000];\n"                                                                       \
    "int one(int a, int b) { return a * 7 + b; }\n"                                                \
    "int check(void)\n"                                                                            \
    "{\n"                                                                                          \
    "    for (int i = 0; i < 4000000; i++) if (zeros[i]) return 0;\n"                              \
    "    return one(2, 1);\n"                                                                      \
    "}\n"

static const char few[] = CODE;
static const char many[] =
    CODE "#define ONE(n) int one_##n(int a, int b) { return a * n + b; }\n"
         "#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) \\\n"
         "    ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)\n"
         "#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) \\\n"
         "    TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)\n"
         "HUNDRED(1) HUNDRED(2) HUNDRED(3) HUNDRED(4) HUNDRED(5) HUNDRED(6) HUNDRED(7)\n";

/* Of the constants, and of the constants and debug sections, whole blocks. */
enum { WITHOUT_DEBUG = 32000, WITH_DEBUG = 70000 };

#define FLAGS "-fno-ident -Wl,-z,separate-code "

/* How many bytes of the section a file has; -1: it has no such section. */
static long size_of(const char *file, const char *section)
{
    FILE *f = popen(iso_text("readelf -SW '%s' | sed -n 's/.* %s  *PROGBITS  *[0-9a-f]* "
                             "[0-9a-f]* \\([0-9a-f]*\\) .*/\\1/p'",
                             file, section),
                    "r");
    long size = -1;

    want(f);
    if (fscanf(f, "%lx", (unsigned long *)&size) != 1)
        size = -1;
    pclose(f);
    return size;
}

ISO_CASE(debug_sections_stay_in_the_original)
{
    static const char *const names[] = {".debug_info", ".debug_abbrev", ".debug_aranges",
                                        ".debug_line", ".debug_str"};
    struct exti_module *m[2];
    struct exti_ctx *ctx[2];

    iso_build(many, "many.so", FLAGS);
    for (int i = 0; i < 2; i++) {
        const char *copy;

        ctx[i] = iso_open(i ? "b" : "a");
        m[i] = iso_load(ctx[i], in_tmp("many.so"));
        copy = exti_module_copy(m[i]);
        want(left_out(copy) > WITH_DEBUG);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            want(size_of(in_tmp("many.so"), names[k]) > 0);
            want_int(size_of(copy, names[k]), -1);
        }
        want(system(iso_text("nm '%s' | grep -q ' T one_777$'", copy)) == 0);
    }
    for (int i = 0; i < 2; i++) {
        want_int(call_int(m[i], "check"), 15);
        iso_prove_clean(ctx[i], 2);
        iso_dir_clean(exti_ctx_dir(ctx[i]));
        iso_close_ctx(ctx[i]);
    }
}

/* The control of the first case. */
ISO_CASE(full_copies_have_debug_sections)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("a"), NULL);
    struct exti_module *m;
    struct exti_ctx *ctx;

    iso_build(many, "many.so", FLAGS);
    opts.flags = EXTI_CTX_FULL_COPIES;
    ctx = iso_open_opts(&opts);
    m = iso_load(ctx, in_tmp("many.so"));
    want(size_of(exti_module_copy(m), ".debug_info") > 0);
    want_int(call_int(m, "check"), 15);
    iso_close_ctx(ctx);
}

/* The copy is lean, and has debug sections all the same. */
static void want_copied(const char *source, const char *flags)
{
    struct exti_ctx *ctx = iso_open("a");
    struct exti_module *m;

    iso_build(source, "stays.so", flags);
    m = iso_load(ctx, in_tmp("stays.so"));
    want(left_out(exti_module_copy(m)) > WITHOUT_DEBUG);
    want(size_of(exti_module_copy(m), ".debug_info") > 0);
    want_int(call_int(m, "check"), 15);
    iso_close_ctx(ctx);
}

ISO_CASE(small_debug_sections_are_copied)
{
    want_copied(few, FLAGS);
}

/* Relocations that stay in the library refer to the sections. */
ISO_CASE(sections_that_others_need_stay)
{
    want_copied(many, FLAGS "-Wl,--emit-relocs");
}

ISO_CASE(frames_stay)
{
    struct exti_ctx *ctx = iso_open("a");
    struct exti_module *m;

    iso_build(many, "frames.so", FLAGS "-fno-unwind-tables -fno-asynchronous-unwind-tables");
    m = iso_load(ctx, in_tmp("frames.so"));
    want_int(size_of(exti_module_copy(m), ".debug_info"), -1);
    want(size_of(exti_module_copy(m), ".debug_frame") > 0);
    want(system(iso_text("readelf -wf '%s' | grep -q DW_CFA", exti_module_copy(m))) == 0);
    iso_close_ctx(ctx);
}

/* For each section of a file the offset of its header, and its name. */
static const char sections[] =
    "import struct\n"
    "def sections(f):\n"
    "    f.seek(0x28)\n"
    "    at, = struct.unpack('<Q', f.read(8))\n"
    "    f.seek(0x3a)\n"
    "    size, count, names = struct.unpack('<HHH', f.read(6))\n"
    "    f.seek(at + names * size + 0x18)\n"
    "    text, = struct.unpack('<Q', f.read(8))\n"
    "    for i in range(count):\n"
    "        f.seek(at + i * size)\n"
    "        name, = struct.unpack('<I', f.read(4))\n"
    "        f.seek(text + name)\n"
    "        yield at + i * size, f.read(40).split(b'\\0')[0].decode()\n";

static void run_python(const char *text, const char *args)
{
    iso_write_text(in_tmp("sections.py"), sections);
    iso_write_text(in_tmp("change.py"), text);
    want(system(iso_text("/usr/bin/python3 '%s' %s", in_tmp("change.py"), args)) == 0);
}

/* Makes the copy as an earlier version made it. */
static const char add_debug[] =
    "import json, struct, sys\n"
    "from sections import sections\n"
    "folder, source = sys.argv[1:]\n"
    "m = json.load(open(folder + '/manifest.json'))\n"
    "entry, = [e for e in m['copies'] if e['source'] == source]\n"
    "gone = entry.pop('unloaded')\n"
    "entry['left_out'] = [p for p in entry['left_out'] if p not in gone]\n"
    "m['extisolate'] = 4\n"
    "with open(source, 'rb') as s, open(folder + '/' + entry['copy'], 'r+b') as c:\n"
    "    for at, n in gone:\n"
    "        s.seek(at)\n"
    "        c.seek(at)\n"
    "        c.write(s.read(n))\n"
    "    for at, name in list(sections(s)):\n"
    "        if name.startswith('.debug_'):\n"
    "            s.seek(at)\n"
    "            c.seek(at)\n"
    "            c.write(s.read(64))\n"
    "json.dump(m, open(folder + '/manifest.json', 'w'))\n";

ISO_CASE(copies_of_earlier_versions_are_sound)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("a"), NULL);
    struct exti_ctx *ctx;
    const char *made;
    char copy[512];

    iso_build(many, "many.so", FLAGS);
    opts.flags = EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING;
    ctx = iso_open_opts(&opts);
    want_exti(exti_copy(ctx, in_tmp("many.so"), &made, NULL), 0, NULL);
    snprintf(copy, sizeof copy, "%s", made);
    want_int(size_of(copy, ".debug_info"), -1);
    iso_close_ctx(ctx);
    run_python(add_debug, iso_text("'%s' '%s'", in_tmp("a"), in_tmp("many.so")));
    want(size_of(copy, ".debug_info") > 0);
    iso_dir_clean(in_tmp("a"));
}

/* A section that says it is not loaded, and lies in a segment that is. */
ISO_CASE(what_a_segment_has_is_loaded_whatever_its_name)
{
    static const char debug_constants[] =
        "__attribute__((section(\".debug_mine\"))) const char mine[40000] = {[39999] = 'x'};\n"
        "int last(void) { return mine[39999]; }\n";
    static const char clear_flags[] = "import struct, sys\n"
                                      "from sections import sections\n"
                                      "with open(sys.argv[1], 'r+b') as f:\n"
                                      "    for at, name in list(sections(f)):\n"
                                      "        if name == '.debug_mine':\n"
                                      "            f.seek(at + 8)\n"
                                      "            f.write(struct.pack('<Q', 0))\n";
    struct exti_ctx *ctx = iso_open("a");
    struct exti_module *m;

    iso_build(iso_text("%s%s", many, debug_constants), "odd.so", FLAGS);
    run_python(clear_flags, iso_text("'%s'", in_tmp("odd.so")));
    m = iso_load(ctx, in_tmp("odd.so"));
    want_int(size_of(exti_module_copy(m), ".debug_info"), -1);
    want_int(call_int(m, "last"), 'x');
    want_int(call_int(m, "check"), 15);
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(debug_sections_stay_in_the_original),
        cmocka_unit_test(full_copies_have_debug_sections),
        cmocka_unit_test(small_debug_sections_are_copied),
        cmocka_unit_test(sections_that_others_need_stay),
        cmocka_unit_test(frames_stay),
        cmocka_unit_test(copies_of_earlier_versions_are_sound),
        cmocka_unit_test(what_a_segment_has_is_loaded_whatever_its_name),
    };

    return cmocka_run_group_tests_name("lean_debug", tests, NULL, NULL);
}
