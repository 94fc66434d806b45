/* The memory for making a copy does not grow with the file, apart from the mappings of the file. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include <extisolate.h>

#define SECTION "peak memory of one copy, by the file's size"

static long status_kb(const char *field)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    long kb = -1;

    while (f && kb < 0 && fgets(line, sizeof line, f)) {
        if (!strncmp(line, field, strlen(field)))
            kb = strtol(line + strlen(field) + 1, NULL, 10);
    }
    if (f)
        fclose(f);
    return kb;
}

/* Makes a shared object that consists mostly of one block of data. */
static void make_object(const char *path, unsigned megabytes)
{
    char *command;

    if (asprintf(&command,
                 "printf '.globl d\\n.data\\n.type d,@object\\nd: .fill %u,8,0x1122334455667788\\n"
                 ".size d,.-d\\n' | ${CC:-cc} -x assembler -shared -nostdlib -Wl,-soname,big.so"
                 " -o '%s' -",
                 megabytes << 17, path) < 0)
        die("out of memory");
    if (system(command) != 0)
        die("cannot build %s", path);
    free(command);
}

/* The memory used by one exti_rewrite, measured in its own process. */
struct usage {
    long beyond_kb; /* peak address space, without two mappings of the file */
    long rss_kb;    /* ru_maxrss, with the pages of the mappings */
    double seconds;
};

static void measure_rewrite(const struct bench *b, const char *from, const char *to,
                            struct usage *u)
{
    const struct exti_needed needed = {NULL, b->api, EXTI_NEEDED_FIRST};
    const struct exti_rewrite_opts opts = {.size = sizeof opts,
                                           .id = "other.so",
                                           .needed = &needed,
                                           .needed_count = 1,
                                           .path_prepend = "$ORIGIN"};
    struct exti_error err;
    struct rusage usage;
    struct stat st;
    int status;
    pid_t pid;

    if (stat(from, &st) != 0)
        die("cannot look up %s: %s", from, strerror(errno));
    fflush(NULL);
    pid = fork();
    if (!pid) {
        long before = status_kb("VmSize:");
        double t = now();

        if (exti_rewrite(from, to, &opts, &err) != 0)
            die("%s: %s", err.file, err.message);
        u->seconds = now() - t;
        u->beyond_kb = status_kb("VmPeak:") - before - 2 * (long)(st.st_size / 1024);
        _exit(0);
    }
    if (wait4(pid, &status, 0, &usage) != pid || status)
        die("the copy of %s failed", from);
    u->rss_kb = usage.ru_maxrss;
}

void bench_memory(const struct bench *b)
{
    static const unsigned sizes[] = {5, 50, 500};
    struct usage *u = mmap(NULL, sizeof *u * ARRAY_SIZE(sizes), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *from = path_in(b, "big.so"), *to = path_in(b, "big-copy.so"), what[96];

    if (u == MAP_FAILED)
        die("out of memory");
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        make_object(from, sizes[i]);
        measure_rewrite(b, from, to, &u[i]);
        unlink(from);
        unlink(to);
        snprintf(what, sizeof what, "%u MB: address space beyond the two mappings", sizes[i]);
        add_row(SECTION, what, (double)u[i].beyond_kb / 1024, "MB");
        snprintf(what, sizeof what, "%u MB: resident set, the mapped cache pages included",
                 sizes[i]);
        add_row(SECTION, what, (double)u[i].rss_kb / 1024, "MB");
    }
    add_claim(SECTION, "growth beyond the mappings from 5 MB to 500 MB",
              (double)(u[ARRAY_SIZE(sizes) - 1].beyond_kb - u[0].beyond_kb) / 1024, "MB", true, 1);
    munmap(u, sizeof *u * ARRAY_SIZE(sizes));
    free(from);
    free(to);
}
