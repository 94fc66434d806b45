/* The layouts of PyPreConfig in every CPython, and of PyConfig (PEP 587) in those before 3.14.  The
 * C declarations would serve only one minor version, and need Python's headers to build. */
#ifndef RUNTIME_PYCONFIG_H
#define RUNTIME_PYCONFIG_H

#include <stddef.h>
#include <wchar.h>

#include "runtime/python.h"
#include <extisolate.h>

/* PyStatus and PyWideStringList are the same in all versions. */
struct pyrt_status {
    int type; /* 0 ok, 1 error, 2 exit */
    const char *func, *err_msg;
    int exitcode;
};
struct pyrt_wlist {
    ptrdiff_t length;
    wchar_t **items;
};

/* PyPreConfig on a POSIX system, the same in all versions. */
struct pyrt_preconfig {
    int config_init, parse_argv, isolated, use_environment;
    int configure_locale, coerce_c_locale, coerce_c_locale_warn;
    int utf8_mode, dev_mode, allocator;
};

enum pyrt_kind { PYRT_INT, PYRT_ULONG, PYRT_WSTR, PYRT_WLIST };

struct pyrt_build {
    int minor, free_threaded, debug;
};

/* The last minor version whose PyConfig is known here.  Later ones take options by name. */
#define PYRT_MINOR_LAYOUT 13

size_t pyrt_config_size(struct pyrt_build b);

/* Calls `each` for every member of the build's PyConfig, in order. */
void pyrt_fields(struct pyrt_build b,
                 void (*each)(void *user, const char *name, enum pyrt_kind kind, size_t offset),
                 void *user);

/* Room for any PyConfig, and slack for the check in pyrt_config_init. */
#define PYRT_CONFIG_ROOM 1024
union pyrt_config {
    unsigned char bytes[PYRT_CONFIG_ROOM];
    void *align;
    long align_long;
};

/* A pointer to the member; NULL if the build has none of that name and kind. */
void *pyrt_field(union pyrt_config *c, struct pyrt_build b, enum pyrt_kind kind, const char *name);

/* Runs `init` (PyConfig_InitPythonConfig) on `c` and checks that it wrote exactly the size and
 * the documented defaults that the table expects.  This refuses a build with another layout,
 * which would corrupt memory later.  pyrt_preconfig_init does the same for
 * PyPreConfig_InitPythonConfig. */
int pyrt_config_init(union pyrt_config *c, struct pyrt_build b, void (*init)(void *),
                     struct exti_error *err);
int pyrt_preconfig_init(struct pyrt_preconfig *out, void (*init)(void *), struct exti_error *err);

#endif
