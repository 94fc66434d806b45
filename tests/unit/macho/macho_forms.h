/* One source, linked by lld in each of the ways in which a Mach-O file can name its references. */
#ifndef TESTS_UNIT_MACHO_FORMS_H
#define TESTS_UNIT_MACHO_FORMS_H

#include <stdlib.h>

#include "macho/read/macho_defs.h"
#include "tests/unit/macho/macho_link.h"

struct macho_form {
    const char *name;
    bool chained, dylib, main_program;
    unsigned libraries; /* besides libSystem */
    const char *far;    /* addend of a pointer to Py_Flag; above 255 it goes into the import */
    uint32_t imports;   /* the format that this leads to */
};

static const struct macho_form macho_forms[] = {
    {.name = "opcodes", .libraries = 1},
    {.name = "opcodes, dylib", .dylib = true, .libraries = 1},
    {.name = "opcodes, 22 libraries", .libraries = 21, .far = "-40000"},
    {.name = "opcodes, main program", .main_program = true, .libraries = 1},
    {.name = "chained", .chained = true, .libraries = 1, .imports = DYLD_CHAINED_IMPORT},
    {.name = "chained, dylib",
     .chained = true,
     .dylib = true,
     .libraries = 1,
     .imports = DYLD_CHAINED_IMPORT},
    {.name = "chained, 22 libraries, addends",
     .chained = true,
     .libraries = 21,
     .far = "40000",
     .imports = DYLD_CHAINED_IMPORT_ADDEND},
    {.name = "chained, wide addends",
     .chained = true,
     .libraries = 1,
     .far = "0x123456789",
     .imports = DYLD_CHAINED_IMPORT_ADDEND64},
    /* As many as lld can number; above 240 it writes wrong ordinals. */
    {.name = "chained, 240 libraries",
     .chained = true,
     .libraries = 239,
     .imports = DYLD_CHAINED_IMPORT},
    {.name = "chained, main program",
     .chained = true,
     .main_program = true,
     .libraries = 1,
     .imports = DYLD_CHAINED_IMPORT},
};

static const char macho_forms_source[] =
    "extern char *Py_GetVersion(void);\n"
    "extern void *malloc(unsigned long);\n"
    "extern int Py_Flag;\n"
    "extern int optional(void) __attribute__((weak_import));\n"
    "extern int LAST(void), gone(void) __attribute__((weak_import));\n"
    "extern int shared_elsewhere(void);\n"
    "__attribute__((weak)) int shared_state = 3;\n"
    "__attribute__((weak)) int *shared(void) { return &shared_state; }\n"
    "static int one, two;\n"
    "int *table[] = {&one, &two, &Py_Flag, &Py_Flag, &Py_Flag, &Py_Flag, &one, &Py_Flag};\n"
    "char *far = (char *)&Py_Flag + FAR;\n"
    "int (*last)(void) = LAST;\n"
    "int *(*way)(void) = shared;\n"
    "int ext_state(void) { return *table[0] += *shared() + LAST() + shared_elsewhere(); }\n"
    "int ext_states(void) { return optional ? optional() : 0; }\n"
    "void *PyInit_ext(void)\n"
    "{ return Py_GetVersion() ? malloc(8) : (void *)table; }\n";

static inline const char *forms_object(struct test *t, const char *arch, const char *source,
                                       const char *define1, const char *define2)
{
    const char *c = test_path(t, "form.c"), *o = test_path(t, "form.o");

    test_write(c, source, strlen(source));
    test_must_run(t, MACHO_CC, "-target", test_format(t, "%s-apple-macos11", arch), "-O1", "-fPIC",
                  "-fno-stack-protector", define1, define2, "-c", c, "-o", o, (char *)NULL);
    return o;
}

/* A stub of a library that exports `symbols`, and `weak` as weak definitions. */
static inline const char *forms_library(struct test *t, const char *file, const char *id,
                                        const char *symbols, const char *weak)
{
    const char *targets = "[ x86_64-macos, arm64-macos ]";
    const char *path = test_path(t, file),
               *text = test_format(t,
                                   "--- !tapi-tbd\ntbd-version: 4\ntargets: %s\n"
                                   "install-name: '%s'\ncurrent-version: 1\nexports:\n"
                                   "  - targets: %s\n    symbols: [ %s ]\n"
                                   "    weak-symbols: [ %s ]\n...\n",
                                   targets, id, targets, symbols, weak);

    test_write(path, text, strlen(text));
    return path;
}

static inline const char *forms_program(struct test *t, const char *arch)
{
    const char *out = test_path(t, "program"), *tbd = test_path(t, "libSystem.tbd");
    const char *o = forms_object(t, arch,
                                 "char *Py_GetVersion(void) { return 0; } int Py_Flag;\n"
                                 "int main(void) { return Py_Flag; }\n",
                                 "-DA", "-DB");

    test_write(tbd, macho_tbd, sizeof macho_tbd - 1);
    test_must_run(t, MACHO_LD, "-arch", arch, "-execute", "-export_dynamic", "-platform_version",
                  "macos", "11.0", "13.3", o, tbd, "-o", out, (char *)NULL);
    return out;
}

static inline struct exti_span macho_form_link(struct test *t, const char *arch,
                                               const struct macho_form *form)
{
    char *argv[300] = {MACHO_LD,     "-arch",          (char *)arch,
                       "-undefined", "dynamic_lookup", "-platform_version",
                       "macos",      "11.0",           "13.3"};
    char *out = test_path(t, "form"), *tbd = test_path(t, "libSystem.tbd"), *text;
    size_t n = 9, size;

    argv[n++] = form->dylib ? "-dylib" : "-bundle";
    argv[n++] = form->chained ? "-fixup_chains" : "-no_fixup_chains";
    if (form->main_program) {
        argv[n++] = "-bundle_loader";
        argv[n++] = (char *)forms_program(t, arch);
    }
    argv[n++] = (char *)forms_object(t, arch, macho_forms_source,
                                     test_format(t, "-DFAR=%s", form->far ? form->far : "8"),
                                     test_format(t, "-DLAST=from_%u", form->libraries));
    test_write(tbd, macho_tbd, sizeof macho_tbd - 1);
    argv[n++] = tbd;
    for (unsigned i = 1; i <= form->libraries; i++)
        argv[n++] = (char *)forms_library(
            t, test_format(t, "lib%u.tbd", i), test_format(t, "@rpath/libl%u.dylib", i),
            test_format(t, "_from_%u", i), i == 1 ? "_shared_elsewhere" : "");
    argv[n++] = "-o";
    argv[n++] = out;
    argv[n] = NULL;
    if (test_runv(t, &text, argv))
        fail_msg("%s, %s:\n%s", arch, form->name, text);
    text = test_read(t, out, &size);
    return exti__span(text, size);
}

/* The lines that llvm-objdump prints of the last linked form and that start with `start`, with
 * single spaces. */
static inline char *macho_form_dump(struct test *t, const char *option, const char *start)
{
    char *from =
        test_must_run(t, "llvm-objdump", "--macho", option, test_path(t, "form"), (char *)NULL);
    char *to = test_alloc(t, strlen(from) + 2), *out = to;

    for (char *line = strtok(from, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, start, strlen(start)) != 0)
            continue;
        for (char *p = line; *p; p++)
            if (*p != ' ' || (p[1] && p[1] != ' '))
                *to++ = *p;
        *to++ = '\n';
    }
    return out;
}

static inline int forms_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the lines of `text`. */
static inline char *macho_form_sort(struct test *t, const char *text)
{
    char **lines = test_alloc(t, (strlen(text) + 1) * sizeof *lines), *out = "";
    size_t n = 0;

    for (char *p = strtok(test_format(t, "%s", text), "\n"); p; p = strtok(NULL, "\n"))
        lines[n++] = p;
    qsort(lines, n, sizeof *lines, forms_compare);
    for (size_t i = 0; i < n; i++)
        out = test_format(t, "%s%s\n", out, lines[i]);
    return out;
}

#endif
