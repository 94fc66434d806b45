/* Tests of the public interface on Windows.  Arguments: a folder to work in; the folder of the toy
 * libraries. */
#include <errno.h>
#include <process.h>
#include <pthread.h>
#include <stdlib.h>
#include <windows.h>

#include "tests/windows/check.h"

static char work[4096];  /* with blanks, and characters that no single code page has */
static const char *toys; /* as given */
static struct exti_error err;

static const char *join(const char *dir, const char *name)
{
    char *path = malloc(strlen(dir) + strlen(name) + 2); /* never freed */

    if (!path)
        abort();
    sprintf(path, "%s\\%s", dir, name);
    return path;
}

static const wchar_t *wide(const char *path)
{
    wchar_t *w = malloc(4096 * sizeof *w);

    if (!w || !MultiByteToWideChar(CP_UTF8, 0, path, -1, w, 4096))
        abort();
    return w;
}

static bool copy_file(const char *from, const char *to)
{
    return CHECK(CopyFileW(wide(from), wide(to), FALSE));
}

static bool exists(const char *path)
{
    return GetFileAttributesW(wide(path)) != INVALID_FILE_ATTRIBUTES;
}

/* Makes a folder for one test, with toys in it. */
static const char *make_folder(const char *name)
{
    static const char *const files[] = {"python311.dll", "toyext.dll"};
    const char *dir = join(work, name);

    CHECK(CreateDirectoryW(wide(dir), NULL));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        copy_file(join(toys, files[i]), join(dir, files[i]));
    return dir;
}

static struct exti_ctx *open_ctx(const char *dir, const char *sub, uint32_t flags)
{
    struct exti_ctx_opts o = {.size = sizeof o,
                              .dir = sub ? join(dir, sub) : NULL,
                              .api_library = join(dir, "python311.dll"),
                              .flags = flags};
    struct exti_ctx *ctx = NULL;

    CHECK_ERR(!exti_ctx_open(&ctx, &o, &err), &err);
    return ctx;
}

static struct exti_module *load_module(struct exti_ctx *ctx, const char *path)
{
    struct exti_module *m = NULL;

    CHECK_ERR(ctx && !exti_load(ctx, path, &m, &err), &err);
    return m;
}

static int call(struct exti_module *m, const char *name)
{
    void *p = NULL;

    return m && CHECK_ERR(!exti_symbol(m, name, &p, &err), &err) ? ((int (*)(void))(uintptr_t)p)()
                                                                 : -1;
}

static bool close_ctx(struct exti_ctx *ctx)
{
    return CHECK_ERR(!exti_ctx_close(ctx, &err), &err);
}

static int call_plain(HMODULE h, const char *name)
{
    return h ? ((int (*)(void))(uintptr_t)GetProcAddress(h, name))() : -1;
}

/* ---- isolation ------------------------------------------------------------------------------- */

static void without_rewriting_the_api_is_shared(void)
{
    const char *dir = make_folder("plain");
    HMODULE a, b;

    copy_file(join(dir, "toyext.dll"), join(dir, "toyext2.dll"));
    a = LoadLibraryExW(wide(join(dir, "toyext.dll")), NULL, 0x1100);
    b = LoadLibraryExW(wide(join(dir, "toyext2.dll")), NULL, 0x1100);
    CHECK(a && b && a != b);
    CHECK(call_plain(a, "ext_bump") == 101 && call_plain(b, "ext_bump") == 102);
    CHECK(call_plain(a, "ext_data") == 1001 && call_plain(b, "ext_data") == 1002);
}

static void contexts_are_isolated(void)
{
    const char *dir = make_folder("two"), *ext = join(dir, "toyext.dll");
    struct exti_ctx *a = open_ctx(dir, "\xc3\xa4 context", 0), *b = open_ctx(dir, "c2", 0);
    struct exti_module *x = load_module(a, ext), *y = load_module(b, ext),
                       *again = load_module(a, ext);
    struct exti_proof proof = {.size = sizeof proof};
    void *p = &proof;

    CHECK(call(x, "ext_bump") == 101 && call(y, "ext_bump") == 101);
    CHECK(call(x, "ext_bump") == 202 && call(y, "ext_data") == 1001);
    CHECK(call(x, "ext_data") == 1001);
    CHECK(again == x && strcmp(exti_module_copy(x), exti_module_copy(y)) != 0);
    CHECK(strcmp(exti_module_original(x), ext) == 0);
    CHECK(exti_symbol(x, "none", &p, &err) == EXTI_E_NOSYM && p == &proof);
    CHECK_ERR(!exti_ctx_prove(a, NULL, NULL, &proof, &err), &err);
    CHECK(proof.modules == 2 && proof.references >= 3 && !proof.leaks);
    CHECK(!exti_close(again, &err) && call(x, "ext_bump") == 303);
    CHECK(close_ctx(a) && call(y, "ext_bump") == 202 && close_ctx(b));
}

/* ---- dependencies of an extension ---------------------------------------------------------- */

static struct exti_ctx *open_choice(const char *dir, const char *sub, enum exti_closure closure,
                                    const struct exti_rule *rule)
{
    struct exti_ctx_opts o = {.size = sizeof o,
                              .dir = join(dir, sub),
                              .api_library = join(dir, "python311.dll"),
                              .closure = closure,
                              .rules = rule,
                              .rule_count = rule != NULL};
    struct exti_ctx *ctx = NULL;

    CHECK_ERR(!exti_ctx_open(&ctx, &o, &err), &err);
    return ctx;
}

static const char *install_toy(const char *dir, const char *name)
{
    copy_file(join(toys, name), join(dir, name));
    return join(dir, name);
}

static void each_context_has_its_own_libraries(void)
{
    const char *dir = make_folder("brings"), *ext = install_toy(dir, "toyneeds.dll"),
               *helper = install_toy(dir, "libhelper.dll"), *copy;
    struct exti_ctx *a = open_ctx(dir, "c1", 0), *b = open_ctx(dir, "c2", 0);
    struct exti_module *x = load_module(a, ext), *y = load_module(b, ext),
                       *h = load_module(a, helper);
    struct exti_proof proof = {.size = sizeof proof};
    size_t findings = 9;

    CHECK(call(x, "ext_helper") == 1 && call(x, "ext_helper") == 2 && call(y, "ext_helper") == 1);
    CHECK(call(h, "helper_next") == 3); /* the same module as the extension's dependency */
    CHECK(!GetModuleHandleW(wide(helper)) && !GetModuleHandleW(L"libhelper.dll"));
    CHECK_ERR(!exti_ctx_prove(a, NULL, NULL, &proof, &err), &err);
    CHECK(proof.modules == 3 && !proof.leaks && proof.references >= 4);
    copy = h ? strdup(exti_module_copy(h)) : "";
    CHECK(!exti_close(h, &err) && GetModuleHandleW(wide(copy)));
    CHECK(!exti_close(x, &err) &&
          !GetModuleHandleW(wide(copy))); /* it ends with the module that needs it */
    CHECK(call(y, "ext_helper") == 2);
    CHECK_ERR(!exti_dir_verify(join(dir, "c1"), NULL, NULL, &findings, &err) && !findings, &err);
    CHECK(close_ctx(a) && close_ctx(b));
}

static void without_a_closure_libraries_are_shared(void)
{
    const char *dir = make_folder("shares"), *ext = install_toy(dir, "toyneeds.dll"),
               *helper = install_toy(dir, "libhelper.dll");
    const struct exti_rule rule = {"LIBhelper*", 1};
    struct exti_ctx *a = open_choice(dir, "c1", EXTI_CLOSURE_NONE, NULL),
                    *b = open_choice(dir, "c2", EXTI_CLOSURE_API, NULL),
                    *c = open_choice(dir, "c3", EXTI_CLOSURE_ALL, &rule);
    struct exti_module *x = load_module(a, ext), *y = load_module(b, ext), *z = load_module(c, ext);

    CHECK(call(x, "ext_helper") == 1 && call(y, "ext_helper") == 2 && call(z, "ext_helper") == 3);
    CHECK(GetModuleHandleW(wide(helper)) != NULL);
    CHECK(close_ctx(a) && close_ctx(b) && close_ctx(c));
}

/* A wheel as delvewheel makes it. */
static void vendored_folders_are_searched(void)
{
    const char *dir = make_folder("vendored"), *site = join(dir, "site-packages"),
               *pkg = join(site, "pkg"), *libs = join(site, "other.libs"), *ext;
    const char *const dirs[] = {site, pkg, libs};
    struct exti_ctx *a = open_ctx(dir, "c1", 0), *b = open_ctx(dir, "c2", 0);
    struct exti_module *x, *y;

    for (int i = 0; i < 3; i++)
        CHECK(CreateDirectoryW(wide(dirs[i]), NULL));
    ext = install_toy(pkg, "toyneeds.dll");
    install_toy(libs, "libhelper.dll");
    x = load_module(a, ext);
    y = load_module(b, ext);
    CHECK(call(x, "ext_helper") == 1 && call(x, "ext_helper") == 2 && call(y, "ext_helper") == 1);
    CHECK(close_ctx(a) && close_ctx(b));
}

/* A forwarder leads to the copy of the other library. */
static void forwarders_lead_to_copies(void)
{
    const char *dir = make_folder("forwards"), *ext = install_toy(dir, "toyneeds.dll"),
               *other = install_toy(dir, "other.dll");
    struct exti_ctx *a = open_ctx(dir, "c1", 0), *b = open_ctx(dir, "c2", 0);
    struct exti_module *x, *y;

    copy_file(join(toys, "forward\\libhelper.dll"), join(dir, "libhelper.dll"));
    x = load_module(a, ext);
    y = load_module(b, ext);
    CHECK(call(x, "ext_helper") == 1 && call(x, "ext_helper") == 2 && call(y, "ext_helper") == 1);
    CHECK(!GetModuleHandleW(wide(other)));
    CHECK(close_ctx(a) && close_ctx(b));
}

/* The standard delay-load helper loads by name, which must find the module already loaded. */
static void delayed_imports_lead_to_copies(void)
{
    const char *dir = make_folder("delayed"), *ext;
    struct exti_ctx *a, *b;
    struct exti_module *x, *y;

    if (!exists(join(toys, "toylate.dll"))) {
        puts("# no delay imports here: they need clang and lld");
        return;
    }
    ext = install_toy(dir, "toylate.dll");
    a = open_ctx(dir, "c0", 0);
    x = load_module(a, ext); /* loads without its delay-loaded DLL */
    CHECK(x && close_ctx(a));
    install_toy(dir, "libhelper.dll");
    a = open_ctx(dir, "c1", 0);
    b = open_ctx(dir, "c2", 0);
    x = load_module(a, ext);
    y = load_module(b, ext);
    CHECK(call(x, "ext_helper") == 1 && call(x, "ext_helper") == 2 && call(y, "ext_helper") == 1);
    CHECK(!GetModuleHandleW(L"libhelper.dll"));
    CHECK(close_ctx(a) && close_ctx(b));
    /* It also loads without that DLL's own dependencies, which are not needed yet. */
    dir = make_folder("delayed broken");
    ext = install_toy(dir, "toylate.dll");
    copy_file(join(toys, "broken\\libhelper.dll"), join(dir, "libhelper.dll"));
    a = open_ctx(dir, "c1", 0);
    x = load_module(a, ext);
    CHECK(call(x, "ext_bump") == 101 && close_ctx(a));
}

/* Sets IMAGE_FILE_RELOCS_STRIPPED: the file loads at one address only, so only once. */
static void forbid_copies(const char *path)
{
    HANDLE h =
        CreateFileW(wide(path), GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
    IMAGE_DOS_HEADER dos = {0};
    IMAGE_FILE_HEADER file = {0};
    DWORD n;

    CHECK(ReadFile(h, &dos, sizeof dos, &n, NULL));
    SetFilePointer(h, dos.e_lfanew + 4, NULL, FILE_BEGIN);
    CHECK(ReadFile(h, &file, sizeof file, &n, NULL));
    file.Characteristics |= IMAGE_FILE_RELOCS_STRIPPED;
    SetFilePointer(h, dos.e_lfanew + 4, NULL, FILE_BEGIN);
    CHECK(WriteFile(h, &file, sizeof file, &n, NULL) && CloseHandle(h));
}

static void files_that_cannot_be_copied_can_be_shared(void)
{
    const char *dir = make_folder("refused"), *ext = install_toy(dir, "toyneeds.dll");
    const struct exti_rule rule = {"libhelper.dll", 1};
    struct exti_ctx *a = open_ctx(dir, "c1", 0);
    struct exti_module *m = NULL;

    forbid_copies(install_toy(dir, "libhelper.dll"));
    CHECK(exti_load(a, ext, &m, &err) == EXTI_E_UNSUPPORTED);
    CHECK_ERR(strstr(err.file, "libhelper.dll") && strstr(err.message, "needed by toyneeds.dll") &&
                  strstr(err.message, "use --share to share it instead"),
              &err);
    CHECK(close_ctx(a));
    a = open_choice(dir, "c2", EXTI_CLOSURE_ALL, &rule);
    CHECK_ERR(!exti_copy(a, ext, NULL, &err), &err); /* its one address may be taken here */
    CHECK(close_ctx(a));
}

/* Imports from python3.dll, which forwards to python311.dll, lead to the context's
 * python311.dll. */
static void stable_abi_of(const char *file)
{
    const char *dir = make_folder(file + 3), *ext = join(dir, file);
    struct exti_ctx *a, *b;
    struct exti_module *x, *y;

    copy_file(join(toys, "python3.dll"), join(dir, "python3.dll"));
    copy_file(join(toys, file), ext);
    a = open_ctx(dir, "c1", 0);
    b = open_ctx(dir, "c2", 0);
    x = load_module(a, ext);
    y = load_module(b, ext);
    CHECK(call(x, "ext_bump") == 101 && call(x, "ext_bump") == 202 && call(y, "ext_bump") == 101);
    CHECK(call(x, "ext_data") == 1001 && call(y, "ext_data") == 1001);
    CHECK(call(x, "ext_version") == 13);
    x = load_module(a, join(dir, "toyext.dll")); /* with the same interpreter */
    CHECK(call(x, "ext_bump") == 103 && call(x, "ext_data") == 1002);
    CHECK(!GetModuleHandleW(wide(join(dir, "python3.dll"))));
    CHECK(close_ctx(a) && close_ctx(b));
}

static void stable_abi_leads_to_the_context(void)
{
    stable_abi_of("toyabi3.dll");
}

static void stable_abi_by_number_leads_to_the_context(void)
{
    stable_abi_of("toynumbers.dll");
}

static void closing_unmaps_the_copies(void)
{
    const char *dir = make_folder("unload"), *copy;
    struct exti_ctx *ctx = open_ctx(dir, "c", 0);
    struct exti_module *m = load_module(ctx, join(dir, "toyext.dll"));

    copy = m ? strdup(exti_module_copy(m)) : "";
    CHECK(GetModuleHandleW(wide(copy)) != NULL);
    CHECK_ERR(!exti_close(m, &err), &err);
    CHECK(GetModuleHandleW(wide(copy)) == NULL);
    m = load_module(ctx, join(dir, "toyext.dll"));
    CHECK(call(m, "ext_bump") == 101);
    close_ctx(ctx);
    CHECK(GetModuleHandleW(wide(copy)) == NULL && exists(copy));
    CHECK_ERR(!exti_dir_clean(join(dir, "c"), &err), &err);
    CHECK(!exists(join(dir, "c")));
}

static void private_directory_is_removed_with_its_context(void)
{
    const char *dir = make_folder("private");
    struct exti_ctx *ctx = open_ctx(dir, NULL, 0);
    char folder[4096] = "";

    if (ctx)
        snprintf(folder, sizeof folder, "%s", exti_ctx_dir(ctx));
    CHECK(call(load_module(ctx, join(dir, "toyext.dll")), "ext_bump") == 101 && exists(folder));
    CHECK(close_ctx(ctx) && !exists(folder));
    ctx = open_ctx(dir, NULL, EXTI_CTX_KEEP);
    CHECK(call(load_module(ctx, join(dir, "toyext.dll")), "ext_bump") == 101);
    close_ctx(ctx); /* its modules stay loaded, so their files may stay as well */
}

static void redirects_are_bound(void)
{
    const char *dir = make_folder("redirect");
    struct exti_redirect r = {"GetTickCount", NULL};
    struct exti_ctx_opts o = {.size = sizeof o,
                              .dir = join(dir, "c"),
                              .api_library = join(dir, "python311.dll"),
                              .redirects = &r,
                              .redirect_count = 1};
    struct exti_ctx *ctx = NULL;
    struct exti_module *m;

    r.to = (void *)(uintptr_t)GetProcAddress(GetModuleHandleA("kernel32"), "GetCurrentProcessId");
    CHECK_ERR(!exti_ctx_open(&ctx, &o, &err), &err);
    m = load_module(ctx, join(dir, "toyext.dll"));
    CHECK(call(m, "ext_ticks") == (int)GetCurrentProcessId());
    close_ctx(ctx);
}

/* ---- the directory --------------------------------------------------------------------------- */

static FILETIME time_of(const char *path)
{
    WIN32_FILE_ATTRIBUTE_DATA d = {0};

    GetFileAttributesExW(wide(path), GetFileExInfoStandard, &d);
    return d.ftLastWriteTime;
}

static void copies_are_reused(void)
{
    const char *dir = make_folder("reuse"), *path = NULL;
    struct exti_ctx *ctx = open_ctx(dir, "c", 0);
    struct exti_dir *d = NULL;
    struct exti_copy_info info = {.size = sizeof info};
    FILETIME first, second;
    size_t findings = 9;

    CHECK_ERR(!exti_copy(ctx, join(dir, "toyext.dll"), &path, &err), &err);
    first = time_of(path);
    close_ctx(ctx);
    Sleep(30);
    ctx = open_ctx(dir, "c", 0);
    CHECK_ERR(!exti_copy(ctx, join(dir, "toyext.dll"), &path, &err), &err);
    second = time_of(path);
    CHECK(memcmp(&first, &second, sizeof first) == 0);
    CHECK(call(load_module(ctx, path), "ext_bump") ==
          101); /* the path of a copy means its source */
    close_ctx(ctx);
    CHECK_ERR(!exti_dir_read(join(dir, "c"), &d, &err), &err);
    CHECK(d && exti_dir_count(d) == 2 && !exti_dir_copy(d, 1, &info));
    CHECK(info.state == EXTI_COPY_FRESH && strcmp(info.source, join(dir, "toyext.dll")) == 0);
    path = strdup(info.copy);
    exti_dir_free(d);
    CHECK_ERR(!exti_dir_verify(join(dir, "c"), NULL, NULL, &findings, &err) && !findings, &err);
    CHECK_ERR(!exti_verify(path, join(dir, "toyext.dll"), NULL, NULL, &findings, &err) && !findings,
              &err);
}

static size_t temporary_files(const char *dir)
{
    WIN32_FIND_DATAW found;
    HANDLE h = FindFirstFileW(wide(join(dir, ".exti-*")), &found);
    size_t n = 0;

    if (h == INVALID_HANDLE_VALUE)
        return 0;
    do
        n++;
    while (FindNextFileW(h, &found));
    FindClose(h);
    return n;
}

/* A newer extension and interpreter are copied while the old copies are loaded. */
static void stale_copies_are_replaced_while_loaded(void)
{
    const char *dir = make_folder("stale"), *ext = join(dir, "toyext.dll"), *c = join(dir, "c");
    struct exti_ctx *old = open_ctx(dir, "c", 0), *fresh;
    struct exti_module *m = load_module(old, ext);
    size_t findings = 9;

    CHECK(call(m, "ext_version") == 11);
    CHECK(copy_file(join(toys, "newer\\toyext.dll"), ext));
    fresh = open_ctx(dir, "c", EXTI_CTX_COPY_ONLY);
    CHECK_ERR(!exti_copy(fresh, ext, NULL, &err), &err);
    close_ctx(fresh);
    CHECK(call(m, "ext_version") == 11 && call(m, "ext_bump") == 101);
    CHECK(copy_file(join(toys, "newer\\python311.dll"), join(dir, "python311.dll")));
    fresh = open_ctx(dir, "c", EXTI_CTX_COPY_ONLY);
    CHECK_ERR(!exti_copy(fresh, ext, NULL, &err), &err);
    close_ctx(fresh);
    CHECK(call(m, "ext_version") == 11 && call(m, "ext_bump") == 202);
    CHECK_ERR(!exti_ctx_close(old, &err) ||
                  (err.code == EXTI_E_CHECK && strstr(err.message, "a new API library")),
              &err);
    CHECK_ERR(!exti_dir_verify(c, NULL, NULL, &findings, &err) && !findings, &err);
    fresh = open_ctx(dir, "c", 0);
    m = load_module(fresh, ext);
    CHECK(call(m, "ext_version") == 22 && call(m, "ext_bump") == 101);
    close_ctx(fresh);
    printf("# files that had to step aside: %zu\n", temporary_files(c));
    CHECK_ERR(!exti_dir_clean(c, &err), &err);
    CHECK(!exists(c));
}

static void cleaning_removes_what_was_in_use_before(void)
{
    const char *dir = make_folder("clean"), *c = join(dir, "c");
    struct exti_ctx *ctx = open_ctx(dir, "c", 0);
    struct exti_module *m = load_module(ctx, join(dir, "toyext.dll"));
    int rc = exti_dir_clean(c, &err);

    CHECK(call(m, "ext_bump") == 101);
    if (rc) {
        CHECK_ERR(rc == EXTI_E_IO && err.os_error == EBUSY && strstr(err.file, c), &err);
        CHECK_ERR(strstr(err.message, "a process has it loaded"), &err);
        close_ctx(ctx);
        CHECK_ERR(!exti_dir_clean(c, &err), &err);
    } else {
        puts("# this system removes what is loaded");
        exti_ctx_close(ctx, NULL);
    }
    CHECK(!exists(c));
}

static void one_directory_is_loaded_once(void)
{
    const char *dir = make_folder("busy");
    struct exti_ctx *a = open_ctx(dir, "c", 0), *b = open_ctx(dir, "c", 0);
    struct exti_module *m = load_module(a, join(dir, "toyext.dll"));

    CHECK(exti_load(b, join(dir, "toyext.dll"), &m, &err) == EXTI_E_BUSY);
    CHECK_ERR(strstr(err.message, "is already loaded in this process"), &err);
    CHECK(close_ctx(b) && close_ctx(a));
}

/* ---- failures -------------------------------------------------------------------------------- */

static void missing_dependency_is_named(void)
{
    const char *dir = make_folder("missing"), *ext = join(dir, "toyneeds.dll");
    struct exti_ctx *ctx = open_ctx(dir, "c", 0);
    struct exti_module *m = NULL;

    copy_file(join(toys, "toyneeds.dll"), ext);
    CHECK(exti_load(ctx, ext, &m, &err) == EXTI_E_LOAD);
    CHECK_ERR(strstr(err.message, "libhelper.dll, or a library that it needs,") &&
                  strstr(err.file, "toyneeds"),
              &err);
    CHECK(!strchr(err.message, '\n'));
    /* The dependency is found beside the original. */
    copy_file(join(toys, "libhelper.dll"), join(dir, "libhelper.dll"));
    m = load_module(ctx, ext);
    CHECK(call(m, "ext_helper") == 1 && call(m, "ext_bump") == 101);
    close_ctx(ctx);
}

static void library_that_binds_to_the_original_is_reported(void)
{
    const char *dir = make_folder("leak"), *ext = join(dir, "toyneeds.dll");
    struct exti_ctx *ctx = open_ctx(dir, "a", 0);
    struct exti_module *m;

    copy_file(join(toys, "toyneeds.dll"), ext);
    copy_file(join(toys, "leaky\\libhelper.dll"), join(dir, "libhelper.dll"));
    m = load_module(ctx, ext); /* its copy binds to the context's library */
    CHECK(call(m, "ext_helper") == 2 && call(m, "ext_bump") == 102 && close_ctx(ctx));
    ctx = open_choice(dir, "c", EXTI_CLOSURE_NONE, NULL);
    CHECK(exti_load(ctx, ext, &m, &err) == EXTI_E_INTERPOSED);
    CHECK_ERR(strstr(err.file, "libhelper.dll") && strstr(err.message, "api_next"), &err);
    CHECK_ERR(strstr(err.message, "python311.dll"), &err);
    close_ctx(ctx);
}

static void truncate_file(const char *path, LONG size)
{
    HANDLE h = CreateFileW(wide(path), GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);

    CHECK(SetFilePointer(h, size, NULL, FILE_BEGIN) != INVALID_SET_FILE_POINTER && SetEndOfFile(h));
    CloseHandle(h);
}

static void damage_is_reported(void)
{
    const char *dir = make_folder("damage"), *ext = join(dir, "toyext.dll"), *path = "";
    struct exti_ctx *ctx = open_ctx(dir, "c", 0);
    struct exti_module *m = NULL;

    CHECK_ERR(!exti_copy(ctx, ext, &path, &err), &err);
    truncate_file(path, 700);
    m = load_module(ctx, ext); /* copied again */
    CHECK(call(m, "ext_bump") == 101 && !exti_close(m, &err));
    truncate_file(ext, 700);
    CHECK(exti_load(ctx, ext, &m, &err) == EXTI_E_FORMAT);
    CHECK_ERR(strstr(err.file, "toyext.dll") && err.message[0], &err);
    truncate_file(ext, 0);
    CHECK(exti_load(ctx, ext, &m, &err) == EXTI_E_FORMAT);
    CHECK(exti_load(ctx, join(dir, "none.dll"), &m, &err) == EXTI_E_IO && err.os_error == ENOENT);
    CHECK(exti_load(ctx, dir, &m, &err) == EXTI_E_IO && err.os_error == EISDIR);
    close_ctx(ctx);
}

/* Files of other systems can be copied and verified here, but not loaded. */
static void elf_is_copied_but_not_loaded(void)
{
    const char *dir = make_folder("elf"), *api = join(dir, "libtoypython.so.1"),
               *ext = join(dir, "toyext.so"), *c = join(dir, "c");
    struct exti_ctx_opts o = {.size = sizeof o, .dir = c, .api_library = api};
    struct exti_ctx *ctx = NULL;
    struct exti_module *m;
    size_t findings = 9;

    if (!exists(join(toys, "toyext.so"))) {
        puts("# no ELF files here");
        return;
    }
    copy_file(join(toys, "libtoypython.so.1"), api);
    copy_file(join(toys, "toyext.so"), ext);
    CHECK_ERR(!exti_ctx_open(&ctx, &o, &err), &err);
    CHECK_ERR(!exti_copy(ctx, ext, NULL, &err), &err);
    CHECK(exti_load(ctx, ext, &m, &err) == EXTI_E_LOAD);
    CHECK_ERR(strcmp(err.message, "is ELF, which Windows does not load") == 0, &err);
    CHECK(exti_copy(ctx, join(dir, "toyext.dll"), NULL, &err) == EXTI_E_UNSUPPORTED);
    close_ctx(ctx);
    CHECK_ERR(!exti_dir_verify(c, NULL, NULL, &findings, &err) && !findings, &err);
    CHECK_ERR(!exti_dir_clean(c, &err) && !exists(c), &err);
}

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 5, EXTENSIONS = 6 };

static const char *crowd;
static struct exti_ctx *crowded;
static volatile LONG bad;

/* `user` is the name of the thread's own directory. */
static void *open_often(void *user)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct exti_ctx_opts o = {
            .size = sizeof o, .dir = user, .api_library = join(crowd, "python311.dll")};
        struct exti_ctx *ctx = NULL;
        struct exti_module *m = NULL;
        struct exti_error e = {0};
        void *p = NULL;

        if (exti_ctx_open(&ctx, &o, &e) || exti_load(ctx, join(crowd, "toyext.dll"), &m, &e) ||
            exti_symbol(m, "ext_bump", &p, &e) || ((int (*)(void))(uintptr_t)p)() != 101 ||
            exti_ctx_close(ctx, &e)) {
            printf("# %s: %s\n", e.file, e.message);
            InterlockedIncrement(&bad);
        }
    }
    return NULL;
}

static void *load_often(void *user)
{
    (void)user;
    for (int i = 0; i < ROUNDS * 10; i++) {
        struct exti_module *m = NULL;
        struct exti_error e = {0};

        if (exti_load(crowded, join(crowd, "toyext.dll"), &m, &e) || exti_close(m, &e)) {
            printf("# %s: %s\n", e.file, e.message);
            InterlockedIncrement(&bad);
        }
    }
    return NULL;
}

static void run_threads(void *(*run)(void *), bool own)
{
    pthread_t threads[THREADS];
    char name[8];

    for (int i = 0; i < THREADS; i++) {
        snprintf(name, sizeof name, "c%d", i);
        pthread_create(&threads[i], NULL, run, own ? (void *)join(crowd, name) : NULL);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void many_threads_open_and_load(void)
{
    crowd = make_folder("crowd");
    run_threads(open_often, true);
    CHECK(!bad);
    crowded = open_ctx(crowd, "shared", 0);
    run_threads(load_often, false);
    CHECK(!bad && close_ctx(crowded));
}

static void many_contexts_unload_in_any_order(void)
{
    enum { CONTEXTS = 64 };
    static struct exti_ctx *all[CONTEXTS];
    static struct exti_module *mod[CONTEXTS];
    const char *dir = make_folder("many");

    for (int i = 0; i < CONTEXTS; i++) {
        char name[8];

        snprintf(name, sizeof name, "c%d", i);
        all[i] = open_ctx(dir, name, 0);
        mod[i] = load_module(all[i], join(dir, "toyext.dll"));
        CHECK(call(mod[i], "ext_bump") == 101);
    }
    for (int i = 0; i < CONTEXTS; i += 2)
        close_ctx(all[i]);
    for (int i = 1; i < CONTEXTS; i += 2)
        CHECK(call(mod[i], "ext_bump") == 202);
    for (int i = CONTEXTS - 1; i > 0; i -= 2)
        close_ctx(all[i]);
}

/* Runs as a separate process: copies into the directory that the environment names. */
static int copy_often(void)
{
    wchar_t given[2048];
    char dir[4096];

    if (!GetEnvironmentVariableW(L"EXTI_TEST_DIR", given, 2048) ||
        !WideCharToMultiByte(CP_UTF8, 0, given, -1, dir, sizeof dir, NULL, NULL))
        return 2;
    for (int i = 0; i < ROUNDS; i++) {
        struct exti_ctx *ctx = open_ctx(dir, "c", EXTI_CTX_COPY_ONLY);

        for (int k = 0; k < EXTENSIONS; k++) {
            char name[16];

            snprintf(name, sizeof name, "ext%d.dll", k);
            CHECK_ERR(ctx && !exti_copy(ctx, join(dir, name), NULL, &err), &err);
        }
        close_ctx(ctx);
    }
    return check_failed;
}

static void many_processes_copy_into_one_directory(void)
{
    enum { PROCESSES = 4 };
    const char *dir = make_folder("processes");
    HANDLE children[PROCESSES];
    wchar_t own[MAX_PATH];
    struct exti_dir *d = NULL;
    size_t findings = 9;

    for (int k = 0; k < EXTENSIONS; k++) {
        char name[16];

        snprintf(name, sizeof name, "ext%d.dll", k);
        copy_file(join(toys, "toyext.dll"), join(dir, name));
    }
    GetModuleFileNameW(NULL, own, MAX_PATH);
    SetEnvironmentVariableW(L"EXTI_TEST_DIR", wide(dir));
    for (int i = 0; i < PROCESSES; i++)
        children[i] = (HANDLE)_wspawnl(_P_NOWAIT, own, L"api", L"copy", NULL);
    for (int i = 0; i < PROCESSES; i++) {
        DWORD status = 9;

        CHECK(WaitForSingleObject(children[i], 60000) == WAIT_OBJECT_0);
        CHECK(GetExitCodeProcess(children[i], &status) && !status);
    }
    CHECK_ERR(!exti_dir_read(join(dir, "c"), &d, &err), &err);
    CHECK(d && exti_dir_count(d) == 1 + EXTENSIONS);
    exti_dir_free(d);
    CHECK_ERR(!exti_dir_verify(join(dir, "c"), NULL, NULL, &findings, &err) && !findings, &err);
    CHECK_ERR(!exti_dir_clean(join(dir, "c"), &err) && !exists(join(dir, "c")), &err);
}

int main(int argc, char **argv)
{
    char folder[MAX_PATH];

    if (argc == 2 && strcmp(argv[1], "copy") == 0)
        return copy_often();
    if (argc != 3)
        return 2;
    if (!GetFullPathNameA(argv[1], sizeof folder, folder, NULL))
        return 2;
    toys = argv[2];
    snprintf(work, sizeof work, "%s\\w\xc3\xb6rk \xd0\xb6 \xe6\x97\xa5\xe6\x9c\xac", folder);
    if (!CreateDirectoryW(wide(work), NULL))
        return 2;
    RUN(without_rewriting_the_api_is_shared);
    RUN(contexts_are_isolated);
    RUN(each_context_has_its_own_libraries);
    RUN(without_a_closure_libraries_are_shared);
    RUN(vendored_folders_are_searched);
    RUN(forwarders_lead_to_copies);
    RUN(delayed_imports_lead_to_copies);
    RUN(files_that_cannot_be_copied_can_be_shared);
    RUN(stable_abi_leads_to_the_context);
    RUN(stable_abi_by_number_leads_to_the_context);
    RUN(closing_unmaps_the_copies);
    RUN(private_directory_is_removed_with_its_context);
    RUN(redirects_are_bound);
    RUN(copies_are_reused);
    RUN(stale_copies_are_replaced_while_loaded);
    RUN(cleaning_removes_what_was_in_use_before);
    RUN(one_directory_is_loaded_once);
    RUN(missing_dependency_is_named);
    RUN(library_that_binds_to_the_original_is_reported);
    RUN(damage_is_reported);
    RUN(elf_is_copied_but_not_loaded);
    RUN(many_threads_open_and_load);
    RUN(many_processes_copy_into_one_directory);
    RUN(many_contexts_unload_in_any_order);
    return 0;
}
