/* Preloaded: makes one allocation of a program fail, or that one and all after it.  libelf,
 * jansson and nettle call the C library's malloc, whether they are linked statically or not, and
 * so do the C library and the system's loader.
 *
 * FAIL_IN names the program, as it may start others.  FAIL_AT is the number of the allocation,
 * from 0 on; FAIL_ON: all after it fail too.  FAIL_COUNT is a file of 16 bytes: how many
 * allocations there were, and how many of them failed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

struct counts {
    _Atomic long all, failed;
};

static struct counts *counts;
static long fail_at;
static int fail_on;

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("FAIL_IN"), *at = getenv("FAIL_AT"), *file = getenv("FAIL_COUNT");
    int fd;
    void *p;

    if (!name || !at || !file || strcmp(name, program_invocation_short_name) != 0)
        return;
    fd = open(file, O_RDWR | O_CLOEXEC);
    p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        abort();
    close(fd);
    fail_at = atol(at);
    fail_on = getenv("FAIL_ON") != NULL;
    counts = p;
}

/* For builds that count coverage: their counts are written behind the program's back. */
void exti_faults_end(void)
{
    counts = NULL;
}

static int must_fail(void)
{
    long n;

    if (!counts)
        return 0;
    n = atomic_fetch_add(&counts->all, 1);
    if (n != fail_at && !(fail_on && n > fail_at))
        return 0;
    atomic_fetch_add(&counts->failed, 1);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t n)
{
    return must_fail() ? NULL : __libc_malloc(n);
}

void *calloc(size_t count, size_t n)
{
    return must_fail() ? NULL : __libc_calloc(count, n);
}

void *realloc(void *p, size_t n)
{
    return must_fail() ? NULL : __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    return must_fail() ? NULL : __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
    void *p = memalign(align, n);

    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}
