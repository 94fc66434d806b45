/* Preloaded: writes each path that is looked up, by stat or realpath, to the file PATHS_TO, a line each.  With
 * UNTYPED set folders do not tell what their names are of, as on some file systems. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void note(const char *path)
{
    const char *to = getenv("PATHS_TO");
    FILE *f = to ? fopen(to, "a") : NULL;

    if (!f)
        return;
    fprintf(f, "%s\n", path);
    fclose(f);
}

int stat(const char *path, struct stat *st)
{
    int (*next)(const char *, struct stat *) =
        (int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat");

    note(path);
    return next(path, st);
}

int lstat(const char *path, struct stat *st)
{
    int (*next)(const char *, struct stat *) =
        (int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "lstat");

    note(path);
    return next(path, st);
}

char *realpath(const char *path, char *out)
{
    char *(*next)(const char *, char *) =
        (char *(*)(const char *, char *))dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3");

    if (!next)
        next = (char *(*)(const char *, char *))dlsym(RTLD_NEXT, "realpath");
    note(path);
    return next(path, out);
}

struct dirent *readdir(DIR *d)
{
    struct dirent *(*next)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    struct dirent *e = next(d);

    if (e && getenv("UNTYPED"))
        e->d_type = DT_UNKNOWN;
    return e;
}
