/* Windows uses UTF-16, the program UTF-8.  The ANSI calls would lose characters that the code page
 * lacks. */
#include "cli/os/system.h"

#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "cli/os/path.h"

/* ---- text ------------------------------------------------------------------------------------ */

static wchar_t *to_wide(const char *text)
{
    int n = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *out = n > 0 ? malloc((size_t)n * sizeof *out) : NULL;

    if (out != NULL)
        MultiByteToWideChar(CP_UTF8, 0, text, -1, out, n);
    return out;
}

static char *to_utf8(const wchar_t *text)
{
    int n = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *out = n > 0 ? malloc((size_t)n) : NULL;

    if (out != NULL)
        WideCharToMultiByte(CP_UTF8, 0, text, -1, out, n, NULL, NULL);
    return out;
}

/* Sets errno from GetLastError() and returns false. */
static bool set_errno(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
        errno = ENOENT;
        break;
    case ERROR_DIRECTORY:
        errno = ENOTDIR;
        break;
    case ERROR_DIR_NOT_EMPTY:
        errno = ENOTEMPTY;
        break;
    case ERROR_FILENAME_EXCED_RANGE:
        errno = ENAMETOOLONG;
        break;
    case ERROR_NOT_ENOUGH_MEMORY:
        errno = ENOMEM;
        break;
    default:
        errno = EACCES;
    }
    return false;
}

static wchar_t *full_path(const wchar_t *path)
{
    DWORD n = GetFullPathNameW(path, 0, NULL, NULL);
    wchar_t *out = n > 0 ? malloc((n + 1) * sizeof *out) : NULL;

    if (out != NULL && GetFullPathNameW(path, n + 1, out, NULL) == 0)
        out[0] = L'\0';
    return out;
}

/* The system accepts a path beyond MAX_PATH (248 for folders) only if it is absolute, without . and
 * .., and begins with \\?\. */
static wchar_t *wide_path(const char *path)
{
    wchar_t *wide = to_wide(path), *full;

    if (wide == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    if (wcslen(wide) < 248 - 12 || wcsncmp(wide, L"\\\\?\\", 4) == 0)
        return wide;
    full = full_path(wide);
    free(wide);
    if (full == NULL)
        return NULL;
    bool unc = full[0] == L'\\' && full[1] == L'\\';
    size_t size = wcslen(full) + 8;
    wchar_t *out = malloc(size * sizeof *out);
    if (out != NULL)
        swprintf(out, size, L"%ls%ls", unc ? L"\\\\?\\UNC" : L"\\\\?\\", unc ? full + 1 : full);
    free(full);
    return out;
}

/* ---- the process ----------------------------------------------------------------------------- */

static HANDLE handle_of(FILE *f)
{
    return (HANDLE)_get_osfhandle(_fileno(f));
}

static bool is_console(FILE *f, DWORD *mode)
{
    return GetConsoleMode(handle_of(f), mode);
}

static UINT code_page; /* the console's own */

static void restore_code_page(void)
{
    fflush(NULL);
    SetConsoleOutputCP(code_page);
}

/* Sets the console to UTF-8 until the program ends, so that all output goes through stdio alike.
 * The streams get buffers: unbuffered stdio writes single bytes, and a console shows no character
 * that arrives in parts. */
static void set_streams(void)
{
    DWORD mode;

    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    setvbuf(stderr, NULL, _IOFBF, 1 << 16);
    _setmode(_fileno(stdout), _O_BINARY);
    _setmode(_fileno(stderr), _O_BINARY);
    if (!is_console(stdout, &mode) && !is_console(stderr, &mode))
        return;
    code_page = GetConsoleOutputCP();
    if (code_page != 0 && code_page != CP_UTF8 && SetConsoleOutputCP(CP_UTF8))
        atexit(restore_code_page);
}

struct args {
    char **items;
    size_t count;
};

static bool add_argument(struct args *a, char *item)
{
    char **more = item != NULL ? realloc(a->items, (a->count + 2) * sizeof *more) : NULL;

    if (more == NULL) {
        free(item);
        return false;
    }
    a->items = more;
    a->items[a->count++] = item;
    a->items[a->count] = NULL;
    return true;
}

static int compare_arguments(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the files that match a pattern, or the pattern itself if none does. */
static bool expand_pattern(struct args *a, char *pattern)
{
    WIN32_FIND_DATAW found;
    size_t first = a->count, length = (size_t)(cli_base_name(pattern) - pattern);
    wchar_t *wide = wide_path(pattern);
    HANDLE h = wide != NULL ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;
    bool ok = true;

    free(wide);
    if (h == INVALID_HANDLE_VALUE)
        return add_argument(a, pattern);
    do {
        char *name = to_utf8(found.cFileName), *path = NULL;
        size_t size = length + (name != NULL ? strlen(name) : 0) + 1;
        if (name != NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            path = malloc(size);
            if (path != NULL)
                snprintf(path, size, "%.*s%s", (int)length, pattern, name);
            ok = add_argument(a, path);
        }
        free(name);
    } while (ok && FindNextFileW(h, &found));
    FindClose(h);
    if (!ok || a->count == first)
        return add_argument(a, pattern) && ok;
    free(pattern);
    qsort(a->items + first, a->count - first, sizeof *a->items, compare_arguments);
    return true;
}

/* Windows shells leave wildcards to the program, and file names cannot contain them. */
/* A handle of a stream that is closed is never given to another file. */
void cli_hold_streams(void)
{
}

bool cli_start(int *argc, char ***argv)
{
    int n;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
    struct args a = {NULL, 0};
    bool ok = wide != NULL;

    set_streams();
    for (int i = 0; ok && i < n; i++) {
        char *arg = to_utf8(wide[i]);
        ok = arg != NULL && strpbrk(arg, "*?") != NULL ? expand_pattern(&a, arg)
                                                       : add_argument(&a, arg);
    }
    LocalFree(wide);
    *argc = (int)a.count;
    *argv = a.items;
    return ok;
}

void cli_keep_memory(void)
{
}

bool cli_is_terminal(FILE *f)
{
    const char *term = getenv("TERM");
    DWORD mode;

    return (term == NULL || strcmp(term, "dumb") != 0) && is_console(f, &mode) &&
           SetConsoleMode(handle_of(f),
                          mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

/* ---- files ----------------------------------------------------------------------------------- */

bool cli_stat(const char *path, struct cli_stat *out)
{
    BY_HANDLE_FILE_INFORMATION info;
    wchar_t *wide = wide_path(path);
    HANDLE h;

    if (wide == NULL)
        return false;
    h = CreateFileW(wide, FILE_READ_ATTRIBUTES,
                    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
                    FILE_FLAG_BACKUP_SEMANTICS, NULL);
    free(wide);
    if (h == INVALID_HANDLE_VALUE)
        return set_errno();
    bool ok = GetFileInformationByHandle(h, &info) || set_errno();
    CloseHandle(h);
    if (ok)
        *out = (struct cli_stat){(info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0,
                                 (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0,
                                 (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow};
    return ok;
}

bool cli_exists(const char *path)
{
    wchar_t *wide = wide_path(path);
    bool yes = wide != NULL && GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES;

    if (wide != NULL && !yes) {
        set_errno();
        yes = errno == EACCES || errno == ENOMEM;
    }
    free(wide);
    return yes;
}

bool cli_is_link(const char *path)
{
    wchar_t *wide = wide_path(path);
    DWORD attributes = wide != NULL ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;

    free(wide);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_REPARSE_POINT);
}

FILE *cli_open(const char *path)
{
    wchar_t *wide = wide_path(path);
    FILE *f = wide != NULL ? _wfopen(wide, L"rbN") : NULL;

    free(wide);
    return f;
}

bool cli_remove_dir(const char *path)
{
    wchar_t *wide = wide_path(path);
    bool ok = wide != NULL && (RemoveDirectoryW(wide) || set_errno());

    free(wide);
    return ok;
}

/* The file system's log keeps the name. */
bool cli_make_dir(const char *path, bool sync)
{
    wchar_t *wide = wide_path(path);
    bool ok = wide != NULL && (CreateDirectoryW(wide, NULL) ||
                               GetLastError() == ERROR_ALREADY_EXISTS || set_errno());

    (void)sync;
    free(wide);
    return ok;
}

size_t cli_processors(void)
{
    SYSTEM_INFO info;

    GetSystemInfo(&info);
    return info.dwNumberOfProcessors > 0 ? info.dwNumberOfProcessors : 1;
}

/* Strips the prefix of GetFinalPathNameByHandle: \\?\C:\..., \\?\UNC\server\... */
static void make_plain(wchar_t *path)
{
    bool unc = wcsncmp(path, L"\\\\?\\UNC\\", 8) == 0;
    size_t n = unc ? 6 : wcsncmp(path, L"\\\\?\\", 4) == 0 ? 4 : 0;

    memmove(path, path + n, (wcslen(path + n) + 1) * sizeof *path);
    if (unc)
        path[0] = L'\\';
}

/* Resolves links and junctions; NULL if the file cannot be opened or its volume has no name. */
static wchar_t *final_path(const wchar_t *path)
{
    HANDLE h = CreateFileW(path, FILE_READ_ATTRIBUTES,
                           FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    DWORD cap = 1 << 15, n = 0;
    wchar_t *out = h != INVALID_HANDLE_VALUE ? malloc(cap * sizeof *out) : NULL;

    if (out != NULL)
        n = GetFinalPathNameByHandleW(h, out, cap, 0);
    if (h != INVALID_HANDLE_VALUE)
        CloseHandle(h);
    if (n == 0 || n >= cap) {
        free(out);
        return NULL;
    }
    make_plain(out);
    return out;
}

char *cli_full_path(const char *path)
{
    wchar_t *wide = wide_path(path), *full = wide != NULL ? final_path(wide) : NULL;

    if (wide != NULL && full == NULL)
        full = full_path(wide);
    char *out = full != NULL ? to_utf8(full) : NULL;

    free(wide);
    free(full);
    return out;
}

/* Symbolic links and junctions are reparse points. */
static enum cli_type type_of(DWORD attributes)
{
    return attributes & FILE_ATTRIBUTE_REPARSE_POINT ? CLI_TYPE_UNKNOWN
           : attributes & FILE_ATTRIBUTE_DIRECTORY   ? CLI_TYPE_DIR
                                                     : CLI_TYPE_FILE;
}

static bool each_found(HANDLE h, WIN32_FIND_DATAW *found, cli_name_fn each, void *user)
{
    bool more = true;

    do {
        char *name = to_utf8(found->cFileName);
        if (name != NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            more = each(user, name, type_of(found->dwFileAttributes));
        free(name);
    } while (more && FindNextFileW(h, found));
    return !more || GetLastError() == ERROR_NO_MORE_FILES || set_errno();
}

bool cli_each_name(const char *dir, cli_name_fn each, void *user)
{
    WIN32_FIND_DATAW found;
    char *all = cli_join(dir, "*");
    wchar_t *wide = all != NULL ? wide_path(all) : NULL;
    HANDLE h = wide != NULL ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;

    free(all);
    free(wide);
    if (h == INVALID_HANDLE_VALUE)
        return set_errno();
    bool ok = each_found(h, &found, each, user);
    FindClose(h);
    return ok;
}

/* ---- folders of PATH ------------------------------------------------------------------------- */

static char *get_variable(const wchar_t *name)
{
    DWORD n = GetEnvironmentVariableW(name, NULL, 0);
    wchar_t *wide = n > 0 ? malloc(n * sizeof *wide) : NULL;
    char *out = wide != NULL && GetEnvironmentVariableW(name, wide, n) < n ? to_utf8(wide) : NULL;

    free(wide);
    return out;
}

/* Whether the folder does not depend on the current one: C:\..., \\server\... */
static bool is_absolute(const char *dir)
{
    return (dir[0] != '\0' && dir[1] == ':' && dir[2] != '\0' &&
            strchr(CLI_SEPARATORS, dir[2]) != NULL) ||
           strncmp(dir, "\\\\", 2) == 0;
}

bool cli_each_library_dir(bool (*each)(void *user, const char *dir, const char *from), void *user)
{
    char *path = get_variable(L"PATH"), *at = path;
    bool found = false;

    while (at != NULL && !found) {
        char *end = strchr(at, ';');
        if (end != NULL)
            *end = '\0';
        /* Quoted entries, which may contain a ;, are skipped. */
        found = is_absolute(at) && each(user, at, NULL);
        at = end != NULL ? end + 1 : NULL;
    }
    free(path);
    return found;
}

/* ---- a program ------------------------------------------------------------------------------- */

struct lookup {
    const char *name;
    char *path;
};

static bool has_program(void *user, const char *dir, const char *from)
{
    struct lookup *l = user;
    size_t size = strlen(l->name) + 5;
    char *name = malloc(size), *path = NULL;
    struct cli_stat st;

    (void)from;
    if (name != NULL) {
        snprintf(name, size, "%s.exe", l->name);
        path = cli_join(dir, name);
    }
    free(name);
    if (path != NULL && cli_stat(path, &st) && !st.is_dir)
        l->path = path;
    else
        free(path);
    return l->path != NULL;
}

/* Quotes an argument for CommandLineToArgvW and the C run-time library, which take backslashes
 * literally unless a quotation mark follows. */
static char *append_quoted(char *to, const char *arg)
{
    size_t slashes = 0;

    *to++ = '"';
    for (; *arg != '\0'; arg++) {
        for (; *arg == '"' && slashes > 0; slashes--)
            *to++ = '\\';
        if (*arg == '"')
            *to++ = '\\';
        slashes = *arg == '\\' ? slashes + 1 : 0;
        *to++ = *arg;
    }
    for (; slashes > 0; slashes--)
        *to++ = '\\';
    *to++ = '"';
    *to++ = ' ';
    return to;
}

static wchar_t *command_line(char *const *argv)
{
    size_t size = 1;

    for (size_t i = 0; argv[i] != NULL; i++)
        size += 2 * strlen(argv[i]) + 3;
    char *line = malloc(size), *to = line;
    for (size_t i = 0; line != NULL && argv[i] != NULL; i++)
        to = append_quoted(to, argv[i]);
    if (line == NULL)
        return NULL;
    *to = '\0';
    wchar_t *wide = to_wide(line);
    free(line);
    return wide;
}

static bool create_process(const wchar_t *program, wchar_t *line, HANDLE out, HANDLE nothing,
                           HANDLE *child)
{
    STARTUPINFOW start = {.cb = sizeof start,
                          .dwFlags = STARTF_USESTDHANDLES,
                          .hStdInput = nothing,
                          .hStdOutput = out,
                          .hStdError = nothing};
    PROCESS_INFORMATION info;

    if (!CreateProcessW(program, line, NULL, NULL, TRUE, CREATE_NO_WINDOW, NULL, NULL, &start,
                        &info))
        return false;
    CloseHandle(info.hThread);
    *child = info.hProcess;
    return true;
}

/* Reads what is available, not to the end: a child of the program may keep the pipe open. */
static bool read_pipe(HANDLE from, char *out, size_t cap, size_t *n)
{
    DWORD there, got;

    *n = 0;
    while (*n < cap && PeekNamedPipe(from, NULL, 0, NULL, &there, NULL) && there > 0 &&
           ReadFile(from, out + *n, (DWORD)(cap - *n), &got, NULL))
        *n += got;
    return *n < cap;
}

/* The pipe holds `cap` bytes: a program that prints less can end before anything is read, one that
 * prints more blocks until it is killed. */
static bool run_and_read(const wchar_t *program, wchar_t *line, int ms, char *out, size_t cap,
                         size_t *n)
{
    enum { NO_PYTHON = 103, NO_COMMAND = 9009 }; /* py.exe without that version; a stub */
    SECURITY_ATTRIBUTES inherit = {.nLength = sizeof inherit, .bInheritHandle = TRUE};
    HANDLE from, to, child;
    DWORD code = 1;

    if (!CreatePipe(&from, &to, &inherit, (DWORD)cap))
        return false;
    SetHandleInformation(from, HANDLE_FLAG_INHERIT, 0);
    HANDLE nothing =
        CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                    &inherit, OPEN_EXISTING, 0, NULL);
    bool started = create_process(program, line, to, nothing, &child);
    bool ok = false;
    CloseHandle(nothing);
    CloseHandle(to);
    if (started) {
        if (WaitForSingleObject(child, (DWORD)ms) != WAIT_OBJECT_0)
            TerminateProcess(child, 1);
        else
            ok = GetExitCodeProcess(child, &code) && code == 0 && read_pipe(from, out, cap, n);
        CloseHandle(child);
    }
    CloseHandle(from);
    errno = !ok && (code == NO_PYTHON || code == NO_COMMAND) ? ENOENT : EIO;
    return ok;
}

/* Passes the full path, because CreateProcessW searches the current folder before PATH. */
bool cli_run_program(char *const *argv, int ms, char *out, size_t cap, size_t *n)
{
    struct lookup l = {argv[0], NULL};
    bool there = cli_each_library_dir(has_program, &l);
    wchar_t *program = there ? wide_path(l.path) : NULL, *line = command_line(argv);
    bool ok = program != NULL && line != NULL && run_and_read(program, line, ms, out, cap, n);

    const int error = there ? errno : ENOENT;

    free(l.path);
    free(program);
    free(line);
    errno = error;
    return ok;
}
