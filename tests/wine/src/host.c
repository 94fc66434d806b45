/* Loads DLLs on command and prints the results.  Standard input has one command per line; NAMEs are
 * chosen by the caller, paths are those of the Unix that wine runs on:
 *
 *   load NAME FLAGS PATH     LoadLibraryExW, FLAGS in hexadecimal
 *   call NAME FUNCTION       int FUNCTION(void)
 *   give NAME FUNCTION N     void FUNCTION(int)
 *   thread NAME FUNCTION     as call, in a new thread
 *   add NAME DATUM N         adds N to an int
 *   same NAME NAME           whether two modules are one
 *   free NAME                FreeLibrary, and whether the module is gone
 *   walk DIRECTORY ROOT      where the imports of the modules loaded from DIRECTORY lead: a leak leads
 *                            into a module elsewhere below ROOT
 *   python NAME PATH         starts the Python in the module, with PATH as sys.path
 *   exec NAME CODE           lets it run CODE, the rest of the line
 *   stop NAME                Py_FinalizeEx
 *   together                 runs the commands up to `end` at once, each in a thread of its own
 */
#include "tests/wine/src/host.h"

#include <fcntl.h>
#include <io.h>
#include <stdarg.h>
#include <stdlib.h>

enum { MOST_MODULES = 2048, MOST_TOGETHER = 64 };

static struct {
    char name[64];
    HMODULE module;
    wchar_t path[1024];
} modules[MOST_MODULES];
static size_t module_count;
static CRITICAL_SECTION lock;

void report(struct command *c, const char *format, ...)
{
    size_t used = strlen(c->out);
    va_list ap;

    va_start(ap, format);
    vsnprintf(c->out + used, sizeof c->out - used, format, ap);
    va_end(ap);
}

void windows_path(const char *path, wchar_t *out, size_t cap)
{
    size_t n = 0;

    if (*path == '/') {
        wcscpy(out, L"Z:");
        n = 2;
    }
    MultiByteToWideChar(CP_UTF8, 0, path, -1, out + n, (int)(cap - n));
    for (; *out; out++)
        if (*out == '/')
            *out = '\\';
}

/* The slot of a module, created on first use. */
static size_t place(const char *name)
{
    size_t i;

    EnterCriticalSection(&lock);
    for (i = 0; i < module_count && strcmp(modules[i].name, name) != 0; i++)
        ;
    if (i == MOST_MODULES)
        exit(3);
    if (i == module_count)
        snprintf(modules[module_count++].name, sizeof modules[0].name, "%s", name);
    LeaveCriticalSection(&lock);
    return i;
}

HMODULE module_of(const char *name)
{
    return modules[place(name)].module;
}

static void load(struct command *c)
{
    size_t i = place(c->word[1]);

    windows_path(c->word[3], modules[i].path, sizeof modules[i].path / sizeof *modules[i].path);
    modules[i].module = LoadLibraryExW(modules[i].path, NULL, strtoul(c->word[2], NULL, 16));
    if (modules[i].module)
        report(c, "%s loaded\n", c->word[1]);
    else
        report(c, "%s error %lu\n", c->word[1], GetLastError());
}

FARPROC find(struct command *c, const char *module, const char *symbol)
{
    FARPROC f = GetProcAddress(module_of(module), symbol);

    if (!module_of(module) || !f) {
        report(c, "%s has no %s\n", module, symbol);
        return NULL;
    }
    return f;
}

static void call(struct command *c)
{
    int (*f)(void) = (int (*)(void))(void *)find(c, c->word[1], c->word[2]);

    if (f)
        report(c, "%s %s %d\n", c->word[1], c->word[2], f());
}

static void give(struct command *c)
{
    void (*f)(int) = (void (*)(int))(void *)find(c, c->word[1], c->word[2]);

    if (f)
        f(atoi(c->word[3]));
}

static DWORD WINAPI call_in_thread(void *command)
{
    call(command);
    return 0;
}

static void in_thread(struct command *c)
{
    HANDLE h = CreateThread(NULL, 0, call_in_thread, c, 0, NULL);

    WaitForSingleObject(h, INFINITE);
    CloseHandle(h);
}

static void add(struct command *c)
{
    int *p = (int *)(void *)find(c, c->word[1], c->word[2]);

    if (p)
        report(c, "%s %s %d\n", c->word[1], c->word[2], *p += atoi(c->word[3]));
}

static void print_same(struct command *c)
{
    report(c, "%s %s %s\n", c->word[1], c->word[2],
           module_of(c->word[1]) == module_of(c->word[2]) ? "same" : "distinct");
}

static void unload(struct command *c)
{
    size_t i = place(c->word[1]);
    BOOL ok = FreeLibrary(modules[i].module);

    modules[i].module = NULL;
    report(c, "%s %s\n", c->word[1],
           !ok                                 ? "not freed"
           : GetModuleHandleW(modules[i].path) ? "stays"
                                               : "gone");
}

static void no_command(struct command *c)
{
    report(c, "no such command: %s\n", c->word[0]);
}

static void run(struct command *c)
{
    static const struct {
        const char *name;
        size_t words;
        void (*run)(struct command *c);
    } all[] = {
        {"load", 4, load}, {"call", 3, call},        {"thread", 3, in_thread},
        {"add", 4, add},   {"same", 3, print_same},  {"free", 2, unload},
        {"walk", 3, walk}, {"python", 3, python},    {"exec", 3, python_exec},
        {"give", 4, give}, {"stop", 2, python_stop},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(c->word[0], all[i].name) == 0 && c->words == all[i].words) {
            all[i].run(c);
            return;
        }
    no_command(c);
}

static void split(struct command *c)
{
    char *p = c->line;
    size_t most = MOST_WORDS;

    c->words = 0;
    c->out[0] = 0;
    p[strcspn(p, "\r\n")] = 0;
    while (*p && c->words < most) {
        c->word[c->words++] = p;
        /* Code contains blanks. */
        if (strcmp(c->word[0], "exec") == 0)
            most = 3;
        if (c->words == most)
            break;
        p += strcspn(p, " ");
        if (*p)
            *p++ = 0;
    }
}

static DWORD WINAPI run_in_thread(void *command)
{
    run(command);
    return 0;
}

static bool next(struct command *c)
{
    while (fgets(c->line, sizeof c->line, stdin)) {
        split(c);
        if (c->words)
            return true;
    }
    return false;
}

static void put(const struct command *c)
{
    fputs(c->out, stdout);
    fflush(stdout);
}

static void run_together(void)
{
    static struct command all[MOST_TOGETHER];
    HANDLE threads[MOST_TOGETHER];
    size_t n = 0;

    while (n < MOST_TOGETHER && next(&all[n]) && strcmp(all[n].word[0], "end") != 0)
        n++;
    for (size_t i = 0; i < n; i++)
        threads[i] = CreateThread(NULL, 0, run_in_thread, &all[i], 0, NULL);
    for (size_t i = 0; i < n; i++) {
        WaitForSingleObject(threads[i], INFINITE);
        CloseHandle(threads[i]);
        put(&all[i]);
    }
}

int main(void)
{
    static struct command c;

    InitializeCriticalSection(&lock);
    _setmode(_fileno(stdout), _O_BINARY);
    while (next(&c)) {
        if (strcmp(c.word[0], "together") == 0) {
            run_together();
        } else {
            run(&c);
            put(&c);
        }
    }
    fputs("end\n", stdout);
    fflush(stdout);
    return 0;
}
