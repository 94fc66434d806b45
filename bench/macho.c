/* One copy of a large Mach-O dylib, compared with a plain copy and a SHA-256 pass over it, which
 * the new signature needs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/fs_map.h"
#include "base/os/sha256.h"
#include "bench/bench.h"

#define SECTION "one copy of a 20 MB Mach-O dylib, signed, in process"

static void copy_dylib(const char *from, const char *to)
{
    static char buf[1 << 18];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0777);
    ssize_t n;

    if (in < 0 || out < 0)
        die("cannot copy %s: %s", from, strerror(errno));
    while ((n = read(in, buf, sizeof buf)) > 0) {
        if (write(out, buf, (size_t)n) != n)
            die("cannot write %s: %s", to, strerror(errno));
    }
    close(in);
    close(out);
}

static void hash(const char *path)
{
    uint8_t digest[EXTI_SHA256_SIZE];
    struct exti_error err = {0};
    struct exti_sha256 h;
    struct exti_mapping m;

    if (exti__fs_map(path, &m, NULL, &err))
        die("%s: %s", err.file, err.message);
    if (exti__sha256_init(&h, &err))
        die("%s", err.message);
    exti__sha256_add(&h, m.p, m.n);
    if (exti__sha256_end(&h, digest, &err))
        die("%s", err.message);
    exti__sha256_free(&h);
    exti__fs_unmap(&m);
}

static void rewrite_dylib(const char *from, const char *to, const char *api)
{
    static const struct exti_needed needed[] = {
        {NULL, "@loader_path/libapi.context.dylib", EXTI_NEEDED_LAST}};
    const struct exti_rewrite_opts opts = {.size = sizeof opts,
                                           .id = "/aB3x9Z",
                                           .needed = needed,
                                           .needed_count = 1,
                                           .origin = "/opt/wheel",
                                           .flags = EXTI_RW_CLEAR_UNIQUE | EXTI_RW_SYMBOLIC,
                                           .bind_file = api,
                                           .bind_name = needed[0].to,
                                           .bind_short = "/q4Kx0Z"};
    struct exti_error err;

    if (exti_rewrite(from, to, &opts, &err))
        die("%s: %s", err.file, err.message);
}

void bench_macho(const struct bench *b)
{
    static struct samples plain, hashed, rewritten;
    char *from = path_in(b, "large.dylib"), *api = path_in(b, "libapi.dylib");
    char *to = path_in(b, "out.dylib");
    double copy, sum;

    if (access(from, R_OK) != 0) {
        add_skip(SECTION, "clang-16 and ld64.lld-16, which build it, are not there");
        return;
    }
    for (int i = 0; i < (b->quick ? 5 : 60); i++) {
        double start = now();

        copy_dylib(from, to);
        add_sample(&plain, now() - start);
        unlink(to);
        start = now();
        hash(from);
        add_sample(&hashed, now() - start);
        start = now();
        rewrite_dylib(from, to, api);
        add_sample(&rewritten, now() - start);
        unlink(to);
    }
    copy = median(&plain);
    sum = 2 * copy + median(&hashed);
    add_row(SECTION, "plain copy, read and write", copy * 1e3, "ms");
    add_row(SECTION, "one SHA-256 pass", median(&hashed) * 1e3, "ms");
    add_row(SECTION, "exti_rewrite", median(&rewritten) * 1e3, "ms");
    add_claim(SECTION, "exti_rewrite against two plain copies and one SHA-256 pass",
              median(&rewritten) / sum, "x", true, 1);
    free(from);
    free(api);
    free(to);
}
