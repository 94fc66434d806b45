/* Libraries that a case builds in its own folder. */
#ifndef TESTS_ISOLATION_BUILD_H
#define TESTS_ISOLATION_BUILD_H

#include "tests/isolation/iso.h"

static inline void iso_write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    want(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Compiles `source` into the case's folder. */
static inline void iso_build(const char *source, const char *file, const char *flags)
{
    iso_write_text(in_tmp("source.c"), source);
    want(system(iso_text("gcc -O1 -g -fPIC -shared -o '%s' '%s' %s", in_tmp(file),
                         in_tmp("source.c"), flags)) == 0);
}

/* Builds mod.so and a library that it needs.  The library's finaliser calls a function of mod.so,
 * which makes the file "called". */
static inline void iso_build_called_back(void)
{
    static const char library[] = "static void (*user)(void);\n"
                                  "void dep_register(void (*f)(void)) { user = f; }\n"
                                  "__attribute__((destructor)) static void end(void)\n"
                                  "{ if (user) user(); }\n";
    static const char user[] = "#include <fcntl.h>\n"
                               "#include <unistd.h>\n"
                               "void dep_register(void (*f)(void));\n"
                               "static void called(void) { close(creat(CALLED, 0600)); }\n"
                               "__attribute__((constructor)) static void begin(void)\n"
                               "{ dep_register(called); }\n";

    iso_build(library, "libdep.so", "-Wl,-soname,libdep.so");
    iso_build(user, "mod.so",
              iso_text("-L'%s' -ldep -Wl,-rpath,'%s' -DCALLED='\"%s\"'", iso_tmp, iso_tmp,
                       in_tmp("called")));
}

#endif
