#include "runtime/pyconfig.h"

#include <string.h>

#include "runtime/fail.h"

enum variant { ANY, FREE_THREADED, DEBUG };

#define LAST PYRT_MINOR_LAYOUT

/* The members of PyConfig in the order of CPython's Include/cpython/initconfig.h: kind, name, the
 * first and last minor version that has it at this place, the build variant that has it. */
static const struct member {
    enum pyrt_kind kind;
    const char *name;
    int first, last;
    enum variant variant;
} members[] = {
    {PYRT_INT, "_config_init", 9, LAST, ANY},
    {PYRT_INT, "isolated", 9, LAST, ANY},
    {PYRT_INT, "use_environment", 9, LAST, ANY},
    {PYRT_INT, "dev_mode", 9, LAST, ANY},
    {PYRT_INT, "install_signal_handlers", 9, LAST, ANY},
    {PYRT_INT, "use_hash_seed", 9, LAST, ANY},
    {PYRT_ULONG, "hash_seed", 9, LAST, ANY},
    {PYRT_INT, "faulthandler", 9, LAST, ANY},
    {PYRT_INT, "_use_peg_parser", 9, 9, ANY},
    {PYRT_INT, "tracemalloc", 9, LAST, ANY},
    {PYRT_INT, "perf_profiling", 12, LAST, ANY},
    {PYRT_INT, "import_time", 9, LAST, ANY},
    {PYRT_INT, "code_debug_ranges", 11, LAST, ANY},
    {PYRT_INT, "show_ref_count", 9, LAST, ANY},
    {PYRT_INT, "dump_refs", 9, LAST, ANY},
    {PYRT_WSTR, "dump_refs_file", 11, LAST, ANY},
    {PYRT_INT, "malloc_stats", 9, LAST, ANY},
    {PYRT_WSTR, "filesystem_encoding", 9, LAST, ANY},
    {PYRT_WSTR, "filesystem_errors", 9, LAST, ANY},
    {PYRT_WSTR, "pycache_prefix", 9, LAST, ANY},
    {PYRT_INT, "parse_argv", 9, LAST, ANY},
    {PYRT_WLIST, "orig_argv", 10, LAST, ANY},
    {PYRT_WLIST, "argv", 9, LAST, ANY},
    {PYRT_WSTR, "program_name", 9, 9, ANY},
    {PYRT_WLIST, "xoptions", 9, LAST, ANY},
    {PYRT_WLIST, "warnoptions", 9, LAST, ANY},
    {PYRT_INT, "site_import", 9, LAST, ANY},
    {PYRT_INT, "bytes_warning", 9, LAST, ANY},
    {PYRT_INT, "warn_default_encoding", 10, LAST, ANY},
    {PYRT_INT, "inspect", 9, LAST, ANY},
    {PYRT_INT, "interactive", 9, LAST, ANY},
    {PYRT_INT, "optimization_level", 9, LAST, ANY},
    {PYRT_INT, "parser_debug", 9, LAST, ANY},
    {PYRT_INT, "write_bytecode", 9, LAST, ANY},
    {PYRT_INT, "verbose", 9, LAST, ANY},
    {PYRT_INT, "quiet", 9, LAST, ANY},
    {PYRT_INT, "user_site_directory", 9, LAST, ANY},
    {PYRT_INT, "configure_c_stdio", 9, LAST, ANY},
    {PYRT_INT, "buffered_stdio", 9, LAST, ANY},
    {PYRT_WSTR, "stdio_encoding", 9, LAST, ANY},
    {PYRT_WSTR, "stdio_errors", 9, LAST, ANY},
    {PYRT_WSTR, "check_hash_pycs_mode", 9, LAST, ANY},
    {PYRT_INT, "use_frozen_modules", 11, LAST, ANY},
    {PYRT_INT, "safe_path", 11, LAST, ANY},
    {PYRT_INT, "int_max_str_digits", 12, LAST, ANY},
    {PYRT_INT, "cpu_count", 13, LAST, ANY},
    {PYRT_INT, "enable_gil", 13, LAST, FREE_THREADED},
    {PYRT_INT, "pathconfig_warnings", 9, LAST, ANY},
    {PYRT_WSTR, "program_name", 10, LAST, ANY},
    {PYRT_WSTR, "pythonpath_env", 9, LAST, ANY},
    {PYRT_WSTR, "home", 9, LAST, ANY},
    {PYRT_WSTR, "platlibdir", 10, LAST, ANY},
    {PYRT_INT, "module_search_paths_set", 9, LAST, ANY},
    {PYRT_WLIST, "module_search_paths", 9, LAST, ANY},
    {PYRT_WSTR, "stdlib_dir", 11, LAST, ANY},
    {PYRT_WSTR, "executable", 9, LAST, ANY},
    {PYRT_WSTR, "base_executable", 9, LAST, ANY},
    {PYRT_WSTR, "prefix", 9, LAST, ANY},
    {PYRT_WSTR, "base_prefix", 9, LAST, ANY},
    {PYRT_WSTR, "exec_prefix", 9, LAST, ANY},
    {PYRT_WSTR, "base_exec_prefix", 9, LAST, ANY},
    {PYRT_WSTR, "platlibdir", 9, 9, ANY},
    {PYRT_INT, "skip_source_first_line", 9, LAST, ANY},
    {PYRT_WSTR, "run_command", 9, LAST, ANY},
    {PYRT_WSTR, "run_module", 9, LAST, ANY},
    {PYRT_WSTR, "run_filename", 9, LAST, ANY},
    {PYRT_WSTR, "sys_path_0", 13, LAST, ANY},
    {PYRT_INT, "_install_importlib", 9, LAST, ANY},
    {PYRT_INT, "_init_main", 9, LAST, ANY},
    {PYRT_INT, "_isolated_interpreter", 9, 11, ANY},
    {PYRT_INT, "_is_python_build", 11, LAST, ANY},
    {PYRT_WSTR, "run_presite", 13, LAST, DEBUG},
    {PYRT_WLIST, "_orig_argv", 9, 9, ANY},
};

static const struct {
    size_t size, align;
} kinds[] = {
    [PYRT_INT] = {sizeof(int), _Alignof(int)},
    [PYRT_ULONG] = {sizeof(unsigned long), _Alignof(unsigned long)},
    [PYRT_WSTR] = {sizeof(wchar_t *), _Alignof(wchar_t *)},
    [PYRT_WLIST] = {sizeof(struct pyrt_wlist), _Alignof(struct pyrt_wlist)},
};

static int in_build(const struct member *m, struct pyrt_build b)
{
    if (b.minor < m->first || b.minor > m->last)
        return 0;
    if (m->variant == FREE_THREADED)
        return b.free_threaded;
    return m->variant != DEBUG || b.debug;
}

static size_t align_up(size_t n, size_t align)
{
    return (n + align - 1) / align * align;
}

/* Calls `each`, unless NULL, for every member; returns the size of the structure. */
static size_t each_member(struct pyrt_build b,
                          void (*each)(void *user, const char *name, enum pyrt_kind kind,
                                       size_t offset),
                          void *user)
{
    size_t at = 0;

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const struct member *m = &members[i];
        if (!in_build(m, b))
            continue;
        at = align_up(at, kinds[m->kind].align);
        if (each)
            each(user, m->name, m->kind, at);
        at += kinds[m->kind].size;
    }
    return align_up(at, _Alignof(void *));
}

void pyrt_fields(struct pyrt_build b,
                 void (*each)(void *user, const char *name, enum pyrt_kind kind, size_t offset),
                 void *user)
{
    each_member(b, each, user);
}

size_t pyrt_config_size(struct pyrt_build b)
{
    return each_member(b, NULL, NULL);
}

#define NO_OFFSET ((size_t)-1)

struct search {
    const char *name;
    enum pyrt_kind kind;
    size_t offset;
};

static void match_member(void *user, const char *name, enum pyrt_kind kind, size_t offset)
{
    struct search *s = user;

    if (kind == s->kind && strcmp(name, s->name) == 0)
        s->offset = offset;
}

void *pyrt_field(union pyrt_config *c, struct pyrt_build b, enum pyrt_kind kind, const char *name)
{
    struct search s = {.name = name, .kind = kind, .offset = NO_OFFSET};

    each_member(b, match_member, &s);
    return s.offset == NO_OFFSET ? NULL : c->bytes + s.offset;
}

/* CPython clears the whole structure before it sets defaults, so bytes that keep this pattern are
 * past its end. */
#define PATTERN 0xA5

static size_t written_size(const unsigned char *bytes, size_t room)
{
    while (room > 0 && bytes[room - 1] == PATTERN)
        room--;
    return room;
}

int pyrt_config_init(union pyrt_config *c, struct pyrt_build b, void (*init)(void *),
                     struct exti_error *err)
{
    /* Documented results of PyConfig_InitPythonConfig, spread over the structure. */
    static const struct {
        const char *name;
        int value;
    } defaults[] = {
        {"use_environment", 1},     {"install_signal_handlers", 1},
        {"parse_argv", 1},          {"site_import", 1},
        {"write_bytecode", 1},      {"user_site_directory", 1},
        {"configure_c_stdio", 1},   {"buffered_stdio", 1},
        {"pathconfig_warnings", 1}, {"_install_importlib", 1},
        {"_init_main", 1},          {"module_search_paths_set", 0},
    };
    size_t size = pyrt_config_size(b), real;

    memset(c->bytes, PATTERN, sizeof c->bytes);
    init(c);
    real = written_size(c->bytes, sizeof c->bytes);
    if (real != size)
        return pyrt_fail(err, EXTI_E_LOAD,
                         "PyConfig of this CPython 3.%d build has %zu bytes, a stock one has %zu: "
                         "the build is not a stock one",
                         b.minor, real, size);
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        const int *value = pyrt_field(c, b, PYRT_INT, defaults[i].name);
        if (!value || *value != defaults[i].value)
            return pyrt_fail(err, EXTI_E_LOAD,
                             "PyConfig.%s of this CPython 3.%d build is %d after "
                             "PyConfig_InitPythonConfig, a stock one has %d: the build is not a "
                             "stock one",
                             defaults[i].name, b.minor, value ? *value : -1, defaults[i].value);
    }
    return 0;
}

int pyrt_preconfig_init(struct pyrt_preconfig *out, void (*init)(void *), struct exti_error *err)
{
    union {
        unsigned char bytes[4 * sizeof *out];
        struct pyrt_preconfig pre;
    } u;
    size_t real;

    memset(u.bytes, PATTERN, sizeof u.bytes);
    init(&u);
    real = written_size(u.bytes, sizeof u.bytes);
    if (real != sizeof u.pre || u.pre.use_environment != 1 || u.pre.configure_locale != 1 ||
        u.pre.parse_argv != 1)
        return pyrt_fail(err, EXTI_E_LOAD,
                         "PyPreConfig of this CPython build (%zu bytes) is not that of a stock one "
                         "(%zu bytes)",
                         real, sizeof u.pre);
    *out = u.pre;
    return 0;
}
