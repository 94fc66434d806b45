/* driver LIBRARY: opens it and exits with the result of its selftest, or 99 on failure. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int (*selftest)(void), (*answer)(void), rc;
    void *lib;

    if (argc != 2)
        return 99;
    lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        return 99;
    }
    *(void **)&selftest = dlsym(lib, "selftest");
    if (!selftest) {
        fprintf(stderr, "%s\n", dlerror());
        return 99;
    }
    rc = selftest();
#ifdef __GLIBC__
    *(void **)&answer = dlvsym(lib, "selftest_answer", "ST_1");
    if (!rc && answer && answer() != 1)
        rc = 90;
    *(void **)&answer = dlsym(lib, "selftest_answer");
    if (!rc && answer && answer() != 2)
        rc = 91;
#else
    (void)answer;
#endif
    dlclose(lib);
    if (rc)
        fprintf(stderr, "selftest: %d\n", rc);
    return rc;
}
