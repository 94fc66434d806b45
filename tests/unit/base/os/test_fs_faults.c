/* Failures that no file system produces on demand.  The system calls below hide those of the C
 * library, so the library under test, which is linked statically, calls them. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/fs_boot.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_id.h"
#include "base/os/fs_lock.h"
#include "base/os/fs_map.h"
#include "base/os/fs_read.h"
#include "base/os/fs_replace.h"
#include "base/path.h"
#include "loader/store/copy_names.h"

enum call { NONE, OPEN, READ, PREAD, WRITE, CLOSE, FSYNC, FSTAT, MMAP, FLOCK, GETENTROPY, READDIR };

/* The call after `after` others of its kind fails once with `error`.  If `error` is 0, the call is
 * cut short; if it is END, the call finds nothing more. */
#define END (-1)
static struct {
    enum call call;
    int after, error, times;
    bool hit;
    const char *removes; /* flock removes this file; NULL: none */
} fault;

static void arm(enum call call, int after, int error)
{
    fault.call = call;
    fault.after = after;
    fault.error = error;
    fault.times = 1;
    fault.hit = false;
}

static bool strikes(enum call call)
{
    if (fault.call != call || fault.after-- != 0)
        return false;
    if (--fault.times)
        fault.after = 0;
    else
        fault.call = NONE;
    fault.hit = true;
    if (fault.error)
        errno = fault.error;
    return true;
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return strikes(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t read(int fd, void *p, size_t n)
{
    if (strikes(READ)) {
        if (fault.error)
            return fault.error == END ? 0 : -1;
        n = n < 3 ? n : 3;
    }
    return syscall(SYS_read, fd, p, n);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
    if (strikes(PREAD)) {
        if (fault.error)
            return fault.error == END ? 0 : -1;
        n = n < 3 ? n : 3;
    }
    return syscall(SYS_pread64, fd, p, n, at);
}

/* What the calls above become in fortified code. */
int __open_2(const char *path, int flags);
ssize_t __read_chk(int fd, void *p, size_t n, size_t room);
ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room);

int __open_2(const char *path, int flags)
{
    return open(path, flags, 0);
}

ssize_t __read_chk(int fd, void *p, size_t n, size_t room)
{
    (void)room;
    return read(fd, p, n);
}

ssize_t __pread_chk(int fd, void *p, size_t n, off_t at, size_t room)
{
    (void)room;
    return pread(fd, p, n, at);
}

ssize_t write(int fd, const void *p, size_t n)
{
    if (strikes(WRITE)) {
        if (fault.error)
            return -1;
        n = n < 3 ? n : 3;
    }
    return syscall(SYS_write, fd, p, n);
}

int close(int fd)
{
    bool failing = strikes(CLOSE);
    int rc = (int)syscall(SYS_close, fd);

    if (!failing)
        return rc;
    errno = fault.error;
    return -1;
}

int fsync(int fd)
{
    return strikes(FSYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fstat(int fd, struct stat *st)
{
    return strikes(FSTAT) ? -1 : fstatat(fd, "", st, AT_EMPTY_PATH);
}

int flock(int fd, int operation)
{
    if (fault.removes)
        unlink(fault.removes);
    return strikes(FLOCK) ? -1 : (int)syscall(SYS_flock, fd, operation);
}

int getentropy(void *p, size_t n)
{
    return strikes(GETENTROPY) || syscall(SYS_getrandom, p, n, 0) != (long)n ? -1 : 0;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    return strikes(MMAP)
               ? MAP_FAILED
               : (void *)syscall(SYS_mmap, at, n, (long)prot, (long)flags, (long)fd, offset);
}

struct dirent *readdir(DIR *d)
{
    static struct dirent *(*real)(DIR *);

    if (strikes(READDIR))
        return NULL;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    return real(d);
}

static int count_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int disarm_and_teardown(void **state)
{
    fault.call = NONE;
    exti__mem_fail_after(-1);
    return test_teardown(state);
}

#define fault_test(f) cmocka_unit_test_setup_teardown(f, test_setup, disarm_and_teardown)

static void failing_replace_cleans_up(void **state)
{
    static const struct {
        enum call call;
        int after, error;
        const char *says;
    } cases[] = {
        {GETENTROPY, 0, ENOSYS, "random bytes"},
        {WRITE, 0, EIO, "cannot write 20 bytes: Input/output error"},
        {WRITE, 0, ENOSPC, "No space left"},
        {WRITE, 0, EDQUOT, "quota"},
        {FSYNC, 0, EIO, "cannot sync file"},
        {CLOSE, 0, EDQUOT, "cannot write 20 bytes: Disk quota exceeded"},
        {CLOSE, 0, EIO, "cannot write 20 bytes: Input/output error"},
    };
    struct test *t = *state;
    char *path = test_path(t, "f");
    int fds = count_fds();

    test_write(path, "old", 3);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        arm(cases[i].call, cases[i].after, cases[i].error);
        assert_exti(exti__fs_replace(path, "twenty bytes of text", 20, EXTI_FS_SYNC, &t->err),
                    EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
        assert_true(fault.hit);
        assert_says(&t->err, cases[i].says);
        assert_int_equal(t->err.os_error, cases[i].error);
        assert_string_equal(t->err.file, path);
        assert_string_equal(test_list(t, t->dir), "f\n");
        assert_string_equal(test_read(t, path, NULL), "old");
        assert_int_equal(count_fds(), fds);
    }
}

static void replace_survives_harmless_failures(void **state)
{
    static const struct {
        enum call call;
        int after, error;
    } cases[] = {
        {WRITE, 0, 0},
        {WRITE, 0, EINTR},
        {CLOSE, 0, EINTR},
        {FSYNC, 1, EINVAL}, /* the folder cannot be synced */
    };
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *text = test_format(t, "twenty bytes of tex%zu", i);

        arm(cases[i].call, cases[i].after, cases[i].error);
        assert_ok(exti__fs_replace(path, text, 20, EXTI_FS_SYNC, &t->err), &t->err);
        assert_true(fault.hit);
        assert_string_equal(test_read(t, path, NULL), text);
    }
}

static void replace_reports_a_folder_that_cannot_be_synced(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    int fds = count_fds();

    arm(FSYNC, 1, EIO);
    assert_exti(exti__fs_replace(path, "new", 3, EXTI_FS_SYNC, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_says(&t->err, "cannot sync folder");
    assert_string_equal(t->err.file, t->dir);
    assert_string_equal(test_read(t, path, NULL), "new");
    assert_int_equal(count_fds(), fds);
}

static void without_sync_nothing_is_synced(void **state)
{
    struct test *t = *state;

    arm(FSYNC, 0, EIO);
    assert_ok(exti__fs_replace(test_path(t, "f"), "new", 3, 0, &t->err), &t->err);
    assert_false(fault.hit);
}

static void failing_read_cleans_up(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f"), *text = NULL;
    int fds = count_fds();
    size_t n = 77;

    test_write(path, "twenty bytes of text", 20);
    for (int after = 0; after < 2; after++) {
        arm(READ, after, EIO);
        assert_exti(exti__fs_read(path, 100, &text, &n, &t->err), EXTI_E_IO, &t->err,
                    EXTI_NO_OFFSET);
        assert_int_equal(t->err.os_error, EIO);
        assert_string_equal(t->err.file, path);
        assert_null(text);
        assert_int_equal(n, 77);
    }
    arm(FSTAT, 0, EIO);
    assert_exti(exti__fs_read(path, 100, &text, &n, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(count_fds(), fds);
}

static void read_survives_short_and_interrupted_reads(void **state)
{
    static const int errors[] = {0, EINTR};
    struct test *t = *state;
    char *path = test_path(t, "f"), *text;
    size_t n;

    test_write(path, "twenty bytes of text", 20);
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        arm(READ, 0, errors[i]);
        assert_ok(exti__fs_read(path, 100, &text, &n, &t->err), &t->err);
        assert_true(fault.hit);
        assert_string_equal(text, "twenty bytes of text");
        exti__free(text);
    }
}

static void failing_map_cleans_up(void **state)
{
    enum { SMALL = 10, LARGE = 1 << 20 }; /* allocated, and mapped */
    static const struct {
        enum call call;
        int after, error, code;
        off_t size;
    } cases[] = {
        {FSTAT, 0, EIO, EXTI_E_IO, SMALL},   {FSTAT, 0, EIO, EXTI_E_IO, LARGE},
        {FSTAT, 1, EIO, EXTI_E_IO, SMALL},   {FSTAT, 1, EIO, EXTI_E_IO, LARGE},
        {PREAD, 0, EIO, EXTI_E_IO, SMALL},   {PREAD, 0, EISDIR, EXTI_E_IO, SMALL},
        {PREAD, 0, EIO, EXTI_E_IO, LARGE},   {MMAP, 0, ENOMEM, EXTI_E_NOMEM, LARGE},
        {MMAP, 0, EAGAIN, EXTI_E_IO, LARGE},
    };
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m = {.n = 77};
    int fds = count_fds();

    test_write(path, "some bytes", 10);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(truncate(path, cases[i].size), 0);
        arm(cases[i].call, cases[i].after, cases[i].error);
        assert_exti(exti__fs_map(path, &m, NULL, &t->err), cases[i].code, &t->err, EXTI_NO_OFFSET);
        assert_true(fault.hit);
        assert_string_equal(t->err.file, path);
        assert_int_equal(t->err.os_error, cases[i].error);
        assert_int_equal(m.n, 77);
        assert_int_equal(count_fds(), fds);
    }
}

static void small_map_is_read_in_pieces(void **state)
{
    static const int errors[] = {0, EINTR};
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;

    test_write(path, "twenty bytes of text", 20);
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        arm(PREAD, 0, errors[i]);
        assert_ok(exti__fs_map(path, &m, NULL, &t->err), &t->err);
        assert_true(fault.hit);
        assert_int_equal(m.n, 20);
        assert_memory_equal(m.p, "twenty bytes of text", 20);
        exti__fs_unmap(&m);
    }
}

/* Three times: a file that is being written may be whole the next time. */
static void file_that_ends_while_it_is_read_is_refused(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m = {.n = 77};

    test_write(path, "twenty bytes of text", 20);
    arm(PREAD, 0, END);
    assert_ok(exti__fs_map(path, &m, NULL, &t->err), &t->err);
    assert_true(fault.hit);
    assert_memory_equal(m.p, "twenty bytes of text", 20);
    exti__fs_unmap(&m);
    m.n = 77;
    arm(PREAD, 0, END);
    fault.times = 3;
    assert_exti(exti__fs_map(path, &m, NULL, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ESTALE);
    assert_string_equal(t->err.file, path);
    assert_int_equal(m.n, 77);
}

static void failing_lock_cleans_up(void **state)
{
    struct test *t = *state;
    struct exti_lock lock = {.fd = 77};
    int fds = count_fds();

    arm(FLOCK, 0, ENOLCK);
    assert_exti(exti__fs_lock(test_path(t, "lock"), &lock, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOLCK);
    assert_int_equal(lock.fd, 77);
    assert_int_equal(count_fds(), fds);

    /* It is not known whether the lock is on the right file, and will not be if this goes on. */
    arm(FSTAT, 0, EIO);
    assert_exti(exti__fs_lock(test_path(t, "lock"), &lock, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_true(fault.hit);
    assert_int_equal(t->err.os_error, EIO);
    assert_string_equal(t->err.file, test_path(t, "lock"));
    assert_int_equal(lock.fd, 77);
    assert_int_equal(count_fds(), fds);
    assert_ok(exti__fs_lock(test_path(t, "lock"), &lock, &t->err), &t->err);
    exti__fs_unlock(&lock);
    assert_int_equal(count_fds(), fds);
}

/* A file that is removed whenever it has been locked, or that another always makes first. */
static void lock_gives_up_on_a_file_that_never_stays(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "lock");
    struct exti_lock lock = {.fd = 77};
    int fds = count_fds();

    fault.removes = path;
    assert_exti(exti__fs_lock(path, &lock, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    fault.removes = NULL;
    assert_int_equal(t->err.os_error, EBUSY);
    assert_contains(t->err.message, "removed it 1000 times");
    assert_int_equal(lock.fd, 77);
    assert_int_equal(count_fds(), fds);
}

/* After the file was found, but before it is opened, another process may remove it or make it
 * unwritable. */
static void lock_survives_races_for_its_file(void **state)
{
    static const int errors[] = {ENOENT, EACCES, EROFS, EPERM};
    struct test *t = *state;
    char *path = test_path(t, "lock");
    struct exti_lock lock;
    int fds = count_fds();

    test_write(path, "", 0);
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        arm(OPEN, 1, errors[i]);
        assert_ok(exti__fs_lock(path, &lock, &t->err), &t->err);
        assert_true(fault.hit);
        exti__fs_unlock(&lock);
        assert_int_equal(count_fds(), fds);
    }
}

static void context_name_reports_missing_random_bytes(void **state)
{
    struct test *t = *state;
    char name[EXTI_NAME_MAX + 1] = "untouched";

    arm(GETENTROPY, 0, ENOSYS);
    assert_exti(exti__context_name_make(name, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "cannot get random bytes for a context name");
    assert_int_equal(t->err.os_error, ENOSYS);
    assert_string_equal(name, "untouched");
}

static void note_becomes_the_lock_files_content(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "lock");
    struct exti_lock lock;

    assert_ok(exti__fs_lock(path, &lock, &t->err), &t->err);
    assert_ok(exti__fs_lock_note(&lock, "a long note", false, &t->err), &t->err);
    arm(WRITE, 0, 0);
    assert_ok(exti__fs_lock_note(&lock, "shorter", true, &t->err), &t->err);
    assert_string_equal(test_read(t, path, NULL), "shorter");
    arm(WRITE, 0, ENOSPC);
    assert_exti(exti__fs_lock_note(&lock, "more", false, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOSPC);
    arm(FSYNC, 0, EIO);
    assert_exti(exti__fs_lock_note(&lock, "kept", true, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    arm(FSYNC, 0, EINVAL);
    assert_ok(exti__fs_lock_note(&lock, "kept", true, &t->err), &t->err);
    exti__fs_unlock(&lock);
}

static int ignore_name(void *user, const char *name)
{
    (void)user;
    (void)name;
    return 0;
}

static void failing_list_is_reported(void **state)
{
    struct test *t = *state;
    int fds = count_fds();

    test_write(test_path(t, "f"), "", 0);
    arm(READDIR, 1, EIO);
    assert_exti(exti__fs_list(t->dir, ignore_name, NULL, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_says(&t->err, "cannot read folder");
    assert_string_equal(t->err.file, t->dir);
    assert_int_equal(count_fds(), fds);
}

static void unknown_boot_id_is_empty(void **state)
{
    char id[64] = "x";

    (void)state;
    arm(READ, 0, EIO);
    assert_int_equal(exti__fs_boot(id, sizeof id), 0);
    assert_string_equal(id, "");
}

/* ---- no memory ------------------------------------------------------------------------------- */

static int do_replace(struct test *t)
{
    return exti__fs_replace(test_path(t, "g"), "new", 3, EXTI_FS_SYNC, &t->err);
}

static int do_read(struct test *t)
{
    /* The file's size is given as 0, so the buffer has to grow. */
    char *text;
    size_t n;
    int rc = exti__fs_read("/proc/self/maps", 1 << 20, &text, &n, &t->err);

    if (!rc)
        exti__free(text);
    return rc;
}

static int do_mkdtemp(struct test *t)
{
    char *dir;
    int rc;

    setenv("TMPDIR", t->dir, 1);
    rc = exti__fs_mkdtemp(&dir, &t->err);
    unsetenv("TMPDIR");
    if (!rc) {
        rmdir(dir);
        exti__free(dir);
    }
    return rc;
}

static int do_realpath(struct test *t)
{
    char *path;
    int rc = exti__fs_realpath(t->dir, &path, &t->err);

    if (!rc)
        exti__free(path);
    return rc;
}

static int do_join(struct test *t)
{
    char *path = exti__path_join(t->dir, "f");

    t->err = (struct exti_error){.code = EXTI_E_NOMEM, .offset = EXTI_NO_OFFSET, .message = "-"};
    exti__free(path);
    return path ? 0 : EXTI_E_NOMEM;
}

static void every_allocation_may_fail(void **state)
{
    static const struct {
        int (*run)(struct test *t);
        long at_least;
    } cases[] = {{do_replace, 2}, {do_read, 3}, {do_mkdtemp, 1}, {do_realpath, 1}, {do_join, 1}};
    struct test *t = *state;
    int fds = count_fds();

    if (test_is_emulated())
        skip_because("the emulator gives /proc/self/maps a size");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        long n;
        int rc;

        for (n = 0;; n++) {
            exti__mem_fail_after(n);
            rc = cases[i].run(t);
            exti__mem_fail_after(-1);
            assert_int_equal(count_fds(), fds);
            if (!rc)
                break;
            assert_exti(rc, EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
            assert_null(strstr(test_list(t, t->dir), "exti-"));
        }
        assert_true(n >= cases[i].at_least);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fault_test(failing_replace_cleans_up),
        fault_test(replace_survives_harmless_failures),
        fault_test(replace_reports_a_folder_that_cannot_be_synced),
        fault_test(without_sync_nothing_is_synced),
        fault_test(failing_read_cleans_up),
        fault_test(read_survives_short_and_interrupted_reads),
        fault_test(failing_map_cleans_up),
        fault_test(small_map_is_read_in_pieces),
        fault_test(file_that_ends_while_it_is_read_is_refused),
        fault_test(failing_lock_cleans_up),
        fault_test(lock_gives_up_on_a_file_that_never_stays),
        fault_test(lock_survives_races_for_its_file),
        fault_test(context_name_reports_missing_random_bytes),
        fault_test(note_becomes_the_lock_files_content),
        fault_test(failing_list_is_reported),
        fault_test(unknown_boot_id_is_empty),
        fault_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("base/fs_faults", tests, NULL, NULL);
}
