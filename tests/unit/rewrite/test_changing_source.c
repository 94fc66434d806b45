/* Copies of a library that another process writes to, in place, all the time. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <extisolate.h>

/* A library in two versions, which differ in each byte of their code. */
struct library {
    uint8_t *versions[2];
    size_t n, code, code_size;
};

static void read_library(struct test *t, struct library *lib)
{
    Dl_info info;
    const Elf64_Ehdr *eh;
    const Elf64_Shdr *sh;

    /* Of the C library also where a sanitizer puts functions before it. */
    assert_true(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info));
    lib->versions[0] = (uint8_t *)test_read(t, info.dli_fname, &lib->n);
    eh = (const Elf64_Ehdr *)(const void *)lib->versions[0];
    sh = (const Elf64_Shdr *)(const void *)(lib->versions[0] + eh->e_shoff);
    for (size_t i = 0; i < eh->e_shnum; i++)
        if (sh[i].sh_flags & SHF_EXECINSTR && sh[i].sh_size > lib->code_size) {
            lib->code = (size_t)sh[i].sh_offset;
            lib->code_size = (size_t)sh[i].sh_size;
        }
    assert_true(lib->code_size > 512 << 10);
    assert_in_range(lib->n / 2, lib->code, lib->code + lib->code_size);
    lib->versions[1] = test_alloc(t, lib->n);
    memcpy(lib->versions[1], lib->versions[0], lib->n);
    for (size_t i = 0; i < lib->code_size; i++)
        lib->versions[1][lib->code + i] ^= 0x5a;
}

static void write_at(int fd, const uint8_t *p, size_t from, size_t to)
{
    if (pwrite(fd, p + from, to - from, (off_t)from) != (ssize_t)(to - from))
        _exit(3);
}

/* Alternates the versions until it is killed, each in two writes.  With `truncates` the file is
 * short in between. */
static void write_for_ever(const struct library *lib, const char *path, bool truncates)
{
    for (unsigned i = 1;; i++) {
        const uint8_t *p = lib->versions[i % 2];
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || (truncates && ftruncate(fd, 4096) != 0))
            _exit(2);
        write_at(fd, p, 0, lib->n / 2);
        usleep(i % 5 * 200);
        write_at(fd, p, lib->n / 2, lib->n);
        close(fd);
        usleep(i % 8 * 4000);
    }
}

static bool has_code(const struct library *lib, const uint8_t *copy, size_t version, size_t from,
                     size_t to)
{
    return memcmp(copy + from, lib->versions[version] + from, to - from) == 0;
}

/* Whether the code is one version's, or that of the source between two writes. */
static bool is_sound(const struct library *lib, const uint8_t *copy)
{
    const size_t from = lib->code, to = from + lib->code_size, half = lib->n / 2;

    for (size_t i = 0; i < 4; i++)
        if (has_code(lib, copy, i & 1, from, half) && has_code(lib, copy, i >> 1, half, to))
            return true;
    return false;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Copies for a while; returns how many copies were made. */
static int copy_often(struct test *t, const struct library *lib, const char *from, const char *to)
{
    const struct exti_rewrite_opts opts = {.size = sizeof opts, .id = "another-name.so"};
    const double end = seconds() + 4;
    uint8_t *copy = test_alloc(t, lib->n);
    int made = 0;

    for (int i = 0; seconds() < end; i++) {
        int fd, rc = exti_rewrite(from, to, &opts, &t->err);

        if (rc == EXTI_E_FORMAT || (rc == EXTI_E_IO && t->err.os_error == ESTALE))
            continue;
        assert_ok(rc, &t->err);
        fd = open(to, O_RDONLY | O_CLOEXEC);
        assert_true(read(fd, copy, lib->n) == (ssize_t)lib->n);
        close(fd);
        if (!is_sound(lib, copy))
            fail_msg("copy %d is of no version", i);
        made++;
    }
    return made;
}

static void copy_beside_writer(struct test *t, bool truncates)
{
    struct library lib = {.n = 0};
    char *from = test_path(t, "from.so"), *to = test_path(t, "to.so");
    int made, status;
    pid_t writer;

    if (test_is_emulated())
        skip_because("an emulator copies more slowly than the file changes");
    read_library(t, &lib);
    test_write(from, lib.versions[0], lib.n);
    writer = fork();
    assert_true(writer >= 0);
    if (!writer) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_for_ever(&lib, from, truncates);
    }
    made = copy_often(t, &lib, from, to);
    assert_int_equal(waitpid(writer, &status, WNOHANG), 0);
    kill(writer, SIGKILL);
    waitpid(writer, &status, 0);
    assert_true(made >= 3);
}

static void copy_of_a_truncated_source_is_whole_or_refused(void **state)
{
    copy_beside_writer(*state, true);
}

static void copy_of_an_overwritten_source_is_of_one_version(void **state)
{
    copy_beside_writer(*state, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(copy_of_a_truncated_source_is_whole_or_refused),
        exti_test(copy_of_an_overwritten_source_is_of_one_version),
    };

    return cmocka_run_group_tests_name("rewrite/changing_source", tests, NULL, NULL);
}
