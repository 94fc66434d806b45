/* Tests of base/os/fs.h on Windows.  Arguments: a folder to work in; a DLL. */
#include <errno.h>
#include <process.h>
#include <pthread.h>
#include <stdlib.h>
#include <windows.h>

#include "base/mem.h"
#include "base/os/fs_boot.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_id.h"
#include "base/os/fs_lock.h"
#include "base/os/fs_map.h"
#include "base/os/fs_random.h"
#include "base/os/fs_read.h"
#include "base/os/fs_remove.h"
#include "base/os/fs_replace.h"
#include "base/os/fs_temp_name.h"
#include "base/os/win32.h"
#include "base/path.h"
#include "tests/windows/check.h"

static const char *folder, *dll, *self;
static struct exti_error err;

/* The result is never freed, since a test may use several. */
static const char *at(const char *name)
{
    return exti__path_join(folder, name);
}

static bool write_text(const char *path, const char *text)
{
    return CHECK_ERR(!exti__fs_replace(path, text, strlen(text), 0, &err), &err);
}

static bool holds(const char *path, const char *text)
{
    char *got = NULL;
    size_t n = 0;
    bool same = !exti__fs_read(path, 1 << 20, &got, &n, NULL) && strcmp(got, text) == 0;

    exti__free(got);
    return same;
}

static bool exists(const char *path)
{
    struct exti_file_id id;

    return !exti__fs_id(path, &id, NULL);
}

static int count_temporary(void *user, const char *name)
{
    *(int *)user += exti__fs_is_temporary(name);
    return 0;
}

static int temporary_files(void)
{
    int n = 0;

    exti__fs_list(folder, count_temporary, &n, NULL);
    return n;
}

static HMODULE load_dll(const char *path)
{
    struct exti_wide w;

    return exti__wide_path(path, &w, NULL) ? NULL : LoadLibraryW(w.text);
}

static bool copy_dll(const char *path)
{
    struct exti_mapping m;
    bool done = !exti__fs_map(dll, &m, NULL, NULL) && !exti__fs_replace(path, m.p, m.n, 0, NULL);

    exti__fs_unmap(&m);
    return done;
}

static void set_read_only(const char *path)
{
    struct exti_wide w;

    exti__wide_path(path, &w, NULL);
    SetFileAttributesW(w.text, FILE_ATTRIBUTE_READONLY);
}

/* ---- looking and reading --------------------------------------------------------------------- */

static void id_differs_between_versions(void)
{
    const char *path = at("id");
    struct exti_file_id a, b;

    write_text(path, "one");
    CHECK_ERR(!exti__fs_id(path, &a, &err), &err);
    CHECK(a.size == 3 && a.inode && a.mtime_ns > (int64_t)1600000000 * 1000000000);
    CHECK(!exti__fs_id(path, &b, &err) && a.inode == b.inode && a.mtime_ns == b.mtime_ns &&
          a.device == b.device);
    write_text(path, "two");
    CHECK(!exti__fs_id(path, &b, &err) && (a.inode != b.inode || a.mtime_ns != b.mtime_ns));
    CHECK(exti__fs_id(at("none"), &a, &err) == EXTI_E_IO);
    CHECK_ERR(err.os_error == ENOENT && strstr(err.file, "none"), &err);
    CHECK(exti__fs_id(at("none/deeper"), &a, &err) == EXTI_E_IO && err.os_error == ENOENT);
    CHECK(exti__fs_id(folder, &a, &err) == EXTI_E_IO && err.os_error == EISDIR);
    CHECK(exti__fs_id("NUL", &a, &err) == EXTI_E_IO);
    CHECK_ERR(strstr(err.message, "a device"), &err);
}

static void mapping_shows_the_file(void)
{
    const char *path = at("map");
    struct exti_mapping m = {0};
    struct exti_file_id id;

    write_text(path, "mapped");
    if (!CHECK_ERR(!exti__fs_map(path, &m, &id, &err), &err))
        return;
    CHECK(m.n == 6 && memcmp(m.p, "mapped", 6) == 0 && id.size == 6);
    CHECK(write_text(path, "replaced"));
    CHECK(memcmp(m.p, "mapped", 6) == 0);
    CHECK(holds(path, "replaced"));
    exti__fs_unmap(&m);
    CHECK(!m.p);
    write_text(path, "");
    CHECK(exti__fs_map(path, &m, NULL, &err) == EXTI_E_FORMAT);
    CHECK(exti__fs_map(folder, &m, NULL, &err) == EXTI_E_IO && err.os_error == EISDIR);
}

static void image_is_private_and_has_room(void)
{
    const char *path = at("image");
    struct exti_mapping m = {0}, source = {0};
    bool zero = true;

    write_text(path, "image");
    if (!CHECK_ERR(!exti__fs_map(path, &source, NULL, &err), &err) ||
        !CHECK_ERR(!exti__fs_map_image(&source, 100000, &m, &err), &err))
        return;
    exti__fs_unmap(&source);
    CHECK(m.n == 5 && memcmp(m.p, "image", 5) == 0);
    for (size_t i = 5; i < 100005; i++)
        zero = zero && !m.p[i];
    CHECK(zero);
    memset(m.p, 'x', 100005);
    CHECK(holds(path, "image"));
    exti__fs_unmap(&m);
    CHECK(!exti__fs_map_head(path, 3, &m, &err) && m.n == 3 && memcmp(m.p, "ima", 3) == 0);
    exti__fs_unmap(&m);
}

static void read_has_a_limit(void)
{
    const char *path = at("read");
    char *text;
    size_t n;

    write_text(path, "12345");
    CHECK(!exti__fs_read(path, 5, &text, &n, &err) && n == 5 && strcmp(text, "12345") == 0);
    exti__free(text);
    CHECK(exti__fs_read(path, 4, &text, &n, &err) == EXTI_E_FORMAT && err.offset == 4);
    CHECK(exti__fs_read(at("none"), 4, &text, &n, &err) == EXTI_E_IO && err.os_error == ENOENT);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void names_are_unicode(void)
{
    const char *path = at("Ünï cödé \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x8d.txt");
    char *real = NULL, slashes[EXTI_PATH_MAX];
    int seen = 0;

    write_text(path, "text");
    CHECK(holds(path, "text"));
    CHECK_ERR(!exti__fs_realpath(path, &real, &err), &err);
    CHECK(real && strcmp(real, path) == 0);
    snprintf(slashes, sizeof slashes, "%s/./.\\%s", folder, exti__path_last_slash(path) + 1);
    exti__free(real);
    for (char *p = slashes; *p; p++)
        if (*p == '\\')
            *p = '/';
    CHECK_ERR(!exti__fs_realpath(slashes, &real, &err), &err);
    CHECK(real && strcmp(real, path) == 0);
    exti__free(real);
    CHECK(exti__fs_id(at("\xff\xfe"), &(struct exti_file_id){0}, &err) == EXTI_E_IO);
    CHECK_ERR(err.os_error == EILSEQ, &err);
    (void)seen;
}

static int find_name(void *user, const char *name)
{
    return strcmp(name, user) == 0 ? 7 : 0;
}

static void list_gives_each_name(void)
{
    char name[] = "l\xc3\xaft \xe6\x97\xa5";

    write_text(at(name), "");
    CHECK(exti__fs_list(folder, find_name, name, &err) == 7);
    CHECK(exti__fs_list(folder, find_name, "..", &err) == 0);
    CHECK(exti__fs_list(at("none"), find_name, "x", &err) == EXTI_E_IO);
    CHECK_ERR(err.os_error == ENOENT, &err);
    CHECK(exti__fs_list(at(name), find_name, "x", &err) == EXTI_E_IO);
}

static void long_paths_work(void)
{
    char path[2048];
    char *real = NULL;
    bool made, removed;
    size_t start = (size_t)snprintf(path, sizeof path, "%s", folder), n = start;

    while (n < start + 600) {
        n += (size_t)snprintf(path + n, sizeof path - n, "\\f\xc3\xb6lder of many characters %03zu",
                              n);
        if (!CHECK_ERR(!exti__fs_mkdir(path, &made, &err), &err))
            return;
    }
    snprintf(path + n, sizeof path - n, "\\library.dll");
    CHECK(copy_dll(path) && exists(path));
    CHECK_ERR(!exti__fs_realpath(path, &real, &err) && strcmp(real, path) == 0, &err);
    exti__free(real);
    CHECK_ERR(!exti__fs_remove(path, &err) && !exists(path), &err);
    while (n > start) {
        path[n] = 0;
        CHECK_ERR(!exti__fs_rmdir(path, &removed, &err) && removed, &err);
        n = (size_t)(strrchr(path, '\\') - path);
    }
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    CHECK(exti__fs_id(path, &(struct exti_file_id){0}, &err) == EXTI_E_IO);
}

static void paths_are_taken_apart(void)
{
    CHECK(exti__path_is_absolute("C:\\x") && exti__path_is_absolute("c:/x"));
    CHECK(exti__path_is_absolute("\\\\server\\share"));
    CHECK(!exti__path_is_absolute("C:x") && !exti__path_is_absolute("\\x") &&
          !exti__path_is_absolute(""));
    CHECK(exti__path_is_plain_name("x.dll") && !exti__path_is_plain_name("a\\b"));
    CHECK(!exti__path_is_plain_name("a/b") && !exti__path_is_plain_name("a:b"));
    CHECK(strcmp(exti__path_last_slash("a/b\\c/d"), "/d") == 0 && !exti__path_last_slash("a"));
    CHECK(exti__fs_is_temporary(".exti-0123456789abcdef0123456789abcdef"));
    CHECK(!exti__fs_is_temporary(".exti-0123456789abcdef0123456789abcdeg"));
}

/* ---- folders --------------------------------------------------------------------------------- */

static void folders_are_made_and_removed(void)
{
    const char *path = at("made here"), *file = at("made here/file");
    bool made, removed;

    CHECK_ERR(!exti__fs_mkdir(path, &made, &err) && made, &err);
    CHECK_ERR(!exti__fs_mkdir(path, &made, &err) && !made, &err);
    write_text(file, "x");
    CHECK(exti__fs_mkdir(file, &made, &err) == EXTI_E_IO && err.os_error == ENOTDIR);
    CHECK(exti__fs_mkdir(at("none/x"), &made, &err) == EXTI_E_IO && err.os_error == ENOENT);
    CHECK_ERR(!exti__fs_rmdir(path, &removed, &err) && !removed, &err);
    CHECK(!exti__fs_remove(file, &err) && !exti__fs_remove(file, &err));
    CHECK_ERR(!exti__fs_rmdir(path, &removed, &err) && removed, &err);
    CHECK_ERR(!exti__fs_rmdir(path, &removed, &err) && !removed, &err);
    CHECK(exti__fs_remove(folder, &err) == EXTI_E_IO);
}

/* The first process makes a temporary folder and ends; the second one removes it when it makes its
 * own. */
static void private_folder_of_a_dead_process_is_removed(void)
{
    char *mine = NULL, *next = NULL, left[EXTI_PATH_MAX], path[EXTI_PATH_MAX];
    const char *note = at("left-behind");
    char *text;
    size_t n;
    bool removed;

    CHECK_ERR(!exti__fs_mkdtemp(&mine, &err), &err);
    CHECK(_spawnl(_P_WAIT, self, "fs", "leave", note, dll, NULL) == 0);
    if (!mine || !CHECK_ERR(!exti__fs_read(note, sizeof left - 1, &text, &n, &err), &err))
        return;
    snprintf(left, sizeof left, "%s", text);
    exti__free(text);
    snprintf(path, sizeof path, "%s\\left.dll", left);
    CHECK(exists(path));
    CHECK_ERR(!exti__fs_mkdtemp(&next, &err), &err);
    CHECK(!exists(path));
    CHECK(exti__fs_list(left, find_name, "x", &err) == EXTI_E_IO && err.os_error == ENOENT);
    CHECK(exti__fs_list(mine, find_name, "x", &err) == 0);
    CHECK(!exti__fs_rmdir(mine, &removed, &err) && removed);
    CHECK(!exti__fs_rmdir(next, &removed, &err) && removed);
    exti__free(mine);
    exti__free(next);
}

/* Runs as the process that leaves a folder behind: its library stays loaded until it ends. */
static int leave(const char *note)
{
    char *dir, *path;

    if (exti__fs_mkdtemp(&dir, &err))
        return 1;
    path = exti__path_join(dir, "left.dll");
    return !copy_dll(path) || !load_dll(path) || exti__fs_replace(note, dir, strlen(dir), 0, &err);
}

/* ---- replacing and removing ------------------------------------------------------------------ */

static void replace_leaves_nothing_else(void)
{
    const char *path = at("replaced");
    int before = temporary_files();

    write_text(path, "one");
    write_text(path, "two");
    CHECK(holds(path, "two"));
    set_read_only(path);
    write_text(path, "three");
    CHECK(holds(path, "three"));
    CHECK_ERR(!exti__fs_replace(path, "four", 4, EXTI_FS_SYNC | EXTI_FS_EXECUTABLE, &err), &err);
    CHECK(holds(path, "four"));
    CHECK(exti__fs_replace(at("none/x"), "", 0, 0, &err) == EXTI_E_IO && err.os_error == ENOENT);
    CHECK(exti__fs_replace(folder, "x", 1, 0, &err) == EXTI_E_IO);
    CHECK_ERR(err.os_error == EISDIR, &err);
    CHECK(temporary_files() == before);
    set_read_only(path);
    CHECK_ERR(!exti__fs_remove(path, &err) && !exists(path), &err);
}

/* Each allocation fails once: the file is either old or new, and nothing else is left. */
static void every_allocation_may_fail(void)
{
    const char *path = at("memory"), *note = at("loaded for memory.dll");
    int before = temporary_files(), rc = EXTI_E_NOMEM;
    bool removed;
    HMODULE h;

    CHECK(copy_dll(note) && (h = load_dll(note)) != NULL);
    for (long n = 0; rc == EXTI_E_NOMEM; n++) {
        char *dir = NULL;

        write_text(path, "old");
        exti__mem_fail_after(n);
        rc = exti__fs_replace(path, "new", 3, 0, &err);
        if (!rc)
            rc = exti__fs_mkdtemp(&dir, &err);
        exti__mem_fail_after(-1);
        CHECK_ERR(!rc || rc == EXTI_E_NOMEM, &err);
        CHECK(holds(path, "old") || holds(path, "new"));
        if (dir)
            CHECK(!exti__fs_rmdir(dir, &removed, &err) && removed);
        exti__free(dir);
    }
    CHECK(temporary_files() == before);
    exti__mem_fail_after(0);
    exti__fs_discard(note); /* the file is in use, so renaming it needs memory */
    exti__mem_fail_after(-1);
    exti__fs_discard(note);
    CHECK(!exists(note));
    FreeLibrary(h);
}

static void sharing_violations_are_reported(void)
{
    const char *path = at("unshared");
    struct exti_wide w;
    HANDLE h;

    write_text(path, "old");
    exti__wide_path(path, &w, NULL);
    h = CreateFileW(w.text, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
    CHECK(h != INVALID_HANDLE_VALUE);
    CHECK(exti__fs_replace(path, "new", 3, 0, &err) == EXTI_E_IO);
    CHECK_ERR(err.os_error == EBUSY || err.os_error == EACCES, &err);
    CHECK(holds(path, "old"));
    CHECK(exti__fs_remove(path, &err) == EXTI_E_IO && err.os_error == EBUSY);
    CHECK_ERR(strstr(err.message, "a process has it"), &err);
    CloseHandle(h);
    write_text(path, "new");
    CHECK(!exti__fs_remove(path, &err) && !exists(path));
}

static void loaded_library_is_replaced_and_then_removed(void)
{
    const char *path = at("loaded \xc3\xbc.dll");
    int before = temporary_files();
    HMODULE h;

    if (!CHECK(copy_dll(path)) || !CHECK((h = load_dll(path)) != NULL))
        return;
    write_text(path, "not that library");
    CHECK(holds(path, "not that library"));
    CHECK(GetProcAddress(h, "helper_next") != NULL);
    FreeLibrary(h);
    CHECK(temporary_files() <= before + 1);
    CHECK(!exti__fs_remove(path, &err));
    if (!CHECK(copy_dll(path)) || !CHECK((h = load_dll(path)) != NULL))
        return;
    if (exti__fs_remove(path, &err)) {
        CHECK_ERR(err.os_error == EBUSY && strstr(err.message, "a process has it"), &err);
        CHECK(exists(path));
        FreeLibrary(h);
        CHECK_ERR(!exti__fs_remove(path, &err), &err);
    } else {
        puts("# this system removes what is loaded");
        FreeLibrary(h);
    }
    CHECK(!exists(path));
}

/* ---- locks ----------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 40 };
static volatile int counter;
static volatile bool clash;

static void *lock_often(void *user)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct exti_lock lock;
        int was;

        if (exti__fs_lock(user, &lock, NULL)) {
            clash = true;
            return NULL;
        }
        was = counter;
        Sleep(i % 8 == 0);
        clash = clash || counter != was;
        counter = was + 1;
        if (i % 4 == 3)
            exti__fs_remove(user, NULL); /* as the cleaning of a directory does */
        exti__fs_unlock(&lock);
    }
    return NULL;
}

static void lock_excludes_threads(void)
{
    pthread_t threads[THREADS];

    counter = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, lock_often, (void *)at("threads.lock"));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(!clash);
    CHECK(counter == THREADS * ROUNDS);
}

static void lock_excludes_processes_and_ends_with_them(void)
{
    const char *path = at("process.lock");
    struct exti_lock lock;
    intptr_t child;

    if (!CHECK_ERR(!exti__fs_lock(path, &lock, &err), &err))
        return;
    CHECK(lock.made);
    CHECK_ERR(!exti__fs_lock_note(&lock, "a longer note", false, &err), &err);
    CHECK_ERR(!exti__fs_lock_note(&lock, "note", true, &err), &err);
    CHECK(holds(path, "note"));
    child = _spawnl(_P_NOWAIT, self, "fs", "take", path, at("taken"), NULL);
    CHECK(child > 0);
    Sleep(300);
    CHECK(!exists(at("taken")));
    exti__fs_unlock(&lock);
    CHECK(WaitForSingleObject((HANDLE)child, 20000) == WAIT_OBJECT_0);
    CHECK(exists(at("taken")));
    /* The process ended without releasing the lock. */
    CHECK_ERR(!exti__fs_lock(path, &lock, &err), &err);
    CHECK(!lock.made);
    exti__fs_unlock(&lock);
}

static int take_lock(const char *path, const char *note)
{
    struct exti_lock lock;

    return exti__fs_lock(path, &lock, &err) || exti__fs_replace(note, "x", 1, 0, &err);
}

static void folder_of_a_removed_lock_can_be_removed(void)
{
    const char *path = at("locked"), *file = at("locked/.lock");
    struct exti_lock lock;
    bool made, removed;

    exti__fs_mkdir(path, &made, &err);
    if (!CHECK_ERR(!exti__fs_lock(file, &lock, &err), &err))
        return;
    CHECK_ERR(!exti__fs_remove(file, &err), &err);
    CHECK_ERR(!exti__fs_rmdir(path, &removed, &err), &err);
    if (!removed)
        puts("# this system keeps the names of open files");
    exti__fs_unlock(&lock);
    if (!removed)
        CHECK_ERR(!exti__fs_rmdir(path, &removed, &err) && removed, &err);
}

static void read_only_lock_file_is_enough(void)
{
    const char *path = at("read-only.lock");
    struct exti_lock lock;

    write_text(path, "");
    set_read_only(path);
    CHECK_ERR(!exti__fs_lock(path, &lock, &err) && !lock.made, &err);
    exti__fs_unlock(&lock);
    CHECK(exti__fs_lock(at("none/x"), &lock, &err) == EXTI_E_IO && err.os_error == ENOENT);
}

static void boot_id_stays_and_names_are_random(void)
{
    char a[64], b[64];
    uint8_t x[32], y[32];

    CHECK(!exti__fs_boot(a, sizeof a) && !exti__fs_boot(b, sizeof b) && strcmp(a, b) == 0);
    CHECK(exti__fs_boot(a, 1) == (b[0] ? EXTI_E_ARG : 0));
    CHECK(!exti__fs_random(x, sizeof x, "a test", &err));
    CHECK(!exti__fs_random(y, sizeof y, "a test", &err) && memcmp(x, y, sizeof x) != 0);
}

int main(int argc, char **argv)
{
    char own[MAX_PATH], *real;

    if (argc == 4 && strcmp(argv[1], "leave") == 0) {
        dll = argv[3];
        return leave(argv[2]);
    }
    if (argc == 4 && strcmp(argv[1], "take") == 0)
        return take_lock(argv[2], argv[3]);
    if (argc != 3 || exti__fs_realpath(argv[1], &real, &err) ||
        exti__fs_realpath(argv[2], (char **)&dll, &err))
        return 2;
    folder = real;
    GetModuleFileNameA(NULL, own, sizeof own);
    self = own;
    RUN(id_differs_between_versions);
    RUN(mapping_shows_the_file);
    RUN(image_is_private_and_has_room);
    RUN(read_has_a_limit);
    RUN(names_are_unicode);
    RUN(list_gives_each_name);
    RUN(long_paths_work);
    RUN(paths_are_taken_apart);
    RUN(folders_are_made_and_removed);
    RUN(private_folder_of_a_dead_process_is_removed);
    RUN(replace_leaves_nothing_else);
    RUN(every_allocation_may_fail);
    RUN(sharing_violations_are_reported);
    RUN(loaded_library_is_replaced_and_then_removed);
    RUN(lock_excludes_threads);
    RUN(lock_excludes_processes_and_ends_with_them);
    RUN(folder_of_a_removed_lock_can_be_removed);
    RUN(read_only_lock_file_is_enough);
    RUN(boot_id_stays_and_names_are_random);
    return 0;
}
