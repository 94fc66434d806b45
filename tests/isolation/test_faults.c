/* Failures that no loader and no file system gives on demand.  The functions below take the place
 * of the C library's: the library under test is linked statically and calls them. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "loader/process/linkmap_path.h"
#include "tests/isolation/build.h"
#include "tests/isolation/pair.h"

#ifndef RTLD_DI_PHDR
#define RTLD_DI_PHDR 11
#endif

enum call { NONE, MAP_IMAGE, MPROTECT, LINKMAP, PHDR, DLCLOSE, ATFORK, READDIR };

/* After `after` calls of this kind the next `times` ones fail with `error`; all, if that is -1. */
static struct {
    enum call call;
    int after, error, times;
} fault;

static void fail_call(enum call call, int after, int error)
{
    fault.call = call;
    fault.after = after;
    fault.error = error;
    fault.times = 1;
}

static bool call_fails(enum call call)
{
    if (fault.call != call || fault.after-- > 0)
        return false;
    fault.after = 0;
    if (!--fault.times)
        fault.call = NONE;
    errno = fault.error;
    return true;
}

/* Called with each copy in memory, before it is written. */
static void (*on_image)(uint8_t *image);

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    bool image = fd >= 0 && prot == (PROT_READ | PROT_WRITE) && flags == (MAP_PRIVATE | MAP_FIXED);
    void *p;

    if (image && call_fails(MAP_IMAGE))
        return MAP_FAILED;
    p = (void *)syscall(SYS_mmap, at, n, (long)prot, (long)flags, (long)fd, offset);
    if (image && on_image && p != MAP_FAILED)
        on_image(p);
    return p;
}

int mprotect(void *p, size_t n, int prot)
{
    return call_fails(MPROTECT) ? -1 : (int)syscall(SYS_mprotect, p, n, (long)prot);
}

#define REAL(name)                                                                                 \
    static __typeof__(&(name)) real;                                                               \
    if (!real)                                                                                     \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

int dlinfo(void *handle, int request, void *out)
{
    REAL(dlinfo);
    if ((request == RTLD_DI_LINKMAP && call_fails(LINKMAP)) ||
        (request == RTLD_DI_PHDR && call_fails(PHDR)))
        request = -1; /* as with a loader that does not know the request */
    return real(handle, request, out);
}

int dlclose(void *handle)
{
    REAL(dlclose);
    if (!call_fails(DLCLOSE))
        return real(handle);
    dlsym(RTLD_DEFAULT, "dlclose failed"); /* fails, and so sets the text of dlerror */
    return -1;
}

int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);

int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
    return call_fails(ATFORK) ? ENOMEM : __register_atfork(before, parent, child, NULL);
}

struct dirent *readdir(DIR *d)
{
    REAL(readdir);
    return call_fails(READDIR) ? NULL : real(d);
}

/* ---- loading -------------------------------------------------------------------------------- */

static void want_load_failure(struct exti_ctx *ctx, const char *path, int code, const char *says)
{
    struct exti_error err = {0};
    struct exti_module *m = NULL;

    want_exti(exti_load(ctx, path, &m, &err), code, &err);
    want_text(err.message, says);
    want(!m);
    want_int(fault.call, NONE);
}

ISO_CASE(a_copy_whose_calls_cannot_be_patched_is_not_loaded)
{
    struct exti_ctx *ctx;

    iso_flavour = "now"; /* its slots are read-only */
    ctx = iso_open("x");
    iso_api(ctx);
    for (int after = 0; after < 2; after++) {
        fail_call(MPROTECT, after, EACCES);
        want_load_failure(ctx, toy("ext_dl.so"), EXTI_E_IO, "cannot redirect its calls");
    }
    want_int(call_int(iso_load(ctx, toy("ext_dl.so")), "dl_next"), 1);
    iso_prove_clean(ctx, 2);
    iso_close_ctx(ctx);
}

enum { NOT_ASKED, LOADED, FAILED };

/* What comes of loading it when the system's loader refuses the link map that it is asked for after
 * so many others. */
static int load_without_link_map(struct exti_ctx *ctx, const char *path, int after)
{
    struct exti_error err = {0};
    struct exti_module *m = NULL;
    int rc;

    fail_call(LINKMAP, after, 0);
    rc = exti_load(ctx, path, &m, &err);
    if (!rc) {
        const bool asked = fault.call == NONE;

        fault.call = NONE;
        return asked ? LOADED : NOT_ASKED;
    }
    want_exti(rc, EXTI_E_LOAD, &err);
    want_text(err.message, "no link map: ");
    want(!m);
    want_int(fault.call, NONE);
    return FAILED;
}

/* The link maps are the copies' and those of the libraries that they share. */
ISO_CASE(a_copy_without_a_link_map_is_not_loaded_and_runs_neither_constructors_nor_destructors)
{
    int failures = 0;
    int outcome = FAILED;

    iso_build_called_back();
    for (int after = 0; outcome != NOT_ASKED; after++) {
        struct exti_ctx *ctx = iso_open(NULL);

        iso_api(ctx);
        outcome = load_without_link_map(ctx, in_tmp("mod.so"), after);
        failures += outcome == FAILED;
        if (outcome == FAILED && after % 2)
            iso_load(ctx, in_tmp("mod.so"));
        iso_close_ctx(ctx);
        want_int(file_exists(in_tmp("called")), outcome != FAILED || after % 2);
        unlink(in_tmp("called"));
    }
    want(failures >= 2);
}

/* As with glibc before 2.36 and with musl, which do not know RTLD_DI_PHDR. */
ISO_CASE(contexts_work_if_dlinfo_gives_no_program_headers)
{
    struct toy_one one;

    fault.call = PHDR;
    fault.times = -1;
    one = toy_open_one("x", 0);
    toy_check_inside(&one);
    iso_prove_clean(one.ctx, 3);
    iso_close_ctx(one.ctx);
    want(fault.times < -3);
}

ISO_CASE(a_process_without_room_for_a_fork_handler_opens_no_context)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_error err = {0};
    struct exti_ctx *ctx = NULL;

    fail_call(ATFORK, 0, ENOMEM);
    want_exti(exti_ctx_open(&ctx, &opts, &err), EXTI_E_NOMEM, &err);
    want_int(fault.call, NONE);
    want_exti(exti_ctx_open(&ctx, &opts, &err), EXTI_E_NOMEM, &err);
    want_text(err.message, "out of memory");
    want(!ctx && !file_exists(in_tmp("x")));
}

ISO_CASE(an_extension_sees_that_dlclose_failed)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *dl = iso_load(ctx, toy("ext_dl.so"));
    void *(*open)(const char *, int) = (void *(*)(const char *, int))iso_sym(dl, "dl_open");
    int (*close)(void *) = (int (*)(void *))iso_sym(dl, "dl_close");
    const char *(*error)(void) = (const char *(*)(void))iso_sym(dl, "dl_error");
    void *handle = open(toy("ext_a.so"), RTLD_NOW);

    want(handle);
    fail_call(DLCLOSE, 0, 0);
    want_int(close(handle), -1);
    want_text(error(), "dlclose failed");
    want(!error());
    iso_close_ctx(ctx);
}

/* Puts a hard link to the copy of ext_a.so in the place of that of ext_b.so. */
static int link_copies(void *user, struct exti_ctx *ctx, const char *original, const char *copy)
{
    struct exti_module *const *a = user;

    (void)ctx;
    if (strcmp(original, toy("ext_b.so")) == 0)
        want(unlink(copy) == 0 && link(exti_module_copy(*a), copy) == 0);
    return 0;
}

/* The copy is a hard link to a loaded file: the loader tells files apart by their inode. */
ISO_CASE(a_copy_that_becomes_a_link_to_another_copy_is_not_loaded)
{
    struct exti_module *a = NULL;
    struct exti_hooks hooks = {.size = sizeof hooks, .before_load = link_copies};
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_ctx *ctx;

    opts.hooks = &hooks;
    opts.user = &a;
    ctx = iso_open_opts(&opts);
    a = iso_load(ctx, toy("ext_a.so"));
    want_load_failure(ctx, toy("ext_b.so"), EXTI_E_BUSY, "the loader gave ");
    iso_close_ctx(ctx);
}

ISO_CASE(a_copy_that_is_a_link_to_another_copy_is_made_again)
{
    struct exti_ctx *ctx = iso_open("x");
    struct exti_module *a = iso_load(ctx, toy("ext_a.so"));
    const char *b = NULL;
    struct stat of_a, of_b;

    want(exti_copy(ctx, toy("ext_b.so"), &b, NULL) == 0);
    want(stat(b, &of_b) == 0);
    want(unlink(b) == 0 && link(exti_module_copy(a), b) == 0);
    want(utimensat(AT_FDCWD, b, (struct timespec[2]){of_b.st_mtim, of_b.st_mtim}, 0) == 0);
    iso_load(ctx, toy("ext_b.so"));
    want(stat(exti_module_copy(a), &of_a) == 0 && stat(b, &of_b) == 0);
    want(of_a.st_ino != of_b.st_ino);
    iso_close_ctx(ctx);
}

/* ---- directories and files ------------------------------------------------------------------ */

ISO_CASE(a_folder_that_cannot_be_listed_begins_no_context)
{
    struct exti_ctx_opts opts = iso_opts(in_tmp("x"), NULL);
    struct exti_error err = {0};
    struct exti_ctx *ctx = NULL;

    fail_call(READDIR, 0, EIO);
    want_exti(exti_ctx_open(&ctx, &opts, &err), EXTI_E_IO, &err);
    want_int(err.os_error, EIO);
    want(!ctx);
    want(!file_exists(in_tmp("x/manifest.json")));
    iso_close_ctx(iso_open("x"));
}

static struct exti_rewrite_opts rename_to_libtoy_2(void)
{
    return (struct exti_rewrite_opts){.size = sizeof(struct exti_rewrite_opts),
                                      .id = "libtoy.so.2"};
}

/* A library with so many bytes after its end that it is mapped, not read. */
static const char *large_library(void)
{
    const char *path = in_tmp("large.so");

    copy_file(toy("libtoy.so.1"), path);
    want(truncate(path, 1 << 20) == 0);
    return path;
}

static void want_rewrite_failure(int code, uint64_t offset, const char *file, const char *says)
{
    struct exti_rewrite_opts opts = rename_to_libtoy_2();
    struct exti_error err = {0};

    want_exti(exti_rewrite(large_library(), in_tmp("x.so"), &opts, &err), code, &err);
    want(err.offset == offset);
    want_text(err.message, says);
    want_text(err.file, file);
    want(!file_exists(in_tmp("x.so")));
}

static uint64_t spoil_at;

static void flip_bit(uint8_t *image)
{
    image[spoil_at] ^= 1;
}

static uint8_t *read_all(const char *path, size_t *n)
{
    struct stat st;
    uint8_t *p;
    FILE *f = fopen(path, "rb");

    want(f && fstat(fileno(f), &st) == 0);
    *n = (size_t)st.st_size;
    p = malloc(*n);
    want(p && fread(p, 1, *n, f) == *n);
    fclose(f);
    return p;
}

/* As after a memory fault, or a bug of our own: the copy is not renamed to its final name. */
ISO_CASE(a_copy_that_fails_its_check_is_not_written)
{
    struct exti_rewrite_opts opts = rename_to_libtoy_2();
    uint8_t *in, *out;
    size_t n, at = 0;
    const ElfW(Phdr) * ph;

    want(exti_rewrite(large_library(), in_tmp("good.so"), &opts, NULL) == 0);
    in = read_all(in_tmp("large.so"), &n);
    out = read_all(in_tmp("good.so"), &n);
    while (in[at] == out[at])
        at++;
    on_image = flip_bit;
    spoil_at = at - 1;
    want_rewrite_failure(EXTI_E_CHECK, at - 1, "large.so",
                         "self-check: an unplanned byte has changed");

    ph = (const void *)(in + ((const ElfW(Ehdr) *)in)->e_phoff);
    while (ph->p_type != PT_DYNAMIC)
        ph++;
    want(ph->p_offset / 4096 != at / 4096);
    spoil_at = ph->p_offset + offsetof(ElfW(Dyn), d_un); /* the first DT_NEEDED */
    want_rewrite_failure(EXTI_E_CHECK, ph->p_offset, "large.so",
                         "self-check of the copy: DT_NEEDED 0: \"");
    free(in);
    free(out);
}

ISO_CASE(a_copy_that_cannot_be_mapped_is_not_written)
{
    fail_call(MAP_IMAGE, 0, ENOMEM);
    want_rewrite_failure(EXTI_E_NOMEM, EXTI_NO_OFFSET, "x.so", "cannot map file");
    fail_call(MAP_IMAGE, 0, ENODEV);
    want_rewrite_failure(EXTI_E_IO, EXTI_NO_OFFSET, "x.so", "cannot map file");
}

static int touches, times_touched;

static void touch_source(uint8_t *image)
{
    (void)image;
    if (times_touched++ < touches) {
        struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = times_touched}};

        want(utimensat(AT_FDCWD, in_tmp("large.so"), times, 0) == 0);
    }
}

ISO_CASE(a_source_that_keeps_changing_is_not_copied)
{
    struct exti_rewrite_opts opts = rename_to_libtoy_2();
    struct exti_error err = {0};

    on_image = touch_source;
    touches = 3;
    want_exti(exti_rewrite(large_library(), in_tmp("x.so"), &opts, &err), EXTI_E_IO, &err);
    want_int(err.os_error, ESTALE);
    want_text(err.message, "changed while it was read");
    want_int(times_touched, 3);
    want(!file_exists(in_tmp("x.so")));

    touches = 1;
    times_touched = 0;
    want_exti(exti_rewrite(in_tmp("large.so"), in_tmp("x.so"), &opts, &err), 0, &err);
    want_int(times_touched, 2);
}

/* ---- addresses in loaded libraries ---------------------------------------------------------- */

ISO_CASE(an_address_in_no_library_has_no_file)
{
    char file[64] = "x", *p = malloc(1);

    exti__address_file((uintptr_t)p, file, sizeof file);
    want(!file[0]);
    want(!exti__address_is_symbol((uintptr_t)p, "malloc"));
    want(exti__address_is_symbol((uintptr_t)dlsym(RTLD_DEFAULT, "strtol"), "strtol"));
    want(!exti__address_is_symbol((uintptr_t)dlsym(RTLD_DEFAULT, "strtol"), "strtoul"));
    /* The symbol is this program's own, which cannot be opened by a path. */
    want(!exti__address_is_symbol((uintptr_t)&spoil_at, "spoil_at"));
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_whose_calls_cannot_be_patched_is_not_loaded),
        cmocka_unit_test(
            a_copy_without_a_link_map_is_not_loaded_and_runs_neither_constructors_nor_destructors),
        cmocka_unit_test(contexts_work_if_dlinfo_gives_no_program_headers),
        cmocka_unit_test(a_process_without_room_for_a_fork_handler_opens_no_context),
        cmocka_unit_test(an_extension_sees_that_dlclose_failed),
        cmocka_unit_test(a_copy_that_becomes_a_link_to_another_copy_is_not_loaded),
        cmocka_unit_test(a_copy_that_is_a_link_to_another_copy_is_made_again),
        cmocka_unit_test(a_folder_that_cannot_be_listed_begins_no_context),
        cmocka_unit_test(a_copy_that_fails_its_check_is_not_written),
        cmocka_unit_test(a_copy_that_cannot_be_mapped_is_not_written),
        cmocka_unit_test(a_source_that_keeps_changing_is_not_copied),
        cmocka_unit_test(an_address_in_no_library_has_no_file),
    };

    return cmocka_run_group_tests_name("isolation/faults", tests, NULL, NULL);
}
