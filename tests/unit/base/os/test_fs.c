#include "tests/support/exti_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/fs_boot.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/os/fs_read.h"
#include "base/os/fs_remove.h"
#include "base/os/fs_replace.h"
#include "base/os/path.h"

/* ---- maps -------------------------------------------------------------------------------------- */

static void map_gives_bytes_and_identity(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;
    struct exti_file_id id, looked_up;
    struct stat st;

    test_write(path, "some bytes", 10);
    assert_ok(exti__fs_map(path, &m, &id, &t->err), &t->err);
    assert_int_equal(m.n, 10);
    assert_memory_equal(m.p, "some bytes", 10);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(id.size, 10);
    assert_int_equal(id.inode, st.st_ino);
    assert_int_equal(id.device, st.st_dev);
    assert_int_equal(id.mtime_ns, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
    assert_ok(exti__fs_id(path, &looked_up, &t->err), &t->err);
    assert_memory_equal(&looked_up, &id, sizeof id);
    exti__fs_unmap(&m);
    assert_null(m.p);
    exti__fs_unmap(&m);
    assert_ok(exti__fs_map(path, &m, NULL, &t->err), &t->err);
    exti__fs_unmap(&m);
}

static void map_follows_links(void **state)
{
    struct test *t = *state;
    char *link = test_path(t, "link");
    struct exti_mapping m;

    test_write(test_path(t, "f"), "abc", 3);
    assert_int_equal(symlink("f", link), 0);
    assert_ok(exti__fs_map(link, &m, NULL, &t->err), &t->err);
    assert_memory_equal(m.p, "abc", 3);
    exti__fs_unmap(&m);
}

static void map_keeps_a_file_that_is_replaced(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;

    test_write(path, "old", 3);
    assert_ok(exti__fs_map(path, &m, NULL, &t->err), &t->err);
    assert_ok(exti__fs_replace(path, "", 0, 0, &t->err), &t->err);
    assert_memory_equal(m.p, "old", 3);
    exti__fs_unmap(&m);
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

/* Everything that opens a file says the same of what cannot be one. */
static void non_files_are_refused(void **state)
{
    struct test *t = *state;
    const struct {
        const char *path;
        int os_error; /* -1: any */
        const char *says, *id_says;
    } cases[] = {
        {test_path(t, "missing"), ENOENT, "No such file", "No such file"},
        {test_path(t, "dir"), EISDIR, "a directory, not a regular file", "a directory"},
        {test_path(t, "fifo"), 0, "a FIFO, not a regular file", "a FIFO"},
        {test_path(t, "socket"), -1, "", "a socket, not a regular file"},
        {"/dev/null", 0, "a device, not a regular file", "a device"},
        {test_path(t, "loop"), ELOOP, "symbolic links", "symbolic links"},
        {test_path(t, "plain/f"), ENOTDIR, "Not a directory", "Not a directory"},
    };

    test_write(test_path(t, "plain"), "x", 1);
    assert_int_equal(mkdir(cases[1].path, 0700), 0);
    assert_int_equal(mkfifo(cases[2].path, 0600), 0);
    make_socket(cases[3].path);
    assert_int_equal(symlink("loop", cases[5].path), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct exti_mapping m = {.n = 77};
        struct exti_file_id id = {.size = 77};
        char *text = "untouched";
        size_t n = 77;

        assert_exti(exti__fs_map(cases[i].path, &m, &id, &t->err), EXTI_E_IO, &t->err,
                    EXTI_NO_OFFSET);
        assert_says(&t->err, cases[i].says);
        assert_string_equal(t->err.file, cases[i].path);
        if (cases[i].os_error >= 0)
            assert_int_equal(t->err.os_error, cases[i].os_error);
        assert_exti(exti__fs_map_copy(cases[i].path, &id, 1, &m, &t->err), EXTI_E_IO, &t->err,
                    EXTI_NO_OFFSET);
        assert_says(&t->err, cases[i].says);
        assert_exti(exti__fs_read(cases[i].path, 10, &text, &n, &t->err), EXTI_E_IO, &t->err,
                    EXTI_NO_OFFSET);
        assert_says(&t->err, cases[i].says);
        assert_exti(exti__fs_id(cases[i].path, &id, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
        assert_says(&t->err, cases[i].id_says);
        assert_string_equal(t->err.file, cases[i].path);
        assert_int_equal(m.n, 77);
        assert_int_equal(id.size, 77);
        assert_int_equal(n, 77);
    }
}

static void details_may_be_unwanted(void **state)
{
    struct test *t = *state;
    struct exti_mapping m;

    assert_int_equal(exti__fs_map(t->dir, &m, NULL, NULL), EXTI_E_IO);
    assert_int_equal(exti__fs_map(test_path(t, "missing"), &m, NULL, NULL), EXTI_E_IO);
    assert_int_equal(exti__fs_replace(test_path(t, "no/f"), "x", 1, 0, NULL), EXTI_E_IO);
}

static void sizes_that_cannot_be_are_refused(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;
    struct exti_file_id id;

    test_write(path, "", 0);
    assert_exti(exti__fs_map(path, &m, &id, &t->err), EXTI_E_FORMAT, &t->err, 0);
    assert_string_equal(t->err.message, "file is empty");
    assert_string_equal(t->err.file, path);

    assert_int_equal(truncate(path, (off_t)EXTI_MAX_INPUT + 1), 0);
    assert_exti(exti__fs_map(path, &m, &id, &t->err), EXTI_E_UNSUPPORTED, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.message, "file has 4294967297 bytes, the limit is 4294967296");
    assert_string_equal(t->err.file, path);

    assert_int_equal(truncate(path, (off_t)EXTI_MAX_INPUT), 0);
    assert_ok(exti__fs_map(path, &m, &id, &t->err), &t->err);
    assert_int_equal(m.n, EXTI_MAX_INPUT);
    exti__fs_unmap(&m);
}

/* Root may read everything, so this asks as someone else. */
static void unreadable_file_is_refused(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    int status;
    pid_t pid;

    test_write(path, "x", 1);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(t->dir, 0755), 0);
    pid = fork();
    if (!pid) {
        struct exti_mapping m;
        int rc;

        if (!geteuid() && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        rc = exti__fs_map(path, &m, NULL, &t->err);
        _exit(!(rc == EXTI_E_IO && t->err.os_error == EACCES));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void image_is_private_and_has_room(void **state)
{
    static const size_t sizes[] = {1, 100, 4095, 4096, 4097, 65536, 300001};
    static const size_t rooms[] = {0, 1, 4095, 4096, 10000};
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        uint8_t *bytes = test_alloc(t, sizes[i]);
        struct exti_mapping m;
        struct exti_file_id id;
        size_t n;

        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (uint8_t)(k * 7 + 1);
        test_write(path, bytes, sizes[i]);
        assert_ok(exti__fs_id(path, &id, &t->err), &t->err);
        for (size_t r = 0; r < ARRAY_SIZE(rooms); r++) {
            assert_ok(exti__fs_map_copy(path, &id, rooms[r], &m, &t->err), &t->err);
            assert_int_equal(m.n, sizes[i]);
            assert_true(!m.mapped || m.mapped >= m.n + rooms[r]);
            assert_memory_equal(m.p, bytes, m.n);
            for (size_t k = 0; k < rooms[r]; k++)
                assert_int_equal(m.p[m.n + k], 0);
            memset(m.p, 0xaa, m.n + rooms[r]);
            exti__fs_unmap(&m);
        }
        assert_memory_equal(test_read(t, path, &n), bytes, sizes[i]);
        assert_int_equal(n, sizes[i]);
    }
}

/* Bytes past the end of a file's last page are what the last writer through a mapping left there. */
static void room_is_zeroed_behind_a_dirty_last_page(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;
    struct exti_file_id id;
    uint8_t *shared;
    int fd;

    test_write(path, "0123456789", 10);
    fd = open(path, O_RDWR | O_CLOEXEC);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_ptr_not_equal(shared, MAP_FAILED);
    memset(shared + 10, 0xee, 4086);
    assert_ok(exti__fs_id(path, &id, &t->err), &t->err);
    assert_ok(exti__fs_map_copy(path, &id, 100, &m, &t->err), &t->err);
    for (size_t k = 0; k < 100; k++)
        assert_int_equal(m.p[10 + k], 0);
    exti__fs_unmap(&m);
    munmap(shared, 4096);
}

static void image_of_a_changed_file_is_refused(void **state)
{
    static const char *const changes[] = {"grown", "touched", "replaced"};
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 1}};
        struct exti_mapping m;
        struct exti_file_id id;

        test_write(path, "bytes", 5);
        assert_ok(exti__fs_id(path, &id, &t->err), &t->err);
        assert_ok(exti__fs_map_copy(path, &id, 0, &m, &t->err), &t->err);
        exti__fs_unmap(&m);
        if (i == 0)
            test_write(path, "longer bytes", 12);
        else if (i == 1)
            assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        else
            assert_ok(exti__fs_replace(path, "other", 5, 0, &t->err), &t->err);
        assert_exti(exti__fs_map_copy(path, &id, 0, &m, &t->err), EXTI_E_IO, &t->err,
                    EXTI_NO_OFFSET);
        assert_says(&t->err, "changed while it was read");
        assert_string_equal(t->err.file, path);
    }
}

static void room_that_cannot_be_had_is_refused(void **state)
{
    static const uint64_t rooms[] = {UINT64_MAX, UINT64_MAX - 5, UINT64_MAX - 4096,
                                     (uint64_t)1 << 63};
    struct test *t = *state;
    char *path = test_path(t, "f");
    struct exti_mapping m;
    struct exti_file_id id;

    test_write(path, "bytes", 5);
    assert_ok(exti__fs_id(path, &id, &t->err), &t->err);
    for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
        assert_exti(exti__fs_map_copy(path, &id, rooms[i], &m, &t->err), EXTI_E_NOMEM, &t->err,
                    EXTI_NO_OFFSET);
        assert_string_equal(t->err.file, path);
    }
}

/* ---- whole files ------------------------------------------------------------------------------- */

static void read_gives_the_whole_file(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, 100000};
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        char *bytes = test_alloc(t, sizes[i]), *text;
        size_t n;

        memset(bytes, 'x', sizes[i]);
        test_write(path, bytes, sizes[i]);
        /* A limit of just its size is enough. */
        assert_ok(exti__fs_read(path, sizes[i], &text, &n, &t->err), &t->err);
        assert_int_equal(n, sizes[i]);
        assert_memory_equal(text, bytes, n);
        assert_int_equal(text[n], 0);
        exti__free(text);
    }
}

static void read_refuses_more_than_asked_for(void **state)
{
    static const size_t limits[] = {0, 1, 9, 99, 4095};
    struct test *t = *state;
    char *path = test_path(t, "f"), *text;
    size_t n;

    test_write(path, test_alloc(t, 4096), 4096);
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        assert_exti(exti__fs_read(path, limits[i], &text, &n, &t->err), EXTI_E_FORMAT, &t->err,
                    limits[i]);
        assert_says(&t->err, "file has more than");
        assert_string_equal(t->err.file, path);
    }
}

/* A file whose size is told as 0 but that has content, and one that grows while it is read. */
static void read_does_not_trust_the_size(void **state)
{
    struct test *t = *state;
    char *text;
    size_t n;

    if (access("/proc/self/maps", R_OK) != 0)
        skip_because("no /proc here");
    assert_ok(exti__fs_read("/proc/self/maps", 1 << 20, &text, &n, &t->err), &t->err);
    assert_true(n > 100);
    assert_int_equal(strlen(text), n);
    exti__free(text);
    assert_exti(exti__fs_read("/proc/self/maps", 40, &text, &n, &t->err), EXTI_E_FORMAT, &t->err,
                40);
}

/* ---- folders and paths ------------------------------------------------------------------------- */

static void mkdir_tells_what_it_made(void **state)
{
    struct test *t = *state;
    char *dir = test_path(t, "d"), *file = test_path(t, "f");
    bool made = false;

    assert_ok(exti__fs_mkdir(dir, &made, &t->err), &t->err);
    assert_true(made);
    assert_ok(exti__fs_mkdir(dir, &made, &t->err), &t->err);
    assert_false(made);
    assert_exti(exti__fs_mkdir(test_path(t, "no/d"), &made, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
    test_write(file, "", 0);
    assert_exti(exti__fs_mkdir(file, &made, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOTDIR);
    assert_says(&t->err, "a file has its name");
    assert_string_equal(t->err.file, file);
    assert_int_equal(symlink("nowhere", test_path(t, "dangling")), 0);
    assert_exti(exti__fs_mkdir(test_path(t, "dangling"), &made, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
}

static void mkdtemp_makes_a_private_folder(void **state)
{
    struct test *t = *state;
    char *a, *b;
    struct stat st;

    setenv("TMPDIR", t->dir, 1);
    assert_ok(exti__fs_mkdtemp(&a, &t->err), &t->err);
    assert_ok(exti__fs_mkdtemp(&b, &t->err), &t->err);
    assert_string_not_equal(a, b);
    assert_memory_equal(a, t->dir, strlen(t->dir));
    assert_int_equal(stat(a, &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0700);
    exti__free(a);
    exti__free(b);

    setenv("TMPDIR", test_path(t, "missing"), 1);
    assert_exti(exti__fs_mkdtemp(&a, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.file, test_path(t, "missing"));
    assert_int_equal(t->err.os_error, ENOENT);

    setenv("TMPDIR", "relative", 1);
    assert_ok(exti__fs_mkdtemp(&a, &t->err), &t->err);
    assert_memory_equal(a, "/tmp/", 5);
    rmdir(a);
    exti__free(a);
    unsetenv("TMPDIR");
    assert_ok(exti__fs_mkdtemp(&a, &t->err), &t->err);
    assert_memory_equal(a, "/tmp/", 5);
    rmdir(a);
    exti__free(a);
}

static void remove_does_not_mind_what_is_gone(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "f");

    test_write(path, "x", 1);
    assert_ok(exti__fs_remove(path, &t->err), &t->err);
    assert_int_equal(access(path, F_OK), -1);
    assert_ok(exti__fs_remove(path, &t->err), &t->err);
    assert_exti(exti__fs_remove(t->dir, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_string_equal(t->err.file, t->dir);
}

static void rmdir_takes_only_empty_folders(void **state)
{
    struct test *t = *state;
    char *dir = test_path(t, "d"), *file = test_path(t, "d/f");
    bool removed = true;

    assert_int_equal(mkdir(dir, 0700), 0);
    test_write(file, "x", 1);
    assert_ok(exti__fs_rmdir(dir, &removed, &t->err), &t->err);
    assert_false(removed);
    assert_exti(exti__fs_rmdir(file, &removed, &t->err), EXTI_E_IO, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOTDIR);
    assert_int_equal(unlink(file), 0);
    assert_ok(exti__fs_rmdir(dir, &removed, &t->err), &t->err);
    assert_true(removed);
    assert_ok(exti__fs_rmdir(dir, &removed, &t->err), &t->err);
    assert_false(removed);
}

static void realpath_resolves_links(void **state)
{
    struct test *t = *state;
    char *real, *base = realpath(t->dir, NULL);

    test_write(test_path(t, "f"), "x", 1);
    assert_int_equal(symlink("f", test_path(t, "link")), 0);
    assert_ok(exti__fs_realpath(test_path(t, "./link"), &real, &t->err), &t->err);
    assert_string_equal(real, test_format(t, "%s/f", base));
    exti__free(real);
    free(base);
    assert_exti(exti__fs_realpath(test_path(t, "missing"), &real, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOENT);
}

static void join_puts_one_slash(void **state)
{
    static const char *const cases[][3] = {
        {"/a", "b", "/a/b"}, {"/a/", "b", "/a/b"}, {"/", "b", "/b"},
        {"", "b", "b"},      {".", "b", "./b"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *path = exti__path_join(cases[i][0], cases[i][1]);

        assert_string_equal(path, cases[i][2]);
        exti__free(path);
    }
}

struct listing {
    char names[256];
    int count, stop_at, answer;
};

static int note_name(void *user, const char *name)
{
    struct listing *l = user;

    strncat(l->names, name, sizeof l->names - strlen(l->names) - 1);
    return ++l->count == l->stop_at ? l->answer : 0;
}

static void list_gives_every_name_once(void **state)
{
    struct test *t = *state;
    struct listing l = {0};

    assert_ok(exti__fs_list(t->dir, note_name, &l, &t->err), &t->err);
    assert_int_equal(l.count, 0);
    test_write(test_path(t, "one"), "", 0);
    test_write(test_path(t, ".two"), "", 0);
    assert_int_equal(mkdir(test_path(t, "three"), 0700), 0);
    assert_ok(exti__fs_list(t->dir, note_name, &l, &t->err), &t->err);
    assert_int_equal(l.count, 3);
    assert_contains(l.names, "one");
    assert_contains(l.names, ".two");
    assert_contains(l.names, "three");
}

static void list_stops_when_asked_to(void **state)
{
    struct test *t = *state;
    struct listing l = {.stop_at = 2, .answer = 7};

    for (int i = 0; i < 5; i++)
        test_write(test_format(t, "%s/%d", t->dir, i), "", 0);
    assert_int_equal(exti__fs_list(t->dir, note_name, &l, &t->err), 7);
    assert_int_equal(l.count, 2);
    assert_exti(exti__fs_list(test_path(t, "0"), note_name, &l, &t->err), EXTI_E_IO, &t->err,
                EXTI_NO_OFFSET);
    assert_int_equal(t->err.os_error, ENOTDIR);
}

/* ---- the machine's start ------------------------------------------------------------------------ */

static void boot_is_the_kernels(void **state)
{
    struct test *t = *state;
    char id[64] = "x", small[8] = "as was", *want;

    assert_int_equal(exti__fs_boot(id, sizeof id), 0);
    if (access("/proc/sys/kernel/random/boot_id", R_OK) != 0) {
        assert_string_equal(id, "");
        return;
    }
    want = test_read(t, "/proc/sys/kernel/random/boot_id", NULL);
    want[strcspn(want, "\n")] = 0;
    assert_string_equal(id, want);
    assert_int_equal(strlen(id), 36);
    assert_int_equal(exti__fs_boot(small, sizeof small), EXTI_E_ARG);
    assert_string_equal(small, "as was");
    assert_int_equal(exti__fs_boot(id, 0), EXTI_E_ARG);
    assert_int_equal(exti__fs_boot(id, 36), EXTI_E_ARG);
    assert_int_equal(exti__fs_boot(id, 37), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(map_gives_bytes_and_identity),
        exti_test(map_follows_links),
        exti_test(map_keeps_a_file_that_is_replaced),
        exti_test(non_files_are_refused),
        exti_test(details_may_be_unwanted),
        exti_test(sizes_that_cannot_be_are_refused),
        exti_test(unreadable_file_is_refused),
        exti_test(image_is_private_and_has_room),
        exti_test(room_is_zeroed_behind_a_dirty_last_page),
        exti_test(image_of_a_changed_file_is_refused),
        exti_test(room_that_cannot_be_had_is_refused),
        exti_test(read_gives_the_whole_file),
        exti_test(read_refuses_more_than_asked_for),
        exti_test(read_does_not_trust_the_size),
        exti_test(mkdir_tells_what_it_made),
        exti_test(mkdtemp_makes_a_private_folder),
        exti_test(remove_does_not_mind_what_is_gone),
        exti_test(rmdir_takes_only_empty_folders),
        exti_test(realpath_resolves_links),
        exti_test(join_puts_one_slash),
        exti_test(list_gives_every_name_once),
        exti_test(list_stops_when_asked_to),
        exti_test(boot_is_the_kernels),
    };

    return cmocka_run_group_tests_name("base/fs", tests, NULL, NULL);
}
