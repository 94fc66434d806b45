/* Mach-O files that the tests link with lld. */
#ifndef TESTS_UNIT_MACHO_LINK_H
#define TESTS_UNIT_MACHO_LINK_H

#include <string.h>

#include "base/span.h"
#include "tests/support/exti_test.h"

#define MACHO_CC "clang"
#define MACHO_LD "ld64.lld"

static const char macho_tbd[] =
    "--- !tapi-tbd\n"
    "tbd-version: 4\n"
    "targets: [ x86_64-macos, arm64-macos ]\n"
    "install-name: '/usr/lib/libSystem.B.dylib'\n"
    "current-version: 1345.100.2\n"
    "exports:\n"
    "  - targets: [ x86_64-macos, arm64-macos ]\n"
    "    symbols: [ dyld_stub_binder, _malloc, _free, _strlen, __tlv_bootstrap ]\n"
    "...\n";

/* Flat, bound and local references, a table with rebases, and three exports. */
static const char macho_source[] = "extern char *Py_GetVersion(void);\n"
                                   "extern void *malloc(unsigned long);\n"
                                   "extern int Py_Flag;\n"
                                   "static int one, two;\n"
                                   "int *table[] = {&one, &two, &Py_Flag};\n"
                                   "int ext_state(void) { return *table[0] += 1; }\n"
                                   "void *PyInit_ext(void)\n"
                                   "{ return Py_GetVersion() ? malloc(8) : (void *)table; }\n";

static inline void macho_skip_without_tools(void)
{
    if (!test_have(MACHO_CC) || !test_have(MACHO_LD))
        skip_because(MACHO_CC " or " MACHO_LD " is not installed");
}

/* Links macho_source for "x86_64" or "arm64" into dir/name and returns the file's bytes;
 * `options` are the linker's, separated by spaces. */
static inline struct exti_span macho_link(struct test *t, const char *arch, const char *name,
                                          const char *options)
{
    const char *out = test_path(t, name), *tbd = test_path(t, "libSystem.tbd");
    const char *c = test_path(t, "ext.c"), *o = test_path(t, "ext.o");
    char *argv[64] = {MACHO_LD, "-arch", (char *)arch, "-undefined", "dynamic_lookup"}, *text;
    size_t n = 5, size;
    int rc;

    test_write(c, macho_source, sizeof macho_source - 1);
    test_write(tbd, macho_tbd, sizeof macho_tbd - 1);
    test_must_run(t, MACHO_CC, "-target", test_format(t, "%s-apple-macos11", arch), "-O1", "-fPIC",
                  "-fno-stack-protector", "-c", c, "-o", o, (char *)NULL);
    for (char *p = strtok(test_format(t, "%s", options), " "); p; p = strtok(NULL, " "))
        argv[n++] = p;
    argv[n++] = (char *)o;
    argv[n++] = (char *)tbd;
    argv[n++] = "-o";
    argv[n++] = (char *)out;
    argv[n] = NULL;
    rc = test_runv(t, &text, argv);
    if (rc)
        fail_msg("%s: status %d\n%s", MACHO_LD, rc, text);
    text = test_read(t, out, &size);
    return exti__span(text, size);
}

#define MACHO_BUNDLE "-bundle -platform_version macos 11.0 13.3 "
#define MACHO_DYLIB "-dylib -platform_version macos 11.0 13.3 -install_name @rpath/libx.dylib "
/* What lld from 17 on signs a dylib as; older ones, by the file's name. */
#define MACHO_DYLIB_IDENTIFIER "libx.dylib"

static const char *const macho_archs[] = {"x86_64", "arm64"};

#endif
