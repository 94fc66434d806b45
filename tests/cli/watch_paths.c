/* Preloaded.  Appends each path that stat or realpath is called for, on a line of its own, to the
 * file PATHS_TO.  With UNTYPED set, readdir gives no types of files, as on some file systems. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void record_path(const char *path)
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

    record_path(path);
    return next(path, st);
}

int lstat(const char *path, struct stat *st)
{
    int (*next)(const char *, struct stat *) =
        (int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "lstat");

    record_path(path);
    return next(path, st);
}

char *realpath(const char *path, char *out)
{
    char *(*next)(const char *, char *) =
        (char *(*)(const char *, char *))dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3");

    if (!next)
        next = (char *(*)(const char *, char *))dlsym(RTLD_NEXT, "realpath");
    record_path(path);
    return next(path, out);
}

/* By this name in programs built with _FORTIFY_SOURCE. */
char *__realpath_chk(const char *path, char *out, size_t room)
{
    char *(*next)(const char *, char *, size_t) =
        (char *(*)(const char *, char *, size_t))dlsym(RTLD_NEXT, "__realpath_chk");

    record_path(path);
    return next(path, out, room);
}

struct dirent *readdir(DIR *d)
{
    struct dirent *(*next)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    struct dirent *e = next(d);

    if (e && getenv("UNTYPED"))
        e->d_type = DT_UNKNOWN;
    return e;
}
