/* Libraries that a case builds for itself. */
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

#endif
