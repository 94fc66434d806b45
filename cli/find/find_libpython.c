/* Searches from the most to the least certain place:
 *   1. ELF: a libpython that the file itself names (DT_NEEDED), along its RPATH or RUNPATH;
 *   2. the installation that contains the file: for PREFIX/lib/python3.11/... it is
 *      PREFIX/lib/libpython3.11.so, for PREFIX\Lib\site-packages\... PREFIX\python311.dll;
 * and, if files of this format run on this system,
 *   3. python3 on PATH, if it has the right version, else pythonX.Y on PATH (or py -X.Y);
 *   4. the folders of the system's loader: LD_LIBRARY_PATH and ld.so.conf, or PATH.
 * A match must be a library for the file's machine, of the version in its ABI tag. */
#include "cli/find/find_libpython.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/find/abi.h"
#include "cli/find/ask_python.h"
#include "cli/find/format.h"
#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/message.h"
#include "cli/output/text.h"

struct cli_libpython_search {
    const char *file;      /* represents all files in messages */
    struct cli_abi want;   /* major 0: any version */
    bool abi3;             /* some file needs the stable ABI, which free-threaded builds lack */
    bool dll;              /* PE, otherwise ELF */
    struct exti_image *im; /* of `file` */
    struct exti_image_info info;
    const char *needed; /* a libpython that `file` names itself, or NULL */
    char *tried;        /* places searched, a line each, safe to print */
    char *found;
    struct cli_abi found_abi;
    const char *misfit; /* the first file for another version than `file`, or NULL */
    struct cli_abi misfit_abi;
    bool failed; /* the place that was to answer did not; a message was printed */
};

static char *make_text(const char *fmt, ...) CLI_PRINTF(1, 2);
static char *make_text(const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *out = cli_alloc((size_t)n + 1);
    vsnprintf(out, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return out;
}

/* Records a place that had no suitable library.  Frees `text`. */
static void note_tried(struct cli_libpython_search *s, char *text)
{
    char *safe = text != NULL ? cli_safe(text) : NULL;
    char *all =
        make_text("%s    %s\n", s->tried != NULL ? s->tried : "", safe != NULL ? safe : "?");

    free(text);
    free(safe);
    if (all != NULL) {
        free(s->tried);
        s->tried = all;
    }
}

/* Accepts the library at `path` if it exists and fits.  Takes ownership of the string. */
static bool accept_library(struct cli_libpython_search *s, char *path)
{
    struct exti_image *im = NULL;
    struct exti_image_info info = {.size = sizeof info};

    if (path == NULL || s->found != NULL || !cli_worked(exti_inspect(path, &im, NULL)) ||
        exti_image_info(im, &info) != 0) {
        exti_image_free(im);
        free(path);
        return s->found != NULL;
    }
    struct cli_abi have = cli_abi_of_libpython(info.id != NULL ? info.id : path);
    bool fits = have.major != 0 && cli_same_target(&s->info, &info) &&
                cli_abi_fits(&s->want, &have) && !(s->abi3 && strchr(have.flags, 't') != NULL);
    exti_image_free(im);
    if (fits) {
        s->found = path;
        s->found_abi = have;
    } else {
        free(path);
    }
    return fits;
}

/* ---- a folder -------------------------------------------------------------------------------- */

struct newest {
    char *name;
    int minor;
};

static bool compare_with_newest(void *user, const char *name, enum cli_type type)
{
    (void)type;
    struct newest *best = user;
    struct cli_abi abi = cli_abi_of_libpython(name);

    if (abi.major == 3 && abi.flags[0] == '\0' &&
        (best->name == NULL || abi.minor > best->minor ||
         (abi.minor == best->minor && strlen(name) > strlen(best->name)))) {
        free(best->name);
        best->name = cli_copy_text(name);
        best->minor = abi.minor;
    }
    return true;
}

/* Tries the newest release build in the folder, by its full name: libpython3.11.so.1.0. */
static bool newest_in(struct cli_libpython_search *s, const char *dir)
{
    struct newest best = {NULL, 0};

    cli_each_name(dir, compare_with_newest, &best);
    bool found = best.name != NULL && accept_library(s, cli_join(dir, best.name));
    free(best.name);
    return found;
}

/* The file name of the wanted version, without ".so"; a pattern for any version. */
static char *wanted_name(const struct cli_libpython_search *s)
{
    const struct cli_abi *want = &s->want;

    if (want->major == 0)
        return make_text(s->dll ? "python3*.dll" : "libpython3");
    if (s->dll)
        return make_text("python%d%d%s%s.dll", want->major, want->minor,
                         strchr(want->flags, 't') != NULL ? "t" : "",
                         strchr(want->flags, 'd') != NULL ? "_d" : "");
    return make_text("libpython%d.%d%s", want->major, want->minor, want->flags);
}

static bool look_in(struct cli_libpython_search *s, const char *dir)
{
    static const char *const endings[] = {".so.1.0", ".so"};

    if (s->needed != NULL && cli_base_name(s->needed) == s->needed &&
        accept_library(s, cli_join(dir, s->needed)))
        return true;
    if (s->want.major == 0)
        return newest_in(s, dir);
    char *name = wanted_name(s), *base = name != NULL ? cli_join(dir, name) : NULL;
    bool found = base != NULL && s->dll && accept_library(s, cli_copy_text(base));
    for (size_t i = 0; base != NULL && !s->dll && !found && i < 2; i++)
        found = accept_library(s, make_text("%s%s", base, endings[i]));
    free(base);
    free(name);
    return found;
}

/* ---- what the file itself tells -------------------------------------------------------------- */

/* Looks in one entry of a search path; $ORIGIN is resolved where the entry begins with it. */
static bool look_along(struct cli_libpython_search *s, const char *entry, size_t n,
                       const char *origin)
{
    static const char *const names[] = {"$ORIGIN", "${ORIGIN}"};
    char *dir = NULL;

    for (size_t i = 0; dir == NULL && i < 2; i++) {
        size_t len = strlen(names[i]);
        if (n >= len && strncmp(entry, names[i], len) == 0)
            dir = make_text("%s%.*s", origin, (int)(n - len), entry + len);
    }
    if (dir == NULL && n > 0 && entry[0] == '/')
        dir = make_text("%.*s", (int)n, entry);
    bool found = dir != NULL && accept_library(s, make_text("%s/%s", dir, s->needed));
    free(dir);
    return found;
}

static bool try_needed(struct cli_libpython_search *s)
{
    const char *entry = s->info.runpath != NULL ? s->info.runpath : s->info.rpath;

    if (s->needed == NULL || s->dll)
        return false;
    if (strchr(s->needed, '/') != NULL)
        return accept_library(s, make_text("%s", s->needed));
    char *origin = cli_folder_of(s->file);
    while (origin != NULL && entry != NULL && s->found == NULL) {
        size_t n = strcspn(entry, ":");
        look_along(s, entry, n, origin);
        entry = entry[n] == ':' ? entry + n + 1 : NULL;
    }
    free(origin);
    if (s->found == NULL)
        note_tried(s, make_text("the file's own search path, for %s", s->needed));
    return s->found != NULL;
}

/* Whether a folder is named like Python's library folder: python3, python3.11. */
static bool is_python_folder(const char *name)
{
    static const char key[] = "python3";

    return strncmp(name, key, sizeof key - 1) == 0 &&
           strspn(name + sizeof key - 1, ".0123456789t") == strlen(name + sizeof key - 1);
}

/* Whether Python on Windows keeps extension modules in a folder of this name. */
static bool is_windows_folder(const char *name)
{
    return strcasecmp(name, "Lib") == 0 || strcasecmp(name, "DLLs") == 0;
}

/* `lib` contains python3.11/. */
static bool look_in_lib(struct cli_libpython_search *s, const char *lib)
{
    char *multiarch =
        s->want.platform[0] != '\0' ? make_text("%s/%s", lib, s->want.platform) : NULL;
    bool found = look_in(s, lib) || (multiarch != NULL && look_in(s, multiarch));

    if (!found)
        note_tried(s, make_text("%s, which contains the file", lib));
    free(multiarch);
    return found;
}

/* `lib` contains `folder`, "python3.11", which states the version for a file that does not. */
static bool look_beside(struct cli_libpython_search *s, const char *folder, const char *lib)
{
    const struct cli_abi want = s->want;
    char *as_library = make_text("lib%s.so", folder);

    if (want.major == 0 && as_library != NULL)
        s->want = cli_abi_of_libpython(as_library);
    look_in_lib(s, lib);
    s->want = want;
    free(as_library);
    return s->found != NULL;
}

/* A virtual environment on Windows has no python311.dll; pyvenv.cfg names the Python that has. */
static bool look_at_home(struct cli_libpython_search *s, const char *prefix)
{
    char line[4096], *cfg = cli_join(prefix, "pyvenv.cfg");
    FILE *f = cfg != NULL ? cli_open(cfg) : NULL;

    while (f != NULL && s->found == NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "home", 4) != 0)
            continue;
        char *at = line + 4 + strspn(line + 4, " \t");
        if (*at != '=')
            continue;
        at += 1 + strspn(at + 1, " \t");
        at[strcspn(at, "\r\n")] = '\0';
        if (!look_in(s, at))
            note_tried(s, make_text("%s, the home of the environment %s", at, prefix));
    }
    if (f != NULL)
        fclose(f);
    free(cfg);
    return s->found != NULL;
}

static bool look_in_prefix(struct cli_libpython_search *s, const char *prefix)
{
    if (look_in(s, prefix) || look_at_home(s, prefix))
        return true;
    note_tried(s, make_text("%s, which contains the file", prefix));
    return false;
}

/* Frees `path` and returns its parent folder, NULL for the root. */
static char *parent_of(char *path)
{
    char *dir = cli_folder_of(path);

    if (dir != NULL && strcmp(dir, path) == 0) {
        free(dir);
        dir = NULL;
    }
    free(path);
    return dir;
}

static bool try_installation(struct cli_libpython_search *s)
{
    char *path = cli_full_path(s->file);

    if (path != NULL && (path = parent_of(path)) != NULL && s->dll)
        look_in(s, path);
    for (; path != NULL && s->found == NULL; path = parent_of(path)) {
        const char *name = cli_base_name(path);
        char *parent = cli_folder_of(path);
        if (parent != NULL && s->dll && is_windows_folder(name))
            look_in_prefix(s, parent);
        else if (parent != NULL && !s->dll && is_python_folder(name))
            look_beside(s, name, parent);
        free(parent);
    }
    free(path);
    return s->found != NULL;
}

/* ---- an interpreter on PATH ------------------------------------------------------------------ */

static const char *text_of(const json_t *answer, const char *key)
{
    const char *text = json_string_value(json_object_get(answer, key));

    return text != NULL ? text : "";
}

static bool from_answer(struct cli_libpython_search *s, const char *python, const json_t *answer)
{
    const json_t *libs = json_object_get(answer, "libs"), *dirs = json_object_get(answer, "dirs");
    int major = (int)json_integer_value(json_object_get(answer, "major"));
    int minor = (int)json_integer_value(json_object_get(answer, "minor"));
    const char *flags = text_of(answer, "flags"), *exe = text_of(answer, "exe");
    struct cli_abi have = {major, minor, "", ""};

    snprintf(have.flags, sizeof have.flags, "%s", flags);
    bool is_cpython = strcmp(text_of(answer, "name"), "cpython") == 0;
    if (!is_cpython || !cli_abi_fits(&s->want, &have)) {
        note_tried(s, make_text("%s on PATH (%s), which is %s %d.%d%s", python, exe,
                                is_cpython ? "CPython" : text_of(answer, "name"), major, minor,
                                flags));
        return false;
    }
    for (size_t i = 0; s->dll && i < json_array_size(dirs); i++) {
        const char *dir = json_string_value(json_array_get(dirs, i));
        if (dir != NULL && look_in(s, dir))
            return true;
    }
    for (size_t i = 0; !s->dll && i < json_array_size(libs); i++) {
        const char *lib = json_string_value(json_array_get(libs, i));
        if (lib == NULL || strstr(lib, ".so") == NULL)
            continue;
        for (size_t j = 0; j < json_array_size(dirs); j++) {
            const char *dir = json_string_value(json_array_get(dirs, j));
            if (dir != NULL && accept_library(s, make_text("%s/%s", dir, lib)))
                return true;
        }
    }
    note_tried(s, make_text("%s on PATH (%s), which is CPython %d.%d%s, but has no shared "
                            "libpython for %d-bit %s",
                            python, exe, major, minor, flags, s->info.bits, s->info.machine));
    return false;
}

/* A Python that is there and does not answer is an error: any libpython found elsewhere would be
 * another Python's, as nobody has been told.  `must`: it has to be there. */
static bool try_interpreter(struct cli_libpython_search *s, const char *python, bool must)
{
    bool is_there;
    json_t *answer = cli_ask_python(python, &is_there);
    bool found = answer != NULL && from_answer(s, python, answer);

    if (answer == NULL && (is_there || must)) {
        s->failed = true;
        cli_fail(python, "none answers when it is asked for its libpython");
        cli_hint("try whether it runs: %s -I -S -c 'import json, sysconfig'; or name the libpython "
                 "with --libpython PATH",
                 python);
    } else if (answer == NULL) {
        note_tried(s, make_text("%s on PATH (none answers)", python));
    }
    json_decref(answer);
    return found;
}

static bool try_interpreters(struct cli_libpython_search *s)
{
    char versioned[40];

    if (try_interpreter(s, CLI_PYTHON, false))
        return true;
    if (s->want.major == 0 || s->failed)
        return false;
    snprintf(versioned, sizeof versioned, CLI_PYTHON_OF_VERSION, s->want.major, s->want.minor,
             s->want.flags);
    return try_interpreter(s, versioned, false);
}

/* ---- the folders of the system's loader ------------------------------------------------------ */

static bool look_in_library_dir(void *user, const char *dir, const char *from)
{
    struct cli_libpython_search *s = user;
    char *multiarch = s->want.platform[0] != '\0' ? cli_join(dir, s->want.platform) : NULL;
    bool found = look_in(s, dir) || (multiarch != NULL && look_in(s, multiarch));

    if (!found && from != NULL)
        note_tried(s, make_text("%s, from %s", dir, from));
    free(multiarch);
    return found;
}

static bool try_loader(struct cli_libpython_search *s)
{
    if (cli_each_library_dir(look_in_library_dir, s))
        return true;
    note_tried(s, make_text(CLI_LIBRARY_DIRS));
    return false;
}

/* ---- all together ---------------------------------------------------------------------------- */

static const char *needed_libpython(const struct exti_image *im)
{
    const char *name;

    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        if (cli_abi_of_libpython(name).major != 0)
            return name;
    return NULL;
}

/* On Windows, "foo.pyd" may need the stable ABI. */
static bool needs_stable_abi(const struct exti_image *im)
{
    const char *name;

    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        if (strcasecmp(name, "python3.dll") == 0)
            return true;
    return false;
}

struct cli_libpython_search *cli_libpython_search(void)
{
    return cli_zeroed(1, sizeof(struct cli_libpython_search));
}

/* The first file that states a version represents all. */
void cli_libpython_for(struct cli_libpython_search *s, const char *path, struct exti_image *im)
{
    struct cli_abi abi = cli_abi_of(path);
    const char *needed = needed_libpython(im);

    if (abi.major == 0 && needed != NULL)
        abi = cli_abi_of_libpython(needed);
    if (s->misfit == NULL && !cli_abi_fits(&abi, &s->want)) {
        s->misfit = path;
        s->misfit_abi = abi;
    }
    s->abi3 = s->abi3 || cli_is_abi3(path) || needs_stable_abi(im);
    if (s->im != NULL && (s->want.major != 0 || abi.major == 0)) {
        exti_image_free(im);
        return;
    }
    exti_image_free(s->im);
    s->im = im;
    s->file = path;
    s->want = abi;
    s->needed = needed;
    s->info.size = sizeof s->info;
    exti_image_info(im, &s->info);
    s->dll = strcmp(s->info.format, "PE") == 0;
}

static int refuse_misfit(const struct cli_libpython_search *s)
{
    const struct cli_abi *abi = &s->misfit_abi;

    cli_fail(s->misfit, "is built for CPython %d.%d%s, but %s for CPython %d.%d%s", abi->major,
             abi->minor, abi->flags, s->file, s->want.major, s->want.minor, s->want.flags);
    cli_hint("a context directory serves one CPython version: use a CTXDIR for each");
    return CLI_FAILED;
}

static int not_found(const struct cli_libpython_search *s)
{
    const struct cli_abi *want = &s->want;
    char *name = wanted_name(s);

    cli_fail(s->file, "found no %s for %d-bit %s", name != NULL ? name : "libpython", s->info.bits,
             s->info.machine);
    free(name);
    fprintf(stderr, "  looked in:\n%s", s->tried != NULL ? s->tried : "");
    if (s->dll)
        cli_hint("name it with --libpython PATH: it is beside python.exe");
    else if (want->major != 0)
        cli_hint("install it (Debian: apt-get install libpython%d.%d%s; pyenv: "
                 "PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install %d.%d%s) or name it with "
                 "--libpython PATH",
                 want->major, want->minor, want->flags, want->major, want->minor, want->flags);
    else
        cli_hint("install it (Debian: apt-get install libpython3-dev) or name it with "
                 "--libpython PATH");
    return CLI_FAILED;
}

/* A Python is only asked for files that run on this system. */
static bool is_native(const struct cli_libpython_search *s)
{
    return strcmp(s->info.format, CLI_NATIVE) == 0;
}

static bool try_system(struct cli_libpython_search *s)
{
    return is_native(s) && (try_interpreters(s) || (!s->failed && try_loader(s)));
}

static bool try_all(struct cli_libpython_search *s, const char *python)
{
    if (python != NULL && is_native(s) && try_interpreter(s, python, true))
        return true;
    return !s->failed && (try_needed(s) || try_installation(s) || try_system(s));
}

int cli_libpython_find(struct cli_libpython_search *s, const char *python, char **out,
                       struct cli_abi *abi)
{
    if (s->misfit != NULL)
        return refuse_misfit(s);
    if (!try_all(s, python))
        return s->failed ? CLI_FAILED : not_found(s);
    *out = s->found;
    *abi = s->found_abi;
    s->found = NULL;
    return CLI_OK;
}

void cli_libpython_search_free(struct cli_libpython_search *s)
{
    if (s == NULL)
        return;
    exti_image_free(s->im);
    free(s->tried);
    free(s->found);
    free(s);
}
