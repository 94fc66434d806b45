/* Finds the libpython that goes with extension modules, from the most to the least certain:
 *   1. a libpython the file itself names (DT_NEEDED), along its own RPATH or RUNPATH;
 *   2. the installation the file lies in: PREFIX/lib/python3.11/... has PREFIX/lib/libpython3.11.so;
 *   3. python3 on PATH, if it is of the right version, else pythonX.Y on PATH;
 *   4. the linker's folders: LD_LIBRARY_PATH, /etc/ld.so.conf, the standard ones.
 * Whatever is found must be a library of the file's own machine and of the version in its ABI tag. */
#include <dirent.h>
#include <glob.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask_python.h"
#include "cli/cli.h"

#define INCLUDE_DEPTH 8

struct search {
    const char *file;      /* speaks for all of them in messages */
    struct cli_abi want;   /* major 0: any version */
    bool abi3;             /* some file has the stable ABI, which a free-threaded build lacks */
    struct exti_image *im; /* of `file` */
    struct exti_image_info info;
    const char *needed; /* a libpython that `file` names itself, or NULL */
    char *tried;        /* lines for the message, safe to print */
    char *found;
};

static char *format(const char *fmt, ...) CLI_PRINTF(1, 2);
static char *format(const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *out = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (out != NULL)
        vsnprintf(out, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return out;
}

/* Notes a place that was looked at in vain.  Takes `text`. */
static void note(struct search *s, char *text)
{
    char *safe = text != NULL ? cli_safe(text) : NULL;
    char *all = format("%s    %s\n", s->tried != NULL ? s->tried : "", safe != NULL ? safe : "?");

    free(text);
    free(safe);
    if (all != NULL) {
        free(s->tried);
        s->tried = all;
    }
}

static bool same_machine(const struct exti_image_info *a, const struct exti_image_info *b)
{
    return strcmp(a->format, b->format) == 0 && strcmp(a->machine, b->machine) == 0 &&
           a->bits == b->bits && a->big_endian == b->big_endian;
}

/* Takes `path` as the answer if there is such a library and it fits.  Takes the string. */
static bool accept(struct search *s, char *path)
{
    struct exti_image *im = NULL;
    struct exti_image_info info = {.size = sizeof info};

    if (path == NULL || s->found != NULL || access(path, R_OK) != 0 ||
        exti_inspect(path, &im, NULL) != 0 || exti_image_info(im, &info) != 0) {
        exti_image_free(im);
        free(path);
        return s->found != NULL;
    }
    struct cli_abi have = cli_abi_of_libpython(info.id != NULL ? info.id : path);
    bool fits = have.major != 0 && same_machine(&s->info, &info) && cli_abi_fits(&s->want, &have) &&
                !(s->abi3 && strchr(have.flags, 't') != NULL);
    exti_image_free(im);
    if (fits)
        s->found = path;
    else
        free(path);
    return fits;
}

/* ---- a folder ---------------------------------------------------------------------------------- */

/* The newest release build among the folder's libraries, by its full name: libpython3.11.so.1.0. */
static bool newest_in(struct search *s, const char *dir)
{
    char *best = NULL;
    int minor = -1;
    size_t length = 0;
    struct dirent *e;
    DIR *d = opendir(dir);

    if (d == NULL)
        return false;
    while ((e = readdir(d)) != NULL) {
        struct cli_abi abi = cli_abi_of_libpython(e->d_name);
        size_t n = strlen(e->d_name);
        if (abi.major == 3 && abi.flags[0] == '\0' &&
            (abi.minor > minor || (abi.minor == minor && n > length))) {
            free(best);
            best = format("%s/%s", dir, e->d_name);
            minor = abi.minor;
            length = n;
        }
    }
    closedir(d);
    return accept(s, best);
}

static bool look_in(struct search *s, const char *dir)
{
    if (s->needed != NULL && strchr(s->needed, '/') == NULL &&
        accept(s, format("%s/%s", dir, s->needed)))
        return true;
    if (s->want.major == 0)
        return newest_in(s, dir);
    return accept(s, format("%s/libpython%d.%d%s.so.1.0", dir, s->want.major, s->want.minor,
                            s->want.flags)) ||
           accept(s, format("%s/libpython%d.%d%s.so", dir, s->want.major, s->want.minor,
                            s->want.flags));
}

/* ---- what the file itself tells ---------------------------------------------------------------- */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return format(".");
    return slash == path ? format("/") : format("%.*s", (int)(slash - path), path);
}

/* One entry of a search path, with $ORIGIN at its head resolved. */
static bool look_along(struct search *s, const char *entry, size_t n, const char *origin)
{
    static const char *const names[] = {"$ORIGIN", "${ORIGIN}"};
    char *dir = NULL;

    for (size_t i = 0; dir == NULL && i < 2; i++) {
        size_t len = strlen(names[i]);
        if (n >= len && strncmp(entry, names[i], len) == 0)
            dir = format("%s%.*s", origin, (int)(n - len), entry + len);
    }
    if (dir == NULL && n > 0 && entry[0] == '/')
        dir = format("%.*s", (int)n, entry);
    bool found = dir != NULL && accept(s, format("%s/%s", dir, s->needed));
    free(dir);
    return found;
}

static bool try_needed(struct search *s)
{
    const char *entry = s->info.runpath != NULL ? s->info.runpath : s->info.rpath;

    if (s->needed == NULL)
        return false;
    if (strchr(s->needed, '/') != NULL)
        return accept(s, format("%s", s->needed));
    char *origin = folder_of(s->file);
    while (origin != NULL && entry != NULL && s->found == NULL) {
        size_t n = strcspn(entry, ":");
        look_along(s, entry, n, origin);
        entry = entry[n] == ':' ? entry + n + 1 : NULL;
    }
    free(origin);
    if (s->found == NULL)
        note(s, format("the file's own search path, for %s", s->needed));
    return s->found != NULL;
}

/* Whether a folder's name is that of a Python library folder: python3, python3.11. */
static bool is_python_folder(const char *name)
{
    static const char key[] = "python3";

    return strncmp(name, key, sizeof key - 1) == 0 &&
           strspn(name + sizeof key - 1, ".0123456789t") == strlen(name + sizeof key - 1);
}

/* `lib` is the folder that holds python3.11/. */
static bool look_in_lib(struct search *s, const char *lib)
{
    char *multiarch = s->want.platform[0] != '\0' ? format("%s/%s", lib, s->want.platform) : NULL;
    bool found = look_in(s, lib) || (multiarch != NULL && look_in(s, multiarch));

    if (!found)
        note(s, format("%s, which the file lies below", lib));
    free(multiarch);
    return found;
}

/* A file without a version of its own takes that of its folder, if there is such a library. */
static bool try_installation(struct search *s)
{
    char *path = realpath(s->file, NULL), *slash;
    const struct cli_abi want = s->want;

    while (path != NULL && s->found == NULL && (slash = strrchr(path, '/')) != NULL) {
        *slash = '\0';
        const char *name = strrchr(path, '/');
        if (name == NULL || !is_python_folder(name + 1))
            continue;
        char *lib = folder_of(path), *as_library = format("lib%s.so", name + 1);
        if (want.major == 0 && as_library != NULL)
            s->want = cli_abi_of_libpython(as_library);
        if (lib != NULL)
            look_in_lib(s, lib);
        s->want = want;
        free(as_library);
        free(lib);
    }
    free(path);
    return s->found != NULL;
}

/* ---- an interpreter on PATH -------------------------------------------------------------------- */

static const char *text_of(const json_t *answer, const char *key)
{
    const char *text = json_string_value(json_object_get(answer, key));

    return text != NULL ? text : "";
}

static bool from_answer(struct search *s, const char *python, const json_t *answer)
{
    const json_t *libs = json_object_get(answer, "libs"), *dirs = json_object_get(answer, "dirs");
    int major = (int)json_integer_value(json_object_get(answer, "major"));
    int minor = (int)json_integer_value(json_object_get(answer, "minor"));
    const char *flags = text_of(answer, "flags"), *exe = text_of(answer, "exe");
    struct cli_abi have = {major, minor, "", ""};

    snprintf(have.flags, sizeof have.flags, "%s", flags);
    bool is_cpython = strcmp(text_of(answer, "name"), "cpython") == 0;
    if (!is_cpython || !cli_abi_fits(&s->want, &have)) {
        note(s, format("%s on PATH (%s), which is %s %d.%d%s", python, exe,
                       is_cpython ? "CPython" : text_of(answer, "name"), major, minor, flags));
        return false;
    }
    for (size_t i = 0; i < json_array_size(libs); i++) {
        const char *lib = json_string_value(json_array_get(libs, i));
        if (lib == NULL || strstr(lib, ".so") == NULL)
            continue;
        for (size_t j = 0; j < json_array_size(dirs); j++) {
            const char *dir = json_string_value(json_array_get(dirs, j));
            if (dir != NULL && accept(s, format("%s/%s", dir, lib)))
                return true;
        }
    }
    note(s, format("%s on PATH (%s), which is CPython %d.%d%s, but has no shared "
                   "libpython for %d-bit %s",
                   python, exe, major, minor, flags, s->info.bits, s->info.machine));
    return false;
}

static bool try_interpreter(struct search *s, const char *python)
{
    json_t *answer = cli_ask_python(python);
    bool found = answer != NULL && from_answer(s, python, answer);

    if (answer == NULL)
        note(s, format("%s on PATH (there is none that answers)", python));
    json_decref(answer);
    return found;
}

static bool try_interpreters(struct search *s)
{
    char versioned[40];

    if (try_interpreter(s, "python3"))
        return true;
    if (s->want.major == 0)
        return false;
    snprintf(versioned, sizeof versioned, "python%d.%d%s", s->want.major, s->want.minor,
             s->want.flags);
    return try_interpreter(s, versioned);
}

/* ---- the linker's folders ---------------------------------------------------------------------- */

static bool try_ld_library_path(struct search *s)
{
    const char *at = getenv("LD_LIBRARY_PATH");

    while (at != NULL && s->found == NULL) {
        size_t n = strcspn(at, ":;");
        char *dir = n > 0 ? format("%.*s", (int)n, at) : NULL;
        if (dir != NULL && !look_in(s, dir))
            note(s, format("%s, from LD_LIBRARY_PATH", dir));
        free(dir);
        at = at[n] != '\0' ? at + n + 1 : NULL;
    }
    return s->found != NULL;
}

static bool try_conf(struct search *s, const char *conf, int depth);

static bool include_confs(struct search *s, const char *pattern, const char *conf, int depth)
{
    char *dir = folder_of(conf);
    char *full =
        pattern[0] == '/' || dir == NULL ? format("%s", pattern) : format("%s/%s", dir, pattern);
    glob_t all;

    if (full != NULL && glob(full, 0, NULL, &all) == 0) {
        for (size_t i = 0; i < all.gl_pathc && s->found == NULL; i++)
            try_conf(s, all.gl_pathv[i], depth + 1);
        globfree(&all);
    }
    free(full);
    free(dir);
    return s->found != NULL;
}

/* ld.so.conf(5) as ldconfig(8) reads it: a folder per line, `include PATTERN`, # comments. */
static bool try_conf(struct search *s, const char *conf, int depth)
{
    FILE *f = depth < INCLUDE_DEPTH ? fopen(conf, "re") : NULL;
    char *line = NULL;
    size_t cap = 0;

    if (f == NULL)
        return false;
    while (s->found == NULL && getline(&line, &cap, f) >= 0) {
        line[strcspn(line, "#\n")] = '\0';
        char *at = line + strspn(line, " \t");
        if (strncmp(at, "include", 7) == 0 && (at[7] == ' ' || at[7] == '\t')) {
            at += 7 + strspn(at + 7, " \t");
            at[strcspn(at, " \t")] = '\0';
            include_confs(s, at, conf, depth);
        } else if (*at == '/') {
            at[strcspn(at, " \t=")] = '\0';
            look_in(s, at);
        }
    }
    free(line);
    fclose(f);
    return s->found != NULL;
}

static bool try_linker(struct search *s)
{
    static const char *const standard[] = {"/usr/local/lib", "/lib64", "/usr/lib64", "/lib",
                                           "/usr/lib"};
    static const char *const multiarch[] = {"/lib", "/usr/lib"};

    if (try_ld_library_path(s) || try_conf(s, "/etc/ld.so.conf", 0))
        return true;
    for (size_t i = 0; s->want.platform[0] != '\0' && i < 2; i++) {
        char *dir = format("%s/%s", multiarch[i], s->want.platform);
        bool found = dir != NULL && look_in(s, dir);
        free(dir);
        if (found)
            return true;
    }
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        if (look_in(s, standard[i]))
            return true;
    note(s, format("the linker's folders (/etc/ld.so.conf, /usr/lib and the like)"));
    return false;
}

/* ---- all together ------------------------------------------------------------------------------ */

static const char *needed_libpython(const struct exti_image *im)
{
    const char *name;

    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        if (cli_abi_of_libpython(name).major != 0)
            return name;
    return NULL;
}

/* What `path` asks for; its image stays open if it is the one that speaks for all. */
static int add_file(struct search *s, const char *path)
{
    struct exti_error err;
    struct exti_image *im = NULL;
    struct cli_abi abi = cli_abi_of(path);

    if (exti_inspect(path, &im, &err) != 0)
        return cli_error(&err, path);
    const char *needed = needed_libpython(im);
    if (abi.major == 0 && needed != NULL)
        abi = cli_abi_of_libpython(needed);
    if (!cli_abi_fits(&abi, &s->want)) {
        cli_fail(path, "is built for CPython %d.%d%s, but %s for CPython %d.%d%s", abi.major,
                 abi.minor, abi.flags, s->file, s->want.major, s->want.minor, s->want.flags);
        cli_hint("a context directory serves one CPython: use one for each");
        exti_image_free(im);
        return CLI_FAILED;
    }
    s->abi3 = s->abi3 || cli_is_abi3(path);
    if (s->im != NULL && (s->want.major != 0 || abi.major == 0)) {
        exti_image_free(im);
        return CLI_OK;
    }
    exti_image_free(s->im);
    s->im = im;
    s->file = path;
    s->want = abi;
    s->needed = needed;
    s->info.size = sizeof s->info;
    exti_image_info(im, &s->info);
    return CLI_OK;
}

static int not_found(const struct search *s)
{
    if (s->want.major != 0)
        cli_fail(s->file, "no libpython%d.%d%s for %d-bit %s found to go with it", s->want.major,
                 s->want.minor, s->want.flags, s->info.bits, s->info.machine);
    else
        cli_fail(s->file, "no libpython3 for %d-bit %s found to go with it", s->info.bits,
                 s->info.machine);
    fprintf(stderr, "  looked in\n%s", s->tried != NULL ? s->tried : "");
    if (s->want.major != 0)
        cli_hint("install it (Debian: apt-get install libpython%d.%d%s; pyenv: "
                 "PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install %d.%d%s) or name it with "
                 "--libpython PATH",
                 s->want.major, s->want.minor, s->want.flags, s->want.major, s->want.minor,
                 s->want.flags);
    else
        cli_hint("install it (Debian: apt-get install libpython3-dev) or name it with "
                 "--libpython PATH");
    return CLI_FAILED;
}

int cli_find_libpython(char *const *files, size_t count, char **out)
{
    struct search s = {.file = files[0]};
    int status = CLI_OK;

    for (size_t i = 0; i < count && status == CLI_OK; i++)
        status = add_file(&s, files[i]);
    if (status == CLI_OK) {
        if (try_needed(&s) || try_installation(&s) || try_interpreters(&s) || try_linker(&s))
            *out = s.found;
        else
            status = not_found(&s);
    }
    exti_image_free(s.im);
    free(s.tried);
    return status;
}
