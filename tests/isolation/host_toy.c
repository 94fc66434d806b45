/* A host of two toy contexts, which may export the API itself.  test_hosts.sh builds it in several
 * ways and runs it as:  host_toy FLAVOUR EXPECTED-RENAMED [rename] [global LIB]...  It prints
 * nothing and exits with 0 if the contexts are isolated. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "tests/isolation/pair.h"

int main(int argc, char **argv)
{
    uint32_t flags = 0;
    int *host_count, before = 0;

    want(argc >= 3);
    iso_flavour = argv[1];
    for (int i = 3; i < argc; i++) {
        if (!strcmp(argv[i], "rename")) {
            flags |= EXTI_CTX_RENAME;
        } else if (!strcmp(argv[i], "global") && i + 1 < argc) {
            if (!dlopen(argv[++i], RTLD_NOW | RTLD_GLOBAL)) {
                fprintf(stderr, "%s\n", dlerror());
                return 1;
            }
        }
    }
    host_count = dlsym(RTLD_DEFAULT, "toy_count");
    if (host_count)
        before = *host_count;
    snprintf(iso_tmp, sizeof iso_tmp, "/tmp/exti-host.XXXXXX");
    want(mkdtemp(iso_tmp));
    toy_check_pair(flags, atoi(argv[2]));
    if (host_count)
        want_int(*host_count, before);
    want(system(iso_text("rm -rf %s", iso_tmp)) == 0);
    return 0;
}
